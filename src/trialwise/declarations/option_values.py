"""What the options of a command line and of an ini file hold, by the name of their kind.

Options are offered before anything heavy is loaded, so that they know their kind by name alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trialwise.declarations import amounts

__all__ = ["describe_option", "read_option"]

_EXPECTED = {
    "count": "a whole number of at least 1",
    "count from 0": "a whole number of at least 0",
    "integer": "a whole number",
    "money": "an amount in US dollars above 0, such as $2 or 0.05",
    "pace": "a pace such as 5/s or 300/min",
    "rate": "a rate such as 0.9 or 90%",
    "time": "a time above 0, such as 30s, 500ms, 2m or a number of seconds",
}


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
        "rate": amounts.rate,
        "time": lambda text: amounts.duration(text, bare=True),
        "pace": amounts.pace,
        "money": lambda text: amounts.money(text) or None,
    }
    return readers[kind](text) if kind in readers else _read_whole(kind, text)


def _read_whole(kind: str, text: str) -> int | None:
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        return None
    least = {"count": 1, "count from 0": 0}.get(kind)
    return int(text) if least is None or int(text) >= least else None
