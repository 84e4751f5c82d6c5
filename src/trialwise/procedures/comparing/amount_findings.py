"""Compares latency, cost, tokens, scores and steadiness of the arms, beside their pass rates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.model.claim import PopulationClaim
from trialwise.procedures.comparing.amount_differences import compare_amounts, describe_lift
from trialwise.procedures.comparing.amount_types import (
    AmountsFound,
    CostRatio,
    FlakinessDifference,
    SpreadDifference,
)
from trialwise.procedures.comparing.arm_costs import compare_cost_per_success, cost_arms
from trialwise.procedures.comparing.change_assessment import Assessed, collect_pairings
from trialwise.procedures.comparing.comparison_findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparing.repeat_spread import (
    compare_flakiness,
    compare_latency_spread,
    compare_score_spread,
)
from trialwise.procedures.comparing.score_lift import is_graded, lift_scores
from trialwise.procedures.comparing.trial_pairing import Pairing


def find_amounts(
    arms: Sequence[ArmRun], assessed: Sequence[Assessed], question: ComparisonQuestion
) -> AmountsFound:
    """Find what trials took, what successes cost, how scores changed and how steady the arms are.

    Args:
        arms: All arms; the first is the control.
        assessed: The criteria of every two arms that are compared.
        question: Its confidence is that of every interval.
    """
    plan, confidence = arms[0].record.plan, question.confidence
    pairings = collect_pairings(assessed)
    taken = [one for each in pairings for one in compare_amounts(each, confidence=confidence)]
    lifts = [
        (found, each)
        for name, each in _list_graded(assessed)
        if (found := lift_scores(each, name, analysis=plan.analysis, confidence=confidence))
    ]
    by_input = plan.claim.population is PopulationClaim.SUPERPOPULATION
    return AmountsFound(
        amounts=(*taken, *(describe_lift(lift, pairing) for lift, pairing in lifts)),
        scores=tuple(lift for lift, _ in lifts),
        costs=tuple(cost_arms(arms)),
        cost_ratios=tuple(_compare_costs(pairings, by_input=by_input, confidence=confidence)),
        spreads=tuple(_compare_spreads(arms, assessed, confidence)),
        flakiness=tuple(_compare_flakiness(arms, assessed)),
    )


def _list_graded(assessed: Sequence[Assessed]) -> Iterator[tuple[str, Pairing]]:
    for one in assessed:
        if one.pairing is not None and is_graded(one.pairing, one.criterion):
            yield one.criterion, one.pairing


def _compare_costs(
    pairings: Sequence[Pairing], *, by_input: bool, confidence: float
) -> Iterator[CostRatio]:
    couples: dict[tuple[str, str], list[Pairing]] = {}
    for one in pairings:
        couples.setdefault((one.summary.against, one.summary.arm), []).append(one)
    for mine in couples.values():
        found = compare_cost_per_success(mine, by_input=by_input, confidence=confidence)
        if found is not None:
            yield found


def _compare_spreads(
    arms: Sequence[ArmRun], assessed: Sequence[Assessed], confidence: float
) -> Iterator[SpreadDifference]:
    analysis = arms[0].record.plan.analysis
    latencies = (
        compare_latency_spread(one, analysis=analysis, confidence=confidence)
        for one in collect_pairings(assessed)
    )
    scores = (
        compare_score_spread(one, name, analysis=analysis, confidence=confidence)
        for name, one in _list_graded(assessed)
    )
    yield from filter(None, (*latencies, *scores))


def _compare_flakiness(
    arms: Sequence[ArmRun], assessed: Sequence[Assessed]
) -> Iterator[FlakinessDifference]:
    analysis = arms[0].record.plan.analysis
    found = (
        compare_flakiness(one.pairing, one.criterion, analysis=analysis)
        for one in assessed
        if one.pairing is not None
    )
    yield from filter(None, found)
