"""What a latency plan can be expected to support, asked before the first trial (§12.5.3).

Latencies come from successful trials only, so a plan is judged by ⌊planned · success rate⌋, an
expectation and not a lower bound. Rule set "wilson" refuses a verification that is expected to
miss a minimum; the exact one warns, says how much more it would take, and leaves the decision to
the count that the run really reaches.

How many latencies a claim takes has two minimums that are easily confused (§12.5.2).
*Non-degeneracy*: is the empirical percentile more than an extreme of the sample
(`latency_percentiles.emission_minimum`)? *Existence*: is there an observed latency that bounds the
true percentile from above? The second takes more trials, and neither stands in for the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from trialwise.decimals import as_written, ceil_product, complement, floor_product
from trialwise.stats.binomial import find_first, raw_tail
from trialwise.stats.compliance_cutoffs import (
    ComplianceCutoff,
    compliance_cutoff,
    exact_cutoff,
    minimum_trials,
)
from trialwise.stats.latency_baseline import precedence_existence
from trialwise.stats.latency_percentiles import (
    check_latencies,
    check_percentile,
    emission_minimum,
    nearest_rank,
)
from trialwise.stats.rate_intervals import clopper_pearson_low
from trialwise.stats.result_types import Count, Refusal, Undefined
from trialwise.stats.unconditional import reaches
from trialwise.validation import (
    require_choice,
    require_count,
    require_open_rate,
    require_positive,
    require_rate,
)

Intent: TypeAlias = Literal["VERIFICATION", "SMOKE"]

INTENTS: tuple[Intent, ...] = ("VERIFICATION", "SMOKE")

ThresholdSource: TypeAlias = Literal["baseline-derived", "explicit"]

_SOURCES: tuple[ThresholdSource, ...] = ("baseline-derived", "explicit")

GateOutcome: TypeAlias = Literal["DECIDED", "INCONCLUSIVE", "INDICATIVE"]
"""Decided by its rule; not to be decided; or shown as a direction and no more (§12.5.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationGate:
    """Whether a plan can support a latency verification under rule set "wilson" (§12.5.3)."""

    expected_trials: int
    """⌊planned · rate⌋: the successful trials to expect, not a lower bound on them."""
    emission_minimum: int
    existence_minimum: int
    planned_trials_needed: int | Undefined
    """The smallest plan that would be admitted at this success rate."""

    @property
    def minimum_trials(self) -> int:
        """The stricter of the two minimums."""
        return max(self.emission_minimum, self.existence_minimum)

    @property
    def feasible(self) -> bool:
        """Whether the expected successes reach it; if not, verification is refused."""
        return self.expected_trials >= self.minimum_trials


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecedencePlan:
    """Whether a baseline is expected to judge a planned test; it decides nothing."""

    baseline_trials: int
    planned_trials: int
    success_rate: float
    percentile: float
    alpha: float
    expected_trials: int
    """⌊planned · rate⌋, the reference data's `expected_test_samples`."""
    planning_rank: int | None
    """The precedence rank at the expected count, or None under a warning."""
    minimum_baseline_trials: int | Undefined
    """The smallest baseline with a rank, and no fewer latencies than are expected of the test."""

    @property
    def warning(self) -> bool:
        """Whether no rank exists at the expected count."""
        return self.planning_rank is None


def planned_trials_needed(minimum: Count, success_rate: float) -> int | Undefined:
    """The smallest plan with ⌊planned · rate⌋ ≥ minimum, in decimals.

    Parameters
    ----------
    minimum : int
        Successful trials wanted, at least 0.
    success_rate : float
        The baseline's share of trials that passed every criterion, 0 to 1.

    Examples
    --------
    >>> planned_trials_needed(100, 0.8)
    125
    """
    needed = require_count("minimum", minimum)
    rate = as_written(require_rate("success_rate", success_rate))
    if needed and not rate:
        return Undefined("no plan expects a success at a success rate of 0")
    return -int(-needed // rate) if needed else 0


def verification_gate(
    planned_trials: Count, success_rate: float, percentile: float, *, confidence: float = 0.95
) -> VerificationGate:
    """Whether a planned verification meets both minimums of rule set "wilson" (§12.5.3).

    Feasible iff ⌊planned · rate⌋ ≥ max(emission minimum, ⌈log alpha / log p⌉).

    Parameters
    ----------
    planned_trials : int
        At least 1.
    success_rate : float
        The baseline's, 0 to 1.
    percentile : {0.5, 0.9, 0.95, 0.99}
        Check each asserted percentile; one that is infeasible refuses the run.
    confidence : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> gate = verification_gate(200, 0.8, 0.99)
    >>> gate.expected_trials, gate.minimum_trials, gate.feasible
    (160, 299, False)
    """
    planned = require_count("planned_trials", planned_trials, minimum=1)
    rate = require_rate("success_rate", success_rate)
    emission = emission_minimum(percentile)
    existence = existence_minimum(percentile, confidence=confidence)
    return VerificationGate(
        expected_trials=floor_product(rate, planned),
        emission_minimum=emission,
        existence_minimum=existence,
        planned_trials_needed=planned_trials_needed(max(emission, existence), rate),
    )


def precedence_planning(
    baseline_trials: Count,
    planned_trials: Count,
    success_rate: float,
    percentile: float,
    *,
    alpha: float = 0.05,
) -> PrecedencePlan:
    """Whether a baseline has a precedence rank for the successes that a plan expects.

    Parameters
    ----------
    baseline_trials : int
        Latencies of the baseline, at least 0.
    planned_trials : int
        Trials of the planned test, at least 1.
    success_rate : float
        The baseline's, 0 to 1.
    percentile, alpha : float
        Strictly between 0 and 1.

    Examples
    --------
    >>> plan = precedence_planning(400, 200, 0.8, 0.99)
    >>> plan.expected_trials, plan.warning, plan.minimum_baseline_trials
    (160, True, 554)
    """
    planned = require_count("planned_trials", planned_trials, minimum=1)
    rate = require_rate("success_rate", success_rate)
    expected = floor_product(rate, planned)
    design = precedence_existence(baseline_trials, expected, percentile, alpha=alpha)
    return PrecedencePlan(
        baseline_trials=design.baseline_trials,
        planned_trials=planned,
        success_rate=rate,
        percentile=design.percentile,
        alpha=design.alpha,
        expected_trials=expected,
        planning_rank=design.rank,
        minimum_baseline_trials=_smallest_baseline(expected, design.percentile, design.alpha),
    )


def _smallest_baseline(nt: int, percentile: float, alpha: float) -> int | Undefined:
    """The breach probability of the baseline's maximum falls as the baseline grows, so halve."""
    if nt == 0:
        return Undefined("no successful trial is expected, so there is nothing to judge")
    below = ceil_product(percentile, nt) - 1

    def has_rank(nb: int) -> bool:
        return reaches(nb, below, nb, nt, alpha)

    low, high = nt - 1, nt
    while not has_rank(high):
        low, high = high, 2 * high
    return find_first(low, high, has_rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class NondegeneracyDecision:
    """What the number of latencies that a run really gave allows."""

    test_trials: int
    intent: Intent
    threshold_source: ThresholdSource
    minimum_trials: int

    @property
    def applies(self) -> bool:
        """Whether the gate governs: an explicit limit counts latencies and needs no percentile."""
        return self.threshold_source == "baseline-derived"

    @property
    def degenerate(self) -> bool:
        """Whether the empirical percentile is an extreme of the sample, by the emission minimum."""
        return self.test_trials < self.minimum_trials

    @property
    def outcome(self) -> GateOutcome:
        """What becomes of the assertion, enforced or advisory alike."""
        if not (self.applies and self.degenerate):
            return "DECIDED"
        return "INCONCLUSIVE" if self.intent == "VERIFICATION" else "INDICATIVE"


def existence_minimum(percentile: float, *, confidence: float = 0.95) -> int:
    """The fewest latencies that bound a percentile from above: the smallest n with pⁿ ≤ alpha.

    With fewer, all of them lie below the true percentile with probability above alpha.

    Parameters
    ----------
    percentile, confidence : float
        Strictly between 0 and 1; alpha is 1 − confidence in decimals.

    References
    ----------
    Wilks (1941); companion §12.5.2.1.

    Examples
    --------
    >>> [existence_minimum(p) for p in (0.5, 0.9, 0.95, 0.99, 0.999)]
    [5, 29, 59, 299, 2995]
    """
    p = check_percentile(percentile)
    level = complement(require_open_rate("confidence", confidence))
    return minimum_trials(p, alpha=level, rule="exact")


def nondegeneracy_decision(
    test_trials: Count,
    percentile: float,
    *,
    intent: Intent = "VERIFICATION",
    threshold_source: ThresholdSource = "baseline-derived",
) -> NondegeneracyDecision:
    """What becomes of a latency assertion after a run with this many successful trials.

    Below the emission minimum a baseline-derived assertion is INCONCLUSIVE under verification and
    INDICATIVE under smoke (§12.5.4); an explicit limit is decided by its own rule.

    Parameters
    ----------
    test_trials : int
        Successful trials of the run, at least 0.
    percentile : {0.5, 0.9, 0.95, 0.99}
        The level that is asserted.
    intent : {"VERIFICATION", "SMOKE"}
        What the run is for.
    threshold_source : {"baseline-derived", "explicit"}
        Where the threshold comes from.

    Examples
    --------
    >>> nondegeneracy_decision(99, 0.99).outcome
    'INCONCLUSIVE'
    """
    minimum = emission_minimum(percentile)
    return NondegeneracyDecision(
        test_trials=require_count("test_trials", test_trials),
        intent=require_choice("intent", intent, INTENTS),
        threshold_source=require_choice("threshold_source", threshold_source, _SOURCES),
        minimum_trials=minimum,
    )


# --- An explicit limit, such as p95 at most 500 ms ------------------------------------------------
#
# An explicit latency limit, "p95 at most 500 ms", decided as a compliance claim (§12.3).
#
# That the p-th percentile is at most tau says that at least a share p of the latencies is within
# tau, so the exact compliance rule decides: H0: F(tau) ≤ p, with Y the number of latencies within.
# Comparing the observed percentile with the limit, as rule set "wilson" does (§12.3.1), asks for no
# evidence at all; it stands on the result as a labelled figure.

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
    asked = partial(
        LatencyLimitDecision,
        percentile=p,
        limit=tau,
        alpha=level,
        intent=purpose,
        planned_trials=planned,
    )
    if purpose == "VERIFICATION" and too_few:
        return asked(refusal=Refusal.COMPLIANCE_INFEASIBLE)
    n = len(ordered)
    within = bisect_right(ordered, tau)
    y_min = exact_cutoff(p, n, level) if n else None
    return asked(
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
