"""The exact test of net wins by input, against every arrangement of signs."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from trialwise.errors import InvalidArgument
from trialwise.stats.paired import sign_test
from trialwise.stats.signed_ranks import weigh_net_wins


@pytest.mark.parametrize(
    "net", [[3], [5, 4, 5, -1, 0, 0], [1, 1, 1, 1, 1, 1], [2, -2], [7, 3, -5, 1, 1, -2, 4, 4, 0]]
)
def test_the_p_value_is_the_share_of_arrangements(net: list[int]) -> None:
    """By listing all signs."""
    sizes = [abs(one) for one in net]
    sums = [
        sum(sign * size for sign, size in zip(signs, sizes, strict=True))
        for signs in product((-1, 1), repeat=len(sizes))
    ]
    share = sum(abs(one) >= abs(sum(net)) for one in sums) / len(sums)
    assert weigh_net_wins(net).p_value == pytest.approx(share, abs=1e-15)


def test_inputs_won_equally_clearly_give_the_sign_test() -> None:
    """Then the sum says no more than the signs."""
    for won, lost in ((4, 0), (3, 1), (9, 2), (0, 6)):
        found = weigh_net_wins([3] * won + [-3] * lost)
        assert found.p_value == sign_test(won, lost).p_value
        assert (found.won, found.lost) == (won, lost)


def test_a_clear_win_outweighs_a_narrow_loss() -> None:
    """Which the sign test of inputs cannot see."""
    net = [5, 5, 4, 5, 3, 4, -1, -1]
    assert weigh_net_wins(net).p_value < 0.05 < sign_test(6, 2).p_value


@pytest.mark.parametrize("repeats", [5, 10])
def test_repeats_pooled_as_cases_exceed_the_level_and_net_wins_do_not(repeats: int) -> None:
    """20 inputs whose true differences have a mean of 0 and a spread of 0.2.

    2,000 comparisons: the standard error of a share of 5 % is 0.5 points.
    """
    random, wrong, runs = Random(7), {"pooled": 0, "net wins": 0}, 2000
    for _ in range(runs):
        net, wins, losses = [], 0, 0
        for _ in range(20):
            difference = max(-0.5, min(0.5, random.gauss(0, 0.2)))
            only_b = sum(random.random() < 0.25 + difference / 2 for _ in range(repeats))
            only_a = sum(random.random() < 0.25 - difference / 2 for _ in range(repeats))
            wins, losses = wins + only_b, losses + only_a
            net.append(only_b - only_a)
        wrong["pooled"] += sign_test(wins, losses).p_value <= 0.05
        wrong["net wins"] += weigh_net_wins(net).p_value <= 0.05
    assert wrong["net wins"] <= (0.05 + 3 * 0.005) * runs
    if repeats == 10:
        assert wrong["pooled"] > 0.08 * runs


def test_many_inputs_are_quick_and_exact() -> None:
    """With 400 inputs of one net win each it is the sign test, to the last digit."""
    found = weigh_net_wins([1] * 230 + [-1] * 170)
    assert found.p_value == sign_test(230, 170).p_value


def test_something_has_to_be_compared() -> None:
    """Inputs without net wins are ties; no inputs at all are a mistake."""
    assert weigh_net_wins([0, 0]).p_value == 1.0
    with pytest.raises(InvalidArgument, match="at least one input"):
        weigh_net_wins([])
    with pytest.raises(InvalidArgument, match="net_wins"):
        weigh_net_wins([0.5])  # type: ignore[list-item]
