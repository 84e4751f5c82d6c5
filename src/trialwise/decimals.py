"""The exact-boundary convention (companion §10.6): doubles decide unless the answer is too close.

A tail probability that equals alpha exactly, such as P(K ≥ 5) = 0.5^5 at alpha = 0.03125, is on
the inclusive side of every rule, and double precision alone lands on either. Within a relative
1e-9 of alpha the comparison is therefore made again in rationals, with every number read as the
decimal the user wrote: 0.05 is 1/20, not the nearest double.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

#: How close to alpha a double must be, relatively, before it is not trusted with the decision.
RELATIVE_BAND = 1e-9


# The same few levels and rates are read again and again.
@lru_cache(maxsize=1024)
def as_written(value: float) -> Fraction:
    """Return the rational a user means by a decimal: 0.05 is 1/20.

    >>> as_written(0.05)
    Fraction(1, 20)
    """
    from fractions import Fraction

    return Fraction(repr(float(value)))


def complement(level: float) -> float:
    """1 − level in decimals: the complement of 0.9 is 0.1, which doubles miss by a little.

    >>> complement(0.9)
    0.1
    """
    # 1 − 0.9 is 0.09999999999999998 in doubles, which as an alpha would shift a boundary.
    return float(1 - as_written(level))


def at_most(value: float, alpha: float, exact: Callable[[], Fraction]) -> bool:
    """Return whether a probability is at most alpha, exactly where it is close."""
    if abs(value - alpha) > RELATIVE_BAND * alpha:
        return value <= alpha
    return exact() <= as_written(alpha)


def settled(value: float, alpha: float, exact: Callable[[], Fraction]) -> float:
    """Return a probability to report beside alpha, rounded once from the exact value."""
    return value if abs(value - alpha) > RELATIVE_BAND * alpha else float(exact())


def ceil_product(rate: float, count: int) -> int:
    """⌈rate · count⌉ with the rate read as the decimal written (0.07 · 100 is 7, not 8)."""
    return -(-as_written(rate) * count // 1).__int__()


def floor_product(rate: float, count: int) -> int:
    """⌊rate · count⌋ with the rate read as the decimal written (0.29 · 100 is 29, not 28)."""
    return (as_written(rate) * count // 1).__int__()
