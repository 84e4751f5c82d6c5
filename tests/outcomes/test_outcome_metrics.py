"""The metrics of a file: counts of every input, pass@k and pass^k by enumeration."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.outcomes.outcome_rows import OutcomeRow, Outcomes
from trialwise.outcomes.outcome_trials import CriterionMetrics, Metrics, Order, gather, metrics_of
from trialwise.stats.result_types import Undefined
from trialwise.stats.run_reliability import summarize


def metrics(results: dict[str, list[bool]], **options: object) -> Metrics:
    rows = tuple(
        OutcomeRow(input_id=name, criterion="answers", passed=one, latency_s=0.25)
        for name, each in results.items()
        for one in each
    )
    return metrics_of(gather(Outcomes(rows=rows, name="sums")), **options)  # type: ignore[arg-type]


def one(results: dict[str, list[bool]], **options: object) -> CriterionMetrics:
    return metrics(results, **options).criteria[0]


RESULTS = st.lists(st.lists(st.booleans(), min_size=2, max_size=6), min_size=1, max_size=4)


@given(RESULTS)
def test_pass_k_is_the_mean_over_inputs_of_the_share_of_subsets(results: list[list[bool]]) -> None:
    """By enumeration of all k trials that could have been the ones."""
    named = {str(place): each for place, each in enumerate(results)}
    for pass_k in one(named, ks=[1, 2]).pass_k:
        some, every = Fraction(0), Fraction(0)
        for each in results:
            subsets = list(combinations(each, pass_k.k))
            some += Fraction(sum(map(any, subsets)), len(subsets))
            every += Fraction(sum(map(all, subsets)), len(subsets))
        assert float(some / len(results)) == pytest.approx(pass_k.pass_at_k)
        assert float(every / len(results)) == pytest.approx(pass_k.pass_hat_k)


def test_k_goes_up_to_the_fewest_trials_of_an_input() -> None:
    """By powers of two; beyond, nothing unbiased can be said, and why is said instead."""
    found = one({"a": [True] * 5, "b": [False] * 9})
    assert [1, 2, 4, 5] == [each.k for each in found.pass_k]
    [beyond] = one({"a": [True] * 5, "b": [False] * 9}, ks=[6]).pass_k
    assert isinstance(beyond.pass_at_k, Undefined)
    assert "5 trials only" in beyond.pass_at_k.reason
    with pytest.raises(InvalidArgument):
        one({"a": [True]}, ks=[0])


def test_every_input_has_its_counts_and_whether_it_wavers() -> None:
    """An input that always fails is not flaky, it is broken."""
    found = one({"a": [True, False, True], "b": [False, False, False]})
    assert [("a", 3, 2, True), ("b", 3, 0, False)] == [
        (each.input_id, each.trials, each.passed, each.flaky) for each in found.inputs
    ]
    assert (("a",), 6, 2) == (found.flaky, found.trials, found.passed)
    assert all(0 <= each.interval.low <= each.rate <= each.interval.high for each in found.inputs)


def test_the_reliability_of_an_input_needs_an_order() -> None:
    """Late failures cost more than early ones, so that an unknown order has no such number."""
    results = {"a": [True, True, False], "b": [True]}
    known = one(results, order=Order.FILE).inputs
    assert summarize([True, True, False]) == known[0].reliability
    assert isinstance(known[1].reliability, Undefined)
    unknown = one(results).inputs[0].reliability
    assert isinstance(unknown, Undefined)
    assert "order" in unknown.reason


def test_latencies_are_those_of_trials_that_passed() -> None:
    """Of none, there is no summary."""
    latency = one({"a": [True, False]}).latency
    assert not isinstance(latency, Undefined)
    assert (1, 0.25) == (latency.trials, latency.mean)
    assert isinstance(one({"a": [False]}).latency, Undefined)


def test_metrics_are_plain_json() -> None:
    """What is undefined says why."""
    text = json.dumps(metrics({"a": [True], "b": [False]}).to_dict(), allow_nan=False)
    assert "one trial shows nothing of repetition" in text
