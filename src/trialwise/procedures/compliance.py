"""Compliance: does the service meet its required rate? (companion §3.2, §3.6)"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

from trialwise import stats
from trialwise.decimals import as_written, complement, settled
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_percent
from trialwise.model.claim import Intent
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import CutoffEvidence, PValue, StopReason, Tally, Threshold
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Caution, Decision, Design, Finding, ObservedRate
from trialwise.procedures import base, partial_findings
from trialwise.procedures.base import known
from trialwise.procedures.characteristic import Characteristic, count_fixed, limit_by_levels
from trialwise.procedures.partial_findings import lower_bound
from trialwise.stats.binomial import exact_tail, normal_sf, upper_z
from trialwise.stats.compliance_cutoffs import find_most_failing
from trialwise.stats.rate_intervals import clopper_pearson_low, wilson_high, wilson_low
from trialwise.validation import require_count

#: The name of the rule that each rule set uses; a plan adds the version of its interval.
DECISION_RULES: dict[stats.Rule, str] = {
    "wilson": "compliance/wilson-lower-bound",
    "exact": "compliance/exact-binomial",
    "fisher": "compliance/exact-binomial",
}


class Compliance(base.Procedure):
    """A required rate, shown or not shown by a fixed number of trials."""

    name = "COMPLIANCE"
    question = "Is the required rate met?"
    error_family = "false-compliance"
    decides_fixed_rate = True
    counts_rate = True
    may_be_withdrawn = True
    long_run = (
        "if the true rate were at or below the requirement, this rule would declare "
        "compliance with the probability stated as achieved size"
    )

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan a cutoff, or refuse a number of trials that could not show the rate."""
        rule, estimator = situation.options.rule, situation.claim.estimator
        error = criterion.wrong_pass
        trials, required = known(situation.fixed_trials(criterion)), known(criterion.at_least)
        shown = base.rate_below(required, criterion.margin or 0.0)
        design = stats.compliance_cutoff(shown, trials, alpha=error, rule=rule)
        version = base.LEFT_OUT_COUNTED if rule == "wilson" else base.AGREEING
        if design.cutoff is None and situation.verifies:
            # What is configured, what is needed and the way out (companion §5.7.1).
            return base.Refused(
                f"{trials} trials cannot show a rate above {shown:.12g} at confidence "
                f"{criterion.confidence:g}: even without a failure the bound stays below it. At "
                f"least {design.minimum_trials} trials are needed; for a quick check add `intent: "
                "smoke`"
            )
        # Without this level, what is open FAILs.
        level = criterion.wrong_fail if situation.leaves_open(criterion) else None
        plan = situation.start_plan(
            criterion,
            procedure=self.name,
            rule=rule,
            decision_rule=f"{DECISION_RULES[rule]}{version}",
            alpha=error,
            trials=trials,
            cutoff=design.cutoff,
            most_failing=None if level is None else _find_failing(required, design, level),
            fail_alpha=level,
            design=design,
            threshold=replace(situation.start_threshold(criterion), alternative_rate=shown),
            caveats=partial_findings.list_smoke_caveats(criterion, design, situation),
        )
        if estimator is None:
            return plan
        # A matched estimator looks at who passed, not only at how many: it decides at the end,
        # and no number of successes says what it will say.
        return plan.change(
            rule=None,
            decision_rule=f"compliance/{estimator}/{situation.claim.estimand}{base.AGREEING}",
            estimator=estimator,
            cutoff=None,
            most_failing=None,
            design=None,
        )

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide by the cutoff at the number of trials that count, or by the claim's estimator."""
        if plan.estimator is not None:
            from trialwise.procedures.estimated_rates import conclude_estimated

            return conclude_estimated(plan, counts)
        tally, intent = counts.tally, counts.intent
        required, alpha = known(plan.threshold.required_rate), known(plan.alpha)
        if tally.trials == 0:
            return base.Conclusion.without_trials(tally)
        shown = plan.threshold.alternative_rate or required
        # The cutoff is that of the trials that count. Trials that were not measured are left out,
        # whatever they would have said, so that their number says nothing about the rate.
        design = stats.compliance_cutoff(shown, tally.trials, alpha=alpha, rule=known(plan.rule))
        observed, is_smoke = observed_status(tally, required), intent is Intent.SMOKE
        if design.cutoff is not None:
            decision = Decision.PASS if tally.passed >= design.cutoff else Decision.FAIL
        elif is_smoke and partial_findings.passes_on_observed_rate(plan):
            is_below = observed is ObservedRate.BELOW_THRESHOLD
            decision = Decision.FAIL if is_below else Decision.PASS
        else:
            decision = Decision.FAIL if is_smoke else Decision.INCONCLUSIVE
            observed = ObservedRate.NOT_APPLICABLE
        if decision is Decision.FAIL and plan.failing.most_failing is not None:
            # FAIL shows a rate below the required one, and what shows neither side is open.
            is_shown = find_ground(plan, tally) == SHOWN_BELOW
            decision = decision if is_shown else Decision.INCONCLUSIVE
        caution = Caution.FEASIBILITY_REFUSED
        if design.cutoff is not None:
            caution = Caution.for_decision(decision, observed)
        is_unshown = design.cutoff is None and decision is Decision.PASS
        return base.Conclusion(
            decision=decision,
            tally=tally,
            caution=caution,
            observed_rate=observed,
            evidence=_weigh(tally, design, plan),
            statement=_state(decision, tally, design, intent, plan),
            label=partial_findings.SMOKE_PASS if is_unshown else "",
        )

    def complete(
        self, plan: CriterionPlan, conclusion: base.Conclusion, stop: StopReason, run: Plan
    ) -> base.Conclusion:
        """Add an interval, and how many trials would show a rate that was met but not shown."""
        completed, tally = super().complete(plan, conclusion, stop, run), conclusion.tally
        weighed = CutoffEvidence.of(completed.evidence)
        design = cast("stats.ComplianceCutoff | None", weighed.design or plan.design)
        if conclusion.caution is Caution.STRANDS_DISAGREE and not completed.advice and design:
            completed = replace(completed, advice=_advise_trials(tally, design))
        if getattr(completed.evidence, "interval", None) is not None:
            return completed
        is_failed = conclusion.decision is not Decision.PASS and not stop.is_premature
        if is_failed and base.has_agreeing_interval(plan):
            ground = find_ground(plan, tally, is_whole=stop is StopReason.COMPLETE)
            weighed = replace(weighed, ground=ground)
            if ground and stop is StopReason.CURTAILED:
                statement = f"{completed.statement} {_GROUNDS[ground]}"
                completed = replace(completed, statement=statement)
        # Where only an estimator could give an interval, there is none.
        is_plain = plan.estimator is None
        found = rate_interval(plan, tally, stop, run.rule) if is_plain else None
        return replace(completed, evidence=replace(weighed, interval=found))

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say what alpha controls."""
        if plan.alpha is None:
            return ""
        softened = " This is a smoke run: no compliance is claimed."
        shown = plan.threshold.alternative_rate or plan.threshold.required_rate
        size = f"controlled at {plan.alpha:g}"
        error = self.characterize(plan, intent).error_of(Decision.PASS)
        if error and error.actual is not None and error.actual > plan.alpha:
            size = f"up to {error.actual:.4f}, more than the nominal {plan.alpha:g}"
        return (
            f"If the true success probability were {shown:g} or lower, this rule would falsely "
            f"declare compliance with probability {size}, subject to model assumptions, "
            "discreteness and approximation. This is not a posterior probability that this "
            f"individual result is correct.{softened if intent is Intent.SMOKE else ''}"
        )

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say which count, or which bound, PASSes."""
        if plan.estimator is not None:
            after = f"{plan.estimator} bound after {plan.trials} trials"
            by = f"PASS where the {after} reaches the rate"
            open_between = ", FAIL where its upper bound is below it, between: INCONCLUSIVE"
            between = "" if plan.failing.fail_alpha is None else open_between
            return f"{by}{self.describe_share(plan)}{between}"
        required = plan.threshold.required_rate
        if plan.judging.corrected_by:
            shown = f"PASS where {plan.trials} trials show a corrected rate above {required:g}"
            return f"{shown}, FAIL where they show one below{self.describe_share(plan)}"
        passes_observed = partial_findings.passes_on_observed_rate(plan)
        if plan.cutoff is None and required is not None and passes_observed:
            return partial_findings.describe_small_smoke(plan, required)
        return super().describe_rule(plan)

    def characterize(self, plan: CriterionPlan, intent: Intent) -> Characteristic:
        """Count the binomial chances of the two cutoffs, or of a smoke run's observed rate."""
        required, cutoff = plan.threshold.required_rate, plan.cutoff
        if plan.design is None or plan.judging.errors is not None or required is None:
            return limit_by_levels(plan)
        if cutoff is None:
            cutoff = plan.trials + 1
            if intent is Intent.SMOKE and partial_findings.passes_on_observed_rate(plan):
                cutoff = math.ceil(as_written(required) * plan.trials)
        most = plan.failing.most_failing
        most = cutoff - 1 if most is None else min(most, cutoff - 1)
        shown = plan.threshold.alternative_rate or required
        return count_fixed(plan, cutoff, most, required, shown)

    def derive_design(self, plan: CriterionPlan) -> Design | None:
        """Compute the cutoff of the required rate."""
        threshold = plan.threshold
        required = threshold.alternative_rate or threshold.required_rate
        if plan.design is None or plan.rule is None or plan.alpha is None or required is None:
            return None
        return stats.compliance_cutoff(required, plan.trials, alpha=plan.alpha, rule=plan.rule)

    def scale_levels(self, plan: CriterionPlan, scale: Callable[[float], float]) -> CriterionPlan:
        """Scale which counts FAIL, too, where what shows neither side is open."""
        scaled = super().scale_levels(plan, scale)
        design = cast("stats.ComplianceCutoff | None", scaled.design)
        required, level = plan.threshold.required_rate, scaled.failing.fail_alpha
        if design is None or plan.rule is None or required is None or level is None:
            return scaled
        return scaled.change(most_failing=_find_failing(required, design, level))

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explained_cutoffs import explain_compliance

        return explain_compliance(finding)


PROCEDURE = Compliance()


def _find_failing(required: float, design: stats.ComplianceCutoff, level: float) -> int:
    """Find the most successes that FAIL: they show a rate below the required one."""
    most = find_most_failing(required, design.trials, level, design.rule)
    # With a wide margin a count can show both; then it PASSes.
    return min(most, design.trials if design.cutoff is None else design.cutoff - 1)


def decide_compliance(
    criterion: str,
    tally: Tally,
    required_rate: float,
    *,
    alpha: float = 0.05,
    rule: stats.Rule = "exact",
    intent: Intent = Intent.VERIFICATION,
    planned_trials: int | None = None,
) -> Finding:
    """Decide whether a required rate has been shown.

    A verification whose *plan* could never PASS is refused: no decision, and the reason. A run
    that was planned well but yielded too few trials is INCONCLUSIVE. A smoke run is decided
    whatever its size, and what it cannot show it FAILs; one that `Compliance` planned PASSes on the
    observed rate, except by Fisher's rule set.

    Args:
        criterion: The criterion's name.
        tally: The counts.
        required_rate: Strictly between 0 and 1.
        alpha: The false-compliance level.
        rule: The rule set, named on the finding.
        intent: Verification refuses what smoke only softens.
        planned_trials: The size the run was planned with; the tally's own where not given. With 0
            no plan is refused, and the trials there are decide.

    >>> decide_compliance("valid-json", Tally(trials=100, passed=99), 0.95).decision
    <Decision.PASS: 'PASS'>
    """
    planned = tally.trials if planned_trials is None else planned_trials
    size = max(require_count("planned_trials", planned), 1)
    design = stats.compliance_cutoff(required_rate, size, alpha=alpha, rule=rule)
    plan = CriterionPlan(
        criterion=criterion,
        procedure=PROCEDURE.name,
        rule=rule,
        decision_rule=DECISION_RULES[rule],
        alpha=alpha,
        trials=size,
        cutoff=design.cutoff,
        design=design,
        threshold=Threshold(required_rate=required_rate),
    )
    if intent is Intent.VERIFICATION and planned and design.refusal is not None:
        return base.Conclusion(
            decision=None,
            tally=tally,
            caution=Caution.CONFIGURATION_ERROR,
            refusals=(design.refusal,),
            evidence=_weigh(tally, design, plan),
            statement=_state(None, tally, design, intent, plan),
        ).to_finding(plan)
    return PROCEDURE.conclude(plan, base.Counts(tally=tally, intent=intent)).to_finding(plan)


def _weigh(tally: Tally, design: stats.ComplianceCutoff, plan: CriterionPlan) -> CutoffEvidence:
    """Return the numbers of a decision by this cutoff."""
    decided = tally.trials > 0 and design.cutoff is not None
    return CutoffEvidence(
        design=None if design == plan.design else design,
        p_value=_p_value(tally, design) if decided else None,
        lower_bound=lower_bound(tally, design.alpha, design.rule) if tally.trials else None,
    )


def observed_status(tally: Tally, required_rate: float) -> ObservedRate:
    """Compare the observed rate with the required one in rationals, so that 49/50 equals 0.98."""
    return ObservedRate.from_gap(tally.passed - as_written(required_rate) * tally.trials)


#: The grounds of a required rate that was not passed, and how they are said of an early stop.
SHOWN_BELOW, NOT_SHOWN = "shown below", "not shown"
_GROUNDS = {
    SHOWN_BELOW: "A rate below the required one is shown.",
    NOT_SHOWN: "The required rate is not shown; a rate below it is not shown either.",
}


def find_ground(plan: CriterionPlan, tally: Tally, *, is_whole: bool = True) -> str | None:
    """Return why a rate was not passed: it was shown to be lower, or not shown at all.

    Where trials were left out because the verdict was certain, the counts at the stop are those of
    a design that waits for this many failures, and the same tail is its exact p-value.
    """
    required, rule = plan.threshold.required_rate, plan.rule
    if required is None or rule is None or plan.alpha is None or not tally.trials:
        return None
    size, passed = tally.trials, tally.passed
    if rule == "wilson" and not is_whole:
        # Wilson's bound at a count that chose its own size is wrong in up to 20 % of runs, so the
        # trials that were left out count as passed.
        size, passed = plan.trials, plan.trials - tally.failed
    most = find_most_failing(required, size, plan.failing.fail_alpha or plan.alpha, rule)
    return SHOWN_BELOW if passed <= most else NOT_SHOWN


def decision_interval(
    plan: CriterionPlan, tally: Tally, rule: stats.Rule, *, is_whole: bool = True
) -> stats.Interval | None:
    """Return the interval with the decision's level on each side; Wilson's own under `wilson`."""
    k, n, alpha = tally.passed, tally.trials, plan.alpha
    if not n or alpha is None:
        return None
    # A sequential plan keeps the level of a wrong PASS apart.
    below, above = alpha if plan.beta is None else plan.beta, plan.failing.fail_alpha or alpha
    confidence = complement(float(as_written(below) + as_written(above)))
    if rule == "wilson":
        size, most = n, k
        if not is_whole and (plan.decision_rule or "").endswith(base.LEFT_OUT_COUNTED):
            # At a size that the counts chose, Wilson's interval covers 83 to 89 % instead of 90 %.
            size, most = plan.trials, plan.trials - tally.failed
        ends = wilson_low(k, size, upper_z(below)), wilson_high(most, size, upper_z(above))
        return stats.Interval(*ends, confidence=confidence, method="Wilson, approximate")
    # The upper end is the lower end of the failures, so that both come from one computation and
    # a rate of 1 has an upper end of exactly 1.
    ends = clopper_pearson_low(k, n, below), 1 - clopper_pearson_low(n - k, n, above)
    return stats.Interval(*ends, confidence=confidence, method="Clopper-Pearson, exact")


def rate_interval(
    plan: CriterionPlan, tally: Tally, stop: StopReason, rule: stats.Rule
) -> stats.Interval | None:
    """Return the two-sided interval of a fixed design; marked where the trials did not all run."""
    if not tally.trials or plan.alpha is None:
        return None
    if base.has_agreeing_interval(plan):
        return decision_interval(plan, tally, rule, is_whole=stop is StopReason.COMPLETE)
    # As 0.1.0 did: two-sided at 1 − alpha, whichever side the decision is about. A stored record
    # has to give the interval that it was written with.
    confidence = complement(plan.alpha)
    make = stats.wilson_interval if rule == "wilson" else stats.clopper_pearson
    found = make(tally.passed, tally.trials, confidence=confidence)
    return found if stop is StopReason.COMPLETE else found.after_early_stop()


def _p_value(tally: Tally, design: stats.ComplianceCutoff) -> PValue:
    k, n, p = tally.passed, tally.trials, design.required_rate
    if design.rule == "wilson":
        value = normal_sf((k / n - p) / math.sqrt(p * (1 - p) / n))
        return PValue(value=value, method="score-test-upper-tail", tail="P_{p=p_req}(Z >= z)")
    exact = partial(exact_tail, k, n, as_written(p))
    value = settled(stats.binomial_tail(k, n, p), design.alpha, exact)
    return PValue(value=value, method="exact-binomial-upper-tail", tail="P_{p=p_req}(K >= K_c)")


def _state(
    decision: Decision | None,
    tally: Tally,
    design: stats.ComplianceCutoff,
    intent: Intent,
    plan: CriterionPlan,
) -> str:
    rate, is_smoke = f"{design.required_rate:.12g}", intent is Intent.SMOKE
    if design.cutoff is None:
        if is_smoke and base.has_agreeing_interval(plan):
            return partial_findings.state_small_smoke(tally, design, plan)
        way_out = "" if is_smoke else "; for a quick check add `intent: smoke`"
        return (
            f"{design.trials} trials cannot show a rate above {rate} at alpha = {design.alpha:g}: "
            f"even without a failure the bound stays below it. At least {design.minimum_trials} "
            f"trials are needed{way_out}."
        )
    if is_smoke:
        count = f"{tally.passed} of {tally.trials} successes, {design.cutoff} needed"
        observed = observed_status(tally, design.required_rate)
        return partial_findings.state_smoke(decision, observed, rate, count)
    shown, passed = as_percent(design.required_rate), f"{tally.passed} of {tally.trials} passed"
    if decision is Decision.PASS:
        return f"{passed}, which shows a rate above {shown}."
    if find_ground(plan, tally) == SHOWN_BELOW:
        required = as_percent(plan.threshold.required_rate or 0)
        return f"Only {passed}; at least {required} is required."
    return f"{passed}; {design.cutoff} were needed to show {shown}."


#: How often a rate that holds may be missed by the trials that are advised.
_MISSED = 0.2


def _advise_trials(tally: Tally, design: stats.ComplianceCutoff) -> str:
    """Return how many trials would show the observed rate with a power of 80 %."""
    rate, required = tally.rate, design.required_rate
    if rate is None or rate <= required:
        return ""
    # The normal approximation is enough for advice: what decides later is exact.
    spread = upper_z(design.alpha) * math.sqrt(required * (1 - required))
    spread += upper_z(_MISSED) * math.sqrt(rate * (1 - rate))
    needed = math.ceil((spread / (rate - required)) ** 2)
    return (
        f"The observed rate meets {required:g} but {design.trials} trials do not show it: about "
        f"{needed:,} would in {as_percent(1 - _MISSED)} of runs, if the rate is the one observed."
    )
