"""Intervals for a rate that are right at every trial at once, so that peeking costs nothing.

An ordinary 95 % interval read after each trial misses the rate, sooner or later, far more than 5 %
of the time. A confidence sequence misses it *ever* with at most that probability: P(the rate lies
in every one of the intervals) ≥ confidence, whatever stops the run. Two constructions live here,
because a pass and a score in [0, 1] are two kinds of data: the beta mixture for Bernoulli
outcomes, exact and the narrower, and the empirical Bernstein sequence for bounded values.

Each interval is intersected with those before it, which loses no coverage. An empty intersection
has probability at most 1 − confidence while the rate is constant: it is reported as `Undefined`.

An e-process is a bet against a rate whose wealth starts at 1 and cannot grow on average while the
rate is true, so by Ville's inequality it ever reaches 1/alpha with probability at most alpha. It
has no plan: no cap, no looks, no stopping rule. The *current* wealth is an e-value and may be
combined with others (`e_bh`). The *largest* wealth so far is not an e-value, but its reciprocal is
an anytime p-value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trialwise import validation
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import (
    beta_cdf,
    continued_fraction,
    deviance,
    find_end,
    stirling_error,
)
from trialwise.stats.rate_intervals import SIDES, Side
from trialwise.stats.result_types import Count, Interval, Undefined

UNIFORM_PRIOR = (1.0, 1.0)


#: The largest bet. The cost −log(1 − λ) − λ of one surprising value explodes as λ nears 1; one half
#: is the cap that Waudby-Smith & Ramdas 2024 recommend.
_MAX_BET = 0.5


_EMPTY = Undefined(
    "the intervals no longer overlap: the rate changed on the way, or this is the rare miss"
)

Direction: TypeAlias = Literal["below", "above"]
"""On which side of p0 the rate is to be shown."""

DIRECTIONS: tuple[Direction, ...] = ("below", "above")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSequence:
    """The empirical Bernstein confidence sequence so far: a value that `update` replaces.

    The fields are the running sums of the construction; `low` and `high` are not cut at 0 and 1, so
    that another error term can be added to them first.

    Examples
    --------
    >>> state = BoundedSequence(confidence=0.95).update(1.0)
    >>> round(state.low, 6), round(state.high, 6), state.squares
    (-6.474332, 8.474332, 0.0625)
    """

    confidence: float = 0.95
    trials: int = 0
    total: float = 0.0
    """Σ x."""
    squares: float = 0.0
    """Σ (x − m)², m the mean so far with one imaginary value of 1/2."""
    bets: float = 0.0
    """Σ λ."""
    weighted: float = 0.0
    """Σ λ x."""
    variation: float = 0.0
    """Σ (x − m′)² (−log(1 − λ) − λ), m′ the mean before x."""
    low: float = -math.inf
    """The largest lower end so far."""
    high: float = math.inf
    """The smallest upper end so far."""

    def __post_init__(self) -> None:
        validation.require_open_rate("confidence", self.confidence)

    def update(self, value: float) -> BoundedSequence:
        """The state after one more value in [0, 1] (an outcome is 0 or 1)."""
        # An outcome counts as a score of 0 or 1.
        x = validation.require_rate("value", int(value) if isinstance(value, bool) else value)
        n = self.trials + 1
        budget = math.log(2 / (1 - self.confidence))
        # The bet is chosen before x is seen: only sums over the past enter it.
        variance = (0.25 + self.squares) / n
        bet = min(_MAX_BET, math.sqrt(2 * budget / (variance * n * math.log(n + 1))))
        before = (0.5 + self.total) / n
        after = (0.5 + self.total + x) / (n + 1)
        bets, weighted = self.bets + bet, self.weighted + bet * x
        variation = self.variation + (x - before) ** 2 * (-math.log1p(-bet) - bet)
        centre, radius = weighted / bets, (budget + variation) / bets
        return replace(
            self,
            trials=n,
            total=self.total + x,
            squares=self.squares + (x - after) ** 2,
            bets=bets,
            weighted=weighted,
            variation=variation,
            low=max(self.low, centre - radius),
            high=min(self.high, centre + radius),
        )

    @property
    def interval(self) -> Interval | Undefined:
        """What all the intervals so far have in common, cut at 0 and 1."""
        method = "empirical Bernstein confidence sequence"
        return running_interval(max(self.low, 0.0), min(self.high, 1.0), self.confidence, method)


def anytime_interval(
    successes: Count,
    trials: Count,
    *,
    confidence: float = 0.95,
    side: Side = "two-sided",
    prior: tuple[float, float] = UNIFORM_PRIOR,
) -> Interval:
    """The interval for a rate from a tally that any stopping rule may have ended.

    One term of `bernoulli_confidence_sequence`, from counts alone and hence not intersected with
    the earlier ones. It covers the rate whatever stopped the run, also a rule nobody wrote down.
    Parameters as there, with 0 ≤ successes ≤ trials, trials ≥ 1.

    Examples
    --------
    >>> low, high = anytime_interval(45, 50)
    >>> round(low, 4), round(high, 4)
    (0.7123, 0.9843)
    """
    s, n = validation.require_successes(successes, trials)
    level = validation.require_open_rate("confidence", confidence)
    weights = check_prior(prior)
    check_options(level, side, weights)
    low, high = mixture_ends(s, n, 1 - level, side, weights)
    return Interval(low, high, confidence=level, method="beta-mixture, valid at any stopping time")


def mixture_ends(
    s: int, n: int, alpha: float, side: Side, prior: tuple[float, float]
) -> tuple[float, float]:
    """Both ends at one number of trials: where the martingale against p reaches 1/alpha."""
    reach = -math.log(alpha)
    if side == "two-sided":
        a, b = prior
        f = n - s
        constant = _log_beta(s + a, f + b) - _log_beta(a, b) - reach

        def keeps(p: float) -> bool:
            return constant - s * math.log(p) - f * math.log1p(-p) < 0

        return (
            find_end(s / n, 0.0, keeps) if s else 0.0,
            find_end(s / n, 1.0, keeps) if f else 1.0,
        )
    # Written as an average over (0, 1), the one-sided mixture is ((1−u) + u/p)^s (1−u)^f: it falls
    # as the threshold p rises, so what it rules out is one interval.
    if side == "lower":
        low = find_end(1.0, 0.0, lambda p: _log_mixture(s, n, p, "above") < reach) if s else 0.0
        return low, 1.0
    high = find_end(0.0, 1.0, lambda p: _log_mixture(s, n, p, "below") < reach) if s < n else 1.0
    return 0.0, high


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def running_interval(
    low: float, high: float, confidence: float, method: str
) -> Interval | Undefined:
    """Return the interval, or why there is none: the running bounds may cross."""
    if low > high:
        return _EMPTY
    return Interval(low, high, confidence=confidence, method=method)


def check_prior(prior: tuple[float, float]) -> tuple[float, float]:
    """Return the two parameters of a beta prior, which must be above 0."""
    try:
        a, b = prior
    except (TypeError, ValueError):
        raise InvalidArgument("prior", prior, "be two numbers above 0") from None
    return validation.require_positive("prior[0]", a), validation.require_positive("prior[1]", b)


def check_options(confidence: float, side: Side, prior: tuple[float, float]) -> None:
    """Check the confidence, the side and the prior of a sequence."""
    validation.require_open_rate("confidence", confidence)
    validation.require_choice("side", side, SIDES)
    if check_prior(prior) != UNIFORM_PRIOR and side != "two-sided":
        raise InvalidArgument("prior", prior, "be (1, 1) for a one-sided sequence")


def anytime_p_value(
    outcomes: Iterable[bool | int],
    p0: float,
    p1: float | None = None,
    *,
    direction: Direction | None = None,
) -> float:
    """The p-value min(1, 1/max_n E_n) that may be read after every trial.

    P(it is ever ≤ alpha) ≤ alpha under the null, so stopping at a good moment or going on after a
    bad one costs nothing. It never rises. Parameters as in `e_process`. Counts alone do not say
    how large the evidence has been: for those, 1/`e_value` is valid and at least as large.

    Examples
    --------
    >>> round(anytime_p_value([1, 0, 0, 1, 0, 0, 0], 0.9, 0.8), 6)
    0.039551
    >>> anytime_p_value([1] * 14, 0.9, 0.8)
    1.0
    """
    bet = check_bet(p0, p1, direction)
    successes, peak = 0, 0.0
    for trials, outcome in enumerate(check_outcomes(outcomes), start=1):
        successes += outcome
        peak = max(peak, log_evidence(successes, trials, *bet))
    return math.exp(-peak)


def _log_mixture(successes: int, trials: int, p0: float, direction: Direction) -> float:
    """log of the likelihood ratio against p0, averaged over the rates beyond it."""
    s, f = successes, trials - successes
    return _log_below(s, f, p0, 1 - p0) if direction == "below" else _log_below(f, s, 1 - p0, p0)


def log_evidence(
    successes: int, trials: int, p0: float, p1: float | None, direction: Direction
) -> float:
    """Return the logarithm of the evidence against p0: a likelihood ratio, or the mixture."""
    if p1 is None:
        return _log_mixture(successes, trials, p0, direction)
    failures = trials - successes
    return successes * math.log(p1 / p0) + failures * math.log((1 - p1) / (1 - p0))


def _log_below(s: int, f: int, x: float, y: float) -> float:
    """log of (1/x) ∫_0^x (t/x)^s ((1−t)/y)^f dt = log of B_x(s+1, f+1)/(x^(s+1) y^f), y = 1 − x."""
    n = s + f
    if x < (s + 2) / (n + 4):
        # Below the mean the integral itself may underflow; its ratio to the integrand at x, the
        # continued fraction, does not.
        return math.log(y * continued_fraction(x, s + 1, f + 1) / (s + 1))
    inside = math.log(beta_cdf(x, s + 1, f + 1))
    return inside - math.log((n + 1) * x) - _log_weight(s, n, x, y)


def _log_weight(k: int, n: int, p: float, q: float) -> float:
    """log of C(n, k) p^k q^(n−k), where the probability itself may underflow."""
    if k in (0, n):
        return n * (math.log(p) if k else math.log(q))
    exponent = stirling_error(n) - stirling_error(k) - stirling_error(n - k)
    exponent -= deviance(k, n * p) + deviance(n - k, n * q)
    return exponent + math.log(n / (2 * math.pi * k * (n - k))) / 2


def check_bet(
    p0: float, p1: float | None, direction: Direction | None
) -> tuple[float, float | None, Direction]:
    """Return p0, the rate bet on and the direction, which p1 implies where it is not given."""
    edge = validation.require_open_rate("p0", p0)
    rate = None if p1 is None else validation.require_open_rate("p1", p1)
    if direction is None:
        direction = "above" if rate is not None and rate > edge else "below"
    validation.require_choice("direction", direction, DIRECTIONS)
    if rate is not None and not (rate < edge if direction == "below" else rate > edge):
        raise InvalidArgument("p1", p1, f"lie {direction} p0 ({edge})")
    return edge, rate, direction


def check_outcomes(outcomes: Iterable[bool | int]) -> list[int]:
    """Return the outcomes as a list of 0 and 1 with at least one member."""
    allowed = "be a sequence of at least one outcome, each 0 or 1 (or a bool)"
    if isinstance(outcomes, (str, bytes)) or not isinstance(outcomes, Iterable):
        raise InvalidArgument("outcomes", outcomes, allowed)
    checked = [check_outcome(outcome) for outcome in outcomes]
    if not checked:
        raise InvalidArgument("outcomes", outcomes, allowed)
    return checked


def check_outcome(outcome: bool | int) -> int:
    """Return the outcome as 0 or 1."""
    # A rate such as 1.0 is not an outcome, although it equals one.
    if isinstance(outcome, (float, complex)) or outcome not in (0, 1):
        raise InvalidArgument("outcome", outcome, "be 0 or 1 (or a bool)")
    return int(outcome)
