"""What a comparison with a baseline can find, and which comparisons are too small.

Powers here count the baseline as the sample that it is: they average over the baselines that could
have been measured at its rate.
"""

from __future__ import annotations

import math

from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.stats.compliance_cutoffs import minimum_trials
from trialwise.stats.normal import normal_quantile, upper_z
from trialwise.stats.regression_cutoffs import RegressionCutoff, design_power, regression_cutoff
from trialwise.stats.staged_regression import average_chances

_SMOKE = "or add `intent: smoke` for a quick check"


def average_power(design: RegressionCutoff, rate: float) -> float | None:
    """P(FAIL) where the service passes at `rate`, averaged over the baselines of this size."""
    if design.cutoff is None:
        return None
    measured = design.baseline_successes / design.baseline_trials
    if design.accept:
        return average_chances(design, measured, rate).fails
    sizes = design.baseline_trials, design.trials
    return design_power(measured, rate, *sizes, alpha=design.alpha, rule=design.rule)


def refuse_weak_regression(
    criterion: Criterion, design: RegressionCutoff, alternative: float
) -> str | None:
    """Say why a comparison is too small for a verification, with what would be enough.

    Args:
        criterion: What is promised.
        design: The rule, resolved against the baseline.
        alternative: The rate that is to be found.
    """
    if design.cutoff is None:  # refused for another reason
        return None
    passed, size = design.baseline_successes, design.baseline_trials
    if passed == 0:
        return (
            f"none of the {size} trials of the baseline passed, so that nothing can be worse and "
            "no count would FAIL: give the criterion a required rate (`at_least`), measure a "
            f"baseline that passes, {_SMOKE}"
        )
    wanted = criterion.wanted_power
    largest = regression_cutoff(passed, size, size, alpha=design.alpha, rule=design.rule)
    found = average_power(largest, 0.0) or 0.0
    if found < wanted:
        return (
            f"a baseline of {size} {'trial is' if size == 1 else 'trials is'} too small: even a "
            f"service that never passes would FAIL with probability {found:.2f} only. Measure a "
            f"baseline of about {_size_of_both(criterion, design, alternative)} trials, {_SMOKE}"
        )
    power = average_power(design, alternative) or 0.0
    reference = min(passed / size, size / (size + 1))
    least = minimum_trials(reference, alpha=design.alpha, rule=design.rule)
    if design.cutoff > 0 and (design.trials >= least or power >= wanted):
        return None
    few = "1 trial is" if design.trials == 1 else f"{design.trials} trials are"
    return (
        f"{few} too few to compare with {passed} of {size}: a drop to {as_percent(alternative)} "
        f"would FAIL with probability {power:.2f}, less than the {wanted:g} asked for. Run at "
        f"least {least} trials, {_SMOKE}"
    )


def _size_of_both(criterion: Criterion, design: RegressionCutoff, alternative: float) -> int:
    """Trials of a baseline, and of a test as large, that find the drop; normal approximation."""
    rate = design.baseline_successes / design.baseline_trials
    middle = (rate + alternative) / 2
    spread = math.sqrt(rate * (1 - rate) + alternative * (1 - alternative))
    alarm = upper_z(design.alpha) * math.sqrt(2 * middle * (1 - middle))
    root = alarm + normal_quantile(criterion.wanted_power) * spread
    return math.ceil((root / (rate - alternative)) ** 2)
