"""The hypergeometric law: trials drawn from a finite corpus without replacement.

A module of its own because a distribution is one job and a claim about a corpus another. It is
written here, and not as log-gammas, because those lose a digit for every tenfold growth of the
corpus, and a corpus may be large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction

#: The package exports the checked forms, from `toolbox.hypergeometric_law`.

#: A further term below this share of its sum no longer moves a double.
_NEGLIGIBLE = 1e-18


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
