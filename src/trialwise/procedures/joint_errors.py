"""Computes the errors of several runs of one question, each run because the last was undecided.

Running again after INCONCLUSIVE spends error: whichever run decides counts, so each run adds its
own chance of a wrong decision. At one true rate, runs are independent. A run that follows others
happens only if all of those were INCONCLUSIVE, so the chance of a PASS in any of them is

    P₁ + I₁ P₂ + I₁ I₂ P₃ + …

with P and I the chances of PASS and INCONCLUSIVE in each design. It rises with the rate, like P
and 1 − F do, so its largest value at bad rates is the one at the rate that a PASS rules out. FAIL
is the same from the other side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trialwise.documents.numbers import as_probability
from trialwise.model.plan import CriterionPlan, JointErrors
from trialwise.model.verdict import Decision
from trialwise.procedures.base import Chance, RuleError
from trialwise.procedures.error_bounds import list_rule_errors
from trialwise.procedures.registry import find_procedure

#: A chance and an error that differ by less are one number, computed in two ways.
_SAME = 1e-9


class OpenRun(NamedTuple):
    """An earlier run that left a criterion undecided."""

    run_id: str
    plan: CriterionPlan
    is_whole: bool = True
    """Whether its design came to its end; what cut it short may have depended on the counts."""


def join_errors(plan: CriterionPlan, before: Sequence[OpenRun]) -> JointErrors | None:
    """Compute how often this run or those before decide a criterion wrongly.

    Args:
        plan: How the criterion is decided in this run.
        before: The runs that left it open, newest first.

    Returns:
        None where no run was left open, or where no error is limited.
    """
    own = {one.wrong: one for one in list_rule_errors(plan)}
    if not before or not own:
        return None
    joined = {wrong: _join(wrong, plan, before) for wrong in own}
    return JointErrors(
        runs=tuple(one.run_id for one in before),
        wrong_pass=joined[Decision.PASS][0] if Decision.PASS in joined else None,
        wrong_fail=joined[Decision.FAIL][0] if Decision.FAIL in joined else None,
        is_exact=all(exact for _, exact in joined.values()),
    )


def _join(wrong: Decision, plan: CriterionPlan, before: Sequence[OpenRun]) -> tuple[float, bool]:
    """Return the probability of a wrong decision in any of the runs, and whether it is exact."""
    in_order = [*(one.plan for one in reversed(before)), plan]
    errors = [_find_error(one, wrong) for one in in_order]
    chances = [_find_chance(one, wrong) for one in in_order]
    is_exact = all(one.is_whole for one in before) and all(
        chance is not None
        and error.actual is not None
        and abs(_pick(chance, wrong) - error.actual) <= _SAME
        for chance, error in zip(chances, errors, strict=True)
    )
    if not is_exact:
        # A run is INCONCLUSIVE at most as often as it is not decided wrongly.
        singles = [one.allowed if one.actual is None else one.actual for one in errors]
        return 1 - math.prod(1 - one for one in singles), False
    total, still_open = 0.0, 1.0
    for chance in chances:
        assert chance is not None
        total += still_open * _pick(chance, wrong)
        still_open *= chance.inconclusive
    return total, True


def _find_error(plan: CriterionPlan, wrong: Decision) -> RuleError:
    """Return a run's own error; 1 if the run does not limit it."""
    for one in list_rule_errors(plan):
        if one.wrong is wrong:
            return one
    return RuleError(wrong=wrong, event="", allowed=1.0, actual=None)


def _find_chance(plan: CriterionPlan, wrong: Decision) -> Chance | None:
    """Return the chances at the rate where a decision is wrong most often."""
    rate = plan.threshold.required_rate
    if wrong is Decision.PASS and plan.threshold.alternative_rate is not None:
        rate = plan.threshold.alternative_rate
    if plan.errors is not None:
        return None
    chances = find_procedure(plan.procedure).forecast(plan)
    return next((one for one in chances if one.rate == rate), None)


def _pick(chance: Chance, wrong: Decision) -> float:
    return chance.passes if wrong is Decision.PASS else chance.fails


def word_joint_errors(plan: CriterionPlan) -> str:
    """Say what the runs together are worth; nothing where no run was left open before.

    Args:
        plan: With its joint errors.
    """
    joint = plan.together
    if joint is None:
        return ""
    values = {Decision.PASS: joint.wrong_pass, Decision.FAIL: joint.wrong_fail}
    bound = "" if joint.is_exact else "at most "
    said = []
    for error in list_rule_errors(plan):
        value = values[error.wrong]
        if value is not None and value < 1:
            alone = error.allowed if error.actual is None else error.actual
            said.append(
                f"{error.event} in {bound}{as_probability(value)} of cases (this run alone: "
                f"{as_probability(alone)})"
            )
    count = len(joint.runs)
    before = "the run before" if count == 1 else f"the {count} runs before"
    newest = joint.runs[0] if count == 1 else f"the newest is {joint.runs[0]}"
    which = "either run" if count == 1 else f"any of the {count + 1} runs"
    each = " For each input:" if plan.each_input else ""
    if not said:
        return (
            f"INCONCLUSIVE in {before} ({newest}). If the service has not changed, running again "
            "adds errors, and no rule limits their sum."
        )
    return (
        f"INCONCLUSIVE in {before} ({newest}). If the service has not changed and {which} may "
        f"decide, their errors add.{each} {'; '.join(said)}."
    )
