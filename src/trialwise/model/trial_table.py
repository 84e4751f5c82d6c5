"""The trials of a run in columns: a million of them take some 50 MB, where objects take 500.

What decisions, tallies and charts look at in every trial is held in columns: its index, its input,
how each criterion came out, its latency and what it took. Texts are not: a trial that stands in a
journal is read back from there when somebody asks for one. The first trials are held whole all the
same, so that nothing is read twice of a run of ordinary size.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import compress, groupby
from typing import TypeVar, overload

from trialwise.model.trial import CheckResult, Outcome, Trial, grade_outcome
from trialwise.model.trial_columns import (
    EXPENSES,
    PLAIN,
    SIGN_NUMBERS,
    SIGNS,
    Course,
    KeptTrial,
    LineReader,
    SparseColumns,
)
from trialwise.model.trial_lines import read_trial

#: Trials in this many first bytes of a journal are held whole: some 10,000 short ones.
WHOLE_BYTES = 1 << 21
#: So many combinations of outcomes are remembered: a run either has few, or all are its own.
_MOST_PATTERNS = 1000


#: Which texts there are: a reply, tool calls, counts of a session.
_REPLY, _CALLS, _SHAPE = 1, 2, 4
#: One more than the largest whole number that a column holds.
_LARGEST = 1 << 63
_OPPOSITE = bytes([1, 0]).ljust(256, b"\0")

T = TypeVar("T")


class TrialSequence(Sequence[Trial]):
    """Trials that are found by their place, and are equal to any sequence of the same trials."""

    @abstractmethod
    def _make(self, place: int) -> Trial:
        """Return the trial at a place from 0."""

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, place: int | slice) -> Trial | tuple[Trial, ...]:
        if isinstance(place, slice):
            return tuple(map(self._make, range(len(self))[place]))
        return self._make(range(len(self))[place])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or not isinstance(other, Sequence):
            return False
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


class TrialTable(TrialSequence):
    """The trials of one experiment, in the order of inputs.

    Args:
        experiment: Its name.
        criteria: Its criteria, in the order of a trial's outcomes.
        reader: Reads trials back by where they stand; None holds every trial whole.
    """

    def __init__(
        self, experiment: str, criteria: Sequence[str], reader: LineReader | None = None
    ) -> None:
        self.experiment = experiment
        self.criteria = tuple(criteria)
        self._reader = reader
        self._clear = bytes(len(self.criteria))
        self._clear_outcomes: tuple[Outcome, ...] | None = None
        self.is_sealed = False
        """Whether somebody has it who counts on it: a run then adds its trials to a copy."""
        self._whole: dict[int, Trial] = {}
        self.last: float = -math.inf
        """The largest index."""
        self.misfits: list[int] = []
        """Trials with other outcomes than the criteria ask for, by their index."""
        self.names: list[str] = []
        """The inputs that were asked, by the number that stands for each."""
        self._input_numbers: dict[str, int] = {}
        self.courses: list[Course] = [PLAIN]
        """How calls went, by the number that stands for each."""
        self._course_numbers = {PLAIN: 0}
        self._patterns: dict[bytes, tuple[Outcome, ...]] = {}
        # A number of each trial in every column, in the order of inputs.
        self.indexes = array("q")
        """The index of each trial."""
        self.seeds = array("q")
        """The seed of each trial."""
        self._begins = array("q")  # where its line begins in the journal
        self.all_latencies = array("d")
        """How long each trial took; not a number where there was no reply."""
        self.starts = array("d")
        """When each trial began, in seconds since the run did."""
        self.inputs = array("I")
        """The input of each trial, as a number of `names`."""
        self.course_column = array("H")
        """How the call of each trial went, as a number of `courses`."""
        self.fails = bytearray()
        """1 for a trial that failed a criterion, else 0."""
        self._texts = bytearray()
        # The texts of errors may all differ; that two are the same is all that a count needs.
        self._errors = array("q")
        self._signs = bytearray()  # as many for each trial as there are criteria
        self.has_expenses = False
        """Whether any trial tells what it took."""
        self._scores = SparseColumns()

    @classmethod
    def of(
        cls, trials: Sequence[Trial], experiment: str = "", criteria: Sequence[str] = ()
    ) -> TrialTable:
        """Hold trials of one experiment that are in memory already.

        Args:
            trials: In any order.
            experiment: Its name, where there may be no trial.
            criteria: Its criteria, where there may be no trial.
        """
        if isinstance(trials, TrialTable) and (trials or trials.criteria or not criteria):
            return trials
        first = next(iter(trials), None)
        if first is not None and not criteria:
            experiment, criteria = first.experiment, [one.criterion for one in first.outcomes]
        table = cls(experiment, criteria)
        for trial in sorted(trials, key=lambda one: one.index):
            table.put(trial)
        return table

    def copy(self) -> TrialTable:
        """Return a table of the same trials, to which others can be added."""
        table = TrialTable(self.experiment, self.criteria, self._reader)
        for name, held in vars(self).items():
            is_shared = isinstance(held, str | tuple | bytes | float) or held is self._reader
            setattr(table, name, held if is_shared else copy(held))
        table.is_sealed = False
        return table

    # --- Holding ------------------------------------------------------------------------------

    def put(self, trial: Trial, at: int | None = None) -> None:
        """Hold a trial at its place in the order of inputs.

        Args:
            trial: It has completed.
            at: Where it begins in the journal; None where it cannot be read back.
        """
        index, seed, outcomes = trial.index, trial.seed, trial.outcomes
        if not -_LARGEST <= index < _LARGEST:
            raise OverflowError(f"no trial has the index {index}")
        if at is None or at < WHOLE_BYTES or self._reader is None:
            self._whole[index] = trial
        if not -_LARGEST <= seed < _LARGEST:  # a number that no column holds
            self._whole[index], seed = trial, 0
        course, signs, fails, is_graded, texts = 0, self._clear, False, False, _REPLY
        if not trial.is_plain:
            way = Course(trial.error_class, trial.attempts, bool(trial.error))
            course = _number(way, self._course_numbers, self.courses)
            texts = 0 if trial.reply is None else _REPLY
            texts |= (_CALLS if trial.tool_calls else 0) | (0 if trial.shape is None else _SHAPE)
        # One tuple serves nearly all trials that passed.
        if outcomes is not self._clear_outcomes:
            is_graded = any(one.result.score is not None for one in outcomes)
            signs, fails = self._write_signs(trial, is_graded=is_graded)
        latency_s = math.nan if trial.latency_s is None else trial.latency_s
        number = _number(trial.input_id, self._input_numbers, self.names)
        place = len(self.indexes)
        if index > self.last:
            self.last = index
        else:
            # Trials come nearly in order, so that little has to move.
            place = bisect_left(self.indexes, index)
        # One by one, since this runs for every trial: looking the columns up by name takes longer.
        self.indexes.insert(place, index)
        self.seeds.insert(place, seed)
        self._begins.insert(place, at or 0)
        self.all_latencies.insert(place, latency_s)
        self.starts.insert(place, trial.started_s)
        self.inputs.insert(place, number)
        self.course_column.insert(place, course)
        self.fails.insert(place, fails)
        self._texts.insert(place, texts)
        width = len(signs)
        self._signs[place * width : place * width] = signs
        self._errors.insert(place, hash(trial.error) if trial.error else 0)
        self.has_expenses |= not trial.is_plain and trial.has_expenses
        if is_graded or self._scores:
            scores = {k: one.result.score for k, one in enumerate(outcomes[:width])}
            told = {k: score for k, score in scores.items() if score is not None}
            self._scores.put(told, place, before=len(self) - 1)

    def _write_signs(self, trial: Trial, *, is_graded: bool) -> tuple[bytes, bool]:
        """Return the number of each outcome's sign, and whether a criterion failed."""
        signs = bytes(
            SIGN_NUMBERS[one.result.reason, one.error_class, bool(one.others)]
            for one in trial.outcomes
        )
        width = len(self.criteria)
        if len(signs) != width:  # no trial of this plan, which somebody else will say
            self._whole[trial.index] = trial
            self.misfits.append(trial.index)
        elif signs == self._clear and not is_graded:
            self._clear_outcomes = trial.outcomes
        return signs[:width].ljust(width, b"\0"), not trial.passed

    # --- Giving back --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.indexes)

    def __iter__(self) -> Iterator[Trial]:
        return map(self._make, range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self):,} trials of {self.experiment!r}>"

    def find(self, index: int) -> int | None:
        """Return the place of the trial with an index; None where there is none."""
        # Where no trial is missing, a trial stands where its index says.
        if 0 <= index < len(self) and self.indexes[index] == index:
            return index
        place = bisect_left(self.indexes, index)
        return place if place < len(self) and self.indexes[place] == index else None

    def sketch(self, place: int) -> Trial:
        """Return a trial whose outcomes have no texts, without reading any.

        All else that it is asked for is as it was: what no column holds is read when it is asked.
        """
        width = len(self.criteria)
        signs = bytes(self._signs[place * width : place * width + width])
        trial = self._make(place)
        if trial.index in self._whole:
            return trial
        scores = self._scores.at(place)
        if scores or signs != self._clear:
            outcomes = self._sketch_outcomes(signs)
            trial.outcomes = tuple(
                grade_outcome(one, scores[k]) if k in scores else one
                for k, one in enumerate(outcomes)
            )
        return trial

    def sketches(self, places: Iterable[int] | None = None) -> Iterator[Trial]:
        """Yield the sketch of each trial, or of those at some places."""
        return map(self.sketch, range(len(self)) if places is None else places)

    def failing(self) -> Sequence[int]:
        """Return the places of the trials that failed a criterion."""
        return array("I", compress(range(len(self)), self.fails))

    def list_notable(self) -> bytes:
        """Return 0 for each trial that came back at once and passed all, and 1 for others."""
        width, clear, signs = len(self._clear), self._clear, self._signs
        return bytes(
            course != 0 or signs[k * width : k * width + width] != clear
            for k, course in enumerate(self.course_column)
        )

    @property
    def held_whole(self) -> Iterable[Trial]:
        """The trials that are held whole, in no order."""
        return self._whole.values()

    def answered(self) -> Sequence[int]:
        """Return the places of the trials whose reply is kept."""
        return self._find_texts(_REPLY)

    def traced(self, *, calls: bool = False) -> Sequence[int]:
        """Return the places of the trials that tell of their session.

        Args:
            calls: Whether only those with tool calls are meant.
        """
        return self._find_texts(_CALLS if calls else _CALLS | _SHAPE)

    def _find_texts(self, kinds: int) -> Sequence[int]:
        return array("I", (place for place, one in enumerate(self._texts) if one & kinds))

    def read_signs(self, criterion: int) -> bytes:
        """Return how one criterion came out in each trial, as numbers of `SIGNS`."""
        return bytes(self._signs[criterion :: len(self.criteria) or 1])

    def read_scores(self, criterion: int) -> array[float] | None:
        """Return the score of each trial by one criterion; None where it grades none of them."""
        return self._scores.column(criterion)

    def latencies(self, *, passed: bool = False) -> array[float]:
        """Return the latencies of the trials that have one, or of those that passed all criteria.

        Args:
            passed: Whether only trials count that passed every criterion.
        """
        found: Iterable[float] = self.all_latencies
        if passed:
            found = compress(found, self.fails.translate(_OPPOSITE))
        return array("d", (one for one in found if not math.isnan(one)))

    def find_commonest_error(self, places: Iterable[int]) -> str:
        """Return the error that comes most often at some places, the first of several equals."""
        errors = self._errors
        here = array("I", (place for place in places if errors[place]))
        # Sorted and not counted in a dict: there may be a million, and all different.
        sizes = [(len([*same]), key) for key, same in groupby(sorted(errors[k] for k in here))]
        if not sizes:
            return ""
        most = max(size for size, _ in sizes)
        common = {key for size, key in sizes if size == most}
        return self[next(place for place in here if errors[place] in common)].error

    def _make(self, place: int) -> Trial:
        index, latency_s = self.indexes[place], self.all_latencies[place]
        if index in self._whole:
            return self._whole[index]
        trial = KeptTrial.__new__(KeptTrial)
        trial.table = self
        trial.experiment = self.experiment
        trial.index = index
        trial.input_id = self.names[self.inputs[place]]
        trial.seed = self.seeds[place]
        trial.latency_s = None if math.isnan(latency_s) else latency_s
        trial.started_s = self.starts[place]
        trial.is_plain = False
        course = self.courses[self.course_column[place]]
        trial.error_class, trial.attempts = course.error_class, course.attempts
        if not course.has_error:
            trial.error = ""
        width = len(self.criteria)
        is_clear = self._signs[place * width : place * width + width] == self._clear
        if is_clear and not self._scores:
            trial.outcomes = self._sketch_outcomes(self._clear)
        return trial

    def complete(self, trial: Trial, name: str) -> None:
        """Give a trial that was made from columns what it is asked for, and what comes with it.

        Args:
            trial: Made here.
            name: A field of it that is not set.
        """
        place = self.find(trial.index)
        assert place is not None
        assert self._reader is not None
        line = self._reader.read(self._begins[place])
        whole = read_trial(line, experiment=self.experiment, criteria=self.criteria)
        # What it took is asked of many trials at once, which must not come to hold their texts.
        for field in EXPENSES if name in EXPENSES else Trial.__slots__:
            try:
                object.__getattribute__(trial, field)
            except AttributeError:
                setattr(trial, field, getattr(whole, field))

    def _sketch_outcomes(self, signs: bytes) -> tuple[Outcome, ...]:
        known = self._patterns.get(signs)
        if known is None:
            known = tuple(
                Outcome(
                    criterion=name,
                    result=CheckResult(passed=SIGNS[one].passed, reason=SIGNS[one].reason),
                    error_class=SIGNS[one].error_class,
                )
                for name, one in zip(self.criteria, signs, strict=True)
            )
            if len(self._patterns) < _MOST_PATTERNS:
                self._patterns[signs] = known
        return known


def _number(one: T, numbers: dict[T, int], listed: list[T]) -> int:
    """Return the number that stands for something; what is new is listed and gets the next."""
    number = numbers.setdefault(one, len(listed))
    if number == len(listed):
        listed.append(one)
    return number
