"""How much the mean score changed between two runs, pair by pair."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import median

from trialwise.decimals import as_written
from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.amount_differences import qualify_interval, subtract_written
from trialwise.procedures.comparing.amount_types import ScoreLift as ScoreLift  # noqa: PLC0414
from trialwise.procedures.comparing.trial_pairing import Pairing, pair_trials
from trialwise.stats.mean_bets import betting_mean_interval
from trialwise.stats.sign_flips import sign_flip_mean
from trialwise.validation import require_open_rate


def measure_lift(
    control: RunRecord, candidate: RunRecord, criterion: str, *, confidence: float = 0.95
) -> ScoreLift:
    """Measure how much better the candidate's scores are; a pass counts 1 and a failure 0.

    Args:
        control: A run, such as the one without a skill.
        candidate: A run on the same inputs.
        criterion: Which both have.
        confidence: The confidence of the intervals.

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
    found = lift_scores(pairing, criterion, analysis=analysis, confidence=confidence)
    if found is None:
        raise InvalidArgument("criterion", criterion, "have trials that can be paired")
    return found


def lift_scores(
    pairing: Pairing, criterion: str, *, analysis: Analysis, confidence: float
) -> ScoreLift | None:
    """Return how much the scores changed within pairs; None where no pair was measured.

    A difference lies between −1 and 1, so that half of it plus ½ is a score: its mean is bounded as
    the mean of scores is, whatever its distribution. Flipping signs bounds it too, more closely,
    where differences scatter evenly around their mean.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that graded the replies.
        analysis: Which trials count.
        confidence: The confidence of the intervals.
    """
    pairs = [
        (_mark(pair.control, criterion), _mark(pair.candidate, criterion))
        for pair in pairing.list_measured(criterion, analysis)
    ]
    if not pairs:
        return None
    error = float((1 - as_written(confidence)) / 2)
    differences = [subtract_written(theirs, ours) for ours, theirs in pairs]
    bounds = betting_mean_interval(
        [(one + 1) / 2 for one in differences], low_error=error, high_error=error
    )
    flips = sign_flip_mean(differences, confidence=confidence)
    if not pairing.summary.fixed_size:
        bounds = bounds.after_early_stop()
    first, second = (math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return ScoreLift(
        criterion=criterion,
        arm=pairing.summary.arm,
        against=pairing.summary.against,
        control=first,
        candidate=second,
        difference=second - first,
        median_difference=median(differences),
        interval=replace(bounds, low=2 * bounds.low - 1, high=2 * bounds.high - 1),
        flip_interval=qualify_interval(flips.interval, pairing),
        p_value=flips.p_value,
        pairs=len(pairs),
    )


def is_graded(pairing: Pairing, criterion: str) -> bool:
    """Return whether a reply of either arm has a score of its own.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that may have graded them.
    """
    return any(
        trial.outcome(criterion).result.score is not None
        for pair in pairing.pairs
        for trial in (pair.control, pair.candidate)
    )


def _mark(trial: Trial, criterion: str) -> float:
    return trial.outcome(criterion).result.mark
