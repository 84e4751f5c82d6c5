"""Intervals for one rate: formulas, anchors, coverage by enumeration, and other libraries."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import NormalDist

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from trialwise.stats.rate_intervals import (
    Side,
    clopper_pearson,
    rule_of_three,
    wald,
    wilson_interval,
    wilson_lower,
    wilson_upper,
)
from trialwise.stats.result_types import Interval
from trialwise.stats.toolbox.other_intervals import jeffreys, wilson_lower_rate

DIGITS = 40
COUNTS = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
CONFIDENCE = st.floats(0.01, 0.9999)


def z_by_mpmath(confidence: float) -> mpmath.mpf:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(confidence) - 1)


def wilson_by_mpmath(rate: mpmath.mpf, n: int, z: mpmath.mpf) -> tuple[float, float]:
    """The textbook form of both bounds, in 40 digits."""
    centre = rate + z * z / (2 * n)
    half = z * mpmath.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return float((centre - half) / (1 + z * z / n)), float((centre + half) / (1 + z * z / n))


def coverage(interval: Callable[[int, int], Interval], n: int, rates: np.ndarray) -> np.ndarray:
    """P(the interval of K covers p), for each rate p, by enumeration."""
    ends = [interval(k, n) for k in range(n + 1)]
    low, high = np.array([i.low for i in ends]), np.array([i.high for i in ends])
    covered = (low[None, :] <= rates[:, None]) & (rates[:, None] <= high[None, :])
    chances = binom.pmf(np.arange(n + 1)[None, :], n, rates[:, None])
    return np.asarray((covered * chances).sum(axis=1))


# Anchors


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_the_wilson_anchors_hold_at_every_number_of_trials(confidence: float) -> None:
    """No success: exactly 0. No failure: exactly 1. For 1 to 5,000 trials, without a residue."""
    for n in range(1, 5001):
        assert wilson_lower(0, n, confidence=confidence) == 0.0
        assert wilson_upper(n, n, confidence=confidence) == 1.0
        assert wilson_interval(0, n, confidence=confidence).low == 0.0
        assert wilson_interval(n, n, confidence=confidence).high == 1.0
        assert wilson_lower_rate(0.0, n, confidence=confidence) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_the_exact_anchors_hold_at_every_number_of_trials(confidence: float) -> None:
    """Clopper–Pearson, both ways of being one-sided included, and Jeffreys."""
    for n in range(1, 5001):
        assert clopper_pearson(0, n, confidence=confidence).low == 0.0
        assert clopper_pearson(n, n, confidence=confidence).high == 1.0
        assert clopper_pearson(0, n, confidence=confidence, side="lower").low == 0.0
        assert clopper_pearson(n, n, confidence=confidence, side="upper").high == 1.0
        assert jeffreys(0, n, confidence=confidence).low == 0.0
        assert jeffreys(n, n, confidence=confidence).high == 1.0


def test_the_textbook_form_would_miss_the_anchors() -> None:
    """In doubles the textbook formula leaves residues: the sweeps above have something to find."""
    z = NormalDist().inv_cdf(0.95)
    residues = 0
    for n in range(1, 5001):
        low = (z * z / (2 * n) - z * math.sqrt(z * z / (4 * n * n))) / (1 + z * z / n)
        residues += low != 0.0

    assert residues > 0


# Wilson


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 37, 100, 5000, 1_000_000])
def test_wilson_is_the_textbook_formula(n: int, confidence: float) -> None:
    """One- and two-sided bounds of many counts, against 40 digits."""
    with mpmath.workdps(DIGITS):
        one, two = z_by_mpmath(confidence), z_by_mpmath((1 + mpmath.mpf(confidence)) / 2)
        for k in sorted({0, 1, 2, n // 7, n // 2, n - 2, n - 1, n} & set(range(n + 1))):
            rate = mpmath.mpf(k) / n
            low, high = wilson_by_mpmath(rate, n, one)
            assert wilson_lower(k, n, confidence=confidence) == pytest.approx(
                low, rel=1e-13, abs=1e-30
            )
            # The upper bound is 1 minus a lower one: right to the last digits of 1.
            assert wilson_upper(k, n, confidence=confidence) == pytest.approx(
                high, rel=1e-13, abs=5e-16
            )
            low, high = wilson_by_mpmath(rate, n, two)
            interval = wilson_interval(k, n, confidence=confidence)
            assert interval.low == pytest.approx(low, rel=1e-13, abs=1e-30)
            assert interval.high == pytest.approx(high, rel=1e-13, abs=5e-16)


@pytest.mark.parametrize("confidence", [0.1, 0.3, 0.5])
def test_wilson_bounds_of_a_confidence_of_at_most_one_half(confidence: float) -> None:
    """Below one half the lower bound is above the rate: the formula with a negative z."""
    with mpmath.workdps(DIGITS):
        z = z_by_mpmath(confidence)
        for n, k in ((10, 3), (55, 54), (1000, 1)):
            low, _ = wilson_by_mpmath(mpmath.mpf(k) / n, n, z)
            assert wilson_lower(k, n, confidence=confidence) == pytest.approx(low, rel=1e-12)


def test_wilson_bounds_of_a_low_confidence_stay_inside_the_unit_interval() -> None:
    """A bound on a rate is a rate, whatever the confidence."""
    for confidence in (0.01, 0.1, 0.3, 0.49):
        for n in range(1, 400):
            assert 0 <= wilson_lower(n, n, confidence=confidence) <= 1
            assert 0 <= wilson_upper(0, n, confidence=confidence) <= 1


@pytest.mark.parametrize("trials", [1, 50, 100, 937])
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.5, 0.951, 0.9973, 1.0])
def test_wilson_centred_on_a_rate(rate: float, trials: int) -> None:
    """The bound needs no whole number of successes."""
    with mpmath.workdps(DIGITS):
        low, _ = wilson_by_mpmath(mpmath.mpf(rate), trials, z_by_mpmath(0.95))

    assert wilson_lower_rate(rate, trials) == pytest.approx(low, rel=1e-13, abs=1e-30)


@pytest.mark.parametrize(
    ("successes", "trials", "confidence", "low", "high"),
    [
        (0, 10, 0.95, 0.0, 0.27753),
        (9, 10, 0.95, 0.59585, 0.98212),
        (10, 10, 0.95, 0.72247, 1.0),
        (8, 10, 0.95, 0.4902, 0.9433),
        (14, 14, 0.95, 0.78469, 1.0),
        (14, 15, 0.95, 0.70183, 0.98813),
        (15, 15, 0.95, 0.79612, 1.0),
        (20, 21, 0.95, 0.77331, 0.99154),
        (45, 50, 0.95, 0.78640, 0.95652),
        (48, 50, 0.95, 0.86540, 0.98896),
        (90, 100, 0.95, 0.82563, 0.94477),
        (90, 100, 0.99, 0.7962, 0.9540),
    ],
)
def test_wilson_golden_vectors(
    successes: int, trials: int, confidence: float, low: float, high: float
) -> None:
    """The published four- and five-digit vectors."""
    interval = wilson_interval(successes, trials, confidence=confidence)

    assert interval.low == pytest.approx(low, abs=5.1e-5 if low in (0.4902, 0.7962) else 5.1e-6)
    assert interval.high == pytest.approx(high, abs=5.1e-5 if high in (0.9433, 0.954) else 5.1e-6)


@given(counts=COUNTS, confidence=CONFIDENCE)
def test_wilson_bounds_mirror(counts: tuple[int, int], confidence: float) -> None:
    """The upper bound on successes is 1 minus the lower bound on failures."""
    k, n = counts

    assert wilson_upper(k, n, confidence=confidence) == 1 - wilson_lower(
        n - k, n, confidence=confidence
    )


@given(counts=COUNTS, confidence=st.floats(0.5, 0.9999))
def test_the_wilson_bound_is_where_the_score_test_turns(
    counts: tuple[int, int], confidence: float
) -> None:
    """At the bound p, |k/n − p| = z √(p(1−p)/n)."""
    k, n = counts
    z = NormalDist().inv_cdf(confidence)
    p = wilson_lower(k, n, confidence=confidence)

    assert k / n - p == pytest.approx(z * math.sqrt(p * (1 - p) / n), rel=1e-7, abs=1e-12)


@given(counts=COUNTS, one=st.floats(0.5, 0.9999), other=st.floats(0.5, 0.9999))
def test_more_confidence_never_shortens_a_bound(
    counts: tuple[int, int], one: float, other: float
) -> None:
    """The lower bound falls as the confidence rises."""
    k, n = counts
    less, more = sorted((one, other))

    assert wilson_lower(k, n, confidence=more) <= wilson_lower(k, n, confidence=less) <= k / n


@pytest.mark.parametrize("n", [1, 2, 50, 501])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_more_successes_always_raise_the_wilson_bound(n: int, confidence: float) -> None:
    """Strictly, from 0 to n, and a perfect record stays below 1 at n/(n + z²)."""
    values = [wilson_lower(k, n, confidence=confidence) for k in range(n + 1)]
    z = NormalDist().inv_cdf(confidence)

    assert all(low < high for low, high in pairwise(values))
    assert values[-1] == pytest.approx(n / (n + z * z), rel=1e-14)
    assert values[-1] < 1


@given(counts=COUNTS, factor=st.integers(2, 50))
def test_more_trials_at_one_rate_raise_the_wilson_bound(
    counts: tuple[int, int], factor: int
) -> None:
    """The same rate from more trials is better known."""
    k, n = counts

    assert wilson_lower(k * factor, n * factor) >= wilson_lower(k, n)


# Clopper–Pearson


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 150, 1000])
def test_clopper_pearson_agrees_with_scipy(n: int, confidence: float) -> None:
    """Two-sided and one-sided, against scipy's binomial test."""
    sides: list[tuple[Side, str]] = [
        ("two-sided", "two-sided"),
        ("lower", "greater"),
        ("upper", "less"),
    ]
    for k in sorted({0, 1, 2, n // 3, n // 2, n - 1, n} & set(range(n + 1))):
        for side, alternative in sides:
            theirs = binomtest(k, n, alternative=alternative).proportion_ci(confidence, "exact")
            ours = clopper_pearson(k, n, confidence=confidence, side=side)
            assert tuple(ours) == pytest.approx(tuple(theirs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("side", ["two-sided", "lower", "upper"])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 23, 60])
def test_clopper_pearson_covers_at_least_as_often_as_it_says(n: int, side: Side) -> None:
    """At every rate on a grid, and at its own ends where coverage jumps, by enumeration."""
    for confidence in (0.5, 0.8, 0.95, 0.99):
        ends = [
            end
            for k in range(n + 1)
            for end in clopper_pearson(k, n, confidence=confidence, side=side)
        ]
        jumps = np.array([end + step for end in ends for step in (-1e-9, 1e-9)])
        rates = np.concatenate([np.linspace(0, 1, 401), jumps[(jumps >= 0) & (jumps <= 1)]])
        chances = coverage(
            lambda k, n, c=confidence: clopper_pearson(k, n, confidence=c, side=side),  # type: ignore[misc]
            n,
            rates,
        )
        assert chances.min() >= confidence - 1e-7


@given(
    counts=st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    confidence=st.floats(0.05, 0.999),
)
def test_clopper_pearson_bounds_are_where_a_tail_is_spent(
    counts: tuple[int, int], confidence: float
) -> None:
    """P(K ≥ k) at the low end and P(K ≤ k) at the high end are half of what is left."""
    k, n = counts
    low, high = clopper_pearson(k, n, confidence=confidence)
    tail = (1 - confidence) / 2

    assert low <= k / n <= high
    if k > 0:
        assert binom.sf(k - 1, n, low) == pytest.approx(tail, rel=1e-6)
    if k < n:
        assert binom.cdf(k, n, high) == pytest.approx(tail, rel=1e-6)


@given(counts=COUNTS, confidence=st.floats(0.01, 0.999))
def test_the_exact_interval_mirrors_and_contains_the_jeffreys_one(
    counts: tuple[int, int], confidence: float
) -> None:
    """Beta(k, n−k+1) lies below Beta(k+½, n−k+½), and failures mirror successes."""
    k, n = counts
    exact, prior = (
        clopper_pearson(k, n, confidence=confidence),
        jeffreys(k, n, confidence=confidence),
    )
    mirrored = clopper_pearson(n - k, n, confidence=confidence)

    assert exact.low <= prior.low + 1e-13
    assert prior.high <= exact.high + 1e-13
    assert tuple(exact) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-14)


# Jeffreys and Wald


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
def test_jeffreys_agrees_with_scipy_and_statsmodels(n: int, confidence: float) -> None:
    """The equal-tailed Beta(k + ½, n − k + ½) interval, its outer ends anchored."""
    tail = (1 - confidence) / 2
    for k in sorted({0, 1, n // 3, n // 2, n - 1, n} & set(range(n + 1))):
        posterior = beta(k + 0.5, n - k + 0.5)
        interval = jeffreys(k, n, confidence=confidence)
        assert interval.low == (0 if k == 0 else pytest.approx(posterior.ppf(tail), rel=1e-10))
        assert interval.high == (1 if k == n else pytest.approx(posterior.isf(tail), rel=1e-10))
        if 0 < k < n:
            theirs = proportion_confint(k, n, alpha=1 - confidence, method="jeffreys")
            assert tuple(interval) == pytest.approx(tuple(theirs), rel=1e-9)


@pytest.mark.parametrize("n", [1, 10, 200])
def test_wald_and_wilson_agree_with_statsmodels(n: int) -> None:
    """Wald's ends are left as they come, outside [0, 1] too."""
    for k in range(n + 1):
        rate = k / n
        half = NormalDist().inv_cdf(0.95) * math.sqrt(rate * (1 - rate) / n)
        assert tuple(wald(k, n, confidence=0.9)) == pytest.approx((rate - half, rate + half))
        theirs = proportion_confint(k, n, alpha=0.1, method="wilson")
        assert tuple(wilson_interval(k, n, confidence=0.9)) == pytest.approx(
            tuple(theirs), abs=1e-12
        )


def test_wald_shows_its_faults() -> None:
    """Width 0 at a perfect record, an end above 1 near it, and a name that warns."""
    assert wald(10, 10).width == 0
    assert wald(9, 10).high > 1
    assert "pedagogical" in wald(5, 10).method


@pytest.mark.parametrize(
    ("n", "p", "wald_coverage", "wilson_coverage"),
    [(10, 0.9, 0.650, 0.930), (20, 0.95, 0.639, 0.925), (100, 0.95, 0.877, 0.966)],
)
def test_true_coverage_of_wald_and_wilson(
    n: int, p: float, wald_coverage: float, wilson_coverage: float
) -> None:
    """What a nominal 95 % really is, by enumeration."""
    assert coverage(wald, n, np.array([p]))[0] == pytest.approx(wald_coverage, abs=6e-4)
    assert coverage(wilson_interval, n, np.array([p]))[0] == pytest.approx(
        wilson_coverage, abs=6e-4
    )


def test_wald_and_wilson_agree_in_the_middle() -> None:
    """At p = ½ and 385 trials both cover 94.7 %."""
    for method in (wald, wilson_interval):
        assert coverage(method, 385, np.array([0.5]))[0] == pytest.approx(0.947, abs=6e-4)


# A failure never observed


@pytest.mark.parametrize("n", [1, 2, 3, 4, 59, 300, 100_000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_bound_on_a_failure_never_observed(n: int, confidence: float) -> None:
    """1 − (1 − confidence)^(1/n), which is one minus the exact lower bound of a perfect record."""
    with mpmath.workdps(DIGITS):
        exact = float(1 - (1 - mpmath.mpf(confidence)) ** (mpmath.mpf(1) / n))
    bound = clopper_pearson(0, n, confidence=confidence, side="upper").high

    assert bound == pytest.approx(exact, rel=1e-14)
    assert 1 - clopper_pearson(n, n, confidence=confidence, side="lower").low == pytest.approx(
        bound, abs=1e-15
    )


def test_the_rule_of_three_is_a_little_too_high() -> None:
    """3/n, capped at 1, is never below the exact 95 % bound and close to it from 30 trials on."""
    assert [rule_of_three(n) for n in (1, 2, 3, 4, 100)] == [1.0, 1.0, 1.0, 0.75, 0.03]
    for n in range(1, 3000):
        exact = clopper_pearson(0, n, side="upper").high
        assert exact < rule_of_three(n)
        assert n < 30 or rule_of_three(n) < 1.06 * exact


# Sizes and shapes


@pytest.mark.parametrize("k", [0, 1, 3, 500, 50_000, 99_990, 99_999, 100_000])
def test_a_hundred_thousand_trials(k: int) -> None:
    """All intervals against scipy and statsmodels at large counts."""
    n = 100_000
    exact = binomtest(k, n).proportion_ci(0.95, "exact")
    score = binomtest(k, n).proportion_ci(0.95, "wilson")

    assert tuple(clopper_pearson(k, n)) == pytest.approx(tuple(exact), rel=1e-8, abs=1e-12)
    assert tuple(wilson_interval(k, n)) == pytest.approx(tuple(score), abs=1e-13)
    if 0 < k < n:
        posterior = beta(k + 0.5, n - k + 0.5)
        assert tuple(jeffreys(k, n)) == pytest.approx(
            (posterior.ppf(0.025), posterior.isf(0.025)), rel=1e-8
        )


@pytest.mark.parametrize("method", [wilson_interval, clopper_pearson, jeffreys])
@given(counts=COUNTS, confidence=st.floats(1e-6, 0.999999))
def test_every_interval_is_ordered_inside_the_unit_interval(
    method: Callable[..., Interval], counts: tuple[int, int], confidence: float
) -> None:
    """0 ≤ low ≤ high ≤ 1, remembering its confidence."""
    interval = method(*counts, confidence=confidence)

    assert 0 <= interval.low <= interval.high <= 1
    assert interval.confidence == confidence


@pytest.mark.parametrize("method", [wilson_interval, clopper_pearson, jeffreys, wald])
def test_a_wider_confidence_gives_a_wider_interval(method: Callable[..., Interval]) -> None:
    """Intervals of growing confidence are nested."""
    for k, n in ((0, 9), (4, 9), (9, 9), (87, 100)):
        nested = [method(k, n, confidence=c) for c in (0.5, 0.8, 0.95, 0.999)]
        for inner, outer in pairwise(nested):
            assert outer.low <= inner.low <= inner.high <= outer.high


@pytest.mark.parametrize("method", [wilson_interval, wald])
def test_the_largest_confidence_below_one(method: Callable[..., Interval]) -> None:
    """A confidence strictly below 1 is accepted and gives numbers."""
    interval = method(1, 2, confidence=math.nextafter(1, 0))

    assert math.isfinite(interval.low)
    assert math.isfinite(interval.high)


@pytest.mark.parametrize("k", [1, 2])
def test_a_one_sided_bound_of_a_vanishing_confidence(k: int) -> None:
    """A confidence strictly above 0 is accepted and gives numbers."""
    assert 0 <= clopper_pearson(k, 3, confidence=1e-17, side="lower").low <= 1


def test_an_interval_behaves_like_a_pair() -> None:
    """It unpacks, measures, contains, and is equal where its ends are."""
    low, high = wilson_interval(9, 10)
    interval = Interval(low, high)

    assert interval == wilson_interval(9, 10)
    assert hash(interval) == hash(wilson_interval(9, 10))
    assert interval.width == high - low
    assert low in interval
    assert high in interval
    assert math.nextafter(low, 0) not in interval
