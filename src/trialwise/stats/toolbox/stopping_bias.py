"""What an early stop does to the usual estimate and interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trialwise.stats.result_types import Interval
from trialwise.stats.sequential.walks import stopping_probabilities
from trialwise.validation import require_rate

if TYPE_CHECKING:
    from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.sequential.stopped_rates import check_stop, stopped_estimate


def naive_interval(
    design: SequentialDesign, trials: int, failures: int, *, confidence: float = 0.95
) -> Interval:
    """The Wilson interval of the counts at the stop: descriptive, not a statement of confidence.

    It forgets that the design chose when to stop, so that its coverage is not the one stated.

    Parameters
    ----------
    design : SequentialDesign
    trials, failures : int
        Where the design stopped.
    confidence : float
        Strictly between 0 and 1; nominal only.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign, naive_bias
    >>> shown = naive_interval(SequentialDesign.wald(0.90, cap=50), 14, 0)
    >>> round(shown.low, 3), shown.method
    (0.785, 'wilson, descriptive after stopping')
    """
    from trialwise.stats.rate_intervals import wilson_interval

    n, f = check_stop(design, trials, failures)
    low, high = wilson_interval(n - f, n, confidence=confidence)
    return Interval(low, high, confidence=confidence, method="wilson, descriptive after stopping")


def estimate_bias(design: SequentialDesign, p: float) -> float:
    """The mean of the mid median-unbiased estimate at the stop, less the true rate p.

    Parameters
    ----------
    design : SequentialDesign
    p : float
        The true rate, 0 and 1 included.

    Examples
    --------
    >>> from trialwise.stats.sequential import SequentialDesign, naive_bias
    >>> design = SequentialDesign.wald(0.90, 0.80, cap=50)
    >>> abs(estimate_bias(design, 0.90)) < abs(naive_bias(design, 0.90))
    True
    """
    rate = require_rate("p", p)
    stops = stopping_probabilities(design, rate)
    found = (w * stopped_estimate(design, n, f) for part in stops for n, f, w in part)
    return math.fsum(found) - rate
