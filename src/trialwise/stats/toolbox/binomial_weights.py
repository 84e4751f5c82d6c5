"""All probabilities of a binomial distribution at once."""

from __future__ import annotations

from typing import SupportsIndex

from trialwise.stats.binomial import raw_pmf
from trialwise.validation import require_count, require_rate


def binomial_pmfs(n: SupportsIndex, p: float) -> list[float]:
    """P(K = 0), …, P(K = n), by ratios outward from the mode.

    Examples
    --------
    >>> [round(weight, 12) for weight in binomial_pmfs(2, 0.5)]
    [0.25, 0.5, 0.25]
    """
    return raw_pmfs(require_count("n", n), require_rate("p", p))


def raw_pmfs(n: int, p: float) -> list[float]:
    """Return P(K = k) for every k, by recursion from the mode."""
    weights = [0.0] * (n + 1)
    if p in (0, 1):
        weights[n if p else 0] = 1.0
        return weights
    mode = min(int((n + 1) * p), n)
    odds = p / (1 - p)
    weights[mode] = raw_pmf(mode, n, p)
    for k in range(mode, n):
        weights[k + 1] = weights[k] * ((n - k) * odds / (k + 1))
    for k in range(mode, 0, -1):
        weights[k - 1] = weights[k] * (k / ((n - k + 1) * odds))
    return weights
