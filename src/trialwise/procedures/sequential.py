"""Sequential: is the rate at least the required one? Decided as soon as the evidence is enough.

What `at_least` means without a fixed number of trials stands here. Without a margin both errors are
counted at the required rate itself (`SequentialDesign.strict`): PASS shows a rate above it, FAIL
one below it, and a rate too close to it is INCONCLUSIVE. With a margin PASS shows a rate above the
required one less the margin, and with enough trials every run is decided.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import cast

from trialwise.decimals import as_written, complement
from trialwise.documents.blocks import Section
from trialwise.documents.numbers import as_observed, as_percent
from trialwise.errors import InvalidArgument
from trialwise.model import evidence as grounds
from trialwise.model.claim import Intent
from trialwise.model.criterion import METHODS, Criterion
from trialwise.model.evidence import Note, NoteKind, PValue, Tally
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, Finding, ObservedRate
from trialwise.procedures import base, characteristic
from trialwise.procedures import sequential_designs as designs
from trialwise.procedures.compliance import observed_status
from trialwise.stats.binomial import upper_z
from trialwise.stats.confidence_sequences import anytime_interval
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.bound import MOST_TRIALS
from trialwise.stats.sequential.design import SequentialDesign


class Sequential(base.Procedure):
    """A required rate, shown to be met or missed as soon as the evidence is enough."""

    name = "SEQUENTIAL"
    question = "Is the rate at least the required one?"
    error_family = "false-rejection"
    may_stop_early = True
    shares_trials = True
    may_be_withdrawn = True
    long_run = (
        "at the required rate or above this rule would FAIL, and at the rate that a PASS rules out "
        "or lower it would PASS, with at most the probabilities stated above"
    )

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan boundaries, or refuse what costs more than anybody agreed to or cannot PASS."""
        cap = criterion.max_trials or situation.options.max_trials
        if cap is not None and cap > MOST_TRIALS:
            allowed = f"be at most {MOST_TRIALS:,} where a run may stop early"
            raise InvalidArgument("max_trials", cap, allowed)
        make = designs.plan_strict if criterion.margin is None else designs.plan_with_margin
        design = make(criterion, cap, situation)
        if isinstance(design, base.Refused):
            return design
        # A boundary that no run reaches, because it gives up before, is no PASS either. Asked at
        # a rate of 1, where no reply fails: what cannot pass there can pass nowhere.
        if design.operating_characteristic(1.0).passes == 0:
            if situation.verifies:
                return base.Refused(designs.explain_no_pass(criterion, design))
            # A quick check below the smallest size is decided by the observed rate, all trials in;
            # who chose a method wants its boundaries, which may still FAIL.
            if criterion.method == METHODS[0]:
                from trialwise.procedures.compliance import PROCEDURE as COMPLIANCE

                fixed = replace(criterion, trials=design.cap, max_trials=None, margin=None)
                return COMPLIANCE.plan(fixed, situation)
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule=f"sequential/{design.method}{base.AGREEING}",
            alpha=design.alpha,
            beta=design.beta,
            trials=design.cap,
            design=design,
            stops_early=True,
            threshold=replace(situation.start_threshold(criterion), alternative_rate=design.p1),
            estimator=situation.claim.estimator,
            curtailed=True,
        )

    def decide(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide at the boundaries, or by a judge's corrected rate once all trials are in.

        Boundaries for outcomes that are seen without error would keep neither level where a judge
        errs, so a plan with a judge's errors has none (`families.with_judge`).
        """
        if plan.counting.stops_early:
            return _conclude(plan, counts.tally, counts.intent)
        return super().decide(plan, counts)

    def conclude(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide between the two rates by the corrected one, all trials being in."""
        from trialwise.procedures.judge_corrections import conclude_corrected

        return conclude_corrected(plan, counts)

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say when the boundaries can decide first, and what they do at the cap."""
        share = self.describe_share(plan)
        if not plan.counting.stops_early:
            good, bad = plan.threshold.required_rate, plan.threshold.alternative_rate
            shown = f"{plan.trials} trials show a corrected rate above {bad:g}"
            return f"PASS where {shown}, FAIL below {good:g}{share}"
        text = _describe(cast("SequentialDesign", plan.design))
        if (shared := plan.counting.shared_by) > 1:
            text += f"; chosen for the longest of {shared} criteria on the same trials"
        return text + share

    def characterize(self, plan: CriterionPlan, intent: Intent) -> characteristic.Characteristic:
        """Walk the boundaries; a rate that is corrected for a judge's errors has only levels."""
        if not plan.counting.stops_early:
            return super().characterize(plan, intent)
        return walk_design(cast("SequentialDesign", plan.design))

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explanations import explain_sequential

        return explain_sequential(finding)


PROCEDURE = Sequential()


def walk_design(design: SequentialDesign) -> characteristic.Characteristic:
    """Return the characteristic of a design that stops as soon as it can decide."""

    def at(rate: float) -> characteristic.Chance:
        found = design.operating_characteristic(rate)
        return characteristic.Chance(
            rate=rate,
            passes=found.passes,
            fails=found.fails,
            inconclusive=found.inconclusive,
            mean_trials=found.mean_trials,
        )

    half = float((as_written(design.p0) + 1) / 2)
    return characteristic.Characteristic(
        at=at,
        states=tuple(designs.list_telling_rates(design)),
        errors=(
            characteristic.RuleError.at_rate(Decision.FAIL, at, design.p0, design.alpha),
            characteristic.RuleError.at_rate(Decision.PASS, at, design.p1, design.beta),
        ),
        strength=(half if design.p0 == design.p1 else design.p0, Decision.PASS),
    )


def _conclude(plan: CriterionPlan, tally: Tally, intent: Intent) -> base.Conclusion:
    design = cast("SequentialDesign", plan.design)
    verdict = design.decide(tally.trials, tally.failed)
    decision = verdict or Decision.INCONCLUSIVE
    observed = observed_status(tally, design.p0) if tally.trials else ObservedRate.NOT_APPLICABLE
    is_open = decision is Decision.INCONCLUSIVE
    caution = None if is_open else Caution.for_decision(decision, observed)
    return base.Conclusion(
        decision=decision,
        tally=tally,
        evidence=grounds.SequentialEvidence(
            interval=_interval(tally, plan, is_stop=verdict is not None),
            estimate=None if verdict is None else design.estimate(tally.trials, tally.failed),
            power=1 - design.operating_characteristic(design.p1).passes,
            log_ratio=_log_ratio(tally, design),
            stopped_p_value=find_p_value(verdict, tally, design),
        ),
        null=f"p ≥ {design.p0:g}, where a FAIL is rare",
        alternative=f"p ≤ {design.p1:g}, where a PASS is rare",
        advice=_advise(tally, design) if verdict is Decision.INCONCLUSIVE else "",
        observed_rate=observed,
        caution=caution if tally.trials else Caution.ZERO_EVALUABLE,
        statement=state_stop(verdict, tally, design, intent),
        confidence_statement=_error_rates(design),
        notes=tuple(_qualify(decision, tally, design)),
    )


def _log_ratio(tally: Tally, design: SequentialDesign) -> float | None:
    """Return ln of how much likelier the counts are at the required rate than at the lower one."""
    # One rate has no ratio to itself, and at 0 or 1 a single outcome would make it infinite.
    if design.p0 == design.p1 or not 0 < design.p1 < design.p0 < 1:
        return None
    passed = tally.passed * math.log(design.p0 / design.p1)
    return passed + tally.failed * math.log((1 - design.p0) / (1 - design.p1))


def find_p_value(verdict: Decision | None, tally: Tally, design: SequentialDesign) -> PValue | None:
    """Return the chance of such an end, or a more extreme one, at a rate that it speaks against."""
    if verdict is None:
        return None
    from trialwise.stats.sequential.stopped_rates import stopped_tails

    passes = verdict is Decision.PASS
    rate, end = (design.p1, "good or better") if passes else (design.p0, "bad or worse")
    tails = stopped_tails(design, tally.trials, tally.failed, rate)
    value, tail = tails.good if passes else tails.bad, f"P_{{p={rate:g}}}(an end as {end})"
    return PValue(value=min(1.0, max(0.0, value)), method="exact-stage-wise", tail=tail)


def _describe(design: SequentialDesign) -> str:
    looks, parts = range(1, design.cap + 1), []
    first = next((n for n in looks if design.accept[n] >= 0), None)
    last = next((n for n in looks if design.reject[n] <= n), None)
    if first is not None:
        parts.append(f"PASS after {first} of {first} at the earliest")
    if last is not None:
        parts.append(f"FAIL after {design.reject[last]} failures in {last} at the earliest")
    cap, accept, reject = design.cap, design.accept[design.cap], design.reject[design.cap]
    end = f"after {cap} trials PASS with at least {cap - accept}, FAIL with at most {cap - reject}"
    if not design.always_decides:
        end += ", between: INCONCLUSIVE"
    if design.futile:
        start = next(n for n, (low, high) in enumerate(design.futile) if low <= high)
        end += f" (from trial {start} on also where a decision has become improbable)"
    return "; ".join([*parts, end])


def _qualify(decision: Decision, tally: Tally, design: SequentialDesign) -> Iterator[Note]:
    qualify = partial(Note, kind=NoteKind.QUALIFICATION)
    # Boundaries lie between the two rates: a PASS may rest on fewer successes than are asked.
    is_below = tally.trials and observed_status(tally, design.p0) is ObservedRate.BELOW_THRESHOLD
    if decision is Decision.PASS and is_below:
        rate = tally.passed / tally.trials
        yield qualify(
            text=f"the observed rate of {rate:.3f} is below {design.p0:g}: a PASS rules out "
            f"{design.p1:g} or less, not every rate below {design.p0:g}"
        )
    # A strict design leaves rates near the required one open on purpose, and its advice says so.
    if design.p0 == design.p1 or design.always_decides:
        return
    ends = [design.operating_characteristic(rate).inconclusive for rate in (design.p0, design.p1)]
    good, bad = (f"{100 * one:.1f} %" for one in ends)
    short = design.shortfall
    end = "." if short is None else f"; {short.smallest_cap} trials can decide all."
    yield qualify(
        text=f"{design.cap} trials do not always decide: {good} of runs at a true rate of "
        f"{design.p0:g} and {bad} of runs at {design.p1:g} end INCONCLUSIVE{end}"
    )


def _interval(tally: Tally, plan: CriterionPlan, *, is_stop: bool) -> Interval | None:
    """Exact where the design stopped; elsewhere one that no reason for stopping can hurt."""
    if tally.trials == 0:
        return None
    design = cast("SequentialDesign", plan.design)
    if is_stop and base.has_agreeing_interval(plan):
        return design.decision_interval(tally.trials, tally.failed)
    confidence = complement(design.alpha)
    if is_stop:  # as 0.1.0 planned it
        return design.interval(tally.trials, tally.failed, confidence=confidence)
    return anytime_interval(tally.passed, tally.trials, confidence=confidence)


def state_stop(
    verdict: Decision | None, tally: Tally, design: SequentialDesign, intent: Intent
) -> str:
    """Say what the counts show where a design stopped, or why they show nothing."""
    n, good = tally.trials, as_percent(design.p0)
    if n == 0:
        return "No trial was available to decide on."
    count = f"{tally.passed} of {n} passed"
    open_end = f"{count}: too close to {good} to tell"
    if verdict is None:
        return (
            f"The run ended after {n} of at most {design.cap} trials, before they could decide "
            f"({count}; at least {good} is required)."
        )
    if verdict is Decision.PASS and intent is Intent.SMOKE:
        return f"The observed rate is consistent with the target of {good} ({count})."
    if verdict is not Decision.INCONCLUSIVE:
        shown = f"{count}, which shows a rate above {as_percent(design.p1)}."
        return shown if verdict is Decision.PASS else f"Only {count}; at least {good} is required."
    if n == design.cap:
        return f"{open_end} within {n} trials."
    why = "because a decision had become improbable"
    return f"{open_end}. Stopped at trial {n} of at most {design.cap}, {why}."


def _advise(tally: Tally, design: SequentialDesign) -> str:
    """Say how many trials would probably decide at the rate that was seen."""
    # The naive rate of a run that stopped is off in the direction in which it stopped.
    rate = design.estimate(tally.trials, tally.failed)
    level, likely = upper_z(min(design.alpha, design.beta)), upper_z(0.2)
    spread = level * math.sqrt(design.p0 * (1 - design.p0)) + likely * math.sqrt(rate * (1 - rate))
    gap = abs(rate - design.p0)
    trials = math.inf if gap == 0 else 1.1 * (spread / gap) ** 2
    seen = f"if the rate is {as_observed(rate)}, as estimated"
    if trials > MOST_TRIALS:
        return f"{MOST_TRIALS:,} trials would decide it in fewer than 80 % of runs, {seen}."
    count = designs.round_up_count(max(trials, tally.trials + 1))
    return f"About {count:,} trials would decide it in 80 % of runs, {seen}."


def _error_rates(design: SequentialDesign) -> str:
    """Return what alpha and beta are a property of, with the values the boundaries really have."""
    # Both chances are counted over all paths to the end, not bounded by Wald's inequalities, so
    # that the sentence about errors states what this design really does.
    fails = _up(design.operating_characteristic(design.p0).fails)
    passes = _up(design.operating_characteristic(design.p1).passes)
    return (
        f"P(FAIL) ≤ {fails} at every true rate of {design.p0:g} or more, and P(PASS) ≤ "
        f"{passes} at every true rate of {design.p1:g} or less: counted over every "
        "way in which this design can end, for independent and stationary trials. It is not the "
        "probability that this verdict is wrong."
    )


def _up(probability: float) -> str:
    """To four decimals and never below the truth, so that "at most" is said rightly."""
    from decimal import ROUND_CEILING, Decimal

    # What a sum of doubles leaves above a level is not part of the truth.
    exact = Decimal(max(probability - 1e-12, 0.0))
    return str(exact.quantize(Decimal("0.0001"), ROUND_CEILING))


# A required rate by trials whose number depends on their outcomes: replies that are checked
# again.
#
# The run that they come from could stop early, by what its checks said then. Whatever stopped it, a
# confidence sequence misses the rate with at most its error, and so do the decisions by its ends.

_ANYTIME = "beta-mixture, valid at any stopping time"
_CAVEAT = (
    "The number of these replies was not fixed: the run that they come from could stop early, or "
    "was stopped. They are decided by an interval that is valid at any stopping time."
)


class Anytime(base.Procedure):
    """A required rate, shown or not shown by however many trials there are."""

    name = "ANYTIME"
    question = "Is the required rate met?"
    error_family = "false-rejection"
    long_run = "whatever ended the run, each wrong statement has at most the probability stated"

    def plan(self, criterion: Criterion, situation: base.Situation) -> CriterionPlan | base.Refused:
        """Plan to decide on all trials that there are."""
        trials, required = situation.fixed_trials(criterion), criterion.at_least
        if trials is None or required is None or criterion.each_input:
            return base.Refused(
                "replies are checked again only for a required rate over all inputs"
            )
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule=f"anytime/beta-mixture{base.AGREEING}",
            alpha=criterion.wrong_fail,
            beta=criterion.wrong_pass,
            trials=trials,
            threshold=replace(
                situation.start_threshold(criterion),
                alternative_rate=base.rate_below(required, criterion.margin or 0.0),
            ),
            rides_along=True,
            curtailed=False,
            caveats=(_CAVEAT,),
        )

    def decide(self, plan: CriterionPlan, counts: base.Counts) -> base.Conclusion:
        """Decide by the two ends of the interval, whatever ended the trials."""
        tally = counts.tally
        if not tally.trials:
            return base.Conclusion.without_trials(tally)
        required = base.known(plan.threshold.required_rate)
        shown = base.known(plan.threshold.alternative_rate)
        # The ends of the interval each have the error level of their decision.
        above, below = base.known(plan.alpha), base.known(plan.beta)
        find = partial(anytime_interval, tally.passed, tally.trials)
        low = find(confidence=complement(below), side="lower").low
        high = find(confidence=complement(above), side="upper").high
        interval = Interval(low, high, confidence=complement(above + below), method=_ANYTIME)
        passed = f"{tally.passed} of {tally.trials} passed"
        decision = Decision.INCONCLUSIVE
        statement = f"{passed}: too close to {as_percent(required)} to tell."
        if interval.low > shown:
            decision = Decision.PASS
            statement = f"{passed}, which shows a rate above {as_percent(shown)}."
        elif interval.high < required:
            decision = Decision.FAIL
            statement = f"Only {passed}; at least {as_percent(required)} is required."
        return base.Conclusion(
            decision=decision,
            tally=tally,
            observed_rate=observed_status(tally, required),
            evidence=grounds.CutoffEvidence(interval=interval, lower_bound=interval.low),
            statement=statement,
        )

    def assure(self, plan: CriterionPlan, intent: Intent) -> str:
        """Say what the two levels are properties of."""
        return (
            f"P(FAIL) ≤ {plan.alpha:g} at every true rate of {plan.threshold.required_rate:g} or "
            f"more, and P(PASS) ≤ {plan.beta:g} at every true rate of "
            f"{plan.threshold.alternative_rate:g} or less, whatever stopped the run."
        )

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say which bounds decide."""
        shown, required = plan.threshold.alternative_rate, plan.threshold.required_rate
        return (
            f"PASS where the interval that is valid at any stopping time lies above {shown:g}, "
            f"FAIL where it lies below {required:g}"
        )


ANYTIME = Anytime()
