"""Read result files: find out which format each has, and which field means what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.outcomes.field_layout import Layout
from trialwise.outcomes.outcome_problems import Problems
from trialwise.outcomes.outcome_rows import Outcomes
from trialwise.outcomes.result_formats import detect_format, find_format

__all__ = ["read_outcomes"]

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
