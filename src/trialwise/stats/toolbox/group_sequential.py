"""Planned looks: how a false-alarm budget is spent over them, exactly.

Its own module because here the looks are fixed beforehand and the boundaries follow from them. A
spending function says how much of alpha may be gone by each look; the boundaries are the integer
counts that spend at most that, by a forward recursion over the number of failures. No normal
approximation stands between the budget and the boundary, so what a coarse count cannot spend at
one look is carried to the next and nothing is overspent (companion §8.5).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from trialwise.decimals import RELATIVE_BAND, as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import normal_sf, upper_z
from trialwise.stats.rate_intervals import SIDES, Side
from trialwise.stats.toolbox.binomial_weights import raw_pmfs
from trialwise.validation import require_choice, require_count, require_open_rate, require_rate

if TYPE_CHECKING:
    from fractions import Fraction


Spending: TypeAlias = Literal["obrien-fleming", "pocock", "linear"]
"""How fast alpha is spent: late, about evenly in the boundary, or evenly in the trials."""

SPENDINGS: tuple[Spending, ...] = ("obrien-fleming", "pocock", "linear")


@dataclass(frozen=True, slots=True, kw_only=True)
class LookCharacteristic:
    """What a group-sequential design does at one true rate, exactly."""

    rate: float
    fails: float
    """P(FAIL) at any look: the power below p0, the false-alarm probability at p0."""
    fails_by: tuple[float, ...]
    """P(FAIL at this look or before), for each look."""
    mean_trials: float
    """The expected number of trials, the last look's if no look fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSequentialDesign:
    """Which failure counts FAIL at each planned look, and what that spends.

    Made by `group_sequential_boundaries`. A run that reaches the last look without FAIL has not
    shown a rate below p0; it has not shown one above it either.
    """

    p0: float
    alpha: float
    spending: Spending
    looks: tuple[int, ...]
    """Trials at each look."""
    reject: tuple[int, ...]
    """The fewest failures that FAIL at each look; trials + 1: no count does."""
    spent: tuple[float, ...]
    """What the spending function allows by each look."""
    false_alarm: tuple[float, ...]
    """P(FAIL by this look) at the rate p0, exactly: the most under the null, and within `spent`."""

    @property
    def can_fail(self) -> bool:
        """Whether any look can FAIL at all: too few trials leave alpha unspendable."""
        return any(r <= n for n, r in zip(self.looks, self.reject, strict=True))

    def operating_characteristic(self, p: float) -> LookCharacteristic:
        """P(FAIL) by each look and the expected trials at a true rate p from 0 to 1.

        Examples
        --------
        >>> design = group_sequential_boundaries(0.9, (20, 40, 60), spending="pocock")
        >>> curve = design.operating_characteristic(0.75)
        >>> round(curve.fails, 3), round(curve.mean_trials, 1)
        (0.92, 38.0)
        """
        rate = require_rate("p", p)
        stopped: list[float] = []
        alive, before = [1.0], 0
        for n, r in zip(self.looks, self.reject, strict=True):
            alive = _convolve(alive, raw_pmfs(n - before, 1 - rate))
            stopped.append(math.fsum(alive[r:]))
            alive, before = alive[:r], n
        going_on = math.fsum(alive)
        return LookCharacteristic(
            rate=rate,
            fails=math.fsum(stopped),
            fails_by=tuple(math.fsum(stopped[: k + 1]) for k in range(len(stopped))),
            mean_trials=math.fsum(n * w for n, w in zip(self.looks, stopped, strict=True))
            + self.looks[-1] * going_on,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeekingError:
    """How often a fixed-n interval, read at every look, has excluded the true rate by then."""

    p0: float
    confidence: float
    side: Side
    looks: tuple[int, ...]
    excluded_by: tuple[float, ...]
    """P(p0 was outside the interval at this look or before), for each look."""

    @property
    def total(self) -> float:
        """P(p0 was outside the interval at any look)."""
        return self.excluded_by[-1]


def spend(fraction: float, *, alpha: float = 0.05, kind: Spending = "obrien-fleming") -> float:
    """How much of alpha may be spent by the time this fraction of the trials is done.

    O'Brien–Fleming type: 2(1 − Φ(z/√t)), z the upper alpha/2 point. Pocock type:
    alpha · log(1 + (e − 1)t). Linear: alpha · t. Each is 0 at t = 0 and alpha at t = 1.

    Parameters
    ----------
    fraction : float
        t, from 0 to 1: trials so far over the trials of the last look.
    alpha : float
        The false-alarm probability over all looks together, strictly between 0 and 1.
    kind : {"obrien-fleming", "pocock", "linear"}
        The first keeps almost all of alpha for the end, where a fixed design would spend it; the
        second spends early, for a chance to stop early.

    References
    ----------
    Lan & DeMets 1983; O'Brien & Fleming 1979; Pocock 1977; companion §8.5.

    Examples
    --------
    >>> [round(spend(t, kind="obrien-fleming"), 4) for t in (0.25, 0.5, 0.75, 1)]
    [0.0001, 0.0056, 0.0236, 0.05]
    >>> [round(spend(t, kind="pocock"), 4) for t in (0.25, 0.5, 0.75, 1)]
    [0.0179, 0.031, 0.0414, 0.05]
    """
    t = require_rate("fraction", fraction)
    return _spend(t, require_open_rate("alpha", alpha), require_choice("kind", kind, SPENDINGS))


def group_sequential_boundaries(
    p0: float, looks: Sequence[int], *, alpha: float = 0.05, spending: Spending = "obrien-fleming"
) -> GroupSequentialDesign:
    """The failure counts that FAIL at planned looks, for H0: rate ≥ p0, with exact false alarms.

    At each look the boundary is the fewest failures with P_p0(FAIL by now) ≤ spend(n/N, alpha),
    the earlier boundaries held. More failures at any look only bring FAIL nearer, so p0 is the
    worst rate of the null. To show a rate *above* p0 (compliance), mirror the problem: pass
    1 − p0 and read "failures" as successes.

    Parameters
    ----------
    p0 : float
        The threshold, strictly between 0 and 1.
    looks : sequence of int
        The trials at each look, rising; the last is the end. They are planned, not chosen by the
        data: for looks whenever one likes there is `e_process`.
    alpha : float
        The false-alarm probability over all looks together, strictly between 0 and 1.
    spending : {"obrien-fleming", "pocock", "linear"}
        As in `spend`.

    Examples
    --------
    >>> design = group_sequential_boundaries(0.9, (20, 40, 60), spending="pocock")
    >>> design.reject
    (6, 9, 11)
    >>> [round(x, 4) for x in design.false_alarm]
    [0.0113, 0.0223, 0.0442]
    """
    threshold = require_open_rate("p0", p0)
    level = require_open_rate("alpha", alpha)
    kind = require_choice("spending", spending, SPENDINGS)
    counts = _check_looks(looks)
    reject: list[int] = []
    spent: list[float] = []
    gone: list[float] = []
    alive, before = [1.0], 0
    for n in counts:
        spent.append(_spend(n / counts[-1], level, kind))
        alive = _convolve(alive, raw_pmfs(n - before, 1 - threshold))
        budget = _Budget(threshold, level, kind, counts, tuple(reject), spent[-1], math.fsum(gone))
        r = _fewest_failures(alive, n, budget)
        reject.append(r)
        gone.append(math.fsum(alive[r:]))
        alive, before = alive[:r], n
    return GroupSequentialDesign(
        p0=threshold,
        alpha=level,
        spending=kind,
        looks=counts,
        reject=tuple(reject),
        spent=tuple(spent),
        false_alarm=tuple(math.fsum(gone[: k + 1]) for k in range(len(gone))),
    )


def peeking_error(
    p0: float, looks: Sequence[int], *, confidence: float = 0.95, side: Side = "two-sided"
) -> PeekingError:
    """How often a Wilson interval, read at every look as if it were the only one, excludes p0.

    The rate *is* p0, so each exclusion is a wrong verdict, and stopping at the first is what "not
    sure yet, run a few more" amounts to. Exact, by a forward recursion between the interval's
    limits (s − n p0)² ≤ z² n p0 (1 − p0), which is where Wilson's interval holds p0.

    Parameters
    ----------
    p0 : float
        The true rate and the threshold, strictly between 0 and 1.
    looks : sequence of int
        The trials at each look, rising.
    confidence : float
        Of each single interval, strictly between 0 and 1.
    side : {"two-sided", "lower", "upper"}
        Which bound is read: "lower" excludes p0 by lying above it, "upper" by lying below.

    Examples
    --------
    >>> result = peeking_error(0.8, range(30, 201))
    >>> round(result.excluded_by[0], 3), round(result.total, 3)
    (0.036, 0.259)
    """
    rate = require_open_rate("p0", p0)
    level = require_open_rate("confidence", confidence)
    kind = require_choice("side", side, SIDES)
    counts = _check_looks(looks)
    z = upper_z((1 - level) / (2 if kind == "two-sided" else 1))
    excluded: list[float] = []
    alive, low, before, total = [1.0], 0, 0, 0.0
    for n in counts:
        alive = _convolve(alive, raw_pmfs(n - before, rate))
        spread = z * math.sqrt(n * rate * (1 - rate))
        first = 0 if kind == "lower" else math.ceil(n * rate - spread)
        last = n if kind == "upper" else math.floor(n * rate + spread)
        start, stop = max(first - low, 0), max(last + 1 - low, 0)
        total += math.fsum(alive[:start]) + math.fsum(alive[max(stop, start) :])
        alive, low, before = alive[start:stop], low + start, n
        excluded.append(total)
    return PeekingError(
        p0=rate, confidence=level, side=kind, looks=counts, excluded_by=tuple(excluded)
    )


def _spend(t: float, alpha: float, kind: Spending) -> float:
    if t in (0, 1):
        return alpha * t
    match kind:
        case "obrien-fleming":
            return 2 * normal_sf(upper_z(alpha / 2) / math.sqrt(t))
        case "pocock":
            return alpha * math.log1p((math.e - 1) * t)
        case "linear":
            return alpha * t


@dataclass(frozen=True, slots=True)
class _Budget:
    """What may be gone by one look, and whether a false-alarm probability keeps within it."""

    p0: float
    alpha: float
    kind: Spending
    looks: tuple[int, ...]
    reject: tuple[int, ...]
    """The boundaries of the looks before."""
    spent: float
    gone: float

    def allows(self, tail: float, failures: int) -> bool:
        """Whether FAIL from this many failures on, of probability `tail`, is still affordable."""
        total = self.gone + tail
        if abs(total - self.spent) > RELATIVE_BAND * self.spent:
            return total <= self.spent
        # A boundary that spends alpha to the last digit is affordable: decided in rationals.
        done = self.looks[: len(self.reject) + 1]
        exact = _exact_false_alarm(as_written(self.p0), done, (*self.reject, failures))
        return exact <= self._exactly(done[-1])

    def _exactly(self, n: int) -> Fraction:
        from fractions import Fraction

        last = self.looks[-1]
        if self.kind == "linear" or n == last:
            return as_written(self.alpha) * Fraction(n, last)
        return Fraction(self.spent)


def _fewest_failures(alive: list[float], n: int, budget: _Budget) -> int:
    """The boundary at n trials: as low as the budget allows, n + 1 if it allows none."""
    boundary, tail = n + 1, 0.0
    for failures in range(len(alive) - 1, -1, -1):
        tail += alive[failures]
        if not budget.allows(tail, failures):
            break
        boundary = failures
    return boundary


def _exact_false_alarm(p0: Fraction, looks: Sequence[int], reject: Sequence[int]) -> Fraction:
    """P_p0(FAIL by the last of these looks) in whole numbers over the denominator^n."""
    from fractions import Fraction

    passing, every = p0.numerator, p0.denominator
    boundary = dict(zip(looks, reject, strict=True))
    alive, stopped = [1], Fraction(0)
    for n in range(1, looks[-1] + 1):
        alive = [
            x * passing + y * (every - passing)
            for x, y in zip([*alive, 0], [0, *alive], strict=True)
        ]
        if n in boundary:
            stopped += Fraction(sum(alive[boundary[n] :]), every**n)
            alive = alive[: boundary[n]]
    return stopped


def _convolve(alive: Sequence[float], added: Sequence[float]) -> list[float]:
    """The distribution of a count after more trials."""
    total = [0.0] * (len(alive) + len(added) - 1)
    for j, weight in enumerate(added):
        for i, x in enumerate(alive, j):
            total[i] += x * weight
    return total


def _check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    allowed = "be a rising sequence of at least one number of trials"
    try:
        given = tuple(looks)
    except TypeError:
        raise InvalidArgument("looks", looks, allowed) from None
    counts = tuple(require_count(f"looks[{i}]", n, minimum=1) for i, n in enumerate(given))
    if not counts or any(b <= a for a, b in pairwise(counts)):
        raise InvalidArgument("looks", looks, allowed)
    return counts
