"""Repeated inputs: who wins, counted by the net wins of each input.

Trials of one input are alike, so repeats of it are no new evidence about other inputs. Where the
arms may be swapped without changing anything, the net wins of an input (how often only B passed it
minus how often only A did) are as likely with the other sign, however they hang together. All 2ⁿ
arrangements of signs of n inputs are then equally likely, and the place of the sum among them is an
exact p-value. It looks at how clearly each input was won, which a sign test of inputs does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trialwise.errors import InvalidArgument
from trialwise.validation import require_integer


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
    from fractions import Fraction

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
