"""Regression: has the rate degraded from a measured baseline? (companion §3.2, §3.4)"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.decimals import settled
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
from trialwise.procedures.compliance import lower_bound
from trialwise.stats.binomial import binomial_cdf
from trialwise.stats.precedence import exact_lower_tail, lower_tail
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.result_types import Rule
from trialwise.validation import require_count

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section

__all__ = ["DECISION_RULES", "FALSE_ALARM_EXCESS", "PROCEDURE", "Regression", "decide_regression"]

#: The versioned name of the rule each rule set uses.
DECISION_RULES: dict[Rule, str] = {
    "wilson": "regression/wilson-cutoff",
    "exact": "regression/fisher",
}
#: A Wilson cutoff whose true false-alarm probability exceeds alpha by this factor recommends
#: the exact rule: beyond it "5 %" is no longer a fair name.
FALSE_ALARM_EXCESS = 1.5


def decide_regression(
    criterion: str,
    tally: Tally,
    baseline: Tally,
    *,
    alpha: float = 0.05,
    rule: Rule = "wilson",
    intent: Intent = Intent.VERIFICATION,
    planned_trials: int | None = None,
) -> Finding:
    """Decide whether the counts signal a degradation from the baseline.

    A PASS says that no degradation was signalled at this cutoff; it does not say that service and
    baseline are equivalent. Under the exact rule a test planned larger than its baseline is
    refused. A Wilson finding discloses its true false-alarm probability.

    Args:
        criterion: The criterion's name.
        tally: The test's counts.
        baseline: The baseline's counts, at least one trial.
        alpha: The nominal false-alarm level.
        rule: The rule set, named on the finding.
        intent: Kept on the finding; it softens the wording.
        planned_trials: The size the run was planned with; the tally's own where not given.

    >>> finding = decide_regression(
    ...     "grounded", Tally(trials=100, passed=87), Tally(trials=1000, passed=951)
    ... )
    >>> finding.decision, finding.cutoff
    (<Decision.FAIL: 'FAIL'>, 91)
    """
    planned = tally.trials if planned_trials is None else planned_trials
    size = max(require_count("planned_trials", planned), tally.trials, 1)
    plan = _design(baseline, size, alpha, rule)
    if plan.refusal is not None:
        return _finding(criterion, tally, plan, alpha=alpha, rule=rule, intent=intent)
    if tally.trials == 0:
        return _finding(criterion, tally, None, alpha=alpha, rule=rule, intent=intent)
    # The plan is the design unless the run realised fewer trials than were planned.
    design = plan if plan.trials == tally.trials else _design(baseline, tally.trials, alpha, rule)
    return _finding(criterion, tally, design, alpha=alpha, rule=rule, intent=intent)


def _design(baseline: Tally, trials: int, alpha: float, rule: Rule) -> RegressionCutoff:
    return regression_cutoff(baseline.passed, baseline.trials, trials, alpha=alpha, rule=rule)


def _finding(
    criterion: str,
    tally: Tally,
    design: RegressionCutoff | None,
    *,
    alpha: float,
    rule: Rule,
    intent: Intent,
) -> Finding:
    decision, observed, caution = _strands(tally, design)
    judged = design is not None and design.cutoff is not None
    return Finding(
        criterion=criterion,
        procedure=Procedure.REGRESSION,
        rule=rule,
        decision_rule=DECISION_RULES[rule],
        decision=decision,
        tally=tally,
        intent=intent,
        alpha=alpha,
        design=design,
        refusals=(design.refusal,) if design is not None and design.refusal else (),
        p_value=_p_value(tally, design) if design is not None and judged else None,
        lower_bound=lower_bound(tally, alpha, rule) if judged else None,
        observed_rate=observed,
        caution=caution,
        statement=_statement(tally, design, intent),
    )


def _strands(
    tally: Tally, design: RegressionCutoff | None
) -> tuple[Decision | None, ObservedRate, Caution]:
    if design is None:
        return Decision.INCONCLUSIVE, ObservedRate.NOT_APPLICABLE, Caution.ZERO_EVALUABLE
    if design.cutoff is None:
        return None, ObservedRate.NOT_APPLICABLE, Caution.CONFIGURATION_ERROR
    if tally.passed < design.cutoff:
        return Decision.FAIL, ObservedRate.BELOW_THRESHOLD, Caution.FAIL_CLEAR
    at = tally.passed == design.cutoff
    observed = ObservedRate.AT_THRESHOLD if at else ObservedRate.ABOVE_THRESHOLD
    return Decision.PASS, observed, Caution.ADEQUATE_POWER


def _p_value(tally: Tally, design: RegressionCutoff) -> PValue:
    if design.rule == "wilson":
        return PValue(
            value=binomial_cdf(tally.passed, tally.trials, design.reference_rate),
            method="exact-binomial-lower-tail",
            tail="P_{p=p_ref}(K <= K_c)",
        )
    table = design.baseline_successes, tally.passed, design.baseline_trials, tally.trials
    return PValue(
        value=settled(lower_tail(*table), design.alpha, lambda: exact_lower_tail(*table)),
        method="fisher-exact-lower-tail",
        tail="P(K <= K_c | K + K_b)",
    )


def _statement(tally: Tally, design: RegressionCutoff | None, intent: Intent) -> str:
    if design is None:
        return "No trial was available to decide on."
    if design.cutoff is None:
        return (
            f"A test of {design.trials} trials is larger than its baseline of "
            f"{design.baseline_trials}: measure a baseline of at least {design.trials} trials, or "
            f"run at most {design.baseline_trials}."
        )
    count = f"{tally.passed} of {tally.trials} successes, {design.cutoff} needed"
    if intent is Intent.SMOKE:
        if tally.passed < design.cutoff:
            return f"The observed count is inconsistent with the baseline ({count})."
        return (
            f"The observed count is consistent with the baseline ({count}); equivalence is not "
            "claimed."
        )
    if tally.passed < design.cutoff:
        return f"A degradation from the baseline is signalled at this cutoff ({count})."
    return f"No degradation signal at this cutoff ({count}); equivalence is not claimed."


class Regression(ProcedureBase):
    """A rate that must not have fallen below a measured baseline."""

    name = "REGRESSION"
    question = "Has the rate degraded from its baseline?"
    error_family = "false-degradation"
    long_run = (
        "if nothing had changed, this rule would signal a degradation with the probability "
        "stated above"
    )

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explaining.fixed_samples import explain_regression

        return explain_regression(finding)


PROCEDURE = Regression()
