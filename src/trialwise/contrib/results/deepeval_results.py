"""Outcomes as deepeval writes them, such as `.deepeval/.latest_test_run.json`.

    {"testRunData": {"testCases": [{"name": "t", "input": "q", "actualOutput": "a",
      "success": true, "metricsData": [{"name": "Relevancy", "score": 0.9, "success": true}]}]}}

The criterion is `success`: every metric of the test case passed. `result` may name metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.contrib.results.graded_trials import (
    Grade,
    GradedTrial,
    Source,
    gather_outcomes,
    list_items,
    make_format,
)
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import Outcomes, Problems, amount, input_id_of, text_of

__all__ = ["FORMAT"]


def _is_deepeval(document: Any) -> bool:
    return _find_test_cases(document) is not None


def _find_test_cases(document: Any) -> list[Any] | None:
    """Return the test cases, wherever a version puts them."""
    if not isinstance(document, Mapping):
        return None
    run = document.get("testRunData", document)
    cases = run.get("testCases", run.get("test_cases")) if isinstance(run, Mapping) else None
    return cases if isinstance(cases, list) else None


def _read_deepeval(document: Any, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    trials: list[GradedTrial] = []
    for place, case in enumerate(_find_test_cases(document) or []):
        where = f"testCases[{place}]"
        success = case.get("success") if isinstance(case, Mapping) else None
        if not isinstance(case, Mapping) or not isinstance(success, bool):
            problems.add(where, "a test case with `success` true or false is expected")
            continue
        grades = {"success": Grade(success, _describe_failure(case))}
        for metric in list_items(case.get("metricsData", case.get("metrics_data"))):
            known = metric if isinstance(metric, Mapping) else {}
            grades[text_of(known.get("name")) or "metric"] = Grade(
                known.get("success"), text_of(known.get("reason") or known.get("error"))
            )
        trials.append(
            GradedTrial(
                where=where,
                input_id=input_id_of(case.get("input") or case.get("name") or where),
                grades=grades,
                asked=text_of(case.get("input")),
                expected=text_of(case.get("expectedOutput")) or None,
                reply=text_of(case.get("actualOutput")),
                latency_s=amount(case.get("runDuration")),
            )
        )
    source = Source(
        format="deepeval", name=name, passing="deepeval's own metrics", criteria=("success",)
    )
    return gather_outcomes(trials, source, layout, problems)


def _describe_failure(case: Mapping[str, Any]) -> str:
    for metric in list_items(case.get("metricsData", case.get("metrics_data"))):
        if isinstance(metric, Mapping) and metric.get("success") is False:
            reason = text_of(metric.get("reason") or metric.get("error"))
            return f"{text_of(metric.get('name'))}: {reason}".strip(": ")
    return ""


FORMAT = make_format("deepeval", _is_deepeval, _read_deepeval)
