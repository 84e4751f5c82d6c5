"""Not starting trials that will probably not be needed.

With many trials in flight, a sequential decision tends to fall while the last ones still run, and
those were paid for nothing. A trial is started only if the decision will more likely than not
still be open when its turn comes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.procedures.streams import Stream

if TYPE_CHECKING:
    from trialwise.stats.sequential import SequentialDesign

__all__ = ["Horizon"]

#: Beyond this the recursion costs more than the few trials it saves of so many.
_LARGEST_CAP = 2_000
#: A horizon serves for this share of the concurrency: so few results tell little that is new.
_FRESH_SHARE = 8


class Horizon:
    """How far ahead of its counted beginning a stream is worth feeding.

    Args:
        design: The stream's.
        concurrency: Trials in flight at most.
    """

    def __init__(self, design: SequentialDesign, concurrency: int) -> None:
        # Most runs have no horizon, and need not load what looks ahead.
        from trialwise.stats.sequential.concurrency import trials_to_start

        self._to_start = trials_to_start
        self._design = design
        self._concurrency = concurrency
        # Where it was found, how far was looked, and the first place beyond it.
        self._at = (-1, -1)
        self._window = 0
        self._until = 0

    @classmethod
    def of(cls, design: SequentialDesign | None, concurrency: int) -> Horizon | None:
        """None where every trial is to be started as soon as it can be."""
        if design is None or concurrency == 1 or design.cap > _LARGEST_CAP:
            return None
        return cls(design, concurrency)

    def allows(self, stream: Stream, place: int) -> bool:
        """Whether the trial at a place of the stream will probably be needed."""
        window = self._concurrency
        # One slow trial must not hold up all that were issued after it.
        while window <= place - stream.next_place:
            window *= 2
        here = (stream.next_place, stream.failures)
        if self._is_stale(here, place, window):
            self._at, self._window = here, window
            self._until = stream.next_place + self._to_start(
                self._design, stream.trials, stream.failures, 0, concurrency=window
            )
        return place < self._until

    def _is_stale(self, here: tuple[int, int], place: int, window: int) -> bool:
        if here == self._at and window <= self._window:
            return False
        age = here[0] - self._at[0]
        return place >= self._until or age * _FRESH_SHARE >= self._concurrency
