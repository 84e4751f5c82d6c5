"""The trials of an experiment as one criterion sees them, in columns.

There may be a million trials and few kinds of them: what is asked of a trial is answered once for
each kind, and counting is left to the columns.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import NamedTuple, TypeVar, overload

from trialwise.model.plan import Limits
from trialwise.model.trial import EXCUSED, UNTESTABLE, Analysis, ErrorClass, Outcome, Trial
from trialwise.model.trial_columns import PASSES, SIGNS, Course, Sign
from trialwise.model.trial_table import TrialTable
from trialwise.model.verdict import Decision

T = TypeVar("T")


class Row(NamedTuple):
    """One kind of trial, as one criterion sees it."""

    sign: Sign
    """How the criterion came out."""
    course: Course
    """How the call went."""

    @property
    def passed(self) -> bool:
        """Whether the criterion passed."""
        return self.sign.reason is None

    @property
    def is_unjudged(self) -> bool:
        """Whether the service replied, and the criterion could not be measured."""
        return self.sign.error_class in EXCUSED and self.course.error_class not in EXCUSED

    @property
    def is_lost(self) -> bool:
        """Whether the call says nothing about the replies of the service."""
        return self.course.error_class in EXCUSED

    @property
    def is_excused(self) -> bool:
        """Whether the per-protocol analysis leaves it out."""
        return self.is_lost or self.is_unjudged

    def is_left_out(self, analysis: Analysis) -> bool:
        """Return whether an analysis leaves it out: it was not measured, or no judge judged it."""
        unjudged = self.is_unjudged and not analysis.counts_silence
        return unjudged or analysis.leaves_out(self.course.error_class)

    @property
    def is_unheard(self) -> bool:
        """Whether there was nothing that a judge could judge."""
        unread = self.is_untestable and not self.is_unjudged
        return self.course.error_class is not ErrorClass.NONE or unread

    @property
    def error_class(self) -> ErrorClass:
        """The trial's, or else the criterion's own."""
        of_trial = self.course.error_class
        return self.sign.error_class if of_trial is ErrorClass.NONE else of_trial

    @property
    def is_untestable(self) -> bool:
        """Whether it failed without reaching the condition."""
        return self.sign.reason in UNTESTABLE

    @property
    def needed_retry(self) -> bool:
        """Whether it passed, and only after an infrastructure error."""
        return self.course.attempts > 1 and self.passed


def sum_counts(counted: Iterable[tuple[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """Add up successes and trials under each name, in the order of their first."""
    found: dict[str, tuple[int, int]] = {}
    for name, (passed, trials) in counted:
        before, among = found.get(name, (0, 0))
        found[name] = before + passed, among + trials
    return found


class _Source:
    """The table that rows are of, and its columns."""

    def __init__(self, table: TrialTable, criterion: int) -> None:
        self.table = table
        self.criterion = criterion
        self._rows: dict[int, Row] = {}

    @cached_property
    def codes(self) -> bytes | array[int]:
        """For each trial a number that tells its course and its sign."""
        signs = self.table.read_signs(self.criterion)
        if len(self.table.courses) == 1:  # nearly always, and then the sign tells all
            return signs
        several = len(SIGNS)
        pairs = zip(self.table.course_column, signs, strict=True)
        return array("I", (course * several + sign for course, sign in pairs))

    def hold(self, codes: Iterable[int]) -> bytes | array[int]:
        """Return numbers of trials, held as those of all trials are."""
        return bytes(codes) if isinstance(self.codes, bytes) else array("I", codes)

    def row(self, code: int) -> Row:
        """Return the row that a number stands for."""
        found = self._rows.get(code)
        if found is None:
            course, sign = divmod(code, len(SIGNS))
            found = self._rows[code] = Row(SIGNS[sign], self.table.courses[course])
        return found


class Rows(Sequence[Row]):
    """Some trials of an experiment in the order of inputs, as one criterion sees them.

    Args:
        source: Their table.
        places: Where they stand in it.
        codes: What stands for each.
    """

    __slots__ = ("_counts", "_source", "codes", "places")

    def __init__(
        self, source: _Source, places: Sequence[int], codes: bytes | array[int] | None = None
    ) -> None:
        self._source = source
        self.places = places
        self.codes = source.codes if codes is None else codes
        self._counts: Mapping[int, int] | None = None

    @classmethod
    def of(cls, trials: Sequence[Trial], criterion: int = 0) -> Rows:
        """Return all trials of an experiment as one of its criteria sees them.

        Args:
            trials: The experiment's.
            criterion: The criterion's place among those of the experiment.
        """
        table = TrialTable.of(trials)
        return cls(_Source(table, criterion), range(len(table)))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Rows: ...
    def __getitem__(self, place: int | slice) -> Row | Rows:
        if isinstance(place, slice):
            return Rows(self._source, self.places[place], self.codes[place])
        return self._source.row(self.codes[place])

    def __iter__(self) -> Iterator[Row]:
        return map(self._source.row, self.codes)

    # --- By kind ------------------------------------------------------------------------------

    @property
    def kinds(self) -> Iterator[tuple[Row, int]]:
        """Every kind of trial that there is, with how many there are of it."""
        if self._counts is None:
            self._counts = Counter(self.codes)
        return ((self._source.row(code), count) for code, count in self._counts.items())

    def count(self, is_meant: Callable[[Row], bool]) -> int:
        """Count the trials of which something is true."""
        return sum(count for row, count in self.kinds if is_meant(row))

    @property
    def passed(self) -> int:
        """How many passed the criterion."""
        return sum(count for row, count in self.kinds if row.sign.reason is None)

    def keep(self, is_meant: Callable[[Row], bool]) -> Rows:
        """Return the trials of which something is true."""
        if all(is_meant(row) for row, _ in self.kinds):
            return self
        return self.select(self.mark(is_meant))

    def mark(self, is_meant: Callable[[Row], bool]) -> bytes:
        """Return 1 for each trial of which something is true, and 0 for the others."""
        return bytes(self.tell(is_meant))

    def tell(self, what: Callable[[Row], T]) -> Iterator[T]:
        """Yield for each trial what is said of its kind."""
        row = self._source.row
        known = {code: what(row(code)) for code in set(self.codes)}
        return map(known.__getitem__, self.codes)

    def select(self, marks: Sequence[int]) -> Rows:
        """Return the trials that are marked."""
        codes = self._source.hold(compress(self.codes, marks))
        return Rows(self._source, array("I", compress(self.places, marks)), codes)

    def let_pass(self, is_meant: Callable[[Row], bool]) -> Rows:
        """Return all trials, as if those had passed of which something is true."""
        source, kinds = self._source, set(self.codes)
        passing = {code: code - code % len(SIGNS) for code in kinds if is_meant(source.row(code))}
        codes = (passing.get(code, code) for code in self.codes)
        return Rows(source, self.places, source.hold(codes))

    # --- Trial by trial -----------------------------------------------------------------------

    @property
    def passes(self) -> bytes:
        """1 for each trial that passed the criterion, else 0."""
        if isinstance(self.codes, bytes):
            return self.codes.translate(PASSES)
        return self.mark(lambda row: row.passed)

    @property
    def scores(self) -> array[float]:
        """The score of each trial; without one, 1 for a pass and 0 for a failure."""
        known, passes = self._source.table.read_scores(self._source.criterion), self.passes
        if known is None:
            # Bytes would be taken for the memory of doubles.
            return array("d", map(float, passes))
        pairs = zip(map(known.__getitem__, self.places), passes, strict=True)
        return array("d", (passed if math.isnan(score) else score for score, passed in pairs))

    @property
    def indexes(self) -> Sequence[int]:
        """The index of each trial."""
        indexes = self._source.table.indexes
        return indexes if self._is_all else array("q", map(indexes.__getitem__, self.places))

    @property
    def _inputs(self) -> Sequence[int]:
        inputs = self._source.table.inputs
        return inputs if self._is_all else array("I", map(inputs.__getitem__, self.places))

    @property
    def _is_all(self) -> bool:
        return len(self) == len(self._source.table)

    @property
    def input_ids(self) -> set[str]:
        """The inputs that were tried."""
        return set(map(self._source.table.names.__getitem__, set(self._inputs)))

    def list_unasked(self, inputs: Iterable[str]) -> list[str]:
        """List the inputs without a trial that measured something, in their order."""
        asked = self.keep(lambda row: not row.is_excused).input_ids
        return [name for name in inputs if name not in asked]

    def tally_inputs(self) -> dict[str, tuple[int, int]]:
        """Return the successes and the trials of each input that was tried, in their order."""
        trials = Counter(self._inputs)
        passed = Counter(compress(self._inputs, self.passes))
        names = self._source.table.names
        return {names[one]: (passed[one], count) for one, count in trials.items()}

    def split(self, inputs: Sequence[str]) -> dict[str, Rows]:
        """Return the trials of each input.

        Args:
            inputs: All there are, tried or not.
        """
        found: dict[str, array[int]] = {name: array("I") for name in inputs}
        names = self._source.table.names
        for place, one in zip(self.places, self._inputs, strict=True):
            found[names[one]].append(place)
        source, code_at = self._source, self._source.codes.__getitem__
        return {
            name: Rows(source, places, source.hold(map(code_at, places)))
            for name, places in found.items()
        }

    def find_outcome(self, is_meant: Callable[[Row], bool]) -> Outcome | None:
        """Return the outcome of the first trial that meets a condition, with its texts."""
        place = next((k for k, row in zip(self.places, self, strict=True) if is_meant(row)), None)
        return None if place is None else self._source.table[place].outcomes[self._source.criterion]

    def find_commonest_error(self) -> str:
        """Return what went wrong most often with the calls, the first of several equals."""
        return self._source.table.find_commonest_error(self.places)


# One criterion's stream of outcomes, decided in the order of inputs whatever order they arrive
# in.
#
# A fast failure must not vote before a slow success that was issued earlier: the decision rests on
# the gapless beginning of the order of inputs and on nothing after it.


class Stream:
    """Counts outcomes by their place in the order of inputs until its limits decide.

    >>> stream = Stream(Limits(cap=3, cutoff=2))
    >>> stream.add(1, passed=True), stream.decision   # trial 0 is still missing
    (False, None)
    >>> stream.add(0, passed=True), stream.decision
    (True, <Decision.PASS: 'PASS'>)
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.trials = 0
        """Counted trials of the gapless beginning, up to the decision."""
        self.failures = 0
        self.next_place = 0
        """The first place whose outcome is not in."""
        self.decision: Decision | None = None
        self.is_settled = limits.cap <= 0
        """Whether no further trial can change it: decided, or at its cap."""
        self.waiting: dict[int, bool | None] = {}
        """Outcomes by their place that wait for an earlier one."""
        self._first_unheard: int | None = None
        # Before this many trials nothing can be decided.
        self._next_look = limits.next_look(0, 0)

    @property
    def passed(self) -> int:
        """Successes among the counted trials."""
        return self.trials - self.failures

    @property
    def has_gap(self) -> bool:
        """Whether it is open and has outcomes that wait for an earlier one."""
        return bool(self.waiting) and not self.is_settled

    def add(self, place: int, passed: bool | None) -> bool:
        """Take one outcome; True if this settled the stream.

        Args:
            place: The trial's place in this stream's order of inputs, from 0.
            passed: None for a trial that the analysis leaves out.
        """
        # What comes after the decision cannot change it, or a lucky late trial could.
        if self.is_settled:
            return False
        # Kept until the gap before it is filled: counting what is quick first would count failures
        # first where failing is quick, and stop on them.
        if place != self.next_place:
            self.waiting[place] = passed
            return False
        while True:
            self.next_place = place = place + 1
            if passed is not None:
                self.trials += 1
                if not passed:
                    self.failures += 1
                if self.trials >= self._next_look and self._decide():
                    return True
            if place not in self.waiting:
                return False
            passed = self.waiting.pop(place)

    def mark_unheard(self, place: int) -> None:
        """Take note of a trial without anything that a judge could judge, before it is added."""
        if self._first_unheard is None or place < self._first_unheard:
            self._first_unheard = place

    def _look(self) -> Decision | None:
        """Look at a judged rate, if a judge judged every trial so far.

        The counts of a look are those of judged replies. With others among them, the decision waits
        until all trials are in.
        """
        first = self._first_unheard
        if self.trials < self.next_place or (first is not None and first < self.next_place):
            return None
        return self.limits.decide_look(self.trials, self.failures)

    def skip(self, places: int, *, passed: int, failed: int) -> None:
        """Take the first outcomes together, which are too few to decide anything.

        Args:
            places: How many there are.
            passed: How many of them passed.
            failed: How many failed; the analysis leaves out the others.
        """
        self.next_place = places
        self.trials = passed + failed
        self.failures = failed

    def _decide(self) -> bool:
        """Look whether the counts decide; True if the stream is settled."""
        limits, trials, failures = self.limits, self.trials, self.failures
        self.decision = limits.decide(trials, failures)
        if limits.looks and self.decision is None:
            self.decision = self._look()
        self.is_settled = self.decision is not None or trials >= limits.cap
        if not self.is_settled:
            self._next_look = limits.next_look(trials, failures)
        return self.is_settled
