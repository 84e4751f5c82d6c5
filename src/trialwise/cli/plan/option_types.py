"""How people write rates, money, time and counts on a command line, and one sentence if not so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from trialwise.declarations.amounts import duration, money, number, rate


def refusal(name: str, value: object, allowed: str) -> click.ClickException:
    """Return the error for a value: which option, what is allowed, what was given."""
    return click.ClickException(f"{name} must {allowed}, got {value}")


def option_name(param: click.Parameter | None) -> str:
    """Return a parameter as its user writes it: --price, or RATE for an argument."""
    if param is None:
        return "the value"
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.make_metavar(click.get_current_context())


class Written(click.ParamType[Any]):
    """A value read from what was written, exactly: 90% is 9/10, not nine tenths of a double.

    Args:
        name: What a help page calls it.
        allowed: What must be written, as the rest of a sentence after "must".
        read: The value of a text, or None where the text is not one.
    """

    def __init__(self, name: str, allowed: str, read: Callable[[str], object | None]) -> None:
        self.name = name
        self._allowed = allowed
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read what was written."""
        if not isinstance(value, str):
            return value
        result = self._read(value.strip())
        if result is None:
            name = option_name(param) if ctx else "the value"
            raise refusal(name, repr(value), self._allowed)
        return result


def _read_percentile(text: str) -> float | None:
    digits = text.removeprefix("p")
    value = number(digits)
    # From 1 on it counts hundredths, with or without their sign.
    return rate(digits if value is None or value < 1 else f"{digits}%")


def _read_duration(text: str) -> float | None:
    return duration(text, bare=True)


def _read_successes(text: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"(\d{1,9})\s*/\s*(\d{1,9})", text)
    if found is None or not int(found[1]) <= int(found[2]) > 0:
        return None
    return int(found[1]), int(found[2])


def read_rates(text: str) -> tuple[float, float] | None:
    """Read the expected rates of the control and of the candidate.

    >>> read_rates("80%:90%"), read_rates("80%")
    ((0.8, 0.9), None)
    """
    parts = [rate(part.strip()) for part in text.split(":")]
    if len(parts) != 2 or any(part is None or not 0 < part < 1 for part in parts):
        return None
    return float(parts[0] or 0), float(parts[1] or 0)


def _read_trials(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) and int(text) > 0 else None


#: `--limit` alone asks for a limit without naming it.
UNNAMED_LIMIT = "unnamed"
_TIME = "be a time above 0, such as 3s, 500ms, 2m or a number of seconds"
_DOLLARS = "be an amount in dollars above 0, such as 0.02 or $0.02"
_OF_TRIALS = "be successes of at least as many trials, such as 951/1000"

RATE = Written("rate", "be a rate such as 90% or 0.9", rate)
PERCENTILE = Written("percentile", "be a percentile such as 95, p95 or 0.95", _read_percentile)
USD = Written("usd", _DOLLARS, lambda text: money(text) or None)
DURATION = Written("time", _TIME, _read_duration)
LIMIT = Written("time", _TIME, lambda text: 0.0 if text == UNNAMED_LIMIT else _read_duration(text))
SUCCESSES = Written("k/n", _OF_TRIALS, _read_successes)
TRIALS = Written("n", "be a whole number of at least 1", _read_trials)
RATES = Written("rate:rate", "be two rates such as 80%:90%", read_rates)
#: The questions of a comparison, written out: a help page loads no statistics.
QUESTIONS = ("different", "better", "not-worse", "equivalent")
