"""The precedence and exceedance rules: exact size by counting every arrangement of two samples."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb, factorial, prod
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, betabinom, binom

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_baseline import (
    exceedance_cutoff,
    precedence_existence,
    precedence_threshold,
)
from trialwise.stats.latency_percentiles import nearest_rank_percentile
from trialwise.stats.result_types import Refusal
from trialwise.stats.toolbox.precedence_law import count_exceedances

SIZES = [(nb, nt) for nb in range(1, 8) for nt in range(1, 6)]
LEVELS = ("0.5", "0.9", "0.3", "0.7")
ALPHAS = ("0.05", "0.1", "0.25", "0.5")


def arrangements(nb: int, nt: int) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Every way to interleave two samples from one continuous distribution: equally likely."""
    positions = range(nb + nt)
    for test in combinations(positions, nt):
        taken = set(test)
        yield [x for x in positions if x not in taken], test


def breach_shares(nb: int, nt: int, p: Fraction) -> list[Fraction]:
    """For k = 1 … n_b, the share of arrangements whose test percentile is above t_(k)."""
    r = math.ceil(p * nt)
    counts = [0] * nb
    for baseline, test in arrangements(nb, nt):
        for k in range(nb):
            counts[k] += test[r - 1] > baseline[k]
    return [Fraction(count, comb(nb + nt, nt)) for count in counts]


def exceedance_shares(nb: int, nt: int, p: Fraction) -> list[Fraction]:
    """For m = 1 … n_t, the share of arrangements with at least m test values above Y_(⌈pn_b⌉)."""
    k = math.ceil(p * nb)
    counts = [0] * nt
    for baseline, test in arrangements(nb, nt):
        above = sum(x > baseline[k - 1] for x in test)
        for m in range(1, nt + 1):
            counts[m - 1] += above >= m
    return [Fraction(count, comb(nb + nt, nt)) for count in counts]


def samples(n: int, weights: tuple[Fraction, ...]) -> list[tuple[tuple[int, ...], Fraction]]:
    """Every unordered sample of a discrete distribution, with its probability."""
    found = []
    for sample in combinations_with_replacement(range(len(weights)), n):
        counts = [sample.count(v) for v in range(len(weights))]
        ways = factorial(n) // prod(map(factorial, counts))
        powers = (w**c for w, c in zip(weights, counts, strict=True))
        found.append((sample, ways * prod(powers, start=Fraction(1))))
    return found


# The threshold rule


@pytest.mark.parametrize("p", LEVELS)
def test_the_rank_is_the_first_whose_breaches_are_rare_enough(p: str) -> None:
    """Counting all arrangements gives rank, saturation and probability, at exact equality too."""
    for nb, nt in SIZES:
        shares = breach_shares(nb, nt, Fraction(p))
        for alpha in ALPHAS:
            admitted = (k + 1 for k, s in enumerate(shares) if s <= Fraction(alpha))
            rank = next(admitted, None)
            found = precedence_existence(nb, nt, float(p), alpha=float(alpha))
            assert (rank, rank is None) == (found.rank, found.saturated)
            assert math.ceil(Fraction(p) * nt) == found.test_rank
            if rank is None:
                assert found.breach_probability is None
            else:
                assert found.breach_probability is not None
                assert math.isclose(shares[rank - 1], found.breach_probability, rel_tol=1e-12)


@pytest.mark.parametrize(("nb", "nt"), [(6, 3), (5, 4), (4, 5)])
def test_the_size_of_the_threshold_rule_is_exact(nb: int, nt: int) -> None:
    """Deciding every arrangement from its data breaches exactly as often as stated."""
    for p in (0.5, 0.3):
        breaches, stated = 0, None
        for baseline, test in arrangements(nb, nt):
            design = precedence_threshold(baseline, nt, p, alpha=0.25)
            stated = design.breach_probability
            breaches += bool(design.breached_by(nearest_rank_percentile(test, p)))
        assert stated is not None
        assert stated <= 0.25
        assert math.isclose(breaches / comb(nb + nt, nt), stated, rel_tol=1e-12)


def test_a_breach_probability_of_exactly_alpha_is_admitted() -> None:
    """Where the test's percentile is its maximum, breach(n_b) = n_t/(n_b + n_t), here 1/20."""
    for nb, nt, p in ((950, 50, 0.99), (190, 10, 0.95), (475, 25, 0.99), (19, 1, 0.5)):
        assert Fraction(nt, nb + nt) == Fraction(1, 20)
        assert nb == precedence_existence(nb, nt, p).rank
        assert precedence_existence(nb - 1, nt, p).saturated is True


def test_existence_follows_the_closed_form() -> None:
    """No baseline value above the test's r-th: the top n_t − r + 1 of all are the test's."""
    for p in (Fraction("0.9"), Fraction("0.95"), Fraction("0.5")):
        for nb in range(1, 70, 3):
            for nt in range(1, 25):
                top = nt - math.ceil(p * nt) + 1
                chance = prod(
                    (Fraction(nt - i, nb + nt - i) for i in range(top)), start=Fraction(1)
                )
                saturated = precedence_existence(nb, nt, float(p)).saturated
                assert saturated is (chance > Fraction(1, 20))


def test_ranks_are_taken_in_decimals() -> None:
    """0.07 · 100 and 0.55 · 100 are whole; the ceilings of their doubles are one too many."""
    assert (math.ceil(0.07 * 100), math.ceil(0.55 * 100)) == (8, 56)

    assert precedence_existence(500, 100, 0.07).test_rank == 7
    assert exceedance_cutoff(100, 50, 0.55).baseline_rank == 55


def test_published_ranks_and_sizes_come_out() -> None:
    """913, 909 and 905 of 935 with sizes .045, .047 and .045; 911 for a test of 192."""
    found = [precedence_existence(935, n, 0.95) for n in (100, 200, 500)]

    assert [each.rank for each in found] == [913, 909, 905]
    assert [round(each.breach_probability or 0, 3) for each in found] == [0.045, 0.047, 0.045]
    assert precedence_existence(935, 192, 0.95).rank == 911
    assert precedence_existence(554, 160, 0.99).rank == 554
    assert precedence_existence(554, 161, 0.99).saturated is True


def test_breach_probabilities_are_scipys() -> None:
    """The beta-binomial distribution of scipy, at sizes no arrangement count can reach."""
    for nb, nt, p, alpha in ((5000, 500, 0.95, 0.05), (300, 800, 0.5, 0.01), (2000, 60, 0.9, 0.1)):
        found = precedence_existence(nb, nt, p, alpha=alpha)
        assert found.rank is not None
        assert found.test_rank is not None
        x, k = found.test_rank - 1, found.rank
        assert math.isclose(
            betabinom.cdf(x, nt, k, nb - k + 1), found.breach_probability or 0, rel_tol=1e-9
        )
        assert betabinom.cdf(x, nt, k - 1, nb - k + 2) > alpha


@pytest.mark.parametrize("p", [0.5, 0.95, 0.99])
def test_large_tests_keep_their_rank(p: float) -> None:
    """At thousands of latencies a side, where single terms underflow, scipy finds the same rank."""
    for nb, nt in ((3123, 2812), (4160, 2746), (1354, 2873), (50_000, 20_000)):
        found = precedence_existence(nb, nt, p, alpha=0.01)
        assert found.rank is not None
        assert found.test_rank is not None
        x, k = found.test_rank - 1, found.rank
        assert betabinom.cdf(x, nt, k, nb - k + 1) <= 0.01 < betabinom.cdf(x, nt, k - 1, nb - k + 2)


def test_the_threshold_is_the_baseline_latency_at_the_rank() -> None:
    """Counts give the rank, latencies the value, with the baseline's percentile beside it."""
    latencies = [3.0 * i for i in range(200, 0, -1)]

    design = precedence_threshold(latencies, 200, 0.9)

    rank = precedence_existence(200, 200, 0.9).rank
    assert rank is not None
    assert (rank, 3.0 * rank) == (design.rank, design.threshold)
    assert design.baseline_percentile == 540
    assert (design.baseline_trials, design.test_trials, design.test_rank) == (200, 200, 180)
    assert design.saturated is False
    assert design.refusal is None


def test_equality_with_the_threshold_is_no_breach() -> None:
    """Only a percentile above the threshold breaches it; identical latencies never do."""
    design = precedence_threshold([200] * 100, 50, 0.95)

    assert design.threshold == 200
    assert design.breached_by(200) is False
    assert design.breached_by(math.nextafter(200, math.inf)) is True


def test_a_saturated_baseline_gives_no_threshold() -> None:
    """No rank, no value, no breach; the baseline's own percentile is still stated."""
    design = precedence_threshold(range(1, 301), 100, 0.99)

    assert design.saturated is True
    assert (design.rank, design.threshold, design.breach_probability) == (None, None, None)
    assert design.breached_by(1e9) is None
    assert (design.test_rank, design.baseline_percentile) == (99, 297)


def test_without_test_latencies_there_is_no_rank() -> None:
    """A run in which nothing succeeded is judged by no latency of the baseline."""
    for found in (precedence_existence(500, 0, 0.5), precedence_existence(0, 50, 0.5)):
        assert (found.rank, found.saturated) == (None, True)
    assert precedence_threshold(range(500), 0, 0.5).saturated is True


def test_runs_are_compared_by_their_size_and_never_by_their_latencies() -> None:
    """300 test latencies against 200 of the baseline are fine; a larger plan is refused."""
    latencies = range(1, 201)
    fine = precedence_threshold(latencies, 300, 0.5, baseline_run_trials=400, planned_trials=400)
    refused = precedence_threshold(
        latencies, None, 0.95, baseline_run_trials=200, planned_trials=250
    )

    assert fine.refusal is None
    assert fine.rank is not None
    assert refused.refusal is Refusal.TEST_LARGER_THAN_BASELINE
    assert (refused.rank, refused.threshold, refused.saturated) == (None, None, None)
    assert (refused.test_rank, refused.breach_probability) == (None, None)
    assert (refused.baseline_trials, refused.baseline_percentile) == (200, 190)
    assert refused.breached_by(1e9) is None


# The exceedance rule


@pytest.mark.parametrize("p", LEVELS)
def test_the_cutoff_is_the_fewest_exceedances_that_are_rare_enough(p: str) -> None:
    """Counting all arrangements gives cutoff, absence and size, at exact ties too."""
    for nb, nt in SIZES:
        shares = exceedance_shares(nb, nt, Fraction(p))
        for alpha in ALPHAS:
            admitted = (m + 1 for m, s in enumerate(shares) if s <= Fraction(alpha))
            cutoff = next(admitted, None)
            design = exceedance_cutoff(nb, nt, float(p), alpha=float(alpha))
            size = 0.0 if cutoff is None else shares[cutoff - 1]
            assert cutoff == design.cutoff
            assert math.isclose(size, design.size, rel_tol=1e-12)
            assert math.ceil(Fraction(p) * nb) == design.baseline_rank


def test_the_published_exceedance_cutoff_comes_out() -> None:
    """Baseline 200, test 500, p95: 45 exceedances, size .0485; 44 would be too likely."""
    design = exceedance_cutoff(200, 500, 0.95)

    assert (design.baseline_rank, design.cutoff) == (190, 45)
    assert round(design.size, 4) == 0.0485
    assert math.isclose(betabinom.cdf(455, 500, 190, 11), design.size, rel_tol=1e-10)
    assert betabinom.cdf(456, 500, 190, 11) > 0.05


@pytest.mark.parametrize(("nb", "nt"), [(6, 3), (5, 4), (4, 5)])
def test_the_size_of_the_exceedance_rule_is_exact(nb: int, nt: int) -> None:
    """Deciding every arrangement from its data fails exactly as often as stated."""
    for p in (0.5, 0.75):
        design = exceedance_cutoff(nb, nt, p, alpha=0.25)
        assert design.cutoff is not None
        failures = sum(
            count_exceedances(baseline, test, p) >= design.cutoff
            for baseline, test in arrangements(nb, nt)
        )
        assert math.isclose(failures / comb(nb + nt, nt), design.size, rel_tol=1e-12)
        assert design.size <= 0.25


def test_exceedances_decide_where_no_rank_exists() -> None:
    """Against 300 latencies no rank judges a p99 of 100, but many exceedances do."""
    assert precedence_existence(300, 100, 0.99).saturated is True
    assert exceedance_cutoff(300, 100, 0.99).cutoff is not None


@pytest.mark.slow
def test_exceedances_have_the_power_at_two_hundred_against_five_hundred() -> None:
    """Against slower tests with distribution function F^θ, both powers by quadrature."""
    nb, nt = 200, 500
    rule, other = exceedance_cutoff(nb, nt, 0.95), precedence_existence(nb, nt, 0.95)
    assert rule.cutoff is not None
    assert other.rank is not None

    def power(rank: int, most_below: int, theta: float) -> float:
        weight = beta(rank, nb - rank + 1)
        value, _ = quad(
            lambda u: binom.cdf(most_below, nt, u**theta) * weight.pdf(u), 0.7, 1, limit=200
        )
        return float(value)

    assert math.isclose(rule.size, power(190, nt - rule.cutoff, 1), rel_tol=1e-6)
    for theta in (1.5, 2.0, 2.5):
        assert power(190, nt - rule.cutoff, theta) > power(other.rank, 474, theta)


def test_only_latencies_strictly_above_are_exceedances() -> None:
    """The reference is an observed value; equal test latencies do not exceed it."""
    assert count_exceedances([10, 20, 30, 40], [20, 20, 20.5, 5], 0.5) == 1


# Ties


@pytest.mark.parametrize("p", [0.5, 0.6])
def test_ties_make_both_rules_conservative(p: float) -> None:
    """Over every pair of samples from one distribution on three values, alpha still holds."""
    weights = (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
    nb, nt, alpha = 6, 4, 0.25
    cutoff = exceedance_cutoff(nb, nt, p, alpha=alpha)
    assert cutoff.cutoff is not None
    breached, exceeded, stated = Fraction(0), Fraction(0), 0.0
    for baseline, first in samples(nb, weights):
        design = precedence_threshold(baseline, nt, p, alpha=alpha)
        stated = design.breach_probability or 0.0
        for test, second in samples(nt, weights):
            if design.breached_by(nearest_rank_percentile(test, p)):
                breached += first * second
            if count_exceedances(baseline, test, p) >= cutoff.cutoff:
                exceeded += first * second

    assert 0 < breached <= stated
    assert 0 < exceeded <= cutoff.size


# Properties

SAMPLES = st.lists(st.integers(0, 1000), min_size=1, max_size=120)
RATES = st.integers(1, 99).map(lambda i: i / 100)


@given(SAMPLES, st.integers(1, 120), RATES, RATES, st.randoms(use_true_random=False))
def test_order_and_unit_do_not_matter(
    latencies: list[int], nt: int, p: float, alpha: float, random: Random
) -> None:
    """Shuffled and rescaled latencies have the rescaled threshold at the same rank."""
    shuffled = [value * 8.0 for value in latencies]
    random.shuffle(shuffled)

    one = precedence_threshold(latencies, nt, p, alpha=alpha)
    other = precedence_threshold(shuffled, nt, p, alpha=alpha)

    assert one.rank == other.rank
    assert (None if one.threshold is None else one.threshold * 8) == other.threshold


@given(st.integers(1, 150), st.integers(1, 150), RATES, RATES, RATES)
def test_a_stricter_level_or_a_higher_percentile_is_never_a_lower_rank(
    nb: int, nt: int, p: float, first: float, second: float
) -> None:
    """A saturated rank counts as above all others."""
    low, high = sorted((first, second))

    by_alpha = [precedence_existence(nb, nt, p, alpha=a).rank for a in (high, low)]
    by_percentile = [precedence_existence(nb, nt, q, alpha=p).rank for q in (low, high)]

    for less, more in (by_alpha, by_percentile):
        assert (less or nb + 1) <= (more or nb + 1)


@given(st.integers(1, 150), st.integers(1, 150), RATES, RATES)
def test_sizes_never_exceed_alpha(nb: int, nt: int, p: float, alpha: float) -> None:
    """Both rules keep their promise, up to the rounding of a double."""
    threshold = precedence_existence(nb, nt, p, alpha=alpha)
    exceedance = exceedance_cutoff(nb, nt, p, alpha=alpha)

    assert (threshold.breach_probability or 0) <= alpha * (1 + 1e-12)
    assert exceedance.size <= alpha * (1 + 1e-12)


# Refused input


@pytest.mark.parametrize("bad", [[], [1.0, -1.0], [math.nan], [math.inf], 3])
def test_bad_latencies_are_refused(bad: list[float]) -> None:
    """Empty, negative and non-finite latencies have no order statistics."""
    with pytest.raises(InvalidArgument, match=r"^baseline_latencies"):
        precedence_threshold(bad, 10, 0.5)
    with pytest.raises(InvalidArgument, match=r"^baseline_latencies"):
        count_exceedances(bad, [1.0], 0.5)
    with pytest.raises(InvalidArgument, match=r"^test_latencies"):
        count_exceedances([1.0], bad, 0.5)


@pytest.mark.parametrize("bad", [0, 1, 95, math.nan])
def test_levels_lie_strictly_inside(bad: float) -> None:
    """Neither a percentile nor alpha may be 0 or 1."""
    for function in (precedence_existence, exceedance_cutoff):
        with pytest.raises(InvalidArgument, match=r"^percentile must"):
            function(10, 10, bad)
        with pytest.raises(InvalidArgument, match=r"^alpha must"):
            function(10, 10, 0.5, alpha=bad)
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        precedence_threshold([1.0], 10, bad)
    with pytest.raises(InvalidArgument, match=r"^percentile must"):
        count_exceedances([1.0], [1.0], bad)


@pytest.mark.parametrize("bad", [-1, 2.5, True])
def test_counts_are_whole(bad: int) -> None:
    """Negative, fractional and boolean counts are refused by name."""
    for function in (precedence_existence, exceedance_cutoff):
        with pytest.raises(InvalidArgument, match=r"^baseline_trials must"):
            function(bad, 10, 0.5)
        with pytest.raises(InvalidArgument, match=r"^test_trials must"):
            function(10, bad, 0.5)
    with pytest.raises(InvalidArgument, match=r"^planned_trials must"):
        precedence_threshold([1.0], 1, 0.5, baseline_run_trials=5, planned_trials=bad)


def test_run_sizes_come_as_a_pair() -> None:
    """One size alone compares with nothing, and an unrun test needs a refusal."""
    with pytest.raises(InvalidArgument, match=r"^planned_trials must"):
        precedence_threshold([1.0], 1, 0.5, baseline_run_trials=5)
    with pytest.raises(InvalidArgument, match=r"^baseline_run_trials must"):
        precedence_threshold([1.0], 1, 0.5, planned_trials=5)
    with pytest.raises(InvalidArgument, match=r"^test_trials must be given"):
        precedence_threshold([1.0], None, 0.5, baseline_run_trials=5, planned_trials=5)
