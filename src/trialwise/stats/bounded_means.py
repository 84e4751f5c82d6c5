"""Intervals for numbers between 0 and 1 of any distribution, valid at every sample size.

For what is no proportion of independent trials with one rate: scores, means over inputs, spreads.
They are wide where there is little to go by. A bootstrap of so few values would be short and
wrong: five equal runs would have a variance of exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.bisection import find_end
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_count, require_open_rate, require_positive, require_rate


def bounded_mean_interval(
    mean: float, count: SupportsIndex, *, confidence: float = 0.95
) -> Interval:
    """The interval for the expected mean of independent values in [0, 1].

    The m with kl(mean, m) ≤ ln(2/α)/count, kl the divergence between two coins (Hoeffding 1963,
    theorem 1). The values need not be alike: it is then about the mean of their expectations. A
    U-statistic of order k of n trials counts as ⌊n/k⌋ values (section 5 there), since it is a mean
    over orders of the trials of such means.

    Parameters
    ----------
    mean : float
        The observed mean, between 0 and 1.
    count : int
        How many values, at least 1.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = bounded_mean_interval(0.7, 5)
    >>> round(low, 3), round(high, 3)
    (0.157, 0.989)
    """
    centre = require_rate("mean", mean)
    budget = _log_of(confidence) / require_count("count", count, minimum=1)
    return Interval(
        1 - _furthest(1 - centre, budget),
        _furthest(centre, budget),
        confidence=confidence,
        method="bounded mean",
    )


def weighted_mean_interval(
    mean: float, weights: Sequence[float], *, confidence: float = 0.95
) -> Interval:
    """The interval for the expected weighted mean of independent values in [0, 1].

    mean ± √(ln(2/α) Σw² / 2) with the weights' sum set to 1, cut at 0 and 1 (Hoeffding 1963,
    theorem 2).

    Parameters
    ----------
    mean : float
        The observed weighted mean, between 0 and 1.
    weights : sequence of float
        Of each value, above 0.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = weighted_mean_interval(0.6, range(1, 101))
    >>> round(low, 3), round(high, 3)
    (0.444, 0.756)
    """
    centre = require_rate("mean", mean)
    given = [require_positive("weights", weight) for weight in weights]
    if not given:
        raise InvalidArgument("weights", weights, "hold at least one")
    total = math.fsum(given)
    share = math.fsum((weight / total) ** 2 for weight in given)
    half = math.sqrt(_log_of(confidence) * share / 2)
    return Interval(
        max(0.0, centre - half),
        min(1.0, centre + half),
        confidence=confidence,
        method="weighted bounded mean",
    )


def bounded_variance_interval(
    values: Sequence[float], *, confidence: float = 0.95
) -> Interval | Undefined:
    """The interval for the variance that independent values in [0, 1] come from.

    The standard deviation is within √(2 ln(2/α)/(n−1)) of the sample's (Maurer & Pontil 2009,
    theorem 10); cut at 0 and at 1/4, the largest variance there is.

    Parameters
    ----------
    values : sequence of float
        Between 0 and 1; fewer than two have no spread.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = bounded_variance_interval([0.2, 0.4] * 200)
    >>> low, round(high, 4)
    (0.0, 0.0557)
    """
    given = [require_rate("values", value) for value in values]
    budget = _log_of(confidence)
    if len(given) < 2:
        return Undefined("a variance needs at least two values")
    mean = math.fsum(given) / len(given)
    freedom = len(given) - 1
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / freedom)
    half = math.sqrt(2 * budget / freedom)
    return Interval(
        max(0.0, spread - half) ** 2,
        min(0.25, (spread + half) ** 2),
        confidence=confidence,
        method="bounded variance",
    )


def _log_of(confidence: float) -> float:
    return math.log(2 / (1 - require_open_rate("confidence", confidence)))


def _furthest(mean: float, budget: float) -> float:
    """The largest m ≥ mean with kl(mean, m) ≤ budget, by bisection, rounded outward."""
    return find_end(mean, 1.0, lambda m: _kl(mean, m) <= budget)


def _kl(a: float, b: float) -> float:
    """The divergence of a coin of rate a from one of rate b, for a < b < 1."""
    heads = a * math.log(a / b) if a > 0 else 0.0
    return heads + (1 - a) * math.log((1 - a) / (1 - b))
