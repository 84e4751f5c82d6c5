"""Tests that a rate is at most a margin below the baseline's.

No regression cutoff answers this affirmative question: H0: p_t − p_b ≤ −margin against
H1: p_t − p_b > −margin, both rates uncertain. The statistic is that of the score interval of a
difference. Both methods are asymptotic: `noninferiority_size` enumerates what they really do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import (
    average_below,
    find_end,
    likely_counts,
    normal_cdf,
    normal_sf,
    upper_z,
)
from trialwise.stats.rate_intervals import wilson_high, wilson_low
from trialwise.stats.result_types import Count, Interval
from trialwise.stats.unconditional import check_two_runs
from trialwise.validation import (
    require_choice,
    require_count,
    require_number,
    require_open_rate,
    require_rate,
)

IntervalMethod: TypeAlias = Literal["miettinen-nurminen", "farrington-manning", "newcombe"]
INTERVAL_METHODS: tuple[IntervalMethod, ...] = (
    "miettinen-nurminen",
    "farrington-manning",
    "newcombe",
)


def difference_interval(
    baseline_successes: Count,
    baseline_trials: Count,
    successes: Count,
    trials: Count,
    *,
    confidence: float = 0.95,
    method: IntervalMethod = "miettinen-nurminen",
) -> Interval:
    """A two-sided confidence interval for the test's rate minus the baseline's, within [−1, 1].

    - "miettinen-nurminen", "farrington-manning": the differences the score test of that name does
      not reject on either side, so that a test at alpha shows a margin exactly where the interval
      of confidence 1 − 2 alpha lies above −margin.
    - "newcombe": the Wilson bounds of the two rates, added in square (Newcombe 1998, method 10).

    None is exact.

    Parameters
    ----------
    baseline_successes, baseline_trials, successes, trials : int
        The two runs, as in `noninferiority`.
    confidence : float
        Strictly between 0 and 1.
    method : {"miettinen-nurminen", "farrington-manning", "newcombe"}
        The construction.

    Examples
    --------
    Newcombe's own first example, 56/70 against 48/80:

    >>> interval = difference_interval(48, 80, 56, 70, method="newcombe")
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.0524, 0.3339)
    """
    k, nb, x, nt = check_two_runs(baseline_successes, baseline_trials, successes, trials)
    level = require_open_rate("confidence", confidence)
    require_choice("method", method, INTERVAL_METHODS)
    z = upper_z((1 - level) / 2)
    if method == "newcombe":
        low, high = -_newcombe_upper(x, nt, k, nb, z), _newcombe_upper(k, nb, x, nt, z)
    else:
        # The lower limit is the mirrored upper one, so that swapping the runs negates the interval.
        limit = z / _variance_factor(method, nb + nt)
        low, high = -_score_upper(x, nt, k, nb, limit), _score_upper(k, nb, x, nt, limit)
    return Interval(low, high, confidence=level, method=method)


def _variance_factor(method: str, size: int) -> float:
    """What Miettinen & Nurminen's variance factor N/(N−1) does to z; two runs have N ≥ 2."""
    return math.sqrt((size - 1) / size) if method == "miettinen-nurminen" else 1.0


def _score_statistic(k: int, nb: int, x: int, nt: int, difference: float) -> float:
    """The score statistic of p_t − p_b = difference, for a difference inside (−1, 1).

    Where neither run varies under the hypothesis (both all or none, difference 0) the two rates
    agree with it perfectly: 0, not 0/0.
    """
    p_t, p_b = _restricted_rates(k, nb, x, nt, difference)
    variance = p_t * (1 - p_t) / nt + p_b * (1 - p_b) / nb
    gap = (x * nb - k * nt) / (nt * nb) - difference
    return gap / math.sqrt(variance) if variance > 0 else 0.0


def _restricted_rates(k: int, nb: int, x: int, nt: int, difference: float) -> tuple[float, float]:
    """The likeliest rates (p_t, p_b) with p_t − p_b = difference."""
    if difference == 0:
        pooled = (k + x) / (nb + nt)
        return pooled, pooled
    if difference > 0:
        p_b = _lower_rate(k, nb, x, nt, difference)
        return min(p_b + difference, 1.0), p_b
    p_t = _lower_rate(x, nt, k, nb, -difference)
    return p_t, min(p_t - difference, 1.0)


def _lower_rate(x: int, n: int, y: int, m: int, gap: float) -> float:
    """The likeliest r for x successes in n at rate r and y in m at rate r + gap, 0 < gap < 1.

    The score of r, multiplied by r(1−r)(r+gap)(1−r−gap), is a cubic: positive below the maximum
    of the likelihood and negative above it. Its closed form (Farrington & Manning 1990, appendix)
    loses half the digits where two roots meet; halving loses none.
    """
    top = 1 - gap
    # No success at the lower rate, or no failure at the higher: the maximum may be an end.
    if x == 0 and y <= n * gap * top + m * gap:
        return 0.0
    if y == m and n * top <= x + m * top * gap:
        return top

    def rises(r: float) -> bool:
        return (x - n * r) * (r + gap) * (top - r) + (y - m * (r + gap)) * r * (1 - r) > 0

    return find_end(0.0, top, rises)


def _score_upper(k: int, nb: int, x: int, nt: int, limit: float) -> float:
    """The difference above the observed one where the score reaches −limit, to the last bit."""
    observed = (x * nb - k * nt) / (nt * nb)
    return find_end(observed, 1.0, lambda d: _score_statistic(k, nb, x, nt, d) > -limit)


def _newcombe_upper(k: int, nb: int, x: int, nt: int, z: float) -> float:
    difference = (x * nb - k * nt) / (nt * nb)
    room = math.hypot(wilson_high(x, nt, z) - x / nt, k / nb - wilson_low(k, nb, z))
    return min(difference + room, 1.0)


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
                "baseline's, and is not evidence of degradation"
            )
        if self.noninferior:
            return (
                f"non-inferior: the rate is less than {self.margin:g} below the baseline's, {level}"
            )
        return (
            f"non-inferiority not shown {level}: the rate may be {self.margin:g} or more below "
            "the baseline's, which is not evidence that it is"
        )


def noninferiority(
    baseline_successes: Count,
    baseline_trials: Count,
    successes: Count,
    trials: Count,
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
    p_t, p_b = _restricted_rates(k, nb, x, nt, -delta)
    z = _score_statistic(k, nb, x, nt, -delta) * _variance_factor(method, nb + nt)
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
    baseline_trials: Count,
    trials: Count,
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
    shrink = _variance_factor(method, nb + nt)
    # z grows with the test's successes and falls with the baseline's, so the outcomes that clear
    # are those at or above a cutoff that never falls from one baseline count to the next.
    first, weights = likely_counts(nb, rate)
    cutoffs, x = [], 0
    for k in range(first, first + len(weights)):
        while x <= nt:
            z = shrink * _score_statistic(k, nb, x, nt, -delta)
            if normal_sf(z) <= level if claim == "non-inferiority" else normal_cdf(z) > level:
                break
            x += 1
        cutoffs.append(x)
    below = average_below(weights, cutoffs, nt, max(rate - delta, 0.0))
    return below if claim == "degradation" else 1 - below


def _check_margin(margin: float) -> float:
    return require_number("margin", margin, "be at least 0 and below 1", lambda one: 0 <= one < 1)
