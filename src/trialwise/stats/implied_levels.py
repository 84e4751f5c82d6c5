"""The three operational approaches of companion §6: what is fixed and what follows.

They are policies over the same rules, not three theories. Fix the cost and the level, and the
cutoff follows (`regression_cutoff`, `compliance_cutoff`); fix the level and the power, and the
cost follows (`normal_sizing`, `compliance_sizing` and the risk-driven sizings); fix the threshold,
and the level it implies follows, from here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.stats.compliance_cutoffs import check_required_rate
from trialwise.stats.normal import normal_cdf
from trialwise.stats.precedence import lower_tail
from trialwise.stats.rate_intervals import wilson_low
from trialwise.stats.result_types import Rule
from trialwise.validation import require_count, require_open_rate, require_successes

#: A declared threshold whose false-alarm level exceeds this is called unsound (companion §6.3).
SOUND_ALPHA = 0.20
#: Φ(±9) is 1 or 0 to a double: no confidence lies outside.
_Z_LIMIT = 9.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedLevel:
    """The level at which a declared threshold is the one its rule would have derived."""

    rule: Rule
    alpha: float | None
    """The implied false-alarm level, or None where no level yields the threshold."""

    @property
    def confidence(self) -> float | None:
        """1 − alpha."""
        return None if self.alpha is None else 1 - self.alpha

    @property
    def is_sound(self) -> bool:
        """Whether the implied false-alarm level is at most 20 %."""
        return self.alpha is not None and self.alpha <= SOUND_ALPHA


def implied_confidence_of_threshold(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    threshold: float,
) -> ImpliedLevel:
    """The confidence at which the Wilson regression threshold is `threshold` (companion §6.3).

    Solves WilsonLower(p̂_b, n; confidence) = threshold: z = (p̂_b − t)/√(t(1−t)/n) in closed form,
    by halving for a baseline without failures, whose effective rate moves with the confidence.

    Examples
    --------
    >>> implied_confidence_of_threshold(951, 1000, 100, 0.951).confidence
    0.5
    """
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    n = require_count("trials", trials, minimum=1)
    t = require_open_rate("threshold", threshold)
    if k == 0:  # the threshold is 0 at every level
        return ImpliedLevel(rule="wilson", alpha=None)
    z = _perfect_z(nb, n, t) if k == nb else (k / nb - t) / math.sqrt(t * (1 - t) / n)
    return ImpliedLevel(rule="wilson", alpha=normal_cdf(-z))


def implied_alpha_of_cutoff(
    baseline_successes: SupportsIndex,
    baseline_trials: SupportsIndex,
    trials: SupportsIndex,
    cutoff: SupportsIndex,
) -> ImpliedLevel:
    """The smallest alpha at which Fisher's rule yields `cutoff`: the p-value one count below it.

    0 for a cutoff of 0, None where no alpha yields it (a baseline without successes).

    Examples
    --------
    >>> round(implied_alpha_of_cutoff(951, 1000, 100, 91).alpha, 6)
    0.034733
    """
    k, nb = require_successes(
        baseline_successes, baseline_trials, names=("baseline_successes", "baseline_trials")
    )
    n = require_count("trials", trials, minimum=1)
    c = require_count("cutoff", cutoff)
    if c > n:
        raise InvalidArgument("cutoff", cutoff, f"be at most trials ({n})")
    if c == 0:
        return ImpliedLevel(rule="fisher", alpha=0.0)
    return ImpliedLevel(rule="fisher", alpha=None if k == 0 else lower_tail(k, c - 1, nb, n))


def implied_confidence_of_observation(
    successes: SupportsIndex, trials: SupportsIndex, required_rate: float
) -> float:
    """The confidence at which an observed rate just shows a requirement (companion §6.1).

    Φ(z) with z = (p̂ − p_req)/√(p_req(1−p_req)/n): the score test's, so that a Wilson lower bound
    at this confidence equals the requirement.

    Examples
    --------
    >>> round(implied_confidence_of_observation(788, 800, 0.98), 3)
    0.844
    """
    k, n = require_successes(successes, trials)
    p = check_required_rate(required_rate)
    return normal_cdf((k / n - p) / math.sqrt(p * (1 - p) / n))


def _perfect_z(nb: int, n: int, threshold: float) -> float:
    """The z at which the two-step bound of a perfect baseline equals the threshold (§4.3.2)."""
    low, high = -_Z_LIMIT, _Z_LIMIT
    for _ in range(200):
        z = (low + high) / 2
        bound = wilson_low(wilson_low(nb, nb, z) * n, n, z)
        low, high = (z, high) if bound > threshold else (low, z)
    return (low + high) / 2
