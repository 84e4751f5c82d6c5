"""Outcomes as samples of the LM evaluation harness: `samples_*.jsonl` of `--log_samples`.

    {"doc_id": 0, "target": "4", "resps": [["4"]], "filtered_resps": ["4"], "filter": "none",
     "exact_match": 1.0}

A document is an input. Every metric of 0 and 1 is a criterion; `result` may name others, with a
`pass_at`. Several filters are decided apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trialwise.contrib.results.graded_trials import (
    Grade,
    GradedTrial,
    Source,
    gather_outcomes,
    list_lines,
    make_format,
    show_json,
)
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import Outcomes, Problems, input_id_of, text_of

__all__ = ["FORMAT"]


#: Fields of a sample that are no metrics.
_SAMPLE_FIELDS = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"}
    | {"doc_hash", "prompt_hash", "target_hash", "schedule"}
)


def _is_lm_eval(document: Any) -> bool:
    lines = list_lines(document)
    return bool(lines) and all(
        isinstance(one, Mapping) and {"doc_id", "resps", "filtered_resps"} <= set(one)
        for one in lines
    )


def _read_lm_eval(document: Any, *, name: str, layout: Layout, problems: Problems) -> Outcomes:
    trials = [
        GradedTrial(
            where=f"line {number}",
            input_id=input_id_of(sample["doc_id"]),
            grades={key: Grade(value) for key, value in _find_metrics(sample, layout)},
            group=text_of(sample.get("filter")),
            asked=show_json(sample.get("doc")),
            expected=show_json(sample.get("target")) or None,
            reply=show_json(sample.get("filtered_resps")),
        )
        for number, sample in enumerate(list_lines(document), start=1)
    ]
    source = Source(format="lm-eval", name=name, passing="a metric of 1")
    return gather_outcomes(trials, source, layout, problems)


def _find_metrics(sample: Mapping[str, Any], layout: Layout) -> Iterator[tuple[str, Any]]:
    """Yield the metrics of a sample that are results, and those that are asked for."""
    for key, value in sample.items():
        is_number = isinstance(value, int | float)
        if key in layout.result or (key not in _SAMPLE_FIELDS and is_number and value in (0, 1)):
            yield key, value


FORMAT = make_format("lm-eval", _is_lm_eval, _read_lm_eval)
