"""Plans against what was measured: trials that see a drop of the rate, and latency percentiles.

For a rate both rule sets stand side by side, each with the false alarms it really raises once the
baseline's own sampling error is counted; where the baseline is too small, what it can still see and
how large it would have to be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trialwise.decimals import as_written, floor_product
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing.comparison_sizing import UnpairedSize, unpaired_size
from trialwise.procedures.sizing.sizing_base import (
    CURVE_POINTS,
    PowerQuestion,
    SizingPlan,
    SizingQuestion,
    even_rates,
)
from trialwise.stats import latency_baseline
from trialwise.stats.binomial import binomial_cdf, normal_cdf
from trialwise.stats.compliance_cutoffs import (
    SOUND_ALPHA,
    ComplianceCutoff,
    implied_confidence_of_threshold,
)
from trialwise.stats.latency_limits import latency_limit_cutoff
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum
from trialwise.stats.latency_planning import (
    PrecedencePlan,
    existence_minimum,
    planned_trials_needed,
    precedence_planning,
)
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.result_types import Refusal, Undefined
from trialwise.stats.toolbox.risk_sizing import (
    Sizing,
    exact_required_trials,
    floor_required_trials,
)
from trialwise.stats.unconditional import boschloo
from trialwise.validation import (
    require_count,
    require_given,
    require_open_rate,
    require_positive,
    require_rate,
    require_successes,
)

#: Every size up to the baseline's is looked at, so that one this large takes seconds.
LARGEST_BASELINE = 100_000
#: Sizes that people ask about, shown as far as they make sense for the baseline.
USUAL_TRIALS = (50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionQuestion(PowerQuestion):
    """How many trials show a drop from this baseline?"""

    baseline_successes: int
    baseline_trials: int
    drop: float = 0.05
    """The fall in the rate that is to be seen."""
    trials: int | None = None
    threshold: float | None = None
    """A threshold that somebody chose, whose false alarms are asked for (companion §6.3)."""

    def __post_init__(self) -> None:
        PowerQuestion.__post_init__(self)
        if self.threshold is not None:
            require_open_rate("threshold", self.threshold)
        names = ("baseline_successes", "baseline_trials")
        require_successes(self.baseline_successes, self.baseline_trials, names=names)
        if self.baseline_trials > LARGEST_BASELINE:
            allowed = f"be at most {LARGEST_BASELINE}"
            raise InvalidArgument("baseline_trials", self.baseline_trials, allowed)
        require_open_rate("drop", self.drop)
        # A baseline without a success is refused by the plan, which can say why.
        if self.baseline_successes and self.alternative_rate < 0:
            allowed = f"be at most the baseline's rate ({self.baseline_rate:g})"
            raise InvalidArgument("drop", self.drop, allowed)
        require_given(self, "trials", require_count, minimum=1)

    @property
    def baseline_rate(self) -> float:
        """The share of the baseline's trials that succeeded."""
        return self.baseline_successes / self.baseline_trials

    @property
    def alternative_rate(self) -> float:
        """The rate that is to be seen as a degradation, in decimals."""
        from fractions import Fraction

        rate = Fraction(self.baseline_successes, self.baseline_trials)
        return float(rate - as_written(self.drop))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionRow:
    """Both rule sets at one number of trials."""

    trials: int
    wilson: RegressionCutoff
    exact: RegressionCutoff
    wilson_power: float | None
    """P(FAIL) after the drop, given this baseline."""
    exact_power: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPoint:
    """P(FAIL) at one true rate, given this baseline."""

    rate: float
    wilson: float | None
    exact: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPlan(SizingPlan):
    """The sizes of a regression run in both rule sets."""

    form = "regression"

    question: RegressionQuestion
    exact: Sizing
    floor: Sizing
    """The companion's moving Wilson floor, under the normal approximation."""
    detectable_drop: float | Undefined
    """The smallest drop the exact rule sees with its power, with as many trials as the baseline."""
    equal_sizes: UnpairedSize | None
    """How large baseline and test would both have to be, where the baseline is too small."""
    rows: tuple[RegressionRow, ...]
    drawn: RegressionRow | None
    """The row whose P(FAIL) the curve shows."""
    curve: tuple[RegressionPoint, ...]
    chosen: tuple[ChosenThreshold, ...] = ()
    """What the threshold asked about amounts to, at the trials asked about or of each row."""

    @property
    def refusal(self) -> Refusal | None:
        """Why there is no plan under the exact rule, or why the trials asked about are refused."""
        # Somebody who asks about a number of trials is told about that number.
        asked = self.question.trials
        if asked is None or self.exact.refusal is Refusal.ZERO_BASELINE:
            return self.exact.refusal
        return next(row.exact.refusal for row in self.rows if row.trials == asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenThreshold:
    """What a threshold that somebody chose amounts to at one number of trials."""

    trials: int
    cutoff: int
    """The fewest successes whose rate reaches the threshold."""
    false_alarm: float
    """P(FAIL) if the true rate is the baseline's, exactly."""
    normal_alpha: float | None
    """1 − Φ((p̂ − p*) / √(p̂(1−p̂)/n)), the implied alpha of companion §6.3."""
    wilson_alpha: float | None
    """The level at which the wilson rule has this threshold; None where no level has it."""
    exact_alpha: float
    """The smallest level at which the exact rule would FAIL whatever this threshold FAILs."""
    power: float
    """P(FAIL) after the drop."""

    @property
    def is_sound(self) -> bool:
        """Whether it FAILs in at most 20 % of runs if nothing has changed."""
        return self.false_alarm <= SOUND_ALPHA


def weigh_threshold(
    baseline: tuple[int, int], trials: int, threshold: float, lower_rate: float
) -> ChosenThreshold:
    """Say what a threshold that somebody chose amounts to (companion §6.3).

    >>> chosen = weigh_threshold((951, 1000), 100, 0.951, 0.90)
    >>> chosen.cutoff, chosen.normal_alpha
    (96, 0.5)

    Args:
        baseline: Its successes and its trials.
        trials: Trials of the test.
        threshold: PASS needs an observed rate of at least this.
        lower_rate: The rate after the drop that is to be found.
    """
    passed, size = baseline
    rate = passed / size
    # In rationals: 0.07 × 100 is 7.000000000000001 in floats, which would ask for 8.
    cutoff = math.ceil(as_written(threshold) * trials)
    spread = math.sqrt(rate * (1 - rate) / trials)
    # The test FAILs at or below this many successes.
    below = cutoff - 1
    return ChosenThreshold(
        trials=trials,
        cutoff=cutoff,
        false_alarm=binomial_cdf(below, trials, rate),
        normal_alpha=normal_cdf((threshold - rate) / spread) if spread else None,
        wilson_alpha=implied_confidence_of_threshold(*baseline, trials, threshold).alpha,
        exact_alpha=boschloo(*baseline, below, trials).p_value,
        power=binomial_cdf(below, trials, lower_rate),
    )


def plan_regression(question: RegressionQuestion) -> RegressionPlan:
    """Sizes, cutoffs and true false alarms against a baseline that exists.

    >>> question = RegressionQuestion(baseline_successes=951, baseline_trials=1000, drop=0.03)
    >>> plan = plan_regression(question)
    >>> plan.exact.trials, plan.floor.trials
    (664, 459)
    """
    baseline = question.baseline_successes, question.baseline_trials
    # Below 0 there is no rate: without a success the plan is refused anyway.
    target = max(0.0, question.alternative_rate)
    exact = exact_required_trials(*baseline, target, alpha=question.alpha, power=question.power)
    floor = floor_required_trials(
        question.baseline_rate, target, confidence=question.confidence, power=question.power
    )
    rows = tuple(_row(question, n) for n in _sizes(question, exact, floor))
    wanted = question.trials or exact.trials
    drawn = next((row for row in rows if row.trials == wanted), None)
    # How large both would have to be helps only whoever can measure a larger baseline.
    short = exact.refusal is Refusal.BASELINE_TOO_SMALL
    return RegressionPlan(
        question=question,
        exact=exact,
        floor=floor,
        detectable_drop=_detectable_drop(question),
        equal_sizes=_equal_sizes(question) if short else None,
        rows=rows,
        drawn=drawn,
        curve=tuple(_curve(question, drawn)) if drawn else (),
        chosen=_weigh_chosen(question, rows),
    )


def _weigh_chosen(
    question: RegressionQuestion, rows: tuple[RegressionRow, ...]
) -> tuple[ChosenThreshold, ...]:
    if question.threshold is None:
        return ()
    baseline = question.baseline_successes, question.baseline_trials
    lower = max(0.0, question.alternative_rate)
    sizes = [one.trials for one in rows] if question.trials is None else [question.trials]
    return tuple(weigh_threshold(baseline, n, question.threshold, lower) for n in sizes)


def _sizes(question: RegressionQuestion, exact: Sizing, floor: Sizing) -> list[int]:
    # A test larger than its baseline is refused, so that such rows would say nothing.
    usual = {n for n in USUAL_TRIALS if n <= question.baseline_trials}
    asked = {n for n in (question.trials, exact.trials, floor.trials) if n is not None}
    return sorted(usual | asked | {question.baseline_trials})


def _row(question: RegressionQuestion, trials: int) -> RegressionRow:
    baseline = question.baseline_successes, question.baseline_trials
    wilson = regression_cutoff(*baseline, trials, alpha=question.alpha, rule="wilson")
    exact = regression_cutoff(*baseline, trials, alpha=question.alpha, rule="exact")
    rate = max(0.0, question.alternative_rate)
    return RegressionRow(
        trials=trials,
        wilson=wilson,
        exact=exact,
        wilson_power=wilson.power(rate),
        exact_power=exact.power(rate),
    )


def _detectable_drop(question: RegressionQuestion) -> float | Undefined:
    """Find the smallest drop that as many trials as the baseline has can detect."""
    nothing = Undefined("not even a drop to a rate of 0 would be seen")
    if not question.baseline_successes:
        return nothing
    design = _row(question, question.baseline_trials).exact
    low, high = 0.0, question.baseline_rate
    if (design.power(0.0) or 0.0) < question.power:
        return nothing
    # P(FAIL) grows with the drop, so that halving finds where the power is reached.
    while high - low > 1e-12:
        middle = (low + high) / 2
        seen = (design.power(question.baseline_rate - middle) or 0.0) >= question.power
        low, high = (low, middle) if seen else (middle, high)
    return high


def _equal_sizes(question: RegressionQuestion) -> UnpairedSize | None:
    # Two samples of a rate of 100 % never differ, so that no size is right for it.
    if question.baseline_successes == question.baseline_trials:
        return None
    return unpaired_size(
        question.baseline_rate,
        question.alternative_rate,
        alpha=question.alpha,
        power=question.power,
    )


def _curve(question: RegressionQuestion, row: RegressionRow) -> Iterator[RegressionPoint]:
    from fractions import Fraction

    good = Fraction(question.baseline_successes, question.baseline_trials)
    drop = as_written(question.drop)
    for rate in even_rates(good - 2 * drop, good + drop, CURVE_POINTS):
        yield RegressionPoint(rate=rate, wilson=row.wilson.power(rate), exact=row.exact.power(rate))


# --- Latency: how many successful trials a claim takes, and by which latencies it is decided ------
#
# Only counts are needed: every rule here is free of the latencies' distribution.


LARGEST_LATENCIES = 1_000_000


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
        if (self.baseline_trials or 0) > LARGEST_LATENCIES:
            allowed = f"be at most {LARGEST_LATENCIES}"
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
    rows = tuple(_plan_percentile(question, level) for level in question.percentiles)
    return LatencyPlan(question=question, rows=rows, curve=tuple(_bound_by_largest(question, rows)))


def _plan_percentile(question: LatencyQuestion, level: float) -> LatencyRow:
    emission = emission_minimum(level)
    existence = existence_minimum(level, confidence=question.confidence)
    baseline, planned = question.baseline_trials, question.trials
    # Only successful trials have a latency, so that ranks are of those to expect.
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


def _bound_by_largest(
    question: LatencyQuestion, rows: tuple[LatencyRow, ...]
) -> Iterator[LatencyPoint]:
    # As far as twice the hardest minimum, so that every curve is seen to rise.
    longest = max(2 * max(row.existence_minimum for row in rows), question.expected_trials or 0)
    sizes = {round(longest * i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS)}
    for n in sorted(sizes):
        # All n lie at or below the p-quantile with probability p^n, whatever the distribution.
        yield LatencyPoint(trials=n, bounded=tuple(1 - row.percentile**n for row in rows))
