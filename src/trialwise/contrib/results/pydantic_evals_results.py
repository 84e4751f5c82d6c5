"""Outcomes as reports of pydantic-evals, written as JSON.

    {"name": "answer", "cases": [{"name": "sums", "inputs": "q", "output": "a",
      "assertions": {"Equals": {"value": true}}, "scores": {}, "task_duration": 0.8}],
     "failures": [{"name": "sums", "inputs": "q", "error_message": "..."}]}

Every assertion is a criterion; `result` may name scores, with a `pass_at`. A failure is a trial
that broke.
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
    show_json,
)
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import Outcomes, Problems, amount, input_id_of, text_of

__all__ = ["FORMAT"]


def _is_pydantic_evals(document: Any) -> bool:
    cases = document.get("cases") if isinstance(document, Mapping) else None
    return (
        isinstance(cases, list)
        and bool(cases)
        and all(isinstance(one, Mapping) and "assertions" in one for one in cases)
    )


def _read_pydantic_evals(
    document: Mapping[str, Any], *, name: str, layout: Layout, problems: Problems
) -> Outcomes:
    trials: list[GradedTrial] = []
    asserted: dict[str, None] = {}
    for place, case in enumerate(list_items(document.get("cases"))):
        grades: dict[str, Grade] = {}
        for kind in ("assertions", "scores"):
            results = case.get(kind)
            for key, result in results.items() if isinstance(results, Mapping) else ():
                known = result if isinstance(result, Mapping) else {"value": result}
                grades[str(key)] = Grade(known.get("value"), text_of(known.get("reason")))
                if kind == "assertions":
                    asserted[str(key)] = None
        trials.append(
            GradedTrial(where=f"cases[{place}]", grades=grades, **_read_case(case, place))
        )
    for place, case in enumerate(list_items(document.get("failures"))):
        if isinstance(case, Mapping):
            error = text_of(case.get("error_message")) or "the task failed"
            trials.append(
                GradedTrial(
                    where=f"failures[{place}]", grades={}, error=error, **_read_case(case, place)
                )
            )
    source = Source(
        format="pydantic-evals",
        name=text_of(document.get("name")) or name,
        passing="assertions of pydantic-evals",
        criteria=tuple(asserted),
    )
    return gather_outcomes(trials, source, layout, problems)


def _read_case(case: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Read what a case of pydantic-evals says besides its results."""
    inputs = case.get("inputs")
    # Repeated cases have names such as "sums [2/5]"; their inputs are the same.
    named = text_of(case.get("source_case_name")) or text_of(case.get("name"))
    output = case.get("output")
    return {
        "input_id": input_id_of(named or (inputs if inputs is not None else place)),
        "asked": show_json(inputs),
        "expected": show_json(case.get("expected_output")) or None,
        "reply": show_json(output),
        "latency_s": amount(case.get("task_duration")),
    }


FORMAT = make_format("pydantic-evals", _is_pydantic_evals, _read_pydantic_evals)
