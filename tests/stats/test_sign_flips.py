"""Flipping signs: against full enumeration and scipy, and the level of every subgroup."""

from __future__ import annotations

from itertools import product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.signed_ranks import sign_flip_mean

scores = st.lists(st.integers(-10, 10).map(lambda one: one / 10), min_size=1, max_size=10)


def enumerate_p_value(differences: list[float]) -> float:
    """Every arrangement of signs, in tenths, so that sums tie where decimals do."""
    tenths = [round(10 * one) for one in differences]
    sums = [
        sum(sign * one for sign, one in zip(signs, tenths, strict=True))
        for signs in product((-1, 1), repeat=len(tenths))
    ]
    seen = sum(tenths)
    least = min(sum(one >= seen for one in sums), sum(one <= seen for one in sums))
    return min(1.0, 2 * least / len(sums))


@given(scores)
def test_the_p_value_is_the_place_among_all_arrangements(differences: list[float]) -> None:
    assert sign_flip_mean(differences).p_value == pytest.approx(enumerate_p_value(differences))


def test_the_p_value_is_that_of_scipy() -> None:
    differences = np.random.default_rng(3).normal(0.5, 1, 10)
    oracle = permutation_test(
        (differences,),
        lambda sample, axis: np.mean(sample, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )

    assert sign_flip_mean(differences).p_value == pytest.approx(oracle.pvalue)


@given(scores, st.sampled_from([0.8, 0.9, 0.95]))
def test_the_interval_holds_the_means_that_flipping_does_not_reject(
    differences: list[float], confidence: float
) -> None:
    found = sign_flip_mean(differences, confidence=confidence)
    assert isinstance(found.interval, (Interval, Undefined))
    if isinstance(found.interval, Undefined):
        assert 2.0 ** (1 - len(differences)) > 1 - confidence
        return
    low, high = found.interval

    for mean in (low - 0.01, low, high, high + 0.01):
        moved = [one - mean for one in differences]
        sums = sorted(
            sum(sign * one for sign, one in zip(signs, moved, strict=True))
            for signs in product((-1, 1), repeat=len(moved))
        )
        seen = sum(moved)
        above, below = (
            sum(one >= seen - 1e-9 for one in sums),
            sum(one <= seen + 1e-9 for one in sums),
        )
        rejected = min(above, below) / len(sums) <= (1 - confidence) / 2 + 1e-12
        assert rejected is not (low <= mean <= high)


def test_the_arrangements_are_a_group_so_that_the_level_is_exact() -> None:
    """
    Over the orbit of the arrangements themselves, at most the level's share is rejected.
    """
    from trialwise.stats import signed_ranks

    n, count = 20, 2**13
    codes = signed_ranks._list_codes(n)
    sizes = [((7 * i) % 11 + 1) / 10 for i in range(n)]
    rng = np.random.default_rng(2)
    sums = np.array(
        [
            sum(
                -d if (g & code).bit_count() % 2 else d
                for code, d in zip(codes, sizes, strict=True)
            )
            for g in range(count)
        ]
    )
    assert (
        len({*map(tuple, [[(g & code).bit_count() % 2 for code in codes] for g in range(count)])})
        == count
    )
    for g in rng.integers(0, count, 20):
        drawn = [
            -d if (int(g) & code).bit_count() % 2 else d
            for code, d in zip(codes, sizes, strict=True)
        ]
        above = int((sums >= sums[g] - 1e-9).sum())
        below = int((sums <= sums[g] + 1e-9).sum())
        expected = min(1.0, 2 * min(above, below) / count)
        found = sign_flip_mean(drawn)
        assert found.p_value == pytest.approx(expected)
        assert isinstance(found.interval, Interval)
        assert (0.0 in found.interval) is (found.p_value > 0.05)


def test_thousands_of_differences_are_bounded_near_the_normal_interval() -> None:
    """
    With 3,000 well-behaved differences, mean ± 1.96 standard errors is right to a few percent.
    """
    differences = np.random.default_rng(8).normal(0.2, 1, 3000)
    found = sign_flip_mean(map(float, differences))
    assert isinstance(found.interval, Interval)
    half = 1.96 * differences.std() / np.sqrt(3000)

    assert found.mean == pytest.approx(fmean(differences))
    assert found.interval.low == pytest.approx(found.mean - half, abs=0.1 * half)
    assert found.interval.high == pytest.approx(found.mean + half, abs=0.1 * half)
