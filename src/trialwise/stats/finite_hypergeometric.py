"""The hypergeometric law: trials drawn from a finite corpus without replacement.

A module of its own because a distribution is one job and a claim about a corpus another. It is
written here, and not as log-gammas, because those lose a digit for every tenfold growth of the
corpus, and a corpus may be large.
"""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = ["hypergeometric_cdf", "hypergeometric_tail"]

#: A further term below this share of its sum no longer moves a double.
_NEGLIGIBLE = 1e-18


def hypergeometric_tail(
    k: int, *, trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> float:
    """P(K ≥ k), where K counts the successes among trials drawn without replacement.

    ``P(K = j) = C(M, j) C(N − M, n − j) / C(N, n)``, summed by the ratio of neighbouring terms
    outward from the mode: no factorial is formed and a small tail keeps its relative precision,
    in time proportional to the standard deviation of K.

    Parameters
    ----------
    k : any whole number; the tail is 1 below and 0 above the possible counts.
    trials : n, 0 … corpus_size.
    corpus_successes : M, 0 … corpus_size.
    corpus_size : N, at least 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> hypergeometric_tail(2, trials=2, corpus_successes=2, corpus_size=4)  # 1 of C(4, 2)
    0.16666666666666666
    """
    n, M, N = _check_corpus(trials, corpus_successes, corpus_size)
    return tail(_check_whole("k", k), n, M, N)


def hypergeometric_cdf(
    k: int, *, trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> float:
    """P(K ≤ k), where K counts the successes among trials drawn without replacement.

    At most k successes are at least n − k failures, so this is the upper tail of the failures and
    as precise when it is small.

    Parameters
    ----------
    k : any whole number; the probability is 0 below and 1 above the possible counts.
    trials : n, 0 … corpus_size.
    corpus_successes : M, 0 … corpus_size.
    corpus_size : N, at least 1.

    References
    ----------
    Companion 8.4.6 (partial evaluation of a corpus).

    Examples
    --------
    >>> hypergeometric_cdf(0, trials=2, corpus_successes=2, corpus_size=4)
    0.16666666666666666
    """
    n, M, N = _check_corpus(trials, corpus_successes, corpus_size)
    return tail(n - _check_whole("k", k), n, N - M, N)


def tail(k: int, n: int, M: int, N: int) -> float:
    """P(K ≥ k) without checks: the weight from k on, over the whole weight."""
    lowest, highest = max(0, n - (N - M)), min(n, M)
    if k <= lowest:
        return 1.0
    if k > highest:
        return 0.0
    mode = (n + 1) * (M + 1) // (N + 2)
    below = above = 0.0
    # Upward from the mode, relative to the weight of the mode.
    weight, j = 1.0, mode
    while j <= highest and weight:
        if j < k:
            below += weight
        elif weight > _NEGLIGIBLE * above:
            above += weight
        else:
            break
        weight *= (M - j) * (n - j) / ((j + 1) * (N - M - n + j + 1))
        j += 1
    # Downward from the mode.
    weight, j = 1.0, mode
    while j > lowest and weight:
        weight *= j * (N - M - n + j) / ((M - j + 1) * (n - j + 1))
        j -= 1
        if j >= k:
            above += weight
        elif weight > _NEGLIGIBLE * below:
            below += weight
        else:
            break
    return above / (above + below)


def exact_tail(k: int, n: int, M: int, N: int) -> Fraction:
    """P(K ≥ k) in rationals for 0 ≤ k ≤ n, for the exact-boundary convention."""
    from fractions import Fraction
    from math import comb

    first = max(k, n - (N - M))
    term = comb(M, first) * comb(N - M, n - first)
    total = 0
    # The next term is a small factor away: no further binomial coefficient is formed.
    for j in range(first, min(n, M) + 1):
        total += term
        term = term * (M - j) * (n - j) // ((j + 1) * (N - M - n + j + 1))
    return Fraction(total, comb(N, n))


def _check_corpus(
    trials: SupportsIndex, corpus_successes: SupportsIndex, corpus_size: SupportsIndex
) -> tuple[int, int, int]:
    N = require_count("corpus_size", corpus_size, minimum=1)
    n = require_count("trials", trials)
    M = require_count("corpus_successes", corpus_successes)
    for argument, value in (("trials", n), ("corpus_successes", M)):
        if value > N:
            raise InvalidArgument(argument, value, f"be at most corpus_size ({N})")
    return n, M, N


def _check_whole(argument: str, value: SupportsIndex) -> int:
    try:
        if not isinstance(value, bool):
            return index(value)
    except TypeError:
        pass
    raise InvalidArgument(argument, value, "be a whole number")
