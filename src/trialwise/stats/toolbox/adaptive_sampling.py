"""Batches that choose their own size: few rounds without wasted trials.

With c trials side by side a fixed batch of c is quick and wasteful, and one trial at a time is
neither. Here the size of the next batch is part of the optimum: after n trials with f failures,
stop with a verdict or start b ≤ c more, whichever costs least in trials plus a price per round,

    V(n, f) = min{ λ0·L0 [FAIL], λ1·L1 [PASS], min_b (b + price)·Lw + E[V(n + b, f + F_b)] },

with the prices λ of the errors moved until the exact errors are at most alpha and beta. Verdicts
fall only between batches, so nothing about the order of results inside one can bias them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.result_types import Decision
from trialwise.stats.sequential.bound import Hypotheses, fixed_size, resolve_cap
from trialwise.validation import require_count, require_positive, require_rate

_PASS, _FAIL = -1, -2
#: What an INCONCLUSIVE end counts for, in trials, where the cap is too small to decide.
_INCONCLUSIVE, _INCONCLUSIVE_COST = -3, 100.0
_VERDICTS = {_PASS: Decision.PASS, _FAIL: Decision.FAIL, _INCONCLUSIVE: Decision.INCONCLUSIVE}
#: The search starts with damped steps on the two prices and ends with ever smaller probes.
_DAMPING = (*(1.0,) * 5, *(0.4,) * 5, *(0.15,) * 5)
_PROBES = (0.06, 0.02, 0.007)
_DIRECTIONS = (
    *((x, y, 0) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y),
    *((x, y, z) for x in (-1, 0) for y in (-1, 0) for z in (-3, 3)),
)
#: How far the exact errors may stand above the nominal ones: the rounding of a sum of doubles.
_SLACK = 1e-12

Actions = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCharacteristic:
    """What an adaptive design does at one true rate, exactly."""

    rate: float
    passes: float
    fails: float
    mean_trials: float
    mean_rounds: float

    @property
    def inconclusive(self) -> float:
        """P(the cap is reached undecided)."""
        return max(0.0, 1 - self.passes - self.fails)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveDesign:
    """When to stop and how many trials to start next, for results that arrive in batches.

    Examples
    --------
    >>> design = adaptive_design(0.90, 0.80, concurrency=8)
    >>> design.next_batch(0, 0)
    8
    >>> curve = design.characteristic(0.90)
    >>> curve.fails <= 0.05, curve.mean_rounds < 6
    (True, True)
    """

    p0: float
    p1: float
    alpha: float
    beta: float
    cap: int
    concurrency: int
    round_price: float
    """What one more round counted for, in trials."""
    actions: tuple[tuple[int, ...], ...]
    """For n trials and f failures: the next batch, −1 PASS, −2 FAIL, −3 INCONCLUSIVE."""

    def next_batch(self, trials: SupportsIndex, failures: SupportsIndex) -> int:
        """How many trials to start next; 0 once the design has decided."""
        return max(self._action(trials, failures), 0)

    def decide(self, trials: SupportsIndex, failures: SupportsIndex) -> Decision | None:
        """The verdict after a batch, or None to go on."""
        return _VERDICTS.get(self._action(trials, failures))

    def characteristic(self, p: float) -> AdaptiveCharacteristic:
        """Exact P(PASS), P(FAIL), mean trials and mean rounds at true rate p."""
        return _characteristic([list(row) for row in self.actions], require_rate("p", p))

    def _action(self, trials: SupportsIndex, failures: SupportsIndex) -> int:
        n, f = require_count("trials", trials), require_count("failures", failures)
        if n > self.cap:
            raise InvalidArgument("trials", trials, f"be at most the cap ({self.cap})")
        if f > n:
            raise InvalidArgument("failures", failures, f"be at most trials ({n})")
        row = self.actions[n]
        return row[f] if f < len(row) else _FAIL


def adaptive_design(
    p0: float,
    p1: float,
    *,
    alpha: float = 0.05,
    beta: float = 0.20,
    cap: int | None = None,
    concurrency: SupportsIndex = 8,
    round_price: float | None = None,
) -> AdaptiveDesign:
    """The adaptive batches with the fewest expected trials plus priced rounds, errors exact.

    Parameters
    ----------
    p0, p1 : float
        The good and the bad rate.
    alpha, beta : float
        P(FAIL) at p0 and P(PASS) at p1, at most.
    cap : int, optional
        The most trials; one and a half times the exact fixed sample where none is given.
    concurrency : int
        The largest batch.
    round_price : float, optional
        What a round counts for, in trials; an eighth of the concurrency where none is given.

    Examples
    --------
    >>> adaptive_design(0.90, 0.80, concurrency=8).cap
    117
    """
    hypotheses = Hypotheses.from_numbers(p0, p1, alpha, beta)
    c = require_count("concurrency", concurrency, minimum=1)
    price = c / 8 if round_price is None else require_positive("round_price", round_price)
    needed = fixed_size(p0, p1, alpha=alpha, beta=beta).trials
    most = -(-3 * needed // 2) if cap is None else resolve_cap(hypotheses, cap, 1)
    problem = _Problem(hypotheses, most, c, price, three_way=most < needed)
    actions = problem.solve()
    return AdaptiveDesign(
        p0=hypotheses.p0,
        p1=hypotheses.p1,
        alpha=hypotheses.alpha,
        beta=hypotheses.beta,
        cap=most,
        concurrency=c,
        round_price=price,
        actions=tuple(tuple(row) for row in actions),
    )


class _Problem:
    """One search: likelihoods are kept relative to a rate between p0 and p1, so none underflows."""

    def __init__(
        self, hypotheses: Hypotheses, cap: int, concurrency: int, price: float, *, three_way: bool
    ) -> None:
        self._hypotheses, self._cap, self._batch, self._price = hypotheses, cap, concurrency, price
        self._three_way = three_way
        r = (hypotheses.p0 + hypotheses.p1) / 2
        self._keep, self._miss = r, 1 - r
        bad = 1 - hypotheses.p1
        #: More failures than this are a FAIL in any rule worth having.
        self._most = math.ceil(cap * bad + 5 * math.sqrt(cap * bad * hypotheses.p1)) + concurrency
        self._good = self._likelihoods(hypotheses.p0)
        self._bad = self._likelihoods(hypotheses.p1)

    def _likelihoods(self, p: float) -> list[list[float]]:
        """L(n, f) relative to the reference rate, one cell beyond the failures that are kept."""
        success, failure = math.log(p / self._keep), math.log((1 - p) / self._miss)
        return [
            [math.exp((n - f) * success + f * failure) for f in range(min(n, self._most) + 2)]
            for n in range(self._cap + 1)
        ]

    def solve(self) -> Actions:
        """Move the prices until both errors are just met; keep the best rule that meets them."""
        target = math.log(self._hypotheses.alpha), math.log(self._hypotheses.beta)
        at = [math.log(200.0), math.log(100.0)]
        fee = math.log(self._price)
        best: tuple[float, Actions, tuple[float, float, float]] | None = None

        def probe(prices: tuple[float, float, float]) -> tuple[float, float]:
            nonlocal best
            actions = self._actions(*map(math.exp, prices))
            good = _characteristic(actions, self._hypotheses.p0)
            bad = _characteristic(actions, self._hypotheses.p1)
            errors = good.fails, bad.passes
            if self._keeps_errors(errors):
                cost = (self._cost(good) + self._cost(bad)) / 2
                if best is None or cost < best[0] - 1e-12:
                    best = cost, actions, prices
            return errors

        for damping in _DAMPING:
            errors = probe((at[0], at[1], fee))
            for i in (0, 1):
                at[i] += damping * (math.log(max(errors[i], 1e-12)) - target[i])
        while best is None:
            at = [at[0] + 0.02, at[1] + 0.02]
            probe((at[0], at[1], fee))
        for size in _PROBES:
            improved = True
            while improved:
                before, (x, y, z) = best[0], best[2]
                for dx, dy, dz in _DIRECTIONS:
                    probe((x + dx * size, y + dy * size, z + dz * size))
                improved = best[0] < before
        return best[1]

    def _keeps_errors(self, errors: tuple[float, float]) -> bool:
        return (
            errors[0] <= self._hypotheses.alpha + _SLACK
            and errors[1] <= self._hypotheses.beta + _SLACK
        )

    def _cost(self, curve: AdaptiveCharacteristic) -> float:
        open_end = _INCONCLUSIVE_COST * curve.inconclusive if self._three_way else 0.0
        return curve.mean_trials + self._price * curve.mean_rounds + open_end

    def _actions(self, lam0: float, lam1: float, price: float) -> Actions:
        """The cheapest action in every state at given prices, by backward induction."""
        rolled: dict[int, list[float]] = {}
        actions: Actions = []
        for n in range(self._cap, -1, -1):
            width = min(n, self._most) + 1
            good, bad = self._good[n], self._bad[n]
            costs = [min(lam1 * bad[f], lam0 * good[f]) for f in range(width)]
            chosen = [_PASS if lam1 * bad[f] <= lam0 * good[f] else _FAIL for f in range(width)]
            if self._three_way and n == self._cap:
                self._leave_open(costs, chosen)
            for m, values in rolled.items():
                after = self._roll(values, width, lam0 * self._good[n + 1][width])
                rolled[m] = after
                fee = (m - n + price) / 2
                for f in range(width):
                    cost = fee * (good[f] + bad[f]) + after[f]
                    if cost < costs[f]:
                        costs[f], chosen[f] = cost, m - n
            rolled.pop(n + self._batch, None)
            rolled[n] = costs
            actions.append(chosen)
        return actions[::-1]

    def _leave_open(self, costs: list[float], chosen: list[int]) -> None:
        good, bad = self._good[self._cap], self._bad[self._cap]
        for f, cost in enumerate(costs):
            open_end = _INCONCLUSIVE_COST * (good[f] + bad[f]) / 2
            if open_end < cost:
                costs[f], chosen[f] = open_end, _INCONCLUSIVE

    def _roll(self, values: list[float], width: int, beyond: float) -> list[float]:
        """The expectation one trial earlier; beyond the failures kept, the cost of a FAIL."""
        p, q = self._keep, self._miss
        padded = values if len(values) > width else [*values, beyond]
        return [p * padded[f] + q * padded[f + 1] for f in range(width)]


def _characteristic(actions: Actions, p: float) -> AdaptiveCharacteristic:
    """Forward over the states between batches, each reached with an exact probability."""
    reached: list[dict[int, float]] = [{} for _ in actions]
    reached[0][0] = 1.0
    ends = {_PASS: 0.0, _FAIL: 0.0, _INCONCLUSIVE: 0.0}
    trials = rounds = 0.0
    spreads: dict[int, list[float]] = {}
    for n, row in enumerate(actions):
        for f, weight in reached[n].items():
            size = row[f]
            if size < 0:
                ends[size] += weight
                continue
            trials += weight * size
            rounds += weight
            if size not in spreads:
                spreads[size] = [
                    math.comb(size, j) * (1 - p) ** j * p ** (size - j) for j in range(size + 1)
                ]
            following = reached[n + size]
            for j, chance in enumerate(spreads[size]):
                following[f + j] = following.get(f + j, 0.0) + weight * chance
    return AdaptiveCharacteristic(
        rate=p, passes=ends[_PASS], fails=ends[_FAIL], mean_trials=trials, mean_rounds=rounds
    )
