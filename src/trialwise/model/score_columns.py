"""The scores of trials, in columns. A column is created when the first trial has a score."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from copy import copy

from trialwise.model.outcome import Outcome


class ScoreColumns:
    """Holds a column of scores for each criterion that gives scores."""

    def __init__(self) -> None:
        self._columns: dict[int, array[float]] = {}

    @property
    def is_told(self) -> bool:
        """Whether any trial has a score."""
        return bool(self._columns)

    def put(self, outcomes: Sequence[Outcome], place: int, *, before: int) -> None:
        """Hold the scores of a trial.

        Args:
            outcomes: What the criteria say of it, in their order.
            place: Where it stands among the others.
            before: How many others there are.
        """
        found = {k: one.result.score for k, one in enumerate(outcomes)}
        scores = {k: score for k, score in found.items() if score is not None}
        for k in scores.keys() - self._columns.keys():
            self._columns[k] = array("d", [math.nan]) * before
        for k, column in self._columns.items():
            column.insert(place, scores.get(k, math.nan))

    def column(self, criterion: int) -> array[float] | None:
        """Return the score of each trial by one criterion, not a number where it has none."""
        return self._columns.get(criterion)

    def at(self, place: int) -> dict[int, float]:
        """Return the scores of one trial, by the place of the criterion."""
        found = {k: column[place] for k, column in self._columns.items()}
        return {k: score for k, score in found.items() if not math.isnan(score)}

    def __copy__(self) -> ScoreColumns:
        other = ScoreColumns()
        other._columns = {k: copy(column) for k, column in self._columns.items()}
        return other
