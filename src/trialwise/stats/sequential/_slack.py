"""Filling the slack: from the relaxed optimum to the best rule without coins.

The relaxed optimum tosses a coin at one or two states; a rule without coins leaves some of alpha
or beta unused. For any rule

    objective − bound = loss + λ0·(alpha − error0) + λ1·(beta − error1),

where `loss ≥ 0` is what the rule wastes at the relaxed prices. Only flips that lose less than the
present gap can therefore improve a rule. Flips far apart hardly touch each other, so that singles,
pairs and triples of them are found by adding up and then confirmed by the full recursion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, combinations, product

from trialwise.stats.sequential._claim import SLACK, Claim
from trialwise.stats.sequential._flips import Change, Flip, flips
from trialwise.stats.sequential._induction import Prices, Problem, backward
from trialwise.stats.sequential._relaxation import Column, Relaxation, evaluate
from trialwise.stats.sequential._rule import Rule, monotone, orderly, prolonged

__all__ = ["fill_slack", "keeps"]

#: How many flips, those that waste least for their size, are combined in pairs and in triples.
PAIRED, TRIPLED = 80, 24

#: The smallest flips worth combining, as shares of the gap: coarse strokes first, then finer ones.
STROKES = (0.02, 0.001)

#: Shares of the room left free when many flips are made at once.
MARGINS = (0.02, 0.15, 0.5)

#: Predicted improvements confirmed by the full recursion, per step.
CONFIRMED = 12

#: Rules climbed from, besides the best: those of the relaxation, then those one flip away.
STARTS, NEIGHBOURS = 6, 40

#: The search ends when the gap is this share of the objective,
GOOD_ENOUGH = 1e-4
#: or after this many steps, fewer the longer the horizon: a step costs about as much as a walk.
FEWEST_STEPS, MOST_STEPS, STEPS_TIMES_HORIZON = 6, 240, 10_000

#: Prices are raised to find a rule that keeps both errors: by the excess of the error and this
#: much more, doubled each time, and this often (more often on the shorter horizon).
FIRST_EXTRA, TIMES, TIMES_SHORTER = 1e-3, 12, 20


def keeps(claim: Claim, column: Column) -> bool:
    """Whether a rule keeps both errors, up to rounding."""
    return column.error0 <= claim.alpha + SLACK and column.error1 <= claim.beta + SLACK


def fill_slack(
    problem: Problem, relaxed: Relaxation, claim: Claim, *, shorter: Problem | None = None
) -> Column:
    """The best rule without coins that flips can reach from the rules of the relaxation.

    `shorter` is the same problem ending at a look at which a fixed sample would do. When the cap
    is barely enough, only there do high prices lead to a rule that keeps both errors.
    """
    columns = [*relaxed.columns, *_stricter(problem, relaxed, claim)]
    if shorter and not any(keeps(claim, c) for c in columns[1:]):
        short = _stricter(shorter, relaxed, claim, times=TIMES_SHORTER)
        columns.extend(evaluate(problem, prolonged(c.rule, problem.looks)) for c in short)
    best = min((c for c in columns if keeps(claim, c)), key=lambda c: c.objective)
    search = _Search(problem, relaxed, claim, best)
    for start in (*nsmallest(STARTS, columns, key=lambda c: _cost(relaxed, c)), best):
        search.climb(start)
    seen: Column | None = None
    while seen is not search.best and not search.over:
        seen = search.best
        for start in search.neighbours(seen):
            search.climb(start)
            if search.over or search.best is not seen:
                break
    return search.best


@dataclass(slots=True)
class _Search:
    problem: Problem
    relaxed: Relaxation
    claim: Claim
    best: Column
    steps: int = 0

    @property
    def gap(self) -> float:
        return self.best.objective - self.relaxed.bound

    @property
    def over(self) -> bool:
        allowed = min(MOST_STEPS, max(FEWEST_STEPS, STEPS_TIMES_HORIZON // self.problem.horizon))
        return self.gap <= GOOD_ENOUGH * self.best.objective or self.steps >= allowed

    def climb(self, start: Column) -> None:
        """Follow improvements of the best rule from a start, which may break the errors."""
        column: Column | None = start
        while column is not None and not self.over:
            column = self._improved(column)
            self.best = column or self.best

    def neighbours(self, column: Column) -> Iterator[Column]:
        """Rules one flip away and then two, whether or not they keep the errors."""
        near = _thriftiest(self._useful(column), NEIGHBOURS, STROKES[0] * self.gap)
        pairs = (Flip(a.moves + b.moves, a.change) for a, b in combinations(near[:TRIPLED], 2))
        for flip in chain(near, pairs):
            if changed := _flipped(self.problem, column.rule, flip):
                yield changed

    def _improved(self, column: Column) -> Column | None:
        """A better rule than the best, a few flips away from a column."""
        self.steps += 1
        useful, gap = self._useful(column), self.gap
        for stroke in STROKES:
            near = _thriftiest(useful, PAIRED, stroke * gap)
            found = chain(self._fitting(near, column), self._many(near, column))
            likely = nsmallest(CONFIRMED, found, key=lambda flip: flip.change.objective)
            tried = (_flipped(self.problem, column.rule, flip) for flip in likely)
            better = [c for c in tried if c and self._better(c)]
            if better:
                return min(better, key=lambda c: c.objective)
        return None

    def _many(self, thrifty: list[Flip], column: Column) -> Iterator[Flip]:
        """Many flips at once, the thriftiest first: to mend what is broken, then to fill the room.

        Predictions add up less exactly for many flips, so part of the room is left as a margin.
        """
        rooms = self.claim.alpha - column.error0, self.claim.beta - column.error1
        for margin in MARGINS:
            room0, room1 = (room - margin * abs(room) for room in rooms)

            def excess(y: float, z: float, room0: float = room0, room1: float = room1) -> float:
                prices = self.relaxed.prices
                return prices.fail * max(0.0, y - room0) + prices.passed * max(0.0, z - room1)

            moves: dict[tuple[int, int], tuple[int, int, int]] = {}
            x = y = z = 0.0
            for mending, ((move,), (a, b, c)) in product((True, False), thrifty):
                n, up, out = move
                # One flip for each stretch of a boundary: a second would no longer be reached.
                place = (up and column.rule.accept[n] + 2, out and -column.rule.reject[n] - 1)
                now, then = excess(y, z), excess(y + b, z + c)
                if place not in moves and (then < now if mending else a < 0 and then <= now):
                    moves[place] = move
                    x, y, z = x + a, y + b, z + c
            if column.objective + x < self.best.objective and not excess(y, z):
                yield Flip(tuple(moves.values()), Change(x, y, z))

    def _better(self, column: Column) -> bool:
        return column.objective < self.best.objective - 1e-12 and keeps(self.claim, column)

    def _useful(self, column: Column) -> list[tuple[float, float, Flip]]:
        """Flips that could be part of an improvement, with their waste and their size."""
        gap, prices, found = self.gap, self.relaxed.prices, []
        for flip in flips(self.problem, column.rule):
            waste = _cost(self.relaxed, flip.change)
            _, e0, e1 = flip.change
            size = prices.fail * abs(e0) + prices.passed * abs(e1)
            if waste <= gap and size > STROKES[-1] * gap:
                found.append((waste, size, flip))
        return found

    def _fitting(self, singles: list[Flip], column: Column) -> Iterator[Flip]:
        """Combinations of flips predicted to keep the errors and to improve on the best."""
        cost = self.best.objective - column.objective
        room0 = self.claim.alpha + SLACK - column.error0
        room1 = self.claim.beta + SLACK - column.error1
        for group in chain(
            combinations(singles, 1),
            combinations(singles, 2),
            combinations(singles[:TRIPLED], 3),
        ):
            x = y = z = 0.0
            for _, (a, b, c) in group:
                x += a
                y += b
                z += c
            if x < cost and y <= room0 and z <= room1:
                yield Flip(tuple(move for flip in group for move in flip.moves), Change(x, y, z))


def _thriftiest(useful: list[tuple[float, float, Flip]], count: int, least: float) -> list[Flip]:
    """Of the flips of at least some size, those that waste least for it."""
    sizable = ((waste / size, k) for k, (waste, size, _) in enumerate(useful) if size > least)
    return [useful[k][2] for _, k in nsmallest(count, sizable)]


def _cost(relaxed: Relaxation, item: Change | Column) -> float:
    """The objective with both errors paid for at the relaxed prices."""
    prices = relaxed.prices
    return item.objective + prices.fail * item.error0 + prices.passed * item.error1


def _stricter(
    problem: Problem, relaxed: Relaxation, claim: Claim, *, times: int = TIMES
) -> Iterator[Column]:
    """Rules at higher and higher prices, up to the first that keeps both errors."""
    prices, extra = relaxed.prices, FIRST_EXTRA
    for _ in range(times):
        column = evaluate(problem, backward(problem, prices)[1])
        yield column
        if keeps(claim, column):
            return
        excess0, excess1 = column.error0 / claim.alpha, column.error1 / claim.beta
        prices = Prices(
            prices.fail * (excess0 + extra if excess0 > 1 else 1),
            prices.passed * (excess1 + extra if excess1 > 1 else 1),
        )
        extra *= 2


def _flipped(problem: Problem, rule: Rule, flip: Flip) -> Column | None:
    """The rule after some flips, if it is still a rule with orderly boundaries."""
    accept, reject = rule.accept.copy(), rule.reject.copy()
    for n, up, out in flip.moves:
        accept[n] += up
        reject[n] += out
    if any(accept[n] >= reject[n] for n, *_ in flip.moves):
        return None
    changed = monotone(Rule(accept, reject), problem.looks)
    return evaluate(problem, changed) if orderly(changed.reject, problem.looks) else None
