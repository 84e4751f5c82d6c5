"""Flips: change a rule state by state, until whole trials spend what they can of both errors.

The relaxed optimum tosses a coin at one or two states; a rule without coins leaves some of alpha
or beta unused. For any rule

    objective − bound = loss + λF·(alpha − error0) + λP·(beta − error1),

where `loss ≥ 0` is what the rule wastes at the relaxed prices. Making one state stop instead of
going on (or the reverse) moves the two errors and the objective by

    reach(state) × (what the new action leads to − what the old one led to),

exactly. One walk forward gives the reach and one walk back what going on leads to, for all states
at once. Only flips that lose less than the present gap can improve a rule. Flips far apart hardly
touch each other, so that singles, pairs and triples of them are found by adding up and then
confirmed by the full recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, combinations, pairwise, product
from typing import NamedTuple, TypeAlias

from trialwise.stats.sequential import best_rules
from trialwise.stats.sequential.price_search import Relaxation
from trialwise.stats.sequential.walks import Rule, decision_at, monotone, orderly, walk

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


class Change(NamedTuple):
    """An objective and two errors, or a difference of them."""

    objective: float
    error0: float
    error1: float


Moves: TypeAlias = tuple[tuple[int, int, int], ...]
"""(look, change of accept, change of reject) for every boundary state that is moved."""


class Flip(NamedTuple):
    """Boundary moves, and what they change."""

    moves: Moves
    change: Change


class _Slice(NamedTuple):
    """What is still to come from a run of failure counts at one look, part by part."""

    low: int
    objective: list[float]
    error0: list[float]
    error1: list[float]

    def at(self, f: int) -> Change:
        """What is still to come from f failures."""
        j = f - self.low
        return Change(self.objective[j], self.error0[j], self.error1[j])


def list_flips(problem: best_rules.Problem, rule: Rule) -> Iterator[Flip]:
    """Every flip of one boundary state that can be reached and leaves the boundaries in order."""
    reach = {row.n: (row.low, row.chances) for row in walk(rule, problem.rate)}
    ahead, befores = problem.horizon + 1, (*problem.looks[-2::-1], 0)
    for (n, going_on), before in zip(_go_back(problem, rule), befores, strict=True):
        low, weights = reach.get(n, (0, []))
        accept, reject = rule.accept[n], rule.reject[n]
        # Without an open end the two boundaries touch at the cap and can only move together.
        both = 1 if n == problem.horizon and problem.must_decide else 0
        moves = (accept, -1, -both), (accept + 1, 1, 0), (reject, both, 1), (reject - 1, 0, -1)
        for f, up, out in moves:
            in_order = rule.reject[before] <= reject + out <= ahead and accept + up < reject + out
            if in_order and low <= f < low + len(weights):
                old = _stop(problem, rule, n, f) or going_on.at(f)
                new = _decide(problem, n, f, accept + up, reject + out) or going_on.at(f)
                change = (weights[f - low] * (x - y) for x, y in zip(new, old, strict=True))
                yield Flip(((n, up, out),), Change(*change))
        ahead = reject


def move_boundaries(problem: best_rules.Problem, rule: Rule, moves: Moves) -> Rule | None:
    """The rule after some moves, if it is still a rule with orderly boundaries."""
    accept, reject = rule.accept.copy(), rule.reject.copy()
    for n, up, out in moves:
        accept[n] += up
        reject[n] += out
    if any(accept[n] >= reject[n] for n, *_ in moves):
        return None
    changed = monotone(Rule(accept, reject, rule.futile), problem.looks)
    if not orderly(reject, problem.looks):
        return None
    return best_rules.order_boundaries(changed, problem.looks)


def _decide(problem: best_rules.Problem, n: int, f: int, accept: int, reject: int) -> Change | None:
    """What a verdict leads to, beyond a run that stops without one; None between the boundaries."""
    if f <= accept:
        return Change(-problem.passes(n, f), 0.0, problem.wrong(n, f))
    if f >= reject:
        return Change(-problem.fails(n, f), 1.0, 0.0)
    return None


def _stop(problem: best_rules.Problem, rule: Rule, n: int, f: int) -> Change | None:
    """What a state that stops leads to; None where the rule goes on."""
    if decision_at(rule, n, f) is None:
        return None
    return _decide(problem, n, f, rule.accept[n], rule.reject[n]) or Change(0.0, 0.0, 0.0)


def _go_back(problem: best_rules.Problem, rule: Rule) -> Iterator[tuple[int, _Slice]]:
    """For each look from the last, what going on leads to, one state beyond the boundaries too."""
    p, q, after = problem.rate, 1 - problem.rate, problem.horizon
    low, high = max(0, rule.accept[after]), min(after, rule.reject[after])
    none = [0.0] * (high - low + 1)  # nothing comes after the cap
    ahead = _Slice(low, none, none, none)
    yield after, ahead
    for look in problem.looks[-2::-1]:
        low, high = max(0, rule.accept[look]), min(look, rule.reject[look])
        cost, e0, e1 = _add_verdicts(
            problem, rule, ahead, after, range(low, high + after - look + 1)
        )
        for n in range(after - 1, look - 1, -1):
            trials = problem.weigh_trials(n, range(low, low + len(cost) - 1))
            cost = [h + (p * x + q * y) for h, x, y in zip(trials, cost, cost[1:], strict=False)]
            e0 = [p * x + q * y for x, y in pairwise(e0)]
            e1 = [p * x + q * y for x, y in pairwise(e1)]
        ahead, after = _Slice(low, cost, e0, e1), look
        yield look, ahead


def _add_verdicts(
    problem: best_rules.Problem, rule: Rule, after: _Slice, n: int, failures: range
) -> tuple[list[float], list[float], list[float]]:
    """What some states of a look lead to, its verdicts included."""
    first = min(max(failures.start, rule.accept[n] + 1), failures.stop)
    last = max(first, min(failures.stop, rule.reject[n]))
    inside = slice(first - after.low, last - after.low)
    cost, e0, e1 = after.objective[inside], after.error0[inside], after.error1[inside]
    if rule.futile:
        fewest, most = rule.futile[n]
        for j in range(max(fewest, first) - first, min(most + 1, last) - first):
            cost[j] = e0[j] = e1[j] = 0.0
    passed, failed = range(failures.start, first), range(last, failures.stop)
    return (
        [*(-problem.passes(n, f) for f in passed), *cost, *(-problem.fails(n, f) for f in failed)],
        [*([0.0] * len(passed)), *e0, *([1.0] * len(failed))],
        [*(problem.wrong(n, f) for f in passed), *e1, *([0.0] * len(failed))],
    )


def search_flips(
    relaxed: Relaxation,
    columns: Sequence[best_rules.Column],
    *,
    good_enough: float = GOOD_ENOUGH,
    most_tried: int | None = None,
) -> best_rules.Column:
    """The best rule that keeps both errors and that flips can reach from some rules.

    The search ends where the gap to the bound is at most the share `good_enough` of the
    objective, or after `most_tried` rules. At least one of the rules has to keep both errors.
    """
    best = relaxed.problem.choose(columns)
    assert best is not None
    search = _Search(relaxed, best, good_enough, most_tried)
    for start in (*nsmallest(STARTS, columns, key=lambda c: relaxed.prices.charge(*c[:3])), best):
        search.climb(start)
    # Each improvement opens a new neighbourhood; the search ends in one that has none.
    while any(map(search.climb, search.neighbours())):
        pass
    return search.best


@dataclass(slots=True)
class _Search:
    relaxed: Relaxation
    best: best_rules.Column
    good_enough: float
    most_tried: int | None
    steps: int = 0
    tried: int = 0

    @property
    def problem(self) -> best_rules.Problem:
        return self.relaxed.problem

    @property
    def gap(self) -> float:
        return self.best.objective - self.relaxed.bound

    @property
    def over(self) -> bool:
        allowed = min(MOST_STEPS, max(FEWEST_STEPS, STEPS_TIMES_HORIZON // self.problem.effort))
        if self.most_tried is not None and self.tried >= self.most_tried:
            return True
        return self.gap <= self.good_enough * self.best.objective or self.steps >= allowed

    def climb(self, start: best_rules.Column) -> bool:
        """Follow improvements of the best rule from a start, which may break the errors."""
        before, column = self.best, self._improve_column(start)
        while column is not None:
            self.best = column
            column = self._improve_column(column)
        return self.best is not before

    def neighbours(self) -> Iterator[best_rules.Column]:
        """Rules one flip away from the best and then two, whether or not they keep the errors."""
        column = self.best
        near = _thriftiest(self._useful(column), NEIGHBOURS, STROKES[0] * self.gap)
        pairs = (Flip(a.moves + b.moves, a.change) for a, b in combinations(near[:TRIPLED], 2))
        for one in chain(near, pairs):
            if self.over:
                return
            if changed := self._apply(column, one):
                yield changed

    def _improve_column(self, column: best_rules.Column) -> best_rules.Column | None:
        """A better rule than the best, a few flips away from a column."""
        if self.over:
            return None
        self.steps += 1
        useful, scale = self._useful(column), self._scale(column)
        count = CONFIRMED if self.problem.effort <= LONG else CONFIRMED_LONG
        for stroke in STROKES:
            near = _thriftiest(useful, TOGETHER, stroke * scale)
            found = chain(self._fitting(near[:PAIRED], column), self._many(near, column))
            likely = nsmallest(count, found, key=lambda one: one.change.objective)
            tried = (self._apply(column, one) for one in likely)
            better = self.problem.choose([c for c in tried if c])
            if better and better.objective < self.best.objective - 1e-12:
                return better
        return None

    def _apply(self, column: best_rules.Column, change: Flip) -> best_rules.Column | None:
        rule = move_boundaries(self.problem, column.rule, change.moves)
        self.tried += 1
        return None if rule is None else best_rules.evaluate(self.problem, rule)

    def _many(self, thrifty: list[Flip], column: best_rules.Column) -> Iterator[Flip]:
        """Many flips at once, the thriftiest first: to mend what is broken, then to fill the room.

        Predictions add up less exactly for many flips, so part of the room is left as a margin.
        """
        levels, prices = self.problem.levels, self.relaxed.prices
        rooms = levels.alpha - column.error0, levels.beta - column.error1
        for margin in MARGINS:
            room0, room1 = (room - margin * abs(room) for room in rooms)

            def excess(y: float, z: float, room0: float = room0, room1: float = room1) -> float:
                return prices.charge(0.0, max(0.0, y - room0), max(0.0, z - room1))

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

    def _scale(self, column: best_rules.Column) -> float:
        """How much a column has to gain or to mend, in trials."""
        charge, levels = self.relaxed.prices.charge, self.problem.levels
        room0, room1 = levels.alpha - column.error0, levels.beta - column.error1
        loss = charge(column.objective, -room0, -room1)
        spare = charge(0.0, abs(room0), abs(room1))
        return min(self.gap, max(0.0, loss - self.relaxed.bound) + spare)

    def _useful(self, column: best_rules.Column) -> list[tuple[float, float, Flip]]:
        """Flips that could be part of an improvement, with their waste and their size."""
        gap, charge, found = self.gap, self.relaxed.prices.charge, []
        least = STROKES[-1] * self._scale(column)
        for one in list_flips(self.problem, column.rule):
            x, e0, e1 = one.change
            waste, size = charge(x, e0, e1), charge(0.0, abs(e0), abs(e1))
            if waste <= gap and size > least:
                found.append((waste, size, one))
        return found

    def _fitting(self, singles: list[Flip], column: best_rules.Column) -> Iterator[Flip]:
        """Combinations of flips predicted to keep the errors and to improve on the best."""
        room = Change(
            self.best.objective - column.objective,
            self.problem.levels.alpha_limit - column.error0,
            self.problem.levels.beta_limit - column.error1,
        )
        fitting = _combinations([one.change for one in singles], room)
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


def stricter(
    relaxed: Relaxation, *, ends: tuple[int, int] | None = None, times: int = TIMES
) -> Iterator[best_rules.Column]:
    """Rules at higher and higher prices, up to the first that keeps both errors."""
    problem, prices, extra = relaxed.problem, relaxed.prices, FIRST_EXTRA
    for _ in range(times):
        column = best_rules.evaluate(problem, best_rules.induct(problem, prices, ends)[1])
        yield column
        if problem.keeps(column):
            return
        raises = (share + extra if share > 1 else 1 for share in problem.use_up(column))
        prices = best_rules.Prices(*(p * by for p, by in zip(prices, raises, strict=True)))
        extra = min(2 * extra, MOST_EXTRA)
