"""How people write rates, money, time and counts on a command line, and one sentence if not so."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

import click

from trialwise.declarations.amounts import duration, money, number, rate

__all__ = [
    "DURATION",
    "LIMIT",
    "PERCENTILE",
    "RATE",
    "SUCCESSES",
    "TRIALS",
    "USD",
    "option_name",
    "refusal",
]


def refusal(name: str, value: object, allowed: str) -> click.ClickException:
    """The error for a value: which option, what is allowed, what was given."""
    return click.ClickException(f"{name} must {allowed}, got {value}")


def option_name(param: click.Parameter | None) -> str:
    """A parameter as its user writes it: --price, or RATE for an argument."""
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.make_metavar(click.get_current_context())


class _Written(click.ParamType[Any]):
    """A value read from what was written, exactly: 90% is 9/10, not nine tenths of a double."""

    allowed = ""

    @abstractmethod
    def read(self, text: str) -> object | None:
        """The value, or None where the text is not one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        result = self.read(value.strip())
        if result is None:
            name = option_name(param) if ctx else "the value"
            raise refusal(name, repr(value), self.allowed)
        return result


class _Rate(_Written):
    name = "rate"
    allowed = "be a rate such as 90% or 0.9"

    def read(self, text: str) -> float | None:
        return rate(text)


class _Percentile(_Written):
    name = "percentile"
    allowed = "be a percentile such as 95, p95 or 0.95"

    def read(self, text: str) -> float | None:
        digits = text.removeprefix("p")
        value = number(digits)
        # From 1 on it counts hundredths, with or without their sign.
        return rate(digits if value is None or value < 1 else f"{digits}%")


class _Usd(_Written):
    name = "usd"
    allowed = "be an amount in dollars above 0, such as 0.02 or $0.02"

    def read(self, text: str) -> float | None:
        return money(text) or None


class _Duration(_Written):
    name = "time"
    allowed = "be a time above 0, such as 3s, 500ms, 2m or a number of seconds"

    def read(self, text: str) -> float | None:
        return duration(text, bare=True)


class _Limit(_Duration):
    """A time, or that there is one: `--limit` alone asks for a limit without naming it."""

    UNNAMED = "unnamed"

    def read(self, text: str) -> float | None:
        return 0.0 if text == self.UNNAMED else super().read(text)


class _Successes(_Written):
    name = "k/n"
    allowed = "be successes of at least as many trials, such as 951/1000"

    def read(self, text: str) -> tuple[int, int] | None:
        found = re.fullmatch(r"(\d{1,9})\s*/\s*(\d{1,9})", text)
        if found is None or not int(found[1]) <= int(found[2]) > 0:
            return None
        return int(found[1]), int(found[2])


class _Trials(_Written):
    name = "n"
    allowed = "be a whole number of at least 1"

    def read(self, text: str) -> int | None:
        return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


RATE = _Rate()
PERCENTILE = _Percentile()
USD = _Usd()
DURATION = _Duration()
LIMIT = _Limit()
SUCCESSES = _Successes()
TRIALS = _Trials()
