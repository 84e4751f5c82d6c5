"""What a judge's measured errors leave of a finding.

A judged rate is not the rate: the judge passes some of what is bad and fails some of what is good.
Where its errors were measured, a decision stands only if the corrected rate says the same; where no
size was asked for, the corrected rate alone decides, once all trials are in. It is corrected twice:
the rectifier needs the difference of its two errors to carry over from the labels to the trials,
Rogan and Gladen's estimate needs the two accuracies to. What both say holds if either does. A trial
without a reply fails, and no judge erred about it: the corrected rate of the replies is then
multiplied by their share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from trialwise.decimals import complement
from trialwise.model.evidence import Evidence, Note, NoteKind, StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts
from trialwise.procedures.compliance import observed_status
from trialwise.procedures.criterion_rows import Rows
from trialwise.stats.agreement import Confusion
from trialwise.stats.judged_decision import (
    CORRECTIONS,
    Correction,
    JudgedDecision,
    JudgedSequence,
    decide_judged,
)
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Undefined

#: Of the error that is allowed, what goes to the share of trials that had a reply.
_OF_SHARE = 0.2
_NAMES = {"rectifier": "the rectifier", "rogan-gladen": "Rogan and Gladen"}


def correct(
    conclusion: Conclusion, plan: CriterionPlan, rows: Rows, stop: StopReason
) -> Conclusion:
    """Hold a conclusion against the corrected rate, where the judge's errors are known.

    Args:
        conclusion: What the procedure concluded from what the judge said.
        plan: The criterion's.
        rows: The trials that the analysis counts, in order.
        stop: Why no further trial was counted: a plan that may stop early pays for it in width.
    """
    errors, required, decision = plan.errors, plan.threshold.required_rate, conclusion.decision
    if errors is None or required is None or plan.alpha is None or not rows:
        return conclusion
    confidence, kindly = complement(plan.alpha), decision is Decision.FAIL
    other: JudgedDecision | None = None
    if stop is StopReason.COMPLETE:
        answer, other = _decide(rows, errors, required, confidence, kindly=kindly)
    else:
        state = JudgedSequence.start(errors, confidence=confidence, rule=plan.rule or "exact")
        for passed in _outcomes(rows, kindly=kindly):
            state = state.update(bool(passed))
        answer = state.decide(required)
    agrees = decision in (answer.decision, Decision.INCONCLUSIVE, None)
    statement = conclusion.statement
    return replace(
        conclusion,
        evidence=replace(conclusion.evidence, judged=answer, judged_otherwise=other),
        decision=decision if agrees else Decision.INCONCLUSIVE,
        statement=statement if agrees else f"{statement} {_why(answer)}",
        notes=(*conclusion.notes, _corrected(answer, other, trials=len(rows))),
    )


def conclude_corrected(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Decide between a good and a bad rate by the corrected one, all trials being in.

    FAIL where the 1 − α interval of the corrected rate lies below the required rate, PASS where the
    1 − β interval lies above the bad one: both intervals include what the labels leave open, so
    that P(FAIL) ≤ α at the required rate and P(PASS) ≤ β at the bad one. Boundaries for outcomes
    that are seen without error would keep neither. Only one end of each interval is asked about;
    the error of the other pays for having let the same labels say whether the judge may decide.

    Args:
        plan: The criterion's, whose threshold names both rates.
        counts: All planned trials.
    """
    errors, threshold, rows = plan.errors, plan.threshold, counts.rows
    good, bad = threshold.required_rate, threshold.alternative_rate
    alpha, beta = plan.alpha, plan.beta
    assert errors is not None
    assert good is not None
    assert bad is not None
    assert alpha is not None
    assert beta is not None
    decision, answer, other = Decision.INCONCLUSIVE, None, None
    if rows:
        answer, other = _decide(rows, errors, good, complement(alpha), kindly=True)
        if answer.decision is Decision.FAIL:
            decision = Decision.FAIL
        else:
            answer, other = _decide(rows, errors, bad, complement(beta), kindly=False)
            if answer.decision is Decision.PASS:
                decision = Decision.PASS
    return Conclusion(
        decision=decision,
        tally=counts.tally,
        evidence=Evidence(judged=answer, judged_otherwise=other),
        null=f"p ≥ {good:g}, where a FAIL is rare",
        alternative=f"p ≤ {bad:g}, where a PASS is rare",
        observed_rate=observed_status(counts.tally, good) if rows else ObservedRate.NOT_APPLICABLE,
        statement=_between(decision, answer, good, bad),
        confidence_statement=(
            f"P(FAIL) ≤ {alpha:g} at every true rate of {good:g} or more, and P(PASS) ≤ {beta:g} "
            f"at every true rate of {bad:g} or less, for labels and trials drawn alike and "
            "independently. It is not the probability that this verdict is wrong."
        ),
        notes=() if answer is None else (_corrected(answer, other, trials=len(rows)),),
    )


def _decide(
    rows: Rows, errors: Confusion, required: float, confidence: float, *, kindly: bool
) -> tuple[JudgedDecision, JudgedDecision]:
    """The decision of both corrections, first by the one that leaves it open, or that needs more:
    what is missing has to suffice for both.
    """
    heard = rows.keep(lambda row: not row.is_unheard)
    outcomes = _outcomes(heard, kindly=kindly)
    if len(heard) == len(rows):
        first, second = (
            _judge(outcomes, errors, required, confidence, correction) for correction in CORRECTIONS
        )
    else:
        alpha = 1 - confidence
        share = clopper_pearson(len(heard), len(rows), confidence=1 - _OF_SHARE * alpha)
        # The rate is the share of replies times the rate among them: divided, a limit for that.
        limit = required / max(share.high if kindly else share.low, required / 2)
        first, second = (
            _told_of_all(
                _judge(
                    outcomes,
                    errors,
                    limit if limit < 1 else required,
                    1 - (1 - _OF_SHARE) * alpha,
                    correction,
                ),
                required,
                is_beyond=limit >= 1,
                kindly=kindly,
                per_reply=Fraction(len(rows), max(1, len(heard))),
            )
            for correction in CORRECTIONS
        )
    if first.decision is second.decision:
        return (second, first) if _needs(second) > _needs(first) else (first, second)
    if first.decision is Decision.INCONCLUSIVE:
        return first, second
    return replace(second, decision=Decision.INCONCLUSIVE), first


def _judge(
    outcomes: Sequence[int],
    errors: Confusion,
    required: float,
    confidence: float,
    correction: Correction,
) -> JudgedDecision:
    if not outcomes:
        nothing = Undefined("no reply was judged")
        return JudgedDecision(
            decision=Decision.INCONCLUSIVE,
            required_rate=required,
            corrected=nothing,
            open_because="trials",
            labels_needed=nothing,
            trials_needed=nothing,
            correction=correction,
        )
    return decide_judged(
        sum(outcomes),
        len(outcomes),
        errors,
        required,
        confidence=confidence,
        correction=correction,
    )


def _told_of_all(
    answer: JudgedDecision,
    required: float,
    *,
    is_beyond: bool,
    kindly: bool,
    per_reply: Fraction,
) -> JudgedDecision:
    """Return what the replies show of all trials, in the one direction that was asked about.

    Args:
        answer: Of the replies alone.
        required: Of all trials.
        is_beyond: Whether not even flawless replies would be enough of them.
        kindly: Whether a FAIL is asked about; else a PASS.
        per_reply: Trials that it took for one reply.
    """
    if kindly:
        holds, decision = is_beyond or answer.decision is Decision.FAIL, Decision.FAIL
    else:
        holds, decision = not is_beyond and answer.decision is Decision.PASS, Decision.PASS
    shown = decision if holds else Decision.INCONCLUSIVE
    needed = answer.trials_needed
    trials = needed if isinstance(needed, Undefined) else math.ceil(needed * per_reply)
    return replace(answer, required_rate=required, decision=shown, trials_needed=trials)


def _needs(answer: JudgedDecision) -> tuple[bool, float]:
    """Return how much is missing: labels are more than trials, and what nobody can say is most."""
    for_labels = answer.open_because == "labels"
    needed = answer.labels_needed if for_labels else answer.trials_needed
    return for_labels, math.inf if isinstance(needed, Undefined) else needed


def _outcomes(rows: Rows, *, kindly: bool) -> Sequence[int]:
    """Return what the judge said; its silence speaks against whatever is to be concluded."""
    return rows.mark(lambda row: row.passed or (kindly and row.is_unjudged))


def _between(decision: Decision, answer: JudgedDecision | None, good: float, bad: float) -> str:
    if answer is None:
        return "No trial was available to decide on."
    if decision is Decision.PASS:
        return f"The rate, corrected for the judge's errors, is above {bad:g}."
    if decision is Decision.FAIL:
        return f"The rate, corrected for the judge's errors, is below the required {good:g}."
    return f"All trials are in, and they do not decide between {good:g} and {bad:g}. {_why(answer)}"


def _corrected(answer: JudgedDecision, other: JudgedDecision | None, *, trials: int) -> Note:
    return Note(kind=NoteKind.CORRECTION, text=_state_rates(answer, other, trials=trials))


def _state_rates(answer: JudgedDecision, other: JudgedDecision | None, *, trials: int) -> str:
    several = [one for one in (answer, other) if one is not None]
    several.sort(key=lambda one: CORRECTIONS.index(one.correction))
    said = []
    for one in several:
        if isinstance(one.corrected, Undefined):
            return f"The judged rate cannot be corrected: {one.corrected.reason}."
        low, high = one.corrected.interval
        said.append(f"{one.corrected.rate:.3f} [{low:.3f}, {high:.3f}] by {_NAMES[one.correction]}")
    assert not isinstance(answer.corrected, Undefined)
    replies = answer.corrected.trials
    whose = "" if replies == trials else f"of the {replies:,} replies "
    return (
        f"Corrected for the judge's errors on {answer.corrected.confusion.labels} labels the rate "
        f"{whose}is {' and '.join(said)}; judged it is {answer.corrected.judged_rate:.3f}."
    )


def _why(answer: JudgedDecision) -> str:
    open_ = f"The judge's own errors leave it open whether {answer.required_rate:g} is met"
    if answer.open_because == "labels" and isinstance(answer.labels_needed, int):
        return f"{open_}: about {answer.labels_needed:,} labels in all would say, trials would not."
    if answer.open_because == "trials" and isinstance(answer.trials_needed, int):
        return f"{open_}: about {answer.trials_needed:,} trials in all would say."
    return f"{open_}."
