"""A suite as it is once it is read: contracts to run, and where their records and reports go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from trialwise.model.contract import Contract
from trialwise.model.options import RunOptions
from trialwise.suite.suite_problems import SuiteNotFound

if TYPE_CHECKING:
    from trialwise.judges.preference import Pairwise

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
        longest_first = dict(sorted(self.secrets.items(), key=lambda item: -len(item[1])))
        put(self, "secrets", MappingProxyType(longest_first))
        spelled = {
            name: _list_spellings(value)
            for name, value in longest_first.items()
            if len(value) >= _SHORTEST
        }
        put(self, "_spellings", spelled)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSection:
    """What a suite says about its comparison; None where it says nothing."""

    control: str | None = None
    candidates: tuple[str, ...] = ()
    question: str | None = None
    margin: float | None = None
    guardrails: Mapping[str, float] = field(default_factory=dict)
    expect: tuple[float, float] | None = None
    trials: int | None = None
    max_trials: int | None = None
    confidence: float | None = None
    correction: str | None = None
    all_pairs: bool = False
    preference: Pairwise | None = None
    """The judge that prefers one of two replies, made by `judges.pairwise`."""


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
