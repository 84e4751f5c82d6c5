"""What a judge's measured errors leave of a finding.

A judged rate is not the rate: the judge passes some of what is bad and fails some of what is good.
Where its errors were measured, a decision stands only if the corrected rate says the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trialwise.model.evidence import StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision, Finding
from trialwise.procedures.judging.evidence import Row
from trialwise.stats._boundary import complement
from trialwise.stats.judged_decision import JudgedDecision, JudgedSequence, decide_judged
from trialwise.stats.values import Undefined

__all__ = ["correct"]


def correct(
    finding: Finding, criterion: CriterionPlan, rows: Sequence[Row], stop: StopReason
) -> Finding:
    """The finding, held against the corrected rate where the judge's errors are known.

    Args:
        finding: What the procedure concluded from what the judge said.
        criterion: Its plan.
        rows: The counted trials in issue order; those without a verdict take no part.
        stop: Why no further trial was counted: whoever may stop early pays for it in width.
    """
    errors, required = criterion.errors, criterion.threshold.required_rate
    outcomes = [row.passed for row in rows if not row.is_unjudged]
    if errors is None or required is None or finding.alpha is None or not outcomes:
        return finding
    confidence = complement(finding.alpha)
    if stop is StopReason.COMPLETE:
        answer = decide_judged(
            sum(outcomes), len(outcomes), errors, required, confidence=confidence
        )
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
