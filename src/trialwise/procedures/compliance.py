"""Compliance: does the service meet its required rate? (companion §3.2, §3.6)"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trialwise.decimals import as_written, settled
from trialwise.model.tally import Tally
from trialwise.model.verdict import (
    Caution,
    Decision,
    Finding,
    Intent,
    ObservedRate,
    Procedure,
    PValue,
)
from trialwise.procedures.base import Procedure as ProcedureBase
from trialwise.stats.binomial import binomial_tail, exact_tail
from trialwise.stats.compliance_cutoffs import ComplianceCutoff, compliance_cutoff
from trialwise.stats.normal import normal_sf, upper_z
from trialwise.stats.rate_intervals import clopper_pearson_low, wilson_low
from trialwise.stats.result_types import Rule
from trialwise.validation import require_count

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section

__all__ = ["DECISION_RULES", "PROCEDURE", "Compliance", "decide_compliance"]

#: The versioned name of the rule each rule set uses.
DECISION_RULES: dict[Rule, str] = {
    "wilson": "compliance/wilson-lower-bound",
    "exact": "compliance/exact-binomial",
}


def decide_compliance(
    criterion: str,
    tally: Tally,
    required_rate: float,
    *,
    alpha: float = 0.05,
    rule: Rule = "wilson",
    intent: Intent = Intent.VERIFICATION,
    planned_trials: int | None = None,
) -> Finding:
    """Decide whether a required rate has been shown.

    A verification whose *plan* could never PASS is refused: no decision, and the reason. A run
    that was planned well but yielded too few trials is INCONCLUSIVE. A smoke run is decided
    whatever its size, and what it cannot show it FAILs.

    Args:
        criterion: The criterion's name.
        tally: The counts.
        required_rate: Strictly between 0 and 1.
        alpha: The false-compliance level.
        rule: The rule set, named on the finding.
        intent: Verification refuses what smoke only softens.
        planned_trials: The size the run was planned with; the tally's own where not given.

    >>> decide_compliance("valid-json", Tally(trials=100, passed=99), 0.95).decision
    <Decision.PASS: 'PASS'>
    """
    planned = tally.trials if planned_trials is None else planned_trials
    plan = compliance_cutoff(
        required_rate,
        max(require_count("planned_trials", planned), 1),
        alpha=alpha,
        rule=rule,
    )
    if intent is Intent.VERIFICATION and planned and plan.refusal is not None:
        return _finding(criterion, tally, plan, decision=None, caution=Caution.CONFIGURATION_ERROR)
    return decide_rate(criterion, tally, required_rate, alpha=alpha, rule=rule, intent=intent)


def decide_rate(
    criterion: str,
    tally: Tally,
    required_rate: float,
    *,
    alpha: float,
    rule: Rule,
    intent: Intent = Intent.VERIFICATION,
) -> Finding:
    """Judge the trials there are: what came of a plan that was admitted."""
    if tally.trials == 0:
        return Finding(
            criterion=criterion,
            procedure=Procedure.COMPLIANCE,
            rule=rule,
            decision_rule=DECISION_RULES[rule],
            decision=Decision.INCONCLUSIVE,
            tally=tally,
            intent=intent,
            alpha=alpha,
            caution=Caution.ZERO_EVALUABLE,
            statement="No trial was available to decide on.",
        )
    design = compliance_cutoff(required_rate, tally.trials, alpha=alpha, rule=rule)
    if design.cutoff is None:
        decision = Decision.FAIL if intent is Intent.SMOKE else Decision.INCONCLUSIVE
        return _finding(
            criterion,
            tally,
            design,
            decision=decision,
            caution=Caution.FEASIBILITY_REFUSED,
            intent=intent,
        )
    observed = observed_status(tally, required_rate)
    passed = tally.passed >= design.cutoff
    met = observed is not ObservedRate.BELOW_THRESHOLD
    short = Caution.STRANDS_DISAGREE if met else Caution.FAIL_CLEAR
    return _finding(
        criterion,
        tally,
        design,
        decision=Decision.PASS if passed else Decision.FAIL,
        caution=Caution.ADEQUATE_POWER if passed else short,
        observed=observed,
        p_value=_p_value(tally, design),
        intent=intent,
    )


def _finding(
    criterion: str,
    tally: Tally,
    design: ComplianceCutoff,
    *,
    decision: Decision | None,
    caution: Caution,
    observed: ObservedRate = ObservedRate.NOT_APPLICABLE,
    p_value: PValue | None = None,
    intent: Intent = Intent.VERIFICATION,
) -> Finding:
    return Finding(
        criterion=criterion,
        procedure=Procedure.COMPLIANCE,
        rule=design.rule,
        decision_rule=DECISION_RULES[design.rule],
        decision=decision,
        tally=tally,
        intent=intent,
        alpha=design.alpha,
        design=design,
        refusals=(design.refusal,) if decision is None and design.refusal else (),
        p_value=p_value,
        lower_bound=_lower_bound(tally, design),
        observed_rate=observed,
        caution=caution,
        statement=_statement(decision, tally, design, intent, observed),
    )


def observed_status(tally: Tally, required_rate: float) -> ObservedRate:
    """Where the observed rate stands, compared in rationals: 49/50 is at 0.98, not beside it."""
    gap = tally.passed - as_written(required_rate) * tally.trials
    if gap == 0:
        return ObservedRate.AT_THRESHOLD
    return ObservedRate.ABOVE_THRESHOLD if gap > 0 else ObservedRate.BELOW_THRESHOLD


def _lower_bound(tally: Tally, design: ComplianceCutoff) -> float | None:
    if tally.trials == 0:
        return None
    return lower_bound(tally, design.alpha, design.rule)


def lower_bound(tally: Tally, alpha: float, rule: Rule) -> float:
    """The one-sided lower bound on the rate, taken at alpha itself: 1 − alpha may round to 1."""
    if rule == "wilson":
        return wilson_low(tally.passed, tally.trials, upper_z(alpha))
    return clopper_pearson_low(tally.passed, tally.trials, alpha)


def _p_value(tally: Tally, design: ComplianceCutoff) -> PValue:
    k, n, p = tally.passed, tally.trials, design.required_rate
    if design.rule == "wilson":
        z = (k / n - p) / math.sqrt(p * (1 - p) / n)
        return PValue(
            value=normal_sf(z), method="score-test-upper-tail", tail="P_{p=p_req}(Z >= z)"
        )
    return PValue(
        value=settled(
            binomial_tail(k, n, p), design.alpha, lambda: exact_tail(k, n, as_written(p))
        ),
        method="exact-binomial-upper-tail",
        tail="P_{p=p_req}(K >= K_c)",
    )


def _statement(
    decision: Decision | None,
    tally: Tally,
    design: ComplianceCutoff,
    intent: Intent,
    observed: ObservedRate,
) -> str:
    rate = f"{design.required_rate:g}"
    if design.cutoff is None:
        way_out = "" if intent is Intent.SMOKE else ", or smoke intent if this is a sentinel check"
        return (
            f"{design.trials} trials cannot show a rate above {rate} at alpha = {design.alpha:g}: "
            f"even without a failure the bound stays below it. At least {design.minimum_trials} "
            f"trials are needed{way_out}."
        )
    count = f"{tally.passed} of {tally.trials} successes, {design.cutoff} needed"
    if intent is Intent.SMOKE:
        if decision is Decision.PASS:
            return f"The observed rate is consistent with the target of {rate} ({count})."
        if observed is ObservedRate.BELOW_THRESHOLD:
            return f"The observed rate is inconsistent with the target of {rate} ({count})."
        return f"The observed rate meets the target of {rate} but does not show it ({count})."
    if decision is Decision.PASS:
        return f"The evidence supports a rate above {rate} at the configured level ({count})."
    return f"A rate above {rate} was not shown at the configured level ({count})."


class Compliance(ProcedureBase):
    """A required rate, shown or not shown by a fixed number of trials."""

    name = "COMPLIANCE"
    question = "Is the required rate met?"
    error_family = "false-compliance"
    long_run = (
        "if the true rate were at or below the requirement, this rule would declare "
        "compliance with the probability stated as achieved size"
    )

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explaining.fixed_samples import explain_compliance

        return explain_compliance(finding)


PROCEDURE = Compliance()
