"""How much the mean score changed between two runs, pair by pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.procedures.comparing.trial_pairing import pair_trials
from trialwise.stats.mean_bets import betting_mean_interval
from trialwise.stats.result_types import Interval
from trialwise.validation import require_open_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLift:
    """The mean scores of two runs on the same inputs, and their difference within pairs."""

    criterion: str
    control: float
    candidate: float
    difference: float
    """The candidate's mean minus the control's."""
    interval: Interval
    """Bounds on the difference, from −1 to 1, for every distribution of scores."""
    pairs: int


def measure_lift(
    control: RunRecord, candidate: RunRecord, criterion: str, *, confidence: float = 0.95
) -> ScoreLift:
    """Measure how much better the candidate's scores are; a pass counts 1 and a failure 0.

    A difference lies between −1 and 1, so that half of it plus ½ is a score: its mean is bounded as
    the mean of scores is.

    Args:
        control: A run, such as the one without a skill.
        candidate: A run on the same inputs.
        criterion: Which both have.
        confidence: The confidence of the interval.

    Raises:
        InvalidArgument: The runs do not both have such a criterion, or no pairs.
    """
    require_open_rate("confidence", confidence)
    sides = [
        {one.criterion: one for one in record.plan.criteria} for record in (control, candidate)
    ]
    if not all(criterion in side for side in sides):
        both = [name for name in sides[0] if name in sides[1]]
        raise InvalidArgument("criterion", criterion, f"be one of {', '.join(both)}")
    plan, other = (side[criterion] for side in sides)
    pairing = pair_trials(control, candidate, (plan.experiment, other.experiment))
    analysis = control.plan.analysis_of(plan)
    pairs = [
        (_mark(pair.control, criterion), _mark(pair.candidate, criterion))
        for pair in pairing.pairs
        if not pair.is_left_out(analysis) and not pair.is_unjudged(criterion)
    ]
    if not pairs:
        raise InvalidArgument("criterion", criterion, "have trials that can be paired")
    error = float((1 - as_written(confidence)) / 2)
    halves = [(theirs - ours + 1) / 2 for ours, theirs in pairs]
    found = betting_mean_interval(halves, low_error=error, high_error=error)
    if not pairing.summary.fixed_size:
        found = found.after_early_stop()
    first, second = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return ScoreLift(
        criterion=criterion,
        control=first,
        candidate=second,
        difference=second - first,
        interval=replace(found, low=2 * found.low - 1, high=2 * found.high - 1),
        pairs=len(pairs),
    )


def _mark(trial: Trial, criterion: str) -> float:
    return trial.outcome(criterion).result.mark
