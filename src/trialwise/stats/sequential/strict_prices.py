"""Rules of a strict problem whose walks are dear: prices from both sides of each level.

On a long horizon a rule is nearly a fixed sample that ends once its result is certain, with small
boundaries for rates far away. Its errors therefore fall in jumps as the prices rise, a jump for
each state at the cap, and between the jumps hardly at all. A few walks find prices on both sides of
each level. Every one of them bounds what any test can reach, and falls short of the best bound only
by the product of two small differences. A splice of two rules fills the jumps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trialwise.stats.sequential.bound import fewest_failing, most_passing
from trialwise.stats.sequential.hypotheses import Hypotheses
from trialwise.stats.sequential.induction import Prices
from trialwise.stats.sequential.relaxation import Column, Relaxation
from trialwise.stats.sequential.slack_search import keeps
from trialwise.stats.sequential.strict_problem import (
    StrictProblem,
    evaluate_strict,
    induct,
    order_boundaries,
)
from trialwise.stats.sequential.walks import Rule

#: The most rules that are tried, and the share of an error that may stay unused.
MOST_TRIED, UNUSED = 12, 0.008
#: The part of the way between two trials that a step goes at least, and at most.
SHORTEST, LONGEST = 0.1, 0.9


class Brackets(NamedTuple):
    """For each error a rule that keeps its level and one that exceeds it."""

    fails: tuple[Column[Rule], Column[Rule]]
    passes: tuple[Column[Rule], Column[Rule]]


class _Edge(NamedTuple):
    """One boundary of a rule, and where on its side the rule gives up, by trials."""

    verdicts: list[int]
    futile: list[int]

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


def splice_rules(
    problem: StrictProblem, hypotheses: Hypotheses, brackets: Brackets
) -> Iterator[Column[Rule]]:
    """Rules whose two boundaries change over, each at its own look, ever nearer to both levels."""
    rare_failures = problem.rate >= 0.5
    strict, loose = brackets.fails
    fail = _Splice(
        hypotheses.alpha,
        problem.looks,
        _get_fail_edge(strict.rule),
        _get_fail_edge(loose.rule),
        errors=(strict.error0, loose.error0),
        loose_first=rare_failures,
    )
    strict, loose = brackets.passes
    passed = _Splice(
        hypotheses.beta,
        problem.looks,
        _get_pass_edge(strict.rule),
        _get_pass_edge(loose.rule),
        errors=(strict.error1, loose.error1),
        loose_first=not rare_failures,
    )
    for _ in range(MOST_TRIED):
        column = evaluate_strict(problem, _join(problem, fail.edge, passed.edge))
        yield column
        if all([fail.move(column.error0), passed.move(column.error1)]):
            return
    yield evaluate_strict(problem, _join(problem, fail.kept_edge, passed.kept_edge))


def _get_fail_edge(rule: Rule) -> _Edge:
    return _Edge(rule.reject, [high for _, high in rule.futile])


def _get_pass_edge(rule: Rule) -> _Edge:
    return _Edge(rule.accept, [low for low, _ in rule.futile])


def _join(problem: StrictProblem, fail: _Edge, passed: _Edge) -> Rule:
    futile = list(zip(passed.futile, fail.futile, strict=True))
    return order_boundaries(passed.verdicts.copy(), fail.verdicts.copy(), futile, problem.looks)


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
    column: Column[Rule]


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

    def move(self, error: float, column: Column[Rule]) -> None:
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


def search_prices(problem: StrictProblem, hypotheses: Hypotheses) -> Relaxation[Rule]:
    """Bound the objective from below and find rules that nearly spend both errors."""
    start = _start_prices(problem, hypotheses)
    fail, passed = _PriceRoot(math.log(start.fail)), _PriceRoot(math.log(start.passed))
    best, best_prices = -math.inf, start
    columns: list[Column[Rule]] = []
    for _ in range(MOST_WALKS):
        prices = Prices(math.exp(fail.price), math.exp(passed.price))
        value, rule = induct(problem, prices)
        bound = value - prices.fail * hypotheses.alpha - prices.passed * hypotheses.beta
        if bound > best:
            best, best_prices = bound, prices
        column = evaluate_strict(problem, rule)
        columns.append(column)
        fail.move(column.error0 / hypotheses.alpha, column)
        passed.move(column.error1 / hypotheses.beta, column)
        if fail.is_close and passed.is_close:
            break
    for _ in range(MOST_SPLICES):
        if not (fail.above and fail.below and passed.above and passed.below):
            break
        brackets = Brackets(
            (fail.below.column, fail.above.column), (passed.below.column, passed.above.column)
        )
        columns += splice_rules(problem, hypotheses, brackets)
        if any(keeps(hypotheses, column) for column in columns):
            break
        # What a boundary spends depends a little on the other one: a stricter rule takes the place
        # of the one that kept its level only beside a looser rule for the other error.
        strict = fail.below.price + BEYOND, passed.below.price + BEYOND
        columns.append(evaluate_strict(problem, induct(problem, Prices(*map(math.exp, strict)))[1]))
        fail.below, passed.below = (_Point(price, 0.0, columns[-1]) for price in strict)
    return Relaxation(best, best_prices, columns)


def _start_prices(problem: StrictProblem, hypotheses: Hypotheses) -> Prices:
    """Prices at which a fixed sample of as many trials as the cap would keep both errors."""
    cap = problem.horizon
    most = max(0, most_passing(hypotheses, cap))
    fewest = min(cap, fewest_failing(hypotheses, cap))
    return Prices(
        math.sqrt(problem.fails(cap, fewest) * problem.fails(cap, fewest - 1)),
        math.sqrt(problem.passes(cap, most) * problem.passes(cap, most + 1)),
    )
