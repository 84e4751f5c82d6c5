"""Risk-driven sizing: how many trials a regression test needs against its baseline (§5.4, §6.2).

Three questions in two rule sets. Exact: plan baseline and test together (design), or size a test
against a baseline that exists (resolved); power counts every baseline that could be drawn. Wilson:
the companion's acceptance floor, which moves with the test's own size, under the normal
approximation. A design outside the domain is refused with its reason, never given a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.decimals import complement
from trialwise.stats.binomial import raw_cdf
from trialwise.stats.normal import normal_cdf, upper_z
from trialwise.stats.precedence import smallest_count
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.rate_sizing import reaches_target
from trialwise.stats.refusal import Refusal
from trialwise.stats.regression_cutoffs import rejection_probability
from trialwise.validation import require_count, require_open_rate, require_rate, require_successes

__all__ = [
    "Sizing",
    "design_detectable_rate",
    "design_power_at",
    "design_required_trials",
    "floor_detectable_rate",
    "floor_power_at",
    "floor_required_trials",
    "resolved_power_at",
    "resolved_required_trials",
]

#: Where the doubling search for the moving floor gives up: counts beyond are not exact doubles.
_DOUBLING_LIMIT = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """An answer to a sizing question, or the reason there is none; the rest is then None."""

    question: str
    refusal: Refusal | None = None
    trials: int | None = None
    """The trials asked about, or the trials required."""
    power: float | None = None
    """P(FAIL) at those trials when the rate to detect is true."""
    detectable_rate: float | None = None
    first_crossing: int | None = None
    """The fewest trials that reach the power at all; power may fall below it again."""
    cutoff: int | None = None
    floor: float | None = None
    """Wilson: the real-valued acceptance floor at those trials."""

    @property
    def admitted(self) -> bool:
        """Whether the design lies in the domain of the question."""
        return self.refusal is None


def design_required_trials(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The fewest test trials from which a planned design keeps its power up to the baseline's size.

    Exact rule. Refused where the target is not reached and held: the baseline is too small.

    Examples
    --------
    >>> design_required_trials(0.9, 1000, 0.8).trials
    91
    """
    p0, nb, p1 = _design(baseline_rate, baseline_trials, alternative_rate)
    level, target = require_open_rate("alpha", alpha), require_open_rate("power", power)
    question = "required trials"
    if refusal := _outside(p0, p1):
        return Sizing(question=question, refusal=refusal)
    return _smallest_held(
        question,
        nb,
        target,
        lambda n: rejection_probability(nb, n, p0, p1, alpha=level, rule="exact"),
    )


def design_power_at(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> Sizing:
    """The power of a planned design, baseline and test both still to be drawn. Exact rule.

    Examples
    --------
    >>> round(design_power_at(0.96, 2000, 0.93, 50).power, 6)
    0.194626
    """
    p0, nb, p1 = _design(baseline_rate, baseline_trials, alternative_rate)
    n = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    if refusal := _outside(p0, p1) or _larger(n, nb):
        return Sizing(question="power", refusal=refusal)
    value = rejection_probability(nb, n, p0, p1, alpha=level, rule="exact")
    return Sizing(question="power", trials=n, power=value)


def design_detectable_rate(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The highest degraded rate that a planned design detects with its power. Exact rule.

    The rate is None where not even a rate of 0 would be detected.

    Examples
    --------
    >>> round(design_detectable_rate(0.87, 3000, 100).detectable_rate, 6)
    0.77014
    """
    p0, nb, _ = _design(baseline_rate, baseline_trials, 0.0)
    n = require_count("trials", trials, minimum=1)
    level, target = require_open_rate("alpha", alpha), require_open_rate("power", power)
    question = "detectable rate"
    if refusal := _outside(p0, -1.0) or _larger(n, nb):
        return Sizing(question=question, refusal=refusal)
    rate = _highest_rate(
        p0, target, lambda p1: rejection_probability(nb, n, p0, p1, alpha=level, rule="exact")
    )
    return Sizing(question=question, trials=n, power=target, detectable_rate=rate)


def resolved_required_trials(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The fewest test trials from which power holds against a baseline that exists. Exact rule.

    Examples
    --------
    >>> sizing = resolved_required_trials(951, 1000, 0.925)
    >>> sizing.trials, sizing.first_crossing
    (966, 868)
    """
    k, nb, p1 = _check_baseline(baseline_successes, baseline_trials, alternative_rate)
    level, target = require_open_rate("alpha", alpha), require_open_rate("power", power)
    question = "required trials"
    if refusal := _outside(k / nb, p1):
        return Sizing(question=question, refusal=refusal)

    def power_at(n: int) -> float:
        return raw_cdf(smallest_count(k, nb, n, level) - 1, n, p1)

    held = _smallest_held(question, nb, target, power_at)
    if not held.admitted:
        return held
    first = next(n for n in range(1, nb + 1) if reaches_target(power_at(n), target))
    return Sizing(question=question, trials=held.trials, power=held.power, first_crossing=first)


def resolved_power_at(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> Sizing:
    """The power of a test against a baseline that exists, whose cutoff is fixed. Exact rule.

    Examples
    --------
    >>> resolved_power_at(951, 1000, 0.925, 1000).cutoff
    933
    """
    k, nb, p1 = _check_baseline(baseline_successes, baseline_trials, alternative_rate)
    n = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    if refusal := _outside(k / nb, p1) or _larger(n, nb):
        return Sizing(question="power", refusal=refusal)
    cutoff = smallest_count(k, nb, n, level)
    return Sizing(question="power", trials=n, cutoff=cutoff, power=raw_cdf(cutoff - 1, n, p1))


def floor_required_trials(
    baseline_rate: float,
    minimum_acceptable_rate: float,
    *,
    confidence: float = 0.95,
    power: float = 0.80,
) -> Sizing:
    """The fewest trials whose moving Wilson floor detects the lowest acceptable rate (§5.4.1).

    Power(n) = Φ((floor(n) − p_min) / √(p_min(1−p_min)/n)), floor(n) = WilsonLower(p0, n).

    Examples
    --------
    >>> floor_required_trials(0.87, 0.84).trials
    891
    """
    p0, p1 = require_rate("baseline_rate", baseline_rate), _acceptable(minimum_acceptable_rate)
    z = _z(confidence)
    target = require_open_rate("power", power)
    question = "required trials"
    if refusal := _empty(p0, p1):
        return Sizing(question=question, refusal=refusal)
    high = 1
    while _floor_power(p0, p1, high, z) < target and high < _DOUBLING_LIMIT:
        high *= 2
    if _floor_power(p0, p1, high, z) < target:
        return Sizing(question=question)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        short = _floor_power(p0, p1, middle, z) < target
        low, high = (middle, high) if short else (low, middle)
    return _floor_sizing(question, p0, p1, high, z)


def floor_power_at(
    baseline_rate: float,
    minimum_acceptable_rate: float,
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
) -> Sizing:
    """The floor and its approximate power at a candidate number of trials. Wilson rule.

    Examples
    --------
    >>> round(floor_power_at(0.96, 0.93, 50).power, 6)
    0.111871
    """
    p0, p1 = require_rate("baseline_rate", baseline_rate), _acceptable(minimum_acceptable_rate)
    n = require_count("trials", trials, minimum=1)
    z = _z(confidence)
    if refusal := _empty(p0, p1):
        return Sizing(question="power", refusal=refusal)
    return _floor_sizing("power", p0, p1, n, z)


def floor_detectable_rate(
    baseline_rate: float,
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
    power: float = 0.80,
) -> Sizing:
    """The highest rate that the moving floor detects at a fixed number of trials. Wilson rule.

    Examples
    --------
    >>> round(floor_detectable_rate(0.87, 100).detectable_rate, 6)
    0.769353
    """
    p0 = require_rate("baseline_rate", baseline_rate)
    n = require_count("trials", trials, minimum=1)
    z = _z(confidence)
    target = require_open_rate("power", power)
    if refusal := _empty(p0, -1.0):
        return Sizing(question="detectable rate", refusal=refusal)
    rate = _highest_rate(p0, target, lambda p1: _floor_power(p0, p1, n, z))
    floor = wilson_low(p0 * n, n, z)
    return Sizing(
        question="detectable rate", trials=n, power=target, detectable_rate=rate, floor=floor
    )


def _design(
    baseline_rate: float, baseline_trials: SupportsIndex, alternative_rate: float
) -> tuple[float, int, float]:
    return (
        require_rate("baseline_rate", baseline_rate),
        require_count("baseline_trials", baseline_trials, minimum=1),
        require_rate("alternative_rate", alternative_rate),
    )


def _check_baseline(
    baseline_successes: SupportsIndex, baseline_trials: SupportsIndex, alternative_rate: float
) -> tuple[int, int, float]:
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    return k, nb, require_rate("alternative_rate", alternative_rate)


def _acceptable(rate: float) -> float:
    return require_rate("minimum_acceptable_rate", rate)


def _z(confidence: float) -> float:
    return upper_z(complement(require_open_rate("confidence", confidence)))


def _outside(p0: float, p1: float) -> Refusal | None:
    if p0 == 0:
        return Refusal.ZERO_BASELINE
    return Refusal.ALTERNATIVE_NOT_BELOW_BASELINE if p1 >= p0 else None


def _larger(n: int, nb: int) -> Refusal | None:
    return Refusal.TEST_LARGER_THAN_BASELINE if n > nb else None


def _empty(p0: float, p1: float) -> Refusal | None:
    if p0 == 0:
        return Refusal.ZERO_BASELINE
    return Refusal.EMPTY_TOLERANCE_INTERVAL if p1 >= p0 else None


def _smallest_held(
    question: str, nb: int, target: float, power_at: Callable[[int], float]
) -> Sizing:
    """One more than the largest test that falls short: from there the sawtooth stays above."""
    held: tuple[int, float] | None = None
    for n in range(nb, 0, -1):
        value = power_at(n)
        if not reaches_target(value, target):
            break
        held = n, value
    if held is None:
        return Sizing(question=question, refusal=Refusal.BASELINE_TOO_SMALL)
    return Sizing(question=question, trials=held[0], power=held[1])


def _highest_rate(p0: float, target: float, power_at: Callable[[float], float]) -> float | None:
    """The highest rate below p0 with enough power, which falls as the rate rises."""
    low, high = 0.0, p0
    if power_at(low) < target:
        return None
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (middle, high) if power_at(middle) >= target else (low, middle)
    return low


def _floor_power(p0: float, p1: float, n: int, z: float) -> float:
    gap = wilson_low(p0 * n, n, z) - p1
    spread = math.sqrt(p1 * (1 - p1) / n)
    if spread == 0:
        return 1.0 if gap > 0 else 0.0
    return normal_cdf(gap / spread)


def _floor_sizing(question: str, p0: float, p1: float, n: int, z: float) -> Sizing:
    floor = wilson_low(p0 * n, n, z)
    return Sizing(question=question, trials=n, floor=floor, power=_floor_power(p0, p1, n, z))
