"""What a success costs under each arm: the cost of all trials over the trials that passed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

from trialwise.decimals import as_written
from trialwise.procedures.comparing.amount_differences import qualify_interval
from trialwise.procedures.comparing.amount_types import ArmCost, CostRatio
from trialwise.procedures.comparing.comparison_findings import ArmRun
from trialwise.procedures.comparing.trial_pairing import Pairing
from trialwise.stats.normal import upper_z
from trialwise.stats.result_types import Interval

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
