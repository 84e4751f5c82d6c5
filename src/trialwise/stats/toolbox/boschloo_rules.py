"""Boschloo's test as a rule for a planned test: its cutoff and its size."""

from __future__ import annotations

from bisect import bisect_right
from typing import SupportsIndex

from trialwise.decimals import RELATIVE_BAND
from trialwise.stats.unconditional import (
    FisherLevel,
    find_supremum,
    fisher_corners,
    fisher_p_value,
    lattice_weight,
    rejection_region,
    smallest_count,
)
from trialwise.validation import require_count, require_open_rate, require_successes

#: The step in which a critical level above alpha is looked for.
_STRIDE = 1.25


def boschloo_cutoff(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> int:
    """The fewest successes whose Boschloo p-value exceeds alpha: PASS iff K ≥ cutoff.

    Never below Fisher's cutoff, and 0 for a baseline without successes. A p-value that agrees with
    alpha to nine digits counts as equal and rejects.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    trials : int
        Trials of the test, at least 1.
    alpha : float
        The false-alarm level, strictly between 0 and 1.

    Examples
    --------
    Fisher's cutoff is 87:

    >>> boschloo_cutoff(95, 100, 100)
    88
    """
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    nt = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    if k == 0:
        return 0
    rejected = smallest_count(k, nb, nt, level) - 1
    step, passed = 1, min(rejected + 1, nt)
    while passed < nt and _holds(FisherLevel.of(k, passed, nb, nt), nb, nt, level):
        rejected, step = passed, 2 * step
        passed = min(rejected + step, nt)
    while passed - rejected > 1:
        middle = (rejected + passed) // 2
        if _holds(FisherLevel.of(k, middle, nb, nt), nb, nt, level):
            rejected = middle
        else:
            passed = middle
    return passed


def boschloo_size(
    baseline_trials: SupportsIndex, trials: SupportsIndex, *, alpha: float = 0.05
) -> float:
    """The greatest false-alarm probability of Boschloo's rule over every common rate.

    The rule rejects every outcome whose Boschloo p-value is at most alpha, so this is the largest
    attainable p-value not above alpha (to nine digits).

    Parameters
    ----------
    baseline_trials, trials : int
        The two runs, at least one trial each.
    alpha : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> round(boschloo_size(1, 1, alpha=0.3), 9), boschloo_size(1, 1, alpha=0.05)
    (0.25, 0.0)
    """
    nb = require_count("baseline_trials", baseline_trials, minimum=1)
    nt = require_count("trials", trials, minimum=1)
    level = require_open_rate("alpha", alpha)
    return find_supremum(rejection_region(_critical_level(nb, nt, level), nb, nt)).high


def _critical_level(nb: int, nt: int, alpha: float) -> FisherLevel:
    """The largest level whose region is falsely rejected with probability at most alpha."""
    low = FisherLevel(alpha, nb, nt)  # Fisher's own region always qualifies.
    while (beyond := low.value * _STRIDE) < 1:
        candidate = FisherLevel(beyond, nb, nt)
        if not _holds(candidate, nb, nt, alpha):
            break
        low = candidate
    cells = _cells_between(low, min(beyond, 1.0), nb, nt)
    levels = [FisherLevel.of(k, x, nb, nt) for _, k, x in cells]
    qualified = bisect_right(levels, False, key=lambda level: not _holds(level, nb, nt, alpha))
    return levels[qualified - 1] if qualified else low


def _cells_between(low: FisherLevel, high: float, nb: int, nt: int) -> list[tuple[float, int, int]]:
    """The outcomes (p-value, k, x) above one level and not far above another, in order."""
    cutoffs = [0] * (nb + 1)
    for k, x, *_ in fisher_corners(low, nb, nt):
        cutoffs[k] = x + 1
    cells = []
    for k in range(1, nb + 1):
        x = cutoffs[k]
        tail, weight = fisher_p_value(k, nb, x, nt), lattice_weight(k, x, nb, nt)
        while x < nt and tail <= high * (1 + RELATIVE_BAND):
            cells.append((tail, k, x))
            weight *= (k + x + 1) * (nt - x) / ((x + 1) * (nb + nt - k - x))
            x += 1
            tail += weight * k / (k + x)
    return sorted(cells)


def _holds(level: FisherLevel, nb: int, nt: int, alpha: float) -> bool:
    """Whether the region below a level is rejected with probability at most alpha at every rate."""
    limit = alpha * (1 + RELATIVE_BAND)
    return (
        level.value <= limit or find_supremum(rejection_region(level, nb, nt), limit).low <= limit
    )
