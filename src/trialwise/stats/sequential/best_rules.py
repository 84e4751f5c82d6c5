"""Backward induction: the best rule when wrong and missing decisions have a price.

One problem covers every design that is searched for. FAIL is an error at one rate, PASS at the same
or at a lower one. Trials cost 1 each at some rates, with weights, and a run that ends without a
decision costs something too. With a price λF on FAIL and λP on PASS the best rule compares, state
by state, the cost of stopping with that of going on. Everything is divided by the likelihood of the
state at the first rate r, which keeps ten thousand trials inside the range of a double:

    U(n, f) = min{ 0 [stop, INCONCLUSIVE], λP·ρ − G [PASS], λF − B [FAIL],
                   H + r·U(n+1, f) + (1−r)·U(n+1, f+1) [go on] }.

ρ is the likelihood at the rate where PASS is an error. H, G and B are sums of weight × likelihood
over the rates at which trials, a missing PASS and a missing FAIL cost something. What a run costs
that stops without a decision is a martingale at rate r, so it is left out of U and added once at
the start.

- *Two rates to tell apart*: a cap that suffices forbids the open end (G = B = 0); at a smaller one
  an open end costs the same wherever it happens. Stopping without a decision is for the cap alone.
- *One required rate* (strict): both errors are counted at it, and no test decides every run. A run
  that does not PASS at a better rate, or does not FAIL at a worse one, costs a stated number of
  trials, and the rule gives up as soon as a decision is too improbable to be worth its trials.

Only a band of states is visited. From a state whose every continuation passes at the next look (or
fails there) going on is pointless, so the states that may go on at one look lie within one step of
those at the next: exact, and as narrow as the rule itself. Plain lists are fast enough for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from trialwise.stats.binomial import find_first, normal_quantile
from trialwise.stats.sequential.bound import Hypotheses, Mix
from trialwise.stats.sequential.walks import Rule, monotone, never, stopping_probabilities

#: Rates are kept this far from 0 and 1, where a likelihood ratio is infinite.
EDGE = 1e-10

#: Rates of a strict objective are multiples of the odds of a failure at the required rate, so that
#: one objective serves every required rate. Beside 0.9 they are 1, 0.99, 0.97, 0.8, 0.7 and 0.5 for
#: trials, 0.97 and 0.95 for PASS, 0.85 and 0.8 for FAIL.
TRIAL_ODDS = ((0.0, 0.22), (1 / 11, 0.30), (0.2784, 0.64), (2.25, 0.36), (3.857, 0.19), (9.0, 0.18))
#: What a missing decision costs, as a multiple of the cap (or the usual one) and a few trials.
PASS_ODDS = ((0.2784, 0.28), (0.4737, 0.45))
FAIL_ODDS = ((1.5882, 0.35), (2.25, 0.383))
LEAST_SCALE = 40
#: Rates far from the required one, where a decision is certain if it is worth anything: without
#: them a rule might give up on the worst services.
FAR_PASS_ODDS = ((0.0, 0.03), (1 / 11, 0.03))
FAR_FAIL_ODDS = ((3.857, 0.03), (9.0, 0.03))
#: The greatest power of odds that is taken.
_NEAREST = 500.0

#: What may be lost to narrow rows of states, as a share of what missing decisions cost.
NEGLIGIBLE = 1e-6

#: How far beyond the states asked for a row of weights is kept, and the most states that are kept.
SPARE_STATES, MOST_KEPT = 4, 1_000_000

#: The width of a band, in failures, for which the limits on the steps of a search are meant.
USUAL_WIDTH = 60


class Prices(NamedTuple):
    """What the two errors cost, in trials."""

    fail: float
    """λF, for a FAIL at the rate that should pass."""
    passed: float
    """λP, for a PASS at the rate that should fail."""

    def charge(self, objective: float, error0: float, error1: float) -> float:
        """The objective with both errors paid for."""
        return objective + self.fail * error0 + self.passed * error1


class Column(NamedTuple):
    """A rule and what it costs."""

    objective: float
    error0: float
    """P(FAIL) at the rate that should pass."""
    error1: float
    """P(PASS) at the rate that should fail."""
    rule: Rule


class StrictObjective(NamedTuple):
    """Rates with the weight of a trial, of a missing PASS and of a missing FAIL."""

    trials: Mix
    passes: Mix
    fails: Mix


def default_objective(
    rate: float, cap: int, alpha: float = 0.05, beta: float = 0.05, *, times: float = 1.0
) -> StrictObjective:
    """Return the usual objective for a required rate and a cap.

    The rates at which a decision is rewarded are those that about this many trials can tell from
    the required one: nearer to it where the cap is larger. `times` multiplies what a missing
    decision costs.
    """
    odds = (1 - rate) / rate
    usual = usual_cap(rate, alpha, beta)
    # Beyond this the rates are 0 and 1 to the last digit.
    nearer = min(_NEAREST, math.sqrt(usual / cap))
    scale = times * (max(cap, usual * max(1.0, nearer)) + LEAST_SCALE)

    def at(multiple: float) -> float:
        return 1 / (1 + multiple * odds)

    def reward(far: Mix, near: Mix) -> Mix:
        return tuple((at(m), w * scale) for m, w in (*far, *((m**nearer, w) for m, w in near)))

    return StrictObjective(
        tuple((at(m), w) for m, w in TRIAL_ODDS),
        reward(FAR_PASS_ODDS, PASS_ODDS),
        reward(FAR_FAIL_ODDS, FAIL_ODDS),
    )


def usual_cap(rate: float, alpha: float = 0.05, beta: float = 0.05) -> float:
    """About how many trials tell half the allowed failure rate from the required one.

    The normal approximation for a fixed sample with a power of 80 %, and a tenth more for looking
    after every trial.
    """
    half = (1 + rate) / 2
    level = normal_quantile(1 - min(alpha, beta))
    spread = level * math.sqrt(rate * (1 - rate)) + 0.842 * math.sqrt(half * (1 - half))
    return 1.1 * (spread / (half - rate)) ** 2


Weights: TypeAlias = Callable[[int, int], float]
"""What a state with n trials and f failures weighs."""


def weigh_states(mix: Mix, rate: float) -> Weights:
    """Weighted likelihoods of states relative to one rate, remembered once computed.

    The walks of a search meet the same few thousand states near the boundaries again and again.
    """
    parts = tuple((w, *log_ratios(p, rate)) for p, w in mix if w)

    @cache
    def weigh(n: int, f: int) -> float:
        # Beyond the range of a double a state is decided whatever its exact likelihood.
        return sum(
            weight * math.exp(min(700.0, (n - f) * success + f * failure))
            for weight, success, failure in parts
        )

    return weigh


class _Row(NamedTuple):
    """Numbers of neighbouring states after the same number of trials, from `low` failures on."""

    low: int
    values: list[float]

    @property
    def high(self) -> int:
        return self.low + len(self.values) - 1


@dataclass(frozen=True, slots=True)
class Problem:
    """Where errors are counted, when one may look, and what trials and missing decisions cost."""

    levels: Hypotheses
    """PASS is an error at the lower rate."""
    rate: float
    """FAIL is an error at this rate, the higher one; all paths are counted at it."""
    looks: tuple[int, ...]
    objective: StrictObjective
    undecided: float
    """What a run costs that stops at once without a decision."""
    gives_up: bool = False
    """Whether the rule may stop without a decision before the cap."""
    must_decide: bool = False
    """Whether there is no open end at the cap either."""
    trials: Weights = field(init=False, compare=False)
    """H: what one more trial costs in a state."""
    passes: Weights = field(init=False, compare=False)
    """G: what not to PASS costs."""
    fails: Weights = field(init=False, compare=False)
    """B: what not to FAIL costs."""
    wrong: Weights = field(init=False, compare=False)
    """ρ: the likelihood at the bad rate."""
    _rows: dict[int, _Row] = field(init=False, compare=False, repr=False, default_factory=dict)
    _keeps_rows: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, mix in self.objective._asdict().items():
            object.__setattr__(self, name, weigh_states(mix, self.rate))
        object.__setattr__(self, "wrong", weigh_states(((self.levels.p1, 1.0),), self.rate))
        object.__setattr__(self, "_keeps_rows", self.states <= MOST_KEPT)

    @classmethod
    def of_two_rates(
        cls, levels: Hypotheses, looks: tuple[int, ...], mix: Mix, undecided: float | None
    ) -> Problem:
        """Two rates to tell apart; an open end costs this many trials, and None forbids it."""
        # At a rate of exactly 1 one failure is proof; a hair below, it is as good as proof.
        good = min(levels.p0, 1 - EDGE)
        rates = tuple((good if rate == levels.p0 else rate, weight) for rate, weight in mix)
        price = undecided or 0.0
        missing = tuple((rate, price * weight) for rate, weight in rates)
        objective = StrictObjective(rates, missing, missing)
        return cls(levels, good, looks, objective, price, must_decide=undecided is None)

    @classmethod
    def of_rate(
        cls, levels: Hypotheses, looks: tuple[int, ...], objective: StrictObjective
    ) -> Problem:
        """One required rate, at which both errors are counted."""
        undecided = math.fsum(w for _, w in (*objective.passes, *objective.fails))
        return cls(levels, levels.p0, looks, objective, undecided, gives_up=True)

    @property
    def horizon(self) -> int:
        """The last look."""
        return self.looks[-1]

    @property
    def states(self) -> int:
        """About how many states lie between the boundaries of a rule."""
        return round(5 * self.horizon * math.sqrt(self.horizon * self.rate * (1 - self.rate)))

    @property
    def effort(self) -> int:
        """How long a horizon of the usual width a walk over this problem is worth.

        A step of a search costs a walk over the band between the boundaries, which is narrow where
        failures are rare.
        """
        return max(1, round(self.states / USUAL_WIDTH)) if self.gives_up else self.horizon

    def use_up(self, column: Column) -> tuple[float, float]:
        """The two errors of a rule as shares of their levels."""
        return column.error0 / self.levels.alpha, column.error1 / self.levels.beta

    def keeps(self, column: Column) -> bool:
        """Whether a rule keeps both errors, up to rounding."""
        return column.error0 <= self.levels.alpha_limit and column.error1 <= self.levels.beta_limit

    def choose(self, columns: Sequence[Column]) -> Column | None:
        """The best of the rules that keep both errors, or None."""
        return min(filter(self.keeps, columns), key=lambda c: c.objective, default=None)

    def passing(self, prices: Prices, n: int, f: int) -> float:
        """What a PASS costs in a state, beyond a run that stops without a decision."""
        return prices.passed * self.wrong(n, f) - self.passes(n, f)

    def failing(self, prices: Prices, n: int, f: int) -> float:
        """What a FAIL costs in a state, beyond a run that stops without a decision."""
        return prices.fail - self.fails(n, f)

    def weigh_trials(self, n: int, failures: range) -> list[float]:
        """H in some neighbouring states after n trials; rows are asked for from the cap down.

        A row follows from the row after it, since H is a martingale at the rate. Every walk of a
        search needs nearly the same rows, so that they are kept, a little wider.
        """
        first, last = failures.start, failures.stop - 1
        known = self._rows.get(n)
        if known is None or first < known.low or last > known.high:
            low, high = max(0, first - SPARE_STATES), min(n, last + SPARE_STATES)
            if known is not None:
                low, high = min(low, known.low), max(high, known.high)
            known = self._step_row(n, self._rows.get(n + 1, _Row(0, [])), low, high)
            self._rows[n] = known
        if not self._keeps_rows:
            self._rows.pop(n + 1, None)
        return known.values[first - known.low : last - known.low + 1]

    def _step_row(self, n: int, after: _Row, first: int, last: int) -> _Row:
        start, q = after.low, 1 - self.rate
        known = [self.rate * x + q * y for x, y in pairwise(after.values)]  # from `start` on
        before = [self.trials(n, f) for f in range(first, min(start, last + 1))]
        beyond = [self.trials(n, f) for f in range(max(first, start + len(known)), last + 1)]
        inside = known[max(0, first - start) : max(0, last - start + 1)]
        return _Row(first, [*before, *inside, *beyond])


def log_ratios(p: float, r: float) -> tuple[float, float]:
    """The log likelihood ratio of p to r of one success and of one failure."""
    p, r = (min(max(x, EDGE), 1 - EDGE) for x in (p, r))
    return math.log(p / r), math.log((1 - p) / (1 - r))


def evaluate(problem: Problem, rule: Rule) -> Column:
    """The objective and the two errors of a rule: one walk, tilted to the other rates."""
    if rule.accept[0] >= 0 or rule.reject[0] <= 0:
        passes = rule.accept[0] >= 0
        return Column(0.0, 1.0 - passes, 1.0 * passes, rule)
    stops = stopping_probabilities(rule, problem.rate)
    costs = [n * w * problem.trials(n, f) for verdict in stops for n, f, w in verdict]
    costs += [w * problem.passes(n, f) for n, f, w in stops.inconclusive]
    if problem.gives_up:  # a wrong verdict is a missing one, too
        costs += [w * problem.passes(n, f) for n, f, w in stops.fails]
        costs += [w * problem.fails(n, f) for n, f, w in (*stops.passes, *stops.inconclusive)]
    error0 = math.fsum(w for *_, w in stops.fails)
    error1 = math.fsum(w * problem.wrong(n, f) for n, f, w in stops.passes)
    return Column(math.fsum(costs), error0, error1, rule)


def induct(
    problem: Problem, prices: Prices, ends: tuple[int, int] | None = None
) -> tuple[float, Rule]:
    """The least cost at these prices, and a rule that nearly attains it.

    The cost is a lower bound, too small by at most the share `NEGLIGIBLE` of what missing decisions
    cost. `ends` are the most failures that PASS and the fewest that FAIL at the cap, where that is
    not for the prices to say.
    """
    cap, r, q = problem.horizon, problem.rate, 1 - problem.rate
    gives_up, passing, failing = problem.gives_up, problem.passing, problem.failing
    sure_pass, sure_fail, allowance = _find_sure_verdicts(problem, prices)
    rule, futile = never(cap), [(n + 1, -1) for n in range(cap + 1)]
    # A jump of several trials could pass over the states to give up at, so that runs would get from
    # one side of them to the other and P(PASS) need no longer rise with the rate.
    marks_futile = gives_up and len(problem.looks) == cap
    # The states of a row that are neither PASS nor FAIL, from `low` on.
    low, high = _find_open_end(problem, prices) if ends is None else (ends[0] + 1, ends[1] - 1)
    rule.accept[cap], rule.reject[cap], futile[cap] = low - 1, high + 1, (low, high)
    values, after = [0.0] * max(0, high - low + 1), cap
    for look in (*problem.looks[-2::-1], *([0] if problem.looks[0] else [])):
        # Where every continuation PASSes, going on is pointless; likewise where every one FAILs.
        first = min(look, max(0, low - (after - look)))
        last = max(first, min(look, high))
        needed = range(first, last + after - look + 1)
        values = _pad(problem, prices, after, _Row(low, values), needed)
        for n in range(after - 1, look - 1, -1):
            trials = problem.weigh_trials(n, range(first, first + len(values) - 1))
            values = [
                h + (r * x + q * y) for h, x, y in zip(trials, values, values[1:], strict=False)
            ]
        low, high, after = first, last, look
        if look < problem.looks[0]:
            break
        while low <= high:
            here = min(values[low - first], 0.0) if gives_up else values[low - first]
            cost = passing(prices, look, low)
            if cost > here and problem.passes(look, low) < sure_pass:
                break
            if cost > failing(prices, look, low):
                break
            low += 1
        while high >= low:
            here = min(values[high - first], 0.0) if gives_up else values[high - first]
            if failing(prices, look, high) > here and problem.fails(look, high) < sure_fail:
                break
            high -= 1
        values = values[low - first : high - first + 1]
        rule.accept[look], rule.reject[look] = low - 1, high + 1
        if marks_futile and values and max(values) >= 0.0:
            hopeless = [j for j, v in enumerate(values) if v >= 0.0]
            futile[look] = low + hopeless[0], low + hopeless[-1]
            for j in hopeless:
                values[j] = 0.0
    best = values[0] if values else min(passing(prices, 0, 0), failing(prices, 0, 0))
    found = order_boundaries(rule._replace(futile=futile if gives_up else ()), problem.looks)
    return problem.undecided + best - allowance, found


def _find_sure_verdicts(problem: Problem, prices: Prices) -> tuple[float, float, float]:
    """From which G a state may as well PASS, from which B it may FAIL, and what that can cost.

    G is a martingale at the required rate that starts with the sum of its weights. It therefore
    ever reaches c times that in at most one of c runs (Ville). PASS there costs at most the price
    and a missing FAIL more than the best of all actions. Beyond such states going on and PASS
    differ by less than a double can tell, and the rows between them are narrow.
    """
    if not problem.gives_up:
        return math.inf, math.inf, 0.0
    rewards = problem.objective.passes, problem.objective.fails
    missing_pass, missing_fail = (math.fsum(weight for _, weight in mix) for mix in rewards)
    spare = NEGLIGIBLE * problem.undecided / 2
    lost_by_pass, lost_by_fail = prices.passed + missing_fail, prices.fail + missing_pass
    return missing_pass * lost_by_pass / spare, missing_fail * lost_by_fail / spare, 2 * spare


def _find_open_end(problem: Problem, prices: Prices) -> tuple[int, int]:
    """The fewest and most failures that end without a decision at the cap."""
    cap, passing, failing = problem.horizon, problem.passing, problem.failing
    low = find_first(-1, cap + 1, lambda f: passing(prices, cap, f) > failing(prices, cap, f))
    high = low - 1
    if not problem.must_decide:
        # The states left open surround the crossing, where the cheaper verdict costs most.
        while low > 0 and passing(prices, cap, low - 1) > 0:
            low -= 1
        while high < cap and failing(prices, cap, high + 1) > 0:
            high += 1
    return low, high


def _pad(problem: Problem, prices: Prices, n: int, row: _Row, failures: range) -> list[float]:
    """The values of some states, verdicts on either side of a row included."""
    low, high = row.low, row.high
    first, last = failures.start, failures.stop - 1
    before = [problem.passing(prices, n, f) for f in range(first, min(low, last + 1))]
    after = [problem.failing(prices, n, f) for f in range(max(high + 1, first), last + 1)]
    return [*before, *row.values[max(0, first - low) : max(0, last - low + 1)], *after]


def order_boundaries(rule: Rule, looks: Sequence[int]) -> Rule:
    """The rule with boundaries that never fall and, if it gives up, does so only in between."""
    accept, reject, futile = rule
    highest = 0
    for n in looks:
        highest = reject[n] = max(highest, reject[n])
    monotone(rule, looks)
    if not futile:
        return rule
    clipped = [
        (max(low, a + 1), min(high, r - 1))
        for (low, high), a, r in zip(futile, accept, reject, strict=True)
    ]
    clipped[-1] = (accept[-1] + 1, reject[-1] - 1)
    return Rule(accept, reject, _keep_joined(clipped))


def _keep_joined(futile: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans to give up at from where on they follow one another up to the cap.

    A span that ends again would let runs from both sides of it meet.
    """
    start = len(futile) - 1
    for n in range(len(futile) - 2, -1, -1):
        (low, high), (next_low, next_high) = futile[n], futile[n + 1]
        if low > high or next_low > high + 1 or next_high < low or next_low > next_high:
            break
        start = n
    return [(n + 1, -1) for n in range(start)] + futile[start:]
