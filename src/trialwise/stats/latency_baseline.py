"""A latency threshold from a baseline alone: the order-statistic bound of rule "wilson" (§12.4).

The number of baseline latencies at or below the true percentile Q(p) is Binomial(n, p) whatever
the distribution, so the k-th smallest of them is an upper confidence bound on Q(p) as soon as
P(B ≥ k) ≤ alpha. It bounds where the baseline's percentile *is*; it does not predict where a
test's will fall. A test's percentile exceeds it far more often than alpha even if nothing changed
(§12.4.3), and `order_statistic_false_alarm` says how often.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.decimals import ceil_product, complement
from trialwise.stats.binomial import raw_cdf
from trialwise.stats.compliance_cutoffs import exact_cutoff
from trialwise.stats.latency_percentiles import check_latencies, check_percentile, nearest_rank
from trialwise.stats.precedence import lower_tail
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count, require_open_rate, require_real

__all__ = [
    "TIE_POLICY",
    "OrderStatisticBound",
    "order_statistic_bound",
    "order_statistic_false_alarm",
]

TIE_POLICY = "largest-tied-position-for-upper-bound-ranks"
"""How a bound's rank reads a run of equal latencies (§12.8): by its last position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderStatisticBound:
    """An upper confidence bound on a baseline's true percentile, or the reason there is none."""

    trials: int
    """How many baseline latencies there are (n_s)."""
    percentile: float
    confidence: float
    raw_rank: int
    """qbinom(1 − alpha, n, p) + 1, which is n + 1 where no observed latency is high enough."""
    rank: int | None
    """max(raw_rank, ⌈p·n⌉), or None where saturated: the rank is never cut back to n."""
    tied_rank: int | None
    """The last position that holds the same latency as `rank`; see `TIE_POLICY`."""
    saturated: bool
    """Whether the sample is too small for any bound at this confidence (§12.5.2.1)."""
    value: float | None
    """The bound, an observed latency; None where saturated."""
    advisory_value: float | None
    """Only where saturated: the largest latency, for display. It is not a bound."""
    achieved_coverage: float | None
    """P(bound ≥ Q(p)) for a continuous distribution: P(B < rank). With ties it is higher."""
    baseline_percentile: float
    """The baseline's own nearest-rank percentile, never above the bound."""

    @property
    def tie_policy(self) -> str:
        """The name of the rule for equal latencies, as reports declare it (§10.2)."""
        return TIE_POLICY

    def breached_by(self, test_percentile: float) -> bool | None:
        """Whether a test's percentile is above the bound; equality is not. None if saturated."""
        observed = require_real("test_percentile", test_percentile)
        return None if self.value is None else observed > self.value


def order_statistic_bound(
    latencies: Iterable[float], percentile: float, *, confidence: float = 0.95
) -> OrderStatisticBound:
    """The smallest baseline latency that bounds the true percentile from above (§12.4.2).

    t_(k) with k = max(min{k : P(B ≥ k) ≤ 1 − confidence}, ⌈p·n⌉) and B ~ Binomial(n, p): exact
    for a continuous distribution, conservative where latencies tie. If no k ≤ n qualifies there
    is no bound; the maximum is then returned as an advisory value only.

    Parameters
    ----------
    latencies : iterable of float
        The baseline's, of successful trials: at least one, finite, not negative.
    percentile : float
        Strictly between 0 and 1.
    confidence : float
        Strictly between 0 and 1.

    References
    ----------
    Companion §12.4.2, §12.8; Conover (1999), Practical Nonparametric Statistics.

    Examples
    --------
    >>> bound = order_statistic_bound(range(1, 936), 0.95)
    >>> bound.rank, bound.value, bound.baseline_percentile
    (900, 900.0, 889.0)
    >>> order_statistic_bound(range(1, 201), 0.99).saturated
    True
    """
    ordered = check_latencies("latencies", latencies)
    p = check_percentile(percentile)
    level = require_open_rate("confidence", confidence)
    n = len(ordered)
    raw_rank = raw_bound_rank(n, p, level)
    saturated = raw_rank > n
    rank = None if saturated else max(raw_rank, ceil_product(p, n))
    value = None if rank is None else ordered[rank - 1]
    return OrderStatisticBound(
        trials=n,
        percentile=p,
        confidence=level,
        raw_rank=raw_rank,
        rank=rank,
        tied_rank=None if value is None else bisect_right(ordered, value),
        saturated=saturated,
        value=value,
        advisory_value=ordered[-1] if saturated else None,
        achieved_coverage=None if rank is None else raw_cdf(rank - 1, n, p),
        baseline_percentile=nearest_rank(ordered, p),
    )


def order_statistic_false_alarm(
    baseline_trials: SupportsIndex,
    test_trials: SupportsIndex,
    percentile: float,
    *,
    confidence: float = 0.95,
) -> float | Undefined:
    """P(a test's percentile exceeds the order-statistic bound) when nothing has changed.

    With k the bound's rank and r = ⌈p·n_t⌉, it is the probability that fewer than r test
    latencies lie below the k-th smallest of the baseline: BetaBinomial(n_t; k, n_b − k + 1) at
    r − 1. Nothing holds it near 1 − confidence; the bound answers another question (§12.4.3).

    Parameters
    ----------
    baseline_trials, test_trials : int
        How many latencies each side has, at least 1.
    percentile, confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> [round(order_statistic_false_alarm(935, n, 0.95), 3) for n in (100, 200, 500)]
    [0.197, 0.171, 0.123]
    """
    nb = require_count("baseline_trials", baseline_trials, minimum=1)
    nt = require_count("test_trials", test_trials, minimum=1)
    p = check_percentile(percentile)
    raw_rank = raw_bound_rank(nb, p, require_open_rate("confidence", confidence))
    if raw_rank > nb:
        return Undefined(f"{nb} baseline latencies give no bound at this confidence")
    return lower_tail(max(raw_rank, ceil_product(p, nb)), ceil_product(p, nt) - 1, nb, nt)


def raw_bound_rank(n: int, percentile: float, confidence: float) -> int:
    """qbinom(1 − alpha, n, p) + 1 = min{k : P(B ≥ k) ≤ alpha}, inclusive and exact at equality."""
    rank = exact_cutoff(percentile, n, complement(confidence))
    return n + 1 if rank is None else rank
