"""How many labels and how many trials a judged criterion takes, and which mix is the cheapest.

Labels are paid once, when people label the gold set; trials are paid in every run. More labels tell
more of the judge's errors, so that a run needs fewer trials, down to a limit. The chances are those
of the normal approximation to the exact tests. With 240 labels and 250 trials, 84 % against 75 %,
it is 2 points too high for the rectifier and 7 points for Rogan and Gladen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trialwise.stats.agreement import Confusion
from trialwise.stats.binomial import find_first, normal_cdf, upper_z
from trialwise.stats.judge_certification import FEWEST_UNITS, labels_to_certify
from trialwise.stats.judged_tests import Correction, error_by_class, error_of_shares
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count, require_open_rate, require_rate

#: More trials, or more labels, than a plan proposes.
_MOST_TRIALS, _MOST_LABELS = 1_000_000, 20_000
#: Numbers of labels are tried in steps of so much.
_STEP = 1.15
#: Labels that stand for the shares of a judge's errors, when a judge has not been measured yet.
_MANY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedJudge:
    """The judge and the service that a plan is made for."""

    rate: float
    """The true rate of the service, as it is expected."""
    sensitivity: float
    specificity: float

    def __post_init__(self) -> None:
        require_open_rate("rate", self.rate)
        require_rate("sensitivity", self.sensitivity)
        require_rate("specificity", self.specificity)

    def errors_at(self, rate: float) -> tuple[float, float]:
        """Return the shares of units that are missed and let through at a rate."""
        return rate * (1 - self.sensitivity), (1 - rate) * (1 - self.specificity)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlan:
    """Numbers of labels and trials that reach the power, and what they cost."""

    labels: int
    trials: int
    power: float
    cost: float
    """The labels once and the trials of all runs."""


def judged_power(
    judge: ExpectedJudge,
    required_rate: float,
    *,
    labels: int,
    trials: int,
    correction: Correction = "rectifier",
    alpha: float = 0.05,
) -> float:
    """About the chance of a PASS with this many labels and trials.

    Parameters
    ----------
    judge : ExpectedJudge
        The judge's accuracies and the true rate.
    required_rate : float
        Strictly between 0 and 1.
    labels, trials : int
        At least 1 each. The labels have as many good ones as the rate lets expect.
    correction : {"rectifier", "rogan-gladen", "pooled"}
        The test.
    alpha : float
        The level of the test.

    Examples
    --------
    >>> judge = ExpectedJudge(rate=0.84, sensitivity=0.986, specificity=0.897)
    >>> round(judged_power(judge, 0.75, labels=240, trials=250), 2)
    0.95
    """
    required = require_open_rate("required_rate", required_rate)
    require_count("labels", labels, minimum=1)
    require_count("trials", trials, minimum=1)
    at_limit, at_rate = (
        _find_error(judge, rate, labels, trials, correction) for rate in (required, judge.rate)
    )
    gap = judge.rate - required
    if not at_rate:
        return float(gap > 0)
    return normal_cdf((gap - upper_z(alpha) * at_limit) / at_rate)


def _find_error(
    judge: ExpectedJudge, rate: float, labels: int, trials: int, correction: Correction
) -> float:
    if correction != "rogan-gladen":
        is_pooled = correction == "pooled"
        errors = judge.errors_at(rate)
        return error_of_shares(rate, *errors, labels=labels, trials=trials, is_pooled=is_pooled)
    told_apart = judge.sensitivity + judge.specificity - 1
    if told_apart <= 0:
        return math.inf
    good = max(labels * judge.rate, 1.0)
    bad = max(labels * (1 - judge.rate), 1.0)
    accuracies = judge.sensitivity, judge.specificity
    return error_by_class(rate, *accuracies, good=good, bad=bad, trials=trials) / told_apart


def plan_labels(
    judge: ExpectedJudge,
    required_rate: float,
    *,
    power: float = 0.8,
    label_cost: float = 1.0,
    trial_cost: float = 0.01,
    runs: int = 1,
    labels_count_as_trials: bool = False,
    alpha: float = 0.05,
) -> tuple[LabelPlan, ...] | Undefined:
    """Plans that reach the power, from the fewest labels on; the cheapest is the one to take.

    A run is decided by the rectifier and by Rogan and Gladen, or by pooling where the labels count
    as trials; a plan has to suffice for all that decide.

    Parameters
    ----------
    judge : ExpectedJudge
        The judge's accuracies and the true rate that is expected.
    required_rate : float
        Below the expected rate.
    power : float
        The chance of a PASS that is wanted.
    label_cost, trial_cost : float
        Of one label and of one trial with its judge, in the same money.
    runs : int
        How many runs use the labels.
    labels_count_as_trials : bool
        As in a suite.
    alpha : float
        The level of the tests.

    Returns
    -------
    tuple of LabelPlan, or Undefined
        Undefined where no plan exists: the judge cannot be certified, or the rate is too low.

    Examples
    --------
    >>> judge = ExpectedJudge(rate=0.84, sensitivity=0.986, specificity=0.897)
    >>> plans = plan_labels(judge, 0.75, label_cost=2.0, trial_cost=0.05)
    >>> cheapest = find_cheapest(plans)
    >>> cheapest.labels, cheapest.trials, cheapest.cost
    (269, 185, 547.25)
    """
    required = require_open_rate("required_rate", required_rate)
    if judge.rate <= required:
        return Undefined("the expected rate is not above the required one")
    fewest = _find_fewest(judge)
    if isinstance(fewest, Undefined):
        return fewest
    tests: tuple[Correction, ...] = ("rectifier", "rogan-gladen")
    tests = ("pooled",) if labels_count_as_trials else tests

    def reach(labels: int, trials: int) -> float:
        return min(
            judged_power(judge, required, labels=labels, trials=trials, correction=one, alpha=alpha)
            for one in tests
        )

    def find_trials(labels: int) -> int:
        return find_first(0, _MOST_TRIALS, lambda trials: reach(labels, trials) >= power)

    found: list[LabelPlan] = []
    labels = fewest
    while labels <= _MOST_LABELS:
        if reach(labels, _MOST_TRIALS) >= power:
            trials = find_trials(labels)
            cost = labels * label_cost + runs * trials * trial_cost
            plan = LabelPlan(labels=labels, trials=trials, power=reach(labels, trials), cost=cost)
            # More labels are worth nothing once they save no trial.
            if found and plan.trials == found[-1].trials:
                break
            found.append(plan)
        labels = math.ceil(labels * _STEP)
    if not found:
        return Undefined(f"no number of labels up to {_MOST_LABELS:,} reaches the power")
    return tuple(found)


def find_cheapest(plans: Sequence[LabelPlan]) -> LabelPlan:
    """The plan that costs least; of equal ones the one with more labels.

    >>> few = LabelPlan(labels=200, trials=136, power=0.8, cost=335.0)
    >>> many = LabelPlan(labels=229, trials=134, power=0.8, cost=363.0)
    >>> find_cheapest([few, many]).labels
    200
    """
    return min(plans, key=lambda one: (one.cost, -one.labels))


def _find_fewest(judge: ExpectedJudge) -> int | Undefined:
    """Return about the fewest labels that certify such a judge."""
    missed, through = judge.errors_at(judge.rate)
    shares = Confusion(
        true_pass=round(_MANY * (judge.rate - missed)),
        false_pass=round(_MANY * through),
        true_fail=round(_MANY * (1 - judge.rate - through)),
        false_fail=round(_MANY * missed),
    )
    found = labels_to_certify(shares)
    return found if isinstance(found, Undefined) else max(found, FEWEST_UNITS)
