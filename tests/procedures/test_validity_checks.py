"""Checks before a verdict, through real comparisons: the same cases, and measured alike."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.findings import ValidityCheck
from trialwise.runtime.answers import Comparison

RIGHT = tw.Criterion("right", tw.equals("yes"), at_least=0.5)
INPUTS = [f"question {k}" for k in range(10)]


def unreachable(lost: int, *, says: str = "yes") -> Callable[[str, int], str]:
    """A service that cannot be reached in this many trials, every fourth of the first."""

    def reply(_: str, index: int) -> str:
        if index in range(0, 4 * lost, 4):
            raise ConnectionRefusedError("connection refused")
        return says

    return reply


def compare(control: Any, candidate: Any, *, trials: int = 60, **settings: Any) -> Comparison:
    contract = tw.Contract("agent", control, [RIGHT], sampling=INPUTS)
    found: tw.Comparison = tw.compare(
        contract,
        contract.with_service(candidate),
        labels=("A", "B"),
        trials=trials,
        seed=4,
        store=None,
        retries=0,
        **settings,
    )
    return found


def find(found: Comparison, name: str) -> ValidityCheck:
    return next(one for one in found.verdict.checks if one.name == name)


def two_sided(more: int, fewer: int) -> float:
    n = more + fewer
    return float(min(1.0, 2 * sum(comb(n, k) for k in range(more, n + 1)) / 2**n))


@pytest.mark.requirement(
    "statistical-ci lessons",
    "A comparison checks that both arms could be measured alike before it says who is better.",
    "the check `measured alike`; INCONCLUSIVE with the two shares in the first line",
)
def test_an_arm_that_could_be_measured_less_often_gets_no_verdict() -> None:
    """
    B fails every trial that was measured, which would be FAIL; 12 lost trials to 0 are p = 0.0005.
    """
    found = compare(unreachable(0), unreachable(12, says="no"))
    check = find(found, "measured alike")

    assert two_sided(12, 0) == check.p_value
    assert (False, True) == (check.holds, check.withholds)
    assert Decision.INCONCLUSIVE is found.decision
    assert found.verdict.statement.startswith("Could not be measured: 12 of 60 in B, 0 of 60 in A.")
    assert found.verdict.statement in " ".join(str(found.build_page().lead).split())
    assert "could not be measured" in found.findings[0].statement


def test_a_few_lost_trials_more_leave_the_verdict() -> None:
    """
    7 to 0 are p = 0.016, above the strict level of 1 %.
    """
    found = compare(unreachable(0), unreachable(7, says="no"))

    assert two_sided(7, 0) == find(found, "measured alike").p_value
    assert find(found, "measured alike").holds
    assert Decision.FAIL is found.decision


def test_where_lost_trials_count_as_failures_nothing_is_withheld() -> None:
    """
    Whoever decides by intent to treat compares availability: 15 lost trials are 15 failures.
    """
    found = compare(unreachable(0), unreachable(15), analysis="intent-to-treat")
    check = find(found, "measured alike")

    assert (False, False) == (check.holds, check.withholds)
    assert Decision.FAIL is found.decision


def test_the_checks_of_several_arms_share_their_level() -> None:
    """
    8 to 0 are p = 0.0078: below 1 % for one check, above a half of it for two.
    """
    from trialwise.procedures.comparing.pairing import name_arms
    from trialwise.procedures.comparison import COMPARISON

    two = compare(unreachable(0), unreachable(8))
    records = [two.control, two.candidate, two.candidate]
    three = COMPARISON.decide(name_arms(records, ("A", "B", "C")))

    assert not find(two, "measured alike").holds
    assert all(one.holds for one in three.checks if one.name == "measured alike")


def test_arms_of_one_comparison_saw_the_same_cases() -> None:
    found = compare(lambda _: "yes", lambda _: "no")

    check = find(found, "same cases")
    assert check.holds
    assert "A and B saw the same 60 cases: the same inputs, order and seeds." == check.statement


def test_fresh_trials_in_place_of_lost_ones_are_no_other_cases() -> None:
    found = compare(unreachable(0), unreachable(5))

    assert find(found, "same cases").holds


def test_cases_without_a_partner_stay_visible_with_the_reason() -> None:
    """
    A run of 40 trials beside one of 30: ten trials of the longer one have no partner.
    """
    contract = tw.Contract("agent", lambda _: "yes", [RIGHT], sampling=INPUTS)
    runs = [
        tw.run(contract, trials=trials, seed=4, curtail=False, store=None).record
        for trials in (40, 30)
    ]
    found = tw.compare_runs(*runs, labels=("A", "B"))
    check = find(found, "same cases")

    assert not check.holds
    assert "10 trials of A without a partner (the other run ended earlier)" in check.statement
    assert check.statement in found.verdict.caveats


def test_other_inputs_are_named_as_the_reason() -> None:
    runs = [
        tw.run(
            tw.Contract("agent", lambda _: "yes", [RIGHT], sampling=inputs),
            trials=20,
            curtail=False,
            seed=4,
            store=None,
        ).record
        for inputs in (INPUTS, INPUTS[:5])
    ]
    found = tw.compare_runs(*runs, labels=("A", "B"))

    assert "their inputs differ" in find(found, "same cases").statement
    assert Decision.INCONCLUSIVE is found.decision
