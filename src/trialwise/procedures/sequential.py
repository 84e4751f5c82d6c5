"""Sequential: is the required rate met, or missed by the margin? Decided as soon as it may be.

What `at_least` alone means stands here: a sequential decision between the required rate and the
margin below it, at the fewest expected trials, within twice the exact fixed sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from trialwise.decimals import complement
from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import Note, NoteKind, SequentialEvidence
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Caution, Decision, Finding, Intent, ObservedRate
from trialwise.procedures.base import (
    Chance,
    Conclusion,
    Counts,
    Procedure,
    Refused,
    RuleError,
    Situation,
    rate_below,
)
from trialwise.procedures.compliance import observed_status
from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.characteristic import OperatingCharacteristic
from trialwise.stats.sequential.design import SequentialDesign

if TYPE_CHECKING:
    from trialwise.documents.blocks import Section


class Sequential(Procedure):
    """A required rate or a rate lower by the margin, decided as soon as the evidence is enough."""

    name = "SEQUENTIAL"
    question = "Is the required rate met, or missed by the margin?"
    error_family = "false-rejection"
    may_stop_early = True
    long_run = (
        "at the required rate or above this rule would FAIL, and at the margin below it or "
        "lower it would PASS, with at most the probabilities stated above"
    )

    def plan(self, criterion: Criterion, situation: Situation) -> CriterionPlan | Refused:
        """Plan boundaries between the two rates, or refuse a cap under which nothing can PASS."""
        from trialwise.procedures.sizing.sizing_questions import (
            SequentialQuestion,
            resolved_max_trials,
        )

        required = criterion.at_least
        assert required is not None
        alternative = rate_below(required, criterion.margin)
        if alternative <= 0:
            return Refused(
                f"a margin of {criterion.margin:g} below the required rate of {required:g} leaves "
                "no rate to tell it from; give a smaller margin, or a fixed number of trials"
            )
        question = SequentialQuestion(
            required_rate=required,
            alternative_rate=alternative,
            confidence=criterion.confidence,
            power=criterion.power,
            max_trials=criterion.max_trials or situation.options.max_trials,
        )
        design = _stopping_rule(criterion, alternative, resolved_max_trials(question), situation)
        can_pass = max(design.accept) >= 0
        if not can_pass and situation.verifies:
            return Refused(
                f"with at most {design.cap} trials no result would PASS at a rate of {required:g} "
                f"against {alternative:g} with power {criterion.power:g}; about "
                f"{question.fixed_trials} trials are needed. Allow up to "
                f"{2 * question.fixed_trials} (max_trials), widen the margin, or use smoke intent "
                "if this is a sentinel check"
            )
        return situation.start_plan(
            criterion,
            procedure=self.name,
            decision_rule=f"sequential/{design.method}",
            alpha=criterion.alpha,
            beta=criterion.beta,
            trials=design.cap,
            design=design,
            stops_early=True,
            threshold=replace(situation.start_threshold(criterion), alternative_rate=alternative),
            estimator=situation.claim.estimator,
            curtailed=True,
        )

    def decide(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide at the boundaries, or by a judge's corrected rate once all trials are in.

        Boundaries for outcomes that are seen without error would keep neither level where a judge
        errs, so a plan with a judge's errors has none (`planning.criterion_plans`).
        """
        if plan.stops_early:
            return _conclude(plan, counts.tally, counts.intent)
        return super().decide(plan, counts)

    def conclude(self, plan: CriterionPlan, counts: Counts) -> Conclusion:
        """Decide between the two rates by the corrected one, all trials being in."""
        from trialwise.procedures.deciding.judge_corrections import conclude_corrected

        return conclude_corrected(plan, counts)

    def describe_rule(self, plan: CriterionPlan) -> str:
        """Say when the boundaries can decide first, and what they do at the cap."""
        if plan.stops_early:
            return _describe(cast("SequentialDesign", plan.design))
        good, bad = plan.threshold.required_rate, plan.threshold.alternative_rate
        return (
            f"PASS where {plan.trials} trials show a corrected rate above {bad:g}, FAIL below "
            f"{good:g}"
        )

    def forecast(self, plan: CriterionPlan) -> Iterator[Chance]:
        """Compute the chances of each decision at both rates, with the trials they take."""
        if not plan.stops_early:
            return
        design = cast("SequentialDesign", plan.design)
        for rate, meaning in ((design.p0, "as required"), (design.p1, "the margin below")):
            found = design.operating_characteristic(rate)
            yield Chance(
                rate=rate,
                meaning=meaning,
                passes=found.passes,
                fails=found.fails,
                inconclusive=found.inconclusive,
                mean_trials=found.mean_trials,
            )

    def list_errors(self, design: object) -> Iterator[RuleError]:
        """A FAIL at the required rate, and a PASS at the alternative."""
        if isinstance(design, SequentialDesign):
            good, bad = (design.operating_characteristic(rate) for rate in (design.p0, design.p1))
            event = f"FAIL at a true rate of {as_percent(design.p0)}"
            yield RuleError(event=event, allowed=design.alpha, actual=good.fails)
            event = f"PASS at a true rate of {as_percent(design.p1)}"
            yield RuleError(event=event, allowed=design.beta, actual=bad.passes)

    def explain(self, finding: Finding) -> tuple[Section, ...]:
        """Explain a finding; the words are loaded for those who ask."""
        from trialwise.procedures.explaining.stopping_rules import explain_sequential

        return explain_sequential(finding)


PROCEDURE = Sequential()


def _conclude(plan: CriterionPlan, tally: Tally, intent: Intent) -> Conclusion:
    design = cast("SequentialDesign", plan.design)
    verdict = design.decide(tally.trials, tally.failed)
    decision = verdict or Decision.INCONCLUSIVE
    good = design.operating_characteristic(design.p0)
    bad = design.operating_characteristic(design.p1)
    observed = observed_status(tally, design.p0) if tally.trials else ObservedRate.NOT_APPLICABLE
    qualifications = [
        *_below(decision, tally, design, observed),
        *(() if design.always_decides else (_open_ends(design, good, bad),)),
    ]
    return Conclusion(
        decision=decision,
        tally=tally,
        evidence=SequentialEvidence(
            interval=_interval(tally, design, is_stop=verdict is not None),
            estimate=None if verdict is None else design.estimate(tally.trials, tally.failed),
            power=1 - bad.passes,
        ),
        null=f"p ≥ {design.p0:g}, where a FAIL is rare",
        alternative=f"p ≤ {design.p1:g}, where a PASS is rare",
        observed_rate=observed,
        caution=_caution(decision, tally, observed),
        statement=_statement(verdict, tally, design, intent),
        confidence_statement=_error_rates(design, good, bad),
        notes=tuple(Note(kind=NoteKind.QUALIFICATION, text=text) for text in qualifications),
    )


def _stopping_rule(
    criterion: Criterion, alternative: float, cap: int, situation: Situation
) -> SequentialDesign:
    """The boundaries, by the criterion's own method."""
    assert criterion.at_least is not None
    # Each method is made by the class method of its name.
    make = partial(
        getattr(SequentialDesign, criterion.method),
        criterion.at_least,
        alternative,
        alpha=criterion.alpha,
        beta=criterion.beta,
        cap=cap,
    )
    found = make(cache=situation.cache) if criterion.method == "optimal" else make()
    return cast("SequentialDesign", found)


def _describe(design: SequentialDesign) -> str:
    first = next((n for n in range(1, design.cap + 1) if design.accept[n] >= 0), None)
    last = next((n for n in range(1, design.cap + 1) if design.reject[n] <= n), None)
    parts = []
    if first is not None:
        parts.append(f"PASS after {first} of {first} at the earliest")
    if last is not None:
        parts.append(f"FAIL after {design.reject[last]} failures in {last} at the earliest")
    cap, accept, reject = design.cap, design.accept[design.cap], design.reject[design.cap]
    end = f"after {cap} trials PASS with at least {cap - accept}, FAIL with at most {cap - reject}"
    if not design.always_decides:
        end += ", between: INCONCLUSIVE"
    return "; ".join([*parts, end])


def _below(
    decision: Decision, tally: Tally, design: SequentialDesign, observed: ObservedRate
) -> tuple[str, ...]:
    """Boundaries lie between the two rates: a PASS may rest on fewer successes than are asked."""
    if decision is not Decision.PASS or observed is not ObservedRate.BELOW_THRESHOLD:
        return ()
    rate = tally.passed / tally.trials
    text = (
        f"the observed rate of {rate:.3f} is below {design.p0:g}: a PASS rules out {design.p1:g} "
        f"or less, not every rate below {design.p0:g}"
    )
    return (text,)


def _interval(tally: Tally, design: SequentialDesign, *, is_stop: bool) -> Interval | None:
    """Exact where the design stopped; elsewhere one that no reason for stopping can hurt."""
    if tally.trials == 0:
        return None
    confidence = complement(design.alpha)
    if is_stop:
        return design.interval(tally.trials, tally.failed, confidence=confidence)
    from trialwise.stats.confidence_sequences import anytime_interval

    return anytime_interval(tally.passed, tally.trials, confidence=confidence)


def _caution(decision: Decision, tally: Tally, observed: ObservedRate) -> Caution | None:
    if tally.trials == 0:
        return Caution.ZERO_EVALUABLE
    is_open = decision is Decision.INCONCLUSIVE
    return None if is_open else Caution.for_decision(decision, observed)


def _statement(
    verdict: Decision | None, tally: Tally, design: SequentialDesign, intent: Intent
) -> str:
    n = tally.trials
    good, bad = f"{design.p0:g}", f"{design.p1:g}"
    if n == 0:
        return "No trial was available to decide on."
    count = f"{tally.passed} of {n} successes"
    if verdict is None:
        return (
            f"The run ended after {n} of at most {design.cap} trials, before the design could "
            f"decide between {good} and {bad} ({count})."
        )
    match verdict:
        case Decision.PASS:
            consistent, shown = "consistent", f"supports a rate of {good} against {bad} or less"
            fact = f"{count}, {n - design.accept[n]} needed after {n}"
        case Decision.FAIL:
            consistent, shown = "inconsistent", f"speaks against a rate of {good} or more"
            fact = f"{count}, {n - design.reject[n]} or fewer FAIL after {n}"
        case Decision.INCONCLUSIVE:
            passing = f"{n - design.accept[n]}" if design.accept[n] >= 0 else "no number"
            failing = f"{n - design.reject[n]}" if design.reject[n] <= n else "no number"
            return (
                f"{n} trials did not decide between {good} and {bad} ({count}; {passing} would "
                f"PASS, {failing} would FAIL)."
            )
    if intent is Intent.SMOKE:
        return f"The observed rate is {consistent} with the target of {good} ({fact})."
    return f"The evidence {shown} ({fact})."


def _error_rates(
    design: SequentialDesign, good: OperatingCharacteristic, bad: OperatingCharacteristic
) -> str:
    """What alpha and beta are a property of, with the values the boundaries really have."""
    return (
        f"P(FAIL) ≤ {_up(good.fails)} at every true rate of {design.p0:g} or more, and P(PASS) ≤ "
        f"{_up(bad.passes)} at every true rate of {design.p1:g} or less: counted over every "
        "way in which this design can end, for independent and stationary trials. It is not the "
        "probability that this verdict is wrong."
    )


def _open_ends(
    design: SequentialDesign, good: OperatingCharacteristic, bad: OperatingCharacteristic
) -> str:
    text = (
        f"{design.cap} trials do not always decide: {_percent(good.inconclusive)} of runs at a "
        f"true rate of {design.p0:g} and {_percent(bad.inconclusive)} of runs at {design.p1:g} end "
        "INCONCLUSIVE"
    )
    short = design.shortfall
    return f"{text}." if short is None else f"{text}; {short.smallest_cap} trials can decide all."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _up(probability: float) -> str:
    """To four decimals and never below the truth, so that "at most" is said rightly."""
    from decimal import ROUND_CEILING, Decimal

    # What a sum of doubles leaves above a level is not part of the truth.
    exact = Decimal(max(probability - 1e-12, 0.0))
    return str(exact.quantize(Decimal("0.0001"), ROUND_CEILING))
