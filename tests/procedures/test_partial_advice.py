"""A plan that was cut short says how many more trials it needs and how often they decide it."""

from __future__ import annotations

from collections.abc import Container
from math import comb
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.verdict import Finding
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.walks import chance_to_decide


def walk(design: SequentialDesign, n: int, failures: int, p: float) -> float:
    """P(PASS or FAIL) from a state, trial by trial."""
    if failures <= design.accept[n] or failures >= design.reject[n]:
        return 1.0
    low, high = design.futile[n] if design.futile else (1, 0)
    if n == design.cap or low <= failures <= high:
        return 0.0
    return p * walk(design, n + 1, failures, p) + (1 - p) * walk(design, n + 1, failures + 1, p)


@pytest.mark.parametrize(("n", "failures"), [(48, 3), (50, 6), (55, 4)])
@pytest.mark.parametrize("p", [0.5, 0.9, 1.0])
def test_the_chance_of_a_decision_from_a_state_is_that_of_every_path(
    n: int, failures: int, p: float
) -> None:
    """Counted path by path to the end of the design."""
    design = SequentialDesign.strict(0.9, cap=60)
    if design.decide(n, failures) is None:
        assert chance_to_decide(design, p, start=(n, failures)) == pytest.approx(
            walk(design, n, failures, p)
        )


def cut_short(failing: Container[int], after: int, **criterion: Any) -> Finding:
    """A criterion whose budget ended its run after this many trials."""
    one = tw.Criterion("ok", tw.contains("yes"), at_least=0.9, **criterion)
    contract = tw.Contract("c", lambda _, index: "no" if index in failing else "yes", [one])
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1}
    run = tw.run(contract, inputs=["x"], budget=tw.Budget(trials=after), **usual)
    return run.verdict.findings[0]


def test_a_design_that_may_stay_open_states_the_chance() -> None:
    """At the rate so far, which is named; nothing is promised about another."""
    finding = cut_short({20, 44}, 45, max_trials=60)
    design: Any = finding.plan.design
    share = 100 * walk(design, 45, 2, 43 / 45)

    assert finding.advice == (
        f"It needs up to 15 more trials, which decide it in {share:.1f} % of runs if the rate is "
        "95.6 %, as so far; --resume continues a stored run."
    )


def test_a_fixed_number_states_the_chance_of_either_cutoff() -> None:
    """PASS with the upper count, FAIL with the lower one; between them it stays open."""
    finding = cut_short(range(5), 50, trials=100, undecided="inconclusive")
    plan, p = finding.plan, 0.9
    assert plan.cutoff is not None
    assert plan.failing.most_failing is not None
    share = sum(
        comb(50, more) * p**more * (1 - p) ** (50 - more)
        for more in range(51)
        if 45 + more >= plan.cutoff or 45 + more <= plan.failing.most_failing
    )
    assert f"up to 50 more trials, which decide it in {100 * share:.1f} % of runs" in finding.advice


def test_a_fixed_number_that_always_decides_says_so() -> None:
    """Every count PASSes or FAILs."""
    finding = cut_short(range(1), 50, trials=100, undecided="fail")
    assert "up to 50 more trials, which decide it in 100 % of runs" in finding.advice


def test_a_plan_that_saw_no_trial_promises_nothing() -> None:
    """Without a rate there is no chance to state."""
    from trialwise.model.evidence import Tally
    from trialwise.procedures.partial_findings import word_more_trials

    plan = cut_short(range(5), 50, max_trials=60).plan
    assert word_more_trials(plan, Tally(trials=0, passed=0)) == (
        "It needs up to 60 more trials; --resume continues a stored run."
    )
