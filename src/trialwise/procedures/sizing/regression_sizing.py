"""Plans against what was measured: trials that see a drop of the rate, and latency percentiles.

For a rate both rule sets stand side by side, each with the false alarms it really raises once the
baseline's own sampling error is counted; where the baseline is too small, what it can still see and
how large it would have to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple

from trialwise import validation
from trialwise.decimals import as_written, floor_product
from trialwise.errors import InvalidArgument
from trialwise.procedures.sizing import sizing_base
from trialwise.procedures.sizing.comparison_sizing import UnpairedSize, unpaired_size
from trialwise.stats import compliance_cutoffs, latency_baseline, latency_planning
from trialwise.stats.binomial import binomial_cdf, normal_cdf
from trialwise.stats.compliance_cutoffs import implied_confidence_of_threshold
from trialwise.stats.latency_percentiles import SUPPORTED_PERCENTILES, emission_minimum
from trialwise.stats.latency_planning import latency_limit_cutoff
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.result_types import Refusal, Undefined
from trialwise.stats.toolbox import risk_sizing
from trialwise.stats.toolbox.detectable_drops import find_smallest_drop
from trialwise.stats.unconditional import boschloo

#: Every size up to the baseline's is looked at, so that one this large takes seconds.
LARGEST_BASELINE = 100_000
#: Sizes that people ask about, shown as far as they make sense for the baseline.
USUAL_TRIALS = (50, 100, 200, 500, 1000)


@dataclass(frozen=True, slots=True)
class RegressionQuestion(sizing_base.PowerQuestion):
    """How many trials see a drop from a measured baseline?

    Args:
        baseline: Its successes and its trials, such as (951, 1000).
        drop: The drop to see.
        trials: Says what this many trials would do.
        threshold: Says which false alarms a threshold of your choice implies (companion §6.3).
        confidence: 1 − alpha.
        power: 1 − beta.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    baseline: tuple[int, int]
    _: KW_ONLY
    drop: float = 0.05
    trials: int | None = None
    threshold: float | None = None

    open_rates: ClassVar[str] = "confidence power threshold drop"
    counts: ClassVar[str] = "trials"
    written: ClassVar[Mapping[str, str]] = {"baseline": "baseline_successes baseline_trials"}

    def __post_init__(self) -> None:
        names = ("baseline_successes", "baseline_trials")
        validation.require_successes(*self.baseline, names=names)
        is_small = self.baseline_trials <= LARGEST_BASELINE
        self.require("baseline_trials", is_small, f"be at most {LARGEST_BASELINE}")
        sizing_base.PowerQuestion.__post_init__(self)
        # A baseline without a success is refused by the plan, which can say why.
        is_possible = not self.baseline_successes or self._after_drop >= 0
        self.require("drop", is_possible, f"be at most the baseline's rate ({self.good_rate:g})")

    @property
    def baseline_successes(self) -> int:
        """How many of the baseline's trials succeeded."""
        return self.baseline[0]

    @property
    def baseline_trials(self) -> int:
        """How many trials the baseline has."""
        return self.baseline[1]

    @property
    def good_rate(self) -> float:
        """The share of the baseline's trials that succeeded."""
        return self.baseline_successes / self.baseline_trials

    @property
    def _after_drop(self) -> float:
        # In decimals, as the drop was written.
        return float(Fraction(*self.baseline) - as_written(self.drop))

    @property
    def bad_rate(self) -> float:
        """The rate that is to be seen as a degradation; below 0 there is none."""
        return max(0.0, self._after_drop)


class RegressionRow(NamedTuple):
    """Both rule sets at one number of trials."""

    trials: int
    wilson: RegressionCutoff
    exact: RegressionCutoff
    wilson_power: float | None
    """P(FAIL) after the drop, given this baseline."""
    exact_power: float | None


class RegressionPoint(NamedTuple):
    """P(FAIL) at one true rate, given this baseline."""

    rate: float
    wilson: float | None
    exact: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionPlan(sizing_base.SizingPlan):
    """The sizes of a regression run in both rule sets."""

    form = "regression"

    question: RegressionQuestion
    exact: risk_sizing.Sizing
    floor: risk_sizing.Sizing
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


class ChosenThreshold(NamedTuple):
    """What a threshold that somebody chose amounts to at one number of trials."""

    trials: int
    cutoff: int
    """The fewest successes whose rate reaches the threshold."""
    false_alarm: float
    """P(FAIL) if the true rate is the baseline's, exactly."""
    # The companion prints this one; it takes the baseline's rate for the true one.
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
        return self.false_alarm <= compliance_cutoffs.SOUND_ALPHA


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
        # The p-value of the highest count that FAILs: at any level from there on the exact rule
        # FAILs it.
        exact_alpha=boschloo(*baseline, below, trials).p_value,
        power=binomial_cdf(below, trials, lower_rate),
    )


def plan_regression(question: RegressionQuestion) -> RegressionPlan:
    """Sizes, cutoffs and true false alarms against a baseline that exists.

    >>> question = RegressionQuestion((951, 1000), drop=0.03)
    >>> plan = plan_regression(question)
    >>> plan.exact.trials, plan.floor.trials
    (664, 459)
    """
    rates, alpha, power = (question.good_rate, question.bad_rate), question.alpha, question.power
    exact = risk_sizing.exact_required_trials(
        *question.baseline, question.bad_rate, alpha=alpha, power=power
    )
    floor = risk_sizing.floor_required_trials(*rates, confidence=question.confidence, power=power)
    # How large both would have to be helps only whoever can measure a larger baseline. Two samples
    # of a rate of 100 % never differ, so that no size is right for it.
    equal_sizes = None
    if exact.refusal is Refusal.BASELINE_TOO_SMALL and question.good_rate < 1:
        equal_sizes = unpaired_size(*rates, alpha=alpha, power=power)
    # A test larger than its baseline is refused, so that such rows would say nothing.
    usual = {n for n in USUAL_TRIALS if n <= question.baseline_trials}
    asked = {n for n in (question.trials, exact.trials, floor.trials) if n is not None}
    sizes = sorted(usual | asked | {question.baseline_trials})
    rows = tuple(_row(question, n) for n in sizes)
    wanted = question.trials or exact.trials
    drawn = next((row for row in rows if row.trials == wanted), None)
    weighed = [row.trials for row in rows] if question.trials is None else [question.trials]
    # From two drops below the baseline to one above: there the curve shows the power and the false
    # alarms.
    good, drop = Fraction(*question.baseline), as_written(question.drop)
    curve = sizing_base.even_rates(good - 2 * drop, good + drop)
    return RegressionPlan(
        question=question,
        exact=exact,
        floor=floor,
        detectable_drop=_detectable_drop(question),
        equal_sizes=equal_sizes,
        rows=rows,
        drawn=drawn,
        curve=tuple(
            RegressionPoint(rate, drawn.wilson.power(rate), drawn.exact.power(rate))
            for rate in curve
            if drawn
        ),
        chosen=tuple(
            weigh_threshold(question.baseline, n, question.threshold, question.bad_rate)
            for n in weighed
            if question.threshold is not None
        ),
    )


def _row(question: RegressionQuestion, trials: int) -> RegressionRow:
    wilson, exact = (
        regression_cutoff(*question.baseline, trials, alpha=question.alpha, rule=rule)
        for rule in ("wilson", "exact")
    )
    return RegressionRow(
        trials=trials,
        wilson=wilson,
        exact=exact,
        wilson_power=wilson.power(question.bad_rate),
        exact_power=exact.power(question.bad_rate),
    )


def _detectable_drop(question: RegressionQuestion) -> float | Undefined:
    """Find the smallest drop that as many trials as the baseline has can detect."""
    # The baseline is measured already and fixes the cutoff. Only the rate after the drop varies.
    design = _row(question, question.baseline_trials).exact

    def is_seen(rate: float) -> bool:
        return (design.power(rate) or 0.0) >= question.power

    drop = find_smallest_drop(question.good_rate, is_seen)
    return Undefined("not even a drop to a rate of 0 would be seen") if drop is None else drop


# --- Latency: how many successful trials a claim takes, and by which latencies it is decided ------
#
# Only counts are needed: every rule here is free of the latencies' distribution.


LARGEST_LATENCIES = 1_000_000


@dataclass(frozen=True, slots=True)
class LatencyQuestion(sizing_base.SizingQuestion):
    """What does a claim about latency percentiles take?

    Args:
        percentiles: Of 0.5, 0.9, 0.95 and 0.99.
        baseline: How many latencies the baseline holds: one for each of its successful trials.
        trials: How many trials are planned, successful or not.
        limited: Whether an explicit limit is to be shown.
        limit_s: That limit in seconds, if it is known; the answer does not depend on it.
        success_rate: The share of trials that will succeed; only those have a latency.
        confidence: 1 − alpha.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    percentiles: Sequence[float] = (0.95,)
    _: KW_ONLY
    baseline: int | None = None
    trials: int | None = None
    limited: bool = False
    limit_s: float | None = None
    success_rate: float = 1.0

    counts: ClassVar[str] = "baseline trials"
    written: ClassVar[Mapping[str, str]] = {"baseline": "baseline_trials"}

    def __post_init__(self) -> None:
        sizing_base.SizingQuestion.__post_init__(self)
        for level in self.percentiles:
            if level not in SUPPORTED_PERCENTILES:
                allowed = f"be one of {', '.join(f'{p:g}' for p in SUPPORTED_PERCENTILES)}"
                raise InvalidArgument("percentiles", level, allowed)
        is_small = (self.baseline or 0) <= LARGEST_LATENCIES
        self.require("baseline", is_small, f"be at most {LARGEST_LATENCIES}")
        validation.require_given(self, "limit_s", validation.require_positive)
        validation.require_rate("success_rate", self.success_rate)
        self.require("success_rate", self.success_rate > 0, "lie above 0")
        # The plan is the same for every limit: only the counts within it decide.
        object.__setattr__(self, "limited", self.limited or self.limit_s is not None)

    @property
    def expected_trials(self) -> int | None:
        """The successful trials to expect of the plan."""
        return None if self.trials is None else floor_product(self.success_rate, self.trials)


class BaselineRank(NamedTuple):
    """The order-statistic bound of rule set "wilson", by its rank in the baseline."""

    rank: int | None
    """The baseline latency that bounds the percentile; None where the baseline is too small."""
    coverage: float | None
    false_alarm: float | Undefined | None
    """P(a test exceeds it though nothing changed); None where no test is planned."""


class LatencyRow(NamedTuple):
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
    precedence_plan: latency_planning.PrecedencePlan | None = None
    exceedance: latency_baseline.ExceedanceCutoff | None = None
    limit: compliance_cutoffs.ComplianceCutoff | None = None
    """The count within an explicit limit, where trials were given."""


class LatencyPoint(NamedTuple):
    """P(some latency lies above the true percentile), for each percentile asked about."""

    trials: int
    bounded: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyPlan(sizing_base.SizingPlan):
    """What each percentile takes."""

    form = "latency"

    question: LatencyQuestion
    rows: tuple[LatencyRow, ...]
    curve: tuple[LatencyPoint, ...]


def plan_latency(question: LatencyQuestion) -> LatencyPlan:
    """Minimums, ranks and cutoffs of latency claims, from counts alone.

    >>> question = LatencyQuestion(baseline=935, trials=192)
    >>> row = plan_latency(question).rows[0]
    >>> row.existence_minimum, row.baseline.rank, row.precedence.rank
    (59, 900, 911)
    """
    rows = tuple(_plan_percentile(question, level) for level in question.percentiles)
    # As far as twice the hardest minimum, so that every curve is seen to rise.
    longest = max(2 * max(row.existence_minimum for row in rows), question.expected_trials or 0)
    steps = sizing_base.CURVE_POINTS - 1
    sizes = sorted({round(longest * i / steps) for i in range(steps + 1)})
    # All n lie at or below the p-quantile with probability p^n, whatever the distribution.
    curve = tuple(LatencyPoint(n, tuple(1 - row.percentile**n for row in rows)) for n in sizes)
    return LatencyPlan(question=question, rows=rows, curve=curve)


def _plan_percentile(question: LatencyQuestion, level: float) -> LatencyRow:
    emission = emission_minimum(level)
    existence = latency_planning.existence_minimum(level, confidence=question.confidence)
    baseline, alpha, rate = question.baseline, question.alpha, question.success_rate
    # Only successful trials have a latency, so that ranks are of those to expect.
    expected = question.expected_trials
    sizes = (baseline, expected) if baseline and expected else None
    planned = (baseline, question.trials, rate) if baseline and question.trials else None
    plan_precedence = latency_planning.precedence_planning
    return LatencyRow(
        percentile=level,
        emission_minimum=emission,
        existence_minimum=existence,
        planned_for_emission=latency_planning.planned_trials_needed(emission, rate),
        planned_for_existence=latency_planning.planned_trials_needed(existence, rate),
        baseline=_baseline_rank(question, level, baseline) if baseline else None,
        precedence=sizes and latency_baseline.precedence_existence(*sizes, level, alpha=alpha),
        precedence_plan=planned and plan_precedence(*planned, level, alpha=alpha),
        exceedance=sizes and latency_baseline.exceedance_cutoff(*sizes, level, alpha=alpha),
        limit=latency_limit_cutoff(level, expected, alpha=alpha) if expected else None,
    )


def _baseline_rank(question: LatencyQuestion, level: float, baseline: int) -> BaselineRank:
    confidence, expected = question.confidence, question.expected_trials
    # A rank depends on the counts alone: the positions themselves stand in for latencies.
    places = range(1, baseline + 1)
    bound = latency_baseline.order_statistic_bound(places, level, confidence=confidence)
    find_alarm = latency_baseline.order_statistic_false_alarm
    alarm = find_alarm(baseline, expected, level, confidence=confidence) if expected else None
    return BaselineRank(rank=bound.rank, coverage=bound.achieved_coverage, false_alarm=alarm)
