"""Axes: where a value lies between two ends, which values are round, and how a tick is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.documents.numbers import (
    as_duration,
    as_mean_trials,
    as_money,
    as_percent,
    as_probability,
    as_seconds,
)

__all__ = ["Axis", "Unit", "find_share", "list_round_steps", "round_up", "thin_out"]

Unit: TypeAlias = Literal["rate", "count", "seconds", "usd"]
"""What an axis counts; it decides how values are written."""


def find_share(value: float, low: float, high: float) -> float:
    """How far a value lies between two ends, 0 to 1; what lies outside is put on the edge."""
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def round_up(value: float) -> float:
    """The next round number: 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6 or 8 times a power of ten.

    >>> round_up(37), round_up(0)
    (40.0, 1.0)
    """
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
    return scale * next((step for step in steps if value <= scale * step), 10)


def list_round_steps(low: float, high: float, *, most: int = 8) -> list[float]:
    """A few round values between two ends: at most one more than `most`, which is 2 to 8.

    >>> list_round_steps(0, 40), list_round_steps(0.75, 1, most=4)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.8, 0.9, 1.0])
    """
    if high <= low:
        return [low]
    scale = 10.0 ** math.floor(math.log10(high - low))
    span = (high - low) / scale  # from 1 up to 10
    step = scale * next(part for part in (0.25, 0.5, 1.0, 2.0, 5.0) if span < most * part)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def thin_out(count: int, most: int) -> list[int]:
    """At most so many of the places 0 to count - 1, evenly spread, both ends among them.

    >>> thin_out(3, 5), thin_out(101, 3)
    ([0, 1, 2], [0, 50, 100])
    """
    if count <= most:
        return list(range(count))
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One side of a chart."""

    low: float
    high: float
    label: str
    unit: Unit
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1; what lies outside is put on the edge."""
        if self.logarithmic:
            logarithm = math.log(max(value, self.low))
            return find_share(logarithm, math.log(self.low), math.log(self.high))
        return find_share(value, self.low, self.high)

    def list_ticks(self, *, most: int = 5) -> list[tuple[float, str]]:
        """A few round values, with how they are written."""
        values = self._list_decades() if self.logarithmic else self._list_steps(most)
        return [(value, self.format_tick(value)) for value in values]

    def format_tick(self, value: float) -> str:
        """A round value as the axis writes it."""
        match self.unit:
            case "rate":
                return as_percent(float(f"{value:.4g}"))
            case "seconds":
                if value < 0.01:
                    return as_seconds(float(f"{value:.3g}")) if value else "0"
                return as_duration(value)
            case "usd":
                return as_money(value)
            case "count":
                return f"{value:,.0f}"

    def format_value(self, value: float) -> str:
        """A computed value on the axis, exact enough to be read out."""
        if self.unit == "rate":
            return as_probability(value)
        return as_mean_trials(value) if self.unit == "count" else self.format_tick(value)

    def _list_steps(self, most: int) -> list[float]:
        steps = list_round_steps(self.low, self.high, most=most)
        return [step for step in steps if step % 1 == 0] if self.unit == "count" else steps

    def _list_decades(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1, 2, 5), (1, 3), (1,)):
            steps = [f * 10.0**power for power in range(first, last + 1) for f in factors]
            inside = [step for step in steps if self.low <= step <= self.high]
            if len(inside) <= 6:
                return inside
        return inside
