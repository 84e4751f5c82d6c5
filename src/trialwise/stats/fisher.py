"""Fisher's one-sided test that a run degraded from its baseline: exact whatever the common rate.

Given how many of all trials succeeded, which run they fell to is pure chance when nothing has
changed, so the unknown rate drops out and the baseline's own uncertainty is accounted for. It is
the `fisher` rule of `regression`, read as a p-value; `boschloo` uses the same ordering of outcomes
and wastes less of alpha.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, SupportsIndex

from trialwise.decimals import RELATIVE_BAND, as_written
from trialwise.stats.precedence import exact_lower_tail, lattice_weight, lower_tail
from trialwise.validation import require_successes

if TYPE_CHECKING:
    from fractions import Fraction


#: A walk adds rounding at every step; a fresh sum this often keeps it below 1e-13.
_REFRESH = 128


def fisher_one_sided(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
) -> float:
    """The p-value of degradation: P(X ≤ successes) when all successes are dealt out at random.

    X is hypergeometric: the successes that fall to the test when k_b + k_t of the n_b + n_t trials
    succeed. It is 1 for a baseline without successes, from which nothing can degrade, and for a
    test without failures.

    Parameters
    ----------
    baseline_successes, baseline_trials : int
        The measured baseline, 0 ≤ successes ≤ trials, at least one trial.
    successes, trials : int
        The test, likewise.

    References
    ----------
    Fisher (1935), "The logic of inductive inference"; companion §3.2, status note, asks for a rule
    that propagates the baseline's uncertainty.

    Examples
    --------
    Four successes that all fall to the baseline are one of 70 equally likely splits:

    >>> round(fisher_one_sided(4, 4, 0, 4) * 70, 12)
    1.0
    >>> round(fisher_one_sided(95, 100, 86, 100), 6)
    0.025653
    """
    return fisher_p_value(*check_two_runs(baseline_successes, baseline_trials, successes, trials))


def check_two_runs(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
) -> tuple[int, int, int, int]:
    """A baseline and a test, each with 0 ≤ successes ≤ trials and at least one trial."""
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    x, nt = require_successes(successes, trials)
    return k, nb, x, nt


def fisher_p_value(k: int, nb: int, x: int, nt: int) -> float:
    """P(X ≤ x), summed over the tail that is small: the other one starts from an underflow."""
    if k == 0 or x == nt:
        return 1.0
    if x * nb <= k * nt:
        return lower_tail(k, x, nb, nt)
    # X > x leaves at most k − 1 of the k + x successes to the baseline: the same tail, mirrored.
    return 1 - lower_tail(x + 1, k - 1, nt, nb)


class FisherLevel:
    """A level that Fisher p-values are compared with; in rationals where doubles are too close.

    Either a number, read as the decimal written, or the p-value of an outcome.
    """

    __slots__ = ("_cell", "_exact", "_nb", "_nt", "value")

    def __init__(
        self, value: float, nb: int, nt: int, *, cell: tuple[int, int] | None = None
    ) -> None:
        self.value, self._cell = value, cell
        self._nb, self._nt = nb, nt
        self._exact: Fraction | None = None

    @classmethod
    def of(cls, k: int, x: int, nb: int, nt: int) -> FisherLevel:
        """The p-value of x successes in nt trials against k in nb."""
        return cls(fisher_p_value(k, nb, x, nt), nb, nt, cell=(k, x))

    def admits(self, tail: float, k: int, x: int) -> bool:
        """Whether the p-value of (k, x), which is about `tail`, is at most the level."""
        if abs(tail - self.value) > RELATIVE_BAND * self.value:
            return tail <= self.value
        if self._exact is None:
            cell = self._cell
            self._exact = (
                as_written(self.value)
                if cell is None
                else exact_lower_tail(*cell, self._nb, self._nt)
            )
        return exact_lower_tail(k, x, self._nb, self._nt) <= self._exact


def fisher_corners(level: FisherLevel, nb: int, nt: int) -> Iterator[tuple[int, int, float, float]]:
    """The last rejected (k, x) of every diagonal k + x = s that has one, its p-value and weight.

    The weight is the probability of (k, x) given s successes, the p-value that of rejection. It
    grows with x and falls with k, so from one diagonal to the next the corner moves by one step in
    x or by one in k.
    """
    size = nb + nt
    k, x, tail = 0, 0, 1.0
    while not level.admits(tail, k, x):
        if k == nb:
            return
        tail *= (nb - k) / (size - k)
        k += 1
    weight, steps = tail, 0
    yield k, x, tail, weight
    while True:
        left = size - k - x
        higher = weight * (k + x + 1) * (nt - x) / ((x + 1) * left)
        raised = tail + higher * k / (k + x + 1)
        if x + 1 < nt and level.admits(raised, k, x + 1):
            x, weight, tail = x + 1, higher, raised
        elif k < nb:
            loss = weight * (nt - x) / left
            weight *= (k + x + 1) * (nb - k) / ((k + 1) * left)
            k, tail = k + 1, tail - loss
            # A difference much smaller than what it is made of has lost its digits.
            steps = _REFRESH if tail < loss else steps
        else:
            return
        steps += 1
        if steps >= _REFRESH:
            steps, weight, tail = 0, lattice_weight(k, x, nb, nt), lower_tail(k, x, nb, nt)
        yield k, x, tail, weight
