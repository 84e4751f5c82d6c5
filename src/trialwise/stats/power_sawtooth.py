"""The power of a compliance test at every number of trials, in one pass.

Growing n or the cutoff by one changes a binomial tail by a single probability, so the powers at
1 … 20,000 trials, each with its own exact cutoff, cost a few additions each.
"""

from __future__ import annotations

from trialwise.decimals import as_written, at_most
from trialwise.stats.binomial import exact_tail, raw_pmf, raw_tail
from trialwise.stats.compliance_cutoffs import minimum_trials, wilson_cutoff
from trialwise.stats.normal import upper_z
from trialwise.stats.result_types import Rule

#: Other modules of this package use these; the package exports none.
__all__: list[str] = []

#: Every step adds rounding; a fresh tail this often keeps it below 1e-13.
_REFRESH = 256


def compliance_powers(
    required: float, alternative: float, alpha: float, rule: Rule, limit: int
) -> list[float]:
    """P(PASS) at the alternative for 1 … limit trials; 0 where no count can pass."""
    first = minimum_trials(required, alpha=alpha, rule=rule)
    powers = [0.0] * min(first - 1, limit)
    if first > limit:
        return powers
    null, hoped = _TailWalk(required, first), _TailWalk(alternative, first)
    z = upper_z(alpha)
    for n in range(first, limit + 1):
        if n > first:
            null.add_trial()
            hoped.add_trial()
        while _too_low(null, required, alpha, z, rule):
            null.raise_cutoff()
            hoped.raise_cutoff()
        powers.append(hoped.tail)
    return powers


def _too_low(null: _TailWalk, required: float, alpha: float, z: float, rule: Rule) -> bool:
    if rule == "wilson":
        cutoff = wilson_cutoff(required, null.n, z)
        return cutoff is not None and null.k < cutoff
    return not at_most(null.tail, alpha, lambda: exact_tail(null.k, null.n, as_written(required)))


class _TailWalk:
    """P(K ≥ k) for n trials at rate p, moved one trial or one count at a time."""

    __slots__ = ("_below", "_p", "_steps", "k", "n", "tail")

    def __init__(self, p: float, n: int) -> None:
        self._p = p
        self.n = self.k = n
        self._refresh()

    def add_trial(self) -> None:
        """n → n + 1: the new trial lifts those who were one short."""
        q = 1 - self._p
        self.tail += self._below * self._p
        self._below *= (self.n + 1) / (self.n - self.k + 2) * q
        self.n += 1
        self._count_step()

    def raise_cutoff(self) -> None:
        """k → k + 1: those exactly at the cutoff no longer pass."""
        if self._p < 1:
            self._below *= (self.n - self.k + 1) / self.k * self._p / (1 - self._p)
        self.tail -= self._below
        self.k += 1
        self._count_step()

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps >= _REFRESH or self.tail <= 0:
            self._refresh()

    def _refresh(self) -> None:
        self._steps = 0
        self.tail = raw_tail(self.k, self.n, self._p)
        #: P(K = k − 1), the next to be lifted.
        self._below = raw_pmf(self.k - 1, self.n, self._p)
