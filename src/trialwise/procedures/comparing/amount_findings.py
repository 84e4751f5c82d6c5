"""Compares latency, cost, tokens, scores and steadiness of the arms, beside their pass rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise
from math import fsum

from trialwise.decimals import as_written
from trialwise.model.claim import PopulationClaim
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.amount_differences import (
    compare_amounts,
    describe_lift,
    qualify_interval,
    subtract_written,
)
from trialwise.procedures.comparing.amount_types import (
    AmountsFound,
    ArmCost,
    CostRatio,
    FlakinessDifference,
    SpreadDifference,
)
from trialwise.procedures.comparing.change_assessment import Assessed, collect_pairings
from trialwise.procedures.comparing.comparison_findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparing.score_lift import is_graded, lift_scores
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing
from trialwise.stats.normal import upper_z
from trialwise.stats.paired import sign_test
from trialwise.stats.result_types import Interval
from trialwise.stats.sign_flips import sign_flip_mean


def compare_latency_spread(
    pairing: Pairing, *, analysis: Analysis, confidence: float
) -> SpreadDifference | None:
    """Return how much latencies of one input scatter; None where no input was repeated.

    Args:
        pairing: The pairs of two arms.
        analysis: Which trials count.
        confidence: The confidence of the interval.
    """
    pairs = [pair for pair in pairing.pairs if not pair.is_left_out(analysis)]
    return _compare_spread(
        pairing, pairs, lambda one: one.latency_s, name="latency_s", confidence=confidence
    )


def compare_score_spread(
    pairing: Pairing, criterion: str, *, analysis: Analysis, confidence: float
) -> SpreadDifference | None:
    """Return how much the scores of one input scatter; None where no input was repeated.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that graded the replies.
        analysis: Which trials count.
        confidence: The confidence of the interval.
    """
    pairs = pairing.list_measured(criterion, analysis)

    def read(trial: Trial) -> float:
        return trial.outcome(criterion).result.mark

    return _compare_spread(
        pairing, pairs, read, name="score", criterion=criterion, confidence=confidence
    )


def compare_flakiness(
    pairing: Pairing, criterion: str, *, analysis: Analysis
) -> FlakinessDifference | None:
    """Return on how many inputs each arm both passed and failed; None without repeated inputs.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that passed or failed.
        analysis: Which trials count.
    """
    repeated = [
        pairs
        for pairs in _group_inputs(pairing.list_measured(criterion, analysis))
        if len(pairs) > 1
    ]
    if not repeated:
        return None
    flaky = [
        (
            _is_flaky([pair.control for pair in pairs], criterion),
            _is_flaky([pair.candidate for pair in pairs], criterion),
        )
        for pairs in repeated
    ]
    only_control, only_candidate = flaky.count((True, False)), flaky.count((False, True))
    both = flaky.count((True, True))
    return FlakinessDifference(
        criterion=criterion,
        arm=pairing.summary.arm,
        against=pairing.summary.against,
        inputs=len(repeated),
        control=both + only_control,
        candidate=both + only_candidate,
        only_control=only_control,
        only_candidate=only_candidate,
        p_value=sign_test(only_control, only_candidate).p_value,
    )


def _group_inputs(pairs: Sequence[Pair]) -> list[list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.control.input_id, []).append(pair)
    return list(found.values())


def _is_flaky(trials: Sequence[Trial], criterion: str) -> bool:
    return len({trial.outcome(criterion).passed for trial in trials}) > 1


def _compare_spread(
    pairing: Pairing,
    pairs: Sequence[Pair],
    read: Callable[[Trial], float | None],
    *,
    name: str,
    criterion: str = "",
    confidence: float,
) -> SpreadDifference | None:
    distances = list(_measure_distances(pairs, read))
    if not distances:
        return None
    shift = sign_flip_mean(
        [subtract_written(theirs, ours) for ours, theirs in distances], confidence=confidence
    )
    summary = pairing.summary
    return SpreadDifference(
        name=name,
        criterion=criterion,
        arm=summary.arm,
        against=summary.against,
        experiment=summary.experiment,
        repeats=len(distances),
        control=fsum(ours for ours, _ in distances) / len(distances),
        candidate=fsum(theirs for _, theirs in distances) / len(distances),
        difference=shift.mean,
        interval=qualify_interval(shift.interval, pairing),
        p_value=shift.p_value,
    )


def _measure_distances(
    pairs: Sequence[Pair], read: Callable[[Trial], float | None]
) -> Iterator[tuple[float, float]]:
    """Yield how far two repeats of an input lie apart under the control and the candidate."""
    for repeats in _group_inputs(pairs):
        known = [
            (ours, theirs)
            for pair in repeats
            if (ours := read(pair.control)) is not None
            and (theirs := read(pair.candidate)) is not None
        ]
        # Every repeat is used once, so that the distances are independent.
        for one, other in list(pairwise(known))[::2]:
            yield (
                abs(subtract_written(one[0], other[0])),
                abs(subtract_written(one[1], other[1])),
            )


#: Cost and success of the control, then of the candidate, in one pair or in several.
Totals = tuple[float, int, float, int]
#: With fewer units a jackknife says too little.
_FEWEST = 10


def cost_arms(arms: Sequence[ArmRun]) -> Iterator[ArmCost]:
    """Yield what each arm's successes cost, where every measured trial says what it cost.

    Args:
        arms: All arms of the comparison.
    """
    for arm in arms:
        trials = list(arm.record.trials.sketches())
        costs = [one.cost_usd for one in trials if not one.is_excused]
        known = [one for one in costs if one is not None]
        if not costs or len(known) < len(costs):
            continue
        # What a trial cost that was not measured was paid all the same.
        usd = math.fsum(one.cost_usd or 0.0 for one in trials)
        successes = sum(one.passed for one in trials)
        yield ArmCost(
            arm=arm.label,
            trials=len(trials),
            successes=successes,
            usd=usd,
            usd_per_success=usd / successes if successes else None,
            setup_usd=arm.record.verdict.spending.setup_usd,
        )


def compare_cost_per_success(
    pairings: Sequence[Pairing], *, by_input: bool, confidence: float
) -> CostRatio | None:
    """Return how many times as much a success costs under one arm as under the other.

    The interval is a jackknife of the logarithm: every unit is left out once, and how much that
    changes the ratio gives its standard error. It is approximate, and only describes.

    Args:
        pairings: The pairs of two arms, of all experiments.
        by_input: Whether inputs are the units, as in a claim about a population; else pairs are.
        confidence: The confidence of the interval.
    """
    units: dict[Hashable, Totals] = {}
    pairs = 0
    for pairing in pairings:
        for place, pair in enumerate(pairing.pairs):
            ours, theirs = pair.control.cost_usd, pair.candidate.cost_usd
            if ours is None or theirs is None:
                continue
            pairs += 1
            key = (pairing.summary.experiment, pair.control.input_id if by_input else place)
            mine = (ours, int(pair.control.passed), theirs, int(pair.candidate.passed))
            units[key] = _add(units.get(key, (0.0, 0, 0.0, 0)), mine)
    total = (0.0, 0, 0.0, 0)
    for one in units.values():
        total = _add(total, one)
    whole = _log_ratio(total)
    if whole is None:
        return None
    found = _jackknife(list(units.values()), total, whole, confidence)
    return CostRatio(
        arm=pairings[0].summary.arm,
        against=pairings[0].summary.against,
        pairs=pairs,
        ratio=math.exp(whole),
        interval=qualify_interval(found, pairings[0]),
    )


def _add(one: Totals, other: Totals, sign: int = 1) -> Totals:
    return (
        one[0] + sign * other[0],
        one[1] + sign * other[1],
        one[2] + sign * other[2],
        one[3] + sign * other[3],
    )


def _log_ratio(total: Totals) -> float | None:
    """Return the logarithm of the ratio; None where an arm has no success or costs nothing."""
    if min(total) <= 0:
        return None
    return math.log(total[2] / total[3]) - math.log(total[0] / total[1])


def _jackknife(
    units: Sequence[Totals], total: Totals, whole: float, confidence: float
) -> Interval | None:
    n = len(units)
    without = [found for one in units if (found := _log_ratio(_add(total, one, -1))) is not None]
    if n < _FEWEST or len(without) < n:
        return None
    centre = math.fsum(without) / n
    error = math.sqrt((n - 1) / n * math.fsum((one - centre) ** 2 for one in without))
    reach = upper_z(float((1 - as_written(confidence)) / 2)) * error
    return Interval(
        math.exp(whole - reach),
        math.exp(whole + reach),
        confidence=confidence,
        method="jackknife, approximate",
    )


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
