"""Shorter exact intervals after stopping, by Blaker's inversion of the stage-wise order.

A central interval leaves out the same error on each side. Blaker's leaves a rate out only if the
outcome's own tail and the largest tail on the other side that is no more likely add up to at most
the error. It lies within the central interval, and it covers at least as often as stated. Its two
tails are unequal, so it can contradict a one-sided decision: verdicts never use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate
from typing import TYPE_CHECKING

from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.stopped_rates import (
    check_stop,
    list_log_paths,
    rank_open_end,
    stopped_interval,
)
from trialwise.stats.sequential.walks import stopping_probabilities
from trialwise.validation import require_open_rate

if TYPE_CHECKING:
    from trialwise.stats.sequential.design import SequentialDesign

#: How finely an end is found. The end that is returned is the one on the safe side.
RESOLUTION = 1e-7


def blaker_interval(
    design: SequentialDesign, trials: int, failures: int, *, confidence: float = 0.95
) -> Interval:
    """Return the exact interval for the rate where a design stopped, by Blaker's inversion.

    Parameters
    ----------
    design : SequentialDesign
    trials, failures : int
        Where the design stopped.
    confidence : float
        Strictly between 0 and 1.

    References
    ----------
    Blaker 2000; Jennison and Turnbull 2000, section 8.4 (stage-wise ordering).

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> design = SequentialDesign.wald(0.90, 0.80, cap=50)
    >>> central, shorter = design.interval(21, 1), blaker_interval(design, 21, 1)
    >>> central.low <= shorter.low and shorter.high <= central.high
    True
    """
    level = 1 - require_open_rate("confidence", confidence)
    n, f = check_stop(design, trials, failures)
    central = stopped_interval(design, n, f, confidence=confidence)
    good, bad = _tails_of_all(design)
    place = _order(design).index((n, f))

    def excluded_above(low: float, high: float) -> bool:
        """Whether every rate between two is too low for the outcome."""
        # The outcome's tail rises with the rate, tails on the other side fall: bounds for all.
        own = good(high)[place]
        most = zip(bad(low)[place + 1 :], bad(high)[place + 1 :], strict=True)
        return own + max((at_low for at_low, at_high in most if at_high <= own), default=0) <= level

    def excluded_below(low: float, high: float) -> bool:
        """Whether every rate between two is too high for the outcome."""
        own = bad(low)[place]
        most = zip(good(low)[:place], good(high)[:place], strict=True)
        return own + max((at_high for at_low, at_high in most if at_low <= own), default=0) <= level

    low = _advance(central.low, central.high, excluded_above)
    high = -_advance(-central.high, -central.low, lambda a, b: excluded_below(-b, -a))
    return Interval(low, high, confidence=confidence, method="exact after stopping, Blaker")


def _advance(start: float, end: float, excluded: Callable[[float, float], bool]) -> float:
    """Return the last point from `start` on before which every cell is excluded."""
    step = (end - start) / 8
    while step > RESOLUTION and start < end:
        reached = min(start + step, end)
        if excluded(start, reached):
            start, step = reached, step * 2
        else:
            step /= 2
    return start


def _order(design: SequentialDesign) -> list[tuple[int, int]]:
    """Return all ends of a design, the best first."""
    return [(n, f) for n, f, _ in _rank(design)]


def _rank(design: SequentialDesign) -> list[tuple[int, int, float]]:
    middle = (design.p0 + design.p1) / 2
    stops = stopping_probabilities(design, middle)
    ordered = [
        *sorted(stops.passes, key=lambda stop: stop[:2]),
        *sorted(stops.inconclusive, key=lambda stop: rank_open_end(design, stop[0], stop[1])),
        *sorted(stops.fails, key=lambda stop: (-stop[0], stop[1])),
    ]
    return [stop for stop in ordered if stop[2]]  # the others cannot be reached


def _tails_of_all(
    design: SequentialDesign,
) -> tuple[Callable[[float], list[float]], Callable[[float], list[float]]]:
    """P(as good or better) and P(as bad or worse) of every end, as functions of the rate."""
    paths = list_log_paths(_rank(design), (design.p0 + design.p1) / 2)

    def chances(p: float) -> list[float]:
        if p in (0, 1):
            return [float((f if p else s) == 0) for _, s, f in paths]
        good, bad = math.log(p), math.log1p(-p)
        return [math.exp(ways + s * good + f * bad) for ways, s, f in paths]

    def as_good(p: float) -> list[float]:
        return list(accumulate(chances(p)))

    def as_bad(p: float) -> list[float]:
        return list(accumulate(reversed(chances(p))))[::-1]

    return as_good, as_bad
