"""What a judge's measured errors leave of a finding.

A judged rate is not the rate: the judge passes some of what is bad and fails some of what is good.
Where its errors were measured, the corrected rate decides, once all trials are in or at an earlier
look. It is corrected twice: the rectifier needs the shares of its two errors to carry over from the
labels to the trials, Rogan and Gladen's estimate needs the two accuracies to. What both say holds
if either does. Where the labels count as trials, one test that pools them with the trials decides.
A trial without a reply fails, and no judge erred about it: the corrected rate of the replies is
then multiplied by their share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import cast

from trialwise import stats
from trialwise.decimals import complement
from trialwise.documents.numbers import as_observed
from trialwise.model.evidence import Evidence, Note, NoteKind, StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision, ObservedRate
from trialwise.procedures.base import Conclusion, Counts, known
from trialwise.procedures.compliance import observed_status
from trialwise.procedures.criterion_rows import Rows
from trialwise.procedures.families import find_share
from trialwise.stats import judged_decision
from trialwise.stats.judged_tests import UNLIKE, compare_labels

#: Of the error that is allowed, what goes to the share of trials that had a reply.
_OF_SHARE = 0.2
_CORRECTED = "The rate, corrected for the judge's errors, is"
_NAMES = {
    "rectifier": "the rectifier",
    "rogan-gladen": "Rogan and Gladen",
    "pooled": "labels and trials together",
}


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
    errors, required = plan.judging.errors, plan.threshold.required_rate
    decision, statement = conclusion.decision, conclusion.statement
    if errors is None or required is None or plan.alpha is None or not rows:
        return conclusion
    alpha = plan.alpha * find_share(plan, len(rows), is_look=stop is StopReason.DECIDED)
    other: stats.JudgedDecision | None = None
    # Plans from before 0.2 and estimators of other rates only let the corrected rate object to the
    # counts of the judge. Without a measured trial there is nothing to correct.
    is_tested = bool(plan.judging.corrected_by) and plan.estimator is None
    if stop not in (StopReason.COMPLETE, StopReason.DECIDED):
        confidence = complement(plan.alpha)
        state = stats.JudgedSequence.start(errors, confidence=confidence, rule=plan.rule or "exact")
        for passed in _outcomes(rows, kindly=decision is Decision.FAIL):
            state = state.update(bool(passed))
        answer = state.decide(required)
    elif is_tested and decision is not None and conclusion.tally.trials:
        answer, other = _decide(plan, rows, required, alpha, kindly=False)
        if answer.decision is not Decision.PASS:
            # Silence counts against a PASS above, and against a FAIL here.
            answer, other = _decide(plan, rows, required, alpha, kindly=True)
            if answer.decision is Decision.PASS:
                answer = replace(answer, decision=Decision.INCONCLUSIVE)
        if answer.decision is not Decision.INCONCLUSIVE:
            decision = answer.decision
            where = "above" if decision is Decision.PASS else "below"
            statement = f"{_CORRECTED} {where} the required {required:g}."
    else:
        kindly = decision is Decision.FAIL
        answer, other = _decide(plan, rows, required, alpha, kindly=kindly)
    if unlike := _find_unlike_labels(plan, rows):
        decision, statement = Decision.INCONCLUSIVE, unlike
    elif decision not in (answer.decision, Decision.INCONCLUSIVE, None):
        decision, statement = Decision.INCONCLUSIVE, f"{statement} {_why(answer)}"
    return replace(
        conclusion,
        evidence=replace(conclusion.evidence, judged=answer, judged_otherwise=other),
        decision=decision,
        statement=statement,
        notes=(*conclusion.notes, _corrected(answer, other, trials=len(rows))),
    )


def _find_unlike_labels(plan: CriterionPlan, rows: Rows) -> str:
    """Return what is wrong with labels that count as trials and cannot have been drawn like them.

    Labels of an older version of the service would otherwise be evidence for the new one.
    """
    errors = plan.judging.errors
    if "pooled" not in plan.judging.corrected_by or errors is None:
        return ""
    heard = rows.keep(lambda row: not (row.is_unheard or row.is_unjudged))
    passed = sum(heard.mark(lambda row: row.passed))
    if not heard or compare_labels(passed, len(heard), errors) >= UNLIKE:
        return ""
    return (
        f"The judge passes {as_observed(errors.judged_rate)} of the labelled outputs and "
        f"{as_observed(passed / len(heard))} of these trials, so the labels are not those of "
        "the service as it is now. Draw new labels, or remove `labels_count_as_trials`."
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
    good, bad = known(plan.threshold.required_rate), known(plan.threshold.alternative_rate)
    rows, alpha, beta = counts.rows, known(plan.alpha), known(plan.beta)
    decision, answer, other = Decision.INCONCLUSIVE, None, None
    unlike = _find_unlike_labels(plan, rows)
    share = find_share(plan, len(rows), is_look=not counts.is_complete)
    if rows:
        answer, other = _decide(plan, rows, good, alpha * share, kindly=True)
        wanted = Decision.FAIL
        if answer.decision is not wanted:
            answer, other = _decide(plan, rows, bad, beta * share, kindly=False)
            wanted = Decision.PASS
        if answer.decision is wanted and not unlike:
            decision = wanted
    if answer is None:
        statement = "No trial was available to decide on."
    elif decision is Decision.INCONCLUSIVE:
        statement = f"All trials are in, and they do not decide between {good:g} and {bad:g}. "
        statement += _why(answer)
    else:
        where = f"above {bad:g}" if decision is Decision.PASS else f"below the required {good:g}"
        statement = f"{_CORRECTED} {where}."
    return Conclusion(
        decision=decision,
        tally=counts.tally,
        evidence=Evidence(judged=answer, judged_otherwise=other),
        null=f"p ≥ {good:g}, where a FAIL is rare",
        alternative=f"p ≤ {bad:g}, where a PASS is rare",
        observed_rate=observed_status(counts.tally, good) if rows else ObservedRate.NOT_APPLICABLE,
        statement=unlike or statement,
        confidence_statement=(
            f"P(FAIL) ≤ {alpha:g} at every true rate of {good:g} or more, and P(PASS) ≤ {beta:g} "
            f"at every true rate of {bad:g} or less, for labels and trials drawn alike and "
            "independently. It is not the probability that this verdict is wrong."
        ),
        notes=() if answer is None else (_corrected(answer, other, trials=len(rows)),),
    )


def _decide(
    plan: CriterionPlan, rows: Rows, required: float, alpha: float, *, kindly: bool
) -> tuple[stats.JudgedDecision, stats.JudgedDecision | None]:
    """Return the decision of all corrections of a plan, with one of them that agrees or differs.

    The first is the one that leaves it open, or that needs more: what is missing has to suffice for
    both.

    Args:
        plan: The criterion's, with its judge's errors.
        rows: The trials.
        required: The rate that is asked for.
        alpha: The chance of a decision in the direction that is asked about, where it is wrong.
        kindly: Whether a FAIL is asked about; else a PASS.
    """
    answers = _list_answers(plan, rows, required, alpha, kindly=kindly)
    if len(answers) == 1:
        return answers[0], None
    first, second = answers
    if first.decision is second.decision:
        return (second, first) if _needs(second) > _needs(first) else (first, second)
    # They differ, and what both say is all that holds under the assumptions of either.
    if first.decision is Decision.INCONCLUSIVE:
        return first, second
    return replace(second, decision=Decision.INCONCLUSIVE), first


def _decide_by(
    plan: CriterionPlan,
    outcomes: Sequence[int],
    correction: stats.Correction,
    required: float,
    alpha: float,
) -> stats.JudgedDecision:
    """Decide by one correction; `alpha` is the error in one direction."""
    if not outcomes:
        nothing = stats.Undefined("no reply was judged")
        return stats.JudgedDecision(
            decision=Decision.INCONCLUSIVE,
            required_rate=required,
            corrected=nothing,
            open_because="trials",
            labels_needed=nothing,
            trials_needed=nothing,
            correction=correction,
        )
    # Boxes were decided by two-sided intervals at the same level. The tests ask about one
    # direction, so that the interval with this end has twice the error.
    is_tested = bool(plan.judging.corrected_by)
    return stats.decide_judged(
        sum(outcomes),
        len(outcomes),
        known(plan.judging.errors),
        required,
        confidence=complement(2 * alpha if is_tested else alpha),
        method="exact" if is_tested else "boxes",
        correction=correction,
    )


def _list_answers(
    plan: CriterionPlan, rows: Rows, required: float, alpha: float, *, kindly: bool
) -> list[stats.JudgedDecision]:
    """List what each correction shows of all trials, in the one direction that is asked about."""
    heard, wanted = rows.keep(lambda row: not row.is_unheard), Decision.PASS
    if kindly:
        wanted = Decision.FAIL
    decide = partial(_decide_by, plan, _outcomes(heard, kindly=kindly))
    given = cast("tuple[stats.Correction, ...]", plan.judging.corrected_by)
    corrections = given or judged_decision.CORRECTIONS[:2]
    if len(heard) == len(rows):
        return [decide(one, required, alpha) for one in corrections]
    # Bonferroni: a part of the error for the share of replies, the rest for their rate.
    share = stats.clopper_pearson(len(heard), len(rows), confidence=1 - _OF_SHARE * alpha)
    # The rate is the share of replies times the rate among them: divided, a limit for that.
    limit = required / max(share.high if kindly else share.low, required / 2)

    def tell_of_all(answer: stats.JudgedDecision) -> stats.JudgedDecision:
        # Where not even flawless replies would be enough of all trials, the rate is too low.
        holds = kindly if limit >= 1 else answer.decision is wanted
        needed = answer.trials_needed
        if not isinstance(needed, stats.Undefined):
            # Not every trial gives a reply, so that it takes more of them than of replies.
            needed = math.ceil(needed * Fraction(len(rows), max(1, len(heard))))
        shown = wanted if holds else Decision.INCONCLUSIVE
        return replace(answer, required_rate=required, decision=shown, trials_needed=needed)

    asked, level = limit if limit < 1 else required, (1 - _OF_SHARE) * alpha
    return [tell_of_all(decide(one, asked, level)) for one in corrections]


def _needs(answer: stats.JudgedDecision) -> tuple[bool, float]:
    """Return how much is missing: labels are more than trials, and what nobody can say is most."""
    for_labels = answer.open_because == "labels"
    needed = answer.labels_needed if for_labels else answer.trials_needed
    return for_labels, math.inf if isinstance(needed, stats.Undefined) else needed


def _outcomes(rows: Rows, *, kindly: bool) -> Sequence[int]:
    """Return what the judge said; its silence speaks against whatever is to be concluded."""
    return rows.mark(lambda row: row.passed or (kindly and row.is_unjudged))


def _corrected(
    answer: stats.JudgedDecision, other: stats.JudgedDecision | None, *, trials: int
) -> Note:
    several = [one for one in (answer, other) if one is not None]
    several.sort(key=lambda one: judged_decision.CORRECTIONS.index(one.correction))
    said = []
    for one in several:
        if isinstance(one.corrected, stats.Undefined):
            text = f"The judged rate cannot be corrected: {one.corrected.reason}."
            return Note(kind=NoteKind.CORRECTION, text=text)
        low, high = one.corrected.interval
        said.append(f"{one.corrected.rate:.3f} [{low:.3f}, {high:.3f}] by {_NAMES[one.correction]}")
    assert not isinstance(answer.corrected, stats.Undefined)
    replies = answer.corrected.trials
    whose = "" if replies == trials else f"of the {replies:,} replies "
    text = (
        f"Corrected for the judge's errors on {answer.corrected.confusion.labels} labels the rate "
        f"{whose}is {' and '.join(said)}; judged it is {answer.corrected.judged_rate:.3f}."
    )
    return Note(kind=NoteKind.CORRECTION, text=text)


def _why(answer: stats.JudgedDecision) -> str:
    open_ = f"The judge's own errors leave it open whether {answer.required_rate:g} is met"
    if answer.open_because == "labels" and isinstance(answer.labels_needed, int):
        return f"{open_}: about {answer.labels_needed:,} labels in all would say, trials would not."
    if answer.open_because == "trials" and isinstance(answer.trials_needed, int):
        return f"{open_}: about {answer.trials_needed:,} trials in all would say."
    return f"{open_}."
