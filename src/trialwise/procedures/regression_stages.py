"""Comparisons with a baseline that stop as soon as their counts decide: size, chances and words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import cast

from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Caution, Decision, ObservedRate
from trialwise.procedures.base import Chance, Conclusion, Counts
from trialwise.stats.bisection import find_first
from trialwise.stats.regression_cutoffs import RegressionCutoff, design_power
from trialwise.stats.staged_regression import average_chances

#: Looking on the way costs a little power: so many more trials, or so much more power at the end.
_MORE_TRIALS, _MORE_POWER = 1.1, 0.035
#: The largest test, relative to its baseline: beyond it the baseline is what is too small.
_LARGEST = 2


def size_stages(
    criterion: Criterion, baseline: tuple[int, int], fixed: int, alternative: float
) -> int:
    """The most trials of a staged comparison: enough to find the loss, if the baseline is.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        fixed: What a fixed comparison no larger than its baseline would take.
        alternative: The rate that is to be found.
    """
    passed, size = baseline
    if fixed < size:
        return math.ceil(_MORE_TRIALS * fixed)
    wanted = min(criterion.wanted_power + _MORE_POWER, (1 + criterion.wanted_power) / 2)

    def finds(trials: int) -> bool:
        rates = passed / size, alternative
        return design_power(*rates, size, trials, alpha=criterion.wrong_fail) >= wanted

    largest = _LARGEST * size
    return find_first(size - 1, largest, finds) if finds(largest) else size


def describe_stages(plan: CriterionPlan) -> str:
    """Say when the counts can decide before all trials are in."""
    design = cast("RegressionCutoff", plan.design)
    first = next(n for n, most in enumerate(design.accept) if most >= 0)
    usual = design.reject[0]
    looks = (n for n in range(1, design.trials) if design.reject[n] < min(usual, n + 1))
    look = next(looks, None)
    early = "" if look is None else f", and FAIL after {look} with {design.reject[look]} failures"
    return f"it can PASS after {first} trials without a failure{early}"


def is_staged(plan: CriterionPlan) -> bool:
    """Whether a comparison may be decided before all trials are in, by boundaries of its own."""
    return isinstance(plan.design, RegressionCutoff) and bool(plan.design.accept)


def conclude_stage(plan: CriterionPlan, counts: Counts) -> Conclusion:
    """Conclude a staged comparison at the trial where its counts decided."""
    design, tally, decision = cast("RegressionCutoff", plan.design), counts.tally, counts.decision
    assert decision is not None
    fails = decision is Decision.FAIL
    passed, rate = f"{tally.passed} of {tally.trials} passed", as_percent(design.reference_rate)
    lower = "" if design.alternative_rate is None else f" of {as_percent(design.alternative_rate)}"
    return Conclusion(
        decision=decision,
        tally=tally,
        observed_rate=ObservedRate.BELOW_THRESHOLD if fails else ObservedRate.ABOVE_THRESHOLD,
        caution=Caution.FAIL_CLEAR if fails else Caution.ADEQUATE_POWER,
        statement=(
            f"A degradation from the baseline is signalled: {passed}, the baseline had {rate}."
            if fails
            else f"No degradation signal: {passed}, after which a rate{lower} would hardly be "
            "signalled any more; equivalence is not claimed."
        ),
    )


def forecast_stages(design: RegressionCutoff) -> Iterator[Chance]:
    """The chances of a staged comparison, with the trials that it takes."""
    measured = design.baseline_successes / design.baseline_trials
    rates = [(measured, "nothing changed")]
    if design.alternative_rate is not None:
        rates.append((design.alternative_rate, "the margin below"))
    for rate, meaning in rates:
        found = average_chances(design, measured, rate)
        yield Chance(
            rate=rate,
            meaning=meaning,
            passes=1 - found.fails,
            fails=found.fails,
            mean_trials=found.mean_trials,
        )
