"""Intervals for bounded numbers: the published bounds, and coverage counted exactly."""

from __future__ import annotations

import math
from itertools import product
from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

from trialwise.errors import InvalidArgument
from trialwise.stats.bounded_means import (
    bounded_mean_interval,
    bounded_variance_interval,
    weighted_mean_interval,
)
from trialwise.stats.result_types import Undefined


def kl(a: float, b: float) -> float:
    """The divergence of two coins, as a textbook writes it."""
    parts = [(a, b), (1 - a, 1 - b)]
    return sum(x * math.log(x / y) for x, y in parts if x > 0)


@pytest.mark.parametrize("mean", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("count", [1, 5, 40, 1000])
def test_the_mean_is_bounded_where_the_divergence_is_spent(mean: float, count: int) -> None:
    """Hoeffding 1963, theorem 1, solved by another root finder."""
    budget = math.log(2 / 0.05) / count

    def below(rate: float) -> float:
        solved: float = brentq(lambda m: kl(rate, m) - budget, 1e-300, rate, xtol=1e-15)
        return solved

    ends = (below(mean), 1 - below(1 - mean))
    assert ends == pytest.approx(tuple(bounded_mean_interval(mean, count)), abs=1e-9)


def test_a_mean_of_0_or_1_is_bounded_on_one_side() -> None:
    """kl(0, m) = −ln(1 − m), so the end is 1 − (α/2)^(1/n)."""
    end = 1 - 0.025**0.1

    assert (0.0, end) == pytest.approx(tuple(bounded_mean_interval(0.0, 10)))
    assert (1 - end, 1.0) == pytest.approx(tuple(bounded_mean_interval(1.0, 10)))


@pytest.mark.slow("40")
@pytest.mark.parametrize("count", [1, 3, 12, 40])
def test_the_mean_of_coins_is_covered(count: int) -> None:
    """At every rate of a grid, by the binomial distribution."""
    for rate in [k / 50 for k in range(51)]:
        covered = sum(
            binom.pmf(passed, count, rate)
            for passed in range(count + 1)
            if rate in bounded_mean_interval(passed / count, count)
        )
        assert covered >= 0.95 - 1e-12


def test_a_weighted_mean_of_unlike_coins_is_covered() -> None:
    """Eight coins of eight rates, the later ones heavier: all 256 outcomes."""
    rates = [0.05, 0.9, 0.5, 0.99, 0.2, 0.7, 0.4, 0.6]
    weights = list(range(1, 9))
    truth = sum(w * p for w, p in zip(weights, rates, strict=True)) / sum(weights)
    covered = 0.0
    for outcome in product((0, 1), repeat=8):
        chance = math.prod(p if x else 1 - p for x, p in zip(outcome, rates, strict=True))
        mean = sum(w * x for w, x in zip(weights, outcome, strict=True)) / sum(weights)
        covered += chance * (truth in weighted_mean_interval(mean, weights))

    assert covered >= 0.95


def test_equal_weights_are_hoeffdings_plain_bound() -> None:
    """√(ln(2/α) / 2n), whatever the weights' scale."""
    half = math.sqrt(math.log(40) / (2 * 50))

    assert (0.5 - half, 0.5 + half) == pytest.approx(tuple(weighted_mean_interval(0.5, [7.0] * 50)))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_a_variance_of_coins_is_covered(rate: float) -> None:
    """p(1 − p), by the binomial distribution of 80."""
    covered = 0.0
    for passed in range(81):
        found = bounded_variance_interval([1.0] * passed + [0.0] * (80 - passed))
        assert not isinstance(found, Undefined)
        covered += binom.pmf(passed, 80, rate) * (rate * (1 - rate) in found)

    assert covered >= 0.95


@pytest.mark.parametrize(("ones", "others"), [(300, 700), (50, 9950), (5000, 5000)])
def test_a_spread_is_bounded_on_both_sides_alike(ones: int, others: int) -> None:
    """Maurer & Pontil 2009, theorem 10: √(n p̂(1 − p̂)/(n − 1)) ± √(2 ln(2/α)/(n − 1)), squared."""
    found = bounded_variance_interval([1.0] * ones + [0.0] * others, confidence=0.9)
    assert not isinstance(found, Undefined)
    n = ones + others
    spread = math.sqrt(ones * others / (n * (n - 1)))
    half = math.sqrt(2 * math.log(20) / (n - 1))
    ends = max(0.0, spread - half) ** 2, min(0.25, (spread + half) ** 2)

    assert ends == pytest.approx(tuple(found))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_a_variance_stays_within_what_there_can_be(values: list[float]) -> None:
    """From 0 to a quarter, around the sample's as far as that is possible, in any order."""
    found, turned = bounded_variance_interval(values), bounded_variance_interval(values[::-1])
    assert not isinstance(found, Undefined)
    assert not isinstance(turned, Undefined)

    assert 0 <= found.low <= found.high <= 0.25
    assert min(0.25, variance(values)) in found
    assert tuple(found) == pytest.approx(tuple(turned))


def test_one_value_has_no_spread() -> None:
    """And why is said."""
    assert isinstance(bounded_variance_interval([0.5]), Undefined)


def test_what_is_out_of_range_is_refused() -> None:
    """Each argument by its name."""
    with pytest.raises(InvalidArgument, match="mean"):
        bounded_mean_interval(1.1, 5)
    with pytest.raises(InvalidArgument, match="count"):
        bounded_mean_interval(0.5, 0)
    with pytest.raises(InvalidArgument, match="weights"):
        weighted_mean_interval(0.5, [])
    with pytest.raises(InvalidArgument, match="values"):
        bounded_variance_interval([0.5, -0.1])
    with pytest.raises(InvalidArgument, match="confidence"):
        bounded_mean_interval(0.5, 5, confidence=1.0)
