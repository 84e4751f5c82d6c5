"""Boschloo's test that a run degraded from its baseline: Fisher's ordering, more of alpha used.

Fisher's test holds alpha for every total number of successes apart and therefore spends less of
it. Boschloo takes Fisher's p-value as a mere statistic and asks how probable one so small is at
the worst common rate, which is never more than Fisher's p-value itself: everything Fisher rejects
is rejected, and more (Boschloo 1970, "Raised conditional level of significance for the 2×2-table
when testing the equality of two probabilities").

How the worst rate is found, and why it is an upper bound. With a_s Fisher's rejection probability
given s successes among all N trials, P(reject) at rate p is E[a_S] for S ~ Binomial(N, p). Around
any p its Taylor series in η = (p′ − p)√(N/p(1−p)) has the coefficients E[a_S κ_j(S)], κ_j the
Krawtchouk polynomials, of size at most L/(2√j!) as 0 ≤ a_s ≤ L. A few terms and this
remainder bound P(reject) over a whole interval of rates; the interval with the highest bound is
halved until no bound exceeds the best value found by more than a relative 1e-11.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import SupportsIndex

from trialwise.stats.fisher import FisherLevel, check_two_runs, fisher_corners, fisher_p_value
from trialwise.stats.likely_counts import likely_counts
from trialwise.stats.result_types import Undefined

#: How far, relatively, the reported supremum may lie above the greatest value found.
_SLACK = 1e-11
#: The Taylor remainder, relative to the level: far enough below the slack not to use it up.
_REMAINDER = 1e-13
#: Products with a p-value below this underflow; Fisher's is then the bound that is reported.
_TINY = 1e-280
#: The first intervals' half-width in η. Wider ones need more terms, narrower ones are more.
_FIRST_HALF_WIDTH = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class BoschlooTest:
    """Boschloo's test of a run against its baseline, beside the Fisher test it sharpens."""

    baseline_successes: int
    baseline_trials: int
    successes: int
    trials: int
    p_value: float
    """The greatest probability, over every common rate, of a Fisher p-value this small.

    An upper bound within a relative 1e-11 of it, and never above Fisher's.
    """
    fisher_p_value: float
    nuisance_rate: float | Undefined
    """The common rate at which the p-value is attained; undefined where every rate attains it."""


def boschloo(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
) -> BoschlooTest:
    """Boschloo's unconditional exact test of degradation, p = sup over rates of P(F ≤ f).

    F is Fisher's one-sided p-value of a random pair of runs at a common rate and f the observed
    one; outcomes with the same p-value count, ties being decided in rationals.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    successes, trials : int
        The test, likewise.

    References
    ----------
    Boschloo (1970), Statistica Neerlandica 24, 1–9.

    Examples
    --------
    One trial each: a success, then a failure, has probability p(1−p), at most a quarter.

    >>> test = boschloo(1, 1, 0, 1)
    >>> round(test.p_value, 9), round(test.fisher_p_value, 9), round(test.nuisance_rate, 6)
    (0.25, 0.5, 0.5)
    """
    k, nb, x, nt = check_two_runs(baseline_successes, baseline_trials, successes, trials)
    fisher = fisher_p_value(k, nb, x, nt)
    rate: float | Undefined
    if k == 0 or x == nt:
        p_value, rate = 1.0, Undefined("every outcome is at least as extreme, at every rate")
    elif fisher < _TINY:
        p_value, rate = fisher, Undefined("the p-value is too small to be told from Fisher's")
    else:
        peak = find_supremum(rejection_region(FisherLevel.of(k, x, nb, nt), nb, nt))
        p_value, rate = min(peak.high, fisher), peak.rate
    return BoschlooTest(
        baseline_successes=k,
        baseline_trials=nb,
        successes=x,
        trials=nt,
        p_value=p_value,
        fisher_p_value=fisher,
        nuisance_rate=rate,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectionRegion:
    """P(reject | s successes among all `size` trials) for s = first, first + 1, …; 0 elsewhere."""

    size: int
    level: float
    first: int
    conditional: list[float]


def rejection_region(level: FisherLevel, nb: int, nt: int) -> RejectionRegion:
    """Return the tables that Fisher's test rejects at a level."""
    corners = list(fisher_corners(level, nb, nt))
    return RejectionRegion(
        size=nb + nt,
        level=level.value,
        first=corners[0][0] if corners else 0,
        conditional=[tail for _, _, tail, _ in corners],
    )


# --- the supremum over the common rate ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peak:
    """A value attained at a rate, and a bound that no rate exceeds."""

    low: float
    high: float
    rate: float


def find_supremum(region: RejectionRegion, limit: float | None = None) -> _Peak:
    """The supremum of P(reject) over the rate, or merely on which side of `limit` it lies."""
    if not region.conditional:
        return _Peak(low=0.0, high=0.0, rate=0.5)
    pieces = math.ceil(math.pi * math.sqrt(region.size) / (2 * _FIRST_HALF_WIDTH))
    # Equal steps in the arcsine of the root are equal steps in η.
    edges = [math.sin(math.pi * i / (2 * pieces)) ** 2 for i in range(pieces + 1)]
    edges[-1] = 1.0
    best, rate = 0.0, 0.5
    heap: list[tuple[float, float, float]] = []
    queue = [(edges[i], edges[i + 1]) for i in range(pieces)]
    while True:
        for left, right in queue:
            piece = _bound_peak(region, left, right)
            if piece.low > best:
                best, rate = piece.low, piece.rate
            heappush(heap, (-piece.high, left, right))
        high, left, right = heappop(heap)
        settled = -high <= best * (1 + _SLACK)
        decided = limit is not None and (best > limit or -high <= limit)
        if settled or decided:
            return _Peak(low=best, high=max(best, -high), rate=rate)
        middle = (left + right) / 2
        queue = [(left, middle), (middle, right)]


def _bound_peak(region: RejectionRegion, left: float, right: float) -> _Peak:
    """A value of P(reject) in an interval of rates, and a bound on it throughout the interval."""
    centre, half = (left + right) / 2, (right - left) / 2
    unit = math.sqrt(centre * (1 - centre) / region.size)
    reach = half / unit
    order, remainder = _order(reach)
    series = _taylor(region, centre, order)
    place = highest_point(series[1], series[2], reach)
    tail = math.fsum(abs(c) * reach**j for j, c in enumerate(series[3:], 3))
    parabola = series[0] + place * (series[1] + place * series[2])
    value = math.fsum(c * place**j for j, c in enumerate(series))
    return _Peak(
        low=max(value, 0.0),
        high=parabola + tail + remainder * region.level,
        rate=min(max(centre + place * unit, left), right),
    )


def highest_point(slope: float, bend: float, reach: float) -> float:
    """Where slope·e + bend·e² is highest for |e| ≤ reach."""
    edge = math.copysign(reach, slope)
    if bend >= 0:
        return edge
    top = -slope / (2 * bend)
    return top if abs(top) < reach else edge


def _order(reach: float) -> tuple[int, float]:
    """How many terms the Taylor series needs, and the bound ½ Σ_{j > order} reach^j/√j! then."""
    order, term = 0, 0.5
    while order < 2 or term > _REMAINDER:
        order += 1
        term *= reach / math.sqrt(order)
    # The terms left fall at least as fast as a geometric series from here on.
    term *= reach / math.sqrt(order + 1)
    return order, term / (1 - reach / math.sqrt(order + 2))


def _taylor(region: RejectionRegion, rate: float, order: int) -> list[float]:
    """E[a_S κ_j(S)] for j = 0 … order, S ~ Binomial(N, rate), by the recurrence of κ_j.

    (j+1) κ_{j+1} = (z − j(1−2p)/σ) κ_j − (N−j+1)/N κ_{j−1},  z = (s − Np)/σ,  σ² = Np(1−p),
    from the generating function Σ_j κ_j (tσ)^j = (1 + (1−p)t)^s (1 − pt)^{N−s}.
    """
    size = region.size
    start, weights = likely_counts(size, rate)
    first = max(start, region.first)
    last = min(start + len(weights), region.first + len(region.conditional))
    if first >= last:
        return [0.0] * (order + 1)
    sigma = math.sqrt(size * rate * (1 - rate))
    skew = (1 - 2 * rate) / sigma
    z = [(s - size * rate) / sigma for s in range(first, last)]
    current = [
        w * a
        for w, a in zip(
            weights[first - start : last - start],
            region.conditional[first - region.first : last - region.first],
            strict=True,
        )
    ]
    before = [0.0] * len(current)
    series = [math.fsum(current)]
    for j in range(order):
        shift, back, divisor = j * skew, (size - j + 1) / size, j + 1
        before, current = (
            current,
            [
                ((u - shift) * c - back * b) / divisor
                for u, c, b in zip(z, current, before, strict=True)
            ],
        )
        series.append(math.fsum(current))
    return series
