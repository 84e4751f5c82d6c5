"""The trials a finding rests on, and the bounds they ran between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trialwise.model.options import Analysis
from trialwise.model.plan import Limits
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial
from trialwise.model.verdict import Finding
from trialwise.procedures.registry import procedure_of

__all__ = ["Bounds", "find_bounds", "list_outcomes", "list_trials"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """When a stream of trials is decided: at most so many failures PASS, so many or more FAIL."""

    cap: int
    accept: tuple[int, ...]
    """After n trials, −1 where none is few enough, n = 0 … cap."""
    reject: tuple[int, ...]
    """After n trials, more than n where none is enough."""


def find_bounds(limits: Limits) -> Bounds | None:
    """The bounds of a sequential or a fixed design; None where only the last trial decides.

    A fixed design that is not stopped early has them too: beyond them its verdict is certain.

    >>> bounds = find_bounds(Limits(cap=50, cutoff=46))
    >>> bounds.accept[46], bounds.accept[45], bounds.reject[10]
    (0, -1, 5)
    """
    if limits.design is not None:
        return Bounds(cap=limits.cap, accept=limits.design.accept, reject=limits.design.reject)
    cutoff = limits.cutoff
    if cutoff is None:
        return None
    return Bounds(
        cap=limits.cap,
        accept=tuple(max(-1, n - cutoff) for n in range(limits.cap + 1)),
        reject=(limits.cap - cutoff + 1,) * (limits.cap + 1),
    )


def list_trials(record: RunRecord, finding: Finding) -> list[Trial]:
    """The trials that a finding counts, in their planned order, excused ones included."""
    mine = [
        trial
        for trial in record.trials
        if trial.experiment == finding.experiment and finding.input_id in (None, trial.input_id)
    ]
    mine.sort(key=lambda trial: trial.index)
    return mine[: (finding.intent_to_treat or finding.tally).trials]


def list_outcomes(record: RunRecord, finding: Finding) -> Sequence[bool]:
    """Whether each trial passed that the analysis counts, in their planned order."""
    leaves_out = record.plan.analysis is Analysis.PER_PROTOCOL
    skips_unjudged = leaves_out or procedure_of(finding).may_stop_early
    found = [(trial, trial.outcome(finding.criterion)) for trial in list_trials(record, finding)]
    return [
        outcome.passed
        for trial, outcome in found
        if not (leaves_out and trial.is_excused)
        and not (skips_unjudged and trial.is_unjudged(outcome))
    ]
