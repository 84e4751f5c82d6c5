"""How a criterion chooses the boundaries of a decision that may stop early."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest

from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.options import RunOptions
from trialwise.model.plan import CriterionPlan
from trialwise.procedures.run_plan import plan_run
from trialwise.stats.sequential.design import SequentialDesign

REQUIRED, MARGIN = Fraction(9, 10), Fraction(1, 10)

#: Of a design at 90 against 80 %: both rates and one with three tenths of the allowed failures. All
#: three weigh the same.
LIKELY = tuple(
    (float(rate), 1 / 3)
    for rate in (REQUIRED, REQUIRED - MARGIN, 1 - Fraction(3, 10) * (1 - REQUIRED))
)


def plan(**given: Any) -> CriterionPlan:
    contract = Contract("c", str, [Criterion("x", str.isdigit, **given)], sampling=["a"])
    whole = plan_run(
        contract, RunOptions(), seed=1, structure={"x": "s"}, fingerprints={"inputs": "f"}
    )
    return whole.criteria[0]


@pytest.mark.slow("optimal")
@pytest.mark.parametrize("method", ["optimal", "calibrated", "wald", "fixed"])
def test_each_method_gives_the_design_of_its_name(method: str) -> None:
    """The design is the one that the method makes for the same rates, levels and cap."""
    found = plan(at_least=0.9, margin=0.1, max_trials=60, confidence=0.9, power=0.7, method=method)

    make = getattr(SequentialDesign, method)
    weighed = {"mix": LIKELY} if method == "optimal" else {}
    assert make(0.9, 0.8, alpha=0.1, beta=0.3, cap=60, **weighed) == found.design
    assert f"sequential/{method}/2" == found.decision_rule


@pytest.mark.slow
def test_without_a_method_the_design_is_the_optimal_one() -> None:
    """Nothing changes for a criterion that does not choose."""
    found = plan(at_least=0.9, margin=0.1, power=0.8, max_trials=60)

    expected = SequentialDesign.optimal(0.9, 0.8, alpha=0.05, beta=0.2, cap=60, mix=LIKELY)
    assert expected == found.design
    even = SequentialDesign.optimal(0.9, 0.8, alpha=0.05, beta=0.2, cap=60)
    assert count_mean_trials(expected) < count_mean_trials(even)


def count_mean_trials(design: SequentialDesign) -> float:
    """Expected trials, averaged over the likely rates, by walking over all states."""
    total = 0.0
    for rate, weight in LIKELY:
        states = {0: weight}
        for n in range(design.cap):
            total += sum(states.values())  # undecided runs make one more trial
            following: defaultdict[int, float] = defaultdict(float)
            for failures, chance in states.items():
                following[failures] += chance * rate
                following[failures + 1] += chance * (1 - rate)
            inside = range(design.accept[n + 1] + 1, design.reject[n + 1])
            states = {
                failures: chance for failures, chance in following.items() if failures in inside
            }
    return total


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
