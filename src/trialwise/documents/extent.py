"""How much of a page something takes, so that a page stays small whatever a run was like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from html import escape

__all__ = ["cut_middle", "estimate_size"]

#: Bytes of markup around a text, a number and a block: what the HTML renderer takes on average.
_TEXT, _NUMBER, _BLOCK = 24, 6, 60
#: Bytes that a character may take which a renderer shows by its name.
_HIDDEN = 14


def cut_middle(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long, with what is left out counted.

    >>> cut_middle("abcdefghij" * 5, 20)
    'abcdefghijabc … [30 characters left out] … defghij'
    """
    if len(text) <= limit:
        return text
    # What matters in a reply is at its ends more often than in the middle; most is said first.
    tail = limit // 3 + limit % 3 // 2
    head = limit - tail
    end = text[len(text) - tail :]
    return f"{text[:head]} … [{len(text) - limit:,} characters left out] … {end}"


def estimate_size(part: object) -> int:
    """About how many bytes of HTML a block takes, or anything that a block holds."""
    if isinstance(part, str):
        return _TEXT + _measure_text(part) if part else 0
    if isinstance(part, int | float):
        return _NUMBER
    if isinstance(part, tuple):
        return sum(map(estimate_size, part))
    if isinstance(part, Mapping):
        return sum(map(estimate_size, part.values()))
    if is_dataclass(part):
        return _BLOCK + sum(estimate_size(getattr(part, one.name)) for one in fields(part))
    return 0


def _measure_text(text: str) -> int:
    if text.isascii() and text.isprintable():
        return len(escape(text, quote=False)) if any(one in text for one in "<>&") else len(text)
    size = len(escape(text, quote=False).encode("utf-8", "replace"))
    return size + _HIDDEN * sum(not one.isprintable() and one != "\n" for one in text)
