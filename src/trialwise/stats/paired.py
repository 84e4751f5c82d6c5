"""Two conditions tried on the same inputs: what the pairs say about the difference.

Its own module because pairing changes the arithmetic: only the discordant pairs, where exactly
one of A and B passed, bear on the difference, and overlapping intervals of the two rates are no
substitute for a paired test. A pair is one input and repetition index under both conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import binomial_tail, exact_tail
from trialwise.stats.normal import normal_sf
from trialwise.validation import require_choice, require_count, require_open_rate

__all__ = [
    "McNemar",
    "PairCounts",
    "SignTest",
    "mcnemar",
    "minimum_discordant",
    "pairs_from_outcomes",
    "sign_test",
]

Method: TypeAlias = Literal["exact", "mid-p", "chi-square", "chi-square-corrected"]
"""A form of McNemar's test."""

METHODS: tuple[Method, ...] = ("exact", "mid-p", "chi-square", "chi-square-corrected")

Alternative: TypeAlias = Literal["two-sided", "a-better", "b-better"]
"""What a small p-value would support."""

ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "a-better", "b-better")

SignAlternative: TypeAlias = Literal["two-sided", "greater", "less"]
"""What a small p-value would support: any difference, more wins, or more losses."""

_SIDES: dict[SignAlternative, Alternative] = {
    "two-sided": "two-sided",
    "greater": "a-better",
    "less": "b-better",
}


#: "auto" is exact below this many discordant pairs: under it the chi-square form is unreliable.
EXACT_BELOW = 25

#: Up to here a tail at one half is summed in integers and rounded once, so that 6 to 0 is 0.03125.
_INTEGER_PAIRS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """A paired two-by-two table: how many inputs each condition passed."""

    both: int
    only_a: int
    only_b: int
    neither: int

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def discordant(self) -> int:
        """How many pairs tell A and B apart."""
        return self.only_a + self.only_b


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """A McNemar test: the method actually used, and its p-value.

    `statistic` is the chi-square value on one degree of freedom (for a one-sided test, the square
    of its z), or None for the exact and mid-p forms and without discordant pairs.
    """

    only_a: int
    only_b: int
    alternative: Alternative
    method: Method
    discordant: int
    statistic: float | None
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTest:
    """An exact sign test; ties take no part in it."""

    wins: int
    losses: int
    alternative: SignAlternative
    p_value: float


def pairs_from_outcomes(a: Sequence[bool], b: Sequence[bool]) -> PairCounts:
    """The paired table of two conditions tried on the same inputs, in the same order.

    Parameters
    ----------
    a, b : sequence of bool
        Whether each trial passed; a[i] and b[i] are one pair. Equally long, at least one pair.

    Examples
    --------
    >>> pairs_from_outcomes([True, True, False], [True, False, False])
    PairCounts(both=1, only_a=1, only_b=0, neither=1)
    """
    first, second = _check_outcomes("a", a), _check_outcomes("b", b)
    if not first:
        raise InvalidArgument("a", a, "hold at least one outcome")
    if len(first) != len(second):
        raise InvalidArgument("b", b, f"hold one outcome for each of a ({len(first)})")
    pairs = list(zip(first, second, strict=True))
    return PairCounts(
        both=pairs.count((True, True)),
        only_a=pairs.count((True, False)),
        only_b=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def mcnemar(
    only_a: SupportsIndex,
    only_b: SupportsIndex,
    *,
    method: Literal["auto"] | Method = "auto",
    alternative: Alternative = "two-sided",
) -> McNemar:
    """McNemar's test that two conditions pass equally often on the same inputs (McNemar 1947).

    Given n = a + b discordant pairs, a is Binomial(n, ½) if A and B are equally good.

    - "exact": the binomial tail, doubled and capped at 1 when two-sided. Never anti-conservative,
      available and affordable at any number of pairs: prefer it for a decision.
    - "mid-p": the same with half the weight of what was observed (Fagerland, Lydersen & Laake
      2013). Closer to alpha on average; not guaranteed.
    - "chi-square": (a − b)²/n; "chi-square-corrected": max(abs(a − b) − 1, 0)²/n (Edwards 1948).
    - "auto": exact below 25 discordant pairs, else "chi-square". The switch is a convention: with
      26 discordant pairs the chi-square form falsely rejects at 0.05 with probability 0.0755.

    Without discordant pairs the p-value is 1.

    Parameters
    ----------
    only_a, only_b : int
        Pairs that only A passed, and that only B passed.
    method : {"auto", "exact", "mid-p", "chi-square", "chi-square-corrected"}
        The form of the test.
    alternative : {"two-sided", "a-better", "b-better"}
        What a small p-value would support.

    Examples
    --------
    >>> mcnemar(3, 0).p_value
    0.25
    >>> mcnemar(40, 20).method
    'chi-square'
    """
    a, b = require_count("only_a", only_a), require_count("only_b", only_b)
    require_choice("method", method, ("auto", *METHODS))
    require_choice("alternative", alternative, ALTERNATIVES)
    n = a + b
    if method == "auto":
        method = "exact" if n < EXACT_BELOW else "chi-square"
    statistic = None
    if n == 0:
        p_value = 1.0
    elif method == "exact":
        p_value = _exact(a, b, alternative)
    elif method == "mid-p":
        p_value = _mid_p(a, b, alternative)
    else:
        z = _root(a, b, alternative, correction=1 if method == "chi-square-corrected" else 0)
        statistic = z * z
        p_value = 2 * normal_sf(abs(z)) if alternative == "two-sided" else normal_sf(z)
    return McNemar(
        only_a=a,
        only_b=b,
        alternative=alternative,
        method=method,
        discordant=n,
        statistic=statistic,
        p_value=p_value,
    )


def sign_test(
    wins: SupportsIndex, losses: SupportsIndex, *, alternative: SignAlternative = "two-sided"
) -> SignTest:
    """The exact sign test that wins and losses are equally likely; ties are left out.

    Parameters
    ----------
    wins, losses : int
        Counts of at least 0; with neither, the p-value is 1.
    alternative : {"two-sided", "greater", "less"}
        "greater" looks for more wins than losses, "less" for fewer.

    Examples
    --------
    >>> sign_test(5, 0, alternative="greater").p_value
    0.03125
    >>> sign_test(7, 1).p_value
    0.0703125
    """
    won, lost = require_count("wins", wins), require_count("losses", losses)
    side = _SIDES[require_choice("alternative", alternative, tuple(_SIDES))]
    return SignTest(wins=won, losses=lost, alternative=alternative, p_value=_exact(won, lost, side))


def minimum_discordant(
    alpha: float, *, alternative: Literal["two-sided", "one-sided"] = "two-sided"
) -> int:
    """The fewest discordant pairs with which an exact sign or McNemar test can reject at all.

    The smallest n with 2⁻ⁿ ≤ alpha, or 2¹⁻ⁿ ≤ alpha when two-sided: below it, even a clean sweep
    proves nothing.

    Examples
    --------
    >>> minimum_discordant(0.05, alternative="one-sided"), minimum_discordant(0.05)
    (5, 6)
    """
    require_choice("alternative", alternative, ("two-sided", "one-sided"))
    # alpha = m · 2^e with ½ ≤ m < 1, so 2^(e−1) is the largest power of two not above it.
    _, exponent = math.frexp(require_open_rate("alpha", alpha))
    return 1 - exponent + (alternative == "two-sided")


def _check_outcomes(argument: str, outcomes: Sequence[bool]) -> list[bool]:
    if not isinstance(outcomes, Iterable):
        raise InvalidArgument(argument, outcomes, "be a sequence of outcomes")
    members = list(outcomes)
    for i, outcome in enumerate(members):
        if not isinstance(outcome, bool):
            raise InvalidArgument(f"{argument}[{i}]", outcome, "be True or False")
    return members


def _upper(k: int, n: int) -> float:
    """P(X ≥ k) for X ~ Binomial(n, ½)."""
    if n > _INTEGER_PAIRS:
        return binomial_tail(k, n, 0.5)
    from fractions import Fraction

    return float(exact_tail(k, n, Fraction(1, 2)))


def _exact(a: int, b: int, alternative: Alternative) -> float:
    n = a + b
    if alternative == "two-sided":
        return min(2 * _upper(max(a, b), n), 1.0)
    return _upper(a if alternative == "a-better" else b, n)


def _mid_p(a: int, b: int, alternative: Alternative) -> float:
    n = a + b
    if alternative == "two-sided":
        # With a = b a single outcome, not a mirrored pair, is as extreme as the observed one.
        extreme = max(a, b)
        return _upper(extreme + 1, n) + (0.5 if a == b else _upper(extreme, n))
    k = a if alternative == "a-better" else b
    return (_upper(k, n) + _upper(k + 1, n)) / 2


def _root(a: int, b: int, alternative: Alternative, *, correction: int) -> float:
    """The signed root of the chi-square statistic, large where the alternative is supported."""
    if alternative == "two-sided":
        return max(abs(a - b) - correction, 0) / math.sqrt(a + b)
    lead = a - b if alternative == "a-better" else b - a
    return (lead - correction) / math.sqrt(a + b)
