"""Backward induction for a test that must show on which side of one rate the truth lies.

Both errors are counted at the required rate r itself: PASS and FAIL each happen in at most a small
share of runs when the rate is exactly r. No test decides every run then, so the objective rewards
decisions: a run that does not PASS at a better rate, or does not FAIL at a worse one, costs a
stated number of trials. With a price on PASS and on FAIL at r the best rule compares, state by
state,

    U(n, f) = min{ 0 [stop, INCONCLUSIVE], λP − G [PASS], λF − B [FAIL],
                   H + r·U(n+1, f) + (1−r)·U(n+1, f+1) [go on] }.

G, B and H are sums over the better rates, the worse rates and all rates of weight × likelihood of
the state relative to r. The cost of a run that stops without a decision, G + B, is a martingale at
rate r, so it is left out of U and added once at the start.

Stopping INCONCLUSIVE is allowed at any time, so the rule gives up where a decision has become too
improbable to be worth its trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from trialwise.stats.sequential.hypotheses import Mix
from trialwise.stats.sequential.induction import Prices, log_ratios
from trialwise.stats.sequential.relaxation import Column
from trialwise.stats.sequential.walks import Rule, monotone, never, stopping_probabilities

#: Rates are written as multiples of the odds of a failure at the required rate, so that one
#: objective serves every required rate. Beside 0.9 they are 1, 0.99, 0.97, 0.8, 0.7 and 0.5 for
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


#: What may be lost to narrow rows of states, as a share of what missing decisions cost.
NEGLIGIBLE = 1e-6

#: How far beyond the states asked for a row of weights is kept, and the most states that are kept.
SPARE_STATES, MOST_KEPT = 4, 1_000_000

#: The greatest power of odds that is taken.
_NEAREST = 500.0


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

    return StrictObjective(
        tuple((at(m), w) for m, w in TRIAL_ODDS),
        tuple(
            (at(m), w * scale) for m, w in (*FAR_PASS_ODDS, *((m**nearer, w) for m, w in PASS_ODDS))
        ),
        tuple(
            (at(m), w * scale) for m, w in (*FAR_FAIL_ODDS, *((m**nearer, w) for m, w in FAIL_ODDS))
        ),
    )


def usual_cap(rate: float, alpha: float = 0.05, beta: float = 0.05) -> float:
    """About how many trials tell half the allowed failure rate from the required one.

    The normal approximation for a fixed sample with a power of 80 %, and a tenth more for looking
    after every trial.
    """
    from trialwise.stats.normal import normal_quantile

    half = (1 + rate) / 2
    level = normal_quantile(1 - min(alpha, beta))
    spread = level * math.sqrt(rate * (1 - rate)) + 0.842 * math.sqrt(half * (1 - half))
    return 1.1 * (spread / (half - rate)) ** 2


class Row(NamedTuple):
    """Numbers of neighbouring states after the same number of trials, from `low` failures on."""

    low: int
    values: list[float]

    @property
    def high(self) -> int:
        """The most failures."""
        return self.low + len(self.values) - 1


class Weights:
    """Weighted likelihoods of states relative to the required rate, remembered once computed.

    The walks of a search meet the same few thousand states near the boundaries again and again.
    """

    __slots__ = ("_known", "_parts")

    def __init__(self, mix: Mix, rate: float) -> None:
        self._parts = tuple((w, *log_ratios(p, rate)) for p, w in mix)
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, n: int, f: int) -> float:
        """The weight of the state with f failures after n trials."""
        found = self._known.get((n, f))
        if found is None:
            found = self._known[n, f] = sum(
                weight * math.exp(min(700.0, (n - f) * success + f * failure))
                for weight, success, failure in self._parts
            )
        return found


@dataclass(frozen=True, slots=True)
class StrictProblem:
    """A required rate, when one may look, and what trials and missing decisions cost."""

    rate: float
    looks: tuple[int, ...]
    objective: StrictObjective
    trials: Weights = field(init=False, compare=False)
    """H: what one more trial costs in a state."""
    passes: Weights = field(init=False, compare=False)
    """G: what not to PASS costs."""
    fails: Weights = field(init=False, compare=False)
    """B: what not to FAIL costs."""
    _rows: dict[int, Row] = field(init=False, compare=False, repr=False, default_factory=dict)
    _keeps_rows: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, mix in self.objective._asdict().items():
            object.__setattr__(self, name, Weights(mix, self.rate))
        object.__setattr__(self, "_keeps_rows", self.states <= MOST_KEPT)

    @property
    def horizon(self) -> int:
        """The last look."""
        return self.looks[-1]

    @property
    def undecided(self) -> float:
        """What a run costs that stops at once without a decision."""
        return math.fsum(w for _, w in (*self.objective.passes, *self.objective.fails))

    @property
    def states(self) -> int:
        """About how many states lie between the boundaries of a rule."""
        return round(5 * self.horizon * math.sqrt(self.horizon * self.rate * (1 - self.rate)))

    def weigh_trials(self, n: int, failures: range) -> list[float]:
        """H in some neighbouring states after n trials; rows are asked for from the cap down.

        A row follows from the row after it, since H is a martingale at the required rate. Every
        walk of a search needs nearly the same rows, so that they are kept, a little wider.
        """
        first, last = failures.start, failures.stop - 1
        known = self._rows.get(n)
        if known is None or first < known.low or last > known.high:
            low, high = max(0, first - SPARE_STATES), min(n, last + SPARE_STATES)
            if known is not None:
                low, high = min(low, known.low), max(high, known.high)
            known = _step_row(self, n, self._rows.get(n + 1, Row(0, [])), range(low, high + 1))
            self._rows[n] = known
        if not self._keeps_rows:
            self._rows.pop(n + 1, None)
        return known.values[first - known.low : last - known.low + 1]


def induct(
    problem: StrictProblem, prices: Prices, ends: tuple[int, int] | None = None
) -> tuple[float, Rule]:
    """The least cost at these prices of PASS and FAIL, and a rule that nearly attains it.

    The cost is a lower bound, too small by at most the share `NEGLIGIBLE` of what missing decisions
    cost. `ends` are the most failures that PASS and the fewest that FAIL at the cap, where that is
    not for the prices to say.
    """
    cap, r, q = problem.horizon, problem.rate, 1 - problem.rate
    price_passed, price_fail = prices.passed, prices.fail
    weigh_passes, weigh_fails = problem.passes, problem.fails
    sure_pass, sure_fail, allowance = _find_sure_verdicts(problem, prices)
    rule = never(cap)
    looks = set(problem.looks)
    # A jump of several trials could pass over the states to give up at, so that runs would get from
    # one side of them to the other and P(PASS) need no longer rise with the rate.
    one_by_one = len(looks) == cap
    # The states of a row that are neither PASS nor FAIL, from `low` on.
    if ends is None:
        low = _most_passing(problem, prices, cap, cap) + 1
        high = _fewest_failing(problem, prices, cap, low) - 1
    else:
        low, high = ends[0] + 1, ends[1] - 1
    rule.accept[cap], rule.reject[cap] = low - 1, high + 1
    futile = [(n + 1, -1) for n in range(cap)] + [(low, high)]
    values = [0.0] * max(0, high - low + 1)
    for n in range(cap - 1, -1, -1):
        # Where both continuations PASS, going on is pointless; likewise where both FAIL.
        first = min(n, max(0, low - 1))
        last = max(first, min(n, high))
        ahead = _pad(problem, prices, n + 1, Row(low, values), range(first, last + 2))
        trials = problem.weigh_trials(n, range(first, last + 1))
        values = [h + (r * x + q * y) for h, x, y in zip(trials, ahead, ahead[1:], strict=False)]
        low, high = first, last
        if n not in looks or n == 0:
            continue
        while low <= high:
            missed = weigh_passes(n, low)
            if missed < sure_pass and price_passed - missed > min(values[low - first], 0.0):
                break
            low += 1
        while high >= low:
            missed = weigh_fails(n, high)
            if missed < sure_fail and price_fail - missed > min(values[high - first], 0.0):
                break
            high -= 1
        values = values[low - first : high - first + 1]
        rule.accept[n], rule.reject[n] = low - 1, high + 1
        if one_by_one and values and max(values) >= 0.0:
            hopeless = [j for j, v in enumerate(values) if v >= 0.0]
            futile[n] = low + hopeless[0], low + hopeless[-1]
            for j in hopeless:
                values[j] = 0.0
    found = order_boundaries(rule.accept, rule.reject, futile, problem.looks)
    return problem.undecided + values[0] - allowance, found


def _find_sure_verdicts(problem: StrictProblem, prices: Prices) -> tuple[float, float, float]:
    """From which G a state may as well PASS, from which B it may FAIL, and what that can cost.

    G is a martingale at the required rate that starts with the sum of its weights. It therefore
    ever reaches c times that in at most one of c runs (Ville). PASS there costs at most the price
    and a missing FAIL more than the best of all actions. Beyond such states going on and PASS
    differ by less than a double can tell, and the rows between them are narrow.
    """
    missing_pass, missing_fail = (
        math.fsum(w for _, w in mix) for mix in (problem.objective.passes, problem.objective.fails)
    )
    spare = NEGLIGIBLE * problem.undecided / 2
    lost_by_pass, lost_by_fail = prices.passed + missing_fail, prices.fail + missing_pass
    return missing_pass * lost_by_pass / spare, missing_fail * lost_by_fail / spare, 2 * spare


def keep_joined(futile: list[tuple[int, int]]) -> list[tuple[int, int]]:
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


def order_boundaries(
    accept: list[int],
    reject: list[int],
    futile: Sequence[tuple[int, int]],
    looks: Sequence[int],
) -> Rule:
    """The rule with these boundaries, neither of which falls, and gives up only in between."""
    highest = 0
    for n in looks:
        highest = reject[n] = max(highest, reject[n])
    monotone(Rule(accept, reject), looks)
    clipped = [
        (max(low, a + 1), min(high, r - 1))
        for (low, high), a, r in zip(futile, accept, reject, strict=True)
    ]
    clipped[-1] = (accept[-1] + 1, reject[-1] - 1)
    return Rule(accept, reject, keep_joined(clipped))


def _step_row(problem: StrictProblem, n: int, row: Row, failures: range) -> Row:
    """The weights of trials in some states, from the row after: a martingale at the rate."""
    start, after = row
    first, last = failures.start, failures.stop - 1
    weigh, rate, q = problem.trials, problem.rate, 1 - problem.rate
    known = [rate * x + q * y for x, y in pairwise(after)]  # from `start` on
    before = [weigh(n, f) for f in range(first, min(start, last + 1))]
    beyond = [weigh(n, f) for f in range(max(first, start + len(known)), last + 1)]
    inside = known[max(0, first - start) : max(0, last - start + 1)]
    return Row(first, [*before, *inside, *beyond])


def _passing(problem: StrictProblem, prices: Prices, n: int, f: int) -> float:
    return prices.passed - problem.passes(n, f)


def _failing(problem: StrictProblem, prices: Prices, n: int, f: int) -> float:
    return prices.fail - problem.fails(n, f)


def _most_passing(problem: StrictProblem, prices: Prices, n: int, most: int) -> int:
    low, high = -1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        good = _passing(problem, prices, n, middle)
        if good <= 0 and good <= _failing(problem, prices, n, middle):
            low = middle
        else:
            high = middle
    return low


def _fewest_failing(problem: StrictProblem, prices: Prices, n: int, least: int) -> int:
    low, high = least - 1, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _failing(problem, prices, n, middle) <= 0:
            high = middle
        else:
            low = middle
    return high


def _pad(problem: StrictProblem, prices: Prices, n: int, row: Row, failures: range) -> list[float]:
    """The values of some states, verdicts on either side of a row included."""
    low, high = row.low, row.high
    first, last = failures.start, failures.stop - 1
    before = [_passing(problem, prices, n, f) for f in range(first, min(low, last + 1))]
    after = [_failing(problem, prices, n, f) for f in range(max(high + 1, first), last + 1)]
    return [*before, *row.values[max(0, first - low) : max(0, last - low + 1)], *after]


def evaluate_strict(problem: StrictProblem, rule: Rule) -> Column[Rule]:
    """The objective and the errors of a rule: one walk at the required rate, tilted to others."""
    passes, fails, gave_up = stopping_probabilities(rule, problem.rate)
    costs = [n * w * problem.trials(n, f) for part in (passes, fails, gave_up) for n, f, w in part]
    costs += [w * problem.passes(n, f) for part in (fails, gave_up) for n, f, w in part]
    costs += [w * problem.fails(n, f) for part in (passes, gave_up) for n, f, w in part]
    error0, error1 = (math.fsum(w for *_, w in part) for part in (fails, passes))
    return Column(math.fsum(costs), error0, error1, rule)
