"""Before the first trial a reader learns how likely all decisions are to PASS together."""

from __future__ import annotations

import math
from typing import Any

import pytest

import trialwise as tw
from trialwise.pages.run_rules import render_together
from trialwise.procedures.chances import forecast_together


def _plan(count: int, name: str = "x", **question: Any) -> Any:
    criteria = [
        tw.Criterion(f"c{n}", tw.equals("ok"), **({"at_least": 0.9, "margin": 0.1} | question))
        for n in range(count)
    ]
    return tw.check(tw.Contract(name, lambda _: "ok", criteria), inputs=["a"])


@pytest.mark.requirement(
    "statistical-ci framing",
    "The chance that a whole suite passes is known before the first trial.",
    "`trialwise check` and `trialwise run` print it",
)
def test_independent_chances_multiply_and_the_bound_adds_up_what_is_missed() -> None:
    plans = [_plan(3, "one"), _plan(2, "other")]
    design = plans[0].criteria[0].design
    passes = design.operating_characteristic(0.9).passes
    found = forecast_together(plans)[0]
    assert found.decisions == 5
    assert found.passes == pytest.approx(passes**5)
    assert found.least_passes == pytest.approx(1 - 5 * (1 - passes))
    text = " ".join(render_together(plans).split()).replace("\u00a0", " ")
    assert (
        f"If every rate is exactly as required, all 5 decisions PASS in {100 * passes**5:.1f} % of "
        f"runs (independent), never less than {100 * (1 - 5 * (1 - passes)):.1f} %"
    ) in text


def test_fixed_trials_have_their_exact_chance() -> None:
    plan = _plan(2, margin=None, trials=60)
    cutoff = plan.criteria[0].cutoff
    size = sum(math.comb(60, k) * 0.9**k * 0.1 ** (60 - k) for k in range(cutoff, 61))
    assert forecast_together([plan])[0].passes == pytest.approx(size**2)


def test_every_input_is_a_decision_and_one_decision_alone_says_nothing_more() -> None:
    criterion = tw.Criterion("c", tw.equals("ok"), at_least=0.9, margin=0.1, each_input=True)
    contract = tw.Contract("x", lambda _: "ok", [criterion])
    assert forecast_together([tw.check(contract, inputs=list("abc"))])[0].decisions == 3
    assert forecast_together([_plan(1)]) == ()


@pytest.mark.slow
def test_the_share_of_open_runs_of_several_criteria_is_the_runs_own() -> None:
    """Five criteria with at most 50 trials: 37.4 % of runs, not the 11.7 % of one of them."""
    from trialwise.pages.sizing_sequential import share_open_runs
    from trialwise.procedures.sizing.sequential_sizing import SequentialQuestion, plan_sequential

    question = SequentialQuestion(
        rate=0.9, alternative=0.8, confidence=0.95, power=0.8, max_trials=50,
        criteria=5,
    )  # fmt: skip
    assert share_open_runs(plan_sequential(question), 0.9) == pytest.approx(0.374, abs=5e-4)
