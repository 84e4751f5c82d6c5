"""Binomial probabilities against rationals, mpmath and scipy."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from trialwise.stats.binomial import binomial_cdf, binomial_pmf, binomial_tail, exact_tail
from trialwise.stats.toolbox.binomial_weights import binomial_pmfs

#: Rates that a double holds exactly, so that rationals and doubles speak of the same number.
BINARY_RATES = [Fraction(i, 32) for i in (1, 3, 8, 16, 20, 29, 31)]
COUNTS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def weights(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize("p", BINARY_RATES)
@pytest.mark.parametrize("n", [*range(14), 40])
def test_every_probability_of_a_small_binomial_is_the_rational_one(n: int, p: Fraction) -> None:
    """pmf, cdf and tail of every count to 13 digits."""
    exact = weights(n, p)
    for k in range(n + 1):
        assert binomial_pmf(k, n, float(p)) == pytest.approx(float(exact[k]), rel=1e-13)
        assert binomial_cdf(k, n, float(p)) == pytest.approx(float(sum(exact[: k + 1])), rel=1e-13)
        assert binomial_tail(k, n, float(p)) == pytest.approx(float(sum(exact[k:])), rel=1e-13)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_counts_outside_the_trials(n: int, p: float) -> None:
    """Nothing happens below 0 or above n; everything does in between."""
    for below in (-1, -100):
        assert binomial_pmf(below, n, p) == 0
        assert binomial_cdf(below, n, p) == 0
        assert binomial_tail(below, n, p) == 1
    for above in (n + 1, n + 100):
        assert binomial_pmf(above, n, p) == 0
        assert binomial_cdf(above, n, p) == 1
        assert binomial_tail(above, n, p) == 0
    assert binomial_tail(0, n, p) == 1
    assert binomial_cdf(n, n, p) == 1


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
def test_a_certain_rate(n: int) -> None:
    """At rate 0 all trials fail, at rate 1 none does, without a rounding residue."""
    for k in range(n + 1):
        assert binomial_pmf(k, n, 0.0) == (k == 0)
        assert binomial_pmf(k, n, 1.0) == (k == n)
        assert binomial_cdf(k, n, 0.0) == 1
        assert binomial_tail(k, n, 1.0) == 1
    assert binomial_pmfs(n, 0.0) == [1.0] + [0.0] * n
    assert binomial_pmfs(n, 1.0) == [0.0] * n + [1.0]


@pytest.mark.parametrize("p", [0.001, 0.07, 0.5, 0.93, 0.9999])
@pytest.mark.parametrize("n", [1, 2, 30, 977, 5000])
def test_the_list_of_probabilities(n: int, p: float) -> None:
    """It has one entry a count, equals the single ones, sums to 1 and has the mean np."""
    values = binomial_pmfs(n, p)

    assert len(values) == n + 1
    assert math.fsum(values) == pytest.approx(1, abs=1e-11)
    assert math.fsum(k * value for k, value in enumerate(values)) == pytest.approx(n * p, rel=1e-10)
    for k in range(0, n + 1, max(1, n // 60)):
        assert values[k] == pytest.approx(binomial_pmf(k, n, p), rel=1e-10, abs=1e-290)


@pytest.mark.parametrize("n", [50, 1000, 100_000])
@pytest.mark.parametrize("p", [0.0005, 0.2, 0.5, 0.951, 0.9995])
def test_large_binomials_agree_with_scipy(n: int, p: float) -> None:
    """Within six standard deviations of the mean, at up to 100,000 trials."""
    sd = math.sqrt(n * p * (1 - p))
    for sigmas in (-6, -3, -1, 0, 1, 3, 6):
        k = min(max(round(n * p + sigmas * sd), 0), n)
        assert binomial_pmf(k, n, p) == pytest.approx(binom.pmf(k, n, p), rel=1e-9)
        assert binomial_cdf(k, n, p) == pytest.approx(binom.cdf(k, n, p), rel=1e-9)
        assert binomial_tail(k, n, p) == pytest.approx(binom.sf(k - 1, n, p), rel=1e-9)


@pytest.mark.parametrize("n", [2, 59, 3000, 100_000])
@pytest.mark.parametrize("p", [0.5, 0.95, 0.999])
def test_all_successes_is_a_power(n: int, p: float) -> None:
    """P(K ≥ n) = P(K = n) = p^n, down to the smallest doubles."""
    with mpmath.workdps(30):
        power = float(mpmath.mpf(p) ** n)

    assert binomial_tail(n, n, p) == pytest.approx(power, rel=1e-11, abs=1e-300)
    assert binomial_pmf(n, n, p) == pytest.approx(power, rel=1e-11, abs=1e-300)


@pytest.mark.parametrize(("k", "n", "cutoff_size"), [(91, 100, 0.024986), (92, 100, 0.0570)])
def test_sizes_around_a_reference_of_0951(k: int, n: int, cutoff_size: float) -> None:
    """At reference 0.951 and 100 trials cutoff 91 keeps 5 % and 92 does not."""
    assert binomial_cdf(k - 1, n, 0.951) == pytest.approx(cutoff_size, abs=5e-5)


def test_a_smaller_test_that_uses_more_of_its_level() -> None:
    """97 trials with cutoff 89 spend 4.87 % of the 5 %."""
    assert binomial_cdf(88, 97, 0.951) == pytest.approx(0.0487, abs=5e-5)


@given(counts=COUNTS, p=st.floats(0, 1))
def test_the_two_tails_are_complementary(counts: tuple[int, int], p: float) -> None:
    """P(K ≤ k) + P(K ≥ k+1) = 1, and both are probabilities."""
    k, n = counts
    low, high = binomial_cdf(k, n, p), binomial_tail(k + 1, n, p)

    assert 0 <= low <= 1 + 1e-12
    assert 0 <= high <= 1 + 1e-12
    assert low + high == pytest.approx(1, abs=1e-12)


@given(counts=COUNTS, thousandths=st.integers(0, 1024))
def test_successes_and_failures_change_places(counts: tuple[int, int], thousandths: int) -> None:
    """k successes at rate p are n − k failures at rate 1 − p."""
    k, n = counts
    p = thousandths / 1024

    assert binomial_tail(k, n, p) == pytest.approx(
        binomial_cdf(n - k, n, 1 - p), rel=1e-11, abs=1e-300
    )
    assert binomial_pmf(k, n, p) == pytest.approx(
        binomial_pmf(n - k, n, 1 - p), rel=1e-11, abs=1e-300
    )


@given(counts=COUNTS, low=st.floats(0, 1), high=st.floats(0, 1))
def test_a_higher_rate_reaches_every_count_more_often(
    counts: tuple[int, int], low: float, high: float
) -> None:
    """The tail rises with the rate and falls with the count."""
    k, n = counts
    low, high = sorted((low, high))

    assert binomial_tail(k, n, low) <= binomial_tail(k, n, high) + 1e-12
    assert binomial_tail(k + 1, n, low) <= binomial_tail(k, n, low) + 1e-12


@pytest.mark.parametrize("n", [1, 25, 300])
def test_the_tail_never_rises_with_the_count(n: int) -> None:
    """No count is reached more often than the one below it."""
    values = [binomial_tail(k, n, 0.37) for k in range(n + 2)]

    assert all(high >= low for high, low in pairwise(values))


# Rationals


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(3, 5), Fraction(951, 1000)])
@pytest.mark.parametrize("n", [0, 1, 2, 10, 33])
def test_the_rational_tail_is_the_sum_of_the_weights(n: int, p: Fraction) -> None:
    """Also for counts outside 0 … n."""
    exact = weights(n, p)
    for k in range(n + 1):
        assert exact_tail(k, n, p) == sum(exact[k:])
    assert exact_tail(-3, n, p) == 1
    assert exact_tail(n + 1, n, p) == 0


def test_the_rational_tails_that_equal_a_level() -> None:
    """0.5⁵ = 0.03125, and P(K ≥ 9) = 0.0463574016 at ten trials of rate 0.6."""
    assert exact_tail(5, 5, Fraction(1, 2)) == Fraction("0.03125")
    assert exact_tail(9, 10, Fraction(3, 5)) == Fraction("0.0463574016")
