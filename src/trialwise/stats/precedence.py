"""One lattice, two rules: where the k-th baseline value falls among the test values.

Mix n_b baseline and n_t test values from one population and let X be how many test values lie
below the k-th smallest baseline value. Then, whatever the population,

    F(k, x) = P(X ≤ x) = Σ_{j ≤ x} C(k+j−1, j) C(n_b−k+n_t−j, n_t−j) / C(n_b+n_t, n_t),

a beta-binomial tail. It is the breach probability of the latency rule (rank k of the baseline
against the test's percentile) and, read with counts instead of ranks, the one-sided Fisher
p-value of x successes in n_t trials against k in n_b. Neighbouring cells differ by a single term,

    F(k, x) − F(k, x−1) = h(k, x) · k/(k+x),      F(k, x) − F(k+1, x) = h(k, x) · (n_t−x)/(N−k−x),

with h the hypergeometric weight C(k+x, x) C(N−k−x, n_t−x)/C(N, n_t) and N = n_b + n_t, so a whole
cutoff boundary costs one multiplication a step instead of one sum a cell.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

from trialwise.decimals import at_most
from trialwise.stats.binomial import binomial_weight, find_first


def smallest_count(k: int, nb: int, nt: int, alpha: float) -> int:
    """The smallest x with F(k, x) > alpha: Fisher's integer cutoff. F(k, n_t) = 1 bounds it."""
    return find_first(-1, nt, lambda x: not reaches(k, x, nb, nt, alpha)) if k else 0


def reaches(k: int, x: int, nb: int, nt: int, alpha: float) -> bool:
    """Whether F(k, x) ≤ alpha, by the exact-boundary convention."""
    return at_most(lower_tail(k, x, nb, nt), alpha, lambda: exact_lower_tail(k, x, nb, nt))


def lower_tail(k: int, x: int, nb: int, nt: int) -> float:
    """F(k, x) by summing downward from x, where the terms fall away fastest."""
    if k == 0 or x >= nt:
        return 1.0
    if x < 0:
        return 0.0
    if x * (nb + 1) > nt * k:
        # Above the mean the first term may underflow. Counting both samples from the other end
        # turns the event into its complement: F(k, x) = 1 − F(n_b+1−k, n_t−x−1).
        return 1 - lower_tail(nb + 1 - k, nt - x - 1, nb, nt)
    total_size = nb + nt
    term = lattice_weight(k, x, nb, nt) * k / (k + x)
    total = term
    for j in range(x, 0, -1):
        term *= j * (total_size - k - j + 1) / ((k + j - 1) * (nt - j + 1))
        total += term
        if term < 1e-18 * total:
            break
    return min(total, 1.0)


def exact_lower_tail(k: int, x: int, nb: int, nt: int) -> Fraction:
    """F(k, x) in rationals."""
    if k == 0 or x >= nt:
        return Fraction(1)
    term = comb(nb - k + nt, nt)
    total = term
    for j in range(1, x + 1):
        term = term * (k + j - 1) * (nt - j + 1) // (j * (nb - k + nt - j + 1))
        total += term
    return Fraction(total, comb(nb + nt, nt))


def lattice_weight(k: int, x: int, nb: int, nt: int) -> float:
    """The hypergeometric weight h(k, x), as a ratio of three binomial weights at a common rate."""
    total = nb + nt
    p, q = nt / total, nb / total
    return (
        binomial_weight(x, k + x, p, q)
        * binomial_weight(nt - x, total - k - x, p, q)
        / binomial_weight(nt, total, p, q)
    )
