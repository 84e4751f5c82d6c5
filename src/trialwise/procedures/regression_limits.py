"""What a comparison with a baseline can find, and which comparisons are too small.

Powers here count the baseline as the sample that it is: they average over the baselines that could
have been measured at its rate.
"""

from __future__ import annotations

import math
from functools import partial

from trialwise.documents.numbers import as_percent
from trialwise.model.criterion import Criterion
from trialwise.stats.bisection import find_first
from trialwise.stats.compliance_cutoffs import minimum_trials
from trialwise.stats.normal import normal_quantile, upper_z
from trialwise.stats.regression_cutoffs import RegressionCutoff, design_power, regression_cutoff
from trialwise.stats.staged_regression import average_chances

#: How far below a size with enough power smaller ones are looked at.
_NEAR = 12
_SMOKE = "or add `intent: smoke` for a quick check"


def average_power(design: RegressionCutoff, rate: float) -> float | None:
    """P(FAIL) where the service passes at `rate`, averaged over the baselines of this size."""
    if design.cutoff is None:
        return None
    measured = design.baseline_successes / design.baseline_trials
    if design.counts_choices:
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
    # One gate for all rules: whether the exact test could find a drop with so many trials.
    largest = regression_cutoff(passed, size, size, alpha=design.alpha)
    found = average_power(largest, 0.0) or 0.0
    if found < wanted:
        return (
            f"a baseline of {size} {'trial is' if size == 1 else 'trials is'} too small: even a "
            f"service that never passes would FAIL with probability {found:.2f} only. Measure a "
            f"baseline of about {_size_of_both(criterion, design, alternative)} trials, {_SMOKE}"
        )
    if design.cutoff > 0 and _is_enough(criterion, design, alternative, design.trials):
        return None
    needed = find_fewest_trials(criterion, design, alternative)
    if needed is not None and design.trials >= needed:
        return None
    few = "1 trial is" if design.trials == 1 else f"{design.trials} trials are"
    power, larger = (
        average_power(design, alternative),
        _size_of_both(criterion, design, alternative),
    )
    out = f"Measure a baseline of about {larger} trials"
    if needed is not None:
        enough = regression_cutoff(passed, size, needed, alpha=design.alpha, rule=design.rule)
        reached = average_power(enough, alternative) or 0.0
        asked = "" if reached >= wanted else f" ({wanted:g} takes about {larger} in both runs)"
        out = f"Run at least {needed} trials, which find it with probability {reached:.2f}{asked}"
    return (
        f"{few} too few to compare with {passed} of {size}: a drop to {as_percent(alternative)} "
        f"would FAIL with probability {power or 0.0:.2f}, less than the {wanted:g} asked for. "
        f"{out}, {_SMOKE}"
    )


def find_fewest_trials(
    criterion: Criterion, design: RegressionCutoff, alternative: float
) -> int | None:
    """Find the fewest trials that a verification takes: more are admitted too, fewer are not.

    Some count of them has to FAIL. None where the rule takes no test of this size.

    Args:
        criterion: What is promised.
        design: The rule, resolved against the baseline.
        alternative: The rate that is to be found.
    """
    passed, size, alpha = design.baseline_successes, design.baseline_trials, design.alpha
    is_enough = partial(_is_enough, criterion, design, alternative)
    fewest = find_first(0, _find_feasible(design), is_enough)
    # Power is not quite monotone: a few trials less may do where a cutoff falls well.
    while less := [n for n in range(max(1, fewest - _NEAR), fewest) if is_enough(n)]:
        fewest = less[0]
    most = size if design.rule == "fisher" else 2 * max(fewest, size)

    def can_fail(trials: int) -> bool:
        return bool(regression_cutoff(passed, size, trials, alpha=alpha, rule=design.rule).cutoff)

    return next((n for n in range(fewest, most + 1) if can_fail(n)), None)


def _find_feasible(design: RegressionCutoff) -> int:
    """Find the trials that could show the baseline's rate as a required one (companion §5.7.1)."""
    passed, size = design.baseline_successes, design.baseline_trials
    return minimum_trials(min(passed / size, size / (size + 1)), alpha=design.alpha)


def _is_enough(
    criterion: Criterion, design: RegressionCutoff, alternative: float, trials: int
) -> bool:
    """Whether so many trials are feasible, or the exact test finds the drop as often as asked."""
    size, alpha = design.baseline_trials, design.alpha
    rates = design.baseline_successes / size, alternative
    return (
        trials >= _find_feasible(design)
        or design_power(*rates, size, trials, alpha=alpha) >= criterion.wanted_power
    )


def _size_of_both(criterion: Criterion, design: RegressionCutoff, alternative: float) -> int:
    """Trials of a baseline, and of a test as large, that find the drop; normal approximation."""
    rate = design.baseline_successes / design.baseline_trials
    middle = (rate + alternative) / 2
    spread = math.sqrt(rate * (1 - rate) + alternative * (1 - alternative))
    alarm = upper_z(design.alpha) * math.sqrt(2 * middle * (1 - middle))
    root = alarm + normal_quantile(criterion.wanted_power) * spread
    return math.ceil((root / (rate - alternative)) ** 2)
