"""Prohibitions: what keeps them, and what a criterion that watches one can say (§1.4.5).

A prohibition is kept or broken in kind, not in rate. No number of trials shows that it is kept, so
something else has to keep it, such as a guardrail, and a criterion only watches.
"""

from __future__ import annotations

from trialwise.model.plan import CriterionPlan
from trialwise.model.sampling import CHALLENGES

#: What a report says where nothing is named that keeps a prohibition.
GAP = (
    "Nothing is named that keeps this prohibition. No number of trials shows that it is never "
    "broken: name what keeps it, such as a guardrail, with `discharged_by`"
)


def state_clause(plan: CriterionPlan, role: str = "") -> str:
    """Say what keeps a prohibition and what the criterion adds; nothing for other criteria.

    Args:
        plan: The criterion's.
        role: What its inputs are evidence of, where that is known.
    """
    if not plan.terms.categorical or not plan.terms.discharged_by:
        return ""
    keeps = plan.terms.discharged_by
    if role in CHALLENGES:
        return (
            f" It is evidence for what keeps the prohibition: {keeps}. It does not prove the "
            "prohibition."
        )
    return (
        f" The prohibition is kept by: {keeps}. This criterion does not show it; it says "
        "whether a failure got through."
    )


def describe_clause(plan: CriterionPlan) -> str:
    """Describe a prohibition before a run, as the rest of a sentence; nothing for others."""
    if not plan.terms.categorical:
        return ""
    if not plan.terms.discharged_by:
        return f". GAP: {GAP}"
    return f". It watches a prohibition, which is kept by: {plan.terms.discharged_by}"
