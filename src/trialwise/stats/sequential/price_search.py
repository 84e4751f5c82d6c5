"""The search for the prices of the two errors: what any test must cost, and rules that cost little.

*Column generation.* A test that may toss coins is a mixture of rules, and only two constraints
bind, so the best one mixes at most three. The prices of the current mixture are put to the
backward induction, and it answers with the rule that would improve the mixture most, or with the
proof that none does. Every answer also bounds from below what any test can reach (weak duality):

    objective(any test) ≥ U(0, 0; λF, λP) − λF·alpha − λP·beta      for all λF, λP ≥ 0.

*Bracketing*, where walks are dear. On a long horizon a rule is nearly a fixed sample that ends once
its result is certain, with small boundaries for rates far away. Its errors therefore fall in jumps
as the prices rise, a jump for each state at the cap, and between the jumps hardly at all. A few
walks find prices on both sides of each level. Every one of them gives the same kind of bound, and
falls short of the best one only by the product of two small differences. A splice of two rules
fills the jumps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trialwise.stats.sequential.best_rules import (
    Column,
    Prices,
    Problem,
    evaluate,
    induct,
    log_ratios,
    order_boundaries,
)
from trialwise.stats.sequential.bound import fewest_failing, most_passing
from trialwise.stats.sequential.walks import Rule

#: Bound and mixture agree to this share of the objective: far below the digits anyone is shown.
TOLERANCE = 1e-6

#: How near they come in a strict design before flips take over: to be nearer pays for no walk.
STRICT_TOLERANCE = 1e-3

#: Starting steps by the errors' own ratios, before the linear programme takes over.
WARM_UP = 5

MOST_ROUNDS = 80

#: Rounding can make the simplex walk in circles among columns that are nearly alike. Any prices
#: give a valid bound, so it is enough to stop it.
MOST_PIVOTS = 60

#: An error that costs nothing would leave its verdict undefined.
LEAST_PRICE = 1e-9


@dataclass(slots=True)
class Relaxation:
    """The least objective with coins allowed, its prices, and the rules met on the way."""

    problem: Problem
    bound: float = -math.inf
    prices: Prices = field(default_factory=lambda: Prices(1.0, 1.0))
    columns: list[Column] = field(default_factory=list)

    def ask(self, prices: Prices, ends: tuple[int, int] | None = None) -> Column:
        """Take in the best rule at some prices; its cost may raise the bound."""
        value, rule = induct(self.problem, prices, ends)
        levels = self.problem.levels
        bound = value - prices.fail * levels.alpha - prices.passed * levels.beta
        if bound > self.bound:
            self.bound, self.prices = bound, prices
        self.columns.append(evaluate(self.problem, rule))
        return self.columns[-1]


def relax(
    problem: Problem,
    prices: Prices,
    *,
    safe: Column,
    ends: tuple[int, int] | None = None,
    warm_up: int = WARM_UP,
    rounds: int = MOST_ROUNDS,
    known: Relaxation | None = None,
) -> Relaxation:
    """Generate columns, starting from a `safe` rule that keeps both errors.

    What is `known` already, a bound and rules, is improved. `ends` settles the verdicts at the cap.
    """
    known = known or Relaxation(problem)
    tolerance = STRICT_TOLERANCE if problem.gives_up else TOLERANCE
    found = replace(known, columns=[safe, *known.columns])
    for _ in range(warm_up):
        shares = problem.use_up(found.ask(prices, ends))
        nudges = (min(2.0, max(0.5, share)) for share in shares)
        prices = Prices(*(price * nudge for price, nudge in zip(prices, nudges, strict=True)))
    for _ in range(rounds):
        least, prices = _mix_columns(problem, found.columns)
        if least - found.bound <= tolerance * least:
            break
        found.ask(prices, ends)
    return found


def start_prices(problem: Problem) -> Prices:
    """What Wald's approximation of expected trials says an error is worth, for two rates."""
    levels, p0 = problem.levels, problem.rate
    success, failure = log_ratios(p0, levels.p1)
    rise = p0 * success + (1 - p0) * failure
    fall = -(levels.p1 * success + (1 - levels.p1) * failure)
    lower, upper = levels.wald_limits
    return Prices(
        ((1 - levels.beta) / (levels.alpha * fall) + (upper - lower) / rise) / 2,
        ((1 - levels.alpha) / (levels.beta * rise) + (upper - lower) / fall) / 2,
    )


def _mix_columns(problem: Problem, columns: Sequence[Column]) -> tuple[float, Prices]:
    """The objective of the best mixture of the columns, and the prices it puts on the errors.

    The simplex method on three rows: the two errors, as shares of their levels, and the shares of
    the mixture, which add up to 1.
    """
    pool = [(c.objective, *problem.use_up(c), 1.0) for c in columns]
    pool += [(0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)]  # what is left of either error
    basis = [0, len(columns), len(columns) + 1]
    for _ in range(MOST_PIVOTS):
        inverse = _inverse([pool[k][1:] for k in basis])
        costs = [pool[k][0] for k in basis]
        y0, y1, y2 = (_dot(costs, part) for part in zip(*inverse, strict=True))
        reduced = [cost - a * y0 - b * y1 - share * y2 for cost, a, b, share in pool]
        entering = min(range(len(pool)), key=reduced.__getitem__)
        shares = [sum(row) for row in inverse]
        least = _dot(costs, shares)
        if reduced[entering] > -TOLERANCE / 10 * max(1.0, least):
            break
        change = [_dot(row, pool[entering][1:]) for row in inverse]
        ratios = [(shares[i] / change[i], i) for i in range(3) if change[i] > 1e-12]
        basis[min(ratios)[1]] = entering
    fail, passed = -y0 / problem.levels.alpha, -y1 / problem.levels.beta
    return least, Prices(max(LEAST_PRICE, fail), max(LEAST_PRICE, passed))


def _dot(xs: Sequence[float], ys: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(xs, ys, strict=True))


def _inverse(columns: list[tuple[float, float, float]]) -> list[list[float]]:
    """The inverse of the 3 × 3 matrix with these columns, by cofactors."""
    (a, d, g), (b, e, h), (c, f, i) = columns
    rows = [
        [e * i - f * h, c * h - b * i, b * f - c * e],
        [f * g - d * i, a * i - c * g, c * d - a * f],
        [d * h - e * g, b * g - a * h, a * e - b * d],
    ]
    determinant = a * rows[0][0] + b * rows[1][0] + c * rows[2][0]
    return [[x / determinant for x in row] for row in rows]


#: The most rules that are tried, and the share of an error that may stay unused.
MOST_TRIED, UNUSED = 12, 0.008
#: The part of the way between two trials that a step goes at least, and at most.
SHORTEST, LONGEST = 0.1, 0.9


class _Edge(NamedTuple):
    """One boundary of a rule, and where on its side the rule gives up, by trials."""

    verdicts: list[int]
    futile: list[int]

    @staticmethod
    def of(column: Column, error: int) -> _Edge:
        """The FAIL boundary of a rule (error 0) or its PASS boundary (error 1)."""
        accept, reject, futile = column.rule
        return _Edge(accept if error else reject, [span[1 - error] for span in futile])

    def follow(self, n: int, after: _Edge) -> _Edge:
        """This boundary up to n trials, another one from then on."""
        return _Edge(
            [*self.verdicts[: n + 1], *after.verdicts[n + 1 :]],
            [*self.futile[: n + 1], *after.futile[n + 1 :]],
        )


class _Mark(NamedTuple):
    """At how many of the last places the second boundary is followed, and the error then."""

    places: int
    error: float


@dataclass(slots=True)
class _Splice:
    """The search for the look at which one boundary changes over."""

    level: float
    looks: Sequence[int]
    strict: _Edge
    loose: _Edge
    errors: tuple[float, float]
    """The errors of the strict and of the loose boundary."""
    loose_first: bool
    families: int = 2
    """How many are left to be tried."""
    kept: _Mark = field(init=False)
    broken: _Mark = field(init=False)
    places: list[int] = field(init=False)
    """The looks at which the two boundaries differ."""
    now: int = field(init=False)
    same_side: int = field(init=False)

    def __post_init__(self) -> None:
        self._restart()

    @property
    def edge(self) -> _Edge:
        """The boundary that is tried."""
        return self._edge_at(self.now)

    @property
    def kept_edge(self) -> _Edge:
        """The boundary nearest to the level that keeps it."""
        return self._edge_at(self.kept.places)

    def move(self, error: float) -> bool:
        """Take in the error of the boundary that is tried; False after choosing another."""
        if (1 - UNUSED) * self.level <= error <= self.level:
            return True
        if error > self.level:
            self.same_side = max(1, self.same_side + 1)
            self.broken = _Mark(self.now, error)
        else:
            self.same_side = min(-1, self.same_side - 1)
            self.kept = _Mark(self.now, error)
        if abs(self.kept.places - self.broken.places) > 1:
            self._choose()
            return False
        if self.families == 1:
            self.now = self.kept.places
            return error <= self.level
        self.families -= 1
        self.strict, self.errors = self.kept_edge, (self.kept.error, self.errors[1])
        self.loose_first = not self.loose_first
        self._restart()
        return False

    def _restart(self) -> None:
        one, other = zip(*self.strict, strict=True), zip(*self.loose, strict=True)
        differ = [a != b for a, b in zip(one, other, strict=True)]
        self.places = [n for n in self.looks if differ[n]]
        ends = (len(self.places), 0) if self.loose_first else (0, len(self.places))
        self.kept, self.broken = map(_Mark, ends, self.errors)
        self.same_side = 0
        self._choose()

    def _choose(self) -> None:
        """Go on between the marks: most of a jump happens at the last few places."""
        (kept, least), (broken, most) = self.kept, self.broken
        share = ((1 - UNUSED / 2) * self.level - least) / (most - least) if most > least else 0.5
        if abs(self.same_side) > 1:  # one of the marks has not moved for a while
            share = 0.5
        start, end = math.log1p(kept), math.log1p(broken)
        place = start + min(LONGEST, max(SHORTEST, share)) * (end - start)
        low, high = sorted((kept, broken))
        self.now = min(high - 1, max(low + 1, round(math.expm1(place)))) if high - low > 1 else kept

    def _edge_at(self, places: int) -> _Edge:
        first, second = (self.loose, self.strict) if self.loose_first else (self.strict, self.loose)
        before = len(self.places) - places
        return first.follow(self.places[before - 1] if before else 0, second)


def _splice(problem: Problem, error: int, strict: Column, loose: Column) -> _Splice:
    """Begin between a rule that keeps the level of an error and one that exceeds it."""
    edges = _Edge.of(strict, error), _Edge.of(loose, error)
    level = problem.levels.beta if error else problem.levels.alpha
    errors = (strict.error1, loose.error1) if error else (strict.error0, loose.error0)
    loose_first = (problem.rate >= 0.5) != bool(error)
    return _Splice(level, problem.looks, *edges, errors=errors, loose_first=loose_first)


def _splice_rules(problem: Problem, fail: _Splice, passed: _Splice) -> Iterator[Column]:
    """Rules whose two boundaries change over, each at its own look, ever nearer to both levels."""
    for _ in range(MOST_TRIED):
        column = evaluate(problem, _join(problem, fail.edge, passed.edge))
        yield column
        if all([fail.move(column.error0), passed.move(column.error1)]):
            return
    yield evaluate(problem, _join(problem, fail.kept_edge, passed.kept_edge))


def _join(problem: Problem, fail: _Edge, passed: _Edge) -> Rule:
    futile = list(zip(passed.futile, fail.futile, strict=True))
    joined = Rule(passed.verdicts.copy(), fail.verdicts.copy(), futile)
    return order_boundaries(joined, problem.looks)


#: The most walks for the prices, and the most searches between the rules found.
MOST_WALKS, MOST_SPLICES = 8, 4
#: How far apart the prices on both sides of a level may be, and that times how far apart the errors
#: are: a rule in between wastes about an eighth of it. Both are logarithms.
CLOSE, CLOSE_PRODUCT = 0.2, 0.02
#: How far beyond a level the next price aims, and the largest step of a price, in logarithms.
BEYOND, LARGEST_STEP = 0.06, 1.2
#: The range of slopes of an error against its price that is believed, in logarithms.
STEEPEST, FLATTEST = 8.0, 0.5
#: No error is taken for less than this share of its level.
LEAST_RATIO = 1e-4


class _Point(NamedTuple):
    """A price and the error there as a multiple of its level, both in logarithms, and the rule."""

    price: float
    ratio: float
    column: Column


@dataclass(slots=True)
class _PriceRoot:
    """The search for the price of one error, which falls as the price rises."""

    price: float
    """The logarithm of the price to be tried."""
    above: _Point | None = None
    """The dearest point at which the error exceeds its level."""
    below: _Point | None = None
    """The cheapest point at which the level is kept."""
    last: _Point | None = None
    slope: float = -1.0

    @property
    def is_close(self) -> bool:
        """Whether there are rules on both sides of the level, at prices near each other."""
        if self.above is None or self.below is None:
            return False
        prices = self.below.price - self.above.price
        return prices <= CLOSE and prices * (self.above.ratio - self.below.ratio) <= CLOSE_PRODUCT

    def move(self, error: float, column: Column) -> None:
        """Take in the error, a multiple of its level, at the present price; choose the next."""
        here = _Point(self.price, math.log(max(error, LEAST_RATIO)), column)
        if self.last is not None and abs(here.price - self.last.price) > 1e-9:
            slope = (here.ratio - self.last.ratio) / (here.price - self.last.price)
            self.slope = min(-FLATTEST, max(-STEEPEST, slope))
        self.last = here
        if here.ratio > 0:
            if self.above is None or here.price >= self.above.price:
                self.above = here
        elif self.below is None or here.price <= self.below.price:
            self.below = here
        if self.above is not None and self.below is not None:
            self.price = (self.above.price + self.below.price) / 2
        else:
            beyond = -BEYOND if here.ratio > 0 else BEYOND
            step = (beyond - here.ratio) / self.slope
            self.price += min(LARGEST_STEP, max(-LARGEST_STEP, step))


def search_prices(problem: Problem) -> Relaxation:
    """Bound the objective from below and find rules that nearly spend both errors."""
    start = _fixed_size_prices(problem)
    roots = [_PriceRoot(math.log(price)) for price in start]
    found = Relaxation(problem, prices=start)
    for _ in range(MOST_WALKS):
        column = found.ask(Prices(*(math.exp(root.price) for root in roots)))
        for root, share in zip(roots, problem.use_up(column), strict=True):
            root.move(share, column)
        if all(root.is_close for root in roots):
            break
    for _ in range(MOST_SPLICES):
        sides = [(root.below, root.above) for root in roots if root.below and root.above]
        if len(sides) < len(roots):
            break
        splices = (_splice(problem, i, *(at.column for at in side)) for i, side in enumerate(sides))
        found.columns += _splice_rules(problem, *splices)
        if problem.choose(found.columns):
            break
        # What a boundary spends depends a little on the other one: a stricter rule takes the place
        # of the one that kept its level only beside a looser rule for the other error.
        strict = [below.price + BEYOND for below, _ in sides]
        column = found.ask(Prices(*map(math.exp, strict)))
        for root, price in zip(roots, strict, strict=True):
            root.below = _Point(price, 0.0, column)
    return found


def _fixed_size_prices(problem: Problem) -> Prices:
    """Prices at which a fixed sample of as many trials as the cap would keep both errors."""
    cap = problem.horizon
    most = max(0, most_passing(problem.levels, cap))
    fewest = min(cap, fewest_failing(problem.levels, cap))
    return Prices(
        math.sqrt(problem.fails(cap, fewest) * problem.fails(cap, fewest - 1)),
        math.sqrt(problem.passes(cap, most) * problem.passes(cap, most + 1)),
    )
