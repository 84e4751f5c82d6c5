"""Trials with grades by name, as several tools write them, and their outcomes.

A reader of a tool's file turns each of its records into a `GradedTrial`; this module turns those
into rows: one for each criterion, which is a grade or the tool's own verdict on the whole trial.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trialwise.contrib.results.field_records import Unread, error_class_of, read_mark
from trialwise.contrib.results.json_lines import parse_document
from trialwise.documents.numbers import as_count
from trialwise.model.reply import Usage
from trialwise.model.trial import FailReason
from trialwise.outcomes.outcome_reading import Layout, ResultFormat
from trialwise.outcomes.outcome_rows import (
    MOST_ROWS,
    OutcomeRow,
    Outcomes,
    Problems,
    decode_text,
    read_content,
)

__all__ = [
    "Grade",
    "GradedTrial",
    "Source",
    "gather_outcomes",
    "list_items",
    "list_lines",
    "make_format",
    "show_json",
]

_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Grade:
    """What one grader says of a trial."""

    value: Any
    """True, false, a number, or None where it says nothing."""
    explanation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedTrial:
    """One record of a tool: an input, and what graders say of the reply."""

    where: str
    """Its place in the file, such as "line 7"."""
    input_id: str
    grades: Mapping[str, Grade]
    error: str = ""
    """Why there is no reply; empty where there is one."""
    group: str = ""
    """What was under test, where a file has several."""
    asked: str = ""
    expected: str | None = None
    reply: str = ""
    latency_s: float | None = None
    cost_usd: float | None = None
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a file is."""

    format: str
    name: str
    passing: str
    """What counted as passed."""
    criteria: tuple[str, ...] = ()
    """The grades to decide on unless others are asked for; none for every grade."""
    factors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    planned: int | None = None
    notes: tuple[str, ...] = ()


def gather_outcomes(
    trials: Sequence[GradedTrial], source: Source, layout: Layout, problems: Problems
) -> Outcomes:
    """Gather the outcomes of graded trials.

    Raises:
        OutcomesUnreadable: There is no trial, a criterion is unknown, or a grade is no result.
    """
    problems.check()
    if not trials:
        raise problems.refuse("", "the file holds no graded trial")
    if len(trials) > MOST_ROWS:
        raise problems.refuse("", f"at most {MOST_ROWS:,} trials are read")
    known = list(dict.fromkeys(name for trial in trials for name in trial.grades))
    for name in layout.result:
        if name not in known:
            shown = ", ".join(known[:20]) or "none"
            raise problems.refuse("", f"no grade is called `{name}`; there are {shown}")
    criteria = layout.choose(known, source.criteria or known)
    if not criteria:
        raise problems.refuse("", "no trial has a grade")
    groups = list(dict.fromkeys(trial.group for trial in trials))
    rows = [
        row
        for trial in trials
        for criterion in criteria
        if (row := _row(trial, criterion, layout, problems, several=len(groups) > 1)) is not None
    ]
    problems.check()
    if not rows:
        raise problems.refuse("", "the file holds no graded trial")
    return Outcomes(
        rows=tuple(rows),
        name=source.name,
        source=problems.path,
        format=source.format,
        passing=layout.passing or source.passing,
        factors=source.factors,
        planned=source.planned,
        pass_at=layout.pass_at,
        notes=(*source.notes, *_notes(trials, groups)),
    )


def _row(
    trial: GradedTrial, criterion: str, layout: Layout, problems: Problems, *, several: bool
) -> OutcomeRow | None:
    group = trial.group if several else ""
    shared: dict[str, Any] = {
        "input_id": trial.input_id,
        "criterion": f"{criterion} @ {group}" if group else criterion,
        "group": group,
        "where": trial.where,
        "asked": trial.asked,
        "expected": trial.expected,
        "latency_s": trial.latency_s,
        "cost_usd": trial.cost_usd,
        "usage": trial.usage,
    }
    if trial.error:
        return OutcomeRow(
            passed=False,
            reason=FailReason.NO_VALUE,
            error_class=error_class_of(trial.error, layout),
            error=trial.error,
            explanation=trial.error,
            **shared,
        )
    grade = trial.grades.get(criterion)
    if grade is None:
        # Graders differ between inputs: one that was not asked says nothing of this one.
        return None
    try:
        mark = read_mark(grade.value, layout)
    except Unread as problem:
        problems.add(trial.where, f"{criterion}: {problem}")
        return None
    shared["score"] = mark.score
    if mark.passed:
        return OutcomeRow(passed=True, **shared)
    explanation = grade.explanation or ("no result" if mark.passed is None else "did not pass")
    reason = FailReason.NO_VALUE if mark.passed is None else None
    return OutcomeRow(
        passed=False, reason=reason, explanation=explanation, evidence=trial.reply, **shared
    )


def _notes(trials: Sequence[GradedTrial], groups: Sequence[str]) -> list[str]:
    notes = []
    if len(groups) > 1:
        notes.append(f"{len(groups)} services are decided apart, each over its own trials.")
    broken = sum(bool(trial.error) for trial in trials)
    if broken:
        notes.append(f"Broken and counted as failures: {as_count(broken, 'trial')}.")
    return notes


def make_format(
    name: str, recognises: Callable[[Any], bool], read_json: Callable[..., Outcomes]
) -> ResultFormat:
    """Declare a format of JSON documents, or of JSON lines."""

    def read(path: Path, *, problems: Problems, **arguments: Any) -> Outcomes:
        text = decode_text(read_content(path), str(path))
        is_lines = path.suffix.casefold() in (".jsonl", ".ndjson")
        document, _ = parse_document(text, problems, as_lines=is_lines)
        if not recognises(document):
            raise problems.refuse("", f"results of {name} are expected, and this file has none")
        return read_json(document, problems=problems, **arguments)

    return ResultFormat(name=name, read=read, recognises=recognises, read_json=read_json)


def list_lines(document: Any) -> list[Any]:
    """Return the lines of a document; JSON of one line is an object by itself."""
    return document if isinstance(document, list) else [document]


def list_items(value: Any) -> list[Any]:
    """Return a list as it is, and nothing of anything else."""
    return value if isinstance(value, list) else []


def show_json(value: Any) -> str:
    """Return a text as it is and other values as JSON, cut where it is very long."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)[:_LONGEST]
    except (ValueError, RecursionError):
        return ""
