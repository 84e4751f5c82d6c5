"""Intervals after every trial that are right together, for a rate and for a mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from trialwise.errors import InvalidArgument
from trialwise.stats.confidence_sequences import (
    UNIFORM_PRIOR,
    BoundedSequence,
    check_options,
    check_outcome,
    check_outcomes,
    check_prior,
    mixture_ends,
    running_interval,
)
from trialwise.stats.rate_intervals import Side
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_open_rate, require_rate, require_successes


@dataclass(frozen=True, slots=True, kw_only=True)
class BernoulliSequence:
    """The beta-mixture confidence sequence so far: a value that `update` replaces.

    Examples
    --------
    >>> state = BernoulliSequence(confidence=0.95)
    >>> for passed in [True] * 30:
    ...     state = state.update(passed)
    >>> round(state.interval.low, 4), state.interval.high
    (0.8071, 1.0)
    """

    confidence: float = 0.95
    side: Side = "two-sided"
    prior: tuple[float, float] = UNIFORM_PRIOR
    trials: int = 0
    successes: int = 0
    low: float = 0.0
    """The largest lower end so far."""
    high: float = 1.0
    """The smallest upper end so far."""

    def __post_init__(self) -> None:
        check_options(self.confidence, self.side, self.prior)
        require_rate("low", self.low)
        require_rate("high", self.high)
        if self.trials or self.successes:
            require_successes(self.successes, self.trials)

    def update(self, outcome: bool | int) -> BernoulliSequence:
        """The state after one more trial: True or 1 for a success, False or 0 for a failure."""
        s, n = self.successes + check_outcome(outcome), self.trials + 1
        low, high = mixture_ends(s, n, 1 - self.confidence, self.side, self.prior)
        return replace(
            self, successes=s, trials=n, low=max(self.low, low), high=min(self.high, high)
        )

    @property
    def interval(self) -> Interval | Undefined:
        """What all the intervals so far have in common."""
        return running_interval(
            self.low, self.high, self.confidence, "beta-mixture confidence sequence"
        )


def bernoulli_confidence_sequence(
    outcomes: Iterable[bool | int],
    *,
    confidence: float = 0.95,
    side: Side = "two-sided",
    prior: tuple[float, float] = UNIFORM_PRIOR,
) -> tuple[Interval | Undefined, ...]:
    """The intervals for a rate after each trial, all of them right together.

    The likelihood ratio against p, averaged over a beta prior, is a martingale when p is the rate:
    M_n(p) = B(s+a, f+b) / (B(a, b) p^s (1−p)^f) for s successes and f failures. The interval after
    n trials holds the p with M_n(p) < 1/(1 − confidence), found by bisection and rounded outward;
    by Ville's inequality the rate is ever left out with probability at most 1 − confidence. The
    prior decides where the intervals are narrow, never whether they are right.

    Parameters
    ----------
    outcomes : iterable of bool (or of 0 and 1)
        The trials in the order they were issued; at least one.
    confidence : float
        Strictly between 0 and 1.
    side : {"two-sided", "lower", "upper"}
        "lower" spends the whole error on a lower bound: the thresholds that `e_value` without an
        alternative cannot rule out. "upper" mirrors it.
    prior : (a, b)
        The beta weights of a success and a failure, above 0; (1, 1) is uniform. Two-sided only.

    Returns
    -------
    tuple of Interval
        One for each trial, never widening; `Undefined` from where they stop overlapping.

    References
    ----------
    Robbins 1970; Waudby-Smith & Ramdas 2024.

    Examples
    --------
    >>> low, high = bernoulli_confidence_sequence([1] * 30)[-1]
    >>> round(low, 4), high
    (0.8071, 1.0)
    """
    state = BernoulliSequence(
        confidence=require_open_rate("confidence", confidence), side=side, prior=check_prior(prior)
    )
    intervals = []
    for outcome in check_outcomes(outcomes):
        state = state.update(outcome)
        intervals.append(state.interval)
    return tuple(intervals)


def bounded_confidence_sequence(
    values: Iterable[float], *, confidence: float = 0.95
) -> tuple[Interval | Undefined, ...]:
    """The intervals for the mean of values in [0, 1] after each, all of them right together.

    The predictable plug-in empirical Bernstein sequence: with bets λ_t = min(1/2, √(2 log(2/α) /
    (σ²_{t−1} t log(t+1)))) the interval is Σλx/Σλ ± (log(2/α) + Σ (x−m_{t−1})² (−log(1−λ)−λ)) / Σλ,
    m and σ² the mean and variance so far, started at 1/2 and 1/4 with the weight of one value. It
    needs independent values with one mean (or a constant mean given the past), nothing else. For
    outcomes of 0 and 1 the beta mixture is narrower.

    Parameters
    ----------
    values : iterable of float
        Between 0 and 1, in the order they were issued; at least one.
    confidence : float
        Strictly between 0 and 1.

    References
    ----------
    Waudby-Smith & Ramdas 2024 (the sequence); Howard et al. 2021 (its exponential inequality).

    Examples
    --------
    >>> low, high = bounded_confidence_sequence([0.9, 0.8, 1.0, 0.9] * 25)[-1]
    >>> round(low, 3), round(high, 3)
    (0.823, 0.977)
    """
    allowed = "be a sequence of at least one number between 0 and 1"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument("values", values, allowed)
    state = BoundedSequence(confidence=require_open_rate("confidence", confidence))
    intervals = []
    for value in values:
        state = state.update(value)
        intervals.append(state.interval)
    if not intervals:
        raise InvalidArgument("values", values, allowed)
    return tuple(intervals)
