"""What is found of two arms beside the pass rate: amounts, scores, costs of success, steadiness.

All of it is described and never decided. The typical difference within pairs is Hodges and
Lehmann's, with an interval by signed ranks. It is exact where differences scatter evenly around
their centre. The median and its interval by order statistics stand beside it: they need no shape,
and are wider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter
from statistics import fmean, median
from typing import TypeAlias

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.model.claim import PopulationClaim
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing import amount_types, findings
from trialwise.procedures.comparing.pairing import Pair, Pairing, pair_trials
from trialwise.stats.binomial import upper_z
from trialwise.stats.bounded_means import betting_mean_interval
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.paired import sign_test
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.signed_ranks import hodges_lehmann, sign_flip_mean
from trialwise.validation import require_open_rate

Reader: TypeAlias = Callable[[Trial], float | None]
"""Reads an amount of a trial; None where it is not known."""


def find_amounts(
    arms: Sequence[findings.ArmRun],
    pairings: Sequence[Pairing],
    paired: Sequence[tuple[str, Pairing]],
    *,
    confidence: float,
) -> amount_types.AmountsFound:
    """Find what trials took, what successes cost, how scores changed and how steady the arms are.

    Args:
        arms: All arms; the first is the control.
        pairings: One for every experiment of every two arms.
        paired: The criteria of every two arms, each with its pairs.
        confidence: The confidence of every interval.
    """
    plan = arms[0].record.plan
    analysis = plan.analysis
    graded = [(name, one) for name, one in paired if _is_graded(one, name)]
    lifted = partial(lift_scores, analysis=analysis, confidence=confidence)
    lifts = [(found, one) for name, one in graded if (found := lifted(one, name))]
    # A population speaks through its inputs: repeats of one are not independent facts about it.
    by_input = plan.claim.population is PopulationClaim.SUPERPOPULATION
    couples: dict[tuple[str, str], list[Pairing]] = {}
    for one in pairings:
        couples.setdefault((one.summary.against, one.summary.arm), []).append(one)
    compare_costs = partial(compare_cost_per_success, by_input=by_input, confidence=confidence)
    ratios = map(compare_costs, couples.values())
    spreads = (
        *(_compare_spread(one, "", analysis, confidence) for one in pairings),
        *(_compare_spread(one, name, analysis, confidence) for name, one in graded),
    )
    flaky = (_compare_flakiness(one, name, analysis) for name, one in paired)
    return amount_types.AmountsFound(
        amounts=(
            *(found for one in pairings for found in _compare_amounts(one, confidence)),
            *(_describe_lift(lift, one) for lift, one in lifts),
        ),
        scores=tuple(lift for lift, _ in lifts),
        costs=tuple(_cost_arms(arms)),
        cost_ratios=tuple(filter(None, ratios)),
        spreads=tuple(filter(None, spreads)),
        flakiness=tuple(filter(None, flaky)),
    )


# --- What trials took -----------------------------------------------------------------------------


def _read_tokens(trial: Trial) -> float | None:
    return None if trial.usage is None else trial.usage.total_tokens


#: What a trial took, without its setup: the name, which pairs are taken, and what is read.
_AMOUNTS: tuple[tuple[str, str, Reader], ...] = (
    # A failure may be as quick as a refusal: its latency would reward the arm that fails.
    (
        "latency_s",
        "pairs in which both passed every criterion",
        lambda trial: trial.latency_s if trial.passed else None,
    ),
    ("cost_usd", "pairs in which both say what they cost", lambda trial: trial.cost_usd),
    ("tokens", "pairs in which both say what they used", _read_tokens),
)


def _compare_amounts(
    pairing: Pairing, confidence: float
) -> Iterator[amount_types.AmountDifference]:
    """Yield what the pairs of an experiment took, amount by amount; none where no pair says."""
    for name, basis, read in _AMOUNTS:
        taken = _read_pairs(pairing.pairs, read)
        if not taken:
            continue
        differences = [subtract_written(candidate, control) for control, candidate in taken]
        shift = hodges_lehmann(differences, confidence=confidence)
        mean = sign_flip_mean(differences, confidence=confidence)
        middle = median_interval(differences, confidence=confidence)
        yield amount_types.AmountDifference(
            name=name,
            **pairing.place,
            pairs=len(taken),
            basis=basis,
            control_mean=fmean(control for control, _ in taken),
            candidate_mean=fmean(candidate for _, candidate in taken),
            difference=shift.estimate,
            interval=_qualify(shift.interval, pairing),
            # A stop that looked at outcomes leaves no exact p-value of anything else, either.
            p_value=shift.p_value if pairing.summary.fixed_size else None,
            mean_interval=_qualify(mean.interval, pairing),
            median_difference=median(differences),
            median_interval=_qualify(middle, pairing),
        )


def _read_pairs(pairs: Sequence[Pair], read: Reader) -> list[tuple[float, float]]:
    """Return an amount of both sides of the pairs in which both are known."""
    read_both = ((read(pair.control), read(pair.candidate)) for pair in pairs)
    return [(one, other) for one, other in read_both if one is not None and other is not None]


def subtract_written(candidate: float, control: float) -> float:
    """Return the difference of two decimals: 0.9 − 0.6 is 0.3, so that equal differences tie.

    >>> subtract_written(0.9, 0.6)
    0.3
    """
    return float(as_written(candidate) - as_written(control))


def _qualify(found: Interval | Undefined | None, pairing: Pairing) -> Interval | None:
    """Return an interval that says so where the runs stopped because of what they saw."""
    if not isinstance(found, Interval):
        return None
    return found if pairing.summary.fixed_size else found.after_early_stop()


def median_interval(values: Sequence[float], *, confidence: float) -> Interval | None:
    """Return an exact confidence interval for a median: two order statistics, as far in as allowed.

    With X ~ Binomial(n, ½), the r-th value from either end bounds the median on its side unless
    X < r, so that r is the largest with P(X < r) ≤ (1 − confidence)/2.

    Args:
        values: Independent of one another.
        confidence: The confidence of the interval, kept at least.

    >>> median_interval(range(1, 11), confidence=0.95)
    Interval(low=2, high=9, confidence=0.95, method='order statistics')
    >>> median_interval([1, 2, 3], confidence=0.95) is None
    True
    """
    # Both ends may be wrong, so that each has half of the error.
    alpha = float((1 - as_written(confidence)) / 2)
    n = len(values)
    cutoff = compliance_cutoff(0.5, n, alpha=alpha, rule="exact").cutoff if n else None
    if cutoff is None:
        return None
    ends = (sorted(values)[place] for place in (n - cutoff, cutoff - 1))
    return Interval(*ends, confidence=confidence, method="order statistics")


# --- Scores ---------------------------------------------------------------------------------------


def measure_lift(
    arms: Sequence[findings.ArmRun], criterion: str, *, confidence: float
) -> amount_types.ScoreLift:
    """Measure how much better the candidate's scores are; a pass counts 1 and a failure 0.

    Args:
        arms: The control, such as an agent without a skill, and the candidate first.
        criterion: Which both have.
        confidence: The confidence of the intervals.

    Raises:
        InvalidArgument: The runs do not both have such a criterion, or no pairs.
    """
    require_open_rate("confidence", confidence)
    control, candidate = arms[:2]
    ours, theirs = (
        {one.criterion: one for one in arm.record.plan.criteria} for arm in (control, candidate)
    )
    if criterion not in ours or criterion not in theirs:
        both = [name for name in ours if name in theirs]
        raise InvalidArgument("criterion", criterion, f"be one of {', '.join(both)}")
    plan = ours[criterion]
    pairing = pair_trials(control, candidate, plan.experiment, theirs[criterion].experiment)
    analysis = control.record.plan.analysis_of(plan)
    found = lift_scores(pairing, criterion, analysis=analysis, confidence=confidence)
    if found is None:
        raise InvalidArgument("criterion", criterion, "have trials that can be paired")
    return found


def lift_scores(
    pairing: Pairing, criterion: str, *, analysis: Analysis, confidence: float
) -> amount_types.ScoreLift | None:
    """Return how much the scores changed within pairs; None where no pair was measured.

    A difference lies between −1 and 1, so that half of it plus ½ is a score: its mean is bounded as
    the mean of scores is, whatever its distribution. Flipping signs bounds it too, more closely,
    where differences scatter evenly around their mean.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that graded the replies.
        analysis: Which trials count.
        confidence: The confidence of the intervals.
    """
    pairs = _read_pairs(
        pairing.list_measured(criterion, analysis), partial(_read_mark, criterion=criterion)
    )
    if not pairs:
        return None
    error = float((1 - as_written(confidence)) / 2)
    differences = [subtract_written(theirs, ours) for ours, theirs in pairs]
    # Bets need no shape and hold for every distribution; flips are closer where theirs is even.
    bounds = betting_mean_interval(
        [(one + 1) / 2 for one in differences], low_error=error, high_error=error
    )
    flips = sign_flip_mean(differences, confidence=confidence)
    # The levels of both were made for a size that nobody chose by looking at the scores.
    if not pairing.summary.fixed_size:
        bounds = bounds.after_early_stop()
    first, second = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return amount_types.ScoreLift(
        criterion=criterion,
        **pairing.arms,
        control=first,
        candidate=second,
        difference=second - first,
        median_difference=median(differences),
        interval=replace(bounds, low=2 * bounds.low - 1, high=2 * bounds.high - 1),
        flip_interval=_qualify(flips.interval, pairing),
        p_value=flips.p_value,
        pairs=len(pairs),
    )


def _describe_lift(lift: amount_types.ScoreLift, pairing: Pairing) -> amount_types.AmountDifference:
    """Return the scores of a criterion as one more amount."""
    return amount_types.AmountDifference(
        name="score",
        criterion=lift.criterion,
        **pairing.place,
        pairs=lift.pairs,
        basis=f"pairs that {lift.criterion} graded",
        control_mean=lift.control,
        candidate_mean=lift.candidate,
        difference=lift.difference,
        interval=lift.interval,
        p_value=lift.p_value if pairing.summary.fixed_size else None,
        mean_interval=lift.flip_interval,
        median_difference=lift.median_difference,
        median_interval=None,
    )


def _is_graded(pairing: Pairing, criterion: str) -> bool:
    """Return whether a reply of either arm has a score of its own."""
    return any(
        trial.outcome(criterion).result.score is not None
        for trial in chain.from_iterable(pairing.pairs)
    )


def _read_mark(trial: Trial, criterion: str) -> float:
    return trial.outcome(criterion).result.mark


# --- What a success costs -------------------------------------------------------------------------

_Totals: TypeAlias = tuple[float, ...]
"""Cost and successes of the control, then of the candidate, in one pair or in several."""
#: With fewer units a jackknife says too little.
_FEWEST = 10


def _cost_arms(arms: Sequence[findings.ArmRun]) -> Iterator[amount_types.ArmCost]:
    """Yield what each arm's successes cost, where every measured trial says what it cost."""
    for arm in arms:
        trials = list(arm.record.trials.sketches())
        measured = [one for one in trials if not one.is_excused]
        # One trial without a price would make its arm look cheap.
        if not measured or any(one.cost_usd is None for one in measured):
            continue
        # What a trial cost that was not measured was paid all the same.
        usd = math.fsum(one.cost_usd or 0.0 for one in trials)
        successes = sum(one.passed for one in trials)
        yield amount_types.ArmCost(
            arm=arm.label,
            trials=len(trials),
            successes=successes,
            usd=usd,
            usd_per_success=usd / successes if successes else None,
            setup_usd=arm.record.verdict.spending.setup_usd,
        )


def compare_cost_per_success(
    pairings: Sequence[Pairing], *, by_input: bool, confidence: float
) -> amount_types.CostRatio | None:
    """Return how many times as much a success costs under one arm as under the other.

    The interval is a jackknife of the logarithm: every unit is left out once, and how much that
    changes the ratio gives its standard error. It is approximate, and only describes.

    Args:
        pairings: The pairs of two arms, of all experiments.
        by_input: Whether inputs are the units, as in a claim about a population; else pairs are.
        confidence: The confidence of the interval.
    """
    units: dict[Hashable, _Totals] = {}
    pairs = 0
    for pairing in pairings:
        for place, pair in enumerate(pairing.pairs):
            ours, theirs = pair
            if ours.cost_usd is None or theirs.cost_usd is None:
                continue
            pairs += 1
            key = (pairing.summary.experiment, ours.input_id if by_input else place)
            mine = (ours.cost_usd, ours.passed, theirs.cost_usd, theirs.passed)
            units[key] = _add(units.get(key, (0.0,) * 4), mine)
    total = tuple(sum(side) for side in zip(*units.values(), strict=True))
    whole = _log_ratio(total)
    if whole is None:
        return None
    found = _jackknife(list(units.values()), total, whole, confidence)
    return amount_types.CostRatio(
        **pairings[0].arms,
        pairs=pairs,
        ratio=math.exp(whole),
        interval=_qualify(found, pairings[0]),
    )


def _add(one: _Totals, other: _Totals, sign: int = 1) -> _Totals:
    return tuple(ours + sign * theirs for ours, theirs in zip(one, other, strict=True))


def _log_ratio(total: _Totals) -> float | None:
    """Return the logarithm of the ratio; None where an arm has no success or costs nothing."""
    if min(total, default=0.0) <= 0:
        return None
    # A ratio of sums: most pairs have no success to divide by.
    return math.log(total[2] / total[3]) - math.log(total[0] / total[1])


def _jackknife(
    units: Sequence[_Totals], total: _Totals, whole: float, confidence: float
) -> Interval | None:
    n = len(units)
    without = [found for one in units if (found := _log_ratio(_add(total, one, -1))) is not None]
    # A ratio that is lost with one unit hangs on that unit alone: its spread is not known.
    if n < _FEWEST or len(without) < n:
        return None
    centre = math.fsum(without) / n
    error = math.sqrt((n - 1) / n * math.fsum((one - centre) ** 2 for one in without))
    reach = upper_z(float((1 - as_written(confidence)) / 2)) * error
    low, high = math.exp(whole - reach), math.exp(whole + reach)
    return Interval(low, high, confidence=confidence, method="jackknife, approximate")


# --- How steady an arm is -------------------------------------------------------------------------


def _compare_spread(
    pairing: Pairing, criterion: str, analysis: Analysis, confidence: float
) -> amount_types.SpreadDifference | None:
    """Return how much the scores of one input scatter; without a criterion, its latencies do.

    Return None where no input was repeated.
    """
    read: Reader
    if criterion:
        pairs = pairing.list_measured(criterion, analysis)
        read = partial(_read_mark, criterion=criterion)
    else:
        pairs = [pair for pair in pairing.pairs if not pair.is_left_out(analysis)]
        read = attrgetter("latency_s")
    # Distances of repeats, and not variances: one wild reply must not decide them.
    distances = list(_measure_distances(pairs, read))
    if not distances:
        return None
    changes = [subtract_written(theirs, ours) for ours, theirs in distances]
    shift = sign_flip_mean(changes, confidence=confidence)
    control, candidate = (math.fsum(side) for side in zip(*distances, strict=True))
    return amount_types.SpreadDifference(
        name="score" if criterion else "latency_s",
        criterion=criterion,
        **pairing.place,
        repeats=len(distances),
        control=control / len(distances),
        candidate=candidate / len(distances),
        difference=shift.mean,
        interval=_qualify(shift.interval, pairing),
        p_value=shift.p_value,
    )


def _measure_distances(pairs: Sequence[Pair], read: Reader) -> Iterator[tuple[float, float]]:
    """Yield how far two repeats of an input lie apart under the control and the candidate."""
    for repeats in _group_inputs(pairs):
        # Every repeat is used once, so that the distances are independent.
        for one, other in list(pairwise(_read_pairs(repeats, read)))[::2]:
            ours, theirs = map(subtract_written, one, other)
            yield abs(ours), abs(theirs)


def _compare_flakiness(
    pairing: Pairing, criterion: str, analysis: Analysis
) -> amount_types.FlakinessDifference | None:
    """Return on how many inputs each arm both passed and failed; None without repeated inputs."""
    inputs = _group_inputs(pairing.list_measured(criterion, analysis))
    repeated = [pairs for pairs in inputs if len(pairs) > 1]
    if not repeated:
        return None

    def is_flaky(trials: Sequence[Trial]) -> bool:
        return len({trial.outcome(criterion).passed for trial in trials}) > 1

    flaky = [tuple(map(is_flaky, zip(*pairs, strict=True))) for pairs in repeated]
    # Inputs that are flaky under both arms, or under none, do not tell the arms apart: the same
    # argument as McNemar's (1947) for pairs that agree.
    only_control, only_candidate = flaky.count((True, False)), flaky.count((False, True))
    both = flaky.count((True, True))
    return amount_types.FlakinessDifference(
        criterion=criterion,
        **pairing.arms,
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
