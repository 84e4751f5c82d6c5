"""Outcomes as vally writes them: `results.jsonl`, one line a trial and a summary at the end.

    {"type": "trial-result", "evalName": "tests", "stimulus": "sums", "model": "m",
     "status": "success", "durationMs": 812,
     "gradeResult": {"passed": true, "score": 0.9, "details": [
       {"name": "output-matches", "kind": "code", "passed": true, "score": 1, "evidence": "..."}]},
     "trajectory": {"output": "...", "metrics": {"tokenUsage": {"inputTokens": 8}}}}
    {"type": "run-summary", "passed": true}

- A stimulus is an input. `passed`, the verdict on the whole trial, is the criterion; `result` may
  name graders, or `score` with a `pass_at`.
- Several models are different services, and each has criteria of its own.
- A trial whose status is `error` broke; one that was `skipped` is not a trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trialwise.contrib.results.graded_trials import (
    Grade,
    GradedTrial,
    Source,
    gather_outcomes,
    list_lines,
    make_format,
)
from trialwise.model.reply import Usage
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import Outcomes, Problems, amount, count, input_id_of, text_of

__all__ = ["FORMAT", "is_vally_results", "read_vally"]

_TRIAL = "trial-result"
_VERDICT = "passed"


def is_vally_results(document: Any) -> bool:
    """Whether JSON lines are results of vally; lines of other types may stand among them."""
    return next(_trial_lines(list_lines(document)), None) is not None


def read_vally(document: Any, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of the lines of a results file."""
    lines = list_lines(document)
    trials = list(_read_trials(lines, problems))
    evals = list(dict.fromkeys(text_of(one.get("evalName")) for one in _trial_lines(lines)))
    models = [one for one in dict.fromkeys(trial.group for trial in trials) if one]
    source = Source(
        format="vally",
        name=evals[0] if len(evals) == 1 and evals[0] else name,
        passing="vally's own graders",
        criteria=(_VERDICT,),
        factors={"model": models[0]} if len(models) == 1 else {},
    )
    return gather_outcomes(trials, source, layout, problems)


def _trial_lines(document: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    return (one for one in document if isinstance(one, Mapping) and one.get("type") == _TRIAL)


def _read_trials(document: Sequence[Any], problems: Problems) -> Iterator[GradedTrial]:
    for number, line in enumerate(document, start=1):
        if not isinstance(line, Mapping) or line.get("type") != _TRIAL:
            continue
        if line.get("status") == "skipped":
            continue
        where = f"line {number}"
        found = line.get("gradeResult")
        graded: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        trajectory = _mapping(line.get("trajectory"))
        stimulus = line.get("stimulus") or graded.get("stimulusName")
        stimulus = stimulus or _mapping(trajectory.get("stimulus")).get("name")
        is_broken = line.get("status") == "error"
        if not isinstance(stimulus, str) or not stimulus.strip():
            problems.add(where, "a trial with the name of its `stimulus` is expected")
            continue
        if not is_broken and not isinstance(graded.get(_VERDICT), bool):
            problems.add(
                where, "`gradeResult.passed` true or false is expected: grade the run first"
            )
            continue
        metrics = _mapping(trajectory.get("metrics"))
        milliseconds = amount(metrics.get("wallTimeMs"))
        milliseconds = amount(line.get("durationMs")) if milliseconds is None else milliseconds
        yield GradedTrial(
            where=where,
            input_id=input_id_of(stimulus),
            grades=_read_grades(graded),
            error=(text_of(line.get("error")) or "the trial broke") if is_broken else "",
            group=text_of(line.get("model")),
            asked=text_of(_mapping(trajectory.get("stimulus")).get("prompt")),
            reply=text_of(trajectory.get("output")),
            latency_s=None if milliseconds is None else milliseconds / 1000,
            usage=_read_usage(_mapping(metrics.get("tokenUsage"))),
        )


def _read_grades(graded: Mapping[str, Any]) -> dict[str, Grade]:
    """Read the verdict and every grader; of two graders with one name the second has a number."""
    details = graded.get("details")
    parts = (
        [one for one in details if isinstance(one, Mapping)] if isinstance(details, list) else []
    )
    failed = next((one for one in parts if one.get(_VERDICT) is False), {})
    reason = text_of(failed.get("evidence")) or text_of(failed.get("name"))
    grades = {_VERDICT: Grade(graded.get(_VERDICT), reason)}
    if isinstance(graded.get("score"), int | float):
        grades["score"] = Grade(graded["score"])
    for one in parts:
        name = text_of(one.get("name")) or text_of(one.get("type")) or "grader"
        chosen, number = name, 2
        while chosen in grades:
            chosen, number = f"{name} {number}", number + 1
        grades[chosen] = Grade(one.get(_VERDICT), text_of(one.get("evidence")))
    return grades


def _read_usage(given: Mapping[str, Any]) -> Usage | None:
    tokens = [count(given.get(name)) for name in ("inputTokens", "outputTokens")]
    known = [one for one in tokens if one is not None]
    return Usage(input_tokens=known[0], output_tokens=known[1]) if known[1:] else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


FORMAT = make_format("vally", is_vally_results, read_vally)
