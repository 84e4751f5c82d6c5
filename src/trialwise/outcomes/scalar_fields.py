"""Read single values of result files: a number, a time or a text; None for anything else."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

__all__ = ["amount", "count", "moment", "number", "text_of"]

#: A larger number is not a count of tokens.
_MOST = 10**15


def number(value: Any) -> float | None:
    """Read a finite number, also from text.

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
    """Read a number of at least 0, such as seconds or dollars."""
    found = number(value)
    return None if found is None or found < 0 else found


def count(value: Any) -> int | None:
    """Read a whole number of at least 0."""
    found = amount(value)
    return None if found is None or found % 1 or found > _MOST else int(found)


def moment(value: Any) -> float | None:
    """Read a time, or any number that grows, as a number; a time without a zone is UTC.

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
    """Return a single value as text; an empty text for a list or an object."""
    return "" if value is None or isinstance(value, dict | list) else str(value)
