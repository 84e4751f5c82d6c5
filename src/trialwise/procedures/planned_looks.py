"""When a judged rate may be decided before all trials are in, and with how much of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from trialwise.model.plan import CriterionPlan

if TYPE_CHECKING:
    from trialwise.stats.judged_looks import JudgedLook
    from trialwise.stats.judged_tests import Correction


def find_looks(plan: CriterionPlan) -> tuple[JudgedLook, ...]:
    """Find the counts that decide a judged rate early; none for plans that need every trial.

    Args:
        plan: A criterion's, with the errors of its judge.
    """
    from trialwise.stats.judged_looks import plan_looks

    required, alpha = plan.threshold.required_rate, plan.alpha
    shown = {
        "COMPLIANCE": (required, alpha),
        "SEQUENTIAL": (plan.threshold.alternative_rate, plan.beta),
    }.get(plan.procedure)
    is_one_rate = (
        plan.estimator is None and not plan.counting.each_input and not plan.counting.rides_along
    )
    if shown is None or plan.judging.errors is None or not is_one_rate:
        return ()
    return plan_looks(
        plan.judging.errors,
        plan.trials,
        cast("tuple[Correction, ...]", plan.judging.corrected_by),
        above=cast("tuple[float, float]", shown),
        below=cast("tuple[float, float]", (required, alpha)),
    )


def find_share(plan: CriterionPlan, trials: int, *, is_look: bool) -> float:
    """Return the share of the error limit that the decision after some trials may spend.

    Args:
        plan: The criterion's.
        trials: How many trials were judged.
        is_look: Whether the decision was made before all trials were in.
    """
    from trialwise.stats.judged_looks import LAST_SHARE

    if not plan.judging.looks:
        return 1.0
    shares = {look.trials: look.share for look in plan.judging.looks}
    return shares.get(trials, LAST_SHARE) if is_look else LAST_SHARE


def describe_looks(plan: CriterionPlan) -> str:
    """Say when a judged rate may be decided early; empty where it may not be."""
    early = [
        f"after {look.trials} with at most {look.accept} failures (PASS) "
        f"or at least {look.reject} (FAIL)"
        for look in plan.judging.looks
    ]
    return f"; it may stop {' or '.join(early)}" if early else ""
