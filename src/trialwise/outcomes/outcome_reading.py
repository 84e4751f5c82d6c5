"""Read result files: how a module declares a format, and how the format of a file is found.

A module declares its format as `FORMAT`. The formats of other tools live in `trialwise.contrib`,
and other distributions add theirs as entry points of the group `trialwise.results`:

    [project.entry-points."trialwise.results"]
    mine = "my_package.results:FORMAT"

The core knows them by the names below only, so reading a table loads no other reader.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, TypedDict, Unpack

from trialwise.errors import InvalidArgument
from trialwise.extensions import RESULTS, extension_names, find_extension
from trialwise.model import ErrorClass, FailReason, Usage
from trialwise.outcomes import outcome_rows as files
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes, Problems
from trialwise.validation import require_choice, require_real

_Path: TypeAlias = "str | PathLike[str]"

_MODULES = {
    "jsonl": "trialwise.contrib.results.json_lines",
    "csv": "trialwise.contrib.results.csv_tables",
    "trialwise": "trialwise.outcomes.outcome_reading",
    "junit": "trialwise.contrib.results.junit_reports",
    "inspect": "trialwise.contrib.results.inspect_results",
    "promptfoo": "trialwise.contrib.results.promptfoo_results",
    "vally": "trialwise.contrib.results.vally_results",
    "deepeval": "trialwise.contrib.results.deepeval_results",
    "pydantic-evals": "trialwise.contrib.results.pydantic_evals_results",
    "lm-eval": "trialwise.contrib.results.lm_eval_results",
    "langfuse": "trialwise.contrib.results.langfuse_scores",
}

#: The built-in formats.
FORMATS = tuple(_MODULES)

#: Formats that are recognised by what a JSON document holds, in the order they are asked.
_BY_DOCUMENT = (
    *("trialwise", "inspect", "promptfoo", "vally", "deepeval", "pydantic-evals", "lm-eval"),
    "langfuse",
)

_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".xml": "junit",
    ".eval": "inspect",
}

#: The format by the first character that is not white space.
_BY_CHARACTER = {b"<": "junit", b"{": "jsonl", b"[": "jsonl"}

#: How our own rows call themselves, up to the number of the format.
OWN_SCHEMA = "trialwise.results/"

#: Only the logs of Inspect AI are archives, whatever their extension.
_ARCHIVE = b"PK"

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


#: Words that mean that there was no trial, where the user names no others.
_SKIPS = frozenset(("skip", "skipped", "disabled", "notrun", "not-run", "xfail", "xfailed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which field means what. Names are those of columns or JSON fields, dotted if nested.

    >>> Layout(result=("score",), pass_at=0.7).passing
    '>= 0.7'
    """

    input: str | None = None
    result: tuple[str, ...] = ()
    """The fields that hold results; each is a criterion."""
    criterion: str | None = None
    """The field that names the criterion, if every criterion has its own line."""
    trial: str | None = None
    order: str | None = None
    latency: str | None = None
    """The field with the latency in seconds, or in milliseconds if its name ends in `_ms`."""
    cost: str | None = None
    explanation: str | None = None
    evidence: str | None = None
    passes: frozenset[str] | None = None
    """Words that mean passed; every other word then means failed."""
    errors: frozenset[str] = frozenset()
    """Further words that mean that the trial broke."""
    skips: frozenset[str] = _SKIPS
    """Words that mean that there was no trial."""
    pass_at: float | None = None
    """The lowest score that passes; without it only 0 and 1 are results."""
    error_class: ErrorClass | str = ErrorClass.INFRASTRUCTURE
    """The error class of trials that broke without saying how."""
    delimiter: str | None = None
    """The character between columns; by default the most frequent of `,`, `;` and tab."""
    only: tuple[str, ...] = ()
    """The criteria that are asked about; what the file says of others need not be a result."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "result", _several(self.result))
        put(self, "only", _several(self.only))
        put(self, "passes", None if self.passes is None else _words("passes", self.passes))
        put(self, "errors", _words("errors", self.errors))
        put(self, "skips", _words("skips", self.skips))
        if self.pass_at is not None:
            put(self, "pass_at", require_real("pass_at", self.pass_at))
        known = tuple(str(one) for one in ErrorClass)
        put(self, "error_class", ErrorClass(require_choice("error_class", self.error_class, known)))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise InvalidArgument("delimiter", self.delimiter, "be one character, and no quote")

    @property
    def broken(self) -> ErrorClass:
        """The class of a trial that broke without saying how."""
        return ErrorClass(self.error_class)

    def choose(self, known: Iterable[str], usual: Iterable[str]) -> tuple[str, ...]:
        """Return the criteria to read: those named as results or asked about, or the usual ones.

        >>> Layout(only=("right", "of another file")).choose(["right", "steps"], ["steps"])
        ('right',)
        """
        kept = frozenset(known)
        return self.result or tuple(one for one in self.only if one in kept) or tuple(usual)

    @property
    def passing(self) -> str:
        """What counts as passed, if this layout changes it."""
        parts = [] if self.pass_at is None else [f">= {self.pass_at:g}"]
        parts += [] if self.passes is None else [f"in {', '.join(sorted(self.passes))}"]
        return " or ".join(parts)


def _words(argument: str, given: Iterable[str]) -> frozenset[str]:
    words = [" ".join(str(one).split()).casefold() for one in _several(given)]
    if not all(words):
        raise InvalidArgument(argument, given, "be words")
    return frozenset(words)


class LayoutFields(TypedDict, total=False):
    """The keyword arguments of `read_outcomes`: which field of a file means what."""

    input: str | None
    """The field that names the input."""
    result: str | Sequence[str]
    """The fields that hold results, each a criterion. In Inspect logs these are the scorers, in
    promptfoo results the metrics."""
    criterion: str | None
    """The field that names the criterion, if each has a line of its own. For JUnit reports it is
    `test`, `classname` or `suite`."""
    trial: str | None
    """The field that numbers the trials of an input."""
    order: str | None
    """The field with the time, or the place, at which a trial began."""
    latency: str | None
    """The field with the latency, in seconds or, where its name ends so, `_ms`."""
    cost: str | None
    """The field with the cost in dollars."""
    explanation: str | None
    """The field that says why a trial failed."""
    evidence: str | None
    """The field with the reply, or the part of it that shows it."""
    passes: Iterable[str] | None
    """Words that mean passed; every other word then means failed."""
    errors: Iterable[str]
    """Further words that mean that the trial broke."""
    pass_at: float | None
    """The lowest score that passes."""
    error_class: ErrorClass | str
    """The class of trials that broke without saying how."""
    delimiter: str | None
    """The character between the columns of a table."""
    only: Iterable[str]
    """The criteria that are asked about, where a file grades a trial in several ways; the others
    are not read."""


def read_outcomes(
    path: _Path | Sequence[_Path],
    *,
    format: str | None = None,  # noqa: A002 - the word that every caller expects
    **layout: Unpack[LayoutFields],
) -> Outcomes:
    """Read the outcomes of a file, or of several of one kind, such as reports of repeated runs.

    Args:
        path: The file, or the files; with several, the trials of each are further trials.
        format: The name of a format, such as `csv`; by default it follows from extension and
            content.
        layout: The fields of `LayoutFields`.

    Raises:
        OutcomesUnreadable: A file cannot be read; the message names the places and what was
            expected there.
        InvalidArgument: No format has that name.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("question,score\\nq1,0.9\\nq2,0.4\\n")
    >>> [row.passed for row in read_outcomes(path, pass_at=0.7).rows]
    [True, False]
    """
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    if not paths:
        raise InvalidArgument("path", paths, "be at least one file")
    how = Layout(**layout)  # type: ignore[arg-type]
    return Outcomes.join([_read(Path(one), format, how) for one in paths])


def _read(path: Path, form: str | None, layout: Layout) -> Outcomes:
    chosen = find_format(form or detect_format(path))
    # What was tested is named after the file, without its extensions, unless the file says it.
    name = path.name.split(".")[0].strip() or path.name or "outcomes"
    return chosen.read(path, name=name, layout=layout, problems=Problems(str(path)))


def _several(words: Iterable[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFormat:
    """A format of result files.

    Every reader takes the keyword arguments `name` (what was tested, unless the file says),
    `layout` (a `Layout`) and `problems` (where to report what is wrong), and returns `Outcomes`.
    """

    name: str
    """The word that users write, such as `csv`."""
    read: Callable[..., Outcomes]
    """Reads the file at a path."""
    recognises: Callable[[Any], bool] | None = None
    """Whether a JSON document, or the list of the objects of JSON lines, is of this format."""
    read_json: Callable[..., Outcomes] | None = None
    """Reads what `recognises` accepts."""


def find_format(name: str) -> ResultFormat:
    """Find a format by its name.

    Raises:
        InvalidArgument: No format has that name.
    """
    if name in _MODULES:
        found = import_module(_MODULES[name]).FORMAT
        assert isinstance(found, ResultFormat)
        return found

    extension = find_extension(
        RESULTS, name, lambda one: one if isinstance(one, ResultFormat) else None
    )
    if extension is None:
        known = ", ".join(map(repr, (*FORMATS, *extension_names(RESULTS))))
        raise InvalidArgument("format", name, f"be one of {known}")
    return extension


def json_formats() -> Iterator[ResultFormat]:
    """Yield the built-in formats that recognise a JSON document."""
    return (find_format(name) for name in _BY_DOCUMENT)


def detect_format(path: Path) -> str:
    """Name the format of a file by its extension, or else by how it begins.

    Raises:
        OutcomesUnreadable: The file is YAML, which would otherwise be taken for a table.
    """
    head = files.read_head(path, 4096)
    if path.suffix.casefold() in (".yaml", ".yml"):
        raise files.refuse_file(
            path,
            "YAML is not read: write the results as JSON, with promptfoo by "
            "`promptfoo eval -o results.json`",
        )
    if head.startswith(_ARCHIVE):
        return "inspect"
    if OWN_SCHEMA.encode() in head.partition(b"\n")[0]:
        return "trialwise"
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1]
    return _BY_EXTENSION.get(path.suffix.casefold()) or _BY_CHARACTER.get(start, "csv")


# Read back what `trialwise run -o results.jsonl` wrote: rows of runs, results and trials.
#
# Only trials count: each of their graders is the result of one criterion. A file with several runs
# has the name of the contract before each criterion.


def parse_lines(text: str, problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    """Parse one object a line, each with its place; blank lines do not count.

    >>> parse_lines('{"input": "q1", "passed": true}', Problems("runs.jsonl"))
    [('line 1', {'input': 'q1', 'passed': True})]
    """
    records: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        if len(records) >= files.MOST_ROWS:
            raise problems.refuse(where, f"at most {files.MOST_ROWS:,} lines are read")
        try:
            value = files.parse_json(line)
        except ValueError as error:
            problems.add(where, f"a JSON object is expected ({error})")
            continue
        if isinstance(value, dict):
            records.append((where, value))
        else:
            problems.add(where, f"a JSON object is expected, not {name_type(value)}")
    problems.check()
    return records


def name_type(value: Any) -> str:
    """Name the type of a JSON value as a message calls it."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def is_own_results(document: Any) -> bool:
    """Return whether the first of some JSON lines is a run of ours."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and str(first.get("schema", "")).startswith(OWN_SCHEMA)


def read_own_results(
    document: list[Any], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    """Read the trials of all runs.

    Args:
        document: The objects of the lines.
        name: What was tested, where the file does not say.
        layout: Whose `result` chooses criteria.
        problems: The problems of the file.
    """
    runs: dict[str, dict[str, Any]] = {}
    rows: list[OutcomeRow] = []
    for number, one in enumerate(document, start=1):
        where = f"line {number}"
        try:
            if one["type"] == "run":
                if one.get("schema") != f"{OWN_SCHEMA}1":
                    problems.add(where, f"{one.get('schema')} is not read, only {OWN_SCHEMA}1")
                runs[str(one["run_id"])] = one
            elif one["type"] == "trial":
                rows += _list_trial_rows(one, where)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            problems.add(
                where, f"this is not a row of {OWN_SCHEMA}1 ({type(error).__name__}: {error})"
            )
    problems.check()
    if not rows:
        raise problems.refuse("", "the file holds no trials")
    if len(runs) > 1:
        contracts = {name: str(run.get("contract", "?")) for name, run in runs.items()}
        rows = [
            replace(
                row, criterion=f"{contracts.get(row.group.partition(' ')[0], '?')}: {row.criterion}"
            )
            for row in rows
        ]
    # What was under test is known where all trials are of one run.
    given = next(iter(runs.values())).get("factors") if len(runs) == 1 else None
    factors = given if isinstance(given, dict) else {}
    named = [str(run.get("contract") or name) for run in runs.values()]
    found = Outcomes(
        rows=tuple(rows),
        name=named[0] if len(named) == 1 else name,
        source=problems.path,
        format="trialwise",
        factors={str(key): str(value) for key, value in factors.items()},
    )
    return found.only(*layout.result) if layout.result else found


def _list_trial_rows(one: dict[str, Any], where: str) -> list[OutcomeRow]:
    tokens = _find_number(one, "input_tokens"), _find_number(one, "output_tokens")
    usage = None
    if tokens[0] is not None and tokens[1] is not None:
        usage = Usage(input_tokens=int(tokens[0]), output_tokens=int(tokens[1]))
    reply = _find_text(one, "reply") or ""
    return [
        OutcomeRow(
            input_id=str(one["input_id"]),
            criterion=str(grader["name"]),
            passed=grader["passed"] is True,
            reason=None if grader.get("reason") is None else FailReason(grader["reason"]),
            explanation=_find_text(grader, "explanation") or "",
            evidence=_find_text(grader, "evidence") or reply,
            error_class=ErrorClass(one.get("error_class") or "none"),
            error=_find_text(one, "error") or "",
            trial=str(one["trial"]),
            group=f"{one['run_id']} {one['sampling']}",
            order=_find_number(one, "trial"),
            latency_s=_find_number(one, "latency_s"),
            cost_usd=_find_number(one, "cost_usd"),
            usage=usage,
            attempts=max(1, int(_find_number(one, "attempts") or 1)),
            where=where,
            asked=_find_text(one, "asked") or "",
            expected=_find_text(one, "expected"),
        )
        for grader in one["graders"]
    ]


def _find_number(one: dict[str, Any], name: str) -> float | None:
    """Find a number that is at least 0; None where there is none."""
    value = one.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise ValueError(f"`{name}` must be a number of at least 0")
    return float(value)


def _find_text(one: dict[str, Any], name: str) -> str | None:
    value = one.get(name)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"`{name}` must be a text")
    return value


def _read_own(path: Path, **arguments: Any) -> Outcomes:
    text = files.decode_text(files.read_content(path), str(path))
    records = parse_lines(text, arguments["problems"])
    return read_own_results([fields for _, fields in records], **arguments)


FORMAT = ResultFormat(
    name="trialwise", read=_read_own, recognises=is_own_results, read_json=read_own_results
)
