"""An explicit latency limit, "p95 at most 500 ms", decided as a compliance claim (§12.3).

That the p-th percentile is at most tau says that at least a share p of the latencies is within
tau, so the exact compliance rule decides: H0: F(tau) ≤ p, with Y the number of latencies within.
Comparing the observed percentile with the limit, as rule set "wilson" does (§12.3.1), asks for no
evidence at all; it stands on the result as a labelled figure.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.stats.binomial import raw_tail
from trialwise.stats.compliance_cutoffs import (
    ComplianceCutoff,
    compliance_cutoff,
    exact_cutoff,
    minimum_trials,
)
from trialwise.stats.latency_percentiles import check_latencies, check_percentile, nearest_rank
from trialwise.stats.latency_planning import INTENTS, Intent
from trialwise.stats.rate_intervals import clopper_pearson_low
from trialwise.stats.result_types import Count, Refusal
from trialwise.validation import require_choice, require_count, require_open_rate, require_positive

LimitVerdict: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLimitDecision:
    """An explicit latency limit, decided; a refused plan decides nothing and leaves None."""

    percentile: float
    limit: float
    alpha: float
    intent: Intent
    planned_trials: int | None
    refusal: Refusal | None
    trials: int | None = None
    """How many latencies were realised, the reference data's `test_samples`."""
    within: int | None = None
    """How many of them are at or below the limit."""
    y_min: int | None = None
    """The fewest within the limit that PASS; None where not even all would."""
    pass_possible: bool | None = None
    decision: LimitVerdict | None = None
    """PASS iff within ≥ y_min; INCONCLUSIVE where no y_min exists."""
    false_compliance: float | None = None
    """P(PASS) where exactly a share `percentile` is within the limit: at most alpha."""
    clopper_pearson_lower: float | None = None
    """The one-sided lower bound, at confidence 1 − alpha, on the share within the limit."""
    observed_percentile: float | None = None
    """The nearest-rank percentile of the latencies; None without any."""

    def find_false_alarm(self, test_trials: int) -> None:
        """Return nothing: a comparison with a limit has no unchanged state."""

    @property
    def raw_percentile_pass(self) -> bool | None:
        """The raw comparison of §12.3.1, observed percentile ≤ limit: a figure, not a decision."""
        if self.observed_percentile is None:
            return None
        return self.observed_percentile <= self.limit


def latency_limit_cutoff(
    percentile: float, trials: Count, *, alpha: float = 0.05
) -> ComplianceCutoff:
    """How many of `trials` latencies must be within a limit to show that its percentile is.

    The exact compliance cutoff at a required rate of p: y_min = min{y : P(Y ≥ y) ≤ alpha} with
    Y ~ Binomial(trials, p).

    Parameters
    ----------
    percentile : float
        Strictly between 0 and 1.
    trials : int
        Successful trials, at least 1.
    alpha : float
        The false-compliance level, strictly between 0 and 1.

    Examples
    --------
    >>> latency_limit_cutoff(0.95, 100).cutoff
    99
    >>> latency_limit_cutoff(0.95, 58).refusal
    <Refusal.COMPLIANCE_INFEASIBLE: 'COMPLIANCE_INFEASIBLE'>
    """
    return compliance_cutoff(check_percentile(percentile), trials, alpha=alpha, rule="exact")


def evaluate_latency_limit(
    latencies: Iterable[float],
    percentile: float,
    limit: float,
    *,
    alpha: float = 0.05,
    intent: Intent = "VERIFICATION",
    planned_trials: Count | None = None,
) -> LatencyLimitDecision:
    """Whether the latencies show that a percentile is within an explicit limit (§12.3).

    PASS iff at least y_min latencies are at or below the limit (`latency_limit_cutoff` at the
    realised count). A verification planned below the feasibility minimum is refused; a run that
    realises fewer successful trials than it is INCONCLUSIVE, a run without any included.

    Parameters
    ----------
    latencies : iterable of float
        Of the successful trials, finite, not negative; may be empty.
    percentile : float
        Strictly between 0 and 1.
    limit : float
        In the unit of the latencies, above 0; a latency equal to it is within.
    alpha : float
        The false-compliance level, strictly between 0 and 1.
    intent : {"VERIFICATION", "SMOKE"}
        Smoke runs an undersized plan instead of refusing it.
    planned_trials : int, optional
        Trials planned, successful or not; without it no plan is refused.

    Examples
    --------
    >>> result = evaluate_latency_limit([400] * 95 + [600] * 5, 0.95, 500)
    >>> result.within, result.y_min, result.decision, result.raw_percentile_pass
    (95, 99, 'FAIL', True)
    """
    ordered = check_latencies("latencies", latencies, minimum=0)
    p = check_percentile(percentile)
    tau = require_positive("limit", limit)
    level = require_open_rate("alpha", alpha)
    purpose = require_choice("intent", intent, INTENTS)
    planned = None
    if planned_trials is not None:
        planned = require_count("planned_trials", planned_trials, minimum=1)
    too_few = planned is not None and planned < minimum_trials(p, alpha=level, rule="exact")
    if purpose == "VERIFICATION" and too_few:
        return LatencyLimitDecision(
            percentile=p,
            limit=tau,
            alpha=level,
            intent=purpose,
            planned_trials=planned,
            refusal=Refusal.COMPLIANCE_INFEASIBLE,
        )
    n = len(ordered)
    within = bisect_right(ordered, tau)
    y_min = exact_cutoff(p, n, level) if n else None
    return LatencyLimitDecision(
        percentile=p,
        limit=tau,
        alpha=level,
        intent=purpose,
        planned_trials=planned,
        refusal=None,
        trials=n,
        within=within,
        y_min=y_min,
        pass_possible=y_min is not None,
        decision=_decide(within, y_min),
        false_compliance=None if y_min is None else raw_tail(y_min, n, p),
        clopper_pearson_lower=clopper_pearson_low(within, n, level),
        observed_percentile=nearest_rank(ordered, p) if n else None,
    )


def _decide(within: int, y_min: int | None) -> LimitVerdict:
    if y_min is None:
        return "INCONCLUSIVE"
    return "PASS" if within >= y_min else "FAIL"
