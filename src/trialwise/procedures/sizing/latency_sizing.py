"""The plan of a latency claim: how many successful trials each kind of claim takes, and by which
latencies it would be decided.

Only counts are needed: every rule here is free of the latencies' distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trialwise.decimals import floor_product
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.sizing_base import CURVE_POINTS, SizingPlan, SizingQuestion
from trialwise.stats import latency_baseline
from trialwise.stats.compliance_cutoffs import ComplianceCutoff
from trialwise.stats.latency_limits import latency_limit_cutoff
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum
from trialwise.stats.latency_planning import (
    PrecedencePlan,
    existence_minimum,
    planned_trials_needed,
    precedence_planning,
)
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count, require_given, require_positive, require_rate

LARGEST_BASELINE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyQuestion(SizingQuestion):
    """What do these percentiles take, against a baseline, an explicit limit, or neither?"""

    percentiles: tuple[float, ...] = (0.95,)
    baseline_trials: int | None = None
    """Latencies of the baseline: its successful trials."""
    trials: int | None = None
    """Trials planned, successful or not."""
    limited: bool = False
    """Whether an explicit limit is to be shown."""
    limit_s: float | None = None
    """That limit, where it is known already; the plan does not depend on it."""
    success_rate: float = 1.0
    """The share of trials expected to succeed; only those have a latency."""

    def __post_init__(self) -> None:
        SizingQuestion.__post_init__(self)
        for level in self.percentiles:
            if level not in SUPPORTED_PERCENTILES:
                allowed = f"be one of {', '.join(f'{p:g}' for p in SUPPORTED_PERCENTILES)}"
                raise InvalidArgument("percentiles", level, allowed)
        require_given(self, "baseline_trials trials", require_count, minimum=1)
        if (self.baseline_trials or 0) > LARGEST_BASELINE:
            allowed = f"be at most {LARGEST_BASELINE}"
            raise InvalidArgument("baseline_trials", self.baseline_trials, allowed)
        require_given(self, "limit_s", require_positive)
        if not require_rate("success_rate", self.success_rate):
            raise InvalidArgument("success_rate", self.success_rate, "lie above 0")

    @property
    def expected_trials(self) -> int | None:
        """The successful trials to expect of the plan."""
        return None if self.trials is None else floor_product(self.success_rate, self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRank:
    """The order-statistic bound of rule set "wilson", by its rank in the baseline."""

    rank: int | None
    """The baseline latency that bounds the percentile; None where the baseline is too small."""
    coverage: float | None
    false_alarm: float | Undefined | None
    """P(a test exceeds it though nothing changed); None where no test is planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """One percentile: its minimums, and how it would be decided."""

    percentile: float
    emission_minimum: int
    """Successful trials from which the percentile is more than an extreme of the run."""
    existence_minimum: int
    """Successful trials from which an observed latency can bound the percentile."""
    planned_for_emission: int | Undefined
    planned_for_existence: int | Undefined
    baseline: BaselineRank | None = None
    """Where a baseline was given."""
    precedence: latency_baseline.PrecedenceExistence | None = None
    """The exact rank for the planned test, where both were given."""
    precedence_plan: PrecedencePlan | None = None
    exceedance: latency_baseline.ExceedanceCutoff | None = None
    limit: ComplianceCutoff | None = None
    """The count within an explicit limit, where trials were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPoint:
    """P(some latency lies above the true percentile), for each percentile asked about."""

    trials: int
    bounded: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPlan(SizingPlan):
    """What each percentile takes."""

    form = "latency"

    question: LatencyQuestion
    rows: tuple[LatencyRow, ...]
    curve: tuple[LatencyPoint, ...]


def plan_latency(question: LatencyQuestion) -> LatencyPlan:
    """Minimums, ranks and cutoffs of latency claims, from counts alone.

    >>> question = LatencyQuestion(percentiles=(0.95,), baseline_trials=935, trials=192)
    >>> row = plan_latency(question).rows[0]
    >>> row.existence_minimum, row.baseline.rank, row.precedence.rank
    (59, 900, 911)
    """
    rows = tuple(_row(question, level) for level in question.percentiles)
    return LatencyPlan(question=question, rows=rows, curve=tuple(_curve(question, rows)))


def _row(question: LatencyQuestion, level: float) -> LatencyRow:
    emission = emission_minimum(level)
    existence = existence_minimum(level, confidence=question.confidence)
    baseline, planned = question.baseline_trials, question.trials
    expected, alpha = question.expected_trials, question.alpha
    row = LatencyRow(
        percentile=level,
        emission_minimum=emission,
        existence_minimum=existence,
        planned_for_emission=planned_trials_needed(emission, question.success_rate),
        planned_for_existence=planned_trials_needed(existence, question.success_rate),
        limit=latency_limit_cutoff(level, expected, alpha=alpha) if expected else None,
    )
    if baseline is None:
        return row
    row = replace(row, baseline=_baseline_rank(question, level, baseline))
    if planned is not None:
        plan = precedence_planning(baseline, planned, question.success_rate, level, alpha=alpha)
        row = replace(row, precedence_plan=plan)
    if not expected:
        return row
    return replace(
        row,
        precedence=latency_baseline.precedence_existence(baseline, expected, level, alpha=alpha),
        exceedance=latency_baseline.exceedance_cutoff(baseline, expected, level, alpha=alpha),
    )


def _baseline_rank(question: LatencyQuestion, level: float, baseline: int) -> BaselineRank:
    # A rank depends on the counts alone: the positions themselves stand in for latencies.
    bound = latency_baseline.order_statistic_bound(
        range(1, baseline + 1), level, confidence=question.confidence
    )
    expected = question.expected_trials
    return BaselineRank(
        rank=bound.rank,
        coverage=bound.achieved_coverage,
        false_alarm=(
            latency_baseline.order_statistic_false_alarm(
                baseline, expected, level, confidence=question.confidence
            )
            if expected
            else None
        ),
    )


def _curve(question: LatencyQuestion, rows: tuple[LatencyRow, ...]) -> Iterator[LatencyPoint]:
    longest = max(2 * max(row.existence_minimum for row in rows), question.expected_trials or 0)
    sizes = {round(longest * i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS)}
    for n in sorted(sizes):
        yield LatencyPoint(trials=n, bounded=tuple(1 - row.percentile**n for row in rows))
