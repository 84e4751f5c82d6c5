"""Fisher's test of degradation: rationals, scipy, and the boundary where p equals alpha."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact, hypergeom

from trialwise.errors import InvalidArgument
from trialwise.stats.regression_cutoffs import regression_cutoff
from trialwise.stats.toolbox.fisher_decision import fisher_rejects
from trialwise.stats.unconditional import FisherLevel, fisher_corners, fisher_one_sided


@st.composite
def two_runs(draw: st.DrawFn, most: int = 80) -> tuple[int, int, int, int]:
    nb, nt = draw(st.integers(1, most)), draw(st.integers(1, most))
    return draw(st.integers(0, nb)), nb, draw(st.integers(0, nt)), nt


@cache
def exact(k: int, nb: int, x: int, nt: int) -> Fraction:
    """P(X ≤ x) as a sum of hypergeometric terms."""
    s = k + x
    ways = sum(math.comb(s, j) * math.comb(nb + nt - s, nt - j) for j in range(min(x, s) + 1))
    return Fraction(ways, math.comb(nb + nt, nt))


def all_tables(most: int) -> list[tuple[int, int, int, int]]:
    sizes = range(1, most + 1)
    return [
        (k, nb, x, nt) for nb in sizes for nt in sizes for k in range(nb + 1) for x in range(nt + 1)
    ]


# --- the p-value -------------------------------------------------------------------------------


def test_every_small_table_agrees_with_the_hypergeometric_sum() -> None:
    """The p-value is the hypergeometric tail, to 13 digits, in all tables up to 7 by 7."""
    for table in all_tables(7):
        assert fisher_one_sided(*table) == pytest.approx(float(exact(*table)), rel=1e-13)


@given(two_runs())
def test_scipy_agrees(table: tuple[int, int, int, int]) -> None:
    """scipy's Fisher test of the transposed table with alternative "less" is the same number."""
    k, nb, x, nt = table
    expected = fisher_exact([[x, k], [nt - x, nb - k]], alternative="less").pvalue

    assert fisher_one_sided(*table) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "table",
    [(950, 1000, 700, 1000), (4900, 5000, 2000, 2500), (999, 1000, 0, 1000), (60, 100, 50, 100)],
)
def test_tiny_p_values_keep_their_digits(table: tuple[int, int, int, int]) -> None:
    """Far in the tail the relative error stays below 1e-11."""
    k, nb, x, nt = table
    s, total = k + x, nb + nt
    term = mpmath.mpf(math.comb(s, x) * math.comb(total - s, nt - x))
    tail = term
    for j in range(x, 0, -1):
        term = term * j * (total - s - nt + j) / ((s - j + 1) * (nt - j + 1))
        tail += term

    assert fisher_one_sided(*table) == pytest.approx(
        float(tail / math.comb(total, nt)), rel=1e-11, abs=1e-300
    )


@pytest.mark.parametrize(
    "table", [(10, 5000, 4990, 5000), (20, 1000, 980, 1000), (1, 3000, 2999, 3000)]
)
def test_a_vast_improvement_has_a_p_value_of_one(table: tuple[int, int, int, int]) -> None:
    """The upper end, where every single term underflows, is 1 and not 0."""
    k, nb, x, nt = table

    assert fisher_one_sided(*table) == pytest.approx(1.0, abs=1e-12)
    assert hypergeom.cdf(x, nb + nt, k + x, nt) == pytest.approx(1.0)


@given(st.integers(1, 50), st.integers(1, 50), st.data())
def test_nothing_degrades_from_nothing(nb: int, nt: int, data: st.DataObject) -> None:
    """A baseline without successes, or a test without failures, has a p-value of exactly 1."""
    assert fisher_one_sided(0, nb, data.draw(st.integers(0, nt)), nt) == 1.0
    assert fisher_one_sided(data.draw(st.integers(0, nb)), nb, nt, nt) == 1.0


@given(two_runs())
def test_more_successes_raise_the_p_value_and_a_better_baseline_lowers_it(
    table: tuple[int, int, int, int],
) -> None:
    """The p-value orders the outcomes as common sense does."""
    k, nb, x, nt = table
    p = fisher_one_sided(*table)

    assert x == nt or fisher_one_sided(k, nb, x + 1, nt) >= p
    assert k == nb or fisher_one_sided(k + 1, nb, x, nt) <= p


@given(two_runs())
def test_counting_failures_instead_gives_the_same_p_value(table: tuple[int, int, int, int]) -> None:
    """Fewer successes in the test are fewer failures in the baseline."""
    k, nb, x, nt = table

    assert fisher_one_sided(nt - x, nt, nb - k, nb) == pytest.approx(
        fisher_one_sided(*table), rel=1e-11
    )


# --- the decision ------------------------------------------------------------------------------


def test_a_p_value_that_equals_alpha_rejects() -> None:
    """Every small table whose p-value a decimal writes out is rejected at that very decimal."""
    seen = 0
    for table in all_tables(9):
        p = exact(*table)
        if p < 1 and 10**6 % p.denominator == 0:
            seen += 1
            assert fisher_rejects(*table, alpha=float(p))
            assert not fisher_rejects(*table, alpha=float(p) - 1e-6)
    assert seen > 40


def test_the_exact_regression_cutoff_is_the_first_count_not_rejected() -> None:
    """The p-value and the integer rule of `regression` are one rule."""
    for k in range(41):
        cutoff = regression_cutoff(k, 40, 25, rule="fisher").cutoff
        rejected = [fisher_rejects(k, 40, x, 25) for x in range(26)]

        assert cutoff == rejected.index(False)
        assert not any(rejected[cutoff:])


@pytest.mark.parametrize(("nb", "nt"), [(20, 15), (50, 30), (12, 40)])
def test_false_alarms_stay_at_or_below_alpha_at_every_common_rate(nb: int, nt: int) -> None:
    """The size by enumeration is at most alpha: the baseline's own uncertainty is paid for."""
    reject = np.array(
        [[fisher_rejects(k, nb, x, nt) for x in range(nt + 1)] for k in range(nb + 1)]
    )
    sizes = [
        binom.pmf(np.arange(nb + 1), nb, p) @ reject @ binom.pmf(np.arange(nt + 1), nt, p)
        for p in np.linspace(0, 1, 201)
    ]

    assert 0.01 < max(sizes) <= 0.05


# --- the region --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "alpha", [0.5, 0.05, 1e-3, 1e-12, 1e-20, 0.9999, 0.25, float(Fraction(1, 70))]
)
@pytest.mark.parametrize(("nb", "nt"), [(60, 60), (80, 25), (9, 70), (4, 4), (1, 1)])
def test_the_corners_bound_the_rejected_outcomes(alpha: float, nb: int, nt: int) -> None:
    """On every diagonal the corner is the last count whose p-value is at most the level."""
    limit = Fraction(repr(alpha))
    corners = {
        k + x: (k, x, tail) for k, x, tail, _ in fisher_corners(FisherLevel(alpha, nb, nt), nb, nt)
    }
    for s in range(nb + nt + 1):
        counts = range(max(0, s - nb), min(nt, s) + 1)
        rejected = [x for x in counts if exact(s - x, nb, x, nt) <= limit]
        if rejected:
            k, x, tail = corners[s]
            assert (k, x) == (s - rejected[-1], rejected[-1])
            assert tail == pytest.approx(float(exact(k, nb, x, nt)), rel=1e-11)
        else:
            assert s not in corners


def test_a_level_taken_from_an_outcome_includes_every_tie_with_it() -> None:
    """Outcomes with the same rational p-value are on the same side, whatever the doubles say."""
    nb = nt = 30
    for k, x in [(20, 12), (29, 25), (15, 9)]:
        limit = exact(k, nb, x, nt)
        level = FisherLevel.of(k, x, nb, nt)
        ties = 0
        for other in range(nb + 1):
            for count in range(nt):
                p = exact(other, nb, count, nt)
                ties += p == limit
                assert level.admits(float(p), other, count) == (p <= limit)
        assert ties >= 2


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "argument"),
    [
        ((5, 4, 0, 1), "baseline_successes"),
        ((0, 0, 0, 1), "baseline_trials"),
        ((1, 4, 2, 1), "successes"),
        ((1, 4, -1, 1), "successes"),
        ((1, 4, 0, 0), "trials"),
        ((1.0, 4, 0, 1), "baseline_successes"),
        ((1, 4, True, 1), "successes"),
    ],
)
def test_impossible_runs_are_named(table: tuple[Any, ...], argument: str) -> None:
    """The argument at fault is named."""
    with pytest.raises(InvalidArgument) as error:
        fisher_one_sided(*table)

    assert error.value.argument == argument


@pytest.mark.parametrize("alpha", [0, 1, -0.1, math.nan, "0.05", None])
def test_a_level_is_strictly_between_0_and_1(alpha: Any) -> None:
    """No test has a level of 0 or 1."""
    with pytest.raises(InvalidArgument, match="alpha must"):
        fisher_rejects(1, 2, 1, 2, alpha=alpha)
