"""Reading files of outcomes: which format it is, and how its fields are to be understood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.model.outcome import ErrorClass
from trialwise.outcomes.files import as_text, parse_json, read_head, read_whole
from trialwise.outcomes.layout import Layout
from trialwise.outcomes.problems import Problems
from trialwise.outcomes.rows import Outcomes
from trialwise.validation import require_choice

__all__ = ["FORMATS", "read_outcomes"]

FORMATS = ("jsonl", "csv", "junit", "inspect", "promptfoo")
_ARCHIVE = b"PK"
_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".xml": "junit",
    ".eval": "inspect",
}

_Path: TypeAlias = "str | PathLike[str]"


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
) -> Outcomes:
    """The outcomes of a file, or of several of one kind, such as the reports of repeated runs.

    Args:
        path: The file, or the files; with several, the trials of each are further trials.
        format: One of `FORMATS`; by default told by extension and content.
        input: The field that names the input.
        result: The fields that hold results, each a criterion; of Inspect logs the scorers, of
            promptfoo results the metrics.
        criterion: The field that names the criterion, where each has a line of its own; of JUnit
            reports `test`, `classname` or `suite`.
        trial: The field that numbers the trials of an input.
        order: The field with the time, or the place, at which a trial began.
        latency: The field with the latency, in seconds or, where its name ends so, `_ms`.
        cost: The field with the cost in dollars.
        explanation: The field that says why a trial failed.
        evidence: The field with the reply, or the part of it that shows it.
        passes: Words that mean passed; every other then means failed.
        errors: Further words that mean that the trial broke.
        pass_at: The least score that passes.
        error_class: Of trials that broke without saying how.
        delimiter: Of a table.

    Raises:
        OutcomesUnreadable: With the file, the places, and what was expected there.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("question,score\\nq1,0.9\\nq2,0.4\\n")
    >>> [row.passed for row in read_outcomes(path, pass_at=0.7).rows]
    [True, False]
    """
    if format is not None:
        require_choice("format", format, FORMATS)
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
    )
    paths = [path] if isinstance(path, str | PathLike) else list(path)
    if not paths:
        raise InvalidArgument("path", paths, "be at least one file")
    return Outcomes.joined([_read(Path(one), format, layout) for one in paths])


def _read(path: Path, form: str | None, layout: Layout) -> Outcomes:
    problems = Problems(str(path))
    arguments: dict[str, Any] = {
        "name": _stem(path),
        "layout": layout,
        "problems": problems,
    }
    if form in (None, "inspect") and read_head(path, 2) == _ARCHIVE:
        from trialwise.outcomes.inspect import read_inspect_archive

        return read_inspect_archive(path, **arguments)
    content = read_whole(path)
    if not content.strip():
        raise problems.refuse("", "the file is empty")
    chosen = form or _BY_EXTENSION.get(path.suffix.casefold()) or _by_content(content)
    return _READERS[chosen](content, **arguments)


def _by_content(content: bytes) -> str:
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"<":
        return "junit"
    return "json" if start in (b"{", b"[") else "csv"


def _junit(content: bytes, **arguments: Any) -> Outcomes:
    from trialwise.outcomes.junit import read_junit

    return read_junit(content, **arguments)


def _csv(content: bytes, **arguments: Any) -> Outcomes:
    from trialwise.outcomes.csv import read_csv

    return read_csv(as_text(content, arguments["problems"].path), **arguments)


def _json(content: bytes, *, only: str | None = None, **arguments: Any) -> Outcomes:
    """One document, told by what it holds, or a document a line."""
    problems: Problems = arguments["problems"]
    text = as_text(content, problems.path)
    try:
        document = parse_json(text)
    except ValueError:
        return _lines(text, only=only, **arguments)
    from trialwise.outcomes.inspect import is_inspect_log, read_inspect_log
    from trialwise.outcomes.promptfoo import is_promptfoo_results, read_promptfoo

    if is_inspect_log(document) and only != "promptfoo":
        return read_inspect_log(document, **arguments)
    if is_promptfoo_results(document) and only != "inspect":
        return read_promptfoo(document, **arguments)
    several = document if isinstance(document, list) else [document]
    return _records(several, only=only, **arguments)


def _lines(text: str, *, only: str | None = None, **arguments: Any) -> Outcomes:
    from trialwise.outcomes.jsonl import parse_lines

    return _records(parse_lines(text, arguments["problems"]), only=only, **arguments)


def _records(given: list[Any], *, only: str | None, **arguments: Any) -> Outcomes:
    from trialwise.outcomes.jsonl import read_json_records
    from trialwise.outcomes.promptfoo import is_promptfoo_record, read_promptfoo

    plain = [one[1] if isinstance(one, tuple) else one for one in given]
    if only != "inspect" and plain and all(map(is_promptfoo_record, plain)):
        return read_promptfoo(plain, **arguments)
    if only is not None:
        raise arguments["problems"].refuse("", f"a file of {only} is expected, and this is none")
    return read_json_records(given, **arguments)


def _jsonl(content: bytes, **arguments: Any) -> Outcomes:
    return _lines(as_text(content, arguments["problems"].path), **arguments)


_READERS: dict[str, Callable[..., Outcomes]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "junit": _junit,
    "inspect": partial(_json, only="inspect"),
    "promptfoo": partial(_json, only="promptfoo"),
}


def _stem(path: Path) -> str:
    """A name for what was tested: that of the file without its extensions."""
    return path.name.split(".")[0].strip() or path.name or "outcomes"


def _several(words: Iterable[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)
