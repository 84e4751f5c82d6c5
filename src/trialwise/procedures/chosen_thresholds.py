"""A threshold that somebody chose for a comparison with a baseline (companion §6.3).

The threshold is given, so the error follows: the level at which the rule that decides would have
this very threshold. The comparison is planned at that level and says so.
"""

from __future__ import annotations

import math

from trialwise.decimals import as_written
from trialwise.documents.numbers import as_percent, as_probability
from trialwise.model.criterion import Criterion
from trialwise.procedures.base import Refused
from trialwise.stats.binomial import binomial_cdf
from trialwise.stats.implied_levels import (
    SOUND_ALPHA,
    implied_alpha_of_cutoff,
    implied_confidence_of_threshold,
)
from trialwise.stats.regression_cutoffs import RegressionCutoff, regression_cutoff
from trialwise.stats.result_types import Rule

#: From here on a FAIL says nothing: it happens in every second run although nothing has changed.
_MEANINGLESS = 0.5
#: Moves a level off the count at which a cutoff changes, by more than rounding.
_ASIDE = 1e-6


def plan_chosen(
    criterion: Criterion, baseline: tuple[int, int], trials: int | None, rule: Rule
) -> RegressionCutoff | Refused:
    """Return the rule that has the chosen threshold, or say why there is none.

    Args:
        criterion: With a threshold, `pass_from`.
        baseline: Its passes and trials.
        trials: The fixed number of trials.
        rule: The rule set that decides.
    """
    assert criterion.pass_from is not None
    written = f"`pass_from: {as_percent(criterion.pass_from).replace(' ', '')}`"
    if trials is None:
        return Refused(f"{written} needs a fixed number of trials: add `trials`")
    cutoff = math.ceil(as_written(criterion.pass_from) * trials)
    alarm = binomial_cdf(cutoff - 1, trials, baseline[0] / baseline[1])
    alpha = _imply_alpha(baseline, trials, cutoff, criterion.pass_from, rule)
    if alpha is None or alpha >= _MEANINGLESS or alarm >= _MEANINGLESS:
        implied = "no α" if alpha is None else f"α = {alpha:.3f}"
        return Refused(
            f"{written} implies {implied}: with {trials} trials it FAILs in "
            f"{as_probability(alarm)} of runs although nothing has changed since {baseline[0]} of "
            f"{baseline[1]}. Lower it; `trialwise plan regression --threshold` shows by how much"
        )
    for aside in (1.0, 1 - _ASIDE, 1 + _ASIDE):
        design = regression_cutoff(*baseline, trials, alpha=alpha * aside, rule=rule)
        if design.cutoff == cutoff or design.cutoff is None:
            return design
    return Refused(f"{written} is no threshold of `rule: {rule}` with {trials} trials")


def _imply_alpha(
    baseline: tuple[int, int], trials: int, cutoff: int, threshold: float, rule: Rule
) -> float | None:
    if rule == "wilson":
        return implied_confidence_of_threshold(*baseline, trials, threshold).alpha
    if rule == "fisher":
        return implied_alpha_of_cutoff(*baseline, trials, cutoff).alpha
    from trialwise.stats.unconditional import boschloo

    return boschloo(*baseline, cutoff - 1, trials).p_value if baseline[0] else None


def describe_chosen(criterion: Criterion, design: RegressionCutoff) -> tuple[str, ...]:
    """Say what the chosen threshold implies, beside the threshold at the usual level."""
    if criterion.pass_from is None or design.cutoff is None:
        return ()
    unsound = ", more than 0.2: most FAILs would be false" if design.alpha > SOUND_ALPHA else ""
    caveat = (
        f"the threshold of {as_percent(criterion.pass_from)} was chosen, not derived: for "
        f"`rule: {design.rule}` it implies α = {design.alpha:.4g}{unsound}"
    )
    return (caveat,)
