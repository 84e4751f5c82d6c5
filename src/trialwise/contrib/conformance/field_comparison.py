"""How an answer is compared with a reference case.

Numbers within the suite's one absolute tolerance; booleans, strings and null exactly; lists and
mappings part by part. A mapping may say more than the reference asks: only what is expected binds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Difference", "compare", "largest_deviation"]

#: What an answer without the field counts as.
MISSING = "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where an answer is not what the reference expects."""

    field: str
    expected: Any
    got: Any


def compare(field: str, expected: Any, got: Any, tolerance: float) -> Iterator[Difference]:
    """Every place below `field` where `got` departs from `expected` by more than the tolerance."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        for key, value in expected.items():
            yield from compare(f"{field}.{key}", value, got.get(key, MISSING), tolerance)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (left, right) in enumerate(zip(expected, got, strict=True)):
            yield from compare(f"{field}[{index}]", left, right, tolerance)
    elif _number(expected) and _number(got):
        if not abs(expected - got) <= tolerance:
            yield Difference(field=field, expected=expected, got=got)
    elif expected != got or isinstance(expected, bool) is not isinstance(got, bool):
        yield Difference(field=field, expected=expected, got=got)


def largest_deviation(expected: Any, got: Any) -> float:
    """The largest absolute difference between two numbers anywhere in the two answers."""
    if isinstance(expected, Mapping) and isinstance(got, Mapping):
        pairs = [(value, got[key]) for key, value in expected.items() if key in got]
    elif isinstance(expected, list) and isinstance(got, list):
        pairs = list(zip(expected, got, strict=False))
    else:
        numeric = _number(expected) and _number(got)
        return abs(float(expected) - float(got)) if numeric else 0.0
    return max((largest_deviation(left, right) for left, right in pairs), default=0.0)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
