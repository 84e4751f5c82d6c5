"""E-values: evidence that stays valid whenever a run stops, and its adjustment for many tests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from trialwise import validation
from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.confidence_sequences import (
    Direction,
    check_bet,
    check_outcome,
    check_outcomes,
    log_evidence,
)
from trialwise.stats.multiplicity import Controls, adjust_ranked, check_family, restore_order
from trialwise.stats.result_types import Count

#: exp() of more than this is beyond a double.
_MAX_LOG = 709.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceAdjustment:
    """A family of e-values, adjusted by e-BH.

    `adjusted` holds the smallest alpha at which each member is rejected, capped at 1.
    """

    method: Literal["e-bh"] = "e-bh"
    label: str = "e-BH"
    controls: Controls = "FDR"
    dependence: str = "Valid under arbitrary dependence between the e-values."
    alpha: float
    e_values: tuple[float, ...]
    adjusted: tuple[float, ...]
    rejected: tuple[bool, ...]

    @property
    def number_rejected(self) -> int:
        """How many members of the family are rejected."""
        return sum(self.rejected)


def e_bh(e_values: Iterable[float], *, alpha: float = 0.05) -> EvidenceAdjustment:
    """The e-BH rejections: the k largest e-values, k the largest with e_(k) ≥ m/(k · alpha).

    An e-value is a non-negative statistic of mean at most 1 under its null, such as a likelihood
    ratio or a betting wealth; stopped at any time it stays one. The FDR is at most alpha · m₀/m
    under arbitrary dependence (Wang & Ramdas 2022).

    Parameters
    ----------
    e_values : iterable of float
        The family, each at least 0; infinity is allowed. An empty family gives an empty result.
    alpha : float
        The level, strictly between 0 and 1.

    Examples
    --------
    >>> e_bh([60, 30, 20]).rejected
    (True, True, True)
    >>> e_bh([25.3, 0.192]).number_rejected
    0
    """
    family = check_family("e_values", e_values, check_e_value)
    level = validation.require_open_rate("alpha", alpha)
    order = sorted(range(len(family)), key=lambda i: -family[i])
    # m/(k e) ≤ alpha is the Benjamini–Hochberg step at p = 1/e; only the guarantee differs.
    ranked = [1 / family[i] if family[i] else math.inf for i in order]
    values = adjust_ranked("bh", ranked, level, lambda i: 1 / as_written(family[order[i]]))
    adjusted = restore_order(order, values)
    return EvidenceAdjustment(
        alpha=level,
        e_values=family,
        adjusted=adjusted,
        rejected=tuple(value <= level for value in adjusted),
    )


def fixed_e_value(successes: Count, trials: Count, required_rate: float) -> float:
    """The evidence of a fixed number of trials against a rate of at most `required_rate`.

    The likelihood ratio to the required rate, averaged over all higher rates alike:
    `e_value` towards all higher rates. Each ratio grows with the successes, so the mean is at most
    1 at every rate up to the required one.

    Examples
    --------
    >>> round(fixed_e_value(100, 100, 0.9), 1)
    3727.5
    >>> fixed_e_value(80, 100, 0.9) < 0.1
    True
    """
    return e_value(successes, trials, required_rate, direction="above")


def calibrated_e_value(p_value: float) -> float:
    """The evidence of a p-value, 1/(2√p): its mean is at most 1 whatever test the p-value is of.

    Examples
    --------
    >>> round(calibrated_e_value(0.0001), 6)
    50.0
    """
    p = validation.require_rate("p_value", p_value)
    return math.inf if p == 0 else 0.5 / math.sqrt(p)


def check_e_value(argument: str, value: float) -> float:
    """Return an e-value that was given as a number of at least 0."""
    allowed = "be a number of at least 0, infinity included"
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not number >= 0:
        raise InvalidArgument(argument, value, allowed)
    return number


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
        check_bet(self.p0, self.p1, self.direction)
        if self.trials or self.successes:
            validation.require_successes(self.successes, self.trials)
        if validation.require_real("log_peak", self.log_peak) < 0:
            raise InvalidArgument("log_peak", self.log_peak, "be at least 0")

    @classmethod
    def start(
        cls, p0: float, p1: float | None = None, *, direction: Direction | None = None
    ) -> EProcess:
        """The state before the first trial, of value 1; parameters as in `e_process`."""
        edge, rate, side = check_bet(p0, p1, direction)
        return cls(p0=edge, p1=rate, direction=side)

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
        return _bounded_exp(self.log_value)

    @property
    def p_value(self) -> float:
        """The anytime p-value min(1, 1/max E): valid at any stopping time, never rising."""
        return math.exp(-self.log_peak)


def e_process(
    outcomes: Iterable[bool | int],
    p0: float,
    p1: float | None = None,
    *,
    direction: Direction | None = None,
) -> tuple[float, ...]:
    """The evidence that a rate lies beyond p0, after each trial.

    With `p1` the likelihood ratio E_n = (p1/p0)^s ((1−p1)/(1−p0))^f of s successes and f failures;
    without it the average of that ratio over p1 uniform between 0 and p0 (or between p0 and 1).
    Either is a supermartingale at every rate of the null, not only at p0: the expected factor of
    one trial, p·p1/p0 + (1−p)(1−p1)/(1−p0), is 1 at p = p0 and falls as p moves away from p1.

    Parameters
    ----------
    outcomes : iterable of bool (or of 0 and 1)
        The trials in the order they were issued; at least one.
    p0 : float
        The threshold, strictly between 0 and 1. The null is rate ≥ p0 when a rate below is to be
        shown (a violation) and rate ≤ p0 when one above is (compliance).
    p1 : float, optional
        The rate bet on, below or above p0. The evidence is valid whatever it is, and grows fastest
        if it is the true rate. None spreads the bet and needs no guess.
    direction : {"below", "above"}, optional
        Which side of p0 is to be shown. It follows from `p1`; without one it is "below".

    References
    ----------
    Ville 1939; Wald 1945; Robbins 1970 (mixtures); Ramdas et al. 2023 (e-processes).

    Examples
    --------
    >>> [round(e, 3) for e in e_process([1, 0, 0, 1, 0, 0, 0], 0.9, 0.8)]
    [0.889, 1.778, 3.556, 3.16, 6.321, 12.642, 25.284]
    >>> round(e_process([1] * 14, 0.9, 0.8)[-1], 3)
    0.192
    """
    state = EProcess.start(p0, p1, direction=direction)
    values = []
    for outcome in check_outcomes(outcomes):
        state = state.update(outcome)
        values.append(state.value)
    return tuple(values)


def e_value(
    successes: Count,
    trials: Count,
    p0: float,
    p1: float | None = None,
    *,
    direction: Direction | None = None,
) -> float:
    """The evidence of a tally that a rate lies beyond p0: E_n of `e_process`, from counts alone.

    It does not depend on the order of the trials. `trials` may have been chosen by any stopping
    rule that looked only at the past.

    Parameters
    ----------
    successes, trials : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    p0, p1, direction
        As in `e_process`.

    Examples
    --------
    >>> round(e_value(2, 7, 0.9, 0.8), 1)
    25.3
    >>> round(e_value(99, 100, 0.9, direction="above"), 1)
    335.4
    """
    s, n = validation.require_successes(successes, trials)
    return _bounded_exp(log_evidence(s, n, *check_bet(p0, p1, direction)))


def _bounded_exp(log_value: float) -> float:
    """Return exp, or infinity where it would overflow."""
    return math.exp(log_value) if log_value < _MAX_LOG else math.inf
