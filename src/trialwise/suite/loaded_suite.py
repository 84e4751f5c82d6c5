"""A suite as it is once it is read: contracts to run, and where their records and reports go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from trialwise.declarations.scalars import Choice, Count, Rate
from trialwise.declarations.signatures import Arg, Names, Positive, Share
from trialwise.declarations.structures import Listing, MapOf
from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.stats.multiplicity import CORRECTIONS
from trialwise.stats.paired import PairedQuestion
from trialwise.suite.suite_problems import SuiteNotFound
from trialwise.suite.suite_services import PREFERENCE

#: Shorter values are no secrets, and replacing every `1` would leave no report to read.
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Redaction:
    """Takes out of a text what must not be stored or shown.

    >>> redaction = Redaction((r"[0-9]{16}",), {"API_KEY": "sk-12345"})
    >>> redaction("key sk-12345, card 4111111111111111")
    'key ${API_KEY}, card [redacted]'
    """

    patterns: tuple[str, ...] = ()
    """Regular expressions whose matches are replaced."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Values that the suite took from the environment, by variable."""
    _spellings: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        # The longest first: one value may be the beginning of another, whose rest would stay.
        longest_first = dict(sorted(self.secrets.items(), key=lambda item: -len(item[1])))
        put(self, "secrets", MappingProxyType(longest_first))
        long = {name: text for name, text in longest_first.items() if len(text) >= _SHORTEST}
        put(self, "_spellings", {name: _list_spellings(text) for name, text in long.items()})

    def __call__(self, text: str) -> str:
        """The text without them."""
        if not (self.secrets or self.patterns):  # most suites, and every reply comes by here
            return text
        text = self.without_secrets(text)
        if self.patterns:
            from trialwise.checks.texts import replace_matches

            for pattern in self.patterns:
                text = replace_matches(pattern, text, "[redacted]")
        return text

    def without_secrets(self, text: str) -> str:
        """Return the text with the values of variables replaced by their names."""
        # Secrets go before patterns, which could cut one of them in two.
        for name, spellings in self._spellings.items():
            for spelling in spellings:
                text = text.replace(spelling, f"${{{name}}}")
        return text


def _list_spellings(secret: str) -> tuple[str, ...]:
    """Return a secret as it is, as JSON and as Python's `repr` writes it, each once.

    An error message may quote any of them, also in a text that is quoted again. They differ where
    the secret holds a quote, a line end or another letter than those of ASCII.
    """
    once = [secret, *_quote(secret)]
    twice = [spelling for one in once for spelling in _quote(one)]
    # The longest first: it may hold the others.
    return tuple(sorted({*once, *twice}, key=len, reverse=True))


def _quote(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    # A text with both quotes is written in single ones.
    yield repr(f'"{text}')[2:-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteContract:
    """A contract with how it is to be run."""

    contract: Contract
    options: RunOptions
    tags: tuple[str, ...] = ()
    line: int = 0
    """Where it begins in the suite's file, from 1."""
    service: str = ""
    """The kind of its service and a hash of what the suite says of it, such as `chat:3f9c…`."""
    arm: str = ""
    """The name of the arm, where it is one of another contract."""
    arms: tuple[SuiteContract, ...] = ()
    """Variants to compare it with; none where the suite was loaded without them."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Where each criterion and each gate stands, as file:line, by name.

    With `.` before it each key of the contract, and alone the contract.
    """

    @property
    def name(self) -> str:
        """The contract's name."""
        return self.contract.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report to write after a run."""

    format: str
    """html, json, junit, md or tap."""
    path: Path


_MARGINS = Arg(kind=MapOf(Rate(), "margins by criterion"))
_EXPECTED = Arg(
    kind=Listing(Rate(), "the rates of the control and of the candidate", minimum=2, maximum=2)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSection:
    """What a suite says about its comparison; None where it says nothing.

    Args:
        control: The contract or arm that the others are compared with.
        candidates: The contracts and arms to compare with it.
        question: What is asked of each candidate: whether it is `different`, `better` by more than
            `margin`, `not-worse` by more than it, or `equivalent` within it.
        margin: The margin of the question, such as `2%`.
        guardrails: Criteria that no candidate may lower by more than their margin, whatever is
            asked of the others.
        expect: The rates you expect of the control and of a candidate: `[80%, 90%]`. The number of
            pairs is planned for them.
        trials: A fixed number of pairs.
        max_trials: Upper limit on pairs.
        confidence: The confidence of all tests together.
        correction: How several tests share the level.
        all_pairs: Whether candidates are also compared with one another.
        preference: A judge that says of every pair of replies which one is better: one more
            criterion.
    """

    control: Annotated[str | None, Arg(default="the only contract that has arms")] = None
    candidates: Annotated[
        tuple[str, ...], Arg(kind=Names(), default="the arms of the control")
    ] = ()
    question: Annotated[PairedQuestion | None, Arg(default="different")] = None
    margin: Share | None = None
    guardrails: Annotated[Mapping[str, float], _MARGINS] = field(default_factory=dict)
    expect: Annotated[tuple[float, float] | None, _EXPECTED] = None
    trials: Annotated[int | None, Arg(kind=Count(), default="stops as soon as it can")] = None
    max_trials: Positive | None = None
    confidence: Annotated[float | None, Arg(kind=Rate(), default="95%")] = None
    correction: Annotated[str | None, Arg(kind=Choice(*CORRECTIONS), default="holm")] = None
    all_pairs: Annotated[bool, Arg(default="")] = False
    #: Made by `judges.pairwise`, which is loaded with a suite that names a judge.
    preference: Annotated[Any, Arg(kind=PREFERENCE)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Everything that a suite file says."""

    path: Path
    contracts: tuple[SuiteContract, ...]
    compare: CompareSection = field(default_factory=CompareSection)
    reports: tuple[Report, ...] = ()
    runs_folder: Path
    """Where runs and journals are kept."""
    baselines_folder: Path
    redaction: Redaction = field(default_factory=Redaction)
    """What is taken out of every text before it is stored or shown."""
    files: tuple[Path, ...] = ()
    """The suite and the files it includes."""

    @property
    def folder(self) -> Path:
        """The folder that the suite's paths start from."""
        return self.path.parent


# Where the suite is: in the folder at hand or the nearest above it, as git finds its root.

SUITE_NAMES = ("trialwise.yaml", "trialwise.yml")


def find_suite(start: Path) -> Path:
    """Find the suite file that a folder belongs to.

    Args:
        start: Where to begin looking: a folder.

    Raises:
        SuiteNotFound: There is none here or above, or one folder has two.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "deep" / "er").mkdir(parents=True)
    >>> _ = (folder / "trialwise.yaml").write_text("service: {}")
    >>> find_suite(folder / "deep" / "er").name
    'trialwise.yaml'
    """
    try:
        here = start.resolve()
        for folder in (here, *here.parents):
            found = [folder / name for name in SUITE_NAMES if (folder / name).is_file()]
            if len(found) > 1:
                names = " and ".join(path.name for path in found)
                raise SuiteNotFound((), f"{folder} has both {names}: remove one")
            if found:
                return found[0]
    except (OSError, ValueError, RuntimeError) as error:
        raise SuiteNotFound((), f"no suite can be looked for from {start}: {error}") from None
    raise SuiteNotFound(
        (),
        f"no {SUITE_NAMES[0]} in {here} or in a folder above it. "
        "Write one with `trialwise init`, or name a suite file.",
    )
