"""Smoke runs: what they PASS on, and what they say of themselves (companion §5.7.3, §5.7.4)."""

from __future__ import annotations

import math

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision, ObservedRate
from trialwise.procedures.base import Situation, has_agreeing_interval
from trialwise.stats.compliance_cutoffs import ComplianceCutoff

#: Shown instead of PASS where a smoke run was too small to show its rate.
SMOKE_PASS = "SMOKE PASS"


def passes_on_observed_rate(plan: CriterionPlan) -> bool:
    """Return whether a smoke run that is too small PASSes on its observed rate (§5.7.3).

    Fisher's rule set fails it, as its reference cases do; so did 0.1.0 under every rule.
    """
    return plan.rule != "fisher" and has_agreeing_interval(plan)


def state_small_smoke(
    tally: Tally, design: ComplianceCutoff, plan: CriterionPlan, bound: float
) -> str:
    """Return what a smoke run that is too small for its requirement shows, and what it does not."""
    passed, required = f"{tally.passed} of {tally.trials} passed", as_percent(design.required_rate)
    if not passes_on_observed_rate(plan):
        return (
            f"{passed}; {design.trials} trials cannot show {required}, {design.minimum_trials} can."
        )
    shown = floor_percent(bound)
    return f"smoke: {passed}; shows at least {shown}, not the required {required}."


def floor_percent(rate: float) -> str:
    """Return a rate in whole percent, rounded down so that a bound still holds."""
    return f"{math.floor(rate * 100)} %"


def state_smoke(decision: Decision | None, observed: ObservedRate, rate: str, fact: str) -> str:
    """Return the statement of a smoke run, which claims nothing (§5.7.4).

    Args:
        decision: What was decided.
        observed: Where the observed rate stands.
        rate: The required one.
        fact: The numbers that decided.
    """
    if decision is Decision.PASS:
        return f"The observed rate is consistent with the target of {rate} ({fact})."
    if observed is ObservedRate.BELOW_THRESHOLD:
        return f"The observed rate is inconsistent with the target of {rate} ({fact})."
    return f"The observed rate meets the target of {rate} but does not show it ({fact})."


def describe_small_smoke(plan: CriterionPlan, required: float, bound: float) -> str:
    """Describe the rule of a smoke run that is too small for its requirement, before it runs."""
    least = math.ceil(as_written(required) * plan.trials)
    shown = floor_percent(bound)
    design = plan.design
    needed = design.minimum_trials if isinstance(design, ComplianceCutoff) else 0
    return (
        f"{SMOKE_PASS} with at least {least} of {plan.trials}, on the observed rate alone: "
        f"{plan.trials} trials can show {shown}, not the required {as_percent(required)}, which "
        f"takes at least {needed}"
    )


def list_smoke_caveats(
    criterion: Criterion, design: ComplianceCutoff, situation: Situation
) -> tuple[str, ...]:
    """List what a smoke run against somebody's promise has to say of itself (companion §5.7.4)."""
    if situation.verifies or not criterion.is_normative:
        return ()
    if design.trials < design.minimum_trials:
        caveat = (
            f"Sample not sized for verification (N = {design.trials}, need "
            f"{design.minimum_trials}). A PASS is a directional signal, not a compliance "
            "determination."
        )
    else:
        caveat = (
            "Sample is sized for verification. Consider setting intent = VERIFICATION for "
            "evidential strength."
        )
    return (caveat,)
