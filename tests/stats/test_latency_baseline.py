"""The order-statistic bound against its definition in fractions, and what it really covers."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, factorial, prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_baseline import (
    TIE_POLICY,
    order_statistic_bound,
    order_statistic_false_alarm,
)
from trialwise.stats.result_types import Undefined

LEVELS = ("0.5", "0.9", "0.95", "0.99", "0.07", "0.55")
CONFIDENCES = ("0.3", "0.8", "0.95", "0.99")


def upper_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(B ≥ k) for B ~ Binomial(n, p), term by term."""
    terms = (comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))
    return sum(terms, Fraction(0))


def first_rank(n: int, p: Fraction, confidence: Fraction) -> int:
    """min{k : P(B ≥ k) ≤ 1 − confidence}; P(B ≥ n + 1) = 0 always qualifies."""
    return next(k for k in range(1, n + 2) if upper_tail(k, n, p) <= 1 - confidence)


def defined(rate: float | Undefined) -> float:
    assert isinstance(rate, float)
    return rate


def chances(counts: tuple[int, ...], weights: tuple[Fraction, ...]) -> Fraction:
    """The multinomial probability of a sample with this many of each value."""
    ways = factorial(sum(counts)) // prod(map(factorial, counts))
    powers = (w**c for w, c in zip(weights, counts, strict=True))
    return ways * prod(powers, start=Fraction(1))


# The bound


@pytest.mark.parametrize(
    ("n", "p", "rank", "percentile"),
    [(935, 0.95, 900, 889), (200, 0.95, 196, 190), (935, 0.99, 931, 926)],
)
def test_the_ranks_are_the_companions(n: int, p: float, rank: int, percentile: int) -> None:
    """Companion 12.4.4 and 12.4.5, with the baseline's own rank below the bound."""
    bound = order_statistic_bound(range(1, n + 1), p)

    assert (rank, rank, rank) == (bound.raw_rank, bound.rank, bound.value)
    assert percentile == bound.baseline_percentile
    assert bound.saturated is False
    assert bound.advisory_value is None


def test_two_hundred_latencies_have_no_p99_bound() -> None:
    """Companion 12.4.4: the rank lies beyond the sample and is not cut back; the rest is advice."""
    bound = order_statistic_bound(range(1, 201), 0.99)

    assert bound.saturated is True
    assert bound.raw_rank == 201
    assert (bound.rank, bound.value, bound.achieved_coverage) == (None, None, None)
    assert bound.tied_rank is None
    assert bound.advisory_value == 200
    assert bound.breached_by(1e9) is None


def test_the_worked_example_covers_what_the_companion_says() -> None:
    """Companion 12.4.5: P(B ≤ 899) ≈ 0.959 and P(B ≥ 900) ≈ 0.041."""
    bound = order_statistic_bound(range(935), 0.95)

    assert bound.achieved_coverage is not None
    assert round(bound.achieved_coverage, 3) == 0.959
    assert math.isclose(binom.cdf(899, 935, 0.95), bound.achieved_coverage, rel_tol=1e-12)


@pytest.mark.slow("0.5", "0.9", "0.95", "0.99", "0.55")
@pytest.mark.parametrize("p", LEVELS)
def test_every_rank_is_the_first_that_qualifies(p: str) -> None:
    """All sample sizes up to 45 agree with the definition in fractions, floor and saturation."""
    share = Fraction(p)
    for n in range(1, 46):
        for confidence in CONFIDENCES:
            raw = first_rank(n, share, Fraction(confidence))
            bound = order_statistic_bound(range(1, n + 1), float(p), confidence=float(confidence))
            floor = math.ceil(share * n)
            assert raw == bound.raw_rank
            assert bound.saturated is (raw > n)
            assert bound.rank == (None if raw > n else max(raw, floor))
            assert floor == bound.baseline_percentile


@pytest.mark.parametrize("p", LEVELS)
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_coverage_is_at_least_the_confidence(p: str, confidence: str) -> None:
    """For a continuous distribution P(t_(k) ≥ Q) = P(B < k), exactly, wherever a bound exists."""
    for n in (1, 2, 5, 20, 59, 60, 90):
        bound = order_statistic_bound(range(n), float(p), confidence=float(confidence))
        if bound.rank is None:
            continue
        covered = 1 - upper_tail(bound.rank, n, Fraction(p))
        assert covered >= Fraction(confidence)
        assert bound.achieved_coverage is not None
        assert math.isclose(covered, bound.achieved_coverage, rel_tol=1e-12)


def test_large_samples_agree_with_scipys_quantile() -> None:
    """qbinom(1 − alpha, n, p) + 1 by scipy, far from any boundary."""
    for n, p in ((5000, 0.95), (20_000, 0.99), (1234, 0.5)):
        assert binom.ppf(0.95, n, p) + 1 == order_statistic_bound(range(n), p).raw_rank


@pytest.mark.parametrize(
    ("n", "p", "confidence", "rank"),
    [
        (5, 0.5, 0.96875, 5),
        (1, 0.05, 0.95, 1),
        (2, 0.1, 0.99, 2),
        (1, 0.1, 0.9, 1),
        (2, 0.3, 0.91, 2),
    ],
)
def test_a_tail_of_exactly_alpha_bounds(n: int, p: float, confidence: float, rank: int) -> None:
    """Where pⁿ = 1 − confidence in decimals, the maximum is a bound: 1 − 0.9 is 0.1, not less."""
    assert Fraction(repr(p)) ** n == 1 - Fraction(repr(confidence))

    bound = order_statistic_bound(range(n), p, confidence=confidence)

    assert (rank, False) == (bound.rank, bound.saturated)


def test_the_bound_never_falls_below_the_baselines_percentile() -> None:
    """At a low confidence the raw rank does, and the floor holds the bound up."""
    bound = order_statistic_bound(range(1, 101), 0.95, confidence=0.1)

    assert bound.raw_rank < 95
    assert (bound.rank, bound.value) == (95, 95)


# Ties


def test_a_tied_rank_is_the_last_of_its_run() -> None:
    """Companion 12.8: the value is the same, the position declared is the largest."""
    bound = order_statistic_bound([10, 20, 20, 20, 20, 20, 20, 30], 0.5, confidence=0.8)

    assert (bound.rank, bound.tied_rank, bound.value) == (6, 7, 20)
    assert bound.tie_policy == TIE_POLICY == "largest-tied-position-for-upper-bound-ranks"


@pytest.mark.parametrize("n", [5, 8, 12])
@pytest.mark.parametrize("p", ["0.5", "0.6", "0.7"])
def test_ties_make_the_bound_conservative(n: int, p: str) -> None:
    """Over every sample of a distribution on three values, coverage stays at or above nominal."""
    weights = (Fraction(3, 10), Fraction(3, 10), Fraction(4, 10))
    quantile = next(v for v in range(3) if sum(weights[: v + 1]) >= Fraction(p))
    for confidence in ("0.6", "0.8", "0.95"):
        covered, stated = Fraction(0), None
        for sample in combinations_with_replacement(range(3), n):
            bound = order_statistic_bound(sample, float(p), confidence=float(confidence))
            stated = bound.achieved_coverage
            if bound.value is not None and bound.value >= quantile:
                covered += chances((sample.count(0), sample.count(1), sample.count(2)), weights)
        if stated is not None:
            assert covered >= Fraction(confidence)
            assert float(covered) >= stated - 1e-12


# Breach and false alarm


def test_equality_with_the_bound_is_no_breach() -> None:
    """Only a percentile above the bound breaches it."""
    bound = order_statistic_bound(range(1, 101), 0.5)
    assert bound.value is not None

    assert bound.breached_by(bound.value) is False
    assert bound.breached_by(math.nextafter(bound.value, math.inf)) is True


def test_the_false_alarm_of_the_bound_is_not_alpha() -> None:
    """The published .197, .171 and .123 at n_b = 935 and n_t = 100, 200 and 500, and scipy's."""
    rates = [defined(order_statistic_false_alarm(935, n, 0.95)) for n in (100, 200, 500)]

    assert [round(rate, 3) for rate in rates] == [0.197, 0.171, 0.123]
    for rate, n in zip(rates, (100, 200, 500), strict=True):
        expected = betabinom.cdf(n * 19 // 20 - 1, n, 900, 36)
        assert math.isclose(expected, rate, rel_tol=1e-10)


@pytest.mark.parametrize(("nb", "nt"), [(5, 3), (6, 5), (7, 4), (5, 6)])
def test_the_false_alarm_counts_every_arrangement(nb: int, nt: int) -> None:
    """Interleaving both in all equally likely ways and deciding each, with the floor too."""
    for p, confidence in ((0.5, 0.8), (0.3, 0.8), (0.25, 0.8), (0.7, 0.1)):
        positions = range(nb + nt)
        breaches = 0
        for test in combinations(positions, nt):
            baseline = [x for x in positions if x not in test]
            bound = order_statistic_bound(baseline, p, confidence=confidence)
            breaches += bool(bound.breached_by(test[math.ceil(p * nt) - 1]))
        rate = defined(order_statistic_false_alarm(nb, nt, p, confidence=confidence))
        assert math.isclose(breaches / comb(nb + nt, nt), rate, rel_tol=1e-12)


def test_without_a_bound_there_is_no_false_alarm_rate() -> None:
    """A saturated baseline leaves it undefined, with the reason."""
    assert isinstance(order_statistic_false_alarm(200, 100, 0.99), Undefined)


# Properties

SAMPLES = st.lists(st.integers(0, 1000), min_size=1, max_size=150)
RATES = st.integers(1, 99).map(lambda i: i / 100)


@given(SAMPLES, RATES, RATES, st.randoms(use_true_random=False))
def test_order_and_unit_do_not_matter(
    latencies: list[int], p: float, confidence: float, random: Random
) -> None:
    """Shuffled and rescaled latencies have the rescaled bound at the same rank."""
    shuffled = [value * 8.0 for value in latencies]
    random.shuffle(shuffled)

    one = order_statistic_bound(latencies, p, confidence=confidence)
    other = order_statistic_bound(shuffled, p, confidence=confidence)

    assert (one.rank, one.tied_rank) == (other.rank, other.tied_rank)
    assert (None if one.value is None else one.value * 8) == other.value
    assert one.value is None or one.value >= one.baseline_percentile


@given(st.integers(1, 200), RATES, RATES, RATES)
def test_more_confidence_or_a_higher_percentile_is_never_a_lower_rank(
    n: int, p: float, first: float, second: float
) -> None:
    """Companion 12.4.2, with a saturated rank above all others."""
    low, high = sorted((first, second))
    sample = range(n)

    by_confidence = [order_statistic_bound(sample, p, confidence=c) for c in (low, high)]
    by_percentile = [order_statistic_bound(sample, q, confidence=p) for q in (low, high)]

    for less, more in (by_confidence, by_percentile):
        assert (less.rank or n + 1) <= (more.rank or n + 1)


# Refused input


@pytest.mark.parametrize("bad", [[], [1.0, -1.0], [math.nan], [math.inf], 3])
def test_bad_latencies_are_refused(bad: list[float]) -> None:
    """Empty, negative and non-finite latencies have no order statistics."""
    with pytest.raises(InvalidArgument, match=r"^latencies"):
        order_statistic_bound(bad, 0.5)


@pytest.mark.parametrize("bad", [0, 1, 95, math.nan, None])
def test_levels_lie_strictly_inside(bad: float) -> None:
    """Neither a percentile nor a confidence may be 0 or 1."""
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        order_statistic_bound([1.0], bad)
    with pytest.raises(InvalidArgument, match=r"^confidence must"):
        order_statistic_bound([1.0], 0.5, confidence=bad)
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        order_statistic_false_alarm(10, 10, bad)
    with pytest.raises(InvalidArgument, match=r"^confidence must"):
        order_statistic_false_alarm(10, 10, 0.5, confidence=bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True])
def test_counts_are_whole_and_positive(bad: int) -> None:
    """A false alarm needs latencies on both sides."""
    with pytest.raises(InvalidArgument, match=r"^baseline_trials must"):
        order_statistic_false_alarm(bad, 10, 0.5)
    with pytest.raises(InvalidArgument, match=r"^test_trials must"):
        order_statistic_false_alarm(10, bad, 0.5)


def test_a_breach_needs_a_number() -> None:
    """A percentile that is not finite is not compared."""
    with pytest.raises(InvalidArgument, match=r"^test_percentile must"):
        order_statistic_bound(range(10), 0.5).breached_by(math.nan)
