"""Percentiles of the latencies of successful trials, and when they may be shown (§12.2, §12.5.2).

Everything about latency here is conditional on success and free of any assumed distribution: a
percentile is an observed order statistic, never an interpolation, and the mean stands beside it
for reading only. A percentile from too few trials is the extreme of the sample under another
name, so below the emission minimum it is undefined rather than shown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from trialwise.decimals import ceil_product
from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_number, require_rate

#: Fewest successful trials at which each percentile is not merely an extreme of the sample. For
#: p50 the arithmetic asks for 3 only; 5, two values on either side, is the companion's policy.
_EMISSION_MINIMUMS = {0.5: 5, 0.9: 10, 0.95: 20, 0.99: 100}

SUPPORTED_PERCENTILES: tuple[float, ...] = tuple(_EMISSION_MINIMUMS)
"""The levels a latency criterion may assert: further out, one run says too little (§12.5.2.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """What is reported of the latencies of successful trials.

    There is no standard deviation on purpose: it does not describe a heavy tail (§12.2.3).
    """

    trials: int
    mean: float
    maximum: float
    p50: float | Undefined
    p90: float | Undefined
    p95: float | Undefined
    p99: float | Undefined


def nearest_rank_percentile(latencies: Iterable[float], percentile: float) -> float:
    """The ⌈p·n⌉-th smallest latency: an observed value, never an interpolated one (§12.2.2).

    The product is taken in decimals: the 7th percentile of 100 latencies is the 7th smallest,
    where doubles make 0.07 · 100 a little more than 7 and its ceiling 8.

    Parameters
    ----------
    latencies : iterable of float
        At least one, finite, not negative; in any order and any unit.
    percentile : float
        The level p as a fraction, 0 < p ≤ 1; p = 1 is the maximum.

    Examples
    --------
    >>> nearest_rank_percentile([120, 450, 135, 150], 0.5)
    135.0
    """
    values = check_latencies("latencies", latencies)
    p = require_rate("percentile", percentile)
    if p == 0:
        raise InvalidArgument("percentile", percentile, "lie above 0, up to and including 1")
    return nearest_rank(values, p)


def latency_summary(latencies: Iterable[float]) -> LatencySummary:
    """Mean, maximum and the percentiles that the number of latencies supports (§12.2.3, §12.5.2).

    Parameters
    ----------
    latencies : iterable of float
        Those of the successful trials: at least one, finite, not negative.

    Examples
    --------
    >>> summary = latency_summary(range(100, 130))
    >>> summary.mean, summary.maximum, summary.p95
    (114.5, 129.0, 128.0)
    >>> summary.p99
    Undefined(reason='p99 needs at least 100 successful trials, got 30')
    """
    values = check_latencies("latencies", latencies)
    p50, p90, p95, p99 = (_find_percentile(values, p) for p in SUPPORTED_PERCENTILES)
    return LatencySummary(
        trials=len(values),
        mean=_mean(values),
        maximum=values[-1],
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
    )


def emission_minimum(percentile: float) -> int:
    """The fewest successful trials from which a percentile is emitted (companion §12.5.2).

    Below it the estimate is the smallest or largest latency seen. It says nothing about whether
    a bound on the true percentile exists; that takes more trials.

    Parameters
    ----------
    percentile : {0.5, 0.9, 0.95, 0.99}
        Other levels are outside the method: a p99.9 needs telemetry, not a test run.

    Examples
    --------
    >>> [emission_minimum(p) for p in SUPPORTED_PERCENTILES]
    [5, 10, 20, 100]
    """
    p = check_percentile(percentile)
    if p not in _EMISSION_MINIMUMS:
        allowed = f"be one of {', '.join(map(str, SUPPORTED_PERCENTILES))}"
        raise InvalidArgument("percentile", percentile, allowed)
    return _EMISSION_MINIMUMS[p]


def check_percentile(value: float) -> float:
    """A percentile level as a fraction, strictly between 0 and 1: 0.95, not 95."""
    allowed = "be a fraction strictly between 0 and 1, such as 0.95"
    return require_number("percentile", value, allowed, lambda rate: 0 < rate < 1)


def check_latencies(argument: str, values: Iterable[float], *, minimum: int = 1) -> list[float]:
    """Finite, non-negative latencies in ascending order; Python's sort is stable, as §12.8 asks."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, values, "be a sequence of latencies")
    allowed = "be a finite number of at least 0"
    checked = [
        require_number(f"{argument}[{place}]", value, allowed, lambda number: number >= 0)
        for place, value in enumerate(values)
    ]
    if len(checked) < minimum:
        raise InvalidArgument(argument, checked, "hold at least one latency")
    checked.sort()
    return checked


def nearest_rank(ordered: list[float], percentile: float) -> float:
    """The percentile of latencies already in ascending order; the rank is within 1 … n."""
    return ordered[ceil_product(percentile, len(ordered)) - 1]


def _find_percentile(ordered: list[float], percentile: float) -> float | Undefined:
    needed = _EMISSION_MINIMUMS[percentile]
    if len(ordered) < needed:
        name = f"p{percentile * 100:.0f}"
        return Undefined(f"{name} needs at least {needed} successful trials, got {len(ordered)}")
    return nearest_rank(ordered, percentile)


def _mean(ordered: list[float]) -> float:
    count = len(ordered)
    try:
        mean = math.fsum(ordered) / count
    except OverflowError:
        mean = math.fsum(value / count for value in ordered)
    # Dividing a rounded sum may step an ulp outside the values it averages.
    return min(max(mean, ordered[0]), ordered[-1])
