"""Deciding with trials in flight: gaps, order, and how many to start."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.sequential import SequentialDesign
from trialwise.stats.sequential.concurrency import trials_to_start
from trialwise.stats.toolbox.concurrent_rounds import chance_needed, round_characteristic, standing

SMALL = SequentialDesign.wald(0.8, 0.4, cap=7)
WIDE = SequentialDesign.optimal(0.90, 0.80)
#: The six true rates over which sequential designs are compared.
RATES = (0.70, 0.80, 0.85, 0.90, 0.95, 0.99)


def first_verdict(design: SequentialDesign, passed: tuple[bool, ...]) -> str | None:
    """The verdict of a complete sequence, by the definition of the boundaries."""
    failures = 0
    for n, success in enumerate(passed, start=1):
        failures += not success
        if failures <= design.accept[n]:
            return "PASS"
        if failures >= design.reject[n]:
            return "FAIL"
    return "INCONCLUSIVE" if len(passed) == design.cap else None


def test_a_verdict_is_given_exactly_when_no_filling_of_the_gaps_changes_it() -> None:
    """Every pattern of passes, failures and gaps up to the cap, against every filling."""
    for length in range(SMALL.cap + 1):
        for outcomes in product((True, False, None), repeat=length):
            gaps = [i for i, outcome in enumerate(outcomes) if outcome is None]
            verdicts = set()
            for filling in product((True, False), repeat=len(gaps)):
                filled = list(outcomes)
                for i, value in zip(gaps, filling, strict=True):
                    filled[i] = value
                verdicts.add(first_verdict(SMALL, tuple(bool(value) for value in filled)))
            expected = verdicts.pop() if len(verdicts) == 1 else None

            assert expected == standing(SMALL, outcomes).verdict


@given(st.permutations(range(20)), st.lists(st.booleans(), min_size=20, max_size=20))
def test_the_order_of_arrival_does_not_matter(order: list[int], passed: list[bool]) -> None:
    """Whichever results come first, the first verdict is the one of the issue order."""
    design = SequentialDesign.wald(0.9, 0.8, cap=20)
    known: list[bool | None] = [None] * 20
    given_early = None
    for i in order:
        known[i] = passed[i]
        given_early = given_early or standing(design, known).verdict

    assert first_verdict(design, tuple(passed)) == given_early


def test_a_gap_at_the_front_waits() -> None:
    """Fast passes behind a slow first trial do not decide before it could still matter."""
    design = SequentialDesign.wald(0.9, 0.8, cap=50)

    assert standing(design, [None, *[True] * 13]).verdict is None
    assert "PASS" == standing(design, [None, *[True] * 20]).verdict


def test_more_results_than_the_cap_are_refused() -> None:
    """A stream longer than its design is a mistake."""
    with pytest.raises(InvalidArgument, match="outcomes"):
        standing(SMALL, [True] * 8)


def exact_chance(
    design: SequentialDesign, n: int, f: int, ahead: int, prior: tuple[int, int]
) -> Fraction:
    """P(undecided after `ahead` more trials), summed over every path in rationals."""
    total = Fraction(0)
    for path in product((True, False), repeat=ahead):
        weight, m, k, open_so_far = Fraction(1), n, f, True
        for success in path:
            fails = Fraction(prior[1] + k, sum(prior) + m)
            weight *= 1 - fails if success else fails
            m, k = m + 1, k + (not success)
            decided = k <= design.accept[m] or k >= design.reject[m] or m == design.cap
            open_so_far = open_so_far and not decided
        total += weight if open_so_far else 0
    return total


@pytest.mark.parametrize(("n", "f"), [(0, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("ahead", [0, 1, 2, 4])
def test_the_chance_of_being_needed_counts_every_path(n: int, f: int, ahead: int) -> None:
    """The recursion over failures agrees with the enumeration of paths."""
    expected = exact_chance(SMALL, n, f, ahead, (1, 1))

    assert float(expected) == pytest.approx(chance_needed(SMALL, n, f, ahead), abs=1e-14)


def test_what_is_started_will_probably_be_needed() -> None:
    """The last trial started is needed with probability one half or more, the next is not."""
    for n, f in ((0, 0), (10, 1), (20, 3), (30, 4)):
        size = trials_to_start(WIDE, n, f, 0, concurrency=16)

        assert 1 <= size <= 16
        assert size == 1 or chance_needed(WIDE, n, f, size - 1) >= 0.5
        assert size == 16 or chance_needed(WIDE, n, f, size) < 0.5


def test_trials_in_flight_are_counted() -> None:
    """With as many in flight as allowed, or with a verdict reached, nothing is started."""
    assert 0 == trials_to_start(WIDE, 0, 0, 8, concurrency=8)
    assert 0 == trials_to_start(WIDE, 30, 0, 0, concurrency=8)
    assert trials_to_start(WIDE, 0, 0, 3, concurrency=8) <= 5


@pytest.mark.parametrize("rate", [0.0, 0.8, 0.9, 1.0])
def test_one_at_a_time_is_the_design_itself(rate: float) -> None:
    """Without concurrency, rounds, trials started and trials needed are the design's mean."""
    curve = round_characteristic(WIDE, rate, concurrency=1)
    mean = WIDE.operating_characteristic(rate).mean_trials

    assert mean == pytest.approx(curve.mean_rounds, abs=1e-9)
    assert mean == pytest.approx(curve.mean_started, abs=1e-9)


def test_eight_at_a_time_wastes_about_one_trial() -> None:
    """Over the six rates: about 4.6 rounds and one wasted trial, where greedy wastes three."""
    curves = [round_characteristic(WIDE, rate, concurrency=8) for rate in RATES]
    greedy = [round_characteristic(WIDE, rate, concurrency=8, likely=1e-9) for rate in RATES]

    assert 4.8 > sum(curve.mean_rounds for curve in curves) / 6
    assert 1.2 > sum(curve.mean_wasted for curve in curves) / 6
    assert 2.5 < sum(curve.mean_wasted for curve in greedy) / 6


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: chance_needed(SMALL, 2, 3, 1), "failures"),
        (lambda: chance_needed(SMALL, 2, 1, 1, prior=(0.0, 1.0)), "prior"),
        (lambda: trials_to_start(SMALL, 0, 0, 0, concurrency=0), "concurrency"),
        (lambda: trials_to_start(SMALL, 0, 0, 0, concurrency=1, likely=1.0), "likely"),
        (lambda: round_characteristic(SMALL, 1.5, concurrency=2), "rate"),
    ],
)
def test_bad_input_is_refused(call: object, argument: str) -> None:
    """Every refusal names the argument."""
    assert callable(call)
    with pytest.raises(InvalidArgument, match=argument):
        call()
