"""Our comparisons need fewer pairs than others, each followed here in a way of its own."""

from __future__ import annotations

import numpy as np
import pytest
from bench.comparisons import ROWS, Line, Row, group_sequential, plan
from numpy.typing import NDArray
from scipy.stats import binom

from trialwise.stats.paired_designs import DesignQuestion, discordant_rates
from trialwise.stats.sequential import Decision, SequentialDesign

pytestmark = pytest.mark.slow

SIZE, POWER = 0.025, 0.80


def follow_design(design: SequentialDesign, share: float) -> tuple[float, float]:
    """P(better) and the expected discordant pairs, by what the design says of each count."""
    better = expected = 0.0
    chances = np.array([1.0])
    for n in range(1, design.cap + 1):
        expected += chances.sum()
        chances = np.convolve(chances, [1 - share, share])
        said = [
            design.decide(n, n - wins) if chance else None for wins, chance in enumerate(chances)
        ]
        better += sum(c for c, what in zip(chances, said, strict=True) if what is Decision.PASS)
        chances = np.where([what is None for what in said], chances, 0.0)
    assert chances.sum() == 0
    return better, expected


def follow_wald(split: float, share: float, *, both: bool) -> tuple[float, float]:
    """The same for Wald's test, as a walk of the log-likelihood ratio between two lines.

    In both directions the walk is mirrored, and it goes on until both have ended.
    """
    slope = np.log(split / (1 - split))
    upper, lower = np.log(POWER / SIZE), np.log((1 - POWER) / (1 - SIZE))
    better = expected = 0.0
    # The tests under way: of a better B, of a worse one.
    states = {(True, both): np.array([1.0])}
    n = 0
    while sum(state.sum() for state in states.values()) > 1e-12:
        n += 1
        expected += sum(state.sum() for state in states.values())
        wins = np.arange(n + 1)
        up = wins * slope + n * np.log(2 * (1 - split))
        down = up[::-1]
        later: dict[tuple[bool, bool], NDArray[np.float64]] = {}
        for (tests_up, tests_down), state in states.items():
            chances = np.convolve(state, [1 - share, share])
            said_up = tests_up & (up >= upper)
            said_down = tests_down & (down >= upper)
            better += chances[said_up].sum()
            rest = np.where(said_up | said_down, 0.0, chances)
            goes_up, goes_down = tests_up & (up > lower), tests_down & (down > lower)
            for place in ((True, True), (True, False), (False, True)):
                here = (goes_up == place[0]) & (goes_down == place[1])
                later[place] = later.get(place, 0.0) + np.where(here, rest, 0.0)
        states = later
    return better, expected


def follow_looks(at: tuple[int, ...], needed: tuple[int, ...], share: float) -> tuple[float, float]:
    """The same for looks, by adding a binomial number of wins from one look to the next."""
    better = expected = 0.0
    chances, before = np.array([1.0]), 0
    for n, most in zip(at, needed, strict=True):
        step = n - before
        expected += step * chances.sum()
        chances = np.convolve(chances, binom.pmf(np.arange(step + 1), step, share))
        wins = np.arange(n + 1)
        better += chances[wins >= most].sum()
        chances = np.where((wins < most) & (n - wins < most), chances, 0.0)
        before = n
    return better, expected


def find_fixed_power(rate_a: float, rate_b: float, n: int) -> float:
    """The power of McNemar's exact test of this many pairs, by the losses that it allows."""
    only_a, only_b = discordant_rates(rate_a, rate_b)
    d = np.arange(n + 1)
    # The most losses at which the lower tail is small enough.
    most = binom.ppf(SIZE, d, 0.5)
    most = np.where(binom.cdf(most, d, 0.5) > SIZE, most - 1, most)
    allowed = binom.cdf(most, d, only_a / (only_a + only_b))
    return float(np.sum(binom.pmf(d, n, only_a + only_b) * allowed))


def check(line: Line, pairs: tuple[float, float]) -> None:
    assert (line.better, line.equal) == pytest.approx(pairs, rel=1e-7)


@pytest.mark.parametrize("rates", ROWS, ids=str)
def test_fewer_pairs_than_every_other_test_at_the_same_errors(rates: tuple[float, float]) -> None:
    """If B is better, and if the arms are equal: Wald, O'Brien–Fleming, Pocock and McNemar."""
    row = Row(*rates)
    only_a, only_b = discordant_rates(*rates)
    shares = only_a + only_b, sum(discordant_rates(rates[0], rates[0]))
    questions: dict[DesignQuestion, list[Line]] = {
        "better": row.ask_better(),
        "different": row.ask_different(),
    }
    for question, (ours, *peers) in questions.items():
        design = plan(*rates, question=question)
        (power, found), (size, equal) = (follow_design(design, p) for p in (row.split, 0.5))
        assert power >= POWER - 1e-12
        assert size <= SIZE + 1e-12
        check(ours, (found / shares[0], equal / shares[1]))
        for peer in peers:
            assert ours.better < peer.better, peer.name
            assert ours.equal < peer.equal, peer.name
    one_way, fixed = questions["better"][1:]
    both_ways, fleming, pocock, _ = questions["different"][1:]
    for line, both in ((one_way, False), (both_ways, True)):
        (power, found), (size, equal) = (
            follow_wald(row.split, p, both=both) for p in (row.split, 0.5)
        )
        assert power >= POWER
        assert size <= SIZE
        check(line, (found / shares[0], equal / shares[1]))
    for line, exponent in ((fleming, 0.5), (pocock, 0.0)):
        looks = group_sequential(row.split, exponent)
        (power, found), (size, equal) = (
            follow_looks(looks.at, looks.wins, p) for p in (row.split, 0.5)
        )
        assert power >= POWER
        assert size <= SIZE
        check(line, (found / shares[0], equal / shares[1]))
    assert fixed.better == fixed.equal
    assert find_fixed_power(*rates, int(fixed.better)) >= POWER
    assert find_fixed_power(*rates, int(fixed.better) - 1) < POWER
