"""Gold sets: outputs that people have labelled, with where the labels come from.

In YAML or JSON::

    provenance: {source: support tickets of May, labelled_by: two agents, rule: both had to agree}
    entries:
      - {input: How do I cancel?, output: Just stop paying., label: fail}

or as JSON lines, `{"provenance": …}` on one of them and an entry on each other. Where the judge
sees what a right output says, each entry says it as `expected`.

Outputs to be labelled can be drawn from the trials of a run. Labels correct a judged rate by the
rectifier only if the labelled outputs were drawn as the judged ones were: here every trial with a
reply is as likely as any other. What the judge said of it stays out of sight, so that people label
the output and not the judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from trialwise.engine.criterion_progress import derive_seed
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.claim import Sampling
from trialwise.model.fingerprint import fingerprint, sampling_fingerprint
from trialwise.model.run import RunRecord
from trialwise.regular_files import read_regular
from trialwise.validation import require_count, require_text

_MAX_BYTES = 50_000_000
_LABELS = {"pass": True, "fail": False, True: True, False: False}
_KNOWN = {"id", "input", "expected", "output", "label", "note"}
_SUFFIXES = (".yaml", ".yml", ".json")
_FORM = "such as `{output: Just stop paying., label: fail}`"
#: A file that is wrong in one entry is usually wrong in many.
_SHOWN = 5
#: How the record of a run ends a reply that it does not hold in full.
_CUT = "…"


class GoldSetError(TrialwiseError):
    """A gold set is missing, unreadable or not in the form of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldUnit:
    """One output and what people say of it."""

    id: str
    output: str
    label: bool
    """Whether it passes."""
    input: Any = None
    expected: Any = None
    """What a right output says, for a judge that sees it."""
    note: str = ""
    """Why, for people."""

    def __post_init__(self) -> None:
        require_text("id", self.id, "be a text that names the unit")
        if not isinstance(self.output, str):
            raise InvalidArgument("output", self.output, "be text")
        if not isinstance(self.label, bool):
            raise InvalidArgument("label", self.label, "be pass or fail")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldSet:
    """Labelled outputs, and where the labels come from.

    >>> gold = GoldSet(units=(GoldUnit(id="1", output="555", label=True),), provenance="by hand")
    >>> len(gold.units), len(gold.fingerprint)
    (1, 16)
    """

    units: tuple[GoldUnit, ...]
    provenance: str = ""
    """Who labelled what, drawn from where; nothing makes it unfit to decide anything."""

    def __post_init__(self) -> None:
        seen: dict[str, bool] = {}
        known: set[str] = set()
        for unit in self.units:
            if unit.id in known:
                raise InvalidArgument("id", unit.id, "be that of one unit only")
            known.add(unit.id)
            content = fingerprint([unit.input, unit.output, unit.expected])
            if seen.setdefault(content, unit.label) is not unit.label:
                allowed = "have one label: the same input and output are labelled pass and fail"
                raise InvalidArgument(f"unit {unit.id!r}", unit.label, allowed)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the labelled contents, without names, notes and order."""
        return fingerprint(sorted(map(_content, self.units)))


def _content(unit: GoldUnit) -> str:
    # What expects nothing is known by what it was known by before anything did.
    expected = [] if unit.expected is None else [unit.expected]
    return fingerprint([unit.input, unit.output, unit.label, *expected])


def read_gold(path: Path, *, needs_expected: bool = False) -> GoldSet:
    """Read the gold set that a file holds: YAML or JSON, or JSON lines by its suffix `.jsonl`.

    Args:
        path: The file.
        needs_expected: Whether every entry has to say what is `expected`, since the judge sees it.

    Raises:
        GoldSetError: There is no such file, or it does not hold one; the first problems are named.
    """
    provenance, entries = read_entries(path)
    problems: list[str] = []
    units = list(_units(entries, problems, needs_expected=needs_expected))
    refuse_problems(path, problems)
    if not units:
        raise GoldSetError(f"{path}: the gold set holds no labelled output; {_FORM}")
    try:
        return GoldSet(units=tuple(units), provenance=describe_provenance(provenance))
    except InvalidArgument as error:
        raise GoldSetError(f"{path}: {error}") from None


def read_entries(path: Path) -> tuple[Any, list[tuple[str, Any]]]:
    """Read the provenance and the entries of a gold set, each entry with its place in the file.

    Args:
        path: The file: YAML or JSON, or JSON lines by its suffix.

    Raises:
        GoldSetError: There is no such file, or it is not in one of these forms.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise GoldSetError(f"{path}: a gold set has at most {_MAX_BYTES:,} bytes")
        text = read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise GoldSetError(f"{path}: the gold set cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GoldSetError(f"{path}: the gold set is not UTF-8 (byte {error.start})") from None
    return _from_lines(text) if path.suffix == ".jsonl" else _from_document(path, text)


def refuse_problems(path: Path, problems: list[str]) -> None:
    """Refuse a gold set whose entries have problems, and name the first of them.

    Raises:
        GoldSetError: There are any.
    """
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise GoldSetError(f"{path}: " + "; ".join(problems[:_SHOWN]) + more)


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
            value = BrokenLine(f"is not JSON: {error.msg} in column {error.colno}")
        except ValueError:
            value = BrokenLine("is not JSON: it holds a number of thousands of digits")
        except RecursionError:
            value = BrokenLine("is not JSON: it nests too deeply")
        if isinstance(value, dict) and set(value) == {"provenance"}:
            provenance = value["provenance"]
        else:
            entries.append((f"line {number}", value))
    return provenance, entries


def _from_document(path: Path, text: str) -> tuple[Any, list[tuple[str, Any]]]:
    document = _document(path, text)
    listed = document.get("entries") or []
    if not isinstance(listed, list):
        raise GoldSetError(f"{path}: `entries` must be a list; {_FORM}")
    return document.get("provenance"), [
        (f"entry {place}", one) for place, one in enumerate(listed, 1)
    ]


class BrokenLine(str):
    """What is wrong with a line that is not JSON."""

    __slots__ = ()


def _document(path: Path, text: str) -> Mapping[str, Any]:
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
            f"{path}: a gold set is a mapping of `provenance` and `entries`; {_FORM}"
        )
    return document


def _units(
    entries: Iterable[tuple[str, Any]], problems: list[str], *, needs_expected: bool
) -> Iterator[GoldUnit]:
    for number, (where, entry) in enumerate(entries, 1):
        if isinstance(entry, BrokenLine):
            problems.append(f"{where} {entry}")
        elif not isinstance(entry, dict):
            problems.append(f"{where} must be a mapping with `output` and `label`")
        elif lacking := [name for name in ("output", "label") if name not in entry]:
            has = ", ".join(f"`{name}`" for name in entry) or "nothing"
            problems.append(f"{where} lacks `{lacking[0]}`; it has {has}")
        elif unknown := sorted(map(str, set(entry) - _KNOWN)):
            known = ", ".join(sorted(_KNOWN))
            problems.append(f"{where} has an unknown key `{unknown[0]}`; known are {known}")
        elif entry["label"] is None:
            problems.append(f"{where} is not labelled yet: `label` must be pass or fail")
        elif not isinstance(entry["label"], str | bool) or entry["label"] not in _LABELS:
            problems.append(f"{where}: `label` must be pass or fail, got {entry['label']!r}")
        elif needs_expected and entry.get("expected") is None:
            problems.append(f"{where} lacks `expected`, which the judge sees (`shows_expected`)")
        else:
            try:
                yield GoldUnit(
                    id=str(entry.get("id", number)),
                    output=entry["output"],
                    label=_LABELS[entry["label"]],
                    input=entry.get("input"),
                    expected=entry.get("expected"),
                    note=str(entry.get("note", "")),
                )
            except InvalidArgument as error:
                problems.append(f"{where}: `{error.argument}` must {error.allowed}")


def describe_provenance(provenance: Any) -> str:
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
    chance = Random(derive_seed("gold", seed, experiment))
    drawn = sorted(chance.sample(range(len(trials)), units))
    chosen = [table[trials[place]] for place in drawn]
    cut = sum((one.reply or "").endswith(_CUT) for one in chosen)
    if cut:
        message = f"{record.run_id}: {cut} of the drawn replies are cut in the run's record"
        raise GoldSetError(f"{message}; take the outputs from where the service logs them")
    return _lines(record, sampling, chosen, experiment, seed)


def _lines(
    record: RunRecord, sampling: Sampling, trials: list[Any], experiment: str, seed: int
) -> Iterator[dict[str, Any]]:
    asked = {one.id: one for one in sampling.inputs}
    of = len(record.trials.of_experiment(experiment))
    source = f"{len(trials)} of {of} trials of run {record.run_id}, drawn with seed {seed}"
    yield {"provenance": {"source": source, "labelled_by": None, "rule": None}}
    for trial in trials:
        given = asked[trial.input_id]
        yield {
            "id": f"trial-{trial.index}",
            "input": given.value,
            **({} if given.expected is None else {"expected": given.expected}),
            "output": trial.reply,
            "label": None,
        }
