from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_models import cluster_bootstrap
from trialwise.stats.result_types import Interval, Undefined

Groups = list[tuple[int, int]]

UNEQUAL: Groups = [(9, 10), (4, 12), (7, 7), (1, 3), (0, 1), (15, 20)]


def ends(interval: Interval | Undefined) -> tuple[float, float]:
    assert isinstance(interval, Interval)
    return interval.low, interval.high


def test_the_percentile_ends_are_those_of_all_resamples() -> None:
    """Four prompts have 256 resamples: the exact 2.5 % quantiles are found again."""
    counts = [(1, 10), (4, 10), (7, 10), (10, 10)]
    every = sorted(sum(chosen) / 40 for chosen in product((1, 4, 7, 10), repeat=4))
    result = cluster_bootstrap(counts, resamples=19_999, seed=5)
    low, high = ends(result.interval)

    # P(mean ≤ 0.175) = 5/256 < 0.025 < 15/256 = P(mean ≤ 0.25), and the same from above.
    assert (sum(v <= 0.18 for v in every), sum(v <= 0.26 for v in every)) == (5, 15)
    assert (low, high) == pytest.approx((0.25, 0.85))


def test_prompts_are_resampled_and_trials_are_not() -> None:
    """Among all-or-nothing prompts every resampled rate is a whole number of prompts."""
    counts = [(50, 50)] * 6 + [(0, 50)] * 4
    low, high = ends(cluster_bootstrap(counts, seed=1).interval)
    law = stats.binom(10, 0.6)

    assert (low, high) == pytest.approx((law.ppf(0.025) / 10, law.ppf(0.975) / 10))


@pytest.mark.parametrize(("method", "theirs"), [("percentile", "percentile"), ("bca", "BCa")])
@pytest.mark.parametrize("estimand", ["prompt-weighted", "call-weighted"])
def test_the_bootstrap_agrees_with_scipy(method: Any, theirs: str, estimand: Any) -> None:
    """On forty prompts, within the noise of twenty thousand resamples."""
    rng = np.random.default_rng(12)
    counts = [
        (int(rng.binomial(m, rng.beta(4, 1.5))), int(m)) for m in rng.integers(3, 12, size=40)
    ]
    y, m = np.array(counts, dtype=float).T

    def mean(y: Any, m: Any, axis: int) -> Any:
        if estimand == "call-weighted":
            return y.sum(axis=axis) / m.sum(axis=axis)
        return (y / m).mean(axis=axis)

    expected = stats.bootstrap(
        (y, m), mean, paired=True, n_resamples=19_999, method=theirs, rng=3, vectorized=True
    ).confidence_interval
    result = cluster_bootstrap(counts, resamples=19_999, seed=4, estimand=estimand, method=method)

    assert ends(result.interval) == pytest.approx((expected.low, expected.high), abs=0.003)
    assert result.rate == pytest.approx(float(mean(y, m, -1)))
    assert estimand == result.estimand


def test_bca_moves_the_ends_of_skewed_prompts_as_scipy_does() -> None:
    """Two bad prompts among nine: bias and skewness lower both ends by more than the noise."""
    counts = [
        (20, 20),
        (19, 20),
        (20, 21),
        (5, 23),
        (18, 19),
        (22, 22),
        (17, 18),
        (16, 17),
        (1, 25),
    ]
    y, m = np.array(counts, dtype=float).T
    expected = stats.bootstrap(
        (y / m,), np.mean, n_resamples=19_999, method="BCa", rng=3
    ).confidence_interval
    corrected = ends(cluster_bootstrap(counts, resamples=19_999, seed=1, method="bca").interval)
    plain = ends(cluster_bootstrap(counts, resamples=19_999, seed=1).interval)

    assert corrected == pytest.approx((expected.low, expected.high), abs=0.006)
    assert corrected[0] < plain[0] - 0.03


def test_bca_follows_from_the_law_of_all_resamples() -> None:
    """Five prompts have 3125 resamples: bias with ties halved, skewness, then exact quantiles."""
    successes = (0, 0, 0, 2, 9)
    every = np.sort([sum(chosen) for chosen in product(successes, repeat=5)])
    observed = sum(successes)
    bias = stats.norm.ppf(np.mean(every < observed) + np.mean(every == observed) / 2)
    left_out = np.array([(observed - y) / 4 for y in successes])
    skew = stats.skew(left_out.mean() - left_out) / (6 * np.sqrt(5))
    expected = []
    for tail in (0.15, 0.85):
        z = bias + stats.norm.ppf(tail)
        level = stats.norm.cdf(bias + z / (1 - skew * z))
        expected.append(every[int(np.ceil(level * every.size)) - 1] / 50)
    result = cluster_bootstrap(
        [(y, 10) for y in successes], confidence=0.7, resamples=19_999, seed=2, method="bca"
    )

    assert ends(result.interval) == pytest.approx(tuple(expected))


def test_the_seed_reproduces_the_interval_in_any_order_of_prompts() -> None:
    """The same seed gives the same interval; another seed gives another one."""
    result = cluster_bootstrap(UNEQUAL, resamples=199, seed=11)

    assert result == cluster_bootstrap(UNEQUAL, resamples=199, seed=11)
    assert result.interval == cluster_bootstrap(UNEQUAL[::-1], resamples=199, seed=11).interval
    assert len({cluster_bootstrap(UNEQUAL, resamples=199, seed=s).interval for s in range(9)}) > 1


@pytest.mark.parametrize("counts", [[(9, 10)], [(5, 5), (3, 3)], [(5, 10), (1, 2)]])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_bootstrap_that_sees_no_spread_is_undefined(counts: Groups, method: Any) -> None:
    """One prompt, or prompts of one rate: a point would pass for certainty."""
    result = cluster_bootstrap(counts, seed=1, method=method)

    assert isinstance(result.interval, Undefined)


def test_bca_without_resamples_on_both_sides_is_undefined() -> None:
    """Three resamples sometimes all exceed the rate: there is no bias to read off them."""
    results = [
        cluster_bootstrap(UNEQUAL, confidence=0.5, resamples=3, seed=s, method="bca").interval
        for s in range(40)
    ]

    assert {Interval, Undefined} == {type(result) for result in results}


@pytest.mark.parametrize(("confidence", "fewest"), [(0.95, 39), (0.99, 199), (0.9, 19)])
def test_too_few_resamples_are_refused_with_the_number_needed(
    confidence: float, fewest: int
) -> None:
    """(B + 1) α/2 must reach the first order statistic."""
    cluster_bootstrap(UNEQUAL, confidence=confidence, resamples=fewest, seed=1)
    with pytest.raises(InvalidArgument, match=f"resamples must be at least {fewest}"):
        cluster_bootstrap(UNEQUAL, confidence=confidence, resamples=fewest - 1, seed=1)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: cluster_bootstrap([], seed=1), "groups"),
        (lambda: cluster_bootstrap(UNEQUAL, seed=-1), "seed"),
        (lambda: cluster_bootstrap(UNEQUAL, seed=1.5), "seed"),  # type: ignore[arg-type]
        (lambda: cluster_bootstrap(UNEQUAL, seed=1, confidence=2), "confidence"),
        (lambda: cluster_bootstrap(UNEQUAL, seed=1, method="t"), "method"),  # type: ignore[arg-type]
        (lambda: cluster_bootstrap(UNEQUAL, seed=1, estimand="x"), "estimand"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused_by_name(call: Any, argument: str) -> None:
    """Every refusal names the argument."""
    with pytest.raises(InvalidArgument) as refusal:
        call()

    assert argument == refusal.value.argument
