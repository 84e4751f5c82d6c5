"""Intervals for one rate that no verdict uses: the Bayesian one, and Wilson's around a rate."""

from __future__ import annotations

from typing import SupportsIndex

from trialwise.stats.binomial import beta_quantile, normal_quantile
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import Interval
from trialwise.validation import require_count, require_open_rate, require_rate, require_successes


def jeffreys(
    successes: SupportsIndex, trials: SupportsIndex, *, confidence: float = 0.95
) -> Interval:
    """The equal-tailed interval of the Beta(k + ½, n − k + ½) posterior, anchored at 0 and 1.

    Brown, Cai & DasGupta (2001), with their boundary rule: the end nearest a perfect or empty
    record is exactly 1 or 0.

    Examples
    --------
    >>> jeffreys(10, 10).high
    1.0
    """
    k, n = require_successes(successes, trials)
    level = require_open_rate("confidence", confidence)
    tail = (1 - level) / 2
    low = beta_quantile(tail, k + 0.5, n - k + 0.5) if k else 0.0
    high = 1 - beta_quantile(tail, n - k + 0.5, k + 0.5) if k < n else 1.0
    return Interval(low, high, confidence=level, method="jeffreys")


def wilson_lower_rate(rate: float, trials: SupportsIndex, *, confidence: float = 0.95) -> float:
    """The one-sided Wilson lower bound centred on a rate rather than on counts (companion §1.5.4).

    A regression threshold is this bound at the baseline's rate and the *test's* trials.

    Examples
    --------
    >>> round(wilson_lower_rate(0.951, 100), 6)
    0.902124
    """
    p = require_rate("rate", rate)
    n = require_count("trials", trials, minimum=1)
    return wilson_low(p * n, n, normal_quantile(require_open_rate("confidence", confidence)))
