"""One criterion's stream of outcomes, decided in the order of inputs whatever order they arrive in.

A fast failure must not vote before a slow success that was issued earlier: the decision rests on
the gapless beginning of the order of inputs and on nothing after it.
"""

from __future__ import annotations

from trialwise.model.plan import Limits
from trialwise.model.verdict import Decision


class Stream:
    """Counts outcomes by their place in the order of inputs until its limits decide.

    >>> stream = Stream(Limits(cap=3, cutoff=2))
    >>> stream.add(1, passed=True), stream.decision   # trial 0 is still missing
    (False, None)
    >>> stream.add(0, passed=True), stream.decision
    (True, <Decision.PASS: 'PASS'>)
    """

    __slots__ = (
        "_first_unheard",
        "_next_look",
        "decision",
        "failures",
        "is_settled",
        "limits",
        "next_place",
        "trials",
        "waiting",
    )

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
        # Before so many trials nothing can be decided.
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
