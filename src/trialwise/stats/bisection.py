"""Bisection: where a condition that changes once stops or begins to hold."""

from __future__ import annotations

from collections.abc import Callable


def find_end(inside: float, outside: float, holds: Callable[[float], bool]) -> float:
    """Return where a condition ends on the way from inside to outside, rounded outward.

    It halves down to neighbouring doubles, so that no tolerance has to be chosen.
    """
    while (middle := (inside + outside) / 2) not in (inside, outside):
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return outside


def find_first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the smallest integer above low from which on a condition holds, as it does at high."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
