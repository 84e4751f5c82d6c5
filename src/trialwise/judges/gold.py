"""Gold sets: outputs that people have labelled, with where the labels come from.

In YAML or JSON::

    provenance: {source: support tickets of May, labelled_by: two agents, rule: both had to agree}
    entries:
      - {input: How do I cancel?, output: Just stop paying., label: fail}

or as JSON lines, `{"provenance": …}` on one of them and an entry on each other. Where the judge
sees what a right output says, each entry says it as `expected`. An entry of a set of pairs says
which of two outputs people prefer::

    {input: How do I cancel?, first: Just stop paying., second: Open Billing., better: second,
     candidate: first}

Pairs that people find equal are left out. `candidate` says which side is of the arm, or has the
style, that is the candidate in a comparison. A judge that favours the style of one arm errs more
often to its side, and only then can that be corrected for.

Outputs to be labelled can be drawn from the trials of a run. Labels correct a judged rate by the
rectifier only if the labelled outputs were drawn as the judged ones were: here every trial with a
reply is as likely as any other. What the judge said of it stays out of sight, so that people label
the output and not the judge.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Generic, Self, TypeVar

from trialwise.engine.criterion_progress import derive_seed
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model import RunRecord, Sampling
from trialwise.model.fingerprint import fingerprint, sampling_fingerprint
from trialwise.regular_files import read_regular
from trialwise.validation import require_choice, require_count, require_text

S = TypeVar("S")

_MAX_BYTES = 50_000_000
_LABELS = {"pass": True, "fail": False, True: True, False: False}
_SUFFIXES = (".yaml", ".yml", ".json")
#: A file that is wrong in one entry is usually wrong in many.
_SHOWN = 5
#: How the record of a run ends a reply that it does not hold in full.
_CUT = "…"


class GoldSetError(TrialwiseError):
    """A gold set is missing, unreadable or not in the form of one."""


class _Wrong(Exception):
    """What is wrong with an entry, to be said after its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """What every kind of gold set says of one entry."""

    kind: ClassVar[str]
    noun: ClassVar[str]
    example: ClassVar[str]

    id: str
    input: Any = None
    expected: Any = None
    """What a right output says, for a judge that sees it."""
    note: str = ""
    """Why, for people."""

    @classmethod
    def read(cls, entry: Any, number: int) -> Self:
        """Return what an entry of a file says.

        Args:
            entry: The entry, or what is wrong with its line.
            number: Its place, which names it where it does not name itself.
        """
        if isinstance(entry, _Wrong):
            raise entry
        needed = [one.name for one in fields(cls) if one.default is MISSING and one.name != "id"]
        if not isinstance(entry, dict):
            *names, last = (f"`{name}`" for name in needed)
            raise _Wrong(f" must be a mapping with {', '.join(names)} and {last}")
        if lacking := [name for name in needed if name not in entry]:
            has = ", ".join(f"`{name}`" for name in entry) or "nothing"
            raise _Wrong(f" lacks `{lacking[0]}`; it has {has}")
        known = sorted(one.name for one in fields(cls))
        if unknown := sorted(map(str, set(entry) - {*known})):
            raise _Wrong(f" has an unknown key `{unknown[0]}`; known are {', '.join(known)}")
        named = {"id": str(entry.get("id", number)), "note": str(entry.get("note", ""))}
        return cls(**cls._convert(entry) | named)

    @classmethod
    def _convert(cls, entry: dict[str, Any]) -> dict[str, Any]:
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldUnit(_Unit):
    """One output and what people say of it."""

    kind: ClassVar[str] = "unit"
    noun: ClassVar[str] = "labelled output"
    example: ClassVar[str] = "such as `{output: Just stop paying., label: fail}`"

    output: str
    label: bool
    """Whether it passes."""

    def __post_init__(self) -> None:
        require_text("id", self.id, "be a text that names the unit")
        if not isinstance(self.output, str):
            raise InvalidArgument("output", self.output, "be text")
        if not isinstance(self.label, bool):
            raise InvalidArgument("label", self.label, "be pass or fail")

    @classmethod
    def _convert(cls, entry: dict[str, Any]) -> dict[str, Any]:
        label = entry["label"]
        if label is None:
            raise _Wrong(" is not labelled yet: `label` must be pass or fail")
        if not isinstance(label, str | bool) or label not in _LABELS:
            raise _Wrong(f": `label` must be pass or fail, got {label!r}")
        return entry | {"label": _LABELS[label]}

    @property
    def contents(self) -> list[Any]:
        """What a calibration depends on."""
        # What expects nothing is known by what it was known by before anything did.
        expected = [] if self.expected is None else [self.expected]
        return [self.input, self.output, self.label, *expected]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairUnit(_Unit):
    """Two outputs and which of them people prefer."""

    kind: ClassVar[str] = "pair"
    noun: ClassVar[str] = "labelled pair"
    example: ClassVar[str] = (
        "such as `{first: Stop paying., second: Open Billing., better: second}`"
    )

    first: str
    second: str
    better: str
    """`first` or `second`."""
    candidate: str | None = None
    """The side of the candidate's arm or style, `first` or `second`; None where nobody says."""

    def __post_init__(self) -> None:
        require_text("id", self.id, "be a text that names the pair")
        for name, text in (("first", self.first), ("second", self.second)):
            if not isinstance(text, str):
                raise InvalidArgument(name, text, "be text")
        require_choice("better", self.better, ("first", "second"))
        if self.candidate is not None:
            require_choice("candidate", self.candidate, ("first", "second"))

    @property
    def prefers_first(self) -> bool:
        """Whether people prefer the first output."""
        return self.better == "first"

    @property
    def prefers_candidate(self) -> bool:
        """Whether people prefer the candidate's output: the first one, where nobody says."""
        return self.better == (self.candidate or "first")

    @property
    def contents(self) -> list[Any]:
        """What a calibration depends on."""
        told = [self.input, self.first, self.second, self.better, self.expected]
        return told if self.candidate is None else [*told, self.candidate]


U = TypeVar("U", GoldUnit, PairUnit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gold(Generic[U]):
    units: tuple[U, ...]
    provenance: str = ""
    """Who labelled what, drawn from where; nothing makes it unfit to decide anything."""

    def __post_init__(self) -> None:
        counts = Counter(unit.id for unit in self.units)
        name, times = max(counts.items(), key=lambda one: one[1], default=("", 0))
        if times > 1:
            raise InvalidArgument("id", name, f"be that of one {self.units[0].kind} only")

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the labelled contents, without names, notes and order."""
        return fingerprint(sorted(fingerprint(unit.contents) for unit in self.units))


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSet(_Gold[GoldUnit]):
    """Labelled outputs, and where the labels come from.

    >>> gold = GoldSet(units=(GoldUnit(id="1", output="555", label=True),), provenance="by hand")
    >>> len(gold.units), len(gold.fingerprint)
    (1, 16)
    """

    def __post_init__(self) -> None:
        seen: dict[str, bool] = {}
        _Gold.__post_init__(self)
        for unit in self.units:
            content = fingerprint([unit.input, unit.output, unit.expected])
            if seen.setdefault(content, unit.label) is not unit.label:
                allowed = "have one label: the same input and output are labelled pass and fail"
                raise InvalidArgument(f"unit {unit.id!r}", unit.label, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairGold(_Gold[PairUnit]):
    """Pairs of outputs with people's preferences, and where those come from.

    >>> unit = PairUnit(id="1", first="Wait, please.", second="Wait.", better="first")
    >>> PairGold(units=(unit,), provenance="by hand").units[0].prefers_first
    True
    """

    @property
    def is_oriented(self) -> bool:
        """Whether every pair says which side is the candidate's."""
        return all(unit.candidate is not None for unit in self.units)


def read_gold(path: Path, *, needs_expected: bool = False) -> GoldSet:
    """Read the gold set that a file holds: YAML or JSON, or JSON lines by its suffix `.jsonl`.

    Args:
        path: The file.
        needs_expected: Whether every entry has to say what is `expected`, since the judge sees it.

    Raises:
        GoldSetError: There is no such file, or it does not hold one; the first problems are named.
    """

    return _read_set(path, GoldSet, GoldUnit, needs_expected=needs_expected)


def read_pair_gold(path: Path) -> PairGold:
    """Read the gold set of pairs that a file holds.

    Args:
        path: The file: YAML or JSON, or JSON lines by its suffix `.jsonl`.

    Raises:
        GoldSetError: There is no such file, or it does not hold one; the first problems are named.
    """

    return _read_set(path, PairGold, PairUnit)


def _read_set(
    path: Path, gold: Callable[..., S], kind: type[_Unit], *, needs_expected: bool = False
) -> S:
    provenance, entries = _read_entries(path, kind.example)
    units: list[_Unit] = []
    problems: list[str] = []
    for number, (where, entry) in enumerate(entries, 1):
        try:
            unit = kind.read(entry, number)
            if needs_expected and unit.expected is None:
                raise _Wrong(" lacks `expected`, which the judge sees (`shows_expected`)")
            units.append(unit)
        except _Wrong as wrong:
            problems.append(f"{where}{wrong}")
        except InvalidArgument as error:
            problems.append(f"{where}: `{error.argument}` must {error.allowed}")
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise GoldSetError(f"{path}: " + "; ".join(problems[:_SHOWN]) + more)
    if not units:
        raise GoldSetError(f"{path}: the gold set holds no {kind.noun}; {kind.example}")
    try:
        return gold(units=tuple(units), provenance=_describe_provenance(provenance))
    except InvalidArgument as error:
        raise GoldSetError(f"{path}: {error}") from None


def _read_entries(path: Path, example: str) -> tuple[Any, list[tuple[str, Any]]]:
    """Read the provenance and the entries of a gold set, each entry with its place in the file."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise GoldSetError(f"{path}: a gold set has at most {_MAX_BYTES:,} bytes")
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise GoldSetError(f"{path}: the gold set cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GoldSetError(f"{path}: the gold set is not UTF-8 (byte {error.start})") from None
    if path.suffix == ".jsonl":
        return _from_lines(text)
    document = _document(path, text, example)
    listed = document.get("entries") or []
    if not isinstance(listed, list):
        raise GoldSetError(f"{path}: `entries` must be a list; {example}")
    entries = [(f"entry {place}", one) for place, one in enumerate(listed, 1)]
    return document.get("provenance"), entries


def _from_lines(text: str) -> tuple[Any, list[tuple[str, Any]]]:
    """Provenance and entries; a line that is not JSON comes as what is wrong with it."""
    provenance: Any = None
    entries: list[tuple[str, Any]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            value = _Wrong(f" is not JSON: {error.msg} in column {error.colno}")
        except ValueError:
            value = _Wrong(" is not JSON: it holds a number of thousands of digits")
        except RecursionError:
            value = _Wrong(" is not JSON: it nests too deeply")
        if isinstance(value, dict) and set(value) == {"provenance"}:
            provenance = value["provenance"]
        else:
            entries.append((f"line {number}", value))
    return provenance, entries


def _document(path: Path, text: str, example: str) -> Mapping[str, Any]:
    from trialwise.checks.reply_reading import parse_json, parse_yaml

    if path.suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        raise GoldSetError(f"{path}: a gold set is YAML, JSON or JSON lines: {known} or .jsonl")
    try:
        document = parse_json(text) if path.suffix == ".json" else parse_yaml(text)
    except ValueError as error:
        raise GoldSetError(f"{path}: the gold set is not {error}") from None
    if not isinstance(document, dict) or set(document) - {"provenance", "entries"}:
        raise GoldSetError(
            f"{path}: a gold set is a mapping of `provenance` and `entries`; {example}"
        )
    return document


def _describe_provenance(provenance: Any) -> str:
    """Provenance as a text; an empty one is none."""
    if not provenance:
        return ""
    if isinstance(provenance, Mapping):
        for key, value in provenance.items():
            if value is None or not str(value).strip():
                raise InvalidArgument(f"provenance.{key}", value, "say something, or be left out")
        return "; ".join(f"{key}: {value}" for key, value in provenance.items())
    return str(provenance).strip()


def draw_unlabelled(
    record: RunRecord, sampling: Sampling, *, experiment: str, units: int, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Draw the lines of a gold set without labels: its origin first, then every output.

    Args:
        record: The run.
        sampling: The inputs as they are now, since a record keeps their names alone.
        experiment: Of which of the run's samplings.
        units: How many.
        seed: The seed of the draw.

    Raises:
        GoldSetError: The inputs are others by now, too few trials have a reply, or a reply is
            longer than what a run keeps.
    """
    require_count("units", units, minimum=1)
    planned = next((one for one in record.plan.experiments if one.name == experiment), None)
    if planned is None:
        known = ", ".join(one.name for one in record.plan.experiments)
        raise InvalidArgument("experiment", experiment, f"be one of the run's: {known}")
    if planned.fingerprint != sampling_fingerprint(sampling):
        message = f"{record.run_id}: the inputs changed since this run; run it again, then draw"
        raise GoldSetError(message)
    table = record.trials.of_experiment(experiment)
    trials = table.answered()
    if len(trials) < units:
        message = f"{record.run_id}: {len(trials)} trials have a reply, {units} were asked for"
        raise GoldSetError(f"{message}; ask for fewer, or run more")
    # By a seed of its own purpose, so that the draw is independent of the order in which inputs
    # were asked.
    chance = Random(derive_seed("gold", seed, experiment))
    # In the order of the run: people label what belongs together in one go, and the file reads like
    # the run.
    drawn = sorted(chance.sample(range(len(trials)), units))
    chosen = [table[trials[place]] for place in drawn]
    cut = sum((one.reply or "").endswith(_CUT) for one in chosen)
    if cut:
        message = f"{record.run_id}: {cut} of the drawn replies are cut in the run's record"
        raise GoldSetError(f"{message}; take the outputs from where the service logs them")
    asked = {one.id: one for one in sampling.inputs}
    source = f"{units} of {len(table)} trials of run {record.run_id}, drawn with seed {seed}"
    lines: list[dict[str, Any]] = [
        {"provenance": {"source": source, "labelled_by": None, "rule": None}}
    ]
    for trial in chosen:
        given = asked[trial.input_id]
        told = {} if given.expected is None else {"expected": given.expected}
        unit = {"id": f"trial-{trial.index}", "input": given.value, **told}
        lines.append({**unit, "output": trial.reply, "label": None})
    return iter(lines)
