"""A run that was cut short decides nothing, latency included."""

from __future__ import annotations

from typing import Any

import pytest

import trialwise as tw


def cut_run(latency_s: float, **limits: Any) -> tw.Result:
    """Ten of two hundred planned trials, each with a latency of the test's choice."""

    def service(question: str) -> tw.Reply:  # noqa: ARG001
        return tw.Reply(value="ok", latency_s=latency_s, cost_usd=1.0)

    contract = tw.Contract(
        "cut",
        service,
        [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)],
        sampling=["q"],
        latency=tw.Latency.within(p95=1.0, enforced=True),
    )
    settings: dict[str, Any] = {"trials": 200, "curtail": False, "store": None, "progress": False}
    return tw.run(contract, **(settings | limits))


@pytest.mark.parametrize(
    "budget", [tw.Budget(trials=10), tw.Budget(usd=10)], ids=["trials", "money"]
)
@pytest.mark.parametrize("latency_s", [0.1, 5.0], ids=["fast", "slow"])
def test_a_percentile_is_inconclusive_when_a_budget_ends_the_run(
    budget: tw.Budget, latency_s: float
) -> None:
    """Neither PASS for fast replies nor FAIL for slow ones: somebody chose the moment."""
    result = cut_run(latency_s, budget=budget)

    assert len(result.record.trials) == 10
    (found,) = result.verdict.latency
    assert found.decision is tw.Decision.INCONCLUSIVE
    assert "needs every trial" in found.statement
    assert result.decision is tw.Decision.INCONCLUSIVE


@pytest.mark.parametrize(("latency_s", "decision"), [(0.1, "PASS"), (5.0, "FAIL")])
def test_a_percentile_is_decided_when_every_trial_has_run(latency_s: float, decision: str) -> None:
    """The same run without a budget."""
    (found,) = cut_run(latency_s).verdict.latency

    assert found.decision is tw.Decision(decision)
