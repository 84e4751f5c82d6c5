"""Boschloo's rule for a planned test: the fewest successes that PASS, for every baseline count.

The rule rejects the outcomes whose Fisher p-value is at most a critical level, the largest one at
which no common rate is rejected with a probability above alpha. Raising the level adds outcomes one
by one, each to one total number of successes, so one walk gives Fisher's region and the outcomes
next to it; where to stop among them is found by bisection on a grid of rates. `unconditional` then
proves that the region holds alpha between these rates, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, pairwise
from operator import mul
from typing import NamedTuple

from trialwise.decimals import RELATIVE_BAND
from trialwise.stats.binomial import find_first, likely_counts
from trialwise.stats.precedence import lattice_weight
from trialwise.stats.unconditional import (
    FisherLevel,
    RejectionRegion,
    find_supremum,
    fisher_corners,
)

#: Half of the distance between two rates of the grid, in standard deviations of the total.
_REACH = 0.35
#: Binomial probabilities rarer than this, relative to the likeliest, are left out.
_NEGLIGIBLE = 1e-15
#: From this many trials together on, Fisher's region serves: the two differ by less than a 40th of
#: alpha there, and the search would take seconds.
LARGEST_SEARCH = 12_000


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
        region = RejectionRegion(
            size=self.baseline_trials + self.trials,
            level=max(self.conditional, default=0.0),
            first=self.first,
            conditional=list(self.conditional),
        )
        return find_supremum(region).high


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
        for k, x, tail, weight in fisher_corners(FisherLevel(alpha, nb, nt), nb, nt)
    }
    if nb + nt > LARGEST_SEARCH:
        return _build(corners, nb, nt, alpha)
    level, stride = alpha, 1 + 3.5 / math.sqrt(min(nb, nt))
    while True:
        level *= stride
        groups = _group_ties(_list_outcomes(corners, level, nb, nt))
        held = _count_held(corners, groups, nb + nt, alpha)
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


def _count_held(
    corners: dict[int, _Outcome], groups: list[list[_Outcome]], size: int, alpha: float
) -> int:
    """Count the groups, from the first, that fit into the region together."""
    limit = alpha * (1 + RELATIVE_BAND)

    def reject(held: int) -> list[float]:
        """P(reject | s successes), s = 0, 1, …, with the first groups added to the region."""
        conditional = [0.0] * (size + 1)
        added = (one for group in groups[:held] for one in group)
        for one in chain(corners.values(), added):
            conditional[one.k + one.x] = one.p_value
        return conditional

    def is_too_many(grid: Sequence[tuple[int, list[float]]], held: int) -> bool:
        conditional = reject(held)
        return any(sum(map(mul, w, conditional[first:])) > limit for first, w in grid)

    held = find_first(0, len(groups) + 1, partial(is_too_many, _lay_grid(size))) - 1
    # The grid has missed peaks between its rates: give way until the last of them fits.
    while held:
        conditional = reject(held)
        region = RejectionRegion(
            size=size, level=max(conditional), first=0, conditional=conditional
        )
        peak = find_supremum(region, limit)
        if peak.low <= limit:
            break
        at_peak = likely_counts(size, peak.rate, negligible=_NEGLIGIBLE)
        held = find_first(0, held, partial(is_too_many, [at_peak])) - 1
    return held


@lru_cache(maxsize=1)
def _lay_grid(size: int) -> list[tuple[int, list[float]]]:
    """The totals that are likely at rates so close that few peaks lie between them alone."""
    pieces = math.ceil(math.pi * math.sqrt(size) / (4 * _REACH))
    # Equal steps in the arcsine of the root are equal steps in standard deviations.
    edges = [math.sin(math.pi * i / (2 * pieces)) ** 2 for i in range(pieces + 1)]
    middles = ((left + right) / 2 for left, right in pairwise(edges))
    return [likely_counts(size, rate, negligible=_NEGLIGIBLE) for rate in middles]
