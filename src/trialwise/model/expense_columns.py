"""What trials took, in columns that are made when a first trial tells something."""

from __future__ import annotations

import math
from array import array
from copy import copy
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trial import Trial

_AMOUNTS = ("cost_usd", "setup_s", "setup_cost_usd", "judging_cost_usd")
_USAGES = ("usage", "setup_usage", "judging_usage")
EXPENSES = frozenset({*_AMOUNTS, *_USAGES})
"""The fields of a trial that say what it took."""
#: One more than the largest number of tokens that a column holds.
_LARGEST = 1 << 63


class ExpenseColumns:
    """The money, the tokens and the preparation of each trial."""

    def __init__(self) -> None:
        # An amount has a column of its own, a usage one for each direction.
        self._columns: dict[str, array[Any]] = {}
        self.is_told = False
        """Whether any trial told what it took."""

    def put(self, trial: Trial, place: int, *, before: int) -> bool:
        """Hold what a trial took; False where no column holds it, and it is taken to tell nothing.

        Args:
            trial: As it completed.
            place: Where it stands among the others.
            before: How many others there are.
        """
        found: dict[str, float | int] = {}
        for name in _AMOUNTS:
            amount = getattr(trial, name)
            if amount is not None:
                found[name] = amount
        for name in _USAGES:
            usage = getattr(trial, name)
            if usage is not None:
                found |= {f"{name} in": usage.input_tokens, f"{name} out": usage.output_tokens}
        fits = all(-_LARGEST <= amount < _LARGEST for amount in found.values())
        if not fits:
            found = {}
        for name in found.keys() - self._columns.keys():
            self._columns[name] = _make_column(name) * before
            self.is_told = True
        for name, column in self._columns.items():
            column.insert(place, found.get(name, math.nan if name in _AMOUNTS else -1))
        return fits

    def find(self, name: str, place: int) -> float | Usage | None:
        """Return what one field of a trial says.

        Args:
            name: The field's.
            place: Where the trial stands among the others.
        """
        if name in _AMOUNTS:
            amount = self._columns[name][place] if name in self._columns else math.nan
            return None if math.isnan(amount) else amount
        sent = self._columns[f"{name} in"][place] if f"{name} in" in self._columns else -1
        if sent < 0:
            return None
        return Usage(input_tokens=sent, output_tokens=self._columns[f"{name} out"][place])

    def __copy__(self) -> ExpenseColumns:
        other = ExpenseColumns()
        other.is_told = self.is_told
        other._columns = {name: copy(column) for name, column in self._columns.items()}
        return other


def _make_column(name: str) -> array[Any]:
    return array("d", [math.nan]) if name in _AMOUNTS else array("q", [-1])
