"""How sure a gate's number is: an interval of what it estimates, or why there is none.

Valid at any number of runs, and therefore wide at few. They decide nothing: a gate that passes
with an interval far below its limit says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from trialwise.procedures.metrics import Reach, mean_interval
from trialwise.stats.bounded_means import bounded_variance_interval, weighted_mean_interval
from trialwise.stats.intervals import clopper_pearson
from trialwise.stats.values import Interval, Undefined

__all__ = [
    "COUNTED",
    "early",
    "percent",
    "position_weighted_interval",
    "spread_interval",
    "variance_interval",
]

COUNTED = Undefined("it is a count of these runs and estimates nothing")


def early(found: Interval | Undefined) -> Interval | Undefined:
    """The interval of runs that are not all that were planned."""
    if isinstance(found, Undefined):
        return found
    return replace(found, method=f"{found.method}, descriptive after stopping early")


def percent(found: Interval | Undefined) -> Interval | Undefined:
    """The same, of a hundred."""
    if isinstance(found, Undefined):
        return found
    return replace(found, low=100 * found.low, high=100 * found.high)


def spread_interval(
    outcomes: Sequence[Sequence[bool]], mean: float, *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """Of 2√(p(1−p)), as a mean over inputs.

    The exact interval of each input's rate, mapped; each at its share of the error.

    Args:
        outcomes: Of each input's runs.
        mean: What was observed, from 0 to 1.
        confidence: Of the whole.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        return mean_interval(mean, len(outcomes), 1, confidence=confidence, reach=reach)
    each = 1 - (1 - confidence) / len(outcomes)
    parts = [_spread(clopper_pearson(sum(mine), len(mine), confidence=each)) for mine in outcomes]
    return _averaged(parts, confidence, "spread of clopper-pearson")


def position_weighted_interval(
    lengths: Sequence[int], mean: float, *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """Of the mean of rates in which run i of an input counts i times.

    Args:
        lengths: Runs of each input.
        mean: What was observed, from 0 to 1.
        confidence: Of the interval.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        return mean_interval(mean, len(lengths), 1, confidence=confidence, reach=reach)
    weights = [2 * place / (runs * (runs + 1)) for runs in lengths for place in range(1, runs + 1)]
    return weighted_mean_interval(mean, weights, confidence=confidence)


def variance_interval(
    scores: Sequence[Sequence[float]], mean: float, *, confidence: float, reach: Reach
) -> Interval | Undefined:
    """Of the variance between runs of one input, as a mean over inputs.

    Args:
        scores: Of each input's runs.
        mean: What was observed.
        confidence: Of the whole.
        reach: What it is about.
    """
    if reach is not Reach.INPUTS:
        # At most a quarter, so that four times it fills the range that the bound is about.
        found = mean_interval(4 * mean, len(scores), 1, confidence=confidence, reach=reach)
        if isinstance(found, Undefined):
            return found
        return replace(found, low=found.low / 4, high=found.high / 4)
    each = 1 - (1 - confidence) / len(scores)
    parts: list[Interval] = []
    for mine in scores:
        part = bounded_variance_interval(mine, confidence=each)
        if isinstance(part, Undefined):
            return part
        parts.append(part)
    return _averaged(parts, confidence, "bounded variance")


def _spread(rate: Interval) -> tuple[float, float]:
    ends = [2 * math.sqrt(end * (1 - end)) for end in rate]
    return min(ends), 1.0 if 0.5 in rate else max(ends)


def _averaged(
    parts: Sequence[tuple[float, float] | Interval], confidence: float, method: str
) -> Interval:
    lows, highs = zip(*parts, strict=True)
    several = ", each input at its share" if len(parts) > 1 else ""
    return Interval(
        math.fsum(lows) / len(parts),
        math.fsum(highs) / len(parts),
        confidence=confidence,
        method=f"{method}{several}",
    )
