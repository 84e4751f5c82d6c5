"""The trials of a run in columns: a million of them take some 50 MB, where objects take 500.

What decisions, tallies and charts look at in every trial is held in columns: its index, its input,
how each criterion came out, its latency and what it took. Texts are not: a trial that stands in a
journal is read back from there when somebody asks for one. The first trials are held whole all the
same, so that nothing is read twice of a run of ordinary size.
"""

from __future__ import annotations

import math
import operator
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import compress, groupby
from typing import Any, overload

from trialwise.model.trial import CheckResult, ErrorClass, Outcome, Trial, grade_outcome
from trialwise.model.trial_columns import (
    EXPENSES,
    PLAIN,
    SIGN_NUMBERS,
    SIGNS,
    Course,
    ExpenseColumns,
    KeptTrial,
    LineReader,
    ScoreColumns,
)
from trialwise.model.trial_lines import PlainTrial, read_trial

#: Trials in so many first bytes of a journal are held whole: some 10,000 short ones.
WHOLE_BYTES = 1 << 21
#: So many combinations of outcomes are remembered: a run either has few, or all are its own.
_MOST_PATTERNS = 1000


#: What the line of a trial holds that came back and passed.
_PLAIN_KEYS = frozenset({"x", "i", "in", "seed", "ok", "latency_s", "at", "reply"})
#: No trial takes longer, or begins later.
_LONGEST_S = 1e12
#: Index, seed, place in the journal, latency, start, input, course, whether a criterion failed, and
#: which texts there are.
_ROW = struct.Struct("qqqddIHBB")
#: Which texts there are: a reply, tool calls, counts of a session.
_REPLY, _CALLS, _SHAPE = 1, 2, 4
_pack, _unpack, _WIDTH = _ROW.pack, _ROW.unpack_from, _ROW.size
#: One more than the largest whole number that a column holds.
_LARGEST = 1 << 63
_OPPOSITE = bytes([1, 0]).ljust(256, b"\0")


class TrialTable(Sequence[Trial]):
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
        self._all_passed = "1" * len(self.criteria)
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
        # One row after the other, in the order of inputs, and the numbers of its signs likewise.
        self._rows = bytearray()
        self._signs = bytearray()
        self._expenses = ExpenseColumns()
        self._scores = ScoreColumns()
        # Made with the first error.
        self._errors: array[int] | None = None

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
        index = trial.index
        if at is None or at < WHOLE_BYTES or self._reader is None:
            self._whole[index] = trial
        number = self._input_numbers.get(trial.input_id)
        if number is None:
            number = self._number_input(trial.input_id)
        if (
            type(trial) is PlainTrial
            and index > self.last
            and self._errors is None
            and not (self._expenses.is_told or self._scores.is_told)
        ):
            # Nearly all trials of most runs: nothing has to move, and no other column to grow.
            self.last = index
            latency_s, began_s = trial.latency_s, trial.started_s
            self._rows += _pack(
                index, trial.seed, at or 0, latency_s, began_s, number, 0, 0, _REPLY
            )
            self._signs += self._clear
        else:
            self._put_any(trial, at or 0, number)

    def _put_any(self, trial: Trial, at: int, number: int) -> None:
        """Hold whatever trial, whose input has a number."""
        index, latency_s = trial.index, trial.latency_s
        course, signs, fails, is_graded = 0, self._clear, False, False
        if trial.error_class is not ErrorClass.NONE or trial.attempts != 1 or trial.error:
            course = self._number_course(trial)
        # One tuple serves nearly all trials that passed.
        if trial.outcomes is not self._clear_outcomes:
            is_graded = any(one.result.score is not None for one in trial.outcomes)
            signs, fails = self._write_signs(trial, is_graded=is_graded)
        latency_s = math.nan if latency_s is None else latency_s
        texts = 0 if trial.reply is None else _REPLY
        if trial.tool_calls or trial.shape is not None:
            texts |= (_CALLS if trial.tool_calls else 0) | (0 if trial.shape is None else _SHAPE)
        rest = number, course, fails, texts
        try:
            row = _pack(index, trial.seed, at, latency_s, trial.started_s, *rest)
        except struct.error:  # a number that no column holds
            self._whole[index] = trial
            if not -_LARGEST <= index < _LARGEST:
                raise OverflowError(f"no trial has the index {index}") from None
            row = _pack(index, 0, at, math.nan, 0.0, *rest)
        place = len(self)
        if index > self.last:
            self.last = index
            self._rows += row
            self._signs += signs
        else:
            # Trials come nearly in order, so that little has to move.
            place, width = self._bisect(index), len(signs)
            self._rows[place * _WIDTH : place * _WIDTH] = row
            self._signs[place * width : place * width] = signs
        expenses = self._expenses
        tells = expenses.is_told or trial.has_expenses
        if tells and not expenses.put(trial, place, before=len(self) - 1):
            self._whole[index] = trial
        if is_graded or self._scores.is_told:
            width = len(self.criteria)
            self._scores.put(trial.outcomes[:width], place, before=len(self) - 1)
        if self._errors is not None or trial.error:
            self._put_error(trial.error, place)

    def put_line(self, line: Mapping[str, Any], at: int) -> bool:
        """Hold the trial of a journal's line without making it; False where it has to be made.

        Args:
            line: One that `write_trial` wrote.
            at: Where it begins in the journal.
        """
        # Nearly all trials of a long run are like this: an input that is known passed again.
        if at < WHOLE_BYTES or not line.keys() <= _PLAIN_KEYS or line["ok"] != self._all_passed:
            return False
        if self._expenses.is_told or self._errors is not None or self._scores.is_told:
            return False
        index, seed, started_s = line["i"], line["seed"], line.get("at", 0.0)
        latency_s, reply = line.get("latency_s", math.nan), line.get("reply", "")
        number = self._input_numbers.get(line["in"])
        is_known = number is not None and type(index) is type(seed) is int and index > self.last
        if not is_known or not type(latency_s) is type(started_s) is float:
            return False
        is_timed = 0 <= latency_s < _LONGEST_S or "latency_s" not in line
        if not is_timed or not -_LONGEST_S < started_s < _LONGEST_S or type(reply) is not str:
            return False
        texts = _REPLY if "reply" in line else 0
        try:
            row = _pack(index, seed, at, latency_s, started_s, number, 0, 0, texts)
        except struct.error:
            return False
        self.last = index
        self._rows += row
        self._signs += self._clear
        return True

    def _bisect(self, index: int) -> int:
        """Return the place of the first trial whose index is not smaller."""
        with memoryview(self._rows) as held, held.cast("q") as numbers:
            return bisect_left(range(len(self)), index, key=lambda k: numbers[k * (_WIDTH // 8)])

    def _number_input(self, name: str) -> int:
        number = self._input_numbers[name] = len(self.names)
        self.names.append(name)
        return number

    def _number_course(self, trial: Trial) -> int:
        course = Course(trial.error_class, trial.attempts, bool(trial.error))
        number = self._course_numbers.setdefault(course, len(self.courses))
        if number == len(self.courses):
            self.courses.append(course)
        return number

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

    def _put_error(self, error: str, place: int) -> None:
        # The texts may all differ; that two are the same is all that a count needs to know.
        if self._errors is None:
            self._errors = array("q", bytes(8 * (len(self) - 1)))
        self._errors.insert(place, hash(error) if error else 0)

    # --- Giving back --------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows) // _WIDTH

    @overload
    def __getitem__(self, place: int) -> Trial: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, place: int | slice) -> Trial | tuple[Trial, ...]:
        if isinstance(place, slice):
            return tuple(self._make(one) for one in range(len(self))[place])
        return self._make(range(len(self))[place])

    def __iter__(self) -> Iterator[Trial]:
        return map(self._make, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return equal_trials(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self):,} trials of {self.experiment!r}>"

    def find(self, index: int) -> int | None:
        """Return the place of the trial with an index; None where there is none."""
        # Where no trial is missing, a trial stands where its index says.
        if 0 <= index < len(self) and _unpack(self._rows, index * _WIDTH)[0] == index:
            return index
        place = self._bisect(index)
        is_found = place < len(self) and _unpack(self._rows, place * _WIDTH)[0] == index
        return place if is_found else None

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
        texts = self._rows[47::_WIDTH]
        return array("I", (place for place, one in enumerate(texts) if one & kinds))

    def read_signs(self, criterion: int) -> bytes:
        """Return how one criterion came out in each trial, as numbers of `SIGNS`."""
        return bytes(self._signs[criterion :: len(self.criteria) or 1])

    def read_scores(self, criterion: int) -> array[float] | None:
        """Return the score of each trial by one criterion; None where it grades none of them."""
        return self._scores.column(criterion)

    @property
    def indexes(self) -> array[int]:
        """The index of each trial."""
        return self._column("q", 0)

    @property
    def seeds(self) -> array[int]:
        """The seed of each trial."""
        return self._column("q", 8)

    @property
    def starts(self) -> array[float]:
        """When each trial began, in seconds since the run did."""
        return self._column("d", 32)

    @property
    def inputs(self) -> array[int]:
        """The input of each trial, as a number of `names`."""
        return self._column("I", 40)

    @property
    def course_column(self) -> array[int]:
        """How the call of each trial went, as a number of `courses`."""
        return self._column("H", 44)

    @property
    def fails(self) -> bytes:
        """1 for a trial that failed a criterion, else 0."""
        return bytes(self._rows[46::_WIDTH])

    @property
    def all_latencies(self) -> array[float]:
        """How long each trial took; not a number where there was no reply."""
        return self._column("d", 24)

    def latencies(self, *, passed: bool = False) -> array[float]:
        """Return the latencies of the trials that have one, or of those that passed all criteria.

        Args:
            passed: Whether only trials count that passed every criterion.
        """
        found: Iterable[float] = self.all_latencies
        if passed:
            found = compress(found, self.fails.translate(_OPPOSITE))
        return array("d", (one for one in found if not math.isnan(one)))

    def _column(self, kind: str, at: int) -> array[Any]:
        """Return one number of each row.

        Args:
            kind: Of the numbers, as `array` and `struct` know it.
            at: Where they begin in a row.
        """
        column: array[Any] = array(kind)
        size = column.itemsize
        with memoryview(self._rows) as held, held.cast(kind) as numbers:  # type: ignore[call-overload]
            column.frombytes(numbers[at // size :: _WIDTH // size].tobytes())
        return column

    def find_commonest_error(self, places: Iterable[int]) -> str:
        """Return the error that comes most often at some places, the first of several equals."""
        errors = self._errors
        if errors is None:
            return ""
        here = array("I", (place for place in places if errors[place]))
        # Sorted and not counted in a dict: there may be a million, and all different.
        sizes = [(len([*same]), key) for key, same in groupby(sorted(errors[k] for k in here))]
        if not sizes:
            return ""
        most = max(size for size, _ in sizes)
        common = {key for size, key in sizes if size == most}
        return self[next(place for place in here if errors[place] in common)].error

    def _make(self, place: int) -> Trial:
        index, seed, _, latency_s, started_s, number, way, *_ = _unpack(self._rows, place * _WIDTH)
        if index in self._whole:
            return self._whole[index]
        trial = KeptTrial.__new__(KeptTrial)
        trial.table = self
        trial.experiment = self.experiment
        trial.index = index
        trial.input_id = self.names[number]
        trial.seed = seed
        trial.latency_s = None if math.isnan(latency_s) else latency_s
        trial.started_s = started_s
        course = self.courses[way]
        trial.error_class, trial.attempts = course.error_class, course.attempts
        if not course.has_error:
            trial.error = ""
        width = len(self.criteria)
        is_clear = self._signs[place * width : place * width + width] == self._clear
        if is_clear and not self._scores.is_told:
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
        if name in EXPENSES:
            setattr(trial, name, self._expenses.find(name, place))
            return
        assert self._reader is not None
        line = self._reader.read(_unpack(self._rows, place * _WIDTH)[2])
        whole = read_trial(line, experiment=self.experiment, criteria=self.criteria)
        for field in Trial.__slots__:
            try:
                object.__getattribute__(trial, field)
            except AttributeError:
                setattr(trial, field, getattr(whole, field))

    @property
    def has_expenses(self) -> bool:
        """Whether any trial tells what it took."""
        return bool(self._expenses.is_told) or any(one.has_expenses for one in self._whole.values())

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


def equal_trials(ours: Sequence[Trial], theirs: object) -> bool:
    """Return whether a sequence holds the same trials as another."""
    if isinstance(theirs, str) or not isinstance(theirs, Sequence):
        return False
    return len(ours) == len(theirs) and all(map(operator.eq, ours, theirs))
