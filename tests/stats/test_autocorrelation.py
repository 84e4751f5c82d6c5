from __future__ import annotations

from fractions import Fraction
from itertools import groupby, pairwise, product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.tsa.stattools import acf

from trialwise.errors import InvalidArgument
from trialwise.stats.cluster_correlation import (
    AutocorrelationTest,
    autocorrelation_test,
    lag_one_autocorrelation,
)
from trialwise.stats.result_types import Undefined

SEQUENCES = st.lists(st.integers(0, 1), min_size=2, max_size=60).filter(
    lambda outcomes: 0 < sum(outcomes) < len(outcomes)
)


def runs_of(outcomes: tuple[int, ...]) -> int:
    return sum(1 for _ in groupby(outcomes))


def decided(outcomes: Any, alternative: Any = "greater") -> AutocorrelationTest:
    result = autocorrelation_test(outcomes, alternative=alternative)
    assert isinstance(result, AutocorrelationTest)
    return result


@pytest.mark.parametrize("n", [2, 3, 5, 8, 10])
def test_p_values_equal_the_permutation_distribution(n: int) -> None:
    """Every sequence of n outcomes, against all orders of its own outcomes."""
    for successes in range(1, n):
        orders = [order for order in product((0, 1), repeat=n) if sum(order) == successes]
        runs = [runs_of(order) for order in orders]
        for order, r in zip(orders, runs, strict=True):
            few = Fraction(sum(x <= r for x in runs), len(orders))
            many = Fraction(sum(x >= r for x in runs), len(orders))

            assert r == decided(order).runs
            assert float(few) == decided(order, "greater").p_value
            assert float(many) == decided(order, "less").p_value
            assert (
                float(min(Fraction(1), 2 * min(few, many))) == decided(order, "two-sided").p_value
            )
            assert sum(runs) / len(runs) == pytest.approx(decided(order).expected_runs)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_the_test_keeps_its_level_exactly(alternative: Any) -> None:
    """Under exchangeability a p-value of at most α has probability at most α, for every α."""
    for n, successes in [(9, 4), (10, 5), (11, 2)]:
        orders = [order for order in product((0, 1), repeat=n) if sum(order) == successes]
        values = [decided(order, alternative).p_value for order in orders]
        for alpha in set(values):
            assert sum(value <= alpha for value in values) / len(values) <= alpha * (1 + 1e-12)


def test_a_long_sequence_agrees_with_counting_orders_one_trial_at_a_time() -> None:
    """A recursion over trials, which knows no binomial coefficient, gives the same tail."""
    ones, zeros = 70, 50
    # counts[last][i][j][r]: orders of i ones and j zeros that end in `last` with r runs.
    counts: dict[tuple[int, int, int], dict[int, int]] = {(1, 1, 0): {1: 1}, (0, 0, 1): {1: 1}}
    for total in range(2, ones + zeros + 1):
        for i in range(max(0, total - zeros), min(ones, total) + 1):
            j = total - i
            for last, before in ((1, (i - 1, j)), (0, (i, j - 1))):
                tally: dict[int, int] = {}
                for previous in (0, 1):
                    for r, ways in counts.get((previous, *before), {}).items():
                        step = r + (previous != last)
                        tally[step] = tally.get(step, 0) + ways
                counts[last, i, j] = tally
    law = {
        r: counts[0, ones, zeros].get(r, 0) + counts[1, ones, zeros].get(r, 0)
        for r in range(2, 2 * zeros + 2)
    }
    assert comb(ones + zeros, ones) == sum(law.values())

    outcomes = [1] * 15 + [1, 0] * 20 + [0] * 15 + [1, 1, 0] * 15 + [1] * 5
    assert (ones, zeros) == (sum(outcomes), len(outcomes) - sum(outcomes))
    result = decided(outcomes)
    few = sum(ways for r, ways in law.items() if r <= result.runs)

    assert float(Fraction(few, comb(ones + zeros, ones))) == result.p_value


@given(SEQUENCES)
def test_lag_one_is_its_definition(outcomes: list[int]) -> None:
    """In rationals by the defining sums, and as statsmodels has it."""
    n = len(outcomes)
    mean = Fraction(sum(outcomes), n)
    deviations = [x - mean for x in outcomes]
    products = sum(a * b for a, b in pairwise(deviations))
    exact = products / sum(d * d for d in deviations)

    assert float(exact) == lag_one_autocorrelation(outcomes)
    assert acf(np.array(outcomes, dtype=float), nlags=1, fft=False)[1] == pytest.approx(
        float(exact), abs=1e-12
    )


@given(SEQUENCES, st.sampled_from(["greater", "less", "two-sided"]))
def test_reversing_or_relabelling_changes_nothing(outcomes: list[int], alternative: Any) -> None:
    """Time may run backwards and success may be called failure."""
    result = decided(outcomes, alternative)
    backwards = decided(outcomes[::-1], alternative)
    relabelled = decided([1 - x for x in outcomes], alternative)

    assert result == backwards
    assert (result.p_value, result.runs) == (relabelled.p_value, relabelled.runs)
    assert result.lag_one == relabelled.lag_one
    assert 0 < result.p_value <= 1


def test_alike_neighbours_are_found_and_alternating_ones_are_their_opposite() -> None:
    """Blocks give a small p-value for positive dependence, alternation for negative."""
    blocks, alternating = [1] * 10 + [0] * 10, [1, 0] * 10

    assert 2 / comb(20, 10) == decided(blocks).p_value
    assert 2 / comb(20, 10) == decided(alternating, "less").p_value
    assert decided(blocks).lag_one > 0 > decided(alternating).lag_one


@pytest.mark.parametrize("outcomes", [[1], [0], [1, 1, 1], [False, False]])
def test_what_never_changes_has_no_autocorrelation(outcomes: list[int]) -> None:
    """Neither a number nor a p-value."""
    assert isinstance(lag_one_autocorrelation(outcomes), Undefined)
    assert isinstance(autocorrelation_test(outcomes), Undefined)


def test_booleans_are_outcomes() -> None:
    """True is a success."""
    assert decided([1, 0, 0]) == decided([True, False, False])


@pytest.mark.parametrize("outcomes", [[], [0, 2], [0.5, 1], [float("nan"), 0], "01", 5, [None]])
def test_other_outcomes_are_refused(outcomes: Any) -> None:
    """Only 0 and 1, and at least one of them."""
    with pytest.raises(InvalidArgument, match="outcomes"):
        lag_one_autocorrelation(outcomes)
    with pytest.raises(InvalidArgument, match="outcomes"):
        autocorrelation_test(outcomes)


def test_an_unknown_alternative_is_refused() -> None:
    """The set of alternatives is closed."""
    with pytest.raises(InvalidArgument, match="alternative"):
        autocorrelation_test([0, 1], alternative="positive")  # type: ignore[arg-type]
