"""How many trials a comparison with a baseline takes, where nobody says."""

from __future__ import annotations

import math

from trialwise.model.criterion import Criterion
from trialwise.procedures.base import rate_below
from trialwise.stats.bisection import find_first
from trialwise.stats.regression_cutoffs import design_power
from trialwise.stats.result_types import Rule

#: Trials of a test whose baseline never passed: no number would show a drop.
_TRIALS_WITHOUT_RATE = 100
#: Looking on the way costs a little power: so much more is wanted of the test of all trials.
_MORE_POWER = 0.035
#: The largest staged test, relative to its baseline: beyond it the baseline is what is too small.
_LARGEST = 2


def find_common_size(criterion: Criterion, size: int) -> int:
    """Enough trials to find the loss at every rate, so that their number tells no count.

    Args:
        criterion: What is promised.
        size: Trials of the baseline.
    """
    # The variances of a rate and of one lower by the loss are largest around one half.
    passed = min(size, math.ceil(size * (1 + criterion.loss) / 2))
    alternative = rate_below(passed / size, criterion.loss)
    return find_usual_size(criterion, (passed, size), alternative, "exact")


def find_usual_size(
    criterion: Criterion, baseline: tuple[int, int], alternative: float, rule: Rule
) -> int:
    """Enough trials for the rule that decides to find the loss; the baseline's if it is too small.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        alternative: The rate that is to be found.
        rule: The rule set that decides.
    """
    passed, size = baseline
    if passed == 0:
        return min(size, _TRIALS_WITHOUT_RATE)
    power = criterion.wanted_power
    return _find_size(criterion, baseline, alternative, power=power, rule=rule, most=size)


def size_stages(criterion: Criterion, baseline: tuple[int, int], alternative: float) -> int:
    """The most trials of a staged comparison without a scheme: enough, if the baseline is.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        alternative: The rate that is to be found.
    """
    power = min(criterion.wanted_power + _MORE_POWER, (1 + criterion.wanted_power) / 2)
    most = _LARGEST * baseline[1]
    return _find_size(criterion, baseline, alternative, power=power, rule="exact", most=most)


def _find_size(
    criterion: Criterion,
    baseline: tuple[int, int],
    alternative: float,
    *,
    power: float,
    rule: Rule,
    most: int,
) -> int:
    passed, size = baseline

    def finds(trials: int) -> bool:
        rates = passed / size, alternative
        found = design_power(*rates, size, trials, alpha=criterion.wrong_fail, rule=rule)
        return found >= power

    return find_first(0, most, finds) if finds(most) else size
