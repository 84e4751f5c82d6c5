"""How a criterion chooses the boundaries of a decision that may stop early."""

from __future__ import annotations

from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan
from trialwise.procedures.planning.run_plan import plan_run
from trialwise.stats.sequential.design import SequentialDesign

#: Of a design at 90 against 80 %: both rates and one with three tenths of the allowed failures.
LIKELY = ((0.9, 1 / 3), (0.8, 1 / 3), (0.97, 1 / 3))


def plan(**given: Any) -> CriterionPlan:
    contract = Contract("c", str, [Criterion("x", str.isdigit, **given)], sampling=["a"])
    whole = plan_run(
        contract, RunOptions(), seed=1, structure={"x": "s"}, fingerprints={"inputs": "f"}
    )
    return whole.criteria[0]


@pytest.mark.parametrize("method", ["optimal", "calibrated", "wald", "fixed"])
def test_each_method_gives_the_design_of_its_name(method: str) -> None:
    """The design is the one that the method makes for the same rates, levels and cap."""
    found = plan(at_least=0.9, margin=0.1, max_trials=60, confidence=0.9, power=0.7, method=method)

    make = getattr(SequentialDesign, method)
    weighed = {"mix": LIKELY} if method == "optimal" else {}
    assert make(0.9, 0.8, alpha=0.1, beta=0.3, cap=60, **weighed) == found.design
    assert f"sequential/{method}/2" == found.decision_rule


def test_without_a_method_the_design_is_the_optimal_one() -> None:
    """Nothing changes for a criterion that does not choose."""
    found = plan(at_least=0.9, margin=0.1, power=0.8, max_trials=60)

    expected = SequentialDesign.optimal(0.9, 0.8, alpha=0.05, beta=0.2, cap=60, mix=LIKELY)
    assert expected == found.design


@pytest.mark.parametrize(
    "given",
    [
        {"at_least": 0.9, "method": "bayes"},
        {"at_least": 0.9, "method": "wald"},  # without a margin there is no second rate
        {"at_least": 0.9, "trials": 50, "method": "wald"},
        {"never_fails": True, "method": "wald"},
        {"no_worse_than": "baseline", "method": "fixed"},
    ],
)
def test_a_method_goes_with_a_rate_decided_early_and_is_a_known_one(given: dict[str, Any]) -> None:
    """Where nothing is decided early there is no boundary to choose."""
    with pytest.raises(InvalidArgument, match="method must be"):
        Criterion("x", str.isdigit, **given)
