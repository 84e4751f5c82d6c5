"""Rules with a margin at a fixed number of pairs: exact unconditional tests.

The interval of the difference has ends that are each wrong in at most alpha/2 of
comparisons, for every pair of rates and every correlation of the arms. What is shown follows from
the interval: PASS and FAIL are exact tests at the margin. "Not equivalent" can be shown in two
ways, which share the error of alpha/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from trialwise.decimals import complement
from trialwise.stats.binomial import binomial_weight, find_end, likely_counts, upper_z
from trialwise.stats.paired import (
    OUTCOMES,
    PairCounts,
    PairedCharacteristic,
    PairedOutcome,
    Statement,
    tango_score,
)
from trialwise.stats.paired_rules import PairedRule
from trialwise.stats.result_types import Interval
from trialwise.validation import require_rate

# --- Exact tests and intervals of a paired difference ---------------------------------------------
#
# Exact tests and intervals of a paired difference at a fixed number of pairs.
#
# The difference Δ is B's rate minus A's: the chance b that only B passes a pair minus the chance a
# that only A does. Tables are ordered by Tango's lower limit of the difference, which is
# approximate. The test of Δ ≤ δ takes the largest probability, over the unknown rate d = a + b of
# discordant pairs, of a table that comes no later in this order than the one seen. It is
# unconditional and exact, and so is the limit that inverts it (Lloyd and Moldovan 2007, "Exact
# one-sided confidence limits for the difference between two correlated proportions").
#
# Why the largest probability is proven. With δ fixed the three chances are linear in d, so each
# pair contributes a score u to the likelihood, and the second derivative of P(R) in d is E[1_R · 2
# M] with M the sum of u_i u_j over i < j. M has mean 0 and the variance N(N−1)/2 · I², where I =
# 1/(4a) + 1/(4b) + 1/(1−d) is the information of one pair. So where P(R) has an inner maximum P*, a
# point at a distance of at most h/2 has at least P* − √(P*(1−P*)) · √(N(N−1)/2) · I · (h/2)²: the
# greatest value on a fine grid bounds the maximum. At the two ends of the range of d, where I is
# infinite, P(R) is bounded by raising b and lowering a, which makes R likelier.
#
# R holds every table with more wins or fewer losses than one that it holds. So P(R) rises with the
# difference: the test of Δ = δ is one of Δ ≤ δ, and a limit is found by bisection.

#: The proven maximum exceeds the greatest value on the grid by about this share at the level.
_SLACK = 0.025
#: How wide the two ends of the range of d are, in standard deviations of a count.
_EDGE = 0.01
#: A coarse search looks at every N points of the grid.
_STRIDE = 6
#: How finely an end of an interval is found; it is rounded outward.
_RESOLUTION = 1e-4
#: Where the differences up to a margin are divided, and which parts of a level are tried, as
#: multiples of what the two sides would use together.
_BETWEEN, _TRIED = 2 / 3, (1.0, 0.92)
#: Tables whose limits differ by less come at the same place.
_TIE = 1e-9


def list_limits(pairs: int, difference: float, least: float) -> list[int]:
    """Return, for each number of wins, the most losses whose score is at least `least`, or −1.

    More wins never allow fewer losses: the region is closed under more wins and fewer losses.
    """
    limits, most = [], -1
    for wins in range(pairs + 1):
        while most < pairs - wins and tango_score(wins, most + 1, pairs, difference) >= least:
            most += 1
        limits.append(min(most, pairs - wins))
    return limits


def region_chance(limits: Sequence[int], pairs: int, only_a: float, only_b: float) -> float:
    """Return the probability of at most limits[w] losses with w wins, over all w."""
    if only_b >= 1:
        return float(limits[pairs] >= 0)
    share = min(1.0, only_a / (1 - only_b))
    mean, spread = pairs * only_b, 8.5 * math.sqrt(pairs * only_b * (1 - only_b)) + 12
    first, last = max(0, int(mean - spread)), min(pairs, int(mean + spread))
    while first <= last and limits[first] < 0:
        first += 1
    if first > last:
        return 0.0
    odds_b = only_b / (1 - only_b)
    weight = binomial_weight(first, pairs, only_b, 1 - only_b) if only_b else float(first == 0)
    if share >= 1 or share <= 0:
        total = 0.0
        for wins in range(first, last + 1):
            total += weight * (share <= 0 or limits[wins] >= pairs - wins)
            weight *= (pairs - wins) * odds_b / (wins + 1)
        return total
    rest, odds = pairs - first, share / (1 - share)
    most = limits[first]
    # mass = P(exactly `most` losses) and below = P(at most `most` losses) among the other pairs.
    mass, below = _cumulate(most, rest, share)
    total = 0.0
    for wins in range(first, last + 1):
        limit = limits[wins]
        while most < limit:
            mass *= (rest - most) * odds / (most + 1)
            most += 1
            below += mass
        if limit >= rest:
            total += weight
        else:
            total += weight * below
        weight *= (pairs - wins) * odds_b / (wins + 1)
        # With one pair fewer, P(at most k) grows by the share times P(exactly k).
        if rest > most:
            mass *= (rest - most) / (rest * (1 - share))
            below += share * mass
            rest -= 1
        else:
            rest -= 1
            most = min(most, rest)
            mass, below = share**rest if most == rest else mass, 1.0
    return total


def _cumulate(most: int, size: int, rate: float) -> tuple[float, float]:
    """Return P(exactly k) and P(at most k) of a binomial count."""
    if most > size:
        return 0.0, 1.0
    mass = binomial_weight(most, size, rate, 1 - rate)
    total, term, k, odds = mass, mass, most, (1 - rate) / rate
    while k > 0 and term > 1e-18 * total:
        term *= k * odds / (size - k + 1)
        k -= 1
        total += term
    return mass, min(1.0, total)


class _Nuisance:
    """The rates of discordant pairs that are looked at for one difference."""

    def __init__(self, pairs: int, difference: float, slack: float) -> None:
        self.pairs, self.difference, self.slack = pairs, difference, slack
        least = abs(difference)
        self.least = least
        self.first = min(1.0, least + _EDGE * math.sqrt(max(least, 1 / pairs) / pairs))
        self.last = max(self.first, 1 - _EDGE / math.sqrt(pairs))
        self.points = self._list_points()

    def _list_points(self) -> list[float]:
        """Return rates so close that `slack` bounds what lies between two of them."""
        scale = 2 * math.sqrt(self.slack) * (self.pairs * max(1, self.pairs - 1) / 2) ** -0.25
        points, d = [self.first], self.first
        while d < self.last:
            step = scale / math.sqrt(self._information(d))
            # The information is convex in d, so that its larger end bounds it in between.
            ahead = min(self.last, d + step)
            step = min(step, scale / math.sqrt(self._information(ahead)))
            d = min(self.last, d + step)
            points.append(d)
        return points

    def _information(self, d: float) -> float:
        only_a, only_b = (d - self.difference) / 2, (d + self.difference) / 2
        rest = max(1 - d, 1e-300)
        return 1 / (4 * max(only_a, 1e-300)) + 1 / (4 * max(only_b, 1e-300)) + 1 / rest

    def chance(self, limits: Sequence[int], d: float) -> float:
        return region_chance(
            limits,
            self.pairs,
            max(0.0, (d - self.difference) / 2),
            max(0.0, (d + self.difference) / 2),
        )

    def edge(self, limits: Sequence[int], low: float, high: float) -> float:
        """Return a bound between two rates, by the fewest losses and the most wins."""
        only_a, only_b = (low - self.difference) / 2, (high + self.difference) / 2
        return region_chance(limits, self.pairs, max(0.0, only_a), min(1.0, only_b))

    def exceeds(self, limits: Sequence[int], level: float) -> bool:
        """Whether a coarse look finds a probability above a level."""
        middle = self.points[len(self.points) // 2]
        return any(self.chance(limits, d) > level for d in (middle, *self.points[::_STRIDE]))

    def proves(self, limits: Sequence[int], level: float) -> bool:
        """Whether no rate has a probability above a level."""
        # A point as high as this leaves room for more than the level beside it.
        high = level - math.sqrt(level * (1 - level)) * self.slack
        return not self.exceeds(limits, high) and self.bound(limits) <= level

    def bound(self, limits: Sequence[int]) -> float:
        """Return a bound on the probability for all rates."""
        best = max(self.chance(limits, d) for d in self.points)
        square = self.slack * self.slack
        middle = 2 * best + square
        inner = middle + math.sqrt(max(0.0, middle * middle - 4 * (1 + square) * best * best))
        return min(
            1.0,
            max(
                inner / (2 * (1 + square)),
                self.edge(limits, self.least, self.first),
                self.edge(limits, self.last, 1.0),
            ),
        )


def bound_chance(limits: Sequence[int], pairs: int, difference: float, level: float) -> float:
    """Return a proven bound on the chance of a region, for all arms with at most this difference.

    It is tight where it is near the level.
    """
    if difference >= 1 or limits[0] >= pairs:
        return 1.0
    if difference <= -1:
        return float(limits[0] >= pairs)
    slack = _SLACK * math.sqrt(min(level, 0.25))
    return _Nuisance(pairs, difference, slack).bound(limits)


def order_tables(wins: int, losses: int, pairs: int, level: float) -> list[int]:
    """Return the region, as `list_limits` does, of all tables that come no later than this one."""
    z = upper_z(level)
    seen = (wins - losses) / pairs
    # Where the score falls to z, rounded down: Tango's lower limit. Ties count as no later.
    limit = find_end(seen, -1.0, lambda delta: tango_score(wins, losses, pairs, delta) < z)
    limits = list_limits(pairs, limit - _TIE, z)
    for more in range(wins, pairs - losses + 1):
        limits[more] = max(limits[more], losses)
    return limits


def find_low_end(wins: int, losses: int, pairs: int, level: float) -> float:
    """Return the lower end of the interval of the difference, wrong in at most this share."""
    limits = order_tables(wins, losses, pairs, level)
    if limits[0] >= pairs:
        return -1.0
    slack = _SLACK * math.sqrt(level)

    def is_small(difference: float, *, prove: bool) -> bool:
        nuisance = _Nuisance(pairs, difference, slack)
        return nuisance.proves(limits, level) if prove else not nuisance.exceeds(limits, level)

    return _search(is_small, -1.0, 1.0)


def _search(is_small: Callable[..., bool], low: float, high: float) -> float:
    """Return the largest number, rounded down, at which a rising chance is proven small.

    A cheap look finds it nearly; where the proof fails there, it is tried a little lower.
    """
    least = low
    low = find_end(high, low, lambda at: not is_small(at, prove=False), _RESOLUTION)
    back = _RESOLUTION
    while low > least and not is_small(low, prove=True):
        low = max(least, low - back)
        back *= 1.5
    return low


@lru_cache(maxsize=256)
def find_region(pairs: int, difference: float, level: float) -> tuple[int, ...]:
    """Return the tables that show a difference above this one, as `list_limits` does.

    They do so wrongly with a probability of at most the level.
    """
    nuisance = _Nuisance(pairs, difference, _SLACK * math.sqrt(level))
    z = upper_z(level)

    def is_small(below: float, *, prove: bool) -> bool:
        limits = list_limits(pairs, -below, z)
        return nuisance.proves(limits, level) if prove else not nuisance.exceeds(limits, level)

    # The limit that is compared with the difference is nearly exact: it is off by a few pairs.
    reach = min(1.0, 6 / pairs + 1 / math.sqrt(pairs))
    least = -difference - reach
    below = _search(is_small, least, -difference + reach / 4)
    if below == least and not is_small(below, prove=True):
        return (-1,) * (pairs + 1)
    return tuple(list_limits(pairs, -below, z))


@lru_cache(maxsize=64)
def _find_outer_region(pairs: int, margin: float, level: float) -> tuple[int, ...]:
    """Return the tables that show a difference above the margin; one below −margin counts too.

    The tables that show the other are their mirror images. For arms that differ by no more than the
    margin, both together have a probability of at most the level. Between two differences the one
    kind is at most as likely as at the greater of them, and the other as at the smaller. Half of
    the level is always right for each side; often a side can have more, since the other uses less.
    """
    between = _BETWEEN * margin

    def is_kept(low: float, high: float) -> bool:
        above, below = (bound_chance(region, pairs, d, level) for d in (high, -low))
        return above + below <= level

    region = find_region(pairs, margin, level)
    other = bound_chance(region, pairs, -between, level)
    for times in _TRIED:
        part = times * level * level / (level + other)
        if part <= level / 2:
            break
        region = find_region(pairs, margin, part)
        if is_kept(between, margin) and is_kept(0.0, between):
            return region
    return find_region(pairs, margin, level / 2)


# --- The rule -------------------------------------------------------------------------------------

#: Counts rarer than this, relative to the likeliest, are left out of the chances of a rule.
_NEGLIGIBLE = 1e-15
#: What is kept of a rule besides its tables.
_KEPT = ("question", "alpha", "margin", "max_pairs", "fail_part")


@dataclass(frozen=True, kw_only=True)
class MarginRule(PairedRule):
    """A rule for a question with a margin that decides once, after the planned pairs."""

    max_pairs: int

    @property
    def is_sequential(self) -> bool:
        """Whether the rule may stop before the last pair."""
        return False

    def decide(self, counts: PairCounts) -> PairedOutcome | None:
        """Return what all pairs show, or None before the last one."""
        self.check_size(counts)
        if counts.pairs < self.max_pairs:
            return None
        return self._decide(counts.only_b, counts.only_a)

    def can_show_equivalence(self) -> bool:
        """Return whether arms that never differ are shown to be equivalent; no FAIL is needed."""
        return self._shows(0, 0, (False, -self.margin))

    def find_p_values(self, counts: PairCounts) -> tuple[float, float]:
        """Return the one-sided p-values: of what PASS and of what FAIL refutes."""
        passes, fails = (
            [self._find_chance(counts.only_b, counts.only_a, one) for one in part]
            for part in self.statements
        )
        return max(passes), min(fails)

    def find_interval(self, counts: PairCounts, outcome: PairedOutcome) -> Interval:
        """Return an exact interval of the difference that agrees with the outcome."""
        pairs, wins, losses = counts.pairs, counts.only_b, counts.only_a
        confidence = complement(self.alpha)
        if not pairs:
            return Interval(-1.0, 1.0, confidence=confidence, method="exact, paired")
        # The upper end is minus the lower end of the mirrored difference.
        ends = [
            find_low_end(first, second, pairs, self.alpha / 2)
            for first, second in ((wins, losses), (losses, wins))
        ]
        if outcome != "not shown" or pairs == self.max_pairs:
            # Rounding outward may have moved an end across a limit that was refuted.
            for is_mirrored, limit in {one for part in self.statements for one in part}:
                shown = self._shows(wins, losses, (is_mirrored, limit))
                end = ends[is_mirrored]
                ends[is_mirrored] = max(end, math.nextafter(limit, 2)) if shown else min(end, limit)
        return Interval(ends[0], -ends[1], confidence=confidence, method="exact, paired")

    def characteristic(self, only_a: float, only_b: float) -> PairedCharacteristic:
        """Return the exact chances of each outcome."""
        discordant = require_rate("only_a + only_b", only_a + only_b)
        size, chances = self.max_pairs, dict.fromkeys(self._list_outcomes(), 0.0)
        split = only_b / discordant if discordant else 0.5
        first, weights = likely_counts(size, discordant, negligible=_NEGLIGIBLE)
        for n, weight in enumerate(weights, first):
            fewest, shares = likely_counts(n, split, negligible=_NEGLIGIBLE)
            for wins, share in enumerate(shares, fewest):
                chances[self._decide(wins, n - wins)] += weight * share
        return self.describe(chances, float(size), size * discordant)

    def to_plain(self) -> dict[str, Any]:
        """Return the rule as plain values, fit for JSON, with the tables that decide."""
        limits = sorted({limit for part in self.statements for _, limit in part})
        regions = [[limit, list(self._find_region(limit))] for limit in limits]
        return {
            "kind": "margin",
            **{name: getattr(self, name) for name in _KEPT},
            "regions": regions,
        }

    @staticmethod
    def from_plain(values: Mapping[str, Any]) -> MarginRule:
        """Return the rule that `to_plain` wrote."""
        # The first edition of the rule had no parts.
        rule = MarginRule(**{name: values[name] for name in _KEPT if name in values})
        # The tables that decided once decide again, on every machine.
        rule._regions.update((limit, tuple(region)) for limit, region in values["regions"])
        return rule

    def _list_outcomes(self) -> tuple[PairedOutcome, ...]:
        passing, failing = OUTCOMES[self.question]
        return (passing[0], failing[-1], "not shown")

    def _decide(self, wins: int, losses: int) -> PairedOutcome:
        passing, failing = self.statements
        passes, fails, neither = self._list_outcomes()
        if all(self._shows(wins, losses, one) for one in passing):
            return passes
        return fails if any(self._shows(wins, losses, one) for one in failing) else neither

    def _shows(self, wins: int, losses: int, statement: Statement) -> bool:
        is_mirrored, limit = statement
        first, second = (losses, wins) if is_mirrored else (wins, losses)
        return second <= self._find_region(limit)[first]

    @cached_property
    def _regions(self) -> dict[float, tuple[int, ...]]:
        """The tables that show a difference above a limit, as far as they are known."""
        return {}

    def _find_region(self, limit: float) -> tuple[int, ...]:
        found = self._regions.get(limit)
        if found is None:
            shares = self.fail_part < 1 and limit == self.margin
            find = _find_outer_region if shares else find_region
            found = self._regions[limit] = find(self.max_pairs, limit, self.alpha / 2)
        return found

    def _find_chance(self, wins: int, losses: int, statement: Statement) -> float:
        """Return the p-value of "the difference is at most the limit"."""
        level, (is_mirrored, limit) = self.alpha / 2, statement
        first, second = (losses, wins) if is_mirrored else (wins, losses)
        tables = order_tables(first, second, self.max_pairs, level)
        found = bound_chance(tables, self.max_pairs, limit, level)
        if limit == self.margin:
            found /= self.fail_part
        shown = self._shows(wins, losses, statement)
        return min(found, level) if shown else max(found, math.nextafter(level, 1))
