"""How steady the arms are: whether repeats of one input agree, under one arm and the other.

Repeats of an input are taken two by two, in their order. How far the two lie apart does not depend
on the level of an arm, only on its scatter. Where repeats scatter alike under both arms, the
distance under the candidate minus that under the control is as likely with the other sign, so that
flipping signs gives an exact p-value. An input is flaky if it both passed and failed among its
repeats; the inputs that are flaky under one arm only are compared by the exact sign test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import fsum

from trialwise.model.trial import Analysis, Trial
from trialwise.procedures.comparing.amount_differences import qualify_interval, subtract_written
from trialwise.procedures.comparing.amount_types import FlakinessDifference, SpreadDifference
from trialwise.procedures.comparing.trial_pairing import Pair, Pairing
from trialwise.stats.paired import sign_test
from trialwise.stats.sign_flips import sign_flip_mean


def compare_latency_spread(
    pairing: Pairing, *, analysis: Analysis, confidence: float
) -> SpreadDifference | None:
    """Return how much latencies of one input scatter; None where no input was repeated.

    Args:
        pairing: The pairs of two arms.
        analysis: Which trials count.
        confidence: The confidence of the interval.
    """
    pairs = [pair for pair in pairing.pairs if not pair.is_left_out(analysis)]
    return _compare_spread(
        pairing, pairs, lambda one: one.latency_s, name="latency_s", confidence=confidence
    )


def compare_score_spread(
    pairing: Pairing, criterion: str, *, analysis: Analysis, confidence: float
) -> SpreadDifference | None:
    """Return how much the scores of one input scatter; None where no input was repeated.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that graded the replies.
        analysis: Which trials count.
        confidence: The confidence of the interval.
    """
    pairs = pairing.list_measured(criterion, analysis)

    def read(trial: Trial) -> float:
        return trial.outcome(criterion).result.mark

    return _compare_spread(
        pairing, pairs, read, name="score", criterion=criterion, confidence=confidence
    )


def compare_flakiness(
    pairing: Pairing, criterion: str, *, analysis: Analysis
) -> FlakinessDifference | None:
    """Return on how many inputs each arm both passed and failed; None without repeated inputs.

    Args:
        pairing: The pairs of two arms.
        criterion: The one that passed or failed.
        analysis: Which trials count.
    """
    repeated = [
        pairs
        for pairs in _group_inputs(pairing.list_measured(criterion, analysis))
        if len(pairs) > 1
    ]
    if not repeated:
        return None
    flaky = [
        (
            _is_flaky([pair.control for pair in pairs], criterion),
            _is_flaky([pair.candidate for pair in pairs], criterion),
        )
        for pairs in repeated
    ]
    only_control, only_candidate = flaky.count((True, False)), flaky.count((False, True))
    both = flaky.count((True, True))
    return FlakinessDifference(
        criterion=criterion,
        arm=pairing.summary.arm,
        against=pairing.summary.against,
        inputs=len(repeated),
        control=both + only_control,
        candidate=both + only_candidate,
        only_control=only_control,
        only_candidate=only_candidate,
        p_value=sign_test(only_control, only_candidate).p_value,
    )


def _group_inputs(pairs: Sequence[Pair]) -> list[list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.control.input_id, []).append(pair)
    return list(found.values())


def _is_flaky(trials: Sequence[Trial], criterion: str) -> bool:
    return len({trial.outcome(criterion).passed for trial in trials}) > 1


def _compare_spread(
    pairing: Pairing,
    pairs: Sequence[Pair],
    read: Callable[[Trial], float | None],
    *,
    name: str,
    criterion: str = "",
    confidence: float,
) -> SpreadDifference | None:
    distances = list(_measure_distances(pairs, read))
    if not distances:
        return None
    shift = sign_flip_mean(
        [subtract_written(theirs, ours) for ours, theirs in distances], confidence=confidence
    )
    summary = pairing.summary
    return SpreadDifference(
        name=name,
        criterion=criterion,
        arm=summary.arm,
        against=summary.against,
        experiment=summary.experiment,
        repeats=len(distances),
        control=fsum(ours for ours, _ in distances) / len(distances),
        candidate=fsum(theirs for _, theirs in distances) / len(distances),
        difference=shift.mean,
        interval=qualify_interval(shift.interval, pairing),
        p_value=shift.p_value,
    )


def _measure_distances(
    pairs: Sequence[Pair], read: Callable[[Trial], float | None]
) -> Iterator[tuple[float, float]]:
    """Yield how far two repeats of an input lie apart under the control and the candidate."""
    for repeats in _group_inputs(pairs):
        known = [
            (ours, theirs)
            for pair in repeats
            if (ours := read(pair.control)) is not None
            and (theirs := read(pair.candidate)) is not None
        ]
        # Every repeat is used once, so that the distances are independent.
        for one, other in list(pairwise(known))[::2]:
            yield (
                abs(subtract_written(one[0], other[0])),
                abs(subtract_written(one[1], other[1])),
            )
