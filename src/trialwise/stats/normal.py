"""The standard normal distribution, from the standard library alone."""

from __future__ import annotations

import math

_SQRT2 = math.sqrt(2)

#: The package exports none of these: Python has `statistics.NormalDist`.


def normal_cdf(x: float) -> float:
    """P(Z ≤ x), accurate in the lower tail.

    >>> normal_cdf(0.0)
    0.5
    """
    return math.erfc(-x / _SQRT2) / 2


def normal_sf(x: float) -> float:
    """P(Z > x), accurate in the upper tail."""
    return math.erfc(x / _SQRT2) / 2


def normal_quantile(q: float) -> float:
    """The z with P(Z ≤ z) = q, for 0 < q < 1 (Wichura's AS 241, as the standard library has it).

    >>> round(normal_quantile(0.95), 6)
    1.644854
    """
    # `statistics` costs as much to import as the interpreter to start; a help page needs none.
    from statistics import NormalDist

    return NormalDist().inv_cdf(q)


def upper_z(alpha: float) -> float:
    """The one-sided critical value z with P(Z > z) = alpha.

    Taken from the lower tail and reflected: 1 − alpha would round a small alpha away.
    """
    return -normal_quantile(alpha) + 0.0
