"""Power and detectable rates of regression tests that are only planned (companion §5.4, §6.2).

The questions and rules are those of `risk_sizing`, which answers the ones that plans ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

from trialwise.stats.binomial import raw_cdf
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.regression_cutoffs import rejection_probability
from trialwise.stats.result_types import Refusal
from trialwise.stats.toolbox.risk_sizing import (
    Sizing,
    approximate_floor_power,
    check_baseline,
    critical_value,
    find_held_trials,
    refuse_alternative,
    refuse_tolerance,
    size_floor,
)
from trialwise.stats.unconditional import smallest_count
from trialwise.validation import require_count, require_open_rate, require_rate


def design_required_trials(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The fewest test trials from which a planned design keeps its power up to the baseline's size.

    Rule `fisher`. Refused where the target is not reached and held: the baseline is too small.

    Examples
    --------
    >>> design_required_trials(0.9, 1000, 0.8).trials
    91
    """
    p0, nb, p1 = _design(baseline_rate, baseline_trials, alternative_rate)
    level, target = require_open_rate("alpha", alpha), require_open_rate("power", power)
    question = "required trials"
    if refusal := refuse_alternative(p0, p1):
        return Sizing(question=question, refusal=refusal)
    return find_held_trials(
        question,
        nb,
        target,
        lambda n: rejection_probability(nb, n, p0, p1, alpha=level, rule="fisher"),
    )


def design_power_at(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> Sizing:
    """The power of a planned design, baseline and test both still to be drawn. Rule `fisher`.

    Examples
    --------
    >>> round(design_power_at(0.96, 2000, 0.93, 50).power, 6)
    0.194626
    """
    p0, nb, p1 = _design(baseline_rate, baseline_trials, alternative_rate)
    n = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    if refusal := refuse_alternative(p0, p1) or _larger(n, nb):
        return Sizing(question="power", refusal=refusal)
    value = rejection_probability(nb, n, p0, p1, alpha=level, rule="fisher")
    return Sizing(question="power", trials=n, power=value)


def design_detectable_rate(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
) -> Sizing:
    """The highest degraded rate that a planned design detects with its power. Rule `fisher`.

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
    if refusal := refuse_alternative(p0, -1.0) or _larger(n, nb):
        return Sizing(question=question, refusal=refusal)
    rate = _highest_rate(
        p0, target, lambda p1: rejection_probability(nb, n, p0, p1, alpha=level, rule="fisher")
    )
    return Sizing(question=question, trials=n, power=target, detectable_rate=rate)


def resolved_power_at(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    alternative_rate: float,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> Sizing:
    """The power of a test against a baseline that exists, whose cutoff is fixed. Rule `fisher`.

    Examples
    --------
    >>> resolved_power_at(951, 1000, 0.925, 1000).cutoff
    933
    """
    k, nb, p1 = check_baseline(baseline_successes, baseline_trials, alternative_rate)
    n = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    if refusal := refuse_alternative(k / nb, p1) or _larger(n, nb):
        return Sizing(question="power", refusal=refusal)
    cutoff = smallest_count(k, nb, n, level)
    return Sizing(question="power", trials=n, cutoff=cutoff, power=raw_cdf(cutoff - 1, n, p1))


def floor_power_at(
    baseline_rate: float,
    minimum_acceptable_rate: float,
    trials: SupportsIndex,
    *,
    confidence: float = 0.95,
) -> Sizing:
    """The floor and its approximate power at a candidate number of trials. Rule `wilson`.

    Examples
    --------
    >>> round(floor_power_at(0.96, 0.93, 50).power, 6)
    0.111871
    """
    p0, p1 = (
        require_rate("baseline_rate", baseline_rate),
        require_rate("minimum_acceptable_rate", minimum_acceptable_rate),
    )
    n = require_count("trials", trials, minimum=1)
    z = critical_value(confidence)
    if refusal := refuse_tolerance(p0, p1):
        return Sizing(question="power", refusal=refusal)
    return size_floor("power", p0, p1, n, z)


def floor_detectable_rate(
    baseline_rate: float, trials: SupportsIndex, *, confidence: float = 0.95, power: float = 0.80
) -> Sizing:
    """The highest rate that the moving floor detects at a fixed number of trials. Rule `wilson`.

    Examples
    --------
    >>> round(floor_detectable_rate(0.87, 100).detectable_rate, 6)
    0.769353
    """
    p0 = require_rate("baseline_rate", baseline_rate)
    n = require_count("trials", trials, minimum=1)
    z = critical_value(confidence)
    target = require_open_rate("power", power)
    if refusal := refuse_tolerance(p0, -1.0):
        return Sizing(question="detectable rate", refusal=refusal)
    rate = _highest_rate(p0, target, lambda p1: approximate_floor_power(p0, p1, n, z))
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


def _larger(n: int, nb: int) -> Refusal | None:
    return Refusal.TEST_LARGER_THAN_BASELINE if n > nb else None


def _highest_rate(p0: float, target: float, power_at: Callable[[float], float]) -> float | None:
    """The highest rate below p0 with enough power, which falls as the rate rises."""
    low, high = 0.0, p0
    if power_at(low) < target:
        return None
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (middle, high) if power_at(middle) >= target else (low, middle)
    return low
