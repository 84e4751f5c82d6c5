"""Filling the slack: from the relaxed optimum to the best rule without coins.

The relaxed optimum tosses a coin at one or two states; a rule without coins leaves some of alpha
or beta unused. For any rule

    objective − bound = loss + λ0·(alpha − error0) + λ1·(beta − error1),

where `loss ≥ 0` is what the rule wastes at the relaxed prices. Only flips that lose less than the
present gap can therefore improve a rule. Flips far apart hardly touch each other, so that singles,
pairs and triples of them are found by adding up and then confirmed by the full recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, combinations, product
from typing import Any, Generic, NamedTuple

from trialwise.stats.sequential.cell_flips import Change, Flip, flips
from trialwise.stats.sequential.hypotheses import Hypotheses
from trialwise.stats.sequential.induction import Prices, Problem
from trialwise.stats.sequential.relaxation import (
    Column,
    R,
    Relaxation,
    Space,
    evaluate,
    relax,
    two_rates,
)
from trialwise.stats.sequential.walks import Rule, monotone, orderly, prolong_rule

#: How many flips, those that waste least for their size, are combined in pairs and in triples.
PAIRED, TRIPLED = 80, 24
#: How many of them are made at once. A long horizon has many small ones.
TOGETHER = 600

#: The smallest flips worth combining, as shares of what is to be gained: coarse, then fine.
STROKES = (0.02, 0.001)

#: Shares of the room left free when many flips are made at once.
MARGINS = (0.02, 0.15, 0.5)

#: Predicted improvements confirmed by the full recursion, per step, and on a long horizon.
CONFIRMED, CONFIRMED_LONG, LONG = 12, 4, 2_000

#: Rules climbed from, besides the best: those of the relaxation, then those one flip away.
STARTS, NEIGHBOURS = 6, 40

#: The search ends when the gap is this share of the objective, unless it is told otherwise,
GOOD_ENOUGH = 1e-4
#: or after this many steps, fewer the longer the horizon: a step costs about as much as a walk.
FEWEST_STEPS, MOST_STEPS, STEPS_TIMES_HORIZON = 4, 120, 6_000

#: Prices are raised to find a rule that keeps both errors: by the excess of the error and this
#: much more, doubled each time up to the second number, and so often (on the shorter horizon more).
FIRST_EXTRA, MOST_EXTRA, TIMES, TIMES_SHORTER = 1e-3, 0.3, 12, 60


def keeps(hypotheses: Hypotheses, column: Column[Any]) -> bool:
    """Whether a rule keeps both errors, up to rounding."""
    return column.error0 <= hypotheses.alpha_limit and column.error1 <= hypotheses.beta_limit


def fill_slack(
    problem: Problem,
    relaxed: Relaxation[Rule],
    hypotheses: Hypotheses,
    *,
    shorter: Problem | None = None,
) -> Column[Rule]:
    """The best rule without coins that flips can reach from the rules of the relaxation.

    `shorter` is the same problem ended by the cutoff of a fixed sample that would do. When the cap
    is barely enough, the last look is where the relaxed optimum tosses its coin, and only with
    that verdict settled do higher prices lead to rules that keep both errors.
    """
    space = two_rates(problem, hypotheses)
    columns = [*relaxed.columns, *stricter(space, relaxed, hypotheses)]
    if shorter and not any(keeps(hypotheses, c) for c in columns[1:]):
        shorter_space = two_rates(shorter, hypotheses)
        settled = relax(shorter_space, hypotheses, safe=columns[0])
        short = [
            *settled.columns[1:],
            *stricter(shorter_space, settled, hypotheses, times=TIMES_SHORTER),
        ]
        columns.extend(evaluate(problem, prolong_rule(c.rule, problem.looks)) for c in short)
    moves = Moves(
        lambda rule: flips(problem, rule), lambda rule, flip: _flip_cells(problem, rule, flip)
    )
    return search_flips(space, moves, relaxed, hypotheses, columns)


class Moves(NamedTuple, Generic[R]):
    """How rules of one kind change state by state."""

    flips: Callable[[R], Iterable[Flip]]
    """Every flip of one boundary state, with its exact effect."""
    apply: Callable[[R, Flip], R | None]
    """The rule after some flips, or None where it would no longer be a rule."""


def search_flips(
    space: Space[R],
    moves: Moves[R],
    relaxed: Relaxation[R],
    hypotheses: Hypotheses,
    columns: Sequence[Column[R]],
    *,
    good_enough: float = GOOD_ENOUGH,
    most_tried: int | None = None,
) -> Column[R]:
    """The best rule that keeps both errors and that flips can reach from some rules.

    The search ends where the gap to the bound is at most the share `good_enough` of the
    objective, or after `most_tried` rules.
    """
    best = min((c for c in columns if keeps(hypotheses, c)), key=lambda c: c.objective)
    search = _Search(space, moves, relaxed, hypotheses, best, good_enough, most_tried)
    for start in (*nsmallest(STARTS, columns, key=lambda c: _cost(relaxed, c)), best):
        search.climb(start)
    # Each improvement opens a new neighbourhood; the search ends in one that has none.
    while any(map(search.climb, search.neighbours())):
        pass
    return search.best


@dataclass(slots=True)
class _Search(Generic[R]):
    space: Space[R]
    moves: Moves[R]
    relaxed: Relaxation[R]
    hypotheses: Hypotheses
    best: Column[R]
    good_enough: float
    most_tried: int | None
    steps: int = 0
    tried: int = 0

    @property
    def gap(self) -> float:
        return self.best.objective - self.relaxed.bound

    @property
    def over(self) -> bool:
        allowed = min(MOST_STEPS, max(FEWEST_STEPS, STEPS_TIMES_HORIZON // self.space.horizon))
        if self.most_tried is not None and self.tried >= self.most_tried:
            return True
        return self.gap <= self.good_enough * self.best.objective or self.steps >= allowed

    def climb(self, start: Column[R]) -> bool:
        """Follow improvements of the best rule from a start, which may break the errors."""
        before, column = self.best, self._improve_column(start)
        while column is not None:
            self.best = column
            column = self._improve_column(column)
        return self.best is not before

    def neighbours(self) -> Iterator[Column[R]]:
        """Rules one flip away from the best and then two, whether or not they keep the errors."""
        column = self.best
        near = _thriftiest(self._useful(column), NEIGHBOURS, STROKES[0] * self.gap)
        pairs = (Flip(a.moves + b.moves, a.change) for a, b in combinations(near[:TRIPLED], 2))
        for flip in chain(near, pairs):
            if self.over:
                return
            if changed := self._apply(column, flip):
                yield changed

    def _improve_column(self, column: Column[R]) -> Column[R] | None:
        """A better rule than the best, a few flips away from a column."""
        if self.over:
            return None
        self.steps += 1
        useful, scale = self._useful(column), self._scale(column)
        count = CONFIRMED if self.space.horizon <= LONG else CONFIRMED_LONG
        for stroke in STROKES:
            near = _thriftiest(useful, TOGETHER, stroke * scale)
            found = chain(self._fitting(near[:PAIRED], column), self._many(near, column))
            likely = nsmallest(count, found, key=lambda flip: flip.change.objective)
            tried = (self._apply(column, flip) for flip in likely)
            better = [c for c in tried if c and self._better(c)]
            if better:
                return min(better, key=lambda c: c.objective)
        return None

    def _apply(self, column: Column[R], flip: Flip) -> Column[R] | None:
        rule = self.moves.apply(column.rule, flip)
        self.tried += 1
        return None if rule is None else self.space.evaluate(rule)

    def _many(self, thrifty: list[Flip], column: Column[R]) -> Iterator[Flip]:
        """Many flips at once, the thriftiest first: to mend what is broken, then to fill the room.

        Predictions add up less exactly for many flips, so part of the room is left as a margin.
        """
        rooms = self.hypotheses.alpha - column.error0, self.hypotheses.beta - column.error1
        for margin in MARGINS:
            room0, room1 = (room - margin * abs(room) for room in rooms)

            def excess(y: float, z: float, room0: float = room0, room1: float = room1) -> float:
                prices = self.relaxed.prices
                return prices.fail * max(0.0, y - room0) + prices.passed * max(0.0, z - room1)

            moves: dict[tuple[int, int], tuple[int, int, int]] = {}
            x = y = z = 0.0
            now = excess(y, z)
            for mending, ((move,), (a, b, c)) in product((True, False), thrifty):
                n, up, out = move
                # One flip for each stretch of a boundary: a second would no longer be reached.
                accept, reject = column.rule[:2]
                place = (up and accept[n] + 2, out and -reject[n] - 1)
                then = excess(y + b, z + c)
                if place not in moves and (then < now if mending else a < 0 and then <= now):
                    moves[place] = move
                    x, y, z, now = x + a, y + b, z + c, then
            if column.objective + x < self.best.objective and not now:
                yield Flip(tuple(moves.values()), Change(x, y, z))

    def _better(self, column: Column[R]) -> bool:
        return column.objective < self.best.objective - 1e-12 and keeps(self.hypotheses, column)

    def _scale(self, column: Column[R]) -> float:
        """How much a column has to gain or to mend, in trials."""
        prices, (alpha, beta) = self.relaxed.prices, (self.hypotheses.alpha, self.hypotheses.beta)
        loss = _cost(self.relaxed, column) - prices.fail * alpha - prices.passed * beta
        spare = prices.fail * abs(alpha - column.error0) + prices.passed * abs(beta - column.error1)
        return min(self.gap, max(0.0, loss - self.relaxed.bound) + spare)

    def _useful(self, column: Column[R]) -> list[tuple[float, float, Flip]]:
        """Flips that could be part of an improvement, with their waste and their size."""
        gap, prices, found = self.gap, self.relaxed.prices, []
        least = STROKES[-1] * self._scale(column)
        for flip in self.moves.flips(column.rule):
            waste = _cost(self.relaxed, flip.change)
            _, e0, e1 = flip.change
            size = prices.fail * abs(e0) + prices.passed * abs(e1)
            if waste <= gap and size > least:
                found.append((waste, size, flip))
        return found

    def _fitting(self, singles: list[Flip], column: Column[R]) -> Iterator[Flip]:
        """Combinations of flips predicted to keep the errors and to improve on the best."""
        room = Change(
            self.best.objective - column.objective,
            self.hypotheses.alpha_limit - column.error0,
            self.hypotheses.beta_limit - column.error1,
        )
        fitting = _combinations([flip.change for flip in singles], room)
        for cost, picked in nsmallest(CONFIRMED, fitting):
            moves = tuple(move for k in picked for move in singles[k].moves)
            yield Flip(moves, Change(cost, 0.0, 0.0))


def _combinations(changes: list[Change], room: Change) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Singles, pairs and triples of changes that fit: their objective and which they are.

    The innermost loops of the search, so written out.
    """
    cost, room0, room1 = room
    for i, (x, y, z) in enumerate(changes):
        if x < cost and y <= room0 and z <= room1:
            yield x, (i,)
        for j in range(i):
            a, b, c = changes[j]
            a, b, c = a + x, b + y, c + z
            if a < cost and b <= room0 and c <= room1:
                yield a, (i, j)
            if i < TRIPLED:
                for k in range(j):
                    u, v, w = changes[k]
                    if a + u < cost and b + v <= room0 and c + w <= room1:
                        yield a + u, (i, j, k)


def _thriftiest(useful: list[tuple[float, float, Flip]], count: int, least: float) -> list[Flip]:
    """Return the flips of at least some size that waste least for it."""
    sizable = ((waste / size, k) for k, (waste, size, _) in enumerate(useful) if size > least)
    return [useful[k][2] for _, k in nsmallest(count, sizable)]


def _cost(relaxed: Relaxation[Any], item: Change | Column[Any]) -> float:
    """The objective with both errors paid for at the relaxed prices."""
    prices = relaxed.prices
    return item.objective + prices.fail * item.error0 + prices.passed * item.error1


def stricter(
    space: Space[R], relaxed: Relaxation[R], hypotheses: Hypotheses, *, times: int = TIMES
) -> Iterator[Column[R]]:
    """Rules at higher and higher prices, up to the first that keeps both errors."""
    prices, extra = relaxed.prices, FIRST_EXTRA
    for _ in range(times):
        column = space.evaluate(space.solve(prices)[1])
        yield column
        if keeps(hypotheses, column):
            return
        excess0, excess1 = column.error0 / hypotheses.alpha, column.error1 / hypotheses.beta
        prices = Prices(
            prices.fail * (excess0 + extra if excess0 > 1 else 1),
            prices.passed * (excess1 + extra if excess1 > 1 else 1),
        )
        extra = min(2 * extra, MOST_EXTRA)


def _flip_cells(problem: Problem, rule: Rule, flip: Flip) -> Rule | None:
    """The rule after some flips, if it is still a rule with orderly boundaries."""
    accept, reject = rule.accept.copy(), rule.reject.copy()
    for n, up, out in flip.moves:
        accept[n] += up
        reject[n] += out
    if any(accept[n] >= reject[n] for n, *_ in flip.moves):
        return None
    changed = monotone(Rule(accept, reject), problem.looks)
    return changed if orderly(changed.reject, problem.looks) else None
