"""Amounts in the ways people write them, as kinds of value: rates, times, paces, money."""

from __future__ import annotations

from typing import Any

from trialwise.declarations import amounts
from trialwise.declarations.scalars import Scalar, Schema, is_number


class _Written(Scalar):
    """An amount in the ways people write it."""

    pattern = ""
    example: Any = ""
    unit = ""
    """What a number alone probably lacks."""
    largest: int | None = None
    """The largest number that may be written alone; None where a number needs its unit."""

    def parse(self, text: str) -> float | None:
        """Parse what a text says."""
        raise NotImplementedError

    def convert(self, value: Any) -> float | None:
        """Convert the amount of a text, or of a number where that needs no unit."""
        if is_number(value) and self.largest is not None:
            return float(value) if 0 <= value <= self.largest else None
        return self.parse(value.strip()) if isinstance(value, str) else None

    def convert_python(self, value: Any) -> float | None:
        """Convert a number of seconds, or for each second, as Python's own functions take it."""
        alone = is_number(value) and self.largest is None and 0 < value < float("inf")
        return float(value) if alone else None

    def hint(self, value: Any) -> str:
        """A number alone could be anything."""
        meant = self.unit and is_number(value) and value > 0
        return f"did you mean {value}{self.unit}?" if meant else ""

    def spellings(self) -> list[Schema]:
        """Return a text, or a number where that needs no unit."""
        pattern = rf"^\s*(?:{self.pattern})\s*$"
        text: Schema = {"type": "string", "pattern": pattern, "examples": [self.example]}
        if self.largest is None:
            return [text]
        return [{"type": "number", "minimum": 0, "maximum": self.largest}, text]


class Rate(_Written):
    """A share of one."""

    expected = "a rate such as 0.9 or 90%"
    spelled = "rate"
    pattern = amounts.RATE_PATTERN
    example = "90%"
    unit = "%"
    largest = 1
    parse = staticmethod(amounts.rate)

    def hint(self, value: Any) -> str:
        """A number above one is a percentage without its sign."""
        return super().hint(value) if is_number(value) and 1 < value <= 100 else ""


class Duration(_Written):
    """A time with its unit."""

    expected = "a time with its unit, such as 30s, 500ms, 2m or 1h"
    spelled = "time"
    pattern = amounts.DURATION_PATTERN
    example = "30s"
    unit = "s"
    parse = staticmethod(amounts.duration)


class Pace(_Written):
    """How often in a unit of time."""

    expected = "a pace such as 5/s or 300/min"
    spelled = "pace"
    pattern = amounts.PACE_PATTERN
    example = "5/s"
    unit = "/s"
    parse = staticmethod(amounts.pace)


class Money(_Written):
    """An amount of US dollars."""

    expected = "an amount in US dollars such as $2 or 0.05"
    spelled = "money"
    pattern = amounts.MONEY_PATTERN
    example = "$2"
    #: A double holds cents up to here, and nobody spends it.
    largest = 10**12
    parse = staticmethod(amounts.money)
