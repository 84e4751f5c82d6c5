"""What a gate's parts share: the runs of each input, and a number with its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from trialwise.model.trial import Trial
from trialwise.stats.result_types import Interval, Undefined

__all__ = ["Measured", "Runs", "outcomes_of"]

Runs: TypeAlias = Mapping[str, Sequence[Trial]]
"""The runs that count, by input, in issue order; an input without any has none."""


class Measured(NamedTuple):
    """A target's number."""

    value: float | Undefined
    interval: Interval | Undefined


def outcomes_of(runs: Sequence[Trial], criteria: Sequence[str]) -> list[bool]:
    """Whether each run passed all of some criteria."""
    return [all(trial.outcome(name).passed for name in criteria) for trial in runs]
