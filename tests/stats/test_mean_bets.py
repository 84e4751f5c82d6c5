"""Bounds on a mean score: the capital in rationals, and errors counted exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.bounded_means import betting_capital, betting_mean_interval, fewest_scores
from trialwise.stats.rate_intervals import clopper_pearson


def capital(scores: Sequence[Fraction], mean: Fraction) -> Fraction:
    """Bet 1, 1/2, 1/4 … of every share of the capital, in rationals."""
    steps = math.ceil(math.log2(len(scores)) / 2) + 2
    shares = [Fraction(1, 2**step) for step in range(steps)]
    total = Fraction(0)
    for share in shares:
        won = Fraction(1)
        for score in scores:
            won *= 1 - share + share * score / mean
        total += won
    return total / len(shares)


def distributions(mean: Fraction, values: Sequence[Fraction]) -> Iterator[list[Fraction]]:
    """Every way to give weights in eighths to some values so that they have a mean."""
    for cut in product(range(9), repeat=len(values) - 1):
        rest = 8 - sum(cut)
        weights = [Fraction(one, 8) for one in (*cut, rest)]
        if rest >= 0 and sum(w * v for w, v in zip(weights, values, strict=True)) <= mean:
            yield weights


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_the_capital_is_what_the_bets_win(count: int) -> None:
    """By rationals, for scores of four kinds."""
    scores = [Fraction(place % 4, 3) for place in range(count)]

    for mean in (Fraction(1, 5), Fraction(1, 2), Fraction(4, 5)):
        found = betting_capital([float(one) for one in scores], float(mean))
        assert float(capital(scores, mean)) == pytest.approx(found, rel=1e-9)


@pytest.mark.requirement(
    "scoring StimulusScore",
    "Graders give a score between 0 and 1, and scores are averaged.",
    "`mean_at_least` decides on the mean, with the error rates that it states",
)
@pytest.mark.parametrize("error", [Fraction(1, 20), Fraction(1, 5)])
def test_a_mean_that_is_not_reached_is_shown_at_most_as_often_as_stated(error: Fraction) -> None:
    """All distributions in eighths over 0, ½, ¾ and 1 with a mean of at most ¾; all their samples.

    A low end above the true mean is the wrong PASS, and the same mirrored is the wrong FAIL.
    """
    values, mean, count = [Fraction(n, 4) for n in (0, 2, 3, 4)], Fraction(3, 4), 5
    shown = [
        one
        for one in product(range(4), repeat=count)
        if capital([values[place] for place in one], mean) >= 1 / error
    ]
    ends = {}
    for one in product(range(4), repeat=count):
        key = tuple(sorted(one))
        if key not in ends:
            scores = [float(values[place]) for place in key]
            ends[key] = betting_mean_interval(scores, low_error=float(error), high_error=0.05)

    assert {tuple(sorted(one)) for one in shown} == {
        key for key, found in ends.items() if found.low >= mean - Fraction(1, 10**9)
    }
    for weights in distributions(mean, values):
        chance = sum(math.prod(weights[place] for place in one) for one in shown)
        assert chance <= error


def test_unlike_inputs_in_any_order_make_no_error_larger() -> None:
    """Six inputs with scores of their own: whole rounds, and rounds that draw some of them."""
    error, mean = Fraction(1, 5), Fraction(1, 2)
    # Each input scores 1 or ¼ with a chance of its own; together they have a mean of ½.
    chances = [Fraction(n, 18) for n in (0, 1, 2, 8, 10, 15)]
    means = [p + (1 - p) * Fraction(1, 4) for p in chances]
    assert sum(means) / 6 == mean
    for drawn in (4, 6):
        wrong = Fraction(0)
        subsets = list(combinations(chances, drawn))
        for subset in subsets:
            for outcome in product((0, 1), repeat=drawn):
                scores = [Fraction(1) if one else Fraction(1, 4) for one in outcome]
                if capital(scores, mean) >= 1 / error:
                    wrong += math.prod(
                        p if one else 1 - p for p, one in zip(subset, outcome, strict=True)
                    )
        assert 0 <= wrong / len(subsets) <= error


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_interval_holds_the_mean_and_asks_for_no_order(scores: list[float]) -> None:
    """Ends are mirrored with the scores, and less certainty never widens them."""
    found, turned = betting_mean_interval(scores), betting_mean_interval(scores[::-1])
    mirrored = betting_mean_interval([1 - one for one in scores])
    narrow = betting_mean_interval(scores, low_error=0.3, high_error=0.3)

    assert 0 <= found.low <= math.fsum(scores) / len(scores) + 1e-9
    assert found.high >= math.fsum(scores) / len(scores) - 1e-9
    assert tuple(found) == pytest.approx(tuple(turned), abs=1e-8)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx(tuple(found), abs=1e-8)
    assert found.low <= narrow.low + 1e-9
    assert narrow.high <= found.high + 1e-9


def test_scores_that_hardly_vary_are_bounded_more_closely_than_passes() -> None:
    """Fifty scores around 0.9 tell more than 45 passes of 50."""
    scores = [0.85, 0.9, 0.95, 0.9, 0.9] * 10
    low, high = betting_mean_interval(scores)
    least, most = clopper_pearson(45, 50, confidence=0.9)

    assert high - low < 0.75 * (most - least)


def test_many_different_scores_are_rounded_to_the_safe_side() -> None:
    """The bound of 6,000 scores is at most 0.0003 below that of the same scores on a grid."""
    scores = [(place * 0.6180339887) % 1 for place in range(6000)]
    low, high = betting_mean_interval(scores)
    plain = betting_mean_interval([round(one * 1000) / 1000 for one in scores])

    assert (plain.low, plain.high) == pytest.approx((low, high), abs=0.0013)
    assert low < 0.5 < high


@pytest.mark.parametrize("mean", [0.3, 0.8, 0.95])
def test_the_fewest_perfect_scores_show_a_mean_and_one_less_does_not(mean: float) -> None:
    """By the interval itself."""
    count = fewest_scores(mean)

    assert betting_mean_interval([1.0] * count).low >= mean
    assert count == 1 or betting_mean_interval([1.0] * (count - 1)).low < mean


def test_what_is_out_of_range_is_refused() -> None:
    """Each argument by its name."""
    with pytest.raises(InvalidArgument, match="scores"):
        betting_mean_interval([])
    with pytest.raises(InvalidArgument, match="scores"):
        betting_mean_interval([1.5])
    with pytest.raises(InvalidArgument, match="low_error"):
        betting_mean_interval([0.5], low_error=0)
    with pytest.raises(InvalidArgument, match="mean"):
        betting_capital([0.5], 1.0)
