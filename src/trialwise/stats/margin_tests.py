"""Tests that a rate is at most a margin below the baseline's.

No regression cutoff answers this affirmative question: H0: p_t − p_b ≤ −margin against
H1: p_t − p_b > −margin, both rates uncertain. The statistic is that of `score_difference`. Both
methods are asymptotic: `noninferiority_size` enumerates what they really do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.fisher import check_two_runs
from trialwise.stats.likely_counts import likely_counts
from trialwise.stats.normal import normal_cdf, normal_sf
from trialwise.stats.regression_cutoffs import cdf_window
from trialwise.stats.score_difference import restricted_rates, score_statistic, variance_factor
from trialwise.validation import require_choice, require_count, require_open_rate, require_rate

Method: TypeAlias = Literal["farrington-manning", "miettinen-nurminen"]


METHODS: tuple[Method, ...] = ("farrington-manning", "miettinen-nurminen")


Claim: TypeAlias = Literal["non-inferiority", "degradation"]
"""What a rejection asserts: at most a margin below the baseline, or more than a margin below."""


CLAIMS: tuple[Claim, ...] = ("non-inferiority", "degradation")


@dataclass(frozen=True, slots=True, kw_only=True)
class NonInferiority:
    """A non-inferiority test of a run against its baseline."""

    baseline_successes: int
    baseline_trials: int
    successes: int
    trials: int
    margin: float
    alpha: float
    method: Method
    difference: float
    """The observed rate minus the baseline's."""
    z: float
    """The score statistic: large where the rate is convincingly above baseline − margin."""
    p_value: float
    """Evidence *for* non-inferiority: P(Z ≥ z). Small means at most the margin was lost."""
    degradation_p_value: float
    """The opposite question: P(Z ≤ z), small where the rate fell by *more* than the margin."""
    noninferior: bool
    """Whether p_value ≤ alpha."""
    restricted_rate: float
    """The test's likeliest rate, were it exactly `margin` below the baseline's."""
    restricted_baseline_rate: float

    @property
    def decision(self) -> str:
        """What the test claims, in words that claim no more."""
        level = f"at alpha = {self.alpha:g}"
        if self.margin == 0:
            if self.noninferior:
                return f"superior: the rate is above the baseline's, {level}"
            return (
                f"superiority not shown {level}: a margin of 0 asks whether the rate is above the "
                "baseline's, and is no evidence of degradation"
            )
        if self.noninferior:
            return (
                f"non-inferior: the rate is less than {self.margin:g} below the baseline's, {level}"
            )
        return (
            f"non-inferiority not shown {level}: the rate may be {self.margin:g} or more below "
            "the baseline's, which is no evidence that it is"
        )


def noninferiority(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    margin: float,
    alpha: float = 0.05,
    method: Method = "farrington-manning",
) -> NonInferiority:
    """The score test that a rate is less than `margin` below the baseline's.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    successes, trials : int
        The test, likewise.
    margin : float
        The loss that would be acceptable, 0 ≤ margin < 1. With 0 the question is superiority.
    alpha : float
        The nominal probability of a false claim, strictly between 0 and 1.
    method : {"farrington-manning", "miettinen-nurminen"}
        The second multiplies the variance by N/(N−1).

    References
    ----------
    Farrington & Manning (1990), Statistics in Medicine 9, 1447–1454; Miettinen & Nurminen (1985),
    Statistics in Medicine 4, 213–226; companion §3.2, status note.

    Examples
    --------
    >>> result = noninferiority(951, 1000, 94, 100, margin=0.05)
    >>> result.noninferior, round(result.p_value, 4)
    (False, 0.0995)
    >>> noninferiority(5, 5, 5, 5, margin=0).z
    0.0
    """
    k, nb, x, nt = check_two_runs(baseline_successes, baseline_trials, successes, trials)
    delta = _check_margin(margin)
    level = require_open_rate("alpha", alpha)
    require_choice("method", method, METHODS)
    p_t, p_b = restricted_rates(k, nb, x, nt, -delta)
    z = score_statistic(k, nb, x, nt, -delta) * variance_factor(method, nb + nt)
    p_value = normal_sf(z)
    return NonInferiority(
        baseline_successes=k,
        baseline_trials=nb,
        successes=x,
        trials=nt,
        margin=delta,
        alpha=level,
        method=method,
        difference=x / nt - k / nb,
        z=z,
        p_value=p_value,
        degradation_p_value=normal_cdf(z),
        noninferior=p_value <= level,
        restricted_rate=p_t,
        restricted_baseline_rate=p_b,
    )


def noninferiority_size(
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    margin: float,
    baseline_rate: float,
    alpha: float = 0.05,
    method: Method = "farrington-manning",
    claim: Claim = "non-inferiority",
) -> float:
    """The probability of a false claim with the test's rate exactly `margin` below the baseline's.

    Σ over every pair of counts, so what a nominal alpha really is: it may exceed it. The default
    claim is `p_value` ≤ alpha. With "degradation" it is `degradation_p_value` ≤ alpha, which at
    margin 0 is the pooled two-sample z-test used as a regression rule.

    Parameters
    ----------
    baseline_trials, trials : int
        The two runs, at least one trial each.
    margin : float
        0 ≤ margin < 1.
    baseline_rate : float
        The baseline's true rate, between `margin` and 1.
    alpha : float
        The nominal level, strictly between 0 and 1.
    method : {"farrington-manning", "miettinen-nurminen"}
        As in `noninferiority`.
    claim : {"non-inferiority", "degradation"}
        What is falsely claimed.

    Examples
    --------
    Margin 0 as a degradation rule, nothing having changed, at a nominal 5 %:

    >>> noninferiority_size(300, 100, margin=0, baseline_rate=0.9959, claim="degradation")
    0.1231...
    """
    nb = require_count("baseline_trials", baseline_trials, minimum=1)
    nt = require_count("trials", trials, minimum=1)
    delta = _check_margin(margin)
    rate = require_rate("baseline_rate", baseline_rate)
    if rate < delta:
        raise InvalidArgument("baseline_rate", baseline_rate, f"be at least the margin ({delta})")
    level = require_open_rate("alpha", alpha)
    require_choice("method", method, METHODS)
    require_choice("claim", claim, CLAIMS)
    shrink = variance_factor(method, nb + nt)
    design = _Design(baseline_trials=nb, trials=nt, margin=delta, shrink=shrink)
    # Non-inferior at or above a cutoff, degraded below another.
    if claim == "non-inferiority":
        return 1 - design.probability_below(lambda z: normal_sf(z) <= level, rate)
    return design.probability_below(lambda z: normal_cdf(z) > level, rate)


def _check_margin(margin: float) -> float:
    allowed = "be at least 0 and below 1"
    try:
        delta = require_rate("margin", margin)
    except InvalidArgument:
        raise InvalidArgument("margin", margin, allowed) from None
    if delta == 1:
        raise InvalidArgument("margin", margin, allowed)
    return delta


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """Two runs of fixed size, a margin and the factor on z."""

    baseline_trials: int
    trials: int
    margin: float
    shrink: float

    def probability_below(self, clears: Callable[[float], bool], baseline_rate: float) -> float:
        """P(z does not clear) with the baseline's rate given and the test's a margin below it.

        z grows with the test's successes and falls with the baseline's, so the outcomes that clear
        are those at or above a cutoff that never falls from one baseline count to the next.
        """
        first, weights = likely_counts(self.baseline_trials, baseline_rate)
        cutoffs, x = [], 0
        for k in range(first, first + len(weights)):
            while x <= self.trials and not clears(self._z(k, x)):
                x += 1
            cutoffs.append(x)
        low = cutoffs[0]
        rate = max(baseline_rate - self.margin, 0.0)
        below = cdf_window(low - 1, cutoffs[-1] - 1, self.trials, rate)
        lost = (w * below[c - low] for w, c in zip(weights, cutoffs, strict=True))
        return min(1.0, math.fsum(lost))

    def _z(self, k: int, x: int) -> float:
        return self.shrink * score_statistic(k, self.baseline_trials, x, self.trials, -self.margin)
