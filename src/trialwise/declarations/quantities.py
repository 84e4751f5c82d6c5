"""Amounts in the ways people write them, as kinds of value: rates, times, paces, money."""

from __future__ import annotations

from typing import Any

from trialwise.declarations import amounts
from trialwise.declarations.scalars import Scalar, Schema, is_number

#: A double holds cents up to here, and nobody spends it.
_MOST_MONEY = 10**12


class _Written(Scalar):
    """An amount in the ways people write it."""

    pattern = ""
    example: Any = ""

    def parse(self, text: str) -> float | None:
        """What a text says."""
        raise NotImplementedError

    def convert(self, value: Any) -> float | None:
        """The amount of a text; numbers are up to the kind."""
        return self.parse(value.strip()) if isinstance(value, str) else None

    def spellings(self) -> list[Schema]:
        """A text."""
        pattern = rf"^\s*(?:{self.pattern})\s*$"
        return [{"type": "string", "pattern": pattern, "examples": [self.example]}]


class Rate(_Written):
    """A share of one."""

    expected = "a rate such as 0.9 or 90%"
    spelled = "rate"
    pattern = amounts.RATE_PATTERN
    example = "90%"
    parse = staticmethod(amounts.rate)

    def convert(self, value: Any) -> float | None:
        """The share."""
        if is_number(value):
            return float(value) if 0 <= value <= 1 else None
        return super().convert(value)

    def hint(self, value: Any) -> str:
        """A number above one is a percentage without its sign."""
        return f"did you mean {value}%?" if is_number(value) and 1 < value <= 100 else ""

    def spellings(self) -> list[Schema]:
        """A number or a text."""
        return [{"type": "number", "minimum": 0, "maximum": 1}, *super().spellings()]


class Duration(_Written):
    """A time with its unit."""

    expected = "a time with its unit, such as 30s, 500ms, 2m or 1h"
    spelled = "time"
    pattern = amounts.DURATION_PATTERN
    example = "30s"
    parse = staticmethod(amounts.duration)

    def convert_python(self, value: Any) -> float | None:
        """A number of seconds, as Python's own functions take it."""
        return float(value) if is_number(value) and 0 < value < float("inf") else None

    def hint(self, value: Any) -> str:
        """A number alone could be anything."""
        return f"did you mean {value}s?" if is_number(value) and value > 0 else ""


class Pace(_Written):
    """How often in a unit of time."""

    expected = "a pace such as 5/s or 300/min"
    spelled = "pace"
    pattern = amounts.PACE_PATTERN
    example = "5/s"
    parse = staticmethod(amounts.pace)

    def convert_python(self, value: Any) -> float | None:
        """A number for each second."""
        return float(value) if is_number(value) and 0 < value < float("inf") else None

    def hint(self, value: Any) -> str:
        """A number alone could be anything."""
        return f"did you mean {value}/s?" if is_number(value) and value > 0 else ""


class Money(_Written):
    """An amount of US dollars."""

    expected = "an amount in US dollars such as $2 or 0.05"
    spelled = "money"
    pattern = amounts.MONEY_PATTERN
    example = "$2"
    parse = staticmethod(amounts.money)

    def convert(self, value: Any) -> float | None:
        """The amount."""
        if is_number(value):
            return float(value) if 0 <= value <= _MOST_MONEY else None
        return super().convert(value)

    def spellings(self) -> list[Schema]:
        """A number or a text."""
        return [{"type": "number", "minimum": 0, "maximum": _MOST_MONEY}, *super().spellings()]
