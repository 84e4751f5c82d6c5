"""Many tests at once: which rejections survive, and what the survivors guarantee.

Its own module because the family, not the test, is the unit here: every method reads all the
p-values (or e-values) of one declared family and says in words which error it controls and
which dependence that claim needs (companion §7.3). The family is the caller's to declare.

A rejection is read off the adjusted value: `rejected` is always `adjusted <= alpha`, with every
number taken as the decimal written, so that p = alpha · k/m is on the rejecting side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Literal, TypeAlias

from trialwise.decimals import as_written, at_most
from trialwise.errors import InvalidArgument
from trialwise.validation import require_choice, require_open_rate, require_rate

Correction: TypeAlias = Literal["none", "bonferroni", "holm", "bh", "by"]
"""How a family of p-values is adjusted."""

CORRECTIONS: tuple[Correction, ...] = ("none", "bonferroni", "holm", "bh", "by")

FamilyCorrection: TypeAlias = Literal["none", "bonferroni", "holm", "bh", "by", "e-bh"]
"""How the decisions of a run are corrected together: by p-values, or by e-values."""

FAMILY_CORRECTIONS: tuple[FamilyCorrection, ...] = (*CORRECTIONS, "e-bh")

Controls: TypeAlias = Literal["per-test", "FWER", "FDR"]
"""The error a method bounds: one test's, any false rejection, or their expected proportion."""

_ANY = "Valid under arbitrary dependence between the tests."
_ALONE = "None: each test stands alone and nothing is claimed of the family."
_PRDS = (
    "Needs independent tests, or positive regression dependence on the subset of true nulls (PRDS)."
)

#: Label, error controlled and dependence needed: the table of companion §7.3, with Holm added.
CLAIMS: dict[FamilyCorrection, tuple[str, Controls, str]] = {
    "none": ("unadjusted per-test", "per-test", _ALONE),
    "bonferroni": ("Bonferroni", "FWER", _ANY),
    "holm": ("Holm", "FWER", _ANY),
    "bh": ("Benjamini–Hochberg", "FDR", _PRDS),
    "by": ("Benjamini–Yekutieli", "FDR", _ANY),
    "e-bh": ("e-BH", "FDR", _ANY),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """A family of p-values, adjusted, and what the adjustment guarantees.

    `adjusted` and `rejected` stand in the order of `p_values`. An adjusted p-value is the smallest
    alpha at which the method rejects that member, capped at 1.
    """

    method: Correction
    label: str
    controls: Controls
    dependence: str
    alpha: float
    p_values: tuple[float, ...]
    adjusted: tuple[float, ...]
    rejected: tuple[bool, ...]

    @property
    def number_rejected(self) -> int:
        """How many members of the family are rejected."""
        return sum(self.rejected)


def adjust(p_values: Iterable[float], *, method: Correction, alpha: float = 0.05) -> Adjustment:
    """The adjustment of a family of p-values by a named method (companion §7.3).

    - "bonferroni": m · p, so reject where p ≤ alpha/m. Controls the family-wise error rate under
      arbitrary dependence.
    - "holm": max_{j ≤ k} (m − j + 1) p_(j) (Holm 1979). The same guarantee, and it never rejects
      less.
    - "bh": min_{j ≥ k} m p_(j)/j (Benjamini & Hochberg 1995). The expected share of false
      rejections is at most alpha · m₀/m (m₀ true nulls) under independence or PRDS only.
    - "by": "bh" at alpha / (1 + 1/2 + … + 1/m) (Benjamini & Yekutieli 2001). The penalty (2.929 for
      ten tests) buys control under arbitrary dependence, which criteria decided on the same replies
      have.
    - "none": reject where p ≤ alpha, with no claim about the family.

    Parameters
    ----------
    p_values : iterable of float
        The family, each from 0 to 1; an empty family adjusts to an empty result.
    method : {"none", "bonferroni", "holm", "bh", "by"}
        As above.
    alpha : float
        The level, strictly between 0 and 1.

    Examples
    --------
    >>> adjust([0.01, 0.04], method="none").label
    'unadjusted per-test'
    >>> adjust([0.005, 0.015, 0.025, 0.5, 0.8], method="bonferroni").rejected
    (True, False, False, False, False)
    >>> adjust([0.01, 0.013, 0.04], method="holm").rejected
    (True, True, True)
    >>> adjust([0.005, 0.015, 0.025, 0.5, 0.8], method="bh").rejected
    (True, True, True, False, False)
    >>> adjust([0.005, 0.015, 0.025, 0.5, 0.8], method="by").number_rejected
    0
    """
    require_choice("method", method, CORRECTIONS)
    family = check_family("p_values", p_values, require_rate)
    level = require_open_rate("alpha", alpha)
    order = sorted(range(len(family)), key=family.__getitem__)
    ranked = [family[i] for i in order]
    values = adjust_ranked(method, ranked, level, lambda i: as_written(ranked[i]))
    adjusted = restore_order(order, values)
    label, controls, dependence = CLAIMS[method]
    return Adjustment(
        method=method,
        label=label,
        controls=controls,
        dependence=dependence,
        alpha=level,
        p_values=family,
        adjusted=adjusted,
        rejected=tuple(value <= level for value in adjusted),
    )


def list_shares(
    method: FamilyCorrection, members: int, decisions: int, count: Callable[[float], int]
) -> tuple[float, ...]:
    """The shares of the level at which a family is tested, step by step.

    A member is rejected at the first share that rejects it, and tested at the last one otherwise.
    Counting instead of ranking serves tests that have a level and no p-value. `members` of a family
    of `decisions` are tested here and have `members / decisions` of its level, so that the others
    may be tested elsewhere: the errors of the parts add up to at most that of the family.

    Parameters
    ----------
    method : {"none", "bonferroni", "holm", "bh", "by", "e-bh"}
        As in `adjust` and `e_bh`.
    members, decisions : int
        1 ≤ members ≤ decisions.
    count : callable
        How many members are rejected at a share of their levels; it never falls as the share rises.

    Examples
    --------
    >>> p_values = [0.01, 0.013, 0.04]
    >>> def count(share):
    ...     return sum(p <= 0.05 * share for p in p_values)
    >>> [round(share, 3) for share in list_shares("holm", 3, 3, count)]
    [0.333, 1.0]
    >>> list_shares("bh", 3, 3, count)
    (1.0,)
    """
    if method in ("none", "bonferroni"):
        return (1 / decisions if method == "bonferroni" else 1.0,)
    if method == "holm":
        shares, rejected = [1 / decisions], 0
        while rejected < (found := count(shares[-1])) < members:
            rejected = found
            shares.append(members / (decisions * (members - rejected)))
        return tuple(shares)
    penalty = math.fsum(1 / i for i in range(1, members + 1)) if method == "by" else 1.0
    wanted = members
    while 0 < (found := count(wanted / (decisions * penalty))) < wanted:
        wanted = found
    return ((wanted if found else 1) / (decisions * penalty),)


def adjust_ranked(
    method: Correction, ranked: Sequence[float], alpha: float, exact: Callable[[int], Fraction]
) -> list[float]:
    """Adjusted values of p-values sorted from the smallest; `exact(i)` is the i-th as written."""
    m = len(ranked)
    terms = m if method == "by" else 1
    penalty = math.fsum(1 / i for i in range(1, terms + 1))
    exact_penalty = cache(lambda: _harmonic(0, terms))

    def scale(i: int) -> float:
        """The i-th p-value times its factor, put on the side of alpha where rationals put it."""
        numerator, denominator = _factor(method, i + 1, m)
        product = ranked[i] * numerator * penalty / denominator
        rejects = at_most(
            product, alpha, lambda: exact(i) * numerator * exact_penalty() / denominator
        )
        return min(product, alpha) if rejects else max(product, math.nextafter(alpha, 1))

    products = [scale(i) for i in range(m)]
    if method in ("bh", "by"):
        stepped = list(accumulate(reversed(products), min))[::-1]
    else:
        stepped = list(accumulate(products, max))
    return [min(value, 1.0) for value in stepped]


def _factor(method: Correction, rank: int, m: int) -> tuple[int, int]:
    """What the p-value of a rank is multiplied and divided by, before any harmonic penalty."""
    match method:
        case "none":
            return 1, 1
        case "bonferroni":
            return m, 1
        case "holm":
            return m - rank + 1, 1
        case "bh" | "by":
            return m, rank


def _harmonic(low: int, high: int) -> Fraction:
    """1/(low+1) + … + 1/high exactly; halving keeps the partial denominators small."""
    if high - low == 1:
        return Fraction(1, high)
    middle = (low + high) // 2
    return _harmonic(low, middle) + _harmonic(middle, high)


def restore_order(order: Sequence[int], ranked: Sequence[float]) -> tuple[float, ...]:
    """Values sorted by rank, put back where their members stood."""
    values = [0.0] * len(order)
    for i, value in zip(order, ranked, strict=True):
        values[i] = value
    return tuple(values)


def check_family(
    argument: str, values: Iterable[float], check: Callable[[str, float], float]
) -> tuple[float, ...]:
    """Return the values as a tuple after checking each by its place."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, values, "be a sequence of numbers")
    return tuple(check(f"{argument}[{i}]", value) for i, value in enumerate(values))
