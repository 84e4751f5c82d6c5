"""What is concluded of one criterion under two arms, beside all other tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.answer_sentences import list_still_possible
from trialwise.procedures.comparing.change_assessment import Assessed
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonFinding,
    ComparisonQuestion,
    Contrast,
    Evidence,
)
from trialwise.stats.multiplicity import Correction
from trialwise.stats.paired import minimum_discordant


def conclude_criterion(
    assessed: Assessed, question: ComparisonQuestion, *, adjusted: float | None, fewest: int
) -> ComparisonFinding:
    """Return the finding, once the p-values of all criteria were adjusted together.

    Args:
        assessed: The criterion's evidence.
        question: How surely the two are to be told apart.
        adjusted: Its p-value among those of the other criteria; None where nothing was tested.
        fewest: With fewer discordant pairs nothing could be told apart.
    """
    found = assessed.evidence
    asked, margin = question.of_criterion(assessed.criterion)
    contrast = _contrast(found, adjusted, question, margin)
    return ComparisonFinding(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        criterion=assessed.criterion,
        arm=assessed.arm,
        against=assessed.against,
        question=asked,
        margin=margin,
        experiment=assessed.experiment,
        contrast=contrast,
        decision=_decide(assessed, adjusted, question),
        adjusted_p_value=adjusted,
        obstacle=assessed.obstacle,
        statement=_state_finding(assessed, contrast, fewest),
        caveats=(
            *(f"Advisory: {reason}." for reason in assessed.advisory),
            *assessed.caveats,
            *_disagreement(assessed, contrast, margin),
            *_untested_margin(assessed, margin),
        ),
        advisory=assessed.advisory,
    )


def fewest_discordant(alpha: float, correction: Correction, criteria: int) -> int:
    """Return the fewest discordant pairs with which any of several criteria could be told apart.

    >>> fewest_discordant(0.05, "holm", 1), fewest_discordant(0.05, "holm", 3)
    (6, 7)
    """
    match correction:
        case "holm" | "bonferroni":
            level = alpha / max(1, criteria)
        case "by":
            level = alpha / sum(1 / k for k in range(1, max(1, criteria) + 1))
        case "none" | "bh":
            level = alpha
    return minimum_discordant(level)


def _contrast(
    found: Evidence, adjusted: float | None, question: ComparisonQuestion, margin: float
) -> Contrast:
    """Return whether a difference from 0 is shown, beyond what was asked."""
    if adjusted is None or adjusted > question.alpha:
        return Contrast.NOT_TOLD_APART
    if margin and found.decision_rule in _KNOW_MARGINS:
        # The test is about the margin; where the difference lies, its exact interval says.
        low, high = found.interval or (0.0, 0.0)
        if low <= 0 <= high:
            return Contrast.NOT_TOLD_APART
        return Contrast.BETTER if low > 0 else Contrast.WORSE
    return Contrast.BETTER if found.favours_candidate else Contrast.WORSE


#: Tests that are about the margin of the question, and not about a difference from 0.
_KNOW_MARGINS = (
    "paired/margin-exact",
    "paired/sequential",
    "preference/sign",
    "unpaired/margin-exact",
)


def _decide(assessed: Assessed, adjusted: float | None, question: ComparisonQuestion) -> Decision:
    """Return the answer to the question that was asked of a criterion."""
    answer = assessed.evidence.favours_pass
    if adjusted is None or adjusted > question.alpha or answer is None:
        return Decision.INCONCLUSIVE
    return Decision.PASS if answer else Decision.FAIL


def _state_finding(assessed: Assessed, contrast: Contrast, fewest: int) -> str:
    found, arm = assessed.evidence, assessed.arm
    if assessed.obstacle:
        return f"Cannot be compared: {assessed.obstacle}."
    head = "Not told apart" if contrast is Contrast.NOT_TOLD_APART else f"{arm} is {contrast}"
    parts = [f"{head}: {_count(found, assessed)}."]
    if contrast is Contrast.NOT_TOLD_APART:
        parts += list_still_possible(found, fewest)
    return " ".join(parts)


def _count(found: Evidence, assessed: Assessed) -> str:
    if found.inputs_won is not None and found.inputs_lost is not None:
        decided = found.inputs_won + found.inputs_lost
        return (
            f"of {decided} inputs that one of the two passed more often, it won {found.inputs_won}"
        )
    if found.pairs is None:
        ours, theirs = found.control, found.candidate
        assert ours is not None
        assert theirs is not None
        return (
            f"{theirs.passed} of {theirs.trials} passed with {assessed.arm}, "
            f"{ours.passed} of {ours.trials} with {assessed.against}"
        )
    decided, won = found.pairs.discordant, found.pairs.only_b
    if (found.decision_rule or "").startswith("preference/"):
        return (
            f"of {decided} pairs in which the judge preferred a reply, it preferred {assessed.arm} "
            f"in {won} and {assessed.against} in {decided - won}"
        )
    if not decided:
        return f"both passed or both failed in each of {found.pairs.pairs} pairs"
    return (
        f"of {decided} pairs in which exactly one passed, {assessed.arm} won {won} and lost "
        f"{decided - won}"
    )


def _untested_margin(assessed: Assessed, margin: float) -> Iterator[str]:
    if margin and assessed.p_value is not None:
        rule = assessed.evidence.decision_rule
        if rule not in _KNOW_MARGINS:
            yield (
                "No exact test of a margin exists for such runs: only a difference from 0 is "
                "tested, and decides where that answers the question."
            )


def _disagreement(assessed: Assessed, contrast: Contrast, margin: float) -> Iterator[str]:
    """Yield why an interval and a test disagree about 0; the test decides."""
    found = assessed.evidence
    if found.interval is None or assessed.p_value is None or margin:
        return
    told = contrast is not Contrast.NOT_TOLD_APART
    if told is (0.0 not in found.interval):
        return
    if told and found.interval.method.startswith("exact"):
        yield (
            "The interval is that of this test alone at its share of the level. Beside the other "
            "tests, of which some show a difference, the level left for this one is larger."
        )
    elif told:
        yield "The interval reaches 0, but it is approximate: the exact test decides."
    elif found.interval.method.startswith("exact"):
        yield (
            "The interval of this test alone leaves out 0; corrected for the other tests, no "
            "difference is shown."
        )
    else:
        yield (
            "The interval of this criterion alone leaves out 0, but it is approximate and not "
            "adjusted for the other criteria: the test decides."
        )
