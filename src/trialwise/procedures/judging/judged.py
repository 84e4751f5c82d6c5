"""What a judge's measured errors leave of a finding.

A judged rate is not the rate: the judge passes some of what is bad and fails some of what is good.
Where its errors were measured, a decision stands only if the corrected rate says the same; where no
size was asked for, the corrected rate alone decides, once all trials are in. It is corrected twice:
the rectifier needs labels drawn as the trials were, Rogan and Gladen's estimate needs a judge that
errs as often on other outputs. What both say holds if either is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trialwise.model.evidence import StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.tally import Tally
from trialwise.model.verdict import Decision, Finding, Intent, ObservedRate, Procedure
from trialwise.procedures.compliance import observed_status
from trialwise.procedures.judging.evidence import Row
from trialwise.stats._boundary import complement
from trialwise.stats.agreement import Confusion
from trialwise.stats.judged_decision import (
    CORRECTIONS,
    JudgedDecision,
    JudgedSequence,
    decide_judged,
)
from trialwise.stats.values import Undefined

__all__ = ["correct", "decide_corrected"]

DECISION_RULE = "judged/corrected-interval"


def correct(
    finding: Finding, criterion: CriterionPlan, rows: Sequence[Row], stop: StopReason
) -> Finding:
    """The finding, held against the corrected rate where the judge's errors are known.

    Args:
        finding: What the procedure concluded from what the judge said.
        criterion: Its plan.
        rows: The trials that the analysis counts, in issue order.
        stop: Why no further trial was counted: whoever may stop early pays for it in width.
    """
    errors, required = criterion.errors, criterion.threshold.required_rate
    if errors is None or required is None or finding.alpha is None or not rows:
        return finding
    outcomes = _outcomes(rows, kindly=finding.decision is Decision.FAIL)
    confidence = complement(finding.alpha)
    if stop is StopReason.COMPLETE:
        answer = _decide(outcomes, errors, required, confidence)
    else:
        state = JudgedSequence.start(errors, confidence=confidence)
        for passed in outcomes:
            state = state.update(passed)
        answer = state.decide(required)
    agrees = finding.decision in (answer.decision, Decision.INCONCLUSIVE, None)
    return replace(
        finding,
        judged=answer,
        decision=finding.decision if agrees else Decision.INCONCLUSIVE,
        statement=finding.statement if agrees else f"{finding.statement} {_why(answer)}",
        caveats=(*finding.caveats, _corrected(answer)),
    )


def decide_corrected(
    criterion: CriterionPlan, tally: Tally, rows: Sequence[Row], intent: Intent
) -> Finding:
    """Decide between a good and a bad rate by the corrected one, all trials being in.

    FAIL where the 1 − α interval of the corrected rate lies below the required rate, PASS where the
    1 − β interval lies above the bad one: both intervals include what the labels leave open, so
    that P(FAIL) ≤ α at the required rate and P(PASS) ≤ β at the bad one. Boundaries for outcomes
    that are seen without error would keep neither.

    Args:
        criterion: Its plan, whose design names both rates.
        tally: The counts.
        rows: The trials that the analysis counts, in issue order.
        intent: Kept on the finding.
    """
    errors, threshold = criterion.errors, criterion.threshold
    good, bad = threshold.required_rate, threshold.alternative_rate
    alpha, beta = criterion.alpha, criterion.beta
    assert errors is not None
    assert good is not None
    assert bad is not None
    assert alpha is not None
    assert beta is not None
    decision, answer = Decision.INCONCLUSIVE, None
    if rows:
        kind, harsh = _outcomes(rows, kindly=True), _outcomes(rows, kindly=False)
        answer = _decide(kind, errors, good, complement(alpha))
        if answer.decision is Decision.FAIL:
            decision = Decision.FAIL
        else:
            answer = _decide(harsh, errors, bad, complement(beta))
            if answer.decision is Decision.PASS:
                decision = Decision.PASS
    return Finding(
        criterion=criterion.criterion,
        procedure=Procedure.SEQUENTIAL,
        rule=None,
        decision_rule=DECISION_RULE,
        decision=decision,
        tally=tally,
        intent=intent,
        alpha=alpha,
        beta=beta,
        null=f"p ≥ {good:g}, where a FAIL is rare",
        alternative=f"p ≤ {bad:g}, where a PASS is rare",
        observed_rate=observed_status(tally, good) if rows else ObservedRate.NOT_APPLICABLE,
        statement=_between(decision, answer, good, bad),
        confidence_statement=(
            f"P(FAIL) ≤ {alpha:g} at every true rate of {good:g} or more, and P(PASS) ≤ {beta:g} "
            f"at every true rate of {bad:g} or less, for labels and trials drawn alike and "
            "independently. It is not the probability that this verdict is wrong."
        ),
        judged=answer,
        caveats=() if answer is None else (_corrected(answer),),
    )


def _decide(
    outcomes: Sequence[bool], errors: Confusion, required: float, confidence: float
) -> JudgedDecision:
    """The decision of both corrections; where they differ, the one that leaves it open."""
    first, second = (
        decide_judged(
            sum(outcomes), len(outcomes), errors, required, confidence=confidence, correction=one
        )
        for one in CORRECTIONS
    )
    if first.decision is second.decision or first.decision is Decision.INCONCLUSIVE:
        return first
    return replace(second, decision=Decision.INCONCLUSIVE)


def _outcomes(rows: Sequence[Row], *, kindly: bool) -> list[bool]:
    """What the judge said; its silence speaks against whatever is to be concluded."""
    return [row.passed or (kindly and row.is_unjudged) for row in rows]


def _between(decision: Decision, answer: JudgedDecision | None, good: float, bad: float) -> str:
    if answer is None:
        return "No trial was available to decide on."
    if decision is Decision.PASS:
        return f"The rate, corrected for the judge's errors, is above {bad:g}."
    if decision is Decision.FAIL:
        return f"The rate, corrected for the judge's errors, is below the required {good:g}."
    return f"All trials are in, and they do not decide between {good:g} and {bad:g}. {_why(answer)}"


def _corrected(answer: JudgedDecision) -> str:
    if isinstance(answer.corrected, Undefined):
        return f"The judged rate cannot be corrected: {answer.corrected.reason}."
    low, high = answer.corrected.interval
    return (
        f"Corrected for the judge's errors on {answer.corrected.confusion.labels} labels the rate "
        f"is {answer.corrected.rate:.3f} [{low:.3f}, {high:.3f}]; judged it is "
        f"{answer.corrected.judged_rate:.3f}."
    )


def _why(answer: JudgedDecision) -> str:
    open_ = f"The judge's own errors leave it open whether {answer.required_rate:g} is met"
    if answer.open_because == "labels" and isinstance(answer.labels_needed, int):
        return f"{open_}: about {answer.labels_needed:,} labels in all would say, trials would not."
    if answer.open_because == "trials" and isinstance(answer.trials_needed, int):
        return f"{open_}: about {answer.trials_needed:,} trials in all would say."
    return f"{open_}."
