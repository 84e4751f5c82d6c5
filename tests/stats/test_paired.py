"""Paired comparisons: exact tails in rationals, published examples, coverage by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln
from scipy.stats import binomtest, norm
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import proportion_confint

from trialwise.errors import InvalidArgument
from trialwise.stats.paired import (
    PairCounts,
    minimum_discordant,
    paired_difference_interval,
    pairs_from_outcomes,
    sign_test,
)
from trialwise.stats.result_types import Interval
from trialwise.stats.toolbox.mcnemar_forms import (
    ALTERNATIVES,
    METHODS,
    Alternative,
    Method,
    mcnemar,
)
from trialwise.stats.toolbox.other_paired_intervals import other_paired_interval

INTERVAL_METHODS = ("tango", "newcombe", "wald")
counts = st.integers(0, 60)
tables = st.tuples(counts, counts, counts, counts).filter(any)
methods = st.sampled_from(METHODS)
alternatives = st.sampled_from(ALTERNATIVES)
interval_methods = st.sampled_from(INTERVAL_METHODS)

#: Response before and after consolidation (Cavo et al. 2012), the paired example of Fagerland,
#: Lydersen & Laake, "Statistical Analysis of Contingency Tables" (2017), chapter 8.


def mid_p(only_a: Any, only_b: Any, *, alternative: Any = "two-sided") -> float:
    return mcnemar(only_a, only_b, method="mid-p", alternative=alternative).p_value


CAVO = (59, 6, 16, 80)


def interval_by(method: str, *table: int, confidence: float = 0.95) -> Interval:
    both, only_a, only_b, neither = table
    if method == "tango":
        return paired_difference_interval(both, only_a, only_b, neither, confidence=confidence)
    other: Any = method
    return other_paired_interval(both, only_a, only_b, neither, confidence=confidence, method=other)


def half_pmf(k: int, n: int) -> Fraction:
    return Fraction(math.comb(n, k), 2**n)


# --- McNemar -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "p_value"),
    [
        ("exact", 0.052479),
        ("mid-p", 0.034690),
        ("chi-square", 0.033006),
        ("chi-square-corrected", 0.055009),
    ],
)
def test_mcnemar_reproduces_a_published_example(method: Method, p_value: float) -> None:
    """Four p-values for 6 against 16 discordant pairs, to the six decimals printed."""
    assert round(mcnemar(6, 16, method=method).p_value, 6) == p_value


@pytest.mark.parametrize(
    ("only_a", "only_b", "p_value"), [(3, 0, 0.25), (5, 0, 0.0625), (6, 0, 0.03125)]
)
def test_mcnemar_golden_values_are_exact(only_a: int, only_b: int, p_value: float) -> None:
    """Powers of two come out as such: 8 of 10 against 5 of 10 with 3 discordant is p = 0.25."""
    assert mcnemar(only_a, only_b).p_value == p_value
    assert mcnemar(9, 2).p_value == pytest.approx(0.06543, abs=5e-6)


@given(counts, counts)
def test_exact_mcnemar_agrees_with_scipy(only_a: int, only_b: int) -> None:
    """Binomial tests at one half, two-sided and one-sided."""
    assume(only_a + only_b > 0)
    sides: dict[Alternative, str] = {
        "two-sided": "two-sided",
        "a-better": "greater",
        "b-better": "less",
    }
    for alternative, name in sides.items():
        expected = binomtest(only_a, only_a + only_b, 0.5, alternative=name).pvalue
        ours = mcnemar(only_a, only_b, method="exact", alternative=alternative)
        assert ours.p_value == pytest.approx(expected, rel=1e-12)
        assert ours.statistic is None


def test_exact_mcnemar_with_many_pairs_agrees_with_rationals() -> None:
    """Past the switch to the beta function the tail is the same: 1,040 against 960."""
    expected = 2 * float(sum(half_pmf(k, 2000) for k in range(1040, 2001)))

    assert mcnemar(1040, 960, method="exact").p_value == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("only_a", "only_b"), [(6, 16), (40, 20), (1, 0), (12, 13), (30, 31)])
def test_mcnemar_agrees_with_statsmodels(only_a: int, only_b: int) -> None:
    """Exact, chi-square and corrected chi-square, with their statistics."""
    table = [[10, only_a], [only_b, 10]]
    exact = statsmodels_mcnemar(table, exact=True)
    plain = statsmodels_mcnemar(table, exact=False, correction=False)
    corrected = statsmodels_mcnemar(table, exact=False, correction=True)

    assert mcnemar(only_a, only_b, method="exact").p_value == pytest.approx(exact.pvalue)
    for method, theirs in (("chi-square", plain), ("chi-square-corrected", corrected)):
        chosen: Any = method
        ours = mcnemar(only_a, only_b, method=chosen)
        assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)


def test_the_continuity_correction_never_overshoots() -> None:
    """With as many pairs for A as for B there is nothing to correct: statistic 0, p = 1."""
    result = mcnemar(20, 20, method="chi-square-corrected")

    assert result.statistic == 0
    assert result.p_value == 1


@given(counts, counts)
def test_one_sided_chi_square_is_the_normal_tail(only_a: int, only_b: int) -> None:
    """z = (a − b)/√n, less 1/√n when corrected, referred to the upper tail."""
    n = only_a + only_b
    assume(n > 0)
    plain = mcnemar(only_a, only_b, method="chi-square", alternative="a-better")
    corrected = mcnemar(only_a, only_b, method="chi-square-corrected", alternative="b-better")

    assert plain.p_value == pytest.approx(norm.sf((only_a - only_b) / math.sqrt(n)), rel=1e-12)
    assert corrected.p_value == pytest.approx(
        norm.sf((only_b - only_a - 1) / math.sqrt(n)), rel=1e-12
    )


def test_mcnemar_is_exact_unless_asked_otherwise() -> None:
    """20 against 11: P(Binomial(31, ½) ≥ 20), doubled; the level stays below 5 % at 26 pairs."""
    tail = Fraction(sum(math.comb(31, j) for j in range(20, 32)), 2**31)
    rejects = [a for a in range(27) if mcnemar(a, 26 - a).p_value <= 0.05]

    assert mcnemar(20, 11).p_value == pytest.approx(float(2 * tail))
    assert sum(math.comb(26, a) for a in rejects) / 2**26 <= 0.05


def test_auto_switches_at_25_discordant_pairs() -> None:
    """Exact below, chi-square from there on; the method used is reported."""
    assert mcnemar(14, 10, method="auto").method == "exact"
    assert mcnemar(15, 10, method="auto").method == "chi-square"
    assert mcnemar(15, 10, method="auto") == mcnemar(15, 10, method="chi-square")
    assert mcnemar(15, 10).discordant == 25


@given(st.sampled_from(("auto", *METHODS)), alternatives)
def test_without_discordant_pairs_nothing_is_shown(method: Any, alternative: Alternative) -> None:
    """p = 1 and no statistic."""
    result = mcnemar(0, 0, method=method, alternative=alternative)

    assert result.p_value == 1
    assert result.statistic is None
    assert result.discordant == 0


def rejection_rate(method: Method, n: int, alternative: Alternative, alpha: float) -> float:
    """The chance of p ≤ alpha with n discordant pairs, if A and B are equally good."""
    return float(
        sum(
            half_pmf(k, n)
            for k in range(n + 1)
            if mcnemar(k, n - k, method=method, alternative=alternative).p_value <= alpha
        )
    )


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_exact_test_never_exceeds_alpha(alternative: Alternative) -> None:
    """Its false-rejection rate for every number of discordant pairs up to 60, by enumeration."""
    assert all(
        rejection_rate("exact", n, alternative, alpha) <= alpha
        for n in range(61)
        for alpha in (0.01, 0.05, 0.1)
    )


def test_the_chi_square_test_exceeds_alpha_past_the_switch() -> None:
    """The convention is not a guarantee: 2 P(X ≤ 8 | 26) = 0.0755, as the docstring warns."""
    tail = float(2 * sum(half_pmf(k, 26) for k in range(9)))

    assert rejection_rate("chi-square", 26, "two-sided", 0.05) == pytest.approx(tail, rel=1e-12)
    assert round(tail, 4) == 0.0755


def test_the_mid_p_test_may_exceed_alpha_given_the_discordant_pairs() -> None:
    """Five to nothing has mid-p 1/32 and happens with chance 1/16; the exact test, p = 1/16, never
    rejects there at 0.05."""
    assert mid_p(5, 0) == 1 / 32
    assert rejection_rate("mid-p", 5, "two-sided", 0.05) == 2 / 32
    assert rejection_rate("exact", 5, "two-sided", 0.05) == 0


@given(st.integers(1, 40), alternatives)
def test_the_mid_p_value_averages_one_half(n: int, alternative: Alternative) -> None:
    """Under the null its mean is exactly 1/2; the exact p-value's is above."""
    mean = math.fsum(
        float(half_pmf(k, n)) * mid_p(k, n - k, alternative=alternative) for k in range(n + 1)
    )

    assert mean == pytest.approx(0.5, rel=1e-12)


@given(counts, counts, alternatives)
def test_mid_p_is_half_the_weight_of_the_observed(
    only_a: int, only_b: int, alternative: Alternative
) -> None:
    """P(more extreme) + ½ P(as extreme), in rationals over all outcomes."""
    n = only_a + only_b
    assume(n > 0)
    sign = {"two-sided": 0, "a-better": 1, "b-better": -1}[alternative]

    def extremity(k: int) -> int:
        return sign * k if sign else abs(2 * k - n)

    seen = extremity(only_a)
    more = sum(half_pmf(k, n) for k in range(n + 1) if extremity(k) > seen)
    same = sum(half_pmf(k, n) for k in range(n + 1) if extremity(k) == seen)

    assert mid_p(only_a, only_b, alternative=alternative) == pytest.approx(
        float(more + same / 2), rel=1e-13
    )


@given(counts, counts, methods)
def test_swapping_the_conditions_swaps_the_sides(only_a: int, only_b: int, method: Method) -> None:
    """Two-sided p-values do not change; one-sided ones change places."""

    def p(a: int, b: int, alternative: Alternative) -> float:
        return mcnemar(a, b, method=method, alternative=alternative).p_value

    assert p(only_a, only_b, "two-sided") == p(only_b, only_a, "two-sided")
    assert p(only_a, only_b, "a-better") == p(only_b, only_a, "b-better")


@given(counts, counts, methods)
def test_evidence_for_a_grows_with_its_pairs(only_a: int, only_b: int, method: Method) -> None:
    """Turning one pair from B's to A's never raises the p-value for "A is better"."""
    assume(only_b > 0)
    before = mcnemar(only_a, only_b, method=method, alternative="a-better").p_value
    after = mcnemar(only_a + 1, only_b - 1, method=method, alternative="a-better").p_value

    assert 0 <= after <= before <= 1


@given(counts, counts)
def test_mid_p_lies_below_the_exact_p(only_a: int, only_b: int) -> None:
    """Half a weight is less than a whole one, for every alternative."""
    for alternative in ALTERNATIVES:
        exact = mcnemar(only_a, only_b, method="exact", alternative=alternative).p_value
        assert mid_p(only_a, only_b, alternative=alternative) <= exact


# --- sign test ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wins", "losses", "alternative", "p_value"),
    [
        (5, 0, "greater", 1 / 32),
        (5, 0, "two-sided", 1 / 16),
        (6, 0, "two-sided", 1 / 32),
        (7, 1, "two-sided", 18 / 256),
        (9, 2, "two-sided", 134 / 2048),
        (0, 5, "less", 1 / 32),
        (0, 5, "greater", 1.0),
        (0, 0, "two-sided", 1.0),
    ],
)
def test_sign_test_golden_values(wins: int, losses: int, alternative: Any, p_value: float) -> None:
    """5W0L .03125 one-sided; 5W0L .0625, 6W0L .03125, 7W1L .0703 and 9W2L .0654 two-sided."""
    assert sign_test(wins, losses, alternative=alternative).p_value == p_value


@given(counts, counts)
def test_the_sign_test_is_the_exact_mcnemar_test(wins: int, losses: int) -> None:
    """Wins and losses are discordant pairs."""
    assert sign_test(wins, losses).p_value == mcnemar(wins, losses, method="exact").p_value


@pytest.mark.parametrize("alpha", [0.9, 0.5, 0.25, 0.1, 0.05, 0.03125, 0.01, 0.001, 1e-6])
def test_fewer_pairs_than_the_minimum_cannot_reject(alpha: float) -> None:
    """A clean sweep of `minimum_discordant` rejects, and one pair fewer does not."""
    two = minimum_discordant(alpha)
    one = minimum_discordant(alpha, alternative="one-sided")

    assert sign_test(two, 0).p_value <= alpha < sign_test(two - 1, 0).p_value
    assert sign_test(one, 0, alternative="greater").p_value <= alpha
    assert one == 1 or alpha < sign_test(one - 1, 0, alternative="greater").p_value


def test_the_minimum_at_five_percent() -> None:
    """5 one-sided, 6 two-sided; and levels of all sizes have one."""
    assert minimum_discordant(0.05, alternative="one-sided") == 5
    assert minimum_discordant(0.05, alternative="two-sided") == 6
    assert minimum_discordant(5e-324, alternative="one-sided") == 1074


# --- the table ---------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_outcomes_are_counted_in_pairs(pairs: list[tuple[bool, bool]]) -> None:
    """The four cells add up to the pairs and give back both conditions' successes."""
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    table = pairs_from_outcomes(a, b)

    assert table.pairs == len(pairs)
    assert table.both + table.only_a == sum(a)
    assert table.both + table.only_b == sum(b)
    assert table.discordant == sum(x != y for x, y in pairs)


def test_a_known_table() -> None:
    """One pair of each kind, and a second that only A passed."""
    table = pairs_from_outcomes([True, True, False, False, True], [True, False, True, False, False])

    assert table == PairCounts(both=1, only_a=2, only_b=1, neither=1)


# --- the difference ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "table", "confidence", "low", "high"),
    [
        ("tango", CAVO, 0.95, -0.1240, -0.0054),
        ("newcombe", CAVO, 0.95, -0.1186, -0.0046),
        ("wald", CAVO, 0.95, -0.1184, -0.0058),
        # scoreci.mp(25, 28, 618) of the R package PropCIs, at 90 %.
        ("tango", (0, 28, 25, 565), 0.90, -0.0148, 0.0247),
    ],
)
def test_intervals_reproduce_published_examples(
    method: str, table: tuple[int, int, int, int], confidence: float, low: float, high: float
) -> None:
    """To the four decimals printed."""
    interval = interval_by(method, *table, confidence=confidence)

    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def brute_force_score(delta: float, a: int, b: int, n: int) -> float:
    """Tango's z with the nuisance rate found by maximising the likelihood numerically."""

    def minus_log_likelihood(q: float) -> float:
        cells = ((a, q + delta), (b, q), (n - a - b, 1 - 2 * q - delta))
        return -sum(k * math.log(max(p, 1e-300)) for k, p in cells if k)

    bounds = (max(0.0, -delta), (1 - delta) / 2)
    best = minimize_scalar(
        minus_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-13}
    )
    return float((a - b - n * delta) / math.sqrt(n * (2 * best.x + delta * (1 - delta))))


@pytest.mark.parametrize(
    ("a", "b", "n"), [(6, 16, 161), (1, 7, 21), (12, 2, 50), (5, 4, 10), (30, 29, 100), (3, 2, 400)]
)
def test_tango_inverts_the_score_test(a: int, b: int, n: int) -> None:
    """Both ends, against a root search over a numerically profiled likelihood."""
    z = norm.ppf(0.975)
    middle = (a - b) / n
    low = brentq(lambda d: brute_force_score(d, a, b, n) - z, -1 + 1e-6, middle)
    high = brentq(lambda d: brute_force_score(d, a, b, n) + z, middle, 1 - 1e-6)

    interval = paired_difference_interval(n - a - b, a, b, 0)

    assert interval.low == pytest.approx(low, abs=1e-6)
    assert interval.high == pytest.approx(high, abs=1e-6)


@given(st.integers(1, 500), st.floats(0.5, 0.999))
def test_tango_without_discordant_pairs_has_a_closed_form(n: int, confidence: float) -> None:
    """±z²/(n + z²): pairs that all agree leave a difference in doubt."""
    z = norm.ppf((1 + confidence) / 2)
    expected = z * z / (n + z * z)

    interval = paired_difference_interval(n, 0, 0, 0, confidence=confidence)

    assert interval.high == pytest.approx(expected, rel=1e-9)
    assert interval.low == -interval.high


@given(tables)
def test_tango_excludes_zero_exactly_when_mcnemar_rejects(table: tuple[int, ...]) -> None:
    """The interval and the uncorrected chi-square test are one decision."""
    both, only_a, only_b, neither = table
    p_value = mcnemar(only_a, only_b, method="chi-square").p_value
    assume(abs(p_value - 0.05) > 1e-9)

    assert (0 in paired_difference_interval(both, only_a, only_b, neither)) == (p_value > 0.05)


@given(tables.filter(lambda table: min(table) > 0))
def test_newcombe_is_wilson_squared_and_added(table: tuple[int, int, int, int]) -> None:
    """Method 10 written out over statsmodels' Wilson intervals."""
    e, f, g, h = table
    n = sum(table)
    one, two = (e + f) / n, (e + g) / n
    low1, high1 = proportion_confint(e + f, n, method="wilson")
    low2, high2 = proportion_confint(e + g, n, method="wilson")
    excess: float = e * h - f * g
    if excess > 0:
        excess = max(excess - n / 2, 0)
    phi = excess / math.sqrt((e + f) * (g + h) * (e + g) * (f + h))
    below = (one - low1) ** 2 - 2 * phi * (one - low1) * (high2 - two) + (high2 - two) ** 2
    above = (high1 - one) ** 2 - 2 * phi * (high1 - one) * (two - low2) + (two - low2) ** 2

    low, high = other_paired_interval(*table, method="newcombe")

    assert low == pytest.approx(one - two - math.sqrt(below), abs=1e-12)
    assert high == pytest.approx(one - two + math.sqrt(above), abs=1e-12)


@given(tables)
def test_wald_is_the_textbook_formula(table: tuple[int, int, int, int]) -> None:
    """d ± z √((a + b − (a − b)²/n))/n, labelled for what it is."""
    _, a, b, _ = table
    n = sum(table)
    half = norm.ppf(0.975) * math.sqrt(max(a + b - (a - b) ** 2 / n, 0)) / n

    interval = other_paired_interval(*table, method="wald")

    assert interval.low == pytest.approx((a - b) / n - half, abs=1e-7)
    assert interval.high == pytest.approx((a - b) / n + half, abs=1e-7)
    assert "pedagogical" in interval.method


@given(tables, interval_methods)
def test_swapping_the_conditions_negates_the_interval(
    table: tuple[int, int, int, int], method: str
) -> None:
    """B minus A is the mirror image, to the last bit for Tango."""
    both, only_a, only_b, neither = table
    straight = interval_by(method, both, only_a, only_b, neither)
    swapped = interval_by(method, both, only_b, only_a, neither)

    if method == "tango":
        assert (swapped.low, swapped.high) == (-straight.high, -straight.low)
    assert swapped.low == pytest.approx(-straight.high, abs=1e-12)
    assert swapped.high == pytest.approx(-straight.low, abs=1e-12)


@given(tables, interval_methods, st.floats(0.5, 0.98))
def test_intervals_hold_the_estimate_and_are_nested(
    table: tuple[int, int, int, int], method: str, confidence: float
) -> None:
    """More confidence, wider interval, always around the observed difference and in [−1, 1]."""
    _, a, b, _ = table
    inner = interval_by(method, *table, confidence=confidence)
    outer = interval_by(method, *table, confidence=confidence + 0.01)
    observed, slack = (a - b) / sum(table), 1e-12

    assert outer.low <= inner.low + slack
    assert inner.low <= observed + slack
    assert observed <= inner.high + slack
    assert inner.high <= outer.high + slack
    assert method == "wald" or (outer.low >= -1 and outer.high <= 1)
    assert inner.confidence == confidence


def test_a_clean_sweep_reaches_the_end_of_the_scale() -> None:
    """If only A ever passes, 1 is in the interval and certainty is not claimed."""
    for method in ("tango", "newcombe"):
        low, high = interval_by(method, 0, 10, 0, 0)
        assert high == 1
        assert 0 < low < 1


# --- coverage ----------------------------------------------------------------------------------


@cache
def coverages(pairs: int, method: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Exact 95 % coverage at every table of positive cell probabilities in twentieths."""
    cells = np.array(
        [
            (e, f, g, pairs - e - f - g)
            for e in range(pairs + 1)
            for f in range(pairs + 1 - e)
            for g in range(pairs + 1 - e - f)
        ]
    )
    ends: dict[tuple[int, ...], tuple[float, float]] = {}
    rows = []
    for e, f, g, h in cells.tolist():
        # Only Newcombe's interval looks at the concordant pairs.
        key = (e, f, g) if method == "newcombe" else (f, g)
        if key not in ends:
            low, high = interval_by(method, e, f, g, h)
            ends[key] = (low, high)
        rows.append(ends[key])
    limits = np.array(rows)
    ways = gammaln(pairs + 1) - gammaln(cells + 1).sum(axis=1)
    truths = np.array(
        [
            (i, j, k, 20 - i - j - k)
            for i in range(1, 18)
            for j in range(1, 19 - i)
            for k in range(1, 20 - i - j)
        ]
    )
    covered = []
    for truth in truths:
        weights = np.exp(ways + cells @ np.log(truth / 20))
        difference = (truth[1] - truth[2]) / 20
        hits = (limits[:, 0] <= difference + 1e-12) & (difference - 1e-12 <= limits[:, 1])
        covered.append(weights[hits].sum())
    return np.array(covered)


@pytest.mark.slow("50-tango-0.944-0.951", "50-newcombe-0.944-0.951", "50-wald-0.9-0.94")
@pytest.mark.parametrize(
    ("pairs", "method", "least", "mean"),
    [
        (20, "tango", 0.944, 0.956),
        (20, "newcombe", 0.918, 0.953),
        (20, "wald", 0.858, 0.926),
        (50, "tango", 0.944, 0.951),
        (50, "newcombe", 0.944, 0.951),
        (50, "wald", 0.900, 0.940),
    ],
)
def test_the_documented_coverage(pairs: int, method: str, least: float, mean: float) -> None:
    """The docstring's figures, by summing multinomial probabilities over every table."""
    covered = coverages(pairs, method)

    assert covered.min() == pytest.approx(least, abs=0.0006)
    assert covered.mean() == pytest.approx(mean, abs=0.0006)


@pytest.mark.slow("50")
@pytest.mark.parametrize("pairs", [20, 50])
def test_the_default_has_the_best_worst_case(pairs: int) -> None:
    """Tango's least coverage is at least Newcombe's, and Newcombe's above Wald's."""
    tango, newcombe, wald = (coverages(pairs, method).min() for method in INTERVAL_METHODS)

    assert paired_difference_interval(1, 1, 1, 1).method == "tango"
    assert tango >= newcombe > wald


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-1, 1.5, True, None, "3", math.nan])
def test_counts_are_whole_and_not_negative(bad: Any) -> None:
    """Every count is named in its refusal."""
    with pytest.raises(InvalidArgument, match="only_a must be a whole number"):
        mcnemar(bad, 1)
    with pytest.raises(InvalidArgument, match="only_b must be a whole number"):
        mid_p(1, bad)
    with pytest.raises(InvalidArgument, match="wins must be a whole number"):
        sign_test(bad, 1)
    with pytest.raises(InvalidArgument, match="losses must be a whole number"):
        sign_test(1, bad)
    for i, name in enumerate(("both", "only_a", "only_b", "neither")):
        table: list[Any] = [1, 1, 1, 1]
        table[i] = bad
        with pytest.raises(InvalidArgument, match=f"{name} must be a whole number"):
            paired_difference_interval(*table)
        with pytest.raises(InvalidArgument, match=f"{name} must be a whole number"):
            other_paired_interval(*table)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 2, math.nan, None])
def test_levels_lie_strictly_between_0_and_1(bad: Any) -> None:
    """Neither a confidence nor an alpha of 0 or 1."""
    with pytest.raises(InvalidArgument, match="confidence must lie strictly"):
        paired_difference_interval(1, 1, 1, 1, confidence=bad)
    with pytest.raises(InvalidArgument, match="confidence must lie strictly"):
        other_paired_interval(1, 1, 1, 1, confidence=bad)
    with pytest.raises(InvalidArgument, match="alpha must lie strictly"):
        minimum_discordant(bad)


def test_choices_are_closed_sets() -> None:
    """A misspelt method or alternative is refused with the list."""
    bad: Any = "greatest"
    with pytest.raises(InvalidArgument, match="method must be one of 'auto', 'exact'"):
        mcnemar(1, 1, method=bad)
    with pytest.raises(InvalidArgument, match="alternative must be one of"):
        mcnemar(1, 1, alternative=bad)
    with pytest.raises(InvalidArgument, match="alternative must be one of"):
        sign_test(1, 1, alternative=bad)
    with pytest.raises(InvalidArgument, match="alternative must be one of"):
        minimum_discordant(0.05, alternative=bad)
    with pytest.raises(InvalidArgument, match="method must be one of 'newcombe', 'wald'"):
        other_paired_interval(1, 1, 1, 1, method=bad)


def test_a_difference_needs_a_pair() -> None:
    """An empty table bounds nothing."""
    with pytest.raises(InvalidArgument, match="must count at least one pair"):
        paired_difference_interval(0, 0, 0, 0)
    with pytest.raises(InvalidArgument, match="must count at least one pair"):
        other_paired_interval(0, 0, 0, 0)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([], [], "a must hold at least one outcome"),
        ([True], [True, False], r"b must hold one outcome for each of a \(1\)"),
        ([True], [1], r"b\[0\] must be True or False"),
        ([None], [True], r"a\[0\] must be True or False"),
        (True, [True], "a must be a sequence"),
    ],
)
def test_outcomes_are_paired_booleans(a: Any, b: Any, message: str) -> None:
    """Equally long, not empty, and decided."""
    with pytest.raises(InvalidArgument, match=message):
        pairs_from_outcomes(a, b)
