"""Boschloo's test: rational polynomials, enumeration over rates, scipy, and Fisher as the floor."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, boschloo_exact, hypergeom

from trialwise.errors import InvalidArgument
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.boschloo_rules import boschloo_cutoff, boschloo_size
from trialwise.stats.toolbox.fisher_decision import fisher_rejects
from trialwise.stats.unconditional import boschloo, fisher_one_sided

Cells: TypeAlias = frozenset[tuple[int, int]]
Floats: TypeAlias = npt.NDArray[np.float64]

#: The reported supremum may lie a relative 1e-11 above the true one; the rest is rounding.
CERTIFIED = 2e-11


@st.composite
def two_runs(draw: st.DrawFn, most: int = 30) -> tuple[int, int, int, int]:
    nb, nt = draw(st.integers(1, most)), draw(st.integers(1, most))
    return draw(st.integers(0, nb)), nb, draw(st.integers(0, nt)), nt


@cache
def fisher_exactly(k: int, nb: int, x: int, nt: int) -> Fraction:
    s = k + x
    ways = sum(math.comb(s, j) * math.comb(nb + nt - s, nt - j) for j in range(min(x, s) + 1))
    return Fraction(ways, math.comb(nb + nt, nt))


def cells(nb: int, nt: int, level: Fraction) -> Cells:
    """Every outcome whose Fisher p-value is at most the level, in rationals."""
    return frozenset(
        (k, x)
        for k in range(nb + 1)
        for x in range(nt + 1)
        if fisher_exactly(k, nb, x, nt) <= level
    )


def probability(region: Cells, nb: int, nt: int, pb: Fraction, pt: Fraction) -> Fraction:
    """P(region) with each run at its own rate, in rationals."""
    return sum(
        (
            math.comb(nb, k) * pb**k * (1 - pb) ** (nb - k)
            * math.comb(nt, x) * pt**x * (1 - pt) ** (nt - x)
            for k, x in region
        ),
        start=Fraction(0),
    )  # fmt: skip


def polynomial_supremum(region: Cells, nb: int, nt: int) -> float:
    """The maximum over [0, 1] of Σ C(n_b, k) C(n_t, x) p^s (1−p)^(N−s), at its critical points."""
    size = nb + nt
    by_total = [0] * (size + 1)
    for k, x in region:
        by_total[k + x] += math.comb(nb, k) * math.comb(nt, x)
    power = [0] * (size + 1)
    for s, ways in enumerate(by_total):
        for j in range(size - s + 1):
            power[s + j] += ways * math.comb(size - s, j) * (-1) ** j
    polynomial = np.polynomial.Polynomial([float(c) for c in power])
    roots = np.asarray(polynomial.deriv().roots(), dtype=np.complex128)
    real = roots.real[np.abs(roots.imag) < 1e-6]
    rates = [0.0, 1.0, *real[(real > 0) & (real < 1)].tolist()]

    def value(rate: float) -> float:
        return sum(w * rate**s * (1 - rate) ** (size - s) for s, w in enumerate(by_total))

    return max(value(rate) for rate in rates)


@cache
def region_by_scipy(table: tuple[int, int, int, int]) -> Floats:
    k, nb, x, nt = table
    kk, xx = np.meshgrid(np.arange(nb + 1), np.arange(nt + 1), indexing="ij")
    p = hypergeom.cdf(xx, nb + nt, kk + xx, nt)
    region: Floats = (p <= p[k, x] * (1 + 1e-9)).astype(np.float64)
    return region


def rejection_curve(table: tuple[int, int, int, int], rates: Floats) -> Floats:
    """P(Fisher p ≤ the observed one) at each common rate, from scipy's tables."""
    _, nb, _, nt = table
    baseline = binom.pmf(np.arange(nb + 1)[:, None], nb, rates)
    test = binom.pmf(np.arange(nt + 1)[:, None], nt, rates)
    curve: Floats = (baseline * (region_by_scipy(table) @ test)).sum(axis=0)
    return curve


# --- the p-value -------------------------------------------------------------------------------


@pytest.mark.parametrize(("nb", "nt"), [(1, 1), (2, 3), (4, 4), (5, 3), (1, 7), (6, 5)])
def test_every_small_table_attains_the_polynomials_maximum(nb: int, nt: int) -> None:
    """In every table the p-value is the maximum of the exact rejection polynomial."""
    for k in range(1, nb + 1):
        for x in range(nt):
            region = cells(nb, nt, fisher_exactly(k, nb, x, nt))
            expected = polynomial_supremum(region, nb, nt)

            assert boschloo(k, nb, x, nt).p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "table",
    [
        (19, 20, 10, 15),
        (40, 40, 55, 60),
        (95, 100, 86, 100),
        (99, 100, 40, 50),
        (5, 200, 0, 150),
        (190, 200, 120, 150),
        (3, 4, 100, 200),
        (150, 200, 2, 4),
        (100, 100, 3, 100),
    ],
)
def test_the_p_value_bounds_every_rate_and_is_attained(table: tuple[int, int, int, int]) -> None:
    """No rate on a fine grid exceeds it, and at the nuisance rate it is reached to ten digits."""
    result = boschloo(*table)
    grid = np.sin(np.linspace(0, np.pi / 2, 4001)) ** 2

    assert rejection_curve(table, grid).max() <= result.p_value * (1 + 1e-12)
    assert isinstance(result.nuisance_rate, float)
    attained = rejection_curve(table, np.array([result.nuisance_rate]))[0]
    assert attained == pytest.approx(result.p_value, rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(two_runs(most=25))
def test_a_polished_search_over_rates_finds_the_same_supremum(
    table: tuple[int, int, int, int],
) -> None:
    """A fine grid with a local search around its best point reproduces the certified bound."""
    k, _, x, nt = table
    result = boschloo(*table)
    if k == 0 or x == nt:
        return
    grid = np.linspace(0, 1, 801)
    best = int(rejection_curve(table, grid).argmax())
    found = minimize_scalar(
        lambda p: -rejection_curve(table, np.array([p]))[0],
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, 800)]),
        method="bounded",
        options={"xatol": 1e-12},
    )

    assert result.p_value == pytest.approx(-found.fun, rel=1e-9)


@pytest.mark.parametrize(
    "table", [(9, 10, 5, 10), (12, 12, 8, 11), (7, 9, 4, 15), (30, 32, 20, 28), (18, 20, 5, 9)]
)
def test_scipy_agrees(table: tuple[int, int, int, int]) -> None:
    """scipy searches from sampled rates, so it can only fall short of the supremum."""
    k, nb, x, nt = table
    expected = boschloo_exact([[x, k], [nt - x, nb - k]], alternative="less", n=64)
    result = boschloo(*table)

    assert result.p_value == pytest.approx(float(expected.pvalue), rel=1e-6)
    assert result.p_value >= float(expected.pvalue) * (1 - 1e-12)
    assert result.fisher_p_value == pytest.approx(float(expected.statistic), rel=1e-9)


def test_one_trial_each_is_worth_a_quarter() -> None:
    """p(1 − p) is at most ¼, at p = ½."""
    result = boschloo(1, 1, 0, 1)

    assert result.p_value == pytest.approx(0.25, rel=CERTIFIED)
    assert result.nuisance_rate == pytest.approx(0.5, abs=1e-6)


def test_a_clean_sweep_has_a_closed_form() -> None:
    """n successes then n failures have probability (p(1−p))ⁿ, at most 4⁻ⁿ; Fisher: 1/C(2n, n)."""
    for n in (2, 5, 20, 100):
        result = boschloo(n, n, 0, n)

        assert result.p_value == pytest.approx(4.0**-n, rel=1e-10)
        assert result.fisher_p_value == pytest.approx(1 / math.comb(2 * n, n), rel=1e-11)


@settings(max_examples=60, deadline=None)
@given(two_runs())
def test_it_never_exceeds_fishers_p_value(table: tuple[int, int, int, int]) -> None:
    """Everything Fisher rejects is rejected; the other fields repeat the question."""
    result = boschloo(*table)

    assert 0 < result.p_value <= result.fisher_p_value == fisher_one_sided(*table)
    assert (
        result.baseline_successes,
        result.baseline_trials,
        result.successes,
        result.trials,
    ) == table


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(two_runs())
def test_it_orders_outcomes_as_fisher_does(table: tuple[int, int, int, int]) -> None:
    """More successes raise the p-value, and a better baseline lowers it."""
    k, nb, x, nt = table
    p = boschloo(*table).p_value

    assert x == nt or boschloo(k, nb, x + 1, nt).p_value >= p * (1 - CERTIFIED)
    assert k == nb or boschloo(k + 1, nb, x, nt).p_value <= p * (1 + CERTIFIED)


@settings(max_examples=60, deadline=None)
@given(two_runs())
def test_counting_failures_instead_gives_the_same_p_value(table: tuple[int, int, int, int]) -> None:
    """Success and failure may be swapped if the runs are, at the mirrored nuisance rate."""
    k, nb, x, nt = table

    assert boschloo(nt - x, nt, nb - k, nb).p_value == pytest.approx(
        boschloo(*table).p_value, rel=CERTIFIED
    )


@pytest.mark.parametrize("table", [(0, 9, 0, 5), (0, 9, 3, 5), (7, 9, 5, 5)])
def test_where_every_outcome_is_as_extreme_the_rate_is_undefined(
    table: tuple[int, int, int, int],
) -> None:
    """The p-value is 1 at every rate, so no rate is the worst."""
    result = boschloo(*table)

    assert result.p_value == 1.0
    assert isinstance(result.nuisance_rate, Undefined)


def test_a_p_value_beyond_doubles_is_bounded_by_fishers() -> None:
    """Where products underflow, Fisher's p-value is reported: an upper bound all the same."""
    result = boschloo(5000, 5000, 0, 5000)

    assert result.p_value == result.fisher_p_value < 1e-280
    assert isinstance(result.nuisance_rate, Undefined)


# --- the rule ----------------------------------------------------------------------------------


@pytest.mark.slow("15-10", "10-20")
@pytest.mark.parametrize(("nb", "nt"), [(8, 8), (15, 10), (10, 20), (3, 12)])
def test_the_cutoff_is_the_first_count_that_is_not_rejected(nb: int, nt: int) -> None:
    """PASS iff K ≥ cutoff is PASS iff the p-value exceeds alpha, at every baseline count."""
    for k in range(nb + 1):
        p_values = [boschloo(k, nb, x, nt).p_value for x in range(nt + 1)]
        for alpha in (0.01, 0.05, 0.2, 0.6):
            accepted = [p > alpha for p in p_values]

            assert boschloo_cutoff(k, nb, nt, alpha=alpha) == accepted.index(True)


@pytest.mark.slow("60-40")
@pytest.mark.parametrize(("nb", "nt"), [(60, 40), (25, 25)])
def test_the_cutoff_is_never_below_fishers(nb: int, nt: int) -> None:
    """The rule is at least as strict everywhere, and stricter somewhere."""
    pairs = [
        (regression_cutoff(k, nb, nt, rule="fisher").cutoff or 0, boschloo_cutoff(k, nb, nt))
        for k in range(nb + 1)
    ]

    assert all(fisher <= sharper for fisher, sharper in pairs)
    assert any(fisher < sharper for fisher, sharper in pairs)
    assert [sharper for _, sharper in pairs] == sorted(sharper for _, sharper in pairs)


@pytest.mark.parametrize(
    ("nb", "nt", "alpha"), [(5, 5, 0.05), (7, 4, 0.1), (4, 9, 0.05), (6, 6, 0.3)]
)
def test_the_size_is_the_largest_attainable_p_value_within_alpha(
    nb: int, nt: int, alpha: float
) -> None:
    """Enumerating every outcome's exact polynomial gives the same size."""
    attainable = {
        polynomial_supremum(cells(nb, nt, fisher_exactly(k, nb, x, nt)), nb, nt)
        for k in range(1, nb + 1)
        for x in range(nt)
    }
    expected = max((p for p in attainable if p <= alpha), default=0.0)

    assert boschloo_size(nb, nt, alpha=alpha) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow("50-50")
@pytest.mark.parametrize(("nb", "nt"), [(30, 20), (20, 45), (50, 50)])
def test_false_alarms_stay_at_or_below_alpha_and_use_more_of_it_than_fisher(
    nb: int, nt: int
) -> None:
    """The size of the cutoffs, enumerated over rates, is `boschloo_size`, within alpha."""
    grid = np.sin(np.linspace(0, np.pi / 2, 2001)) ** 2
    baseline = binom.pmf(np.arange(nb + 1)[:, None], nb, grid)

    def worst(cutoffs: list[int]) -> float:
        below = binom.cdf(np.array(cutoffs)[:, None] - 1, nt, grid)
        return float((baseline * below).sum(axis=0).max())

    sharper = worst([boschloo_cutoff(k, nb, nt) for k in range(nb + 1)])
    fisher = worst(
        [[fisher_rejects(k, nb, x, nt) for x in range(nt + 1)].index(False) for k in range(nb + 1)]
    )
    size = boschloo_size(nb, nt)

    assert size == pytest.approx(sharper, rel=1e-4)
    assert sharper <= size * (1 + 1e-12)
    assert fisher < size <= 0.05


@pytest.mark.slow
def test_its_power_is_fishers_or_more_exactly() -> None:
    """At every pair of rates, in rationals, Boschloo detects at least what Fisher detects."""
    nb, nt, alpha = 12, 10, Fraction(1, 20)
    fisher = cells(nb, nt, alpha)
    sharper = frozenset(
        (k, x) for k in range(nb + 1) for x in range(boschloo_cutoff(k, nb, nt, alpha=0.05))
    )
    rates = [Fraction(i, 20) for i in range(21)]
    gains = [
        probability(sharper, nb, nt, pb, pt) - probability(fisher, nb, nt, pb, pt)
        for pb in rates
        for pt in rates
    ]

    assert fisher < sharper
    assert min(gains) >= 0
    assert max(gains) > Fraction(1, 20)
    assert max(probability(sharper, nb, nt, p, p) for p in rates) <= alpha


def test_a_level_that_is_met_exactly_rejects() -> None:
    """One success, then one failure, is rejected at ¼ and at no smaller level."""
    assert boschloo_cutoff(1, 1, 1, alpha=0.25) == 1
    assert boschloo_cutoff(1, 1, 1, alpha=0.2499) == 0
    assert boschloo_size(1, 1, alpha=0.25) == pytest.approx(0.25, rel=CERTIFIED)


def test_without_baseline_successes_nothing_is_rejected() -> None:
    """A baseline without successes cannot be degraded from."""
    assert boschloo_cutoff(0, 50, 30, alpha=0.5) == 0


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "argument"),
    [
        ((5, 4, 0, 1), "baseline_successes"),
        ((0, 0, 0, 1), "baseline_trials"),
        ((1, 4, 2, 1), "successes"),
        ((1, 4, 0, 0), "trials"),
        ((1, 4, 0.5, 1), "successes"),
    ],
)
def test_impossible_runs_are_named(table: tuple[Any, ...], argument: str) -> None:
    """The argument at fault is named."""
    with pytest.raises(InvalidArgument) as error:
        boschloo(*table)

    assert error.value.argument == argument


@pytest.mark.parametrize("alpha", [0, 1, math.nan, True])
def test_a_level_is_strictly_between_0_and_1(alpha: Any) -> None:
    """No rule has a level of 0 or 1."""
    with pytest.raises(InvalidArgument, match="alpha must"):
        boschloo_cutoff(1, 2, 2, alpha=alpha)
    with pytest.raises(InvalidArgument, match="alpha must"):
        boschloo_size(2, 2, alpha=alpha)


def test_sizes_of_the_rule_are_checked() -> None:
    """Both runs need a trial."""
    with pytest.raises(InvalidArgument, match="baseline_trials must"):
        boschloo_size(0, 2)
    with pytest.raises(InvalidArgument, match="trials must"):
        boschloo_cutoff(1, 2, 0)
