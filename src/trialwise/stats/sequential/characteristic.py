"""The operating characteristic of a sequential rule: what it really does at a true rate.

Only lists and floats: a rule is used far more often than it is found, and using one must not pay
for an array library. The recursion walks the number of failures forward over the band between the
two boundaries, O(cap × width), and every other exact quantity is a sum over where it stops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from trialwise.validation import require_rate


class Stops(NamedTuple):
    """Where a rule stops at one true rate: (trials, failures, probability), by verdict."""

    passes: list[tuple[int, int, float]]
    fails: list[tuple[int, int, float]]
    inconclusive: list[tuple[int, int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingCharacteristic:
    """What a design does at one true rate, exactly.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign
    >>> curve = SequentialDesign.wald(0.90, 0.80, cap=50).operating_characteristic(0.90)
    >>> round(curve.passes, 3), round(curve.fails, 3), round(curve.inconclusive, 3)
    (0.747, 0.024, 0.229)
    >>> round(curve.mean_trials, 1), curve.quantile(0.95)
    (31.0, 50)
    """

    rate: float
    """The true rate p of a success."""
    passes: float
    """P(PASS)."""
    fails: float
    """P(FAIL)."""
    inconclusive: float
    """P(INCONCLUSIVE): the cap came before a verdict."""
    mean_trials: float
    """The expected number of trials (ASN)."""
    distribution: tuple[float, ...]
    """P(exactly n trials), n = 0 … cap."""

    def quantile(self, q: float) -> int:
        """The fewest trials n with P(at most n trials) ≥ q, up to rounding in the last digits.

        Parameters
        ----------
        q : float
            Between 0 and 1.
        """
        goal = require_rate("q", q) - 1e-12
        for n, reached in enumerate(accumulate(self.distribution)):
            if reached >= goal:
                return n
        return len(self.distribution) - 1

    @property
    def median_trials(self) -> int:
        """Half of all runs need at most this many trials."""
        return self.quantile(0.5)


def stopping_probabilities(
    accept: Sequence[int],
    reject: Sequence[int],
    p: float,
    futile: Sequence[tuple[int, int]] = (),
    start: tuple[int, int] = (0, 0),
) -> Stops:
    """Where the rule stops at true rate p, with what probability: the forward recursion.

    Parameters
    ----------
    accept, reject : sequence of int
        Boundaries for n = 0 … cap: PASS at f ≤ accept[n], FAIL at f ≥ reject[n].
    p : float
        The true rate of a success, 0 and 1 included.
    futile : sequence of (int, int), optional
        For n = 0 … cap, the fewest and most failures at which the rule gives up.
    start : (int, int), optional
        The trials and failures so far, where the rule has not stopped.
    """
    q = 1 - p
    stops = Stops([], [], [])
    band, (n, low) = [1.0], start
    for n in range(start[0] + 1, len(accept)):
        band = [p * x + q * y for x, y in zip([*band, 0.0], [0.0, *band], strict=True)]
        if low <= accept[n]:
            passed = accept[n] + 1 - low
            stops.passes.extend((n, low + j, w) for j, w in enumerate(band[:passed]))
            band, low = band[passed:], accept[n] + 1
        room = max(0, reject[n] - low)
        if room < len(band):
            stops.fails.extend((n, low + room + j, w) for j, w in enumerate(band[room:]))
            band = band[:room]
        if futile:
            first, last = max(futile[n][0], low), min(futile[n][1], low + len(band) - 1)
            for f in range(first, last + 1):
                stops.inconclusive.append((n, f, band[f - low]))
                band[f - low] = 0.0
        if not band:
            return stops
    stops.inconclusive.extend((n, low + j, w) for j, w in enumerate(band) if w or not futile)
    return stops


def chance_to_decide(
    accept: Sequence[int],
    reject: Sequence[int],
    p: float,
    futile: Sequence[tuple[int, int]] = (),
    start: tuple[int, int] = (0, 0),
) -> float:
    """P(PASS or FAIL by the cap) at true rate p, given the trials and failures so far.

    Examples
    --------
    >>> accept, reject = [-1, -1, 0], [3, 3, 2]   # two trials; one failure leaves it open
    >>> chance_to_decide(accept, reject, 0.9, start=(1, 0))
    0.9
    """
    stops = stopping_probabilities(accept, reject, p, futile, start)
    return math.fsum(weight for _, _, weight in (*stops.passes, *stops.fails))


def characteristic(
    accept: Sequence[int],
    reject: Sequence[int],
    p: float,
    futile: Sequence[tuple[int, int]] = (),
) -> OperatingCharacteristic:
    """The operating characteristic of a rule at true rate p."""
    stops = stopping_probabilities(accept, reject, p, futile)
    distribution = [0.0] * len(accept)
    for verdict in stops:
        for n, _, weight in verdict:
            distribution[n] += weight
    passes, fails, inconclusive = (math.fsum(w for *_, w in verdict) for verdict in stops)
    return OperatingCharacteristic(
        rate=p,
        passes=passes,
        fails=fails,
        inconclusive=inconclusive,
        mean_trials=math.fsum(n * w for n, w in enumerate(distribution)),
        distribution=tuple(distribution),
    )
