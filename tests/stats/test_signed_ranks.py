"""The Hodges–Lehmann estimate: against enumeration, scipy and a second way to its distribution."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.signed_ranks import (
    ShiftEstimate,
    hodges_lehmann,
    select_walsh_average,
    signed_rank_tail,
)

values = st.lists(st.integers(-6, 6).map(lambda one: one / 2), min_size=1, max_size=25)


def walsh(differences: list[float]) -> list[float]:
    n = len(differences)
    return sorted((differences[i] + differences[j]) / 2 for i in range(n) for j in range(i, n))


def bound(found: ShiftEstimate) -> Interval:
    assert isinstance(found.interval, Interval)
    return found.interval


@pytest.mark.parametrize("n", range(1, 11))
def test_the_distribution_is_that_of_all_subsets_of_the_ranks(n: int) -> None:
    sums = [sum(chosen) for size in range(n + 1) for chosen in combinations(range(1, n + 1), size)]
    for t in range(n * (n + 1) // 2 + 1):
        exact = Fraction(sum(one <= t for one in sums), 2**n)
        assert signed_rank_tail(n, t) == pytest.approx(float(exact), abs=1e-15)


@pytest.mark.parametrize("n", [240, 251, 600])
def test_the_distribution_of_many_differences_agrees_with_a_sum_over_ranks(n: int) -> None:
    """
    Rank by rank, in doubles: T is as before, or larger by the rank, with one half each. From 251 on
    the package sums waves instead, and rounds up.
    """
    total = n * (n + 1) // 2
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    for rank in range(1, n + 1):
        shifted = np.zeros(total + 1)
        shifted[rank:] = chances[:-rank]
        chances = (chances + shifted) / 2
    tails = np.cumsum(chances)
    deviation = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    for z in (-4.5, -2.6, -1.96, -0.5, 0.0, 1.3):
        t = round(total / 2 + z * deviation)
        assert 0 <= signed_rank_tail(n, t) - tails[t] + 1e-12 < 3e-11


def test_beyond_ten_thousand_differences_the_tail_is_bounded_from_above() -> None:
    """
    The bound is Hoeffding's. The true tail is within 0.001 of the normal one here, by Berry and
    Esseen's theorem with room to spare.
    """
    n = 10_001
    total, deviation = n * (n + 1) // 2, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    for z in (1.0, 1.96, 3.0):
        t = round(total / 2 - z * deviation)
        normal = math.erfc(z / math.sqrt(2)) / 2
        assert normal < signed_rank_tail(n, t) <= math.exp(-z * z / 2) * 1.001


@given(values)
def test_the_estimate_is_the_median_of_all_walsh_averages(differences: list[float]) -> None:
    averages = walsh(differences)

    assert hodges_lehmann(differences).estimate == pytest.approx(median(averages))
    ordered = sorted(differences)
    assert averages == [select_walsh_average(ordered, rank + 1) for rank in range(len(averages))]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_an_order_statistic_is_found_to_the_last_bit(differences: list[float]) -> None:
    n, ordered = len(differences), sorted(differences)
    sums = sorted(ordered[i] + ordered[j] for i in range(n) for j in range(i, n))

    for rank in (1, len(sums) // 2, len(sums)):
        assert select_walsh_average(ordered, rank) == sums[rank - 1] / 2


@pytest.mark.parametrize("n", [5, 6, 9, 20, 50])
def test_without_ties_the_p_value_is_that_of_wilcoxons_exact_test(n: int) -> None:
    differences = list(np.random.default_rng(n).normal(0.3, 1, n))
    oracle = wilcoxon(differences, method="exact").pvalue

    assert hodges_lehmann(differences).p_value == pytest.approx(oracle, rel=1e-12)


@given(values, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_p_value_and_the_interval_agree_about_zero(
    differences: list[float], confidence: float
) -> None:
    found = hodges_lehmann(differences, confidence=confidence)

    outside = isinstance(found.interval, Interval) and 0.0 not in found.interval
    assert outside is (found.p_value <= 1 - confidence + 1e-12)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        (1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        (0, 0, 0, 0, 1, 1, 2, 2, 3, 3),
        (0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 2, 2, 2, 5, 5, 100, 100, 100),
    ],
)
@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95])
def test_each_end_errs_at_most_at_its_level_with_ties_and_zeros(
    sizes: tuple[int, ...], confidence: float
) -> None:
    """
    Every arrangement of signs around a centre of 3 is equally likely; all are enumerated.
    """
    above = below = 0
    for signs in product((-1, 1), repeat=len(sizes)):
        drawn = [3 + sign * size for sign, size in zip(signs, sizes, strict=True)]
        interval = bound(hodges_lehmann(drawn, confidence=confidence))
        above += interval.low > 3
        below += interval.high < 3
    error = (1 - confidence) / 2 * 2 ** len(sizes) + 1e-9
    assert above <= error
    assert below <= error


def test_without_ties_the_interval_could_not_be_shorter() -> None:
    """
    One Walsh average further in, an end would err in more than its share of arrangements.
    """
    n, confidence = 9, 0.95
    differences = [2.0**k for k in range(n)]
    low = bound(hodges_lehmann(differences, confidence=confidence)).low
    rank = walsh(differences).index(low) + 1
    sums = [sum(c) for size in range(n + 1) for c in combinations(range(1, n + 1), size)]

    assert sum(one <= rank - 1 for one in sums) / 2**n <= 0.025
    assert sum(one <= rank for one in sums) / 2**n > 0.025


def test_swapping_the_conditions_mirrors_everything() -> None:
    differences = [0.5, -1.0, 2.5, 3.0, 0.25, 1.0, 1.0, -0.5]
    there, back = hodges_lehmann(differences), hodges_lehmann([-one for one in differences])

    assert (there.estimate, there.p_value) == (-back.estimate, back.p_value)
    assert (bound(there).low, bound(there).high) == (-bound(back).high, -bound(back).low)


def test_a_thousand_pairs_need_no_memory_for_all_averages() -> None:
    import tracemalloc

    differences = list(np.random.default_rng(1).normal(0.3, 1, 1000))
    tracemalloc.start()
    found = hodges_lehmann(differences)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 0.0 not in bound(found)
    assert most < 1_000_000  # 500,500 averages would take 4 MB.


def test_few_pairs_have_no_interval_and_say_so() -> None:
    assert hodges_lehmann([1.0] * 5).interval == Undefined(
        "5 pairs are too few for an interval of 95 %"
    )
    assert hodges_lehmann([1.0]).interval == Undefined("1 pair is too few for an interval of 95 %")


@pytest.mark.parametrize("wrong", [[], [math.nan], [math.inf], [1e308]])
def test_differences_must_be_finite(wrong: list[float]) -> None:
    with pytest.raises(InvalidArgument, match="differences"):
        hodges_lehmann(wrong)
