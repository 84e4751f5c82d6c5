"""McNemar's test in all its forms, exact and approximate.

A comparison uses the exact form, which is `sign_test` on the discordant pairs. The other forms are
here because other tools report them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, SupportsIndex, TypeAlias

from trialwise.stats.binomial import normal_sf
from trialwise.stats.paired import SignAlternative, half_tail, sign_test
from trialwise.validation import require_choice, require_count

Method: TypeAlias = Literal["exact", "mid-p", "chi-square", "chi-square-corrected"]
"""A form of McNemar's test."""


METHODS: tuple[Method, ...] = ("exact", "mid-p", "chi-square", "chi-square-corrected")


Alternative: TypeAlias = Literal["two-sided", "a-better", "b-better"]
"""What a small p-value would support."""


ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "a-better", "b-better")


#: The same question put to the sign test, which counts what only A passed as wins.
_SIDES: dict[Alternative, SignAlternative] = {
    "two-sided": "two-sided",
    "a-better": "greater",
    "b-better": "less",
}

#: "auto" is exact below this many discordant pairs: under it the chi-square form is unreliable.
EXACT_BELOW = 25


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


def mcnemar(
    only_a: SupportsIndex,
    only_b: SupportsIndex,
    *,
    method: Literal["auto"] | Method = "exact",
    alternative: Alternative = "two-sided",
) -> McNemar:
    """McNemar's test that two conditions pass equally often on the same inputs (McNemar 1947).

    Given n = a + b discordant pairs, a is Binomial(n, ½) if A and B are equally good.

    - "exact", the default: the binomial tail, doubled and capped at 1 when two-sided. It never
      rejects more often than alpha, at any number of pairs.
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
    >>> round(mcnemar(20, 11).p_value, 3)
    0.15
    >>> mcnemar(40, 20, method="auto").method
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
        p_value = sign_test(a, b, alternative=_SIDES[alternative]).p_value
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


def _mid_p(a: int, b: int, alternative: Alternative) -> float:
    n = a + b
    if alternative == "two-sided":
        # With a = b a single outcome, not a mirrored pair, is as extreme as the observed one.
        extreme = max(a, b)
        return half_tail(extreme + 1, n) + (0.5 if a == b else half_tail(extreme, n))
    k = a if alternative == "a-better" else b
    return (half_tail(k, n) + half_tail(k + 1, n)) / 2


def _root(a: int, b: int, alternative: Alternative, *, correction: int) -> float:
    """The signed root of the chi-square statistic, large where the alternative is supported."""
    if alternative == "two-sided":
        return max(abs(a - b) - correction, 0) / math.sqrt(a + b)
    lead = a - b if alternative == "a-better" else b - a
    return (lead - correction) / math.sqrt(a + b)
