"""Axes: where a value lies between two ends, and which values are round."""

from __future__ import annotations

import math

__all__ = ["part", "round_above", "round_steps"]


def part(value: float, low: float, high: float) -> float:
    """How far between two ends, 0 to 1."""
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def round_above(value: float) -> float:
    """The next round number: 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6 or 8 times a power of ten.

    >>> round_above(37), round_above(0)
    (40.0, 1.0)
    """
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
    return scale * next((step for step in steps if value <= scale * step), 10)


def round_steps(low: float, high: float, *, most: int = 8) -> list[float]:
    """A few round values between two ends: at most one more than `most`, which is 2 to 8.

    >>> round_steps(0, 40), round_steps(0.75, 1, most=4)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.8, 0.9, 1.0])
    """
    if high <= low:
        return [low]
    scale = 10.0 ** math.floor(math.log10(high - low))
    span = (high - low) / scale  # from 1 up to 10
    step = scale * next(part for part in (0.25, 0.5, 1.0, 2.0, 5.0) if span < most * part)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]
