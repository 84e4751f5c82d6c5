"""Where the curves of a plan are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["even_rates"]


def even_rates(low: Fraction, high: Fraction, points: int) -> list[float]:
    """Evenly spaced rates from low to high, cut to what a rate can be.

    Rational, so that a rate of the plan that lies on the grid is that rate and not a neighbour.

    >>> from fractions import Fraction
    >>> even_rates(Fraction(8, 10), Fraction(11, 10), 3)
    [0.8, 0.9, 1.0]
    """
    first, last = max(low, low * 0), min(high, high * 0 + 1)
    return [float(first + (last - first) * i / (points - 1)) for i in range(points)]
