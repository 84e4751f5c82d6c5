"""What the evidence of one criterion concludes, beside that of the others, and in which words."""

from __future__ import annotations

from collections.abc import Iterator

from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.change_assessment import Assessed
from trialwise.procedures.comparing.comparison_evidence import Evidence
from trialwise.procedures.comparing.comparison_findings import (
    ComparisonFinding,
    ComparisonQuestion,
    Contrast,
)
from trialwise.stats.multiplicity import Correction
from trialwise.stats.paired import minimum_discordant

__all__ = ["concluded", "fewest_discordant"]


def concluded(
    assessed: Assessed,
    question: ComparisonQuestion,
    *,
    adjusted: float | None,
    fewest: int,
    labels: tuple[str, str],
) -> ComparisonFinding:
    """The finding, once the p-values of all criteria were adjusted together.

    Args:
        assessed: The criterion's evidence.
        question: How surely the two are to be told apart.
        adjusted: Its p-value among those of the other criteria; None where nothing was tested.
        fewest: With fewer discordant pairs nothing could be told apart.
        labels: Of the reference and the candidate.
    """
    found = assessed.evidence
    contrast = _contrast(found, adjusted, question)
    return ComparisonFinding(
        criterion=assessed.criterion,
        experiment=assessed.experiment,
        contrast=contrast,
        decision=_decision(contrast, assessed, question),
        decision_rule=found.rule,
        reference=found.reference,
        candidate=found.candidate,
        pairs=found.pairs,
        inputs_won=found.inputs_won,
        inputs_lost=found.inputs_lost,
        p_value=found.p_value,
        adjusted_p_value=adjusted,
        difference=found.difference,
        interval=found.interval,
        margin_bound=found.margin_bound,
        statement=_statement(assessed, contrast, question, fewest, labels),
        caveats=(
            *(f"Advisory: {reason}." for reason in assessed.advisory),
            *assessed.caveats,
            *_disagreement(assessed, contrast),
        ),
        advisory=assessed.advisory,
    )


def fewest_discordant(alpha: float, correction: Correction, criteria: int) -> int:
    """The fewest discordant pairs with which any of several criteria could be told apart.

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


def _contrast(found: Evidence, adjusted: float | None, question: ComparisonQuestion) -> Contrast:
    if adjusted is None or adjusted > question.alpha:
        return Contrast.NOT_TOLD_APART
    return Contrast.BETTER if found.favours_candidate else Contrast.WORSE


def _decision(contrast: Contrast, assessed: Assessed, question: ComparisonQuestion) -> Decision:
    if contrast is Contrast.BETTER or _is_noninferior(assessed, question):
        return Decision.PASS
    return Decision.FAIL if contrast is Contrast.WORSE else Decision.INCONCLUSIVE


def _is_noninferior(assessed: Assessed, question: ComparisonQuestion) -> bool:
    found = assessed.evidence
    if assessed.obstacle or found.margin_bound is None or question.margin is None:
        return False
    return found.margin_bound > -question.margin


def _statement(
    assessed: Assessed,
    contrast: Contrast,
    question: ComparisonQuestion,
    fewest: int,
    labels: tuple[str, str],
) -> str:
    found = assessed.evidence
    if assessed.obstacle:
        return f"Not told apart: {assessed.obstacle}."
    head = "Not told apart" if contrast is Contrast.NOT_TOLD_APART else f"{labels[1]} is {contrast}"
    parts = [f"{head}: {_counts(found, labels)}."]
    if contrast is Contrast.NOT_TOLD_APART:
        parts += _still_possible(found, fewest)
    if contrast is not Contrast.BETTER and found.margin_bound is not None:
        parts.append(_margin_words(found.margin_bound, question, assessed))
    return " ".join(parts)


def _counts(found: Evidence, labels: tuple[str, str]) -> str:
    if found.inputs_won is not None and found.inputs_lost is not None:
        decided = found.inputs_won + found.inputs_lost
        return (
            f"of {decided} inputs that one of the two passed more often, it won {found.inputs_won}"
        )
    if found.pairs is None:
        ours, theirs = found.reference, found.candidate
        assert ours is not None
        assert theirs is not None
        return (
            f"{theirs.passed} of {theirs.trials} passed with {labels[1]}, "
            f"{ours.passed} of {ours.trials} with {labels[0]}"
        )
    decided, won = found.pairs.discordant, found.pairs.only_b
    if not decided:
        return f"both passed or both failed in each of {found.pairs.pairs} pairs"
    return (
        f"of {decided} pairs in which exactly one passed, {labels[1]} won {won} and lost "
        f"{decided - won}"
    )


def _still_possible(found: Evidence, fewest: int) -> Iterator[str]:
    discordant = found.discordant
    if discordant is not None and discordant < fewest:
        yield (
            f"Not even winning all {discordant} of them could have told the two apart: that takes "
            f"at least {fewest}."
            if discordant
            else f"It takes at least {fewest} pairs that differ to tell the two apart."
        )
    if found.interval is not None:
        low, high = found.interval
        yield f"A difference from {_points(low)} to {_points(high)} points is not ruled out."


def _margin_words(bound: float, question: ComparisonQuestion, assessed: Assessed) -> str:
    assert question.margin is not None
    margin = f"{100 * question.margin:g} points"
    if _is_noninferior(assessed, question):
        return f"It loses less than the margin of {margin} (at worst {_points(bound)} points)."
    return (
        f"That it loses less than the margin of {margin} is not shown (it may be as low as "
        f"{_points(bound)} points)."
    )


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-", "−")


def _disagreement(assessed: Assessed, contrast: Contrast) -> Iterator[str]:
    """An interval and a test may disagree; then only the test decides."""
    found = assessed.evidence
    if found.interval is None or assessed.p_value is None:
        return
    told = contrast is not Contrast.NOT_TOLD_APART
    if told is (0.0 not in found.interval):
        return
    if told:
        yield "The interval reaches 0, but it is approximate: the exact test decides."
    else:
        yield (
            "The interval of this criterion alone leaves out 0, but it is approximate and not "
            "adjusted for the other criteria: the test decides."
        )
