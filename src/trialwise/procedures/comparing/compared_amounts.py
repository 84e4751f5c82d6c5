"""Latency, cost and tokens under both services: described with an interval, never decided.

The interval is for the median of the differences within pairs, by the order statistics that the
binomial at one half gives: it needs no shape of the latencies, whose tails no mean survives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from trialwise.decimals import as_written
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.comparison_findings import AmountDifference
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import Interval

__all__ = ["amount_differences", "median_interval"]


@dataclass(frozen=True, slots=True)
class _Amount:
    name: str
    basis: str
    of: Callable[[Trial], float | None]
    """What a trial took, without its setup."""
    of_successes: bool = False


_AMOUNTS = (
    _Amount(
        "latency_s",
        "pairs in which both passed every criterion",
        lambda trial: trial.latency_s,
        of_successes=True,
    ),
    _Amount("cost_usd", "pairs in which both say what they cost", lambda trial: trial.cost_usd),
    _Amount(
        "tokens",
        "pairs in which both say what they used",
        lambda trial: None if trial.usage is None else trial.usage.total_tokens,
    ),
)


def amount_differences(pairing: Pairing, *, confidence: float) -> Iterator[AmountDifference]:
    """What the pairs of an experiment took, amount by amount; none where no pair says."""
    for amount in _AMOUNTS:
        taken = [both for pair in pairing.pairs if (both := _both(amount, pair)) is not None]
        if taken:
            differences = [candidate - reference for reference, candidate in taken]
            yield AmountDifference(
                name=amount.name,
                experiment=pairing.summary.experiment,
                pairs=len(taken),
                basis=amount.basis,
                reference_mean=fmean(reference for reference, _ in taken),
                candidate_mean=fmean(candidate for _, candidate in taken),
                median_difference=median(differences),
                interval=median_interval(differences, confidence=confidence),
            )


def _both(amount: _Amount, pair: Pair) -> tuple[float, float] | None:
    if amount.of_successes and not (pair.reference.passed and pair.candidate.passed):
        return None
    reference, candidate = amount.of(pair.reference), amount.of(pair.candidate)
    return None if reference is None or candidate is None else (reference, candidate)


def median_interval(values: Sequence[float], *, confidence: float) -> Interval | None:
    """An exact confidence interval for a median: two order statistics, as far in as allowed.

    With X ~ Binomial(n, ½), the r-th value from either end bounds the median on its side unless
    X < r, so that r is the largest with P(X < r) ≤ (1 − confidence)/2.

    Args:
        values: Independent of one another.
        confidence: Of the interval, kept at least.

    >>> median_interval(range(1, 11), confidence=0.95)
    Interval(low=2, high=9, confidence=0.95, method='order statistics')
    >>> median_interval([1, 2, 3], confidence=0.95) is None
    True
    """
    alpha = float((1 - as_written(confidence)) / 2)
    n = len(values)
    cutoff = compliance_cutoff(0.5, n, alpha=alpha, rule="exact").cutoff if n else None
    if cutoff is None:
        return None
    ordered = sorted(values)
    low, high = ordered[n - cutoff], ordered[cutoff - 1]
    return Interval(low, high, confidence=confidence, method="order statistics")
