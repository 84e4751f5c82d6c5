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
        *("_first_unheard", "_waiting", "decision", "failures", "limits", "next_place", "trials"),
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.trials = 0
        """Counted trials of the gapless beginning, up to the decision."""
        self.failures = 0
        self.next_place = 0
        """The first place whose outcome is not in."""
        self.decision: Decision | None = None
        self._waiting: dict[int, bool | None] = {}
        self._first_unheard: int | None = None

    @property
    def passed(self) -> int:
        """Successes among the counted trials."""
        return self.trials - self.failures

    @property
    def is_settled(self) -> bool:
        """Whether no further trial can change it: decided, or at its cap."""
        return self.decision is not None or self.trials >= self.limits.cap

    def add(self, place: int, *, passed: bool | None) -> bool:
        """Take one outcome; True if this settled the stream.

        Args:
            place: The trial's place in this stream's order of inputs, from 0.
            passed: None for a trial that the analysis leaves out.
        """
        # What comes after the decision cannot change it, or a lucky late trial could.
        # `is_settled` spelled out: this runs for every trial and criterion.
        if self.decision is not None or self.trials >= self.limits.cap:
            return False
        # Kept until the gap before it is filled: counting what is quick first would count failures
        # first where failing is quick, and stop on them.
        if place != self.next_place:
            self._waiting[place] = passed
            return False
        has_settled = self._count(passed)
        while self._waiting and not has_settled and self.next_place in self._waiting:
            has_settled = self._count(self._waiting.pop(self.next_place))
        return has_settled

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

    def _count(self, passed: bool | None) -> bool:
        """Count the outcome that is next in order; True if that settled the stream."""
        self.next_place += 1
        if passed is None:
            return False
        self.trials += 1
        self.failures += not passed
        self.decision = self.limits.decide(self.trials, self.failures)
        if self.limits.looks and self.decision is None:
            self.decision = self._look()
        return self.decision is not None or self.trials >= self.limits.cap
