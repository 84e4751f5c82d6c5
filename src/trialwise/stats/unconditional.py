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
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from math import comb

from trialwise.decimals import RELATIVE_BAND, as_written, at_most
from trialwise.stats.binomial import binomial_weight, find_first, likely_counts
from trialwise.stats.result_types import Count, Undefined
from trialwise.validation import require_successes

# --- The lattice of two runs ----------------------------------------------------------------------
#
# One lattice, two rules: where the k-th baseline value falls among the test values.
#
# Mix n_b baseline and n_t test values from one population and let X be how many test values lie
# below the k-th smallest baseline value. Then, whatever the population,
#
#     F(k, x) = P(X ≤ x) = Σ_{j ≤ x} C(k+j−1, j) C(n_b−k+n_t−j, n_t−j) / C(n_b+n_t, n_t),
#
# a beta-binomial tail. It is the breach probability of the latency rule (rank k of the baseline
# against the test's percentile) and, read with counts instead of ranks, the one-sided Fisher
# p-value of x successes in n_t trials against k in n_b. Neighbouring cells differ by a single term,
#
#     F(k, x) − F(k, x−1) = h(k, x) · k/(k+x),      F(k, x) − F(k+1, x) = h(k, x) · (n_t−x)/(N−k−x),
#
# with h the hypergeometric weight C(k+x, x) C(N−k−x, n_t−x)/C(N, n_t) and N = n_b + n_t, so a whole
# cutoff boundary costs one multiplication a step instead of one sum a cell.


def smallest_count(k: int, nb: int, nt: int, alpha: float) -> int:
    """The smallest x with F(k, x) > alpha: Fisher's integer cutoff. F(k, n_t) = 1 bounds it."""
    return find_first(-1, nt, lambda x: not reaches(k, x, nb, nt, alpha)) if k else 0


def reaches(k: int, x: int, nb: int, nt: int, alpha: float) -> bool:
    """Whether F(k, x) ≤ alpha, by the exact-boundary convention."""
    return at_most(lower_tail(k, x, nb, nt), alpha, lambda: exact_lower_tail(k, x, nb, nt))


def lower_tail(k: int, x: int, nb: int, nt: int) -> float:
    """F(k, x) by summing downward from x, where the terms fall away fastest."""
    if k == 0 or x >= nt:
        return 1.0
    if x < 0:
        return 0.0
    if x * (nb + 1) > nt * k:
        # Above the mean the first term may underflow. Counting both samples from the other end
        # turns the event into its complement: F(k, x) = 1 − F(n_b+1−k, n_t−x−1).
        return 1 - lower_tail(nb + 1 - k, nt - x - 1, nb, nt)
    total_size = nb + nt
    term = lattice_weight(k, x, nb, nt) * k / (k + x)
    total = term
    for j in range(x, 0, -1):
        term *= j * (total_size - k - j + 1) / ((k + j - 1) * (nt - j + 1))
        total += term
        if term < 1e-18 * total:
            break
    return min(total, 1.0)


def exact_lower_tail(k: int, x: int, nb: int, nt: int) -> Fraction:
    """F(k, x) in rationals."""
    if k == 0 or x >= nt:
        return Fraction(1)
    term = comb(nb - k + nt, nt)
    total = term
    for j in range(1, x + 1):
        term = term * (k + j - 1) * (nt - j + 1) // (j * (nb - k + nt - j + 1))
        total += term
    return Fraction(total, comb(nb + nt, nt))


def lattice_weight(k: int, x: int, nb: int, nt: int) -> float:
    """The hypergeometric weight h(k, x), as a ratio of three binomial weights at a common rate."""
    total = nb + nt
    p, q = nt / total, nb / total
    return (
        binomial_weight(x, k + x, p, q)
        * binomial_weight(nt - x, total - k - x, p, q)
        / binomial_weight(nt, total, p, q)
    )


# --- Boschloo's test and Fisher's -----------------------------------------------------------------

#: How far, relatively, the reported supremum may lie above the greatest value found.
_SLACK = 1e-11
#: The Taylor remainder, relative to the level: far enough below the slack not to use it up. Which
#: side of a limit a value lies on needs less in most intervals; the others are halved.
_REMAINDER, _ROUGH = 1e-13, 1e-5
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
    baseline_successes: Count, baseline_trials: Count, successes: Count, trials: Count
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
            piece = _bound_peak(region, left, right, _REMAINDER if limit is None else _ROUGH)
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


def _bound_peak(region: RejectionRegion, left: float, right: float, remainder: float) -> _Peak:
    """A value of P(reject) in an interval of rates, and a bound on it throughout the interval."""
    centre, half = (left + right) / 2, (right - left) / 2
    unit = math.sqrt(centre * (1 - centre) / region.size)
    reach = half / unit
    order, left_out = _order(reach, remainder)
    series = _taylor(region, centre, order)
    place = _highest_point(series[1], series[2], reach)
    tail = math.fsum(abs(c) * reach**j for j, c in enumerate(series[3:], 3))
    parabola = series[0] + place * (series[1] + place * series[2])
    value = math.fsum(c * place**j for j, c in enumerate(series))
    # What is left out at the finer remainder is far below the slack of a supremum.
    unsure = left_out * region.level if remainder == _ROUGH else 0.0
    return _Peak(
        low=max(value - unsure, 0.0),
        high=parabola + tail + left_out * region.level,
        rate=min(max(centre + place * unit, left), right),
    )


def _highest_point(slope: float, bend: float, reach: float) -> float:
    """Where slope·e + bend·e² is highest for |e| ≤ reach."""
    edge = math.copysign(reach, slope)
    if bend >= 0:
        return edge
    top = -slope / (2 * bend)
    return top if abs(top) < reach else edge


def _order(reach: float, remainder: float) -> tuple[int, float]:
    """How many terms the Taylor series needs, and the bound ½ Σ_{j > order} reach^j/√j! then."""
    order, term = 0, 0.5
    while order < 2 or term > remainder:
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


# Fisher's one-sided test that a run degraded from its baseline: exact whatever the common rate.
#
# Given how many of all trials succeeded, which run they fell to is pure chance when nothing has
# changed, so the unknown rate drops out and the baseline's own uncertainty is accounted for. It is
# the `fisher` rule of `regression`, read as a p-value; `boschloo` uses the same ordering of
# outcomes and wastes less of alpha.

#: A walk adds rounding at every step; a fresh sum this often keeps it below 1e-13.
_REFRESH = 128


def fisher_one_sided(
    baseline_successes: Count, baseline_trials: Count, successes: Count, trials: Count
) -> float:
    """The p-value of degradation: P(X ≤ successes) when all successes are dealt out at random.

    X is hypergeometric: the successes that fall to the test when k_b + k_t of the n_b + n_t trials
    succeed. It is 1 for a baseline without successes, from which nothing can degrade, and for a
    test without failures.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    successes, trials : int
        The test, likewise.

    References
    ----------
    Fisher (1935), "The logic of inductive inference"; companion §3.2, status note, asks for a rule
    that propagates the baseline's uncertainty.

    Examples
    --------
    Four successes that all fall to the baseline are one of 70 equally likely splits:

    >>> round(fisher_one_sided(4, 4, 0, 4) * 70, 12)
    1.0
    >>> round(fisher_one_sided(95, 100, 86, 100), 6)
    0.025653
    """
    return fisher_p_value(*check_two_runs(baseline_successes, baseline_trials, successes, trials))


def check_two_runs(
    baseline_successes: Count, baseline_trials: Count, successes: Count, trials: Count
) -> tuple[int, int, int, int]:
    """A baseline and a test, each with 0 ≤ successes ≤ trials and at least one trial."""
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    x, nt = require_successes(successes, trials)
    return k, nb, x, nt


def fisher_p_value(k: int, nb: int, x: int, nt: int) -> float:
    """P(X ≤ x), summed over the tail that is small: the other one starts from an underflow."""
    if k == 0 or x == nt:
        return 1.0
    if x * nb <= k * nt:
        return lower_tail(k, x, nb, nt)
    # X > x leaves at most k − 1 of the k + x successes to the baseline: the same tail, mirrored.
    return 1 - lower_tail(x + 1, k - 1, nt, nb)


class FisherLevel:
    """A level that Fisher p-values are compared with; in rationals where doubles are too close.

    Either a number, read as the decimal written, or the p-value of an outcome.
    """

    def __init__(
        self, value: float, nb: int, nt: int, *, cell: tuple[int, int] | None = None
    ) -> None:
        self.value, self._cell = value, cell
        self._nb, self._nt = nb, nt

    @cached_property
    def _exact(self) -> Fraction:
        cell = self._cell
        return exact_lower_tail(*cell, self._nb, self._nt) if cell else as_written(self.value)

    @classmethod
    def of(cls, k: int, x: int, nb: int, nt: int) -> FisherLevel:
        """The p-value of x successes in nt trials against k in nb."""
        return cls(fisher_p_value(k, nb, x, nt), nb, nt, cell=(k, x))

    def admits(self, tail: float, k: int, x: int) -> bool:
        """Whether the p-value of (k, x), which is about `tail`, is at most the level."""
        if abs(tail - self.value) > RELATIVE_BAND * self.value:
            return tail <= self.value
        return exact_lower_tail(k, x, self._nb, self._nt) <= self._exact


def fisher_cutoffs(first: int, last: int, nb: int, nt: int, alpha: float) -> list[int]:
    """Fisher's cutoff for every baseline count from `first` to `last`, walking the lattice once.

    A baseline without successes cannot be degraded from: its cutoff is 0.
    """
    cutoffs = [0] * (last - first + 1)
    for k, x, *_ in fisher_corners(FisherLevel(alpha, nb, nt), nb, nt, first):
        if k > last:
            break
        cutoffs[k - first] = x + 1
    return cutoffs


def fisher_corners(
    level: FisherLevel, nb: int, nt: int, first: int = 0
) -> Iterator[tuple[int, int, float, float]]:
    """The last rejected (k, x) of every diagonal k + x = s that has one, its p-value and weight.

    The weight is the probability of (k, x) given s successes, the p-value that of rejection. It
    grows with x and falls with k, so from one diagonal to the next the corner moves by one step in
    x or by one in k. The walk begins at the baseline count `first`.
    """
    size = nb + nt
    k, x = first, max(0, smallest_count(first, nb, nt, level.value) - 1)
    tail = lower_tail(k, x, nb, nt)
    while not level.admits(tail, k, x):
        if k == nb:
            return
        tail *= (nb - k) / (size - k)
        k += 1
    weight, steps = lattice_weight(k, x, nb, nt) if x else tail, 0
    yield k, x, tail, weight
    while True:
        left = size - k - x
        higher = weight * (k + x + 1) * (nt - x) / ((x + 1) * left)
        raised = tail + higher * k / (k + x + 1)
        if x + 1 < nt and level.admits(raised, k, x + 1):
            x, weight, tail = x + 1, higher, raised
        elif k < nb:
            loss = weight * (nt - x) / left
            weight *= (k + x + 1) * (nb - k) / ((k + 1) * left)
            k, tail = k + 1, tail - loss
            # A difference much smaller than what it is made of has lost its digits.
            steps = _REFRESH if tail < loss else steps
        else:
            return
        steps += 1
        if steps >= _REFRESH:
            steps, weight, tail = 0, lattice_weight(k, x, nb, nt), lower_tail(k, x, nb, nt)
        yield k, x, tail, weight
