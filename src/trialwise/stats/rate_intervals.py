"""Confidence intervals for one rate from counts.

The Wilson score interval is the default of the companion (§2.3.1); Clopper–Pearson is the exact
one and Jeffreys the Bayesian. Wald is here because textbooks teach it, and to show why not.
Every interval is anchored: no successes gives a lower end of exactly 0, no failures an upper end
of exactly 1, at any number of trials.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from trialwise.stats.binomial import beta_quantile, normal_quantile, upper_z
from trialwise.stats.result_types import Count, Interval
from trialwise.validation import require_choice, require_count, require_open_rate, require_successes

Side: TypeAlias = "Literal['two-sided', 'lower', 'upper']"
SIDES: tuple[Side, ...] = ("two-sided", "lower", "upper")


def wilson_interval(successes: Count, trials: Count, *, confidence: float = 0.95) -> Interval:
    """The two-sided Wilson score interval (Wilson 1927; companion §2.3.1).

    The rates p the score test would not reject: (p̂ − p)² ≤ z² p(1−p)/n, which gives

        (p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n),  z = Φ⁻¹((1 + confidence)/2).

    A score-test inversion with good coverage, not an exact interval.

    Parameters
    ----------
    successes, trials : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> interval = wilson_interval(9, 10)
    >>> round(interval.low, 5), round(interval.high, 5)
    (0.59585, 0.98212)
    """
    k, n = require_successes(successes, trials)
    level = require_open_rate("confidence", confidence)
    z = upper_z((1 - level) / 2)
    return Interval(wilson_low(k, n, z), wilson_high(k, n, z), confidence=level, method="wilson")


def wilson_lower(successes: Count, trials: Count, *, confidence: float = 0.95) -> float:
    """The one-sided Wilson lower bound on a rate, z = Φ⁻¹(confidence) (companion §2.3.1, §4.3.1).

    With no failure it is n/(n + z²), always below 1: a perfect record is not a proof.

    Examples
    --------
    >>> round(wilson_lower(87, 100), 6)
    0.804806
    """
    k, n = require_successes(successes, trials)
    return wilson_low(k, n, normal_quantile(require_open_rate("confidence", confidence)))


def wilson_upper(successes: Count, trials: Count, *, confidence: float = 0.95) -> float:
    """The one-sided Wilson upper bound on a rate: 1 minus the lower bound on the failures.

    Examples
    --------
    >>> wilson_upper(10, 10)
    1.0
    """
    k, n = require_successes(successes, trials)
    return wilson_high(k, n, normal_quantile(require_open_rate("confidence", confidence)))


def clopper_pearson(
    successes: Count, trials: Count, *, confidence: float = 0.95, side: Side = "two-sided"
) -> Interval:
    """The exact interval: rates neither binomial tail rejects (Clopper & Pearson 1934).

    Low = Beta quantile(α, k, n−k+1) and high = Beta quantile(1−α, k+1, n−k), with α halved for a
    two-sided interval. Coverage is at least `confidence` at every rate.

    Parameters
    ----------
    successes, trials : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    confidence : float
        Strictly between 0 and 1.
    side : {"two-sided", "lower", "upper"}
        "lower" bounds the rate from below (its upper end is 1), "upper" from above.

    Examples
    --------
    >>> round(clopper_pearson(148, 150, side="lower").low, 6)
    0.958625
    """
    k, n = require_successes(successes, trials)
    level = require_open_rate("confidence", confidence)
    tail = (1 - level) / (2 if require_choice("side", side, SIDES) == "two-sided" else 1)
    low = 0.0 if side == "upper" else clopper_pearson_low(k, n, tail)
    high = 1.0 if side == "lower" else 1 - clopper_pearson_low(n - k, n, tail)
    return Interval(low, high, confidence=level, method="clopper-pearson")


def wald(successes: Count, trials: Count, *, confidence: float = 0.95) -> Interval:
    """The textbook interval p̂ ± z √(p̂(1−p̂)/n): pedagogical, never used to decide (§2.3.2).

    It has width 0 at a perfect record and may leave [0, 1]; the ends are shown as they come.

    Examples
    --------
    >>> wald(10, 10)
    Interval(low=1.0, high=1.0, confidence=0.95, method='wald (pedagogical)')
    """
    k, n = require_successes(successes, trials)
    level = require_open_rate("confidence", confidence)
    z = upper_z((1 - level) / 2)
    rate = k / n
    half = z * math.sqrt(rate * (1 - rate) / n)
    return Interval(rate - half, rate + half, confidence=level, method="wald (pedagogical)")


def rule_of_three(trials: Count) -> float:
    """The 95 % upper bound 3/n on a failure probability after n trials without one (§1.4.5, §4.2).

    A heuristic under an i.i.d. model, capped at 1. The exact bound is `clopper_pearson(0, n,
    side="upper").high`: 0.009936 for 300 trials.

    Examples
    --------
    >>> rule_of_three(300)
    0.01
    """
    return min(1.0, 3 / require_count("trials", trials, minimum=1))


def clopper_pearson_low(k: int, n: int, tail: float) -> float:
    """The rate p with P_p(K ≥ k) = tail, or 0 where k = 0; in closed form where k is 1 or n."""
    if k == 0:
        return 0.0
    if tail >= 1:  # a confidence so small that 1 − confidence rounds to 1
        return 1.0
    if k == n:
        return math.exp(math.log(tail) / n)
    if k == 1:
        return -math.expm1(math.log1p(-tail) / n)
    return beta_quantile(tail, k, n - k + 1)


def wilson_low(k: float, n: float, z: float) -> float:
    """The smaller root of (k/n − p)² = z² p(1−p)/n, from the product of the roots.

    The textbook form subtracts nearly equal numbers and leaves residues around 1e-18 at k = 0,
    which a ceiling then turns into a whole trial.
    """
    if k <= 0:
        return 0.0
    spread = math.sqrt(max(k * (n - k) / n, 0.0) + z * z / 4)
    if z < 0:
        return min(1.0, (k + z * z / 2 - z * spread) / (n + z * z))
    return k * k / (n * (k + z * z / 2 + z * spread))


def wilson_high(k: float, n: int, z: float) -> float:
    """Return Wilson's upper bound without checking the arguments."""
    return 1 - wilson_low(n - k, n, z)
