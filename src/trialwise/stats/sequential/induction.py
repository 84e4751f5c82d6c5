"""Backward induction: the best rule when a wrong verdict has a price.

With a price λ0 on FAIL at p0 and λ1 on PASS at p1 the best rule is a matter of comparing, state by
state, the cost of stopping with the cost of going on. Everything is divided by the likelihood of
the state under p0, which keeps ten thousand trials inside the range of a double:

    U(n, f) = min{ λ0 [FAIL], λ1·ρ1 [PASS], κ·ρw [undecided, at the last look only],
                   ρw + p0·U(n+1, f) + q0·U(n+1, f+1) [go on] },   ρ = likelihood / likelihood at p0

Only a band of states is visited. From a state whose every continuation passes at the next look (or
fails there) going on is pointless, so the states that may go on at one look lie within one step of
those at the next: exact, and as narrow as the rule itself. Plain lists are fast enough for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from trialwise.stats.sequential.hypotheses import Mix
from trialwise.stats.sequential.walks import Rule, monotone, never

#: Rates are kept this far from 0 and 1, where a likelihood ratio is infinite.
EDGE = 1e-10

#: Where a verdict costs less than this share of a trial, the last look may as well give it: the
#: states beyond are reached so rarely that they cannot move the value in its twelfth digit.
NEGLIGIBLE = 1e-13


class Prices(NamedTuple):
    """What the two errors cost, in trials."""

    fail: float
    """λ0, for a FAIL at p0."""
    passed: float
    """λ1, for a PASS at p1."""


class Component(NamedTuple):
    """One rate of the mix: its weight and its log likelihood ratios to p0."""

    weight: float
    success: float
    failure: float
    powers: list[float]
    """The ratio of one more failure in place of a success, to the power 0, 1, …; grown on use."""

    def powers_to(self, count: int) -> list[float]:
        """The first `count` powers."""
        for j in range(len(self.powers), count):
            self.powers.append(_exp(j * (self.failure - self.success)))
        return self.powers[:count]


class Band(NamedTuple):
    """The states of one look: PASS up to `accept`, FAIL from `reject`, and values in between."""

    look: int
    accept: int
    reject: int
    values: list[float]


@dataclass(frozen=True, slots=True)
class Problem:
    """Two rates to tell apart, when one may look, and what a trial and an open end cost."""

    p0: float
    p1: float
    looks: tuple[int, ...]
    mix: Mix
    undecided: float | None = None
    """The price of an open end at the last look, in trials; None forbids it."""
    cutoff: int | None = None
    """The most failures that PASS at the last look, where that is not for the prices to say."""
    drift: tuple[float, float] = field(init=False)
    """The log likelihood ratio of p0 to p1 of one success and of one failure."""
    constant: float = field(init=False)
    """The weight of p0 itself in the mix, whose likelihood ratio is 1 everywhere."""
    components: tuple[Component, ...] = field(init=False)
    """The other rates of the mix."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "drift", log_ratios(self.p0, self.p1))
        object.__setattr__(self, "constant", sum(w for rate, w in self.mix if rate == self.p0))
        others = ((rate, w) for rate, w in self.mix if rate != self.p0)
        parts = (Component(w, *log_ratios(rate, self.p0), [1.0]) for rate, w in others)
        object.__setattr__(self, "components", tuple(parts))

    @property
    def horizon(self) -> int:
        """The last look."""
        return self.looks[-1]

    def bad(self, n: int, f: int) -> float:
        """ρ1, the likelihood of a state under p1 relative to p0."""
        return _exp(-(n - f) * self.drift[0] - f * self.drift[1])

    def weight(self, n: int, f: int) -> float:
        """ρw, the likelihood of a state under the mix relative to p0."""
        parts = (c.weight * _exp((n - f) * c.success + f * c.failure) for c in self.components)
        return self.constant + sum(parts)

    def weights(self, n: int, low: int, count: int) -> list[float]:
        """ρw for `count` states from `low` failures on, after n trials."""
        row = [self.constant] * count
        for part in self.components:
            first = part.weight * _exp((n - low) * part.success + low * part.failure)
            powers = part.powers_to(count)
            row = [x + first * power for x, power in zip(row, powers, strict=True)]
        return row


def log_ratios(p: float, r: float) -> tuple[float, float]:
    """The log likelihood ratio of p to r of one success and of one failure."""
    p, r = (min(max(x, EDGE), 1 - EDGE) for x in (p, r))
    return math.log(p / r), math.log((1 - p) / (1 - r))


def backward(problem: Problem, prices: Prices) -> tuple[float, Rule]:
    """The least cost U(0, 0) at these two prices, and a rule that attains it."""
    rule = never(problem.horizon)
    band = _last_look(problem, prices)
    rule.accept[band.look], rule.reject[band.look] = band.accept, band.reject
    for look in problem.looks[-2::-1]:
        band = _look(problem, prices, look, band)
        rule.accept[look], rule.reject[look] = band.accept, band.reject
    first = problem.looks[0]
    if first > 0:
        value = _roll_back(problem, _values(problem, prices, band, range(first + 1)), 0, first, 0)[
            0
        ]
    else:
        value = band.values[0] if band.values else min(prices)
    return value, monotone(rule, problem.looks)


def _last_look(problem: Problem, prices: Prices) -> Band:
    n, price = problem.horizon, problem.undecided
    middle = _crossing(problem, prices, n) if problem.cutoff is None else problem.cutoff
    if price is None:
        return Band(n, middle, middle + 1, [])

    def left_open(f: int) -> bool:
        cheapest = min(prices.fail, prices.passed * problem.bad(n, f))
        if price > 0:
            return price * problem.weight(n, f) < cheapest
        # A free open end is open wherever a verdict costs anything to speak of.
        return min(cheapest, prices.passed, prices.fail / problem.bad(n, f)) > NEGLIGIBLE

    # The states left open surround the crossing, where the cheaper verdict costs most.
    accept, reject = middle, middle + 1
    while accept >= 0 and left_open(accept):
        accept -= 1
    while reject <= n and left_open(reject):
        reject += 1
    row = problem.weights(n, accept + 1, reject - accept - 1)
    return Band(n, accept, reject, [price * w for w in row])


def _look(problem: Problem, prices: Prices, n: int, after: Band) -> Band:
    """The verdicts of a look, given those of the next."""
    gap = after.look - n
    low, high = max(0, after.accept - gap + 1), min(n, after.reject - 1)
    ahead = _values(problem, prices, after, range(low, high + gap + 1))
    going_on = _roll_back(problem, ahead, n, after.look, low) if low <= high else []

    def stops(j: int) -> bool:
        return going_on[j] >= min(prices.fail, prices.passed * problem.bad(n, low + j))

    first, last = 0, len(going_on) - 1
    while first <= last and stops(first):
        first += 1
    while last >= first and stops(last):
        last -= 1
    if first > last:
        middle = _crossing(problem, prices, n)
        return Band(n, middle, middle + 1, [])
    return Band(n, low + first - 1, low + last + 1, going_on[first : last + 1])


def _roll_back(
    problem: Problem, values: list[float], look: int, following: int, low: int
) -> list[float]:
    """Values of going on at a look, from those at the next: no verdict in between."""
    p, q = problem.p0, 1 - problem.p0
    for n in range(following - 1, look - 1, -1):
        row = problem.weights(n, low, len(values) - 1)
        values = [w + (p * x + q * y) for w, x, y in zip(row, values, values[1:], strict=False)]
    return values


def _values(problem: Problem, prices: Prices, band: Band, failures: range) -> list[float]:
    """The values of some states of a look, verdicts included."""
    passed = range(failures.start, min(band.accept + 1, failures.stop))
    failed = range(max(band.reject, failures.start), failures.stop)
    start = max(0, failures.start - band.accept - 1)
    stop = len(band.values) - max(0, band.reject - failures.stop)
    return [
        *(prices.passed * problem.bad(band.look, f) for f in passed),
        *band.values[start : max(start, stop)],
        *([prices.fail] * len(failed)),
    ]


def _crossing(problem: Problem, prices: Prices, n: int) -> int:
    """The most failures at which PASS is no dearer than FAIL, −1 … n."""
    success, failure = problem.drift
    ratio = math.log(prices.fail / prices.passed)
    return min(n, max(-1, math.floor((ratio + n * success) / (success - failure))))


def _exp(x: float) -> float:
    # Beyond the range of a double a state is decided whatever its exact likelihood.
    return math.exp(min(x, 700.0))
