"""The incomplete beta and normal functions against mpmath, rationals and closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from trialwise.stats.binomial import (
    beta_cdf,
    beta_quantile,
    beta_sf,
    binomial_weight,
    deviance,
    normal_cdf,
    normal_quantile,
    normal_sf,
    stirling_error,
    upper_z,
)

DIGITS = 40
SHAPES = (0.5, 1.0, 1.5, 2.0, 7.5, 10.0, 33.0, 120.5)
POINTS = (1e-12, 1e-4, 0.03, 0.25, 0.5, 0.77, 0.95, 0.9999)


def tail_by_mpmath(x: float, a: float, b: float) -> tuple[float, float]:
    """I_x(a, b) and its complement, each to full relative precision."""
    with mpmath.workdps(DIGITS):
        total = mpmath.beta(a, b)
        low = mpmath.betainc(a, b, 0, mpmath.mpf(x)) / total
        # Mirrored: from x to 1 mpmath would subtract two numbers near 1.
        high = mpmath.betainc(b, a, 0, 1 - mpmath.mpf(x)) / total
        return float(low), float(high)


def cdf_by_fraction(x: Fraction, a: int, b: int) -> Fraction:
    """I_x(a, b) for whole a and b: at least a successes in a + b − 1 trials."""
    n = a + b - 1
    return sum(
        (math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1)), start=Fraction(0)
    )


# The pieces of the saddle-point form


@pytest.mark.parametrize("n", [0.5, 1, 1.5, 3, 7.25, 14.5, 15, 15.0001, 16, 40.5, 1e3, 1e6, 1e12])
def test_stirling_error_is_the_gap_to_stirlings_formula(n: float) -> None:
    """Both branches, and the joint between them at 15, agree with the log-gamma function."""
    with mpmath.workdps(DIGITS):
        m = mpmath.mpf(n)
        exact = mpmath.loggamma(m + 1) - (m + 0.5) * mpmath.log(m) + m
        exact -= mpmath.log(2 * mpmath.pi) / 2

        assert stirling_error(n) == pytest.approx(float(exact), abs=2e-14)


@pytest.mark.parametrize("mean", [1e-3, 0.7, 5.0, 250.0, 1e5])
@pytest.mark.parametrize(
    "ratio", [1e-3, 0.5, 0.81, 0.82, 0.9, 0.999999, 1.0, 1.0001, 1.22, 1.23, 9]
)
def test_deviance_keeps_its_digits_near_the_mean(mean: float, ratio: float) -> None:
    """x log(x/mean) + mean − x to 13 digits on both sides of the series' edge."""
    x = mean * ratio
    with mpmath.workdps(DIGITS):
        exact = x * mpmath.log(mpmath.mpf(x) / mean) + mpmath.mpf(mean) - x

        assert deviance(x, mean) == pytest.approx(float(exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("n", [1.0, 2.5, 20.0, 333.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 0.93, 1.0])
@pytest.mark.parametrize("p", [1e-9, 0.02, 0.5, 0.75, 1 - 1e-9])
def test_binomial_weight_of_real_counts_is_the_gamma_ratio(
    n: float, share: float, p: float
) -> None:
    """Γ(n+1)/(Γ(k+1)Γ(n−k+1)) p^k q^(n−k), also where k is no whole number."""
    k = n * share
    with mpmath.workdps(DIGITS):
        m, j, rate = mpmath.mpf(n), mpmath.mpf(k), mpmath.mpf(p)
        exact = mpmath.gamma(m + 1) / mpmath.gamma(j + 1) / mpmath.gamma(m - j + 1)
        exact *= rate**j * (1 - rate) ** (m - j)

        assert binomial_weight(k, n, p, 1 - p) == pytest.approx(float(exact), rel=1e-11, abs=1e-300)


def test_binomial_weight_at_a_certain_rate() -> None:
    """A rate of 0 or 1 puts all its weight on one count."""
    assert [binomial_weight(k, 3, 0.0, 1.0) for k in range(4)] == [1, 0, 0, 0]
    assert [binomial_weight(k, 3, 1.0, 0.0) for k in range(4)] == [0, 0, 0, 1]


# The incomplete beta function


@pytest.mark.parametrize(("a", "b"), list(product(SHAPES, SHAPES)))
def test_beta_tails_agree_with_mpmath(a: float, b: float) -> None:
    """Both tails keep 12 relative digits, however small they are."""
    for x in POINTS:
        low, high = tail_by_mpmath(x, a, b)

        assert beta_cdf(x, a, b) == pytest.approx(low, rel=1e-12, abs=1e-300), x
        assert beta_sf(x, a, b) == pytest.approx(high, rel=1e-12, abs=1e-300), x


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 5), (9, 3), (20, 21), (50, 2)])
@pytest.mark.parametrize("x", [Fraction(1, 64), Fraction(3, 8), Fraction(1, 2), Fraction(15, 16)])
def test_beta_tails_agree_with_rationals(a: int, b: int, x: Fraction) -> None:
    """At binary rates and whole shapes both tails are rational numbers."""
    exact = cdf_by_fraction(x, a, b)

    assert beta_cdf(float(x), a, b) == pytest.approx(float(exact), rel=1e-13)
    assert beta_sf(float(x), a, b) == pytest.approx(float(1 - exact), rel=1e-13)


def test_a_tail_far_below_machine_precision_keeps_its_digits() -> None:
    """P(K ≥ 150) at n = 200 and p = 1/16 is 1e-131 and right to 12 digits."""
    exact = cdf_by_fraction(Fraction(1, 16), 150, 51)

    assert exact < Fraction(1, 10**120)
    assert beta_cdf(1 / 16, 150, 51) == pytest.approx(float(exact), rel=1e-12, abs=0)


@given(x=st.floats(1e-9, 1 - 1e-9), shape=st.floats(0.01, 500))
def test_beta_closed_forms(x: float, shape: float) -> None:
    """I_x(a, 1) = x^a, I_x(1, b) = 1 − (1−x)^b and I_x(½, ½) = (2/π) arcsin √x."""
    assert beta_cdf(x, shape, 1) == pytest.approx(x**shape, rel=1e-10, abs=1e-300)
    assert beta_cdf(x, 1, shape) == pytest.approx(
        -math.expm1(shape * math.log1p(-x)), rel=1e-10, abs=1e-300
    )
    with mpmath.workdps(DIGITS):
        arcsine = float(2 / mpmath.pi * mpmath.asin(mpmath.sqrt(mpmath.mpf(x))))
    assert beta_cdf(x, 0.5, 0.5) == pytest.approx(arcsine, rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (3, 4), (1e4, 2.5)])
def test_beta_tails_at_and_beyond_the_ends(a: float, b: float) -> None:
    """Below 0 there is nothing, above 1 everything."""
    assert [beta_cdf(x, a, b) for x in (-1.0, 0.0, 1.0, 2.0)] == [0, 0, 1, 1]
    assert [beta_sf(x, a, b) for x in (-1.0, 0.0, 1.0, 2.0)] == [1, 1, 0, 0]


@given(
    a=st.floats(0.25, 3000), b=st.floats(0.25, 3000), x=st.floats(1e-6, 1 - 1e-6), s=st.floats(0, 1)
)
def test_beta_tails_are_probabilities_that_sum_to_one(
    a: float, b: float, x: float, s: float
) -> None:
    """The two tails add up to 1, and the lower one never falls."""
    low, high = beta_cdf(x, a, b), beta_sf(x, a, b)

    assert 0 <= low <= 1 + 1e-12
    assert 0 <= high <= 1 + 1e-12
    assert low + high == pytest.approx(1, abs=1e-11)
    assert beta_cdf(x * s, a, b) <= low + 1e-11


@pytest.mark.parametrize("n", [20_000, 1_000_000, 100_000_000])
@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("sigmas", [-5, -1, 0, 1, 5])
def test_beta_tails_of_very_large_counts(n: int, share: float, sigmas: int) -> None:
    """Counts in the millions agree with scipy, to what the input's own rounding allows."""
    a, b = n * share, n * (1 - share)
    x = max(share / 4, share + sigmas * math.sqrt(share * (1 - share) / n))

    assert beta_cdf(x, a, b) == pytest.approx(special.betainc(a, b, x), rel=1e-8)
    assert beta_sf(x, a, b) == pytest.approx(special.betaincc(a, b, x), rel=1e-8)


# Its inverse


@pytest.mark.parametrize(("a", "b"), list(product(SHAPES, SHAPES)))
def test_beta_quantile_inverts_the_tail(a: float, b: float) -> None:
    """mpmath's tail at the quantile is the probability asked for."""
    for q in (1e-10, 0.001, 0.025, 0.5, 0.95, 0.999):
        x = beta_quantile(q, a, b)
        low, high = tail_by_mpmath(x, a, b)
        # The last bit of x moves the tail by this much: no quantile can do better.
        slack = 4 * math.ulp(x) * math.exp(special.betaln(a, b) * -1) * x ** (a - 1)
        slack *= (1 - x) ** (b - 1) if x < 1 else 1

        assert 0 < x < 1
        if q <= 0.5:
            assert low == pytest.approx(q, rel=1e-11, abs=slack)
        else:
            assert high == pytest.approx(1 - q, rel=1e-10, abs=slack)


@given(q=st.floats(1e-12, 1 - 1e-9), shape=st.floats(0.1, 1000))
def test_beta_quantile_closed_forms(q: float, shape: float) -> None:
    """Quantiles of Beta(a, 1) and Beta(1, b) are powers."""
    low = math.exp(math.log(q) / shape)
    high = -math.expm1(math.log1p(-q) / shape)

    if low > 1e-290:
        assert beta_quantile(q, shape, 1) == pytest.approx(low, rel=1e-9)
    assert beta_quantile(q, 1, shape) == pytest.approx(high, rel=1e-9, abs=1e-300)


@given(q=st.floats(1e-6, 0.5), a=st.floats(0.5, 400), b=st.floats(0.5, 400))
def test_beta_quantile_mirrors(q: float, a: float, b: float) -> None:
    """Swapping the shapes reflects the quantile about one half."""
    assert beta_quantile(q, a, b) == pytest.approx(
        1 - beta_quantile(1 - q, b, a), rel=1e-9, abs=1e-13
    )


@pytest.mark.parametrize("n", [100_000, 10_000_000])
@pytest.mark.parametrize("k", [1, 2, 50, 777])
@pytest.mark.parametrize("q", [0.001, 0.025, 0.5, 0.975])
def test_beta_quantile_of_a_rare_event(n: int, k: int, q: float) -> None:
    """A handful among millions: the forward function of scipy returns the probability."""
    x = beta_quantile(q, k, n - k + 1)

    assert special.betainc(k, n - k + 1, x) == pytest.approx(q, rel=1e-9)


@pytest.mark.parametrize(("a", "b"), [(0.5, 8.5), (3, 98), (200, 200.5)])
def test_beta_quantile_rises_with_the_probability(a: float, b: float) -> None:
    """A larger probability has a larger quantile, across the switch at one half."""
    values = [beta_quantile(i / 200, a, b) for i in range(1, 200)]

    assert all(low < high for low, high in pairwise(values))


# The normal distribution


@pytest.mark.parametrize("x", [-37.0, -8.0, -1.96, -1e-9, 0.0, 0.3, 1.6448536269514722, 9.0, 37.0])
def test_normal_tails_agree_with_mpmath(x: float) -> None:
    """Both tails keep 13 relative digits out to 37 standard deviations."""
    with mpmath.workdps(DIGITS):
        low, high = float(mpmath.ncdf(x)), float(mpmath.ncdf(-mpmath.mpf(x)))

    assert normal_cdf(x) == pytest.approx(low, rel=1e-13, abs=0)
    assert normal_sf(x) == pytest.approx(high, rel=1e-13, abs=0)


@pytest.mark.parametrize("q", [1e-300, 1e-12, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999])
def test_normal_quantile_agrees_with_mpmath(q: float) -> None:
    """The quantile solves Φ(z) = q in 40 digits."""
    with mpmath.workdps(DIGITS):
        guess = NormalDist().inv_cdf(q)
        exact = float(mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z) / mpmath.mpf(q)), guess))

    assert normal_quantile(q) == pytest.approx(exact, rel=1e-14, abs=1e-16)
    assert upper_z(q) == pytest.approx(-exact, rel=1e-14, abs=1e-16)


def test_the_critical_value_of_one_half_is_a_positive_zero() -> None:
    """At alpha = ½ the bound is the point estimate: z is 0, without a sign."""
    assert math.copysign(1, upper_z(0.5)) == 1.0
    assert upper_z(0.5) == 0.0


def test_the_critical_value_of_a_tiny_level_is_not_rounded_away() -> None:
    """1 − 1e-20 is 1 in doubles; the level's own critical value is 9.26."""
    assert normal_sf(upper_z(1e-20)) == pytest.approx(1e-20, rel=1e-12, abs=0)


@given(q=st.floats(1e-12, 1 - 1e-12))
def test_normal_quantile_and_tail_are_inverse(q: float) -> None:
    """Φ(Φ⁻¹(q)) = q."""
    assert normal_cdf(normal_quantile(q)) == pytest.approx(q, rel=1e-12)


@given(x=st.floats(-8, 8))
def test_normal_tails_mirror(x: float) -> None:
    """P(Z ≤ x) = P(Z > −x), and the two sides sum to 1."""
    assert normal_cdf(x) == normal_sf(-x)
    assert normal_cdf(x) + normal_sf(x) == pytest.approx(1, abs=1e-15)
