"""Pairwise preference: both places, ties explicit, higher always for the candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.judges import Comparison, Preference, VoteCache, pairwise, win_rate
from trialwise.stats import Interval, Undefined, paired_difference_interval, sign_test

Start = Callable[[Callable[[Any], Any]], Any]
RUBRIC = "The shorter answer is better."


def choice(better: str, *, much: bool = False) -> str:
    return f'{{"better": "{better}", "much": {str(much).lower()}, "reasoning": "r"}}'


async def compare(one: Any, candidate: str, reference: str, **options: Any) -> Comparison:
    comparing = pairwise(RUBRIC, one.service(), **options)
    try:
        return await comparing.compare(candidate, reference, given="Why?", seed=5)
    finally:
        await comparing.aclose()


def shorter(asked: Any) -> str:
    first, second = asked.sections["FIRST"], asked.sections["SECOND"]
    if len(first) == len(second):
        return choice("equal")
    better = "first" if len(first) < len(second) else "second"
    return choice(better, much=abs(len(first) - len(second)) > 10)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("candidate", "reference", "preference", "score"),
    [
        ("ab", "abcd", Preference.WIN, 0.75),
        ("ab", "abcd" * 5, Preference.WIN, 1.0),
        ("abcd", "ab", Preference.LOSS, 0.25),
        ("abcd" * 5, "ab", Preference.LOSS, 0.0),
        ("ab", "xy", Preference.TIE, 0.5),
    ],
)
async def test_higher_means_that_the_candidate_is_better(
    juror: Start, candidate: str, reference: str, preference: Preference, score: float
) -> None:
    """Asked twice with the places swapped; both answers agree."""
    one = juror(shorter)

    found = await compare(one, candidate, reference)

    assert (preference, score) == (found.preference, found.score)
    places = {(asked.sections["FIRST"], asked.sections["SECOND"]) for asked in one.asked}
    assert {(candidate, reference), (reference, candidate)} == places
    assert {"Why?"} == {asked.sections["INPUT"] for asked in one.asked}


@pytest.mark.anyio
@pytest.mark.parametrize("place", ["first", "second"])
async def test_a_preference_for_a_place_is_none_for_an_output(juror: Start, place: str) -> None:
    """It is a tie that says so."""
    found = await compare(juror(lambda _: choice(place, much=True)), "a", "b")

    assert (Preference.INCONSISTENT, 0.5) == (found.preference, found.score)


@pytest.mark.anyio
async def test_half_a_preference_is_a_tie(juror: Start) -> None:
    """One answer prefers, the other does not: not enough, though the score shows it."""
    found = await compare(
        juror(lambda asked: choice("first" if asked.sections["FIRST"] == "a" else "equal")),
        "a",
        "b",
    )

    assert (Preference.TIE, 0.625) == (found.preference, found.score)


@pytest.mark.anyio
async def test_a_missing_answer_counts_as_nothing(juror: Start, no_waiting: Any) -> None:
    """Neither side gets it."""
    found = await compare(
        juror(lambda asked: 500 if asked.sections["FIRST"] == "a" else choice("first")),
        "a",
        "b",
        retries=0,
        clock=no_waiting,
    )

    assert Preference.MISSING is found.preference
    assert isinstance(found.score, Undefined)
    assert "500" in found.explanation


@pytest.mark.anyio
async def test_a_comparison_is_paid_for_once(juror: Start, tmp_path: Path) -> None:
    """Each place by itself; turned round it is the same two questions."""
    one = juror(shorter)
    cache = VoteCache(tmp_path)

    first = await compare(one, "ab", "abcd", cache=cache)
    again = await compare(one, "ab", "abcd", cache=cache)
    turned = await compare(one, "abcd", "ab", cache=cache)

    assert 2 == len(one.asked)
    assert first == again
    assert (Preference.LOSS, 0.25) == (turned.preference, turned.score)


def outcomes(**counts: int) -> list[Comparison]:
    return [
        Comparison(preference=Preference(name), score=0.5)
        for name, count in counts.items()
        for _ in range(count)
    ]


def test_a_win_rate_counts_a_tie_one_half() -> None:
    """Ties widen nothing away: they are in the denominator, and counted apart."""
    found = win_rate(outcomes(win=12, loss=4, tie=3, inconsistent=1, missing=5))

    assert (12, 4, 4, 1, 5) == (
        found.wins,
        found.losses,
        found.ties,
        found.inconsistent,
        found.missing,
    )
    assert 0.7 == found.rate
    expected = paired_difference_interval(4, 12, 4, 0)
    assert isinstance(found.interval, Interval)
    assert ((1 + expected.low) / 2, (1 + expected.high) / 2) == tuple(found.interval)
    assert sign_test(12, 4).p_value == found.p_value


def test_turning_the_sides_round_turns_the_rate_round() -> None:
    """Rate, interval and nothing else."""
    one, other = win_rate(outcomes(win=9, loss=2, tie=4)), win_rate(outcomes(win=2, loss=9, tie=4))

    assert isinstance(one.interval, Interval)
    assert isinstance(other.interval, Interval)
    assert one.rate == pytest.approx(1 - other.rate)  # type: ignore[operator]
    assert tuple(one.interval) == pytest.approx((1 - other.interval.high, 1 - other.interval.low))
    assert one.p_value == other.p_value


def test_without_a_comparison_there_is_no_rate() -> None:
    """Undefined, not one half."""
    for none in ([], outcomes(missing=3)):
        found = win_rate(none)
        assert isinstance(found.rate, Undefined)
        assert isinstance(found.interval, Undefined)
        assert 1.0 == found.p_value


@pytest.mark.parametrize(
    "call",
    [
        lambda: win_rate(["win"]),  # type: ignore[list-item]
        lambda: win_rate([], confidence=1.0),
        lambda: pairwise(" ", object()),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused(call: Callable[[], object]) -> None:
    """With the argument's name."""
    with pytest.raises(InvalidArgument):
        call()
