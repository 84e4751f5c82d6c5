"""pass@k and pass^k: what k further trials of one task would show, and the mean over many tasks.

A task with success probability p has pass@k = 1 − (1−p)^k (at least one of k trials succeeds) and
pass^k = p^k (all of them do). Two estimators of each exist and disagree, so they have two names
and are never swapped in silence: the unbiased one from counts, and the plug-in one from a rate.

Trials of one task are never resampled here. Drawing them with replacement repeats successes, so
the centre of such a bootstrap of pass^k is the plug-in (c/n)^k, above the unbiased estimate: 0.328
for 0.222 at 8 of 10, k = 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.rate_intervals import clopper_pearson
from trialwise.stats.result_types import Interval
from trialwise.validation import require_count, require_rate, require_successes

#: C(n−c, k)/C(n, k) ≤ exp(−kc/n). Beyond kc/n = 38 it is below 2⁻⁵⁴ and 1 minus it rounds to 1;
#: beyond 746 it is below half the smallest double and rounds to 0. Stopping there keeps the
#: shorter of the two equal products under √(746 n) factors, whatever k and c.
_ROUNDS_TO_ONE = 38
_ROUNDS_TO_ZERO = 746


def pass_at_k(trials: SupportsIndex, successes: SupportsIndex, k: SupportsIndex) -> float:
    """The unbiased estimate of the probability that at least one of k trials succeeds.

    1 − C(n−c, k) / C(n, k): the share of the k-subsets of the trials that hold a success, computed
    in whole numbers and rounded once (Chen et al. 2021). At k = n it is 1 or 0: any success at all.

    Parameters
    ----------
    trials, successes : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    k : int
        1 ≤ k ≤ trials; beyond the trials there is no unbiased estimate.

    Examples
    --------
    >>> pass_at_k(5, 3, 1), pass_at_k(5, 3, 2), pass_at_k(5, 3, 5)
    (0.6, 0.9, 1.0)
    """
    n, c, size = _check_counts(trials, successes, k)
    if size * c > _ROUNDS_TO_ONE * n:
        return 1.0
    without, subsets = _subsets(n, n - c, size)
    return (subsets - without) / subsets


def pass_at_k_naive(rate: float, k: SupportsIndex) -> float:
    """The plug-in 1 − (1 − rate)^k: exact when `rate` is the true one, biased when it is c/n.

    Parameters
    ----------
    rate : float
        Between 0 and 1.
    k : int
        At least 1.

    Examples
    --------
    >>> round(pass_at_k_naive(0.8, 5), 5)
    0.99968
    """
    return _at_least_one(require_rate("rate", rate), require_count("k", k, minimum=1))


def pass_hat_k(trials: SupportsIndex, successes: SupportsIndex, k: SupportsIndex) -> float:
    """The unbiased estimate of the probability that all of k trials succeed, pass^k.

    C(c, k) / C(n, k): the share of the k-subsets of the trials that hold no failure (Yao et al.
    2024, τ-bench). Parameters as in `pass_at_k`, of which it is the mirror image:
    pass@k of c successes is 1 − pass^k of n − c.

    Examples
    --------
    >>> pass_hat_k(5, 3, 1), pass_hat_k(5, 3, 2), pass_hat_k(5, 3, 4)
    (0.6, 0.3, 0.0)
    """
    n, c, size = _check_counts(trials, successes, k)
    if size * (n - c) > _ROUNDS_TO_ZERO * n:
        return 0.0
    inside, subsets = _subsets(n, c, size)
    return inside / subsets


def pass_hat_k_plugin(rate: float, k: SupportsIndex) -> float:
    """The plug-in rate^k: exact when `rate` is the true one, biased upward when it is c/n.

    At 4 of 5 and k = 5 it says 0.328 where the unbiased estimate is 0. Parameters as in
    `pass_at_k_naive`.

    Examples
    --------
    >>> round(pass_hat_k_plugin(0.8, 5), 5)
    0.32768
    """
    return _all_succeed(require_rate("rate", rate), require_count("k", k, minimum=1))


def pass_at_k_interval(
    trials: SupportsIndex,
    successes: SupportsIndex,
    k: SupportsIndex,
    *,
    confidence: float = 0.95,
) -> Interval:
    """The exact interval for one task's pass@k: Clopper–Pearson's, mapped by p → 1 − (1−p)^k.

    The map is increasing, so the interval holds 1 − (1−p)^k exactly when Clopper–Pearson's holds
    p: the coverage is the same at every p, never below `confidence`. It is about this task alone,
    under independent trials with one success probability. It is defined for every k, also beyond
    the trials, since only the unbiased estimate needs k ≤ n. It always holds the plug-in value at
    c/n, but may miss the unbiased estimate, which is 0 or 1 at k = n.

    Parameters
    ----------
    trials, successes : int
        0 ≤ successes ≤ trials, trials ≥ 1.
    k : int
        At least 1.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> low, high = pass_at_k_interval(10, 3, 2)
    >>> round(low, 4), round(high, 4)
    (0.129, 0.8792)
    """
    exact = clopper_pearson(successes, trials, confidence=confidence)
    return _map_interval(exact, _at_least_one, "pass@k", require_count("k", k, minimum=1))


def pass_hat_k_interval(
    trials: SupportsIndex,
    successes: SupportsIndex,
    k: SupportsIndex,
    *,
    confidence: float = 0.95,
) -> Interval:
    """The exact interval for one task's pass^k: Clopper–Pearson's, mapped by p → p^k.

    Meaning, coverage and parameters as in `pass_at_k_interval`.

    Examples
    --------
    >>> low, high = pass_hat_k_interval(10, 10, 5)
    >>> round(low, 4), high
    (0.1581, 1.0)
    """
    exact = clopper_pearson(successes, trials, confidence=confidence)
    return _map_interval(exact, _all_succeed, "pass^k", require_count("k", k, minimum=1))


def _check_counts(
    trials: SupportsIndex, successes: SupportsIndex, k: SupportsIndex
) -> tuple[int, int, int]:
    c, n = require_successes(successes, trials)
    size = require_count("k", k, minimum=1)
    if size > n:
        raise InvalidArgument("k", k, f"be at most trials ({n})")
    return n, c, size


def _subsets(n: int, c: int, k: int) -> tuple[int, int]:
    """Two whole numbers in the ratio C(c, k) : C(n, k), by the form with the fewer factors."""
    if k <= n - c:
        return math.comb(c, k), math.comb(n, k)
    # Which k are drawn or which n − c fail: the same tables, counted from the other side.
    return math.comb(n - k, n - c), math.comb(n, n - c)


def _at_least_one(rate: float, k: int) -> float:
    # Through logarithms, so that a rate of 1e-20 is not lost in 1 − rate.
    return -math.expm1(_as_float(k) * math.log1p(-rate)) if 0 < rate < 1 else rate


def _all_succeed(rate: float, k: int) -> float:
    return math.pow(rate, _as_float(k))


def _as_float(k: int) -> float:
    try:
        return float(k)
    except OverflowError:
        return math.inf


def _map_interval(
    exact: Interval, metric: Callable[[float, int], float], name: str, k: int
) -> Interval:
    return Interval(
        metric(exact.low, k),
        metric(exact.high, k),
        confidence=exact.confidence,
        method=f"{name} of {exact.method}",
    )
