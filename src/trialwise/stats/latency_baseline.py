"""Latency thresholds from a baseline, by rule set "wilson" and by rule set "exact" (§12.4).

Rule set "wilson" looks at the baseline alone and takes its order-statistic bound.
The number of baseline latencies at or below the true percentile Q(p) is Binomial(n, p) whatever
the distribution, so the k-th smallest of them is an upper confidence bound on Q(p) as soon as
P(B ≥ k) ≤ alpha. It bounds where the baseline's percentile *is*; it does not predict where a
test's will fall. A test's percentile exceeds it far more often than alpha even if nothing changed
(§12.4.3), and `order_statistic_false_alarm` says how often.

Rule set "exact" counts both sides, for a test of known size (§12.4.3). Under no change every
interleaving of baseline and test latencies is equally likely, so the chance that the test's
percentile lies above the k-th baseline latency is a beta-binomial tail (`unconditional`), exact
whatever the distribution and conservative where latencies tie. The threshold rule takes the
smallest rank whose chance is at most alpha. The exceedance rule fixes the rank at the baseline's
own percentile and asks how many test latencies may exceed it: as exact, often more powerful, and
able to decide with smaller baselines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from trialwise.decimals import ceil_product, complement
from trialwise.errors import InvalidArgument
from trialwise.stats.binomial import raw_cdf
from trialwise.stats.compliance_cutoffs import exact_cutoff
from trialwise.stats.latency_percentiles import check_latencies, check_percentile, nearest_rank
from trialwise.stats.result_types import Count, Refusal, Undefined
from trialwise.stats.unconditional import lower_tail, smallest_count
from trialwise.validation import require_count, require_open_rate, require_real

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

    refusal: ClassVar[None] = None
    """It bounds a percentile whatever the size of a test, so that it refuses none."""

    @property
    def threshold(self) -> float | None:
        """What a test's percentile must not exceed: the bound."""
        return self.value

    def find_false_alarm(self, test_trials: int) -> float | None:
        """P(breach) of a test when nothing has changed; None where there is no bound or no test."""
        if not test_trials:
            return None
        found = order_statistic_false_alarm(
            self.trials, test_trials, self.percentile, confidence=self.confidence
        )
        return None if isinstance(found, Undefined) else found

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
    raw_rank = _raw_bound_rank(n, p, level)
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
    baseline_trials: Count, test_trials: Count, percentile: float, *, confidence: float = 0.95
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
    raw_rank = _raw_bound_rank(nb, p, require_open_rate("confidence", confidence))
    if raw_rank > nb:
        return Undefined(f"{nb} baseline latencies give no bound at this confidence")
    return lower_tail(max(raw_rank, ceil_product(p, nb)), ceil_product(p, nt) - 1, nb, nt)


def _raw_bound_rank(n: int, percentile: float, confidence: float) -> int:
    """qbinom(1 − alpha, n, p) + 1 = min{k : P(B ≥ k) ≤ alpha}, inclusive and exact at equality."""
    rank = exact_cutoff(percentile, n, complement(confidence))
    return n + 1 if rank is None else rank


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceExistence:
    """Whether a baseline can judge a test of a given size, and by which of its latencies."""

    baseline_trials: int
    test_trials: int
    percentile: float
    alpha: float
    test_rank: int | None
    """r = ⌈p·n_t⌉, the test latency that is compared; None without test latencies."""
    rank: int | None
    """The smallest baseline rank whose breach probability is at most alpha; None if saturated."""
    saturated: bool
    """Whether no rank qualifies: the test is INCONCLUSIVE whatever it shows (§12.5.2.1)."""
    breach_probability: float | None
    """P(breach) at that rank when nothing has changed: the rule's exact size, at most alpha."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedenceThreshold:
    """A latency threshold that keeps the false-alarm probability of one test at or below alpha."""

    baseline_trials: int
    """How many baseline latencies there are (n_b, the reference data's `n`)."""
    test_trials: int | None
    """How many successful trials the test has (n_t); None where it was refused unrun."""
    percentile: float
    alpha: float
    baseline_percentile: float
    """The baseline's own nearest-rank percentile."""
    baseline_run_trials: int | None
    """All trials of the baseline run (the reference data's `baseline_samples`), if given."""
    planned_trials: int | None
    """How many trials the test was planned with, if known (`planned_samples` in the data)."""
    refusal: Refusal | None
    test_rank: int | None = None
    """r = ⌈p·n_t⌉, the test latency that is compared."""
    rank: int | None = None
    threshold: float | None = None
    """The baseline latency at `rank`; a test percentile above it is a breach."""
    saturated: bool | None = None
    """Whether no rank qualifies; None where the design was refused."""
    breach_probability: float | None = None
    """P(breach) when nothing has changed: at most alpha."""

    def find_false_alarm(self, test_trials: int) -> float | None:  # noqa: ARG002 (it has its own)
        """P(breach) of its test when nothing has changed; None where it has no threshold."""
        return self.breach_probability

    def breached_by(self, test_percentile: float) -> bool | None:
        """Whether a test's percentile is above the threshold; equality is not. None without one."""
        observed = require_real("test_percentile", test_percentile)
        return None if self.threshold is None else observed > self.threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceedanceCutoff:
    """How many test latencies above the baseline's percentile signal a degradation."""

    baseline_trials: int
    test_trials: int
    percentile: float
    alpha: float
    baseline_rank: int
    """⌈p·n_b⌉, the baseline latency that the test's are counted against."""
    cutoff: int | None
    """FAIL iff at least this many test latencies exceed it; None where not even all would do."""
    size: float
    """P(FAIL) when nothing has changed: at most alpha, 0 without a cutoff."""


def precedence_existence(
    baseline_trials: Count, test_trials: Count, percentile: float, *, alpha: float = 0.05
) -> PrecedenceExistence:
    """The precedence rank from the two counts alone: known before a latency is (§12.5.2.1).

    With r = ⌈p·n_t⌉, the smallest k with P(BetaBinomial(n_t; k, n_b − k + 1) ≤ r − 1) ≤ alpha.
    A rank exists iff it does at k = n_b. Without a latency on both sides there is none.

    Parameters
    ----------
    baseline_trials, test_trials : int
        How many successful trials each side has, at least 0; either may be the larger.
    percentile, alpha : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> precedence_existence(554, 160, 0.99).rank
    554
    >>> precedence_existence(554, 161, 0.99).saturated
    True
    """
    nb = require_count("baseline_trials", baseline_trials)
    nt = require_count("test_trials", test_trials)
    return _existence(nb, nt, check_percentile(percentile), require_open_rate("alpha", alpha))


def precedence_threshold(
    baseline_latencies: Iterable[float],
    test_trials: Count | None,
    percentile: float,
    *,
    alpha: float = 0.05,
    baseline_run_trials: Count | None = None,
    planned_trials: Count | None = None,
) -> PrecedenceThreshold:
    """The baseline latency that a test's percentile exceeds with probability at most alpha.

    It is the baseline's order statistic at the rank of `precedence_existence`. A test planned
    larger than its baseline run is refused before it runs, as for pass rates; that compares the
    two runs' sizes, successful or not, and never the numbers of latencies.

    Parameters
    ----------
    baseline_latencies : iterable of float
        Of successful trials: at least one, finite, not negative.
    test_trials : int or None
        How many successful trials the test has; None only where the plan is refused.
    percentile, alpha : float
        Strictly between 0 and 1.
    baseline_run_trials, planned_trials : int, optional
        All trials of the baseline run and of the planned test; give both or neither.

    Examples
    --------
    >>> design = precedence_threshold(range(1, 936), 192, 0.95)
    >>> design.rank, design.threshold, round(design.breach_probability, 6)
    (911, 911.0, 0.049547)
    >>> design.breached_by(911.0)
    False
    """
    ordered = check_latencies("baseline_latencies", baseline_latencies)
    p = check_percentile(percentile)
    level = require_open_rate("alpha", alpha)
    baseline_run, planned = _run_sizes(baseline_run_trials, planned_trials)
    refused = baseline_run is not None and planned is not None and planned > baseline_run
    nt = None if test_trials is None else require_count("test_trials", test_trials)
    unresolved = PrecedenceThreshold(
        baseline_trials=len(ordered),
        test_trials=nt,
        percentile=p,
        alpha=level,
        baseline_percentile=nearest_rank(ordered, p),
        baseline_run_trials=baseline_run,
        planned_trials=planned,
        refusal=Refusal.TEST_LARGER_THAN_BASELINE if refused else None,
    )
    if refused:
        return unresolved
    if nt is None:
        raise InvalidArgument("test_trials", test_trials, "be given unless the plan is refused")
    design = _existence(len(ordered), nt, p, level)
    return replace(
        unresolved,
        test_rank=design.test_rank,
        rank=design.rank,
        threshold=None if design.rank is None else ordered[design.rank - 1],
        saturated=design.saturated,
        breach_probability=design.breach_probability,
    )


def exceedance_cutoff(
    baseline_trials: Count, test_trials: Count, percentile: float, *, alpha: float = 0.05
) -> ExceedanceCutoff:
    """How many test latencies above the baseline's own percentile no chance would explain.

    With k = ⌈p·n_b⌉ and E the number of test latencies above the k-th smallest of the baseline,
    the smallest m with P(E ≥ m) = P(BetaBinomial(n_t; k, n_b − k + 1) ≤ n_t − m) ≤ alpha.

    Parameters
    ----------
    baseline_trials, test_trials : int
        How many latencies each side has, at least 1.
    percentile, alpha : float
        Strictly between 0 and 1.

    References
    ----------
    Gumbel & von Schelling (1950), "The distribution of the number of exceedances".

    Examples
    --------
    >>> design = exceedance_cutoff(200, 500, 0.95)
    >>> design.cutoff, round(design.size, 4)
    (45, 0.0485)
    """
    nb = require_count("baseline_trials", baseline_trials, minimum=1)
    nt = require_count("test_trials", test_trials, minimum=1)
    p = check_percentile(percentile)
    level = require_open_rate("alpha", alpha)
    rank = ceil_product(p, nb)
    most_below = smallest_count(rank, nb, nt, level) - 1
    return ExceedanceCutoff(
        baseline_trials=nb,
        test_trials=nt,
        percentile=p,
        alpha=level,
        baseline_rank=rank,
        cutoff=nt - most_below if most_below >= 0 else None,
        size=lower_tail(rank, most_below, nb, nt),
    )


def _existence(nb: int, nt: int, percentile: float, alpha: float) -> PrecedenceExistence:
    test_rank = ceil_product(percentile, nt) if nt else None
    rank = breach = None
    if test_rank is not None and nb:
        rank = first_rank(test_rank - 1, nb, nt, alpha)
    if test_rank is not None and rank is not None:
        breach = lower_tail(rank, test_rank - 1, nb, nt)
    return PrecedenceExistence(
        baseline_trials=nb,
        test_trials=nt,
        percentile=percentile,
        alpha=alpha,
        test_rank=test_rank,
        rank=rank,
        saturated=rank is None,
        breach_probability=breach,
    )


def first_rank(below: int, nb: int, nt: int, alpha: float) -> int | None:
    """min{k : F(k, below) ≤ alpha}, from F(k, x; n_b, n_t) = F(n_t − x, n_b − k; n_t, n_b).

    Counted from the top, the rank is Fisher's cutoff with the two samples exchanged. That walk
    starts near the mean; single sums at ranks far from it underflow for large tests.
    """
    rank = nb + 1 - smallest_count(nt - below, nt, nb, alpha)
    return rank if rank <= nb else None


def _run_sizes(baseline_run: Count | None, planned: Count | None) -> tuple[int | None, int | None]:
    if baseline_run is None and planned is None:
        return None, None
    if baseline_run is None:
        raise InvalidArgument("baseline_run_trials", None, "be given with planned_trials")
    if planned is None:
        raise InvalidArgument("planned_trials", None, "be given with baseline_run_trials")
    return (
        require_count("baseline_run_trials", baseline_run, minimum=1),
        require_count("planned_trials", planned, minimum=1),
    )
