"""The binomial distribution: the one model every pass rate stands on (companion §1.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

from trialwise.stats.beta_functions import beta_cdf, beta_sf, binomial_weight
from trialwise.validation import require_count, require_integer, require_rate

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["binomial_cdf", "binomial_pmf", "binomial_tail"]


def binomial_pmf(k: int, n: SupportsIndex, p: float) -> float:
    """P(K = k) for K ~ Binomial(n, p): C(n, k) p^k (1−p)^(n−k).

    Parameters
    ----------
    k : int
        The count; outside 0 … n the probability is 0.
    n : int
        Trials, at least 0.
    p : float
        The success probability, 0 and 1 included.

    Examples
    --------
    >>> round(binomial_pmf(2, 4, 0.5), 12)
    0.375
    """
    return raw_pmf(require_integer("k", k), require_count("n", n), require_rate("p", p))


def binomial_cdf(k: int, n: SupportsIndex, p: float) -> float:
    """P(K ≤ k) for K ~ Binomial(n, p) = I_{1−p}(n−k, k+1).

    Examples
    --------
    >>> round(binomial_cdf(1, 2, 0.5), 12)
    0.75
    """
    return raw_cdf(require_integer("k", k), require_count("n", n), require_rate("p", p))


def binomial_tail(k: int, n: SupportsIndex, p: float) -> float:
    """P(K ≥ k) for K ~ Binomial(n, p) = I_p(k, n−k+1), accurate however small.

    Examples
    --------
    >>> round(binomial_tail(5, 5, 0.5), 12)
    0.03125
    """
    return raw_tail(require_integer("k", k), require_count("n", n), require_rate("p", p))


def raw_pmf(k: int, n: int, p: float) -> float:
    return binomial_weight(k, n, p, 1 - p) if 0 <= k <= n else 0.0


def raw_cdf(k: int, n: int, p: float) -> float:
    if k < 0:
        return 0.0
    return beta_sf(p, k + 1, n - k) if k < n else 1.0


def raw_tail(k: int, n: int, p: float) -> float:
    if k > n:
        return 0.0
    return beta_cdf(p, k, n - k + 1) if k > 0 else 1.0


def exact_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(K ≥ k) in rationals, for the exact-boundary convention."""
    from fractions import Fraction

    a, d = p.numerator, p.denominator
    b = d - a
    # Horner from the top count down keeps one running term instead of n binomials.
    term = a**n
    total = term if k <= n else 0
    for j in range(n, max(k, 0), -1):
        term = term * j * b // ((n - j + 1) * a)
        total += term
    return Fraction(total, d**n)
