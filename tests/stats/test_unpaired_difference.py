"""Bounds and tests of the difference between two arms that cannot be paired."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from trialwise.errors import InvalidArgument
from trialwise.stats.difference_bounds import bound_unpaired_difference, find_margin_p_value

TENTHS = [k / 10 for k in range(11)]


def chance(passed: int, trials: int, rate: float) -> float:
    """The binomial probability, by its formula."""
    return comb(trials, passed) * rate**passed * (1 - rate) ** (trials - passed)


@pytest.mark.parametrize(("first", "second"), [(6, 6), (4, 9)])
def test_each_end_is_wrong_in_at_most_half_of_alpha(first: int, second: int) -> None:
    """Over all tables and both rates in tenths, with an alpha that is large enough to be used."""
    alpha = 0.2
    ends = {
        (a, b): tuple(bound_unpaired_difference(a, first, b, second, alpha=alpha))
        for a, b in product(range(first + 1), range(second + 1))
    }
    for rate_a, rate_b in product(TENTHS, repeat=2):
        gap = rate_b - rate_a
        chances = {(a, b): chance(a, first, rate_a) * chance(b, second, rate_b) for a, b in ends}
        above = sum(chances[one] for one, (low, _) in ends.items() if low > gap + 1e-12)
        below = sum(chances[one] for one, (_, high) in ends.items() if high < gap - 1e-12)
        assert max(above, below) <= alpha / 2


@pytest.mark.parametrize("limit", [-0.3, -0.1, 0.0, 0.2])
def test_a_margin_is_falsely_shown_no_oftener_than_its_level(limit: float) -> None:
    """B is exactly the limit better than A, for every rate of A in twentieths."""
    trials, level = 8, 0.1
    shown = [
        (a, b)
        for a, b in product(range(trials + 1), repeat=2)
        if find_margin_p_value(a, trials, b, trials, limit=limit) <= level
    ]
    assert shown
    for step in range(21):
        rate = step / 20
        if 0 <= rate + limit <= 1:
            wrong = sum(chance(a, trials, rate) * chance(b, trials, rate + limit) for a, b in shown)
            assert wrong <= level


def test_swapping_the_arms_mirrors_the_interval() -> None:
    """A's advantage over B is B's disadvantage to A."""
    low, high = bound_unpaired_difference(12, 40, 25, 30)
    back = bound_unpaired_difference(25, 30, 12, 40)

    assert (low, high) == pytest.approx((-back.high, -back.low), abs=1e-3)
    assert low < 25 / 30 - 12 / 40 < high


def test_the_interval_ends_about_where_the_test_does() -> None:
    """The p-value at the lower end is half of alpha, up to the finest step of both."""
    low, _ = bound_unpaired_difference(80, 100, 95, 100)

    assert find_margin_p_value(80, 100, 95, 100, limit=low) == pytest.approx(0.025, rel=0.05)


def test_impossible_counts_and_limits_are_refused() -> None:
    """More successes than trials, and differences that no two rates have."""
    with pytest.raises(InvalidArgument, match="at most trials_b"):
        bound_unpaired_difference(1, 2, 4, 3)
    with pytest.raises(InvalidArgument, match="between -1 and 1"):
        find_margin_p_value(1, 2, 1, 2, limit=1.0)
