"""Outcomes as scores that Langfuse exports: a list of scores, or a page of its API.

    {"data": [{"traceId": "t1", "name": "helpful", "dataType": "BOOLEAN", "value": 1,
               "stringValue": "True", "comment": "...", "observationId": null}], "meta": {}}

A trace is an input, and the name of a score is the criterion. Numeric scores need a `pass_at`;
categories are read as words, such as `correct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.contrib.results.graded_trials import (
    Grade,
    GradedTrial,
    Source,
    gather_outcomes,
    make_format,
)
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import Outcomes, Problems, input_id_of, text_of

__all__ = ["FORMAT", "is_langfuse_scores", "read_langfuse"]


def _find_scores(document: Any) -> list[Any]:
    found = document.get("data") if isinstance(document, Mapping) else document
    return found if isinstance(found, list) else []


def is_langfuse_scores(document: Any) -> bool:
    """Whether JSON is a list of scores, or a page of them."""
    scores = _find_scores(document)
    return bool(scores) and all(
        isinstance(one, Mapping) and {"traceId", "name", "dataType"} <= set(one) for one in scores
    )


def read_langfuse(document: Any, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    """Read the outcomes of scores."""
    trials = [
        GradedTrial(
            where=f"data[{place}]",
            input_id=input_id_of(score["traceId"]),
            grades={text_of(score["name"]) or "score": _read_grade(score)},
        )
        for place, score in enumerate(_find_scores(document))
    ]
    source = Source(format="langfuse", name=name, passing="a score of Langfuse")
    return gather_outcomes(trials, source, layout, problems)


def _read_grade(score: Mapping[str, Any]) -> Grade:
    kind, value = score["dataType"], score.get("value")
    if kind == "BOOLEAN" and value in (0, 1):
        value = bool(value)
    elif kind == "CATEGORICAL":
        value = score.get("stringValue") or value
    return Grade(value, text_of(score.get("comment")))


FORMAT = make_format("langfuse", is_langfuse_scores, read_langfuse)
