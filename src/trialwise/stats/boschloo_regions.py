"""Boschloo's rule for a planned test: the fewest successes that PASS, for every baseline count.

The rule rejects the outcomes whose Fisher p-value is at most a critical level, the largest one at
which no common rate is rejected with a probability above alpha. Raising the level adds outcomes one
by one, each to one total number of successes, so one walk gives Fisher's region and the outcomes
next to it; where to stop among them is found by bisection. Whether a region holds alpha is decided
as in `unconditional`: by Taylor series around a grid of rates, with a bound on what they leave out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import mul
from typing import NamedTuple

from trialwise.decimals import RELATIVE_BAND
from trialwise.stats import unconditional
from trialwise.stats.binomial import find_first, likely_counts
from trialwise.stats.precedence import lattice_weight

#: Half of the distance between two rates of the grid, in standard deviations of the total.
_REACH = 0.35
#: Binomial probabilities rarer than this, relative to the likeliest, are left out.
_NEGLIGIBLE = 1e-15
#: From so many trials together on, Fisher's region serves: the two differ by less than a 40th of
#: alpha there, and the search would take seconds.
LARGEST_SEARCH = 12_000
#: Terms of a Taylor series: first a few, which settle most rates, then more.
_FEW, _MORE = 2, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BoschlooRegion:
    """The rule of Boschloo's test for two planned sizes."""

    baseline_trials: int
    trials: int
    alpha: float
    cutoffs: tuple[int, ...]
    """The fewest successes that PASS, for 0, 1, … successes of the baseline."""
    first: int
    conditional: tuple[float, ...]
    """P(FAIL | s successes among all trials) when nothing changed, for s = first, first + 1, …"""

    @property
    def size(self) -> float:
        """The largest false-alarm probability over every common rate; at most alpha."""
        region = unconditional.RejectionRegion(
            size=self.baseline_trials + self.trials,
            level=max(self.conditional, default=0.0),
            first=self.first,
            conditional=list(self.conditional),
        )
        return unconditional.find_supremum(region).high


class _Outcome(NamedTuple):
    """k successes of the baseline and x of the test, with Fisher's p-value.

    `weight` is the outcome's probability given k + x successes in all.
    """

    p_value: float
    k: int
    x: int
    weight: float


@lru_cache(maxsize=128)
def boschloo_region(nb: int, nt: int, alpha: float) -> BoschlooRegion:
    """Return the rule that Boschloo's test applies at two sizes and a level.

    Examples
    --------
    >>> boschloo_region(100, 100, 0.05).cutoffs[95]
    88
    """
    corners = {
        k + x: _Outcome(tail, k, x, weight)
        for k, x, tail, weight in unconditional.fisher_corners(
            unconditional.FisherLevel(alpha, nb, nt), nb, nt
        )
    }
    if nb + nt > LARGEST_SEARCH:
        return _build(corners, nb, nt, alpha)
    sizes = _Sizes(nb + nt, alpha)
    level, stride = alpha, 1 + 3.5 / math.sqrt(min(nb, nt))
    while True:
        level *= stride
        groups = _group_ties(_list_outcomes(corners, level, nb, nt))
        held = sizes.count_held(corners, groups)
        for group in groups[:held]:
            corners.update((one.k + one.x, one) for one in group)
        # Where all of them fit, the critical level may be higher still.
        if held < len(groups) or level >= 1:
            return _build(corners, nb, nt, alpha)


def _build(corners: dict[int, _Outcome], nb: int, nt: int, alpha: float) -> BoschlooRegion:
    cutoffs = [0] * (nb + 1)
    for one in corners.values():
        cutoffs[one.k] = max(cutoffs[one.k], one.x + 1)
    totals = range(min(corners, default=0), max(corners, default=-1) + 1)
    return BoschlooRegion(
        baseline_trials=nb,
        trials=nt,
        alpha=alpha,
        cutoffs=tuple(cutoffs),
        first=totals.start,
        conditional=tuple(corners[s].p_value if s in corners else 0.0 for s in totals),
    )


def _list_outcomes(corners: dict[int, _Outcome], level: float, nb: int, nt: int) -> list[_Outcome]:
    """List the outcomes beyond a region whose p-value is at most `level`, smallest first."""
    limit = level * (1 + RELATIVE_BAND)
    found: list[_Outcome] = []

    def follow(one: _Outcome) -> None:
        tail, k, x, weight = one
        while tail <= limit and k > 0 and x < nt:
            found.append(_Outcome(tail, k, x, weight))
            weight *= k * (nt - x) / ((x + 1) * (nb - k + 1))
            k, x = k - 1, x + 1
            tail += weight

    for tail, k, x, weight in corners.values():
        if k > 1 and x + 1 < nt:
            higher = weight * k * (nt - x) / ((x + 1) * (nb - k + 1))
            follow(_Outcome(tail + higher, k - 1, x + 1, higher))
    # Totals without a rejected outcome yet: few successes in all, or few failures.
    few, many = min(corners, default=nb + 1), max(corners, default=nb)
    for totals in (range(few - 1, 0, -1), range(many + 1, nb + nt)):
        for s in totals:
            x = max(0, s - nb)
            weight = lattice_weight(s - x, x, nb, nt)
            if weight > limit:
                break
            follow(_Outcome(weight, s - x, x, weight))
    return sorted(found)


def _group_ties(outcomes: list[_Outcome]) -> list[list[_Outcome]]:
    """Group the outcomes whose p-values agree to nine digits: a level admits all or none."""
    groups: list[list[_Outcome]] = []
    for one in outcomes:
        if groups and one.p_value <= groups[-1][-1].p_value * (1 + RELATIVE_BAND):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


class _Sizes:
    """Decides whether regions hold alpha at every common rate, on one grid of rates."""

    def __init__(self, size: int, alpha: float) -> None:
        self._size, self._limit = size, alpha * (1 + RELATIVE_BAND)
        pieces = math.ceil(math.pi * math.sqrt(size) / (4 * _REACH))
        edges = [math.sin(math.pi * i / (2 * pieces)) ** 2 for i in range(pieces + 1)]
        half = [_Piece(size, edges[i], edges[i + 1]) for i in range((pieces + 1) // 2)]
        self._pieces = half + [half[i].mirror() for i in range(pieces // 2)][::-1]

    def count_held(self, corners: dict[int, _Outcome], groups: list[list[_Outcome]]) -> int:
        """Count the groups, from the first, that fit into the region together."""

        def reject(held: int) -> list[float]:
            return self._rejections(corners, groups[:held])

        def is_too_many(held: int) -> bool:
            conditional = reject(held)
            return any(piece.value(conditional) > self._limit for piece in self._pieces)

        held = find_first(0, len(groups) + 1, is_too_many) - 1
        # The grid has missed peaks between its rates: give way until the last of them fits.
        while held and (peak := self._find_excess(reject(held))) is not None:
            held = find_first(0, held, partial(self._exceeds, peak, reject)) - 1
        return held

    def _exceeds(self, peak: _Piece, reject: Callable[[int], list[float]], held: int) -> bool:
        conditional = reject(held)
        return peak.bound(conditional, max(conditional), _MORE)[0] > self._limit

    def _rejections(
        self, corners: dict[int, _Outcome], groups: list[list[_Outcome]]
    ) -> list[float]:
        """P(reject | s successes) for s = 0, 1, … with some groups added to a region."""
        conditional = [0.0] * (self._size + 1)
        for s, one in corners.items():
            conditional[s] = one.p_value
        for group in groups:
            for one in group:
                conditional[one.k + one.x] = one.p_value
        return conditional

    def _find_excess(self, conditional: list[float]) -> _Piece | None:
        """Find rates at which a region is rejected more often than alpha allows."""
        level, limit = max(conditional), self._limit
        queue = self._pieces[::-1]
        while queue:
            piece = queue.pop()
            for terms in (_FEW, _MORE):
                low, high = piece.bound(conditional, level, terms)
                if low > limit:
                    return piece
                if high <= limit:
                    break
            else:
                queue += piece.halve()
        return None


class _Piece:
    """An interval of common rates, with the totals that are likely at its middle.

    P(reject) is a power series in the distance from the middle, in standard deviations. Its terms
    are expectations of Krawtchouk polynomials of the standardised total; see `unconditional`.
    """

    __slots__ = ("_ends", "_scale", "_size", "_start", "_stop", "_weights")

    def __init__(
        self, size: int, left: float, right: float, totals: tuple[int, list[float]] | None = None
    ) -> None:
        self._size, self._ends = size, (left, right)
        self._start, self._weights = totals or likely_counts(
            size, (left + right) / 2, negligible=_NEGLIGIBLE
        )
        self._stop = self._start + len(self._weights)
        self._scale: tuple[float, list[float], list[list[float]]] | None = None

    def mirror(self) -> _Piece:
        """The interval on the other side of one half, with failures for successes."""
        left, right = self._ends
        totals = self._size + 1 - self._stop, self._weights[::-1]
        return _Piece(self._size, 1 - right, 1 - left, totals)

    def halve(self) -> list[_Piece]:
        """The two halves of the interval."""
        left, right = self._ends
        middle = (left + right) / 2
        return [_Piece(self._size, left, middle), _Piece(self._size, middle, right)]

    def value(self, conditional: list[float]) -> float:
        """P(reject) in the middle."""
        return float(sum(map(mul, self._weights, conditional[self._start : self._stop])))

    def bound(self, conditional: list[float], level: float, terms: int) -> tuple[float, float]:
        """A value of P(reject) in the interval, and a bound that it exceeds nowhere there."""
        reach, totals, polynomials = self._standardise()
        products = list(map(mul, self._weights, conditional[self._start : self._stop]))
        moments = [sum(products)]
        for _ in range(terms):
            products = list(map(mul, products, totals))
            moments.append(sum(products))
        series = [sum(map(mul, row, moments)) for row in polynomials[: terms + 1]]
        place = unconditional.highest_point(series[1], series[2], reach)
        parabola = series[0] + place * (series[1] + place * series[2])
        tail = sum(abs(c) * reach**j for j, c in enumerate(series[3:], 3))
        left_out = level * _bound_remainder(reach, terms)
        value = sum(c * place**j for j, c in enumerate(series))
        return value - left_out, parabola + tail + left_out

    def _standardise(self) -> tuple[float, list[float], list[list[float]]]:
        """The half-width in standard deviations, the standardised totals, and the polynomials."""
        if self._scale is None:
            left, right = self._ends
            rate = (left + right) / 2
            mean, sigma = self._size * rate, math.sqrt(self._size * rate * (1 - rate))
            self._scale = (
                (right - left) / 2 * self._size / sigma,
                [(s - mean) / sigma for s in range(self._start, self._stop)],
                _krawtchouk(self._size, (1 - 2 * rate) / sigma),
            )
        return self._scale


def _bound_remainder(reach: float, terms: int) -> float:
    """½ Σ_{j > terms} reach^j/√j!, the rest of it bounded by a geometric series."""
    total, term = 0.0, 0.5 * reach**terms / math.sqrt(math.factorial(terms))
    for j in range(terms + 1, terms + 9):
        term *= reach / math.sqrt(j)
        total += term
    return total + term * reach / (3 - reach) if reach < 1 else math.inf


def _krawtchouk(size: int, skew: float) -> list[list[float]]:
    """The coefficients of κ_0 … κ_5 as polynomials of the standardised total."""
    rows = [[1.0], [0.0, 1.0]]
    for j in range(1, _MORE):
        back, now = rows[j - 1], rows[j]
        row = [0.0, *now]
        for i, c in enumerate(now):
            row[i] -= j * skew * c
        for i, c in enumerate(back):
            row[i] -= (size - j + 1) / size * c
        rows.append([c / (j + 1) for c in row])
    return rows
