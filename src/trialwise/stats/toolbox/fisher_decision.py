"""Whether Fisher's exact test rejects."""

from __future__ import annotations

from typing import SupportsIndex

from trialwise.decimals import at_most
from trialwise.stats.unconditional import check_two_runs, exact_lower_tail, fisher_p_value
from trialwise.validation import require_open_rate


def fisher_rejects(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    alpha: float = 0.05,
) -> bool:
    """Whether Fisher's p-value is at most alpha; a p-value that equals alpha rejects.

    Where the two are too close for doubles the p-value is compared in rationals, with alpha read
    as the decimal written (companion §10.6).

    Parameters
    ----------
    baseline_successes, baseline_trials, successes, trials : int
        As in `fisher_one_sided`.
    alpha : float
        Strictly between 0 and 1.

    Examples
    --------
    The only failure of 20 trials is the test's single trial with probability exactly 1/20:

    >>> fisher_rejects(19, 19, 0, 1, alpha=0.05)
    True
    """
    k, nb, x, nt = check_two_runs(baseline_successes, baseline_trials, successes, trials)
    level = require_open_rate("alpha", alpha)
    return at_most(fisher_p_value(k, nb, x, nt), level, lambda: exact_lower_tail(k, x, nb, nt))
