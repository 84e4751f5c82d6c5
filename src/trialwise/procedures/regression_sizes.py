"""How many trials a comparison with a baseline takes, where nobody says."""

from __future__ import annotations

import math

from trialwise.model.criterion import Criterion
from trialwise.stats.bisection import find_first
from trialwise.stats.regression_cutoffs import design_power

#: Trials of a test whose baseline never passed: no number would show a drop.
_TRIALS_WITHOUT_RATE = 100
#: Looking on the way costs a little power: so many more trials, or so much more power at the end.
_MORE_TRIALS, _MORE_POWER = 1.1, 0.035
#: The largest test, relative to its baseline: beyond it the baseline is what is too small.
_LARGEST = 2


def find_usual_size(criterion: Criterion, passed: int, trials: int, alternative: float) -> int:
    """Enough trials to see the margin with the power asked for, if the baseline is large enough."""
    if passed == 0:
        return min(trials, _TRIALS_WITHOUT_RATE)
    from trialwise.stats.risk_sizing import resolved_required_trials

    sizing = resolved_required_trials(
        passed, trials, alternative, alpha=criterion.wrong_fail, power=criterion.wanted_power
    )
    return trials if sizing.trials is None else sizing.trials


def size_stages(criterion: Criterion, baseline: tuple[int, int], alternative: float) -> int:
    """The most trials of a staged comparison without a scheme: enough, if the baseline is.

    Args:
        criterion: What is promised.
        baseline: Its passes and trials.
        alternative: The rate that is to be found.
    """
    passed, size = baseline
    fixed = find_usual_size(criterion, passed, size, alternative)
    if fixed < size:
        return math.ceil(_MORE_TRIALS * fixed)
    wanted = min(criterion.wanted_power + _MORE_POWER, (1 + criterion.wanted_power) / 2)

    def finds(trials: int) -> bool:
        rates = passed / size, alternative
        return design_power(*rates, size, trials, alpha=criterion.wrong_fail) >= wanted

    largest = _LARGEST * size
    return find_first(size - 1, largest, finds) if finds(largest) else size
