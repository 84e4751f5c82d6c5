"""How many trials a latency percentile needs to be more than the maximum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.decimals import floor_product
from trialwise.stats.latency_percentiles import emission_minimum
from trialwise.stats.latency_planning import planned_trials_needed
from trialwise.stats.result_types import Undefined
from trialwise.validation import require_count, require_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class NondegeneracyPlan:
    """Whether a plan is expected to give more than the extreme of its latencies."""

    planned_trials: int
    success_rate: float
    percentile: float
    expected_trials: int
    """⌊planned · rate⌋, the reference data's `expected_test_samples`."""
    minimum_trials: int
    """The emission minimum, the reference data's `minimum_contributing_samples`."""
    planned_trials_needed: int | Undefined
    """The smallest plan without a warning, the reference data's `planned_samples_needed`."""

    @property
    def warning(self) -> bool:
        """Whether fewer successes are expected than needed; a warning refuses nothing."""
        return self.expected_trials < self.minimum_trials


def nondegeneracy_planning(
    planned_trials: SupportsIndex, success_rate: float, percentile: float
) -> NondegeneracyPlan:
    """The emission minimum against the successes a plan expects: a warning, never a refusal.

    Parameters
    ----------
    planned_trials : int
        At least 1.
    success_rate : float
        The baseline's, 0 to 1.
    percentile : {0.5, 0.9, 0.95, 0.99}
        The level that is asserted.

    Examples
    --------
    >>> plan = nondegeneracy_planning(110, 0.8, 0.99)
    >>> plan.expected_trials, plan.warning, plan.planned_trials_needed
    (88, True, 125)
    """
    planned = require_count("planned_trials", planned_trials, minimum=1)
    rate = require_rate("success_rate", success_rate)
    minimum = emission_minimum(percentile)
    return NondegeneracyPlan(
        planned_trials=planned,
        success_rate=rate,
        percentile=float(percentile),
        expected_trials=floor_product(rate, planned),
        minimum_trials=minimum,
        planned_trials_needed=planned_trials_needed(minimum, rate),
    )
