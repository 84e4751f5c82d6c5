"""Keeps track of the inputs that a `never_fails` criterion has not been tried on yet.

The other criteria may be decided after a few trials. A criterion that must never fail then goes on,
and only with inputs that it has not seen: they are all that can still change it.
"""

from __future__ import annotations

from collections.abc import Sequence

from trialwise.model.plan import CriterionPlan
from trialwise.model.trial import Trial


class UnaskedInputs:
    """The inputs without a counted trial, for every criterion that asks them all.

    Args:
        criteria: The criteria of an experiment, in the order of a trial's outcomes.
        inputs: How many inputs the experiment has.
    """

    def __init__(self, criteria: Sequence[CriterionPlan], inputs: int) -> None:
        self._open = {
            place: set(range(inputs))
            for place, one in enumerate(criteria)
            if one.counting.asks_every_input
        }
        self.is_kept = bool(self._open)
        """Whether any criterion asks every input, so that there is something to keep track of."""
        self._curtailed = {place for place in self._open if criteria[place].counting.curtailed}
        self._in_flight: set[int] = set()

    @property
    def is_empty(self) -> bool:
        """Whether no criterion waits for an input."""
        return not any(self._open.values())

    def needs(self, position: int) -> bool:
        """Return whether an input still needs a trial: it was not asked and is not being asked."""
        if position in self._in_flight:
            return False
        return any(position in waiting for waiting in self._open.values())

    def is_asking(self, position: int) -> bool:
        """Return whether a trial of an input is under way that some criterion waits for."""
        return position in self._in_flight and any(
            position in waiting for waiting in self._open.values()
        )

    def take(self, position: int) -> None:
        """Note that a trial of an input was started."""
        self._in_flight.add(position)

    def lose(self, position: int) -> None:
        """Note that a trial of an input will not come back."""
        self._in_flight.discard(position)

    def add_passed(self, position: int) -> None:
        """Count a trial of an input that was measured and passed everything."""
        self._in_flight.discard(position)
        for waiting in self._open.values():
            waiting.discard(position)

    def add(self, trial: Trial, position: int) -> None:
        """Count a trial; one that measured nothing has not asked its input.

        Args:
            trial: As it completed.
            position: The place of its input in the list.
        """
        self._in_flight.discard(position)
        for place, waiting in self._open.items():
            outcome = trial.outcomes[place]
            if trial.is_excused or trial.is_unjudged(outcome):
                continue
            waiting.discard(position)
            # One failure decides: no other input can make up for it.
            if not outcome.passed and place in self._curtailed:
                waiting.clear()
