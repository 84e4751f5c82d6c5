"""The latencies of successful trials: those that passed every criterion that decides."""

from __future__ import annotations

from array import array
from collections.abc import Collection

from trialwise.model.trial_table import TrialTable


def list_latencies(trials: TrialTable, reported: Collection[str] = ()) -> array[float]:
    """List how long each successful trial took.

    Args:
        trials: The trials of one experiment.
        reported: Criteria that have no part in success, since they are only reported.
    """
    found = trials.latencies(passed=True)
    if reported:
        for trial in trials.sketches(trials.failing()):
            passes = all(one.passed for one in trial.outcomes if one.criterion not in reported)
            if passes and trial.latency_s is not None:
                found.append(trial.latency_s)
    return found
