"""How people write rates, times, paces and money, read exactly: 90% is the double nearest to 9/10.

Nothing here knows where a text was written, so that suite files and the command line can share it.
A text that is none of these is None; the caller says where and what would have been one.

Options of a command line and of an ini file know their kind by name alone: they are offered before
anything heavy is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?"
RATE_PATTERN = rf"{_NUMBER} ?%?"
DURATION_PATTERN = rf"{_NUMBER} ?(?:ms|s|m|min|h)"
PACE_PATTERN = rf"{_NUMBER} ?/ ?(?:s|m|min|h)"
MONEY_PATTERN = rf"\$? ?{_NUMBER}"
#: Each unit as whole seconds times a power of ten.
_UNITS = {"ms": (1, -3), "s": (1, 0), "m": (60, 0), "min": (60, 0), "h": (3600, 0)}
#: Longer than any amount that somebody means.
_LONGEST = 40
_EXPECTED = {
    "count": "a whole number of at least 1",
    "count from 0": "a whole number of at least 0",
    "integer": "a whole number",
    "money": "an amount in US dollars above 0, such as $2 or 0.05",
    "pace": "a pace such as 5/s or 300/min",
    "rate": "a rate such as 0.9 or 90%",
    "time": "a time above 0, such as 30s, 500ms, 2m or a number of seconds",
}


def number(text: str) -> float | None:
    """Return a number of at least 0, as written in decimals.

    >>> number("2.5"), number("1e3"), number("-1"), number("nan")
    (2.5, 1000.0, None, None)
    """
    return _scale_digits(text, 1, 0) if re.fullmatch(_NUMBER, text) else None


def rate(text: str) -> float | None:
    """Return a share of one, as a decimal or in per cent.

    >>> rate("90%"), rate("0.9"), rate("99.9 %"), rate("90")
    (0.9, 0.9, 0.999, None)
    """
    if not re.fullmatch(RATE_PATTERN, text):
        return None
    share = _scale_digits(text.rstrip("% "), 1, -2 if text.endswith("%") else 0)
    return share if share is not None and share <= 1 else None


def duration(text: str, *, bare: bool = False) -> float | None:
    """Seconds above 0, from a number with its unit: ms, s, m or min, h.

    Args:
        text: As written.
        bare: Whether a number alone counts as seconds.

    >>> duration("500ms"), duration("2 min"), duration("1.1h"), duration("30")
    (0.5, 120.0, 3960.0, None)
    """
    if bare and re.fullmatch(_NUMBER, text):
        text += "s"
    if not re.fullmatch(DURATION_PATTERN, text):
        return None
    digits = text.rstrip("mshin ")
    seconds = _scale_digits(digits, *_UNITS[text[len(digits) :].strip()])
    return seconds if seconds else None


def pace(text: str) -> float | None:
    """Return how often in a second, above 0, from a number per unit of time.

    >>> pace("5/s"), pace("300/min"), pace("5")
    (5.0, 5.0, None)
    """
    if not re.fullmatch(PACE_PATTERN, text):
        return None
    digits, _, unit = text.partition("/")
    often = _scale_digits(digits.strip(), 1, 0)
    # A pace of 0 would wait for ever, so that it is no pace.
    return often / _UNITS[unit.strip()][0] if often else None


def money(text: str) -> float | None:
    """US dollars, with or without their sign.

    >>> money("$2.50"), money("0.05"), money("2 EUR")
    (2.5, 0.05, None)
    """
    if not re.fullmatch(MONEY_PATTERN, text):
        return None
    return _scale_digits(text.lstrip("$ "), 1, 0)


def _scale_digits(digits: str, factor: int, power: int) -> float | None:
    """Return the double nearest to digits × factor × 10^power."""
    # Python refuses to read integers of thousands of digits, and takes long for those below.
    if len(digits) > _LONGEST:
        return None
    mantissa, _, exponent = digits.lower().partition("e")
    whole, _, part = mantissa.partition(".")
    # Through a text and not by a product: 1.1 * 3600 is 3960.0000000000005 in doubles.
    value = float(f"{int(whole + part) * factor}e{int(exponent or 0) - len(part) + power}")
    return value if value < float("inf") else None


def describe_option(kind: str) -> str:
    """Return what an option takes, as the rest of a sentence that starts with "must be"."""
    return _EXPECTED.get(kind) or f"one of {', '.join(kind.split('|'))}"


def read_option(kind: str, text: str) -> Any:
    """Return the value of an option, or None where the text is not of its kind.

    >>> read_option("rate", "90%"), read_option("time", "2m"), read_option("count", "0")
    (0.9, 120.0, None)
    """
    text = text.strip()
    if kind in ("text", "names"):
        return text or None
    if "|" in kind:
        return text.lower() if text.lower() in kind.split("|") else None
    readers: dict[str, Callable[[str], float | None]] = {
        "rate": rate,
        "time": lambda text: duration(text, bare=True),
        "pace": pace,
        "money": lambda text: money(text) or None,
    }
    return readers[kind](text) if kind in readers else _read_whole(kind, text)


def _read_whole(kind: str, text: str) -> int | None:
    digits = text.removeprefix("-")
    # Other scripts have digits, too, and Python takes seconds for a number of a million digits.
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        return None
    least = {"count": 1, "count from 0": 0}.get(kind)
    return int(text) if least is None or int(text) >= least else None
