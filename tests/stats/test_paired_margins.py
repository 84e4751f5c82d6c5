"""Exact unconditional tests of a paired difference, against sums over every table."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import pytest

from trialwise.stats.betting_rules import find_capital
from trialwise.stats.margin_rules import (
    bound_chance,
    find_low_end,
    find_region,
    list_limits,
    order_tables,
    region_chance,
)
from trialwise.stats.paired import paired_difference_interval, tango_score


def sum_tables(limits: list[int], pairs: int, only_a: float, only_b: float) -> float:
    """Return the chance of a region, table by table."""
    agree = 1 - only_a - only_b
    return math.fsum(
        math.comb(pairs, wins)
        * math.comb(pairs - wins, losses)
        * only_b**wins
        * only_a**losses
        * agree ** (pairs - wins - losses)
        for wins in range(pairs + 1)
        for losses in range(min(limits[wins], pairs - wins) + 1)
    )


@pytest.mark.parametrize("pairs", [1, 2, 7, 25])
def test_the_chance_of_a_region_is_the_sum_over_its_tables(pairs: int) -> None:
    """Also where one of the three chances is 0."""
    for difference, least in product((-0.4, 0.0, 0.3), (-1.0, 1.0, 2.5)):
        limits = list_limits(pairs, difference, least)
        for only_a, only_b in ((0.1, 0.2), (0.0, 0.3), (0.6, 0.0), (0.5, 0.5), (0.0, 0.0)):
            expected = sum_tables(limits, pairs, only_a, only_b)
            assert region_chance(limits, pairs, only_a, only_b) == pytest.approx(
                expected, abs=1e-12
            )


def test_more_wins_and_fewer_losses_never_lower_the_score() -> None:
    """So that a test at one difference is one for all smaller ones."""
    for pairs, difference in product((6, 30), (-0.7, -0.1, 0.0, 0.2, 0.8)):
        for wins in range(pairs):
            for losses in range(pairs - wins):
                here = tango_score(wins, losses, pairs, difference)
                assert tango_score(wins + 1, losses, pairs, difference) >= here - 1e-12
                assert tango_score(wins, losses + 1, pairs, difference) <= here + 1e-12


@pytest.mark.parametrize(
    ("pairs", "difference", "level"),
    [(20, -0.1, 0.025), (20, 0.1, 0.05), (45, 0.0, 0.01), (80, -0.05, 0.025)],
)
def test_the_proven_bound_holds_on_a_fine_grid_and_is_hardly_above_it(
    pairs: int, difference: float, level: float
) -> None:
    """The size of the test is never above its level, for 4,000 rates of discordant pairs."""
    limits = list(find_region(pairs, difference, level))
    least = abs(difference)
    rates = (least + (1 - least) * i / 4000 for i in range(4001))
    largest = max(
        region_chance(limits, pairs, (d - difference) / 2, (d + difference) / 2) for d in rates
    )
    bound = bound_chance(limits, pairs, difference, level)
    assert largest <= bound <= level
    assert bound <= 1.06 * largest
    # It uses its level: the next table would exceed it, or nearly so.
    assert largest > 0.6 * level


def test_tangos_interval_does_not_keep_its_level_where_the_exact_one_does() -> None:
    """Non-inferiority by 10 points with 20 pairs, at a nominal 2.5 % for each end."""
    pairs, margin = 20, -0.1

    @cache
    def tango_low(wins: int, losses: int) -> float:
        found = paired_difference_interval(pairs - wins - losses, wins, losses, 0)
        return found.low

    tables = [(w, lost) for w in range(pairs + 1) for lost in range(pairs + 1 - w)]
    region = find_region(pairs, margin, 0.025)
    worst = {"tango": 0.0, "exact": 0.0}
    for step in range(1, 60):
        rate = 0.1 + 0.9 * step / 60
        only_a, only_b = (rate - margin) / 2, (rate + margin) / 2
        chances = {
            (w, lost): math.comb(pairs, w)
            * math.comb(pairs - w, lost)
            * only_b**w
            * only_a**lost
            * (1 - rate) ** (pairs - w - lost)
            for w, lost in tables
        }
        for name, shows in (
            ("tango", lambda w, lost: tango_low(w, lost) > margin),
            ("exact", lambda w, lost: lost <= region[w]),
        ):
            total = math.fsum(chance for table, chance in chances.items() if shows(*table))
            worst[name] = max(worst[name], total)
    assert worst["tango"] > 0.025
    assert 0.015 < worst["exact"] <= 0.025


def test_a_table_belongs_to_its_own_region() -> None:
    """A p-value counts what was seen."""
    for wins, losses in ((0, 0), (3, 1), (0, 9), (5, 5)):
        assert order_tables(wins, losses, 10, 0.025)[wins] >= losses


def test_the_exact_interval_is_hardly_wider_than_tangos() -> None:
    """With 100 pairs its lower end is less than a point lower."""
    exact = find_low_end(24, 8, 100, 0.025)
    approximate = paired_difference_interval(60, 24, 8, 8).low
    assert approximate - 0.01 < exact < approximate + 0.002


def test_no_bet_gains_on_average_without_the_difference() -> None:
    """The mean capital after ten pairs is at most 1, for arms at the limit and below it."""
    bets = ((0.3, 0.7), (0.9, 0.3))
    for limit, rate in product((-0.2, 0.0, 0.1), (0.25, 0.6, 1.0)):
        for difference in (limit, limit - 0.05):
            only_a, only_b = (rate - difference) / 2, (rate + difference) / 2
            mean = math.fsum(
                math.comb(10, wins)
                * math.comb(10 - wins, losses)
                * only_b**wins
                * only_a**losses
                * (1 - rate) ** (10 - wins - losses)
                * find_capital(bets, 10, wins, losses, limit)
                for wins in range(11)
                for losses in range(11 - wins)
            )
            assert mean <= 1 + 1e-9
            if difference == limit:
                assert mean == pytest.approx(1.0)
