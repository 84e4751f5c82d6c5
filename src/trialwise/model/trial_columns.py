"""What a table holds of each trial: how its criteria came out, how its call went, its scores."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from copy import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trialwise.model.trial import ErrorClass, FailReason, Trial

if TYPE_CHECKING:
    from trialwise.model.trial_table import TrialTable


class Sign(NamedTuple):
    """How one criterion came out in one trial, without a text."""

    reason: FailReason | None
    """None where it passed."""
    error_class: ErrorClass
    has_others: bool
    """Whether the trial keeps results of further checks."""

    @property
    def passed(self) -> bool:
        """Whether every postcondition of the criterion held."""
        return self.reason is None


#: Every sign there is, by the number that stands for it; 0 is a criterion that simply passed.
SIGNS = tuple(
    Sign(reason, error_class, has_others)
    for has_others in (False, True)
    for reason in (None, *FailReason)
    for error_class in ErrorClass
)
SIGN_NUMBERS = {tuple(sign): number for number, sign in enumerate(SIGNS)}
#: By the number of a sign: 1 where the criterion passed, else 0.
PASSES = bytes(sign.passed for sign in SIGNS).ljust(256, b"\0")


class Course(NamedTuple):
    """How the call of one trial went, without a text."""

    error_class: ErrorClass
    attempts: int
    has_error: bool
    """Whether a text says what went wrong."""


PLAIN = Course(ErrorClass.NONE, 1, False)


EXPENSES = (
    *("usage", "cost_usd", "setup_s", "setup_usage", "setup_cost_usd", "judging_usage"),
    "judging_cost_usd",
)
"""The fields of a trial that say what it took."""


# --- What few trials have: columns that are made when a first trial has a number ----------------


class SparseColumns:
    """Numbers that not all trials have, in a column for each key."""

    def __init__(self) -> None:
        self._columns: dict[int, array[float]] = {}

    def __bool__(self) -> bool:
        return bool(self._columns)

    def put(self, numbers: Mapping[int, float], place: int, *, before: int) -> None:
        """Hold the numbers of a trial.

        Args:
            numbers: Those that it has.
            place: Where it stands among the others.
            before: How many others there are.
        """
        for key in numbers.keys() - self._columns.keys():
            self._columns[key] = array("d", [math.nan]) * before
        for key, column in self._columns.items():
            column.insert(place, numbers.get(key, math.nan))

    def column(self, key: int) -> array[float] | None:
        """Return one number of each trial, not a number where it has none."""
        return self._columns.get(key)

    def at(self, place: int) -> dict[int, float]:
        """Return the numbers of one trial."""
        found = {key: column[place] for key, column in self._columns.items()}
        return {key: number for key, number in found.items() if not math.isnan(number)}

    def __copy__(self) -> SparseColumns:
        other: SparseColumns = SparseColumns()
        other._columns = {key: copy(column) for key, column in self._columns.items()}
        return other


# --- A trial that was made from columns, and reads its texts back from the journal ----------------


_COMPARED = tuple(one.name for one in fields(Trial) if one.compare)


class LineReader(Protocol):
    """Gives back what a journal holds."""

    def read(self, at: int) -> Mapping[str, Any]:
        """Return the record of the line that begins at a byte of the journal."""


class KeptTrial(Trial):
    """A trial made from columns, whose texts are read when somebody asks for them."""

    __slots__ = ("table",)
    table: TrialTable
    """Knows what is not set."""

    if not TYPE_CHECKING:  # a type checker would take it to allow every name

        def __getattr__(self, name: str) -> Any:
            # Python asks here for a field that is not set, and for what there is not.
            if name not in Trial.__slots__:
                raise AttributeError(name)
            self.table.complete(self, name)
            return getattr(self, name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        # Dataclasses of two classes are never equal by themselves.
        return all(getattr(self, name) == getattr(other, name) for name in _COMPARED)

    __hash__ = Trial.__hash__
