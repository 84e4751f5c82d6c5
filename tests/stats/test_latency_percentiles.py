"""Nearest-rank percentiles and the summary, against the definition in fractions and numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_percentiles import (
    SUPPORTED_PERCENTILES,
    emission_minimum,
    latency_summary,
    nearest_rank_percentile,
)
from trialwise.stats.result_types import Undefined

LATENCIES = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)
LEVELS = st.integers(1, 1000).map(lambda i: i / 1000)


def smallest_rank_covering(share: Fraction, n: int) -> int:
    """The definition: the smallest k such that a share k/n of the sample is at least p."""
    return next(k for k in range(1, n + 1) if Fraction(k, n) >= share)


# Percentiles


def test_the_ranks_of_two_hundred_latencies_are_the_companions() -> None:
    """Companion 12.2.2: p50, p90, p95 and p99 of 200 are the 100th, 180th, 190th and 198th."""
    latencies = range(1, 201)

    ranks = [nearest_rank_percentile(latencies, p) for p in SUPPORTED_PERCENTILES]

    assert ranks == [100, 180, 190, 198]


@pytest.mark.slow
def test_every_percentile_is_the_first_value_that_covers_its_share() -> None:
    """All hundredths and every sample size up to 120 agree with the definition in fractions."""
    for n in range(1, 121):
        for hundredths in range(1, 101):
            rank = smallest_rank_covering(Fraction(hundredths, 100), n)
            assert rank == nearest_rank_percentile(range(1, n + 1), hundredths / 100)


def test_the_rank_is_taken_in_decimals() -> None:
    """Where the product of doubles creeps above a whole number its ceiling is one too many."""
    traps = [(0.07, 100, 7), (0.14, 50, 7), (0.28, 25, 7), (0.55, 100, 55), (0.56, 25, 14)]

    for p, n, rank in traps:
        assert math.ceil(p * n) == rank + 1
        assert rank == nearest_rank_percentile(range(1, n + 1), p)


def test_percentiles_are_numpys_inverted_cdf() -> None:
    """A heavy-tailed sample gives the values of numpy's method of the same definition."""
    sample = np.random.default_rng(7).lognormal(5, 1, size=937)

    for p in SUPPORTED_PERCENTILES:
        assert np.quantile(sample, p, method="inverted_cdf") == nearest_rank_percentile(sample, p)


def test_one_latency_is_every_percentile() -> None:
    """A single observation answers at every level, the whole range included."""
    assert [nearest_rank_percentile([250], p) for p in (0.001, 0.5, 0.99, 1)] == [250.0] * 4


@given(LATENCIES, LEVELS, st.randoms(use_true_random=False))
def test_order_does_not_matter(latencies: list[float], p: float, random: Random) -> None:
    """A permutation of the latencies has the same percentile, which is one of them."""
    shuffled = list(latencies)
    random.shuffle(shuffled)

    value = nearest_rank_percentile(latencies, p)

    assert value == nearest_rank_percentile(shuffled, p)
    assert value in latencies


@given(LATENCIES, LEVELS, LEVELS)
def test_a_higher_level_is_never_a_lower_latency(
    latencies: list[float], p: float, q: float
) -> None:
    """Percentiles rise with the level, up to the maximum."""
    low, high = sorted((p, q))

    assert nearest_rank_percentile(latencies, low) <= nearest_rank_percentile(latencies, high)
    assert max(latencies) == nearest_rank_percentile(latencies, 1)


@given(LATENCIES, LEVELS, st.floats(0.001, 1000))
def test_the_unit_does_not_matter(latencies: list[float], p: float, scale: float) -> None:
    """Rescaled latencies have the rescaled percentile."""
    scaled = [value * scale for value in latencies]

    assert nearest_rank_percentile(latencies, p) * scale == nearest_rank_percentile(scaled, p)


# Summary


def test_a_summary_holds_mean_maximum_and_percentiles() -> None:
    """A hundred known latencies in any order; the mean is the exact one, rounded once."""
    latencies = [0.1 * i for i in range(100, 0, -1)]

    summary = latency_summary(latencies)

    exact = sum(map(Fraction, latencies)) / 100
    assert (100, max(latencies)) == (summary.trials, summary.maximum)
    assert math.isclose(exact, summary.mean, rel_tol=2e-16)
    assert [0.1 * i for i in (50, 90, 95, 99)] == [
        summary.p50,
        summary.p90,
        summary.p95,
        summary.p99,
    ]


@pytest.mark.parametrize("p", SUPPORTED_PERCENTILES)
def test_a_percentile_appears_exactly_at_its_minimum(p: float) -> None:
    """One latency short it is undefined with a reason; with it, it is the nearest rank."""
    name, needed = f"p{p * 100:.0f}", emission_minimum(p)

    short = getattr(latency_summary(range(needed - 1)), name)
    enough = getattr(latency_summary(range(needed)), name)

    assert short == Undefined(f"{name} needs at least {needed} successful trials, got {needed - 1}")
    assert enough == nearest_rank_percentile(range(needed), p)


def test_the_mean_of_enormous_latencies_is_finite() -> None:
    """A sum beyond the doubles does not take the mean with it."""
    assert math.isclose(1e308, latency_summary([1e308] * 10).mean, rel_tol=1e-15)


@given(LATENCIES)
def test_the_mean_lies_between_the_extremes(latencies: list[float]) -> None:
    """Rounding never pushes the mean outside the values, and it is fsum's to an ulp."""
    summary = latency_summary(latencies)

    assert min(latencies) <= summary.mean <= max(latencies) == summary.maximum
    assert math.isclose(math.fsum(latencies) / len(latencies), summary.mean, rel_tol=1e-15)


# Emission minimum


def test_the_emission_minimums_are_the_companions() -> None:
    """Companion 12.5.2: 5, 10, 20 and 100."""
    assert [emission_minimum(p) for p in (0.5, 0.9, 0.95, 0.99)] == [5, 10, 20, 100]


@pytest.mark.parametrize(("p", "share"), [(0.9, "0.9"), (0.95, "0.95"), (0.99, "0.99")])
def test_below_its_minimum_an_upper_percentile_is_the_maximum(p: float, share: str) -> None:
    """From the minimum on and never before, some latency lies above the percentile."""
    first = next(n for n in range(1, 200) if smallest_rank_covering(Fraction(share), n) < n)

    assert first == emission_minimum(p)


@pytest.mark.parametrize("p", [0.999, 0.75, 0.1])
def test_other_percentiles_have_no_minimum(p: float) -> None:
    """Levels outside the method are an error, not a guess."""
    with pytest.raises(InvalidArgument, match=r"percentile must be one of 0\.5, 0\.9, 0\.95"):
        emission_minimum(p)


# Refused input


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, -math.inf, "slow", True, None])
@pytest.mark.parametrize(
    "function", [latency_summary, lambda values: nearest_rank_percentile(values, 0.5)]
)
def test_a_value_that_is_no_latency_is_named(
    bad: object, function: Callable[[object], object]
) -> None:
    """The message gives the position and the value."""
    with pytest.raises(InvalidArgument, match=r"latencies\[1\] must be a finite number of"):
        function([3.0, bad])


@pytest.mark.parametrize("bad", [[], (), iter(()), 250, "12", None])
def test_latencies_must_be_a_sequence_with_something_in_it(bad: object) -> None:
    """No latencies and no sequence are both refused."""
    with pytest.raises(InvalidArgument, match=r"^latencies must"):
        nearest_rank_percentile(bad, 0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^latencies must"):
        latency_summary(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -0.1, 1.1, 95, math.nan, "p95", True, None])
def test_a_percentile_is_a_fraction(bad: float) -> None:
    """95 is not a level; 0.95 is."""
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        nearest_rank_percentile([1, 2, 3], bad)
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        emission_minimum(bad)
