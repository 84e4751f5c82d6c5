"""What a table holds of each trial: how its criteria came out, how its call went, what it took."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason, Outcome, Trial
from trialwise.model.trial_lines import equal_fields

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


# --- What trials took, in columns that are made when a first trial tells something ----------------

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


# --- The scores of trials, in columns. A column is created when the first trial has a score -------


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


# --- A trial that was made from columns, and reads its texts back from the journal ----------------


class LineReader(Protocol):
    """Gives back what a journal holds."""

    def read(self, at: int) -> Mapping[str, Any]:
        """Return the record of the line that begins at a byte of the journal."""
        ...


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
        return equal_fields(self, other) if isinstance(other, Trial) else NotImplemented

    __hash__ = Trial.__hash__
