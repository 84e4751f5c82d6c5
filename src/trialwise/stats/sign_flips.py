"""The mean of paired differences, bounded by flipping their signs.

Where swapping the two conditions of a pair changes nothing, every difference is as likely with the
other sign. The sum of the differences is then one of 2ⁿ equally likely sums, and its place among
them is an exact p-value. The same for differences that scatter evenly around a mean of δ: of the
means of all subsets of the differences, each is as likely as any other to be the first above δ
(Hartigan 1969, "typical values"), so that two order statistics of the subset means bound δ.

Up to 13 differences all 2ⁿ arrangements of signs are taken. With more, a subgroup of 2¹³ of them is
taken: two arrangements of it, one after the other, are again one of it. The p-value over a subgroup
keeps its level exactly, as that over the whole group does, and so does the interval. Which
arrangements belong to it depends on the number of differences only, so that everybody finds the
same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add, sub
from random import Random

from trialwise.decimals import as_written
from trialwise.stats.result_types import Interval, Undefined
from trialwise.stats.signed_ranks import check_differences
from trialwise.validation import require_open_rate

#: 2 to this power is the largest number of arrangements.
_GENERATORS = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanShift:
    """The mean of paired differences, and what flipping their signs says of it."""

    pairs: int
    mean: float
    interval: Interval | Undefined
    """It keeps its level for differences that scatter evenly around their mean."""
    p_value: float
    """Two-sided, that swapping the conditions changes nothing. It is at most 1 − confidence
    exactly where 0 is outside of the interval."""
    arrangements: int
    """How many arrangements of signs were compared."""


def sign_flip_mean(differences: Iterable[float], *, confidence: float = 0.95) -> MeanShift:
    """The mean of paired differences, with a p-value and an interval by flipping signs.

    Parameters
    ----------
    differences : iterable of float
        Finite, at least one; independent of one another.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> found = sign_flip_mean([0.2, 0.1, 0.3, 0.2, 0.1, 0.5])
    >>> round(found.mean, 3), found.p_value, found.interval.low, found.interval.high
    (0.233, 0.03125, 0.1, 0.5)
    >>> sign_flip_mean([0.5, -0.5]).p_value
    1.0
    """
    level = require_open_rate("confidence", confidence)
    given = check_differences(differences)
    n = len(given)
    scaled, unit = _scale(given)
    subsets = _list_subsets(scaled)
    arrangements = len(subsets) + 1
    # Flipping a subset raises the sum exactly where the subset's own sum is negative.
    at_most, at_least = (
        1 + sum(added <= 0 for added, _ in subsets),
        1 + sum(added >= 0 for added, _ in subsets),
    )
    depth = math.floor((1 - as_written(level)) / 2 * arrangements)
    interval: Interval | Undefined = Undefined(
        f"{n} pair{'s are' if n > 1 else ' is'} too few for an interval of {100 * level:g} %"
    )
    if depth:
        means = sorted(added / (size * unit) for added, size in subsets)
        interval = Interval(means[depth - 1], means[-depth], confidence=level, method="sign flips")
    return MeanShift(
        pairs=n,
        mean=math.fsum(given) / n,
        interval=interval,
        p_value=min(1.0, 2 * min(at_most, at_least) / arrangements),
        arrangements=arrangements,
    )


def _scale(given: Sequence[float]) -> tuple[list[int], int]:
    """Return the differences as integers and the unit: sums of decimals must tie where they do."""
    exact = [as_written(one) for one in given]
    unit = math.lcm(*(one.denominator for one in exact))
    return [int(one * unit) for one in exact], unit


def _list_subsets(given: Sequence[int]) -> list[tuple[int, int]]:
    """Return the sum and the size of the subset that each arrangement but the first flips.

    Arrangement g flips a difference where g and the difference's code have an odd number of bits in
    common. With F(g) the sum of all differences under their signs, the flipped ones sum to
    (F(0) − F(g))/2, and a Walsh–Hadamard transform finds every F at once.
    """
    codes = _list_codes(len(given))
    size = 1 << min(len(given), _GENERATORS)
    sums, counts = [0] * size, [0] * size
    for code, one in zip(codes, given, strict=True):
        sums[code] += one
        counts[code] += 1
    sums, counts = _transform(sums), _transform(counts)
    return [((sums[0] - sums[g]) // 2, (counts[0] - counts[g]) // 2) for g in range(1, size)]


def _list_codes(n: int) -> list[int]:
    """Return a code for each difference; the first have one bit each, so that no two g are alike.

    Different codes make the signs of any two differences independent.
    """
    generators = min(n, _GENERATORS)
    codes = [1 << bit for bit in range(generators)]
    others = [code for code in range(1, 1 << generators) if code.bit_count() > 1]
    Random(n).shuffle(others)
    return [*codes, *(others[at % len(others)] for at in range(n - generators))]


def _transform(values: list[int]) -> list[int]:
    """Return the Walsh–Hadamard transform of 2ᵐ values."""
    if len(values) == 1:
        return values
    half = len(values) // 2
    low, high = _transform(values[:half]), _transform(values[half:])
    return [*map(add, low, high), *map(sub, low, high)]
