"""The trace that a page shows first: which one it is, and what it was chosen by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.documents.numbers import as_count, as_duration
from trialwise.model.metrics import RunStability, StabilityEvidence
from trialwise.model.run import RunRecord
from trialwise.model.trial import Trial

WORST = (
    "The worst trace comes first: the one that failed the most criteria; among equals the one with "
    "the lowest weakest stability score, where stability was measured; then the most failing "
    "calls, the longest session, the first started. It shows where to look, not what is usual."
)
"""The order, as the page says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A trial, and what makes its trace the worst."""

    trial: Trial
    weakest_score: float | None
    """The weakest score of its session; None where no stability was measured."""

    @property
    def reasons(self) -> Iterator[str]:
        """What it was chosen by, in this order."""
        outcomes = [one.passed for one in self.trial.outcomes]
        criteria = "criterion" if len(outcomes) == 1 else "criteria"
        yield f"{outcomes.count(False)} of {len(outcomes)} {criteria} failed"
        if self.weakest_score is not None:
            yield f"weakest stability score {self.weakest_score:.3f}"
        calls = as_count(_count_calls(self.trial), "call")
        yield f"{_count_failed_calls(self.trial.tool_calls)} of {calls} failed"
        if self.trial.latency_s is not None:
            yield f"took {as_duration(self.trial.latency_s)}"


def _count_failed_calls(calls: Iterable[Mapping[str, Any]]) -> int:
    """Count how many calls are known to have ended in an error.

    By that key alone: of all trials of a run, reading whole calls would take long.

    >>> _count_failed_calls([{"name": "a", "error": "no index"}, {"name": "a", "error": False}, {}])
    1
    """
    return sum(call.get("error") not in (None, False) for call in calls)


def find_worst_trace(record: RunRecord) -> Worst | None:
    """Find the worst of the trials that have a trace; None where none has one.

    Args:
        record: The run.
    """
    tables = record.trials.tables
    if not any(one.traced(calls=True) for one in tables):
        return None
    traced = (one[place] for one in tables for place in one.traced())
    scores = _map_stability(record)

    def rank(trial: Trial) -> tuple[float, ...]:
        run = scores.get((trial.experiment, trial.index))
        return (
            sum(not one.passed for one in trial.outcomes),
            0.0 if run is None else 1 - run.weakest_score,
            _count_failed_calls(trial.tool_calls),
            trial.latency_s or 0.0,
        )

    worst = max(traced, key=rank)
    run = scores.get((worst.experiment, worst.index))
    return Worst(trial=worst, weakest_score=None if run is None else run.weakest_score)


def _map_stability(record: RunRecord) -> Mapping[tuple[str, int], RunStability]:
    """Return the sub-scores of every trial whose session was measured, by experiment and index."""
    return {
        (gate.experiment, run.trial): run
        for gate in record.verdict.gates
        if isinstance(gate.evidence, StabilityEvidence)
        for run in gate.evidence.runs
    }


def _count_calls(trial: Trial) -> int:
    """As many as were made, also where the record keeps none of them."""
    if trial.tool_calls or trial.shape is None:
        return len(trial.tool_calls)
    return trial.shape.total_calls
