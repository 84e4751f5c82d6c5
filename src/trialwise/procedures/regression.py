"""Regression: has the rate degraded from a measured baseline? (companion §3.2, §3.4)"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from trialwise import stats
from trialwise.decimals import RELATIVE_BAND, as_written, settled
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_percent, as_points, as_probability, word_loss
from trialwise.model.claim import Intent
from trialwise.model.criterion import Criterion, Origin
from trialwise.model.evidence import CutoffEvidence, PValue, StopReason, Tally
from trialwise.model.plan import CriterionPlan, Plan
from trialwise.model.verdict import Caution, Decision, Design, Finding, ObservedRate
from trialwise.procedures import base, characteristic
from trialwise.procedures import regression_designs as designs
from trialwise.procedures.compliance import rate_interval
from trialwise.procedures.partial_findings import lower_bound
from trialwise.stats.unconditional import exact_lower_tail, lower_tail
from trialwise.validation import require_count

#: The versioned name of the rule each rule set uses.
DECISION_RULES: dict[stats.Rule, str] = {
    "wilson": "regression/wilson-cutoff",
    "exact": "regression/boschloo",
    "fisher": "regression/fisher",
}
#: A Wilson cutoff whose true false-alarm probability exceeds alpha by this factor recommends
#: the exact rule: beyond it "5 %" is no longer a fair name.
FALSE_ALARM_EXCESS = 1.5
#: Ends the caveat of a comparison without the power asked for.
_SAYS_LITTLE = "a PASS then says little"
#: Until the rate that a test detects is known to this many binary digits.
_HALVINGS = 60


class Regression(base.Procedure):
    """A rate that must not have fallen below a measured baseline."""

    name = "REGRESSION"
    question = "Has the rate degraded from its baseline?"
    error_family = "false-degradation"
    compares_baseline = True
    may_be_withdrawn = True
    long_run = (
        "if nothing had changed, this rule would signal a degradation with the probability "
        "stated above"
    )

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan a cutoff against the baseline's counts, or refuse a test that it cannot bear."""
        baseline = situation.baseline
        found = None if baseline is None else baseline.criteria.get(criterion.name)
        if found is None:
            return base.Refused(
                "no baseline holds this criterion; measure one first, or give it a required rate"
            )
        if criterion.each_input:
            return base.Refused(
                "a baseline keeps counts of all inputs together, so each input cannot be compared "
                "with it; use at_least or never_fails with each_input"
            )
        rule, alpha = situation.options.rule, criterion.wrong_fail
        alternative = designs.find_alternative(criterion, found.passed, found.trials)
        trials = situation.fixed_trials(criterion)
        counts = found.passed, found.trials
        if criterion.pass_from is not None:
            chosen = designs.plan_chosen(criterion, counts, trials, rule)
            if isinstance(chosen, base.Refused):
                return chosen
            design, alpha = chosen, chosen.alpha
        # A baseline that never passed cannot be fallen below, so there is nothing to look for on
        # the way. The other rule sets have no test whose errors count several looks.
        elif trials is None and rule == "exact" and found.passed:
            limit, waits = situation.trial_limit(criterion), not situation.options.curtail
            design = designs.plan_stages(criterion, counts, limit, waits=waits)
        else:
            trials = trials or designs.find_size(criterion, counts, rule)
            design = stats.regression_cutoff(*counts, trials, alpha=alpha, rule=rule)
        reason = designs.refuse_weak_regression(criterion, design)
        if reason is not None and situation.verifies:
            return base.Refused(reason)
        if design.cutoff is None:
            return base.Refused(f"a {_explain_size(design)}")
        scheme = design.scheme
        rule_name = designs.SCHEME_RULES[scheme.waits] if scheme else DECISION_RULES[design.rule]
        return situation.start_plan(
            criterion,
            procedure=self.name,
            rule=rule,
            decision_rule=f"{rule_name}{base.AGREEING}",
            alpha=alpha,
            trials=design.trials,
            cutoff=design.cutoff,
            design=design,
            threshold=replace(
                situation.start_threshold(criterion),
                alternative_rate=alternative,
                baseline=situation.references.get(criterion.name),
            ),
            caveats=(
                *designs.describe_chosen(criterion, design),
                *_list_caveats(criterion, design),
            ),
        )

    def decide(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide as soon as the counts do, where the comparison is staged."""
        if designs.is_staged(plan) and counts.decision is not None and not counts.is_complete:
            return designs.conclude_stage(plan, counts)
        return super().decide(plan, counts)

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say what PASSes and FAILs in the end, and when the counts can decide first."""
        described = super().describe_rule(plan)
        if not designs.is_staged(plan):
            return described
        return f"{described}; {designs.describe_stages(plan)}"

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide by the cutoff at the number of trials that count."""
        planned, tally = cast("stats.RegressionCutoff", plan.design), counts.tally
        if tally.trials == 0:
            return base.Conclusion.without_trials(tally)
        # The cutoff is that of the number of trials that count, which may be fewer than planned.
        is_whole = tally.trials == planned.trials
        design = planned if is_whole else designs.shorten_design(planned, tally.trials)
        return _conclude(plan, tally, design, counts.intent)

    def complete(
        self, plan: CriterionPlan, conclusion: base.Conclusion, stop: StopReason, run: Plan
    ) -> base.Conclusion:
        """Add an interval, the power at the margin and the drop that the test would detect."""
        completed = super().complete(plan, conclusion, stop, run)
        weighed = CutoffEvidence.of(conclusion.evidence)
        design = cast("stats.RegressionCutoff | None", weighed.design or plan.design)
        if design is None:
            return completed
        alternative = plan.threshold.alternative_rate
        weighed = replace(
            weighed,
            interval=weighed.interval or rate_interval(plan, conclusion.tally, stop, run.rule),
            power=None if alternative is None else _power_at(plan, design, alternative),
            difference=_bound_difference(plan, design, conclusion),
        )
        advice, statement = completed.advice, completed.statement
        if not advice and conclusion.decision is Decision.PASS:
            advice = _detectable(design)
        left = weighed.difference
        if conclusion.decision is Decision.PASS and left is not None:
            statement = f"{statement} The rate {word_loss(left.low, left.confidence)}."
        return replace(completed, evidence=weighed, advice=advice, statement=statement)

    def hypotheses(self, plan: CriterionPlan) -> tuple[str, str]:
        """No change, against a degradation."""
        return base.HYPOTHESES[Origin.EMPIRICAL]

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say how often the rule signals although nothing has changed, all sampling included."""
        design = cast("stats.RegressionCutoff | None", plan.design)
        if plan.alpha is None or design is None:
            return ""
        level, alarm = as_percent(design.alpha), design.design_false_alarm
        sizes = f"{design.baseline_trials} baseline and {design.trials} test trials"
        said = f"at most {level} of such pairs of runs, whatever the rate"
        if design.rule == "wilson":
            said = f"{100 * (alarm or 0.0):.1f} % of such pairs of runs at the baseline's rate; "
            said += f"its nominal level is {level}"
        elif alarm is not None:
            said += f" ({100 * alarm:.1f} % at the baseline's rate)"
        return (
            f"If nothing has changed, this rule FAILs in {said}; {sizes} are random, independent "
            "and stationary. This is not a probability that this individual result is wrong."
        )

    def characterize(self, plan: CriterionPlan, intent: Intent) -> characteristic.Characteristic:
        """Average over the baselines that could have been measured at the baseline's rate."""
        design = cast("stats.RegressionCutoff | None", plan.design)
        if design is None or plan.judging.errors is not None:
            return super().characterize(plan, intent)

        def at(rate: float) -> characteristic.Chance:
            if design.accept:
                return designs.chance_of_stages(design, rate)
            # What is no FAIL is a PASS: a fixed comparison leaves nothing open.
            fails = _power_at(plan, design, rate) or 0.0
            if rate == design.reference_rate and design.design_false_alarm is not None:
                fails = design.design_false_alarm
            return characteristic.Chance(rate=rate, passes=1 - fails, fails=fails)

        lower = plan.threshold.alternative_rate
        states = [(design.reference_rate, "nothing changed")]
        missed = "no margin at which its power is known"
        if lower is not None:
            states.append((lower, "the margin below"))
            passes = as_probability(at(lower).passes, digits=1)
            drop = as_points(design.reference_rate - lower)
            missed = f"would pass in {passes} of runs after a drop of {drop}"
        alarm = characteristic.RuleError(
            wrong=Decision.FAIL,
            event="FAIL although nothing has changed",
            allowed=design.alpha,
            actual=at(design.reference_rate).fails,
            rate=design.reference_rate,
            # Nobody knows the true rate of the baseline; the exact rules keep alpha at any.
            is_worst=False,
        )
        return characteristic.Characteristic(
            at=at,
            states=tuple(states),
            errors=(alarm,),
            uncounted={Decision.PASS: missed},
            strength=None if lower is None else (lower, Decision.FAIL),
        )

    def derive_design(self, plan: CriterionPlan) -> Design | None:
        """Compute the cutoff against the baseline's counts."""
        baseline = plan.threshold.baseline
        if plan.rule is None or plan.alpha is None or baseline is None:
            return None
        measured = Tally(trials=baseline.trials, passed=baseline.passed)
        staged = designs.derive_stages(plan, measured.passed, measured.trials)
        return staged or _design(measured, plan.trials, plan.alpha, plan.rule)

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explained_cutoffs import explain_regression

        return explain_regression(finding)


PROCEDURE = Regression()


def decide_regression(
    criterion: str,
    tally: Tally,
    baseline: Tally,
    *,
    alpha: float = 0.05,
    rule: stats.Rule = "exact",
    intent: Intent = Intent.VERIFICATION,
    planned_trials: int | None = None,
) -> Finding:
    """Decide whether the counts signal a degradation from the baseline.

    A PASS says that no degradation was signalled at this cutoff; it does not say that service and
    baseline are equivalent. Under Fisher's rule a test planned larger than its baseline is
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
    ...     "grounded", Tally(trials=100, passed=87), Tally(trials=100, passed=95)
    ... )
    >>> finding.decision, finding.cutoff
    (<Decision.FAIL: 'FAIL'>, 88)
    """
    size = max(require_count("planned_trials", planned_trials or 0), tally.trials, 1)
    design = _design(baseline, size, alpha, rule)
    plan = CriterionPlan(
        criterion=criterion,
        procedure=PROCEDURE.name,
        rule=rule,
        decision_rule=DECISION_RULES[rule],
        alpha=alpha,
        trials=size,
        cutoff=design.cutoff,
        design=design,
    )
    if design.refusal is not None:
        return _conclude(plan, tally, design, intent).to_finding(plan)
    if not tally.trials:
        # A cutoff needs a number of trials: without any there is nothing to hold against.
        plan = replace(plan, cutoff=None, design=None)
    return PROCEDURE.conclude(plan, base.Counts(tally=tally, intent=intent)).to_finding(plan)


def _design(baseline: Tally, trials: int, alpha: float, rule: stats.Rule) -> stats.RegressionCutoff:
    return stats.regression_cutoff(baseline.passed, baseline.trials, trials, alpha=alpha, rule=rule)


def _conclude(
    plan: CriterionPlan, tally: Tally, design: stats.RegressionCutoff, intent: Intent
) -> base.Conclusion:
    statement = _statement(tally, design, intent)
    if design.cutoff is None:
        return base.Conclusion(
            decision=None,
            tally=tally,
            caution=Caution.CONFIGURATION_ERROR,
            refusals=(design.refusal,) if design.refusal else (),
            statement=statement,
        )
    # The cutoff itself PASSes: it is the fewest successes that the test does not reject.
    fails = tally.passed < design.cutoff
    is_joint = getattr(plan.design, "counts_choices", False)
    return base.Conclusion(
        decision=Decision.FAIL if fails else Decision.PASS,
        tally=tally,
        observed_rate=ObservedRate.from_gap(tally.passed - as_written(design.cutoff)),
        caution=Caution.FAIL_CLEAR if fails else Caution.ADEQUATE_POWER,
        evidence=CutoffEvidence(
            design=None if design == plan.design else design,
            # The p-value of one test alone is not that of the whole comparison.
            p_value=None if is_joint else _p_value(tally, design),
            lower_bound=lower_bound(tally, design.alpha, design.rule),
        ),
        statement=statement,
    )


def _p_value(tally: Tally, design: stats.RegressionCutoff) -> PValue:
    baseline = design.baseline_successes, design.baseline_trials
    if design.rule == "wilson":
        value = stats.binomial_cdf(tally.passed, tally.trials, design.reference_rate)
        method, tail = "exact-binomial-lower-tail", "P_{p=p_ref}(K <= K_c)"
    elif design.rule == "exact":
        value = stats.boschloo(*baseline, tally.passed, tally.trials).p_value
        method = "boschloo-exact-lower-tail"
        tail = "sup_p P_p(Fisher's p-value <= the observed one)"
    else:
        table = baseline[0], tally.passed, baseline[1], tally.trials
        value = settled(lower_tail(*table), design.alpha, lambda: exact_lower_tail(*table))
        method, tail = "fisher-exact-lower-tail", "P(K <= K_c | K + K_b)"
    return PValue(value=value, method=method, tail=tail)


def _statement(tally: Tally, design: stats.RegressionCutoff, intent: Intent) -> str:
    if design.cutoff is None:
        return f"A {_explain_size(design)}."
    fails = tally.passed < design.cutoff
    count = f"{tally.passed} of {tally.trials} successes, {design.cutoff} needed"
    if fails and intent is Intent.SMOKE:
        return f"The observed count is inconsistent with the baseline ({count})."
    if fails:
        return f"A degradation from the baseline is signalled at this cutoff ({count})."
    said = f"No degradation signal at this cutoff ({count})"
    if intent is Intent.SMOKE:
        said = f"The observed count is consistent with the baseline ({count})"
    return f"{said}; equivalence is not claimed."


def _explain_size(design: stats.RegressionCutoff) -> str:
    size, most = design.trials, design.baseline_trials
    return (
        f"test of {size} trials is larger than its baseline of {most}: measure a baseline of at "
        f"least {size} trials, or run at most {most}"
    )


def _bound_difference(
    plan: CriterionPlan, design: stats.RegressionCutoff, conclusion: base.Conclusion
) -> stats.Interval | None:
    """How far the rate lies from the baseline's, as far as the decision is about it.

    Wilson's rule takes the baseline's rate for the true one, and so has nothing to say of it.
    """
    tally = conclusion.tally
    is_decided = conclusion.decision in (Decision.PASS, Decision.FAIL) and tally.trials
    if design.rule == "wilson" or not is_decided or not base.has_agreeing_interval(plan):
        return None
    from trialwise.stats.difference_bounds import bound_difference

    return bound_difference(
        # A test with fewer trials than planned may spend a part of alpha only.
        replace(design, alpha=plan.alpha or design.alpha),
        tally.passed,
        tally.trials,
        fails=conclusion.decision is Decision.FAIL,
        curtailed=plan.counting.curtailed and design.trials == plan.trials,
    )


def _power_at(plan: CriterionPlan, design: stats.RegressionCutoff, rate: float) -> float | None:
    """Return the power at a rate; 0.1.0 treated the baseline's rate as the true one."""
    if base.has_agreeing_interval(plan):
        return designs.average_power(design, rate)
    return design.power(rate)


def _list_caveats(criterion: Criterion, design: stats.RegressionCutoff) -> Iterator[str]:
    baseline = design.baseline_successes, design.baseline_trials
    alternative = designs.find_alternative(criterion, *baseline)
    power = designs.average_power(design, alternative)
    if power is not None and power < criterion.wanted_power:
        yield (
            f"{design.trials} trials against {design.baseline_trials} of the baseline see a drop "
            f"to {alternative:.3g} with probability {power:.2f} only, less than the "
            f"{criterion.wanted_power:g} asked for: {_SAYS_LITTLE}"
        )
    # A rule that treats the baseline's rate as the true one signals more often than it says.
    alarm = design.design_false_alarm
    if alarm is not None and alarm > design.alpha * (1 + RELATIVE_BAND):
        yield (
            f"if nothing has changed, this FAILs in {100 * alarm:.1f} % of runs, not in "
            f"{as_percent(design.alpha)}: `rule: {design.rule}` takes the rate of "
            f"{design.baseline_trials} baseline trials for the true one. `rule: exact` counts "
            f"their uncertainty and keeps to {as_percent(design.alpha)}"
        )


def _detectable(design: stats.RegressionCutoff, power: float = 0.80) -> str:
    """The highest rate that the resolved test signals with the usual power."""
    low, high = 0.0, design.reference_rate
    if (design.power(low) or 0.0) < power:
        return "Not even a rate of 0 would be signalled: run more trials."
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        reached = (design.power(middle) or 0.0) >= power
        low, high = (middle, high) if reached else (low, middle)
    return f"With {design.trials} trials a drop to {low:.4f} is signalled with power {power:g}."
