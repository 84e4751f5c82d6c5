"""The gates before a run, against closed forms and linear scans in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import InvalidArgument
from trialwise.stats.latency_baseline import precedence_existence
from trialwise.stats.latency_planning import (
    planned_trials_needed,
    precedence_planning,
    verification_gate,
)
from trialwise.stats.result_types import Undefined
from trialwise.stats.toolbox.nondegeneracy import nondegeneracy_planning

SHARES = st.integers(1, 100).map(lambda i: i / 100)


def smallest_baseline(nt: int, p: Fraction, alpha: Fraction) -> int:
    """Scanning upward for P(the top n_t − r + 1 of all values are the test's) ≤ alpha."""
    top = nt - math.ceil(p * nt) + 1

    def breach(nb: int) -> Fraction:
        return prod((Fraction(nt - i, nb + nt - i) for i in range(top)), start=Fraction(1))

    return next(nb for nb in count(nt) if breach(nb) <= alpha)


# How many trials to plan


def test_planned_trials_are_the_first_that_expect_enough() -> None:
    """Every rate in hundredths and every minimum up to 30 agree with a scan in fractions."""
    for hundredths in range(1, 101):
        rate = Fraction(hundredths, 100)
        planned = 0
        for minimum in range(31):
            while math.floor(planned * rate) < minimum:
                planned += 1
            assert planned == planned_trials_needed(minimum, hundredths / 100)


def test_products_are_taken_in_decimals() -> None:
    """0.29 · 100 is 29 successes, where doubles see 28.999…; so 100 trials are enough."""
    assert math.floor(0.29 * 100) == 28

    assert planned_trials_needed(29, 0.29) == 100
    assert nondegeneracy_planning(100, 0.29, 0.95).expected_trials == 29
    assert verification_gate(100, 0.29, 0.9).feasible is True


def test_no_plan_expects_a_success_that_never_comes() -> None:
    """A success rate of 0 leaves the plan undefined, with the reason."""
    assert isinstance(planned_trials_needed(5, 0), Undefined)
    assert planned_trials_needed(0, 0) == 0


# Rule set "wilson"


def test_the_companions_example_is_infeasible() -> None:
    """Companion 12.5.3: 200 trials at 0.80 expect 160; a p99 at 95 % asks for max(100, 299)."""
    gate = verification_gate(200, 0.8, 0.99)

    assert (gate.expected_trials, gate.emission_minimum, gate.existence_minimum) == (160, 100, 299)
    assert (gate.minimum_trials, gate.feasible) == (299, False)
    assert gate.planned_trials_needed == 374


@pytest.mark.parametrize(
    ("p", "confidence", "minimum"),
    [(0.5, 0.95, 5), (0.5, 0.5, 5), (0.9, 0.5, 10), (0.9, 0.95, 29), (0.99, 0.5, 100)],
)
def test_the_stricter_minimum_binds(p: float, confidence: float, minimum: int) -> None:
    """max(5, 5), max(5, 1), max(10, 7), max(10, 29) and max(100, 69)."""
    assert minimum == verification_gate(10, 1, p, confidence=confidence).minimum_trials


@given(st.sampled_from([0.5, 0.9, 0.95, 0.99]), SHARES)
def test_the_gate_opens_at_the_plan_it_names(p: float, rate: float) -> None:
    """The plan needed is feasible and one trial less is not."""
    needed = verification_gate(1, rate, p).planned_trials_needed
    assert isinstance(needed, int)

    assert verification_gate(needed, rate, p).feasible is True
    assert verification_gate(needed - 1, rate, p).feasible is False


# Rule set "exact"


def test_a_plan_below_the_emission_minimum_is_warned_of() -> None:
    """110 trials at 0.8 expect 88 of the 100 a p99 needs; 125 would do. 30 at 0.9 are plenty."""
    short = nondegeneracy_planning(110, 0.8, 0.99)
    enough = nondegeneracy_planning(30, 0.9, 0.95)

    assert (short.expected_trials, short.minimum_trials, short.warning) == (88, 100, True)
    assert short.planned_trials_needed == 125
    assert (enough.expected_trials, enough.minimum_trials, enough.warning) == (27, 20, False)
    assert enough.planned_trials_needed == 23


def test_expecting_exactly_the_minimum_is_no_warning() -> None:
    """The plan that is asked for is enough, and one trial less is not."""
    assert nondegeneracy_planning(125, 0.8, 0.99).warning is False
    assert nondegeneracy_planning(124, 0.8, 0.99).warning is True


@pytest.mark.parametrize("p", ["0.5", "0.9", "0.95", "0.99"])
@pytest.mark.parametrize("alpha", ["0.05", "0.1"])
def test_the_baseline_asked_for_is_the_smallest_with_a_rank(p: str, alpha: str) -> None:
    """A scan of the closed form finds the same size, exact boundaries included."""
    for nt in (1, 2, 3, 7, 10, 19, 20, 25, 40):
        plan = precedence_planning(1, nt, 1, float(p), alpha=float(alpha))
        assert smallest_baseline(nt, Fraction(p), Fraction(alpha)) == plan.minimum_baseline_trials


def test_the_planning_example_comes_out() -> None:
    """160 expected latencies have no p99 rank against 400; a baseline of 554 would give one."""
    plan = precedence_planning(400, 200, 0.8, 0.99)

    assert (plan.expected_trials, plan.warning, plan.planning_rank) == (160, True, None)
    assert plan.minimum_baseline_trials == 554
    assert smallest_baseline(160, Fraction("0.99"), Fraction("0.05")) == 554


def test_a_plan_without_a_warning_names_the_rank() -> None:
    """The planning rank is the precedence rank at the expected count."""
    plan = precedence_planning(1000, 20, 0.75, 0.95)

    assert (plan.expected_trials, plan.warning) == (15, False)
    assert plan.planning_rank == precedence_existence(1000, 15, 0.95).rank
    assert plan.minimum_baseline_trials == 285 == 15 * 19


def test_a_plan_that_expects_nothing_is_warned_of() -> None:
    """Without an expected success there is no rank and no baseline that would help."""
    plan = precedence_planning(1000, 1, 0.5, 0.95)

    assert (plan.expected_trials, plan.warning) == (0, True)
    assert isinstance(plan.minimum_baseline_trials, Undefined)


@given(st.integers(1, 400), st.integers(1, 60), SHARES, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_warning_means_the_baseline_is_too_small(
    baseline: int, planned: int, rate: float, p: float
) -> None:
    """With at least as many latencies as asked for there is a rank."""
    plan = precedence_planning(baseline, planned, rate, p)

    if isinstance(plan.minimum_baseline_trials, int):
        assert plan.minimum_baseline_trials >= plan.expected_trials
        if baseline >= plan.expected_trials:
            assert plan.warning is (baseline < plan.minimum_baseline_trials)
    else:
        assert plan.warning is True


# Refused input


def test_bad_arguments_are_named() -> None:
    """Each message starts with the argument that was wrong."""
    for bad in (0, -1, 2.5, True):
        with pytest.raises(InvalidArgument, match=r"^planned_trials must"):
            nondegeneracy_planning(bad, 0.5, 0.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match=r"^planned_trials must"):
            precedence_planning(10, bad, 0.5, 0.5)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match=r"^planned_trials must"):
            verification_gate(bad, 0.5, 0.5)  # type: ignore[arg-type]
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgument, match=r"^success_rate must"):
            nondegeneracy_planning(10, bad, 0.5)
        with pytest.raises(InvalidArgument, match=r"^success_rate must"):
            planned_trials_needed(10, bad)
        with pytest.raises(InvalidArgument, match=r"^success_rate must"):
            precedence_planning(10, 10, bad, 0.5)
    with pytest.raises(InvalidArgument, match=r"^minimum must"):
        planned_trials_needed(-1, 0.5)
    with pytest.raises(InvalidArgument, match=r"^percentile must be one of"):
        verification_gate(10, 0.5, 0.999)
    with pytest.raises(InvalidArgument, match=r"^confidence must"):
        verification_gate(10, 0.5, 0.5, confidence=1)
    with pytest.raises(InvalidArgument, match=r"^alpha must"):
        precedence_planning(10, 10, 0.5, 0.5, alpha=0)
    with pytest.raises(InvalidArgument, match=r"^baseline_trials must"):
        precedence_planning(-1, 10, 0.5, 0.5)
