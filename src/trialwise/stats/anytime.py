"""Evidence against a rate that stays valid however often one looks and whenever one stops.

Its own module because nothing here has a plan: no cap, no looks, no stopping rule. An e-process
is a bet against the null whose wealth starts at 1 and cannot grow on average while the null is
true, so by Ville's inequality it ever reaches 1/alpha with probability at most alpha. Stop when
you like, go on when you like, and the claim holds.

The *current* wealth is an e-value and may be combined with others (`e_bh`). The *largest* wealth
so far is not an e-value, but its reciprocal is an anytime p-value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.beta_functions import beta_cdf, continued_fraction, deviance, stirling_error
from trialwise.validation import require_choice, require_open_rate, require_real, require_successes

__all__ = ["EProcess", "anytime_p_value"]

Direction: TypeAlias = Literal["below", "above"]
"""On which side of p0 the rate is to be shown."""

DIRECTIONS: tuple[Direction, ...] = ("below", "above")

#: exp() of more than this is beyond a double.
_MAX_LOG = 709.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EProcess:
    """The evidence so far that a rate lies below (or above) p0: a value that `update` replaces.

    Begin with `EProcess.start` and keep the state that each `update` returns. Nothing is lost by
    stopping and going on another day: the state is the counts and the largest evidence so far.

    Examples
    --------
    >>> state = EProcess.start(0.9, 0.8)
    >>> for passed in (True, False, False, True, False, False, False):
    ...     state = state.update(passed)
    >>> round(state.value, 1), round(state.p_value, 6)
    (25.3, 0.039551)
    """

    p0: float
    """The edge of the null: H0 is rate ≥ p0 (direction "below") or rate ≤ p0 ("above")."""
    p1: float | None = None
    """The rate bet on; None spreads the bet evenly over every rate beyond p0."""
    direction: Direction = "below"
    trials: int = 0
    successes: int = 0
    log_peak: float = 0.0
    """The logarithm of the largest value so far, the starting value 1 included."""

    def __post_init__(self) -> None:
        require_open_rate("p0", self.p0)
        require_choice("direction", self.direction, DIRECTIONS)
        if self.p1 is not None:
            _check_alternative(self.p0, self.p1, self.direction)
        if self.trials or self.successes:
            require_successes(self.successes, self.trials)
        if require_real("log_peak", self.log_peak) < 0:
            raise InvalidArgument("log_peak", self.log_peak, "be at least 0")

    @classmethod
    def start(
        cls, p0: float, p1: float | None = None, *, direction: Direction | None = None
    ) -> EProcess:
        """The state before the first trial, of value 1; parameters as in `e_process`."""
        threshold = require_open_rate("p0", p0)
        alternative = None if p1 is None else require_open_rate("p1", p1)
        return cls(p0=threshold, p1=alternative, direction=_side(threshold, alternative, direction))

    def update(self, outcome: bool | int) -> EProcess:
        """The state after one more trial: True or 1 for a success, False or 0 for a failure."""
        after = replace(
            self, trials=self.trials + 1, successes=self.successes + check_outcome(outcome)
        )
        return replace(after, log_peak=max(self.log_peak, after.log_value))

    @property
    def log_value(self) -> float:
        """The logarithm of the value: it neither overflows nor underflows."""
        return log_evidence(self.successes, self.trials, self.p0, self.p1, self.direction)

    @property
    def value(self) -> float:
        """The evidence now, an e-value at any stopping time; infinite beyond what a float holds."""
        return bounded_exp(self.log_value)

    @property
    def p_value(self) -> float:
        """The anytime p-value min(1, 1/max E): valid at any stopping time, never rising."""
        return math.exp(-self.log_peak)


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
    state = EProcess.start(p0, p1, direction=direction)
    for outcome in check_outcomes(outcomes):
        state = state.update(outcome)
    return state.p_value


def log_mixture(successes: int, trials: int, p0: float, direction: Direction) -> float:
    """log of the likelihood ratio against p0, averaged over the rates beyond it."""
    s, f = successes, trials - successes
    return _log_below(s, f, p0, 1 - p0) if direction == "below" else _log_below(f, s, 1 - p0, p0)


def log_evidence(
    successes: int, trials: int, p0: float, p1: float | None, direction: Direction
) -> float:
    if p1 is None:
        return log_mixture(successes, trials, p0, direction)
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


def bounded_exp(log_value: float) -> float:
    return math.exp(log_value) if log_value < _MAX_LOG else math.inf


def _side(p0: float, p1: float | None, direction: Direction | None) -> Direction:
    """The direction given, or the one that p1 implies."""
    if direction is not None:
        return require_choice("direction", direction, DIRECTIONS)
    return "above" if p1 is not None and p1 > p0 else "below"


def _check_alternative(p0: float, p1: float, direction: Direction) -> None:
    require_open_rate("p1", p1)
    if not (p1 < p0 if direction == "below" else p1 > p0):
        raise InvalidArgument("p1", p1, f"lie {direction} p0 ({p0})")


def check_outcomes(outcomes: Iterable[bool | int]) -> list[int]:
    allowed = "be a sequence of at least one outcome, each 0 or 1 (or a bool)"
    if isinstance(outcomes, (str, bytes)) or not isinstance(outcomes, Iterable):
        raise InvalidArgument("outcomes", outcomes, allowed)
    checked = [check_outcome(outcome) for outcome in outcomes]
    if not checked:
        raise InvalidArgument("outcomes", outcomes, allowed)
    return checked


def check_outcome(outcome: bool | int) -> int:
    # A rate such as 1.0 is not an outcome, although it equals one.
    if isinstance(outcome, (float, complex)) or outcome not in (0, 1):
        raise InvalidArgument("outcome", outcome, "be 0 or 1 (or a bool)")
    return int(outcome)
