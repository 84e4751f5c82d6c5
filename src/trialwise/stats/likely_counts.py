"""The binomial counts that matter: all whose probability can move a sum of doubles."""

from __future__ import annotations

from trialwise.stats.binomial import binomial_weight

#: Counts rarer than this, relative to the likeliest, cannot move a sum of doubles.
NEGLIGIBLE = 1e-19


def likely_counts(n: int, p: float, *, negligible: float = NEGLIGIBLE) -> tuple[int, list[float]]:
    """The first binomial count that matters, and the probabilities from there to the last."""
    if p in (0, 1):
        return (n if p else 0), [1.0]
    mode = min(int((n + 1) * p), n)
    odds = p / (1 - p)
    peak = binomial_weight(mode, n, p, 1 - p)
    below, weight, k = [], peak, mode
    while k > 0 and weight > negligible * peak:
        weight *= k / ((n - k + 1) * odds)
        k -= 1
        below.append(weight)
    above, weight, first, k = [peak], peak, k, mode
    while k < n and weight > negligible * peak:
        weight *= (n - k) * odds / (k + 1)
        k += 1
        above.append(weight)
    return first, below[::-1] + above
