"""Rules of a strict problem whose walks are dear: prices from both sides of each level.

On a long horizon a rule is nearly a fixed sample that ends once its result is certain, with small
boundaries for rates far away. Its errors therefore fall in jumps as the prices rise, a jump for
each state at the cap, and between the jumps hardly at all. A few walks find prices on both sides of
each level. Every one of them bounds what any test can reach, and falls short of the best bound only
by the product of two small differences. `rule_splices` fills the jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from trialwise.stats.sequential.bound import fewest_failing, most_passing
from trialwise.stats.sequential.hypotheses import Hypotheses
from trialwise.stats.sequential.induction import Prices
from trialwise.stats.sequential.relaxation import Column, Relaxation
from trialwise.stats.sequential.rule_splices import Brackets, splice_rules
from trialwise.stats.sequential.slack_search import keeps
from trialwise.stats.sequential.strict_problem import (
    StrictProblem,
    StrictRule,
    evaluate_strict,
    induct,
)

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
    column: Column[StrictRule]


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

    def move(self, error: float, column: Column[StrictRule]) -> None:
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


def search_prices(problem: StrictProblem, hypotheses: Hypotheses) -> Relaxation[StrictRule]:
    """Bound the objective from below and find rules that nearly spend both errors."""
    start = _start_prices(problem, hypotheses)
    fail, passed = _PriceRoot(math.log(start.fail)), _PriceRoot(math.log(start.passed))
    best, best_prices = -math.inf, start
    columns: list[Column[StrictRule]] = []
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
