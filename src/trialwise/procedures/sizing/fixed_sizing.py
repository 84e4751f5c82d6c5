"""Plans with a fixed number of trials: showing a required rate, and estimating a rate.

The normal approximation that books give stands beside the exact size, with what it really does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, NamedTuple

from trialwise.decimals import as_written, complement
from trialwise.procedures.sizing import sizing_base
from trialwise.procedures.sizing.comparison_sizing import find_size
from trialwise.stats import compliance_cutoffs, rate_intervals
from trialwise.stats.binomial import binomial_tail, likely_counts, upper_z
from trialwise.stats.compliance_cutoffs import compliance_cutoff
from trialwise.stats.result_types import Interval, Refusal, Rule, Undefined
from trialwise.stats.sequential.bound import fixed_size
from trialwise.stats.toolbox import rate_sizing

#: The powers of the companion's table (§5.4).
# With 95 % both errors are alike, which is what a contract between two parties tends to ask for.
USUAL_POWERS = (0.80, 0.90, 0.95)
#: A larger exact number is not searched for, as the search takes seconds.
LARGEST_EXACT = 30_000


class LossSize(NamedTuple):
    """The trials that find a loss with one power."""

    power: float
    normal_trials: int
    """⌈((z_α √(p0(1−p0)) + z_β √(p1(1−p1))) / δ)²⌉, as in companion §5.4 and §5.5."""
    trials: int | None = None
    """The fewest with both errors exactly within their limits; None beyond 30,000."""
    cutoff: int | None = None
    """The fewest successes that PASS with this many trials."""
    wrong_fail: float | None = None
    """P(FAIL) at the required rate."""
    wrong_pass: float | None = None
    """P(PASS) at the required rate minus the margin."""


#: An exact interval takes a tenth of a millisecond, and sizing by it takes thousands.
LARGEST_EXACT_PRECISION = 20_000
#: A margin that takes more trials than this is not one for a test suite.
LARGEST_PRECISION = 200_000

IntervalMethod = Literal["wald", "wilson", "clopper-pearson"]
_INTERVALS: dict[IntervalMethod, Callable[..., Interval]] = {
    "wald": rate_intervals.wald,
    "wilson": rate_intervals.wilson_interval,
    "clopper-pearson": rate_intervals.clopper_pearson,
}


# --- Showing that a required rate is met ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComplianceQuestion(sizing_base.PowerQuestion):
    """How many trials, fixed beforehand, show that a rate is met?

    Args:
        rate: The required rate.
        better: The true rate that you hope for, at which a PASS is wanted with the stated power; by
            default midway from `rate` to 100 %.
        margin: Also sizes a test that finds a loss of so much.
        trials: Says what this many trials would do.
        confidence: 1 − alpha.
        power: 1 − beta.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    rate: float
    _: KW_ONLY
    better: float | None = None
    margin: float | None = None
    trials: int | None = None

    open_rates: ClassVar[str] = "confidence power margin better"
    counts: ClassVar[str] = "trials"
    written: ClassVar[Mapping[str, str]] = {"rate": "required_rate", "better": "better_rate"}

    def __post_init__(self) -> None:
        required = compliance_cutoffs.check_required_rate(self.rate)
        sizing_base.PowerQuestion.__post_init__(self)
        named = f"the required rate ({required:g})"
        self.require("margin", (self.margin or 0.0) < required, f"lie below {named}")
        self.require("better", self.better_rate > required, f"lie above {named}")

    @property
    def better_rate(self) -> float:
        """The rate that is hoped for."""
        return sizing_base.expect_half(self.rate) if self.better is None else self.better


class RuleAt(NamedTuple):
    """A compliance rule at a number of trials, and its power at the better rate."""

    design: compliance_cutoffs.ComplianceCutoff
    power: float


class RuleSize(NamedTuple):
    """How many trials a rule takes."""

    rule: Rule
    minimum_trials: int
    """Fewer could not PASS without a failure."""
    first_crossing: int | None
    """The fewest trials that reach the power at all; the sawtooth may drop again."""
    required: RuleAt | None
    """From this many trials on the power is kept; None beyond 20,000."""


class CompliancePoint(NamedTuple):
    """P(PASS) of the plan's designs at one true rate."""

    rate: float
    passes: tuple[float, ...]
    """One for each of the plan's `drawn` designs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompliancePlan(sizing_base.SizingPlan):
    """The sizes of a compliance run in both rule sets."""

    form = "compliance"

    question: ComplianceQuestion
    sizes: tuple[RuleSize, ...]
    normal: rate_sizing.NormalSizing
    """The textbook size; its own idea of its power is `achieved_power`."""
    normal_exact: RuleAt
    """What the exact rule really does with that many trials."""
    given: tuple[RuleAt, ...]
    """Both rules at the trials asked about, if any were."""
    drawn: tuple[compliance_cutoffs.ComplianceCutoff, ...]
    """The designs whose P(PASS) the curve shows."""
    curve: tuple[CompliancePoint, ...]
    losses: tuple[LossSize, ...] = ()
    """Sample sizes that detect a loss of `margin`, one for each power; empty without a margin."""

    @property
    def refusal(self) -> Refusal | None:
        """Why the trials asked about are refused: no rule could PASS with them."""
        # One rule that could PASS is an answer: the page then says which, and marks its error.
        if self.given and all(at.design.refusal for at in self.given):
            return Refusal.COMPLIANCE_INFEASIBLE
        return None

    def size_of(self, rule: Rule) -> RuleSize:
        """Return the size under one rule."""
        return next(size for size in self.sizes if size.rule == rule)


def plan_compliance(question: ComplianceQuestion) -> CompliancePlan:
    """Exact and approximate sizes for a compliance run.

    >>> plan = plan_compliance(ComplianceQuestion(0.95, better=0.97))
    >>> plan.size_of("exact").required.design.trials, plan.normal.required_trials
    (694, 631)
    """
    required, better = as_written(question.rate), as_written(question.better_rate)
    # Seen from the failures the better rate is a drop, which the formula is written for.
    normal = rate_sizing.normal_sizing(
        float(1 - required), float(better - required), alpha=question.alpha, power=question.power
    )
    # Fisher's rule set decides a required rate by the exact binomial test, as the default does.
    rules: tuple[Rule, ...] = ("exact", "wilson")  # a required rate has no third
    sizes = tuple(_rule_size(question, rule) for rule in rules)
    asked = question.trials
    given = tuple(_rule_at(question, rule, asked) for rule in rules if asked)
    # Asked about a number of trials, the curve is of that number and no other.
    shown = given or tuple(size.required for size in sizes if size.required)
    drawn = tuple(at.design for at in shown if at.design.cutoff is not None)
    # As far beyond the two rates as they lie apart, so that every curve is seen to rise.
    rates = sizing_base.even_rates(2 * required - better, 2 * better - required)
    return CompliancePlan(
        question=question,
        sizes=sizes,
        normal=normal,
        normal_exact=_rule_at(question, "exact", normal.required_trials),
        given=given,
        drawn=drawn,
        curve=tuple(
            CompliancePoint(rate, tuple(one.power(rate) for one in drawn)) for rate in rates
        ),
        losses=tuple(_size_losses(question)),
    )


def _size_losses(question: ComplianceQuestion) -> Iterator[LossSize]:
    """Yield the sizes that find a loss of the margin, for the usual powers and the given one."""
    if question.margin is None:
        return
    required, alpha = question.rate, question.alpha
    lower = float(as_written(required) - as_written(question.margin))
    for power in sorted({*USUAL_POWERS, question.power}):
        # The roles of the two errors are exchanged against a plan that shows the rate: here the
        # service is presumed good, and alpha is the risk of failing it.
        formula = rate_sizing.normal_sizing(required, question.margin, alpha=alpha, power=power)
        found = LossSize(power=power, normal_trials=formula.required_trials)
        if found.normal_trials <= LARGEST_EXACT:
            size = fixed_size(required, lower, alpha=alpha, beta=complement(power))
            # `fixed_size` counts failures, since designs are told apart by them.
            cutoff = size.trials - size.most_failures
            found = found._replace(
                trials=size.trials,
                cutoff=cutoff,
                wrong_fail=1 - binomial_tail(cutoff, size.trials, required),
                wrong_pass=binomial_tail(cutoff, size.trials, lower),
            )
        yield found


def _rule_size(question: ComplianceQuestion, rule: Rule) -> RuleSize:
    rate, better, alpha = question.rate, question.better_rate, question.alpha
    sizing = rate_sizing.compliance_sizing(
        rate, alternative_rate=better, alpha=alpha, power=question.power, rule=rule
    )
    trials = sizing.required_trials
    return RuleSize(
        rule=rule,
        minimum_trials=compliance_cutoffs.minimum_trials(rate, alpha=alpha, rule=rule),
        first_crossing=sizing.first_crossing,
        required=None if trials is None else _rule_at(question, rule, trials),
    )


def _rule_at(question: ComplianceQuestion, rule: Rule, trials: int) -> RuleAt:
    design = compliance_cutoff(question.rate, trials, alpha=question.alpha, rule=rule)
    return RuleAt(design=design, power=design.power(question.better_rate))


# --- Estimating a rate ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrecisionQuestion(sizing_base.SizingQuestion):
    """How many trials estimate a rate to within a margin, or how precise is a number of them?

    Args:
        rate: The rate that you expect.
        margin: Half the width that the interval is to have on average; may be left out where
            `trials` is given.
        trials: Says what this many trials would do.
        confidence: The confidence of the interval.
        trial_usd: What a trial costs, in US dollars.
        trial_s: How long a trial takes, in seconds.
    """

    # Intervals are widest at 50 %, so that the answer holds for every other rate, too.
    rate: float = 0.5
    _: KW_ONLY
    margin: float | None = None
    trials: int | None = None

    open_rates: ClassVar[str] = "confidence rate margin"
    counts: ClassVar[str] = "trials"

    def __post_init__(self) -> None:
        sizing_base.SizingQuestion.__post_init__(self)
        if self.margin is None:
            self.require("margin", self.trials is not None, "be given, or a number of trials")
            return
        self.require("margin", self.margin < 0.5, "lie below 0.5, half the whole range")
        allowed = f"be larger: it takes {self.normal_trials} trials, over {LARGEST_PRECISION}"
        self.require("margin", self.normal_trials <= LARGEST_PRECISION, allowed)

    @property
    def normal_trials(self) -> int:
        """⌈z² p(1−p)/e²⌉, the textbook size."""
        assert self.margin is not None
        return rate_sizing.precision_trials(self.rate, self.margin, confidence=self.confidence)


class PrecisionRow(NamedTuple):
    """An interval at a number of trials: how wide on average, and how often it is right."""

    method: IntervalMethod
    trials: int
    half_width: float
    """The mean of half the width at the expected rate, exactly."""
    coverage: float
    """P(the interval holds the true rate) at the expected rate, exactly."""


class PrecisionPoint(NamedTuple):
    """The mean half-width of the Wilson interval at a number of trials."""

    trials: int
    half_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionPlan(sizing_base.SizingPlan):
    """The sizes that estimate a rate to within a margin, or the width that trials give."""

    form = "precision"

    question: PrecisionQuestion
    normal: PrecisionRow
    """The textbook size ⌈z² p(1−p)/e²⌉, and what the textbook interval really does with it."""
    wilson: PrecisionRow
    """The interval that is recommended; at the trials asked about where no margin is given."""
    clopper_pearson: PrecisionRow | Undefined
    given: tuple[PrecisionRow, ...]
    curve: tuple[PrecisionPoint, ...]
    widest: float | None = None
    """z √(0.25/n), the textbook half-width at the rate where it is widest, for the trials given."""


def plan_precision(question: PrecisionQuestion) -> PrecisionPlan:
    """Plan the trials whose intervals are narrow enough, beside the textbook size.

    >>> plan = plan_precision(PrecisionQuestion(rate=0.95, margin=0.02))
    >>> plan.normal.trials, plan.wilson.trials
    (457, 464)
    """
    exact: PrecisionRow | Undefined
    n = question.trials
    given = tuple(_precision(question, method, n) for method in _INTERVALS if n)
    if question.margin is None:
        normal, wilson, exact = given
    else:
        normal = _precision(question, "wald", question.normal_trials)
        wilson = _narrow_enough(question, "wilson")
        exact = Undefined(f"not searched for beyond {LARGEST_EXACT_PRECISION} trials")
        if question.normal_trials <= LARGEST_EXACT_PRECISION:
            exact = _narrow_enough(question, "clopper-pearson")
    points = sizing_base.CURVE_POINTS
    sizes = sorted({max(1, round(2 * wilson.trials * i / points)) for i in range(4, points)})
    return PrecisionPlan(
        question=question,
        normal=normal,
        wilson=wilson,
        clopper_pearson=exact,
        given=given,
        curve=tuple(PrecisionPoint(n, _precision(question, "wilson", n).half_width) for n in sizes),
        # p(1 − p) is largest at a rate of 50 %, so that no other rate has a wider interval.
        widest=upper_z(question.alpha / 2) * math.sqrt(0.25 / n) if n else None,
    )


def _precision(question: PrecisionQuestion, method: IntervalMethod, trials: int) -> PrecisionRow:
    # The mean width and not the width at the expected rate: intervals are wider or narrower with
    # the count that comes out, and somebody who plans wants to know what to expect.
    width = coverage = 0.0
    first, weights = likely_counts(trials, question.rate)
    for k, weight in enumerate(weights, first):
        low, high = _INTERVALS[method](k, trials, confidence=question.confidence)
        width += weight * (high - low)
        # Exact at one rate: summed over every count that is likely enough to matter.
        coverage += weight * (low <= question.rate <= high)
    return PrecisionRow(
        method=method, trials=trials, half_width=width / 2, coverage=min(1.0, coverage)
    )


def _narrow_enough(question: PrecisionQuestion, method: IntervalMethod) -> PrecisionRow:
    """Find the fewest trials whose mean half-width is at most the margin."""
    margin = question.margin or 0.0

    def narrow(trials: int) -> bool:
        return _precision(question, method, trials).half_width <= margin

    # The mean half-width falls with every trial, so that the first that is enough is found by
    # halving; the textbook size is close to it.
    size = find_size(narrow, question.normal_trials, 2 * LARGEST_PRECISION)
    assert size is not None
    return _precision(question, method, size)
