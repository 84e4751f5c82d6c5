"""The smallest drop of a rate that a test detects."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import upper_z
from trialwise.stats.regression_cutoffs import rejection_probability
from trialwise.stats.result_types import RULES, Rule
from trialwise.stats.toolbox.rate_sizing import approximate_power
from trialwise.validation import require_choice, require_count, require_open_rate, require_rate


def normal_power(
    reference_rate: float, alternative_rate: float, trials: SupportsIndex, *, alpha: float = 0.05
) -> float:
    """The approximate power to see a drop from one rate to another (companion §5.3).

    Φ((p0 − p1 − z_α SE0) / SE1), with SE_i = √(p_i(1−p_i)/n).

    Examples
    --------
    >>> round(normal_power(0.95, 0.90, 100), 3)
    0.681
    """
    p0 = require_open_rate("reference_rate", reference_rate)
    p1 = require_open_rate("alternative_rate", alternative_rate)
    if p1 >= p0:
        raise InvalidArgument("alternative_rate", p1, f"lie below reference_rate ({p0})")
    n = require_count("trials", trials, minimum=1)
    return approximate_power(p0, p1, n, upper_z(require_open_rate("alpha", alpha)))


def minimum_detectable_effect(
    reference_rate: float, trials: SupportsIndex, *, alpha: float = 0.05, power: float = 0.80
) -> float | None:
    """The smallest drop that the normal approximation detects with the wanted power (§5.6).

    None where not even a drop to a rate of 0 would be.

    Examples
    --------
    >>> round(minimum_detectable_effect(0.95, 150), 4)
    0.0499
    """
    p0 = require_open_rate("reference_rate", reference_rate)
    n = require_count("trials", trials, minimum=1)
    z = upper_z(require_open_rate("alpha", alpha))
    target = require_open_rate("power", power)
    return find_smallest_drop(p0, lambda p1: approximate_power(p0, p1, n, z) >= target)


def minimum_detectable_degradation(
    baseline_rate: float,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
    power: float = 0.80,
    rule: Rule = "exact",
) -> float | None:
    """The smallest drop a planned regression test detects with the wanted power, exactly (§5.6).

    Baseline and test are both still to be drawn. A baseline of rate 1 never fails. None where even
    a drop to 0 falls short.

    Examples
    --------
    >>> round(minimum_detectable_degradation(0.95, 1000, 100, rule="fisher"), 6)
    0.075585
    """
    p = require_rate("baseline_rate", baseline_rate)
    nb = require_count("baseline_trials", baseline_trials, minimum=1)
    n = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    target = require_open_rate("power", power)
    which = require_choice("rule", rule, RULES)
    return find_smallest_drop(
        p, lambda p1: rejection_probability(nb, n, p, p1, alpha=level, rule=which) >= target
    )


def find_smallest_drop(p0: float, detected: Callable[[float], bool]) -> float | None:
    """The smallest δ with `detected(p0 − δ)`, for a power that grows with the drop."""
    if not detected(0.0):
        return None
    low, high = 0.0, p0
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (low, middle) if detected(p0 - middle) else (middle, high)
    return high
