"""How far paired differences lie from 0: Hodges and Lehmann's estimate, bounded by signed ranks.

The Walsh averages of n differences are the means of every two of them, each with itself as well.
Their median is the estimate. For differences that scatter evenly around a centre θ, the number of
Walsh averages above θ has the distribution of Wilcoxon's signed-rank statistic, so that two order
statistics of the Walsh averages bound θ.

Ties and zeros make the interval conservative and never wrong: noise that is added to the
differences, however small, breaks every tie, leaves them even around θ, and lowers no strict
inequality. So the number of averages strictly above θ is at most the statistic without ties, and
the closed interval covers at least as often as its level says.

The distribution is exact everywhere. Up to 250 pairs it is counted in integers. Up to 10,000 it is
the finite inverse Fourier sum of its characteristic function Π cos(uj/2), whose omitted terms are
bounded: from sin(u/2) ≥ 1/n on, its absolute value is at most exp(−½ Σ sin²(uj/2)) ≤ exp(−n/8).
Beyond, Hoeffding's inequality bounds it, which makes intervals about 40 % wider. No normal
approximation is used.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from operator import add, sub
from random import Random

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import find_first
from trialwise.stats.result_types import Interval, Undefined
from trialwise.validation import require_integer, require_open_rate

#: Up to here the statistic's distribution is counted in integers.
_COUNTED = 250
#: Up to here it is summed from its characteristic function.
_INVERTED = 10_000
#: More than what omitted terms and rounding can amount to, added to every inverted tail.
_GUARD = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftEstimate:
    """Where the middle of paired differences is."""

    pairs: int
    estimate: float
    """The median of the Walsh averages."""
    interval: Interval | Undefined
    """Exact for differences that scatter evenly around their centre; wider where some are tied."""
    p_value: float
    """Two-sided, that the differences scatter evenly around 0, as they do where swapping the two
    conditions changes nothing. It is at most 1 − confidence exactly where 0 is outside of the
    interval."""


def hodges_lehmann(differences: Iterable[float], *, confidence: float = 0.95) -> ShiftEstimate:
    """The Hodges–Lehmann estimate of paired differences, with an exact signed-rank interval.

    No n² averages are held: an order statistic is found by bisection over the doubles, and each
    step counts the averages below in one pass over the sorted differences.

    Parameters
    ----------
    differences : iterable of float
        Finite, at least one; independent of one another.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> found = hodges_lehmann([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> found.estimate, found.interval.low, found.interval.high, found.p_value
    (3.5, 1.0, 6.0, 0.03125)
    >>> hodges_lehmann([1.0, 2.0]).interval
    Undefined(reason='2 pairs are too few for an interval of 95 %')
    """
    level = require_open_rate("confidence", confidence)
    ordered = sorted(_check_differences(differences))
    n = len(ordered)
    total = n * (n + 1) // 2
    middle = [select_walsh_average(ordered, rank) for rank in {(total + 1) // 2, total // 2 + 1}]
    depth = _find_depth(n, float((1 - as_written(level)) / 2))
    interval: Interval | Undefined = _refuse_interval(n, level)
    if depth:
        interval = Interval(
            select_walsh_average(ordered, depth),
            select_walsh_average(ordered, total + 1 - depth),
            confidence=level,
            method="signed ranks",
        )
    below, at_most_zero = _count_below(ordered, 0.0, strict=True), _count_below(ordered, 0.0)
    # An average of 0 counts against both directions.
    least = min(signed_rank_tail(n, total - below), signed_rank_tail(n, at_most_zero))
    return ShiftEstimate(
        pairs=n,
        estimate=math.fsum(middle) / len(middle),
        interval=interval,
        p_value=min(1.0, 2 * least),
    )


def signed_rank_tail(n: int, t: int) -> float:
    """P(T ≤ t) for Wilcoxon's signed-rank statistic of n untied differences.

    Above 250 differences it is rounded up by at most 2e-11; above 10,000 it is Hoeffding's bound.

    Parameters
    ----------
    n : int
        At least 1.
    t : int
        From 0, below which the probability is 0.

    Examples
    --------
    >>> signed_rank_tail(3, 1), signed_rank_tail(3, 6)
    (0.25, 1.0)
    """
    total = n * (n + 1) // 2
    if t < 0:
        return 0.0
    if t >= total:
        return 1.0
    if n > _INVERTED:
        return _bound_tail(n, t)
    if 2 * t >= total:
        # T and total − T have one distribution.
        return min(1.0, 1 - signed_rank_tail(n, total - t - 1) + 2 * _GUARD * (n > _COUNTED))
    if n > _COUNTED:
        return _invert_tail(n, t)
    return float(_count_subsets(n)[t] / 2**n)


def select_walsh_average(ordered: Sequence[float], rank: int) -> float:
    """The Walsh average of a rank, counted from the smallest as 1.

    Parameters
    ----------
    ordered : sequence of float
        Sorted from the smallest.
    rank : int
        From 1 to n(n + 1)/2.

    Examples
    --------
    >>> [select_walsh_average([0.0, 1.0, 5.0], rank) for rank in range(1, 7)]
    [0.0, 0.5, 1.0, 2.5, 3.0, 5.0]
    """
    low, high = _number(2 * ordered[0]), _number(2 * ordered[-1])
    found = find_first(low - 1, high, lambda at: _count_below(ordered, _double(at)) >= rank)
    return _double(found) / 2


def _refuse_interval(n: int, level: float) -> Undefined:
    words = f"{n} pair{'s are' if n > 1 else ' is'} too few for an interval of {100 * level:g} %"
    return Undefined(words)


def _check_differences(differences: Iterable[float]) -> list[float]:
    """Return the differences, which must be finite numbers."""
    given = [float(one) for one in differences]
    if not given:
        raise InvalidArgument("differences", given, "hold at least one")
    for one in given:
        # Twice a difference must be finite, too: a Walsh average is half of a sum.
        if not math.isfinite(2 * one):
            raise InvalidArgument("differences", one, "be finite numbers")
    return given


def _count_below(ordered: Sequence[float], twice: float, *, strict: bool = False) -> int:
    """Count the pairs i ≤ j whose sum is at most `twice`, or strictly below it."""
    count, low, high = 0, 0, len(ordered) - 1
    while low <= high:
        added = ordered[low] + ordered[high]
        if added < twice or (added == twice and not strict):
            # With `low` as its smaller member, every pair up to `high` is below.
            count += high - low + 1
            low += 1
        else:
            high -= 1
    return count


def _number(value: float) -> int:
    """Return the place of a double among all doubles in order."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    place: int = bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
    return place


def _double(place: int) -> float:
    """Return the double of a place, so that −0.0 is 0.0."""
    (value,) = struct.unpack("<d", struct.pack("<q", abs(place)))
    return float(value if place >= 0 else -value)


@lru_cache(maxsize=64)
def _find_depth(n: int, error: float) -> int:
    """Return the largest rank from the outside that errs with at most `error`; 0 if there is none.

    The k-th smallest average is above θ only where fewer than k are at most θ: P(T ≤ k − 1).
    """
    half = n * (n + 1) // 4 + 1
    return find_first(-1, half, lambda k: signed_rank_tail(n, k) > error)


@lru_cache(maxsize=16)
def _count_subsets(n: int) -> list[int]:
    """Count the subsets of 1, …, n whose sum is at most t, for t below one half of the total.

    The polynomial Π(1 + xʲ) is held as one integer whose digits are its coefficients.
    """
    size = n // 8 + 1
    half = n * (n + 1) // 4 + 1
    mask = (1 << 8 * size * half) - 1
    packed = 1
    for rank in range(1, n + 1):
        packed = (packed + (packed << 8 * size * rank)) & mask
    raw = packed.to_bytes(size * half, "little")
    counts = (int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size))
    return list(accumulate(counts))


@lru_cache(maxsize=8)
def _find_terms(n: int) -> list[tuple[float, float]]:
    """Return the frequencies u/2 and Π cos(uj/2)/sin(u/2) of every term that is not negligible."""
    period = n * (n + 1) // 2 + 1
    terms = []
    for k in range(1, math.floor(math.asin(1 / n) * period / math.pi) + 1):
        half = math.pi * k / period
        product = 1.0
        for rank in range(n, 0, -1):
            product *= math.cos(half * rank)
            if abs(product) < 1e-25:
                break
        else:
            terms.append((half, product / math.sin(half)))
    return terms


def _invert_tail(n: int, t: int) -> float:
    """P(T ≤ t) from the characteristic function, rounded up."""
    total = n * (n + 1) // 2
    waves = (
        weight * math.cos(half * (total - t)) * math.sin(half * (t + 1))
        for half, weight in _find_terms(n)
    )
    found = (t + 1 + 2 * math.fsum(waves)) / (total + 1)
    return max(0.0, found) + _GUARD


def _bound_tail(n: int, t: int) -> float:
    """Hoeffding's bound on P(T ≤ t): T is a sum of independent terms of 0 or j."""
    total, squares = n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6
    short = total / 2 - t
    return math.exp(-2 * short * short / squares) if short > 0 else 1.0


# --- The mean of paired differences, bounded by flipping their signs ------------------------------
#
# Where swapping the two conditions of a pair changes nothing, every difference is as likely with
# the other sign. The sum of the differences is then one of 2ⁿ equally likely sums, and its place
# among them is an exact p-value. The same for differences that scatter evenly around a mean of δ:
# of the means of all subsets of the differences, each is as likely as any other to be the first
# above δ (Hartigan 1969, "typical values"), so that two order statistics of the subset means bound
# δ.
#
# Up to 13 differences all 2ⁿ arrangements of signs are taken. With more, a subgroup of 2¹³ of them
# is taken: two arrangements of it, one after the other, are again one of it. The p-value over a
# subgroup keeps its level exactly, as that over the whole group does, and so does the interval.
# Which arrangements belong to it depends on the number of differences only, so that everybody finds
# the same numbers.

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
    given = _check_differences(differences)
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
    interval: Interval | Undefined = _refuse_interval(n, level)
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


# --- Repeated inputs: who wins, counted by the net wins of each input -----------------------------
#
# Trials of one input are alike, so repeats of it are no new evidence about other inputs. Where the
# arms may be swapped without changing anything, the net wins of an input (how often only B passed
# it minus how often only A did) are as likely with the other sign, however they hang together. All
# 2ⁿ arrangements of signs of n inputs are then equally likely, and the place of the sum among them
# is an exact p-value. It looks at how clearly each input was won, which a sign test of inputs does
# not.


@dataclass(frozen=True, slots=True, kw_only=True)
class NetWinsTest:
    """An exact test of net wins by input; inputs without net wins take no part in it."""

    won: int
    """How many inputs B passed more often than A."""
    lost: int
    net: int
    """The sum of the net wins."""
    p_value: float
    """Two-sided."""


def weigh_net_wins(net_wins: Iterable[int]) -> NetWinsTest:
    """Test whether B wins more often than A, by the net wins of each input.

    Parameters
    ----------
    net_wins : iterable of int
        For each input, how often only B passed it minus how often only A did.

    Examples
    --------
    Six inputs, each tried five times: three were won clearly, one was lost once.

    >>> found = weigh_net_wins([5, 4, 5, -1, 0, 0])
    >>> found.won, found.lost, found.net, found.p_value
    (3, 1, 13, 0.25)
    """
    net = [require_integer(f"net_wins[{i}]", one) for i, one in enumerate(net_wins)]
    if not net:
        raise InvalidArgument("net_wins", net, "hold at least one input")
    total = sum(net)
    return NetWinsTest(
        won=sum(one > 0 for one in net),
        lost=sum(one < 0 for one in net),
        net=total,
        p_value=_find_p_value([abs(one) for one in net if one], abs(total)),
    )


def _find_p_value(sizes: list[int], total: int) -> float:
    """Return the share of arrangements of signs whose sum is at least as far from 0."""
    if not total:
        return 1.0
    # One large number holds, in fields of n + 1 bits, how many subsets have each sum.
    width = len(sizes) + 1
    subsets = 1
    for size in sizes:
        subsets += subsets << (size * width)
    # The positive ones of an arrangement add up to half of all sizes and half of its sum.
    rest = subsets >> ((sum(sizes) + total) // 2 * width)
    field, count = (1 << width) - 1, 0
    while rest:
        count += rest & field
        rest >>= width
    return float(min(Fraction(1), Fraction(2 * count, 1 << len(sizes))))
