"""Standard errors of a rate that is corrected for a judge's errors.

The exact tests measure distances in them, and plans are made by them.
"""

from __future__ import annotations

import math


def error_of_shares(
    rate: float, missed: float, through: float, *, labels: int, trials: int, is_pooled: bool
) -> float:
    """The standard error of a rate that is corrected by the shares of a judge's two errors.

    A unit that people label counts for what people say less what the judge says, the latter by the
    weight of the trials: 1, or their share of all units where the labels count as trials.

    Parameters
    ----------
    rate : float
        The true rate.
    missed, through : float
        The shares of all units that the judge misses and lets through.
    labels, trials : int
        How many of each, at least 1.
    is_pooled : bool
        Whether the labels count as trials.

    Examples
    --------
    >>> error_of_shares(0.9, 0, 0, labels=50, trials=100, is_pooled=False)
    0.03
    """
    judged = min(max(rate - missed + through, 0.0), 1.0)
    weight = trials / (trials + labels) if is_pooled else 1.0
    right = max(rate - missed, 0.0)
    mean = (1 - weight) * right + missed - weight * through
    spread = (1 - weight) ** 2 * right + missed + weight**2 * through - mean**2
    return math.sqrt(weight**2 * judged * (1 - judged) / trials + max(spread, 0.0) / labels)


def error_by_class(
    rate: float, sensitivity: float, specificity: float, *, good: float, bad: float, trials: int
) -> float:
    """The standard error of judged rate − rate · sensitivity − (1 − rate) (1 − specificity).

    Parameters
    ----------
    rate : float
        The true rate.
    sensitivity, specificity : float
        The judge's accuracies.
    good, bad : float
        The numbers of labels that pass and that fail, above 0.
    trials : int
        At least 1.

    Examples
    --------
    >>> error_by_class(0.9, 1, 1, good=40, bad=10, trials=100)
    0.03
    """
    judged = rate * sensitivity + (1 - rate) * (1 - specificity)
    variance = judged * (1 - judged) / trials + rate**2 * sensitivity * (1 - sensitivity) / good
    variance += (1 - rate) ** 2 * specificity * (1 - specificity) / bad
    return math.sqrt(variance)
