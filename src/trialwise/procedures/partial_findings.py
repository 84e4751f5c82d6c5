"""Conclusions about designs that did not run to their end: certain already, or cut short."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

from trialwise import stats
from trialwise.decimals import as_written
from trialwise.documents.numbers import STOPS, as_count, as_observed, as_percent, as_probability
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Tally
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts, Situation, has_agreeing_interval, known
from trialwise.stats.binomial import upper_z
from trialwise.stats.rate_intervals import clopper_pearson_low, wilson_low

#: What to call a run that was not to decide anything.
MEASURED = "MEASURED"


def conclude_certain(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Return a fixed design whose verdict no further trial could change (curtailment).

    The verdict is that of the whole design; a p-value or a bound at the size reached would belong
    to another one, so there is none.
    """
    tally, decision = counts.tally, known(counts.decision)
    failures = as_count(tally.failed, "failure")
    needed = f"{plan.cutoff} of {plan.trials}"
    if decision is Decision.PASS:
        why = f"{tally.passed} passed, and {needed} are enough"
    elif decision is Decision.INCONCLUSIVE:
        fails = f"at most {plan.failing.most_failing}"
        why = f"neither PASS ({needed}) nor FAIL ({fails}) can be reached"
    elif plan.failing.most_failing is not None:
        why = f"with {failures}, at most {plan.trials - tally.failed} of {plan.trials} can pass"
    else:
        why = f"with {failures}, {needed} can no longer be reached"
    observed = _place_rate(plan, tally)
    return Conclusion(
        decision=decision,
        tally=tally,
        observed_rate=observed,
        caution=Caution.for_decision(decision, observed),
        statement=f"Stopped at trial {tally.trials}: {why}.",
    )


def conclude_short(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Conclude INCONCLUSIVE for a plan that ended before it could decide."""
    tally, why = counts.tally, STOPS[counts.stop].predicate
    done = f"{tally.trials} of {plan.trials} planned trials"
    statement = f"The run {why} after {done}, and what is missing could still change the verdict."
    if not tally.trials:
        statement = f"The run {why} before the first trial counted."
    return Conclusion(
        decision=Decision.INCONCLUSIVE,
        tally=tally,
        observed_rate=_place_rate(plan, tally),
        caution=None if tally.trials else Caution.ZERO_EVALUABLE,
        statement=statement,
    )


def word_more_trials(plan: CriterionPlan, tally: Tally) -> str:
    """Say how many more trials a plan that was cut short needs, and how often they decide it."""
    left = plan.trials - tally.trials
    needs, resume = f"It needs up to {left:,} more trials", "--resume continues a stored run"
    chance = None if tally.rate is None else _find_chance(plan, tally, tally.rate)
    if chance is None:
        return f"{needs}; {resume}."
    rate = as_observed(tally.rate or 0.0)
    share = as_probability(chance, digits=1)
    return (
        f"{needs}, which decide it in {share} of runs if the rate is {rate}, as so far; {resume}."
    )


def _find_chance(plan: CriterionPlan, tally: Tally, rate: float) -> float | None:
    """Return the chance of a PASS or FAIL by the end; None where the counts do not tell."""
    # Neither a corrected nor a weighted rate is decided by how many passed.
    limits, left = plan.limits, plan.trials - tally.trials
    if plan.judging.errors is not None or plan.estimator is not None:
        return None
    if (design := limits.design) is not None:
        from trialwise.stats.sequential.walks import chance_to_decide

        return chance_to_decide(design, rate, (tally.trials, tally.failed))
    if limits.cutoff is None or limits.most_failing is None:
        return None if limits.cutoff is None else 1.0
    passes = stats.binomial_tail(limits.cutoff - tally.passed, left, rate)
    return passes + stats.binomial_cdf(limits.most_failing - tally.passed, left, rate)


def conclude_unreached(trials: int, tally: Tally) -> Conclusion:
    """Trials of which not one was measured: they say nothing about the service.

    Args:
        trials: How many there were.
        tally: Those that the analysis counts all the same.
    """
    some = "The only trial was not" if trials == 1 else f"None of the {trials} trials was"
    return Conclusion(
        decision=Decision.INCONCLUSIVE,
        tally=tally,
        caution=Caution.ZERO_EVALUABLE,
        statement=f"{some} measured, so there is nothing to say about the service.",
    )


def conclude_silenced(conclusion: Conclusion, silent: int, unknown: str = "") -> Conclusion:
    """Return a failure that rests on trials that were not measured: INCONCLUSIVE.

    Args:
        conclusion: What was concluded.
        silent: How many trials were not measured.
        unknown: What a check said could not be told; empty where it was a judge that kept silent.
    """
    trials, they, were = ("1 trial", "it", "was")
    if silent != 1:
        trials, they, were = (f"{silent} trials", "they", "were")
    statement = (
        f"{trials} got no verdict from the judge, and had {they} passed this would not be a "
        "FAIL: a judge's silence says nothing about the service."
    )
    advice = "see that the judge answers, or decide without such trials: analysis per-protocol"
    if unknown:
        statement = (
            f"{trials} {were} not measured: {unknown}. This is neither a failure nor a PASS."
        )
        advice = "record the session in a form that is read whole, or leave the criterion out"
    open_ = replace(conclusion, decision=Decision.INCONCLUSIVE, caution=None)
    return replace(open_, statement=statement, advice=advice)


def conclude_measured(tally: Tally) -> Conclusion:
    """Return what a run counted that was not to decide anything."""
    return Conclusion(
        decision=Decision.INCONCLUSIVE,
        tally=tally,
        statement=f"Measured: {tally.passed} of {tally.trials} passed. Nothing was to be decided.",
        label=MEASURED,
    )


def _place_rate(criterion: CriterionPlan, tally: Tally) -> ObservedRate:
    """Return where the rate so far stands against the threshold, compared in rationals."""
    required, cutoff = criterion.threshold.required_rate, criterion.cutoff
    if not tally.trials or (required is None and cutoff is None):
        return ObservedRate.NOT_APPLICABLE
    if required is not None:
        return ObservedRate.from_gap(tally.passed - as_written(required) * tally.trials)
    gap = tally.passed * criterion.trials - as_written(known(cutoff)) * tally.trials
    return ObservedRate.from_gap(gap)


# Smoke runs: what they PASS on, and what they say of themselves (companion §5.7.3, §5.7.4).

#: Shown instead of PASS where a smoke run was too small to show its rate.
SMOKE_PASS = "SMOKE PASS"


def passes_on_observed_rate(plan: CriterionPlan) -> bool:
    """Return whether a smoke run that is too small PASSes on its observed rate (§5.7.3).

    Fisher's rule set fails it, as its reference cases do; so did 0.1.0 under every rule.
    """
    return plan.rule != "fisher" and has_agreeing_interval(plan)


def lower_bound(tally: Tally, alpha: float, rule: stats.Rule) -> float:
    """Return the one-sided lower bound at alpha itself, since 1 − alpha may round to 1."""
    # Both take the tail probability itself: a confidence near 1 loses the digits that matter.
    if rule == "wilson":
        return wilson_low(tally.passed, tally.trials, upper_z(alpha))
    return clopper_pearson_low(tally.passed, tally.trials, alpha)


def state_small_smoke(tally: Tally, design: stats.ComplianceCutoff, plan: CriterionPlan) -> str:
    """Return what a smoke run that is too small for its requirement shows, and what it does not."""
    passed, required = f"{tally.passed} of {tally.trials} passed", as_percent(design.required_rate)
    if not passes_on_observed_rate(plan):
        return (
            f"{passed}; {design.trials} trials cannot show {required}, {design.minimum_trials} can."
        )
    shown = f"{math.floor(lower_bound(tally, design.alpha, design.rule) * 100)} %"
    return f"smoke: {passed}; shows at least {shown}, not the required {required}."


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


def describe_small_smoke(plan: CriterionPlan, required: float) -> str:
    """Describe the rule of a smoke run that is too small for its requirement, before it runs."""
    least = math.ceil(as_written(required) * plan.trials)
    perfect = Tally(trials=plan.trials, passed=plan.trials)
    shown = f"{math.floor(lower_bound(perfect, known(plan.alpha), known(plan.rule)) * 100)} %"
    needed = cast("stats.ComplianceCutoff", plan.design).minimum_trials
    return (
        f"{SMOKE_PASS} with at least {least} of {plan.trials}, on the observed rate alone: "
        f"{plan.trials} trials can show {shown}, not the required {as_percent(required)}, which "
        f"takes at least {needed}"
    )


def list_smoke_caveats(
    criterion: Criterion, design: stats.ComplianceCutoff, situation: Situation
) -> tuple[str, ...]:
    """List what a smoke run against somebody's promise has to say of itself (companion §5.7.4)."""
    if situation.verifies or not criterion.is_normative:
        return ()
    sized = (
        "Sample is sized for verification. Consider setting intent = VERIFICATION for evidential "
        "strength."
    )
    too_small = (
        f"Sample not sized for verification (N = {design.trials}, need {design.minimum_trials}). "
        "A PASS is a directional signal, not a compliance determination."
    )
    return (too_small if design.trials < design.minimum_trials else sized,)
