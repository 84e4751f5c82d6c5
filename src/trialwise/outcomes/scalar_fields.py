"""Single values of others' files: a number, a time, a text, or nothing where it is none."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

__all__ = ["amount", "count", "moment", "number", "text_of"]

#: More than all the tokens there are; beyond it nobody means a count.
_MOST = 10**15


def number(value: Any) -> float | None:
    """A finite number, also one that is written as text.

    >>> number(7), number("0.5"), number("soon"), number(True)
    (7.0, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def amount(value: Any) -> float | None:
    """A number of at least 0, such as seconds or dollars."""
    found = number(value)
    return None if found is None or found < 0 else found


def count(value: Any) -> int | None:
    """A whole number of at least 0."""
    found = amount(value)
    return None if found is None or found % 1 or found > _MOST else int(found)


def moment(value: Any) -> float | None:
    """A time, or any number that grows, as a number; a time without a zone is taken as UTC.

    >>> moment("1970-01-02T00:00:00Z"), moment(7), moment("soon")
    (86400.0, 7.0, None)
    """
    found = number(value)
    if found is not None or not isinstance(value, str):
        return found
    try:
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    """A single value as text; nothing for what has parts."""
    return "" if value is None or isinstance(value, dict | list) else str(value)
