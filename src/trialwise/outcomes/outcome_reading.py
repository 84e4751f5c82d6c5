"""Read result files: how a module declares a format, and how the format of a file is found.

A module declares its format as `FORMAT`. The formats of other tools live in `trialwise.contrib`,
and other distributions add theirs as entry points of the group `trialwise.results`:

    [project.entry-points."trialwise.results"]
    mine = "my_package.results:FORMAT"

The core knows them by the names below only, so reading a table loads no other reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.outcomes.bounded_files import Problems, read_head, refuse_file
from trialwise.outcomes.field_records import Layout
from trialwise.outcomes.outcome_rows import Outcomes

_Path: TypeAlias = "str | PathLike[str]"

#: The group of entry points in which other distributions declare formats.
RESULTS = "trialwise.results"

_MODULES = {
    "jsonl": "trialwise.outcomes.json_lines",
    "csv": "trialwise.outcomes.csv_tables",
    "trialwise": "trialwise.outcomes.own_results",
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

#: Only the logs of Inspect AI are archives, whatever their extension.
_ARCHIVE = b"PK"

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_outcomes(
    path: _Path | Sequence[_Path],
    *,
    format: str | None = None,  # noqa: A002 - the word that every caller expects
    input: str | None = None,  # noqa: A002 - the vocabulary's own
    result: str | Sequence[str] = (),
    criterion: str | None = None,
    trial: str | None = None,
    order: str | None = None,
    latency: str | None = None,
    cost: str | None = None,
    explanation: str | None = None,
    evidence: str | None = None,
    passes: Iterable[str] | None = None,
    errors: Iterable[str] = (),
    pass_at: float | None = None,
    error_class: ErrorClass | str = ErrorClass.INFRASTRUCTURE,
    delimiter: str | None = None,
    only: Iterable[str] = (),
) -> Outcomes:
    """Read the outcomes of a file, or of several of one kind, such as reports of repeated runs.

    Args:
        path: The file, or the files; with several, the trials of each are further trials.
        format: The name of a format, such as `csv`; by default it follows from extension and
            content.
        input: The field that names the input.
        result: The fields that hold results, each a criterion. In Inspect logs these are the
            scorers, in promptfoo results the metrics.
        criterion: The field that names the criterion, if each has a line of its own. For JUnit
            reports it is `test`, `classname` or `suite`.
        trial: The field that numbers the trials of an input.
        order: The field with the time, or the place, at which a trial began.
        latency: The field with the latency, in seconds or, where its name ends so, `_ms`.
        cost: The field with the cost in dollars.
        explanation: The field that says why a trial failed.
        evidence: The field with the reply, or the part of it that shows it.
        passes: Words that mean passed; every other word then means failed.
        errors: Further words that mean that the trial broke.
        pass_at: The lowest score that passes.
        error_class: The class of trials that broke without saying how.
        delimiter: The character between the columns of a table.
        only: The criteria that are asked about, where a file grades a trial in several ways; the
            others are not read.

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
    layout = Layout(
        input=input,
        result=(result,) if isinstance(result, str) else tuple(result),
        criterion=criterion,
        trial=trial,
        order=order,
        latency=latency,
        cost=cost,
        explanation=explanation,
        evidence=evidence,
        passes=None if passes is None else frozenset(_several(passes)),
        errors=frozenset(_several(errors)),
        pass_at=pass_at,
        error_class=error_class,
        delimiter=delimiter,
        only=_several(only),
    )
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    if not paths:
        raise InvalidArgument("path", paths, "be at least one file")
    return Outcomes.join([_read(Path(one), format, layout) for one in paths])


def _read(path: Path, form: str | None, layout: Layout) -> Outcomes:
    chosen = find_format(form or detect_format(path))
    return chosen.read(path, name=_stem(path), layout=layout, problems=Problems(str(path)))


def _stem(path: Path) -> str:
    """Name what was tested after the file, without its extensions."""
    return path.name.split(".")[0].strip() or path.name or "outcomes"


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
    from trialwise.extensions import extension_names, find_extension

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
    head = read_head(path, 4096)
    if path.suffix.casefold() in (".yaml", ".yml"):
        raise refuse_file(
            path,
            "YAML is not read: write the results as JSON, with promptfoo by "
            "`promptfoo eval -o results.json`",
        )
    if head.startswith(_ARCHIVE):
        return "inspect"
    start = head.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1]
    return _BY_EXTENSION.get(path.suffix.casefold()) or _BY_CHARACTER.get(start, "csv")
