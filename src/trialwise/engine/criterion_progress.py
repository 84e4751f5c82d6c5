"""How one criterion stands while trials come in: one stream, or one for every input."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from trialwise.model.evidence import StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision
from trialwise.procedures.composite import combine
from trialwise.procedures.criterion_rows import Stream
from trialwise.procedures.registry import find_procedure

if TYPE_CHECKING:
    from trialwise.engine.ports import CriterionStanding
    from trialwise.stats.sequential import SequentialDesign


class Progress:
    """A criterion's streams and what they say together.

    Args:
        plan: The criterion's.
        inputs: The inputs of the experiment.
        concurrency: Trials in flight at most.
    """

    def __init__(self, plan: CriterionPlan, *, inputs: int, concurrency: int) -> None:
        limits = plan.limits
        self.plan = plan
        self.each_input = plan.counting.each_input
        self.has_looks = bool(plan.judging.looks)
        """Whether it may be decided at looks, which need to know of trials without a reply."""
        self.streams = [Stream(limits) for _ in range(inputs if plan.counting.each_input else 1)]
        self.open_streams = len(self.streams)
        """Those that more trials can still change."""
        self._trials = 0
        self._failures = 0
        self._inputs = inputs
        # Looked up once, where somebody listens: importing takes a while even when it is done.
        self._make_standing: type[CriterionStanding] | None = None
        self._decision: Decision | None = None
        self.is_given_up = False
        """Whether the run no longer waits for it, because its judge does not answer."""
        # One input that is nearly decided must not hold up the others behind it in the order.
        self._horizon = None if plan.counting.each_input else Horizon.of(limits.design, concurrency)

    def add(self, index: int, position: int, passed: bool | None, place: int | None = None) -> bool:
        """Take one trial's outcome; True if that settled its stream.

        Args:
            index: The trial's place in the order of inputs.
            position: Its input's place in the list.
            passed: None for a trial that the analysis leaves out.
            place: Its place among the trials of its input, where the order does not say.
        """
        if self.each_input:
            place = index // self._inputs if place is None else place
            stream = self.streams[position]
            before = stream.trials, stream.failures
            has_settled = stream.add(place, passed)
            # Summed here and not when asked: there may be thousands of streams.
            self._trials += stream.trials - before[0]
            self._failures += stream.failures - before[1]
        else:
            has_settled = self.streams[0].add(index, passed)
        if has_settled:
            self.open_streams -= 1
        return has_settled

    def overturn(self, passed: bool | None) -> bool:
        """Turn a PASS that any failure of the run ends; True if this trial does so."""
        is_late = passed is False and self.plan.counting.counts_every_trial and self.is_settled
        if not is_late or self.decision is Decision.FAIL:
            return False
        self._decision = Decision.FAIL
        return True

    def mark_unheard(self, index: int) -> None:
        """Take note of a trial without anything that a judge could judge, before it is added."""
        self.streams[0].mark_unheard(index)

    @property
    def is_settled(self) -> bool:
        """Whether no further trial can change it."""
        return self.open_streams == 0

    @property
    def has_failed(self) -> bool:
        """Whether it is decided, and FAILs; where each input is, all of them are."""
        # Which of the inputs FAIL is what such a criterion is asked for.
        return self.is_settled and self.decision is Decision.FAIL

    def needs(self, position: int) -> bool:
        """Return whether a trial of an input could still change it."""
        return not self.streams[position if self.each_input else 0].is_settled

    def wants(self, index: int, position: int) -> bool:
        """Return whether a trial will probably be needed, as far as is known before it starts."""
        if not self.needs(position):
            return False
        return self._horizon is None or self._horizon.allows(self.streams[0], index)

    def standing(self) -> CriterionStanding:
        """Counts and decision, for listeners."""
        if self._make_standing is None:
            from trialwise.engine.ports import CriterionStanding

            self._make_standing = CriterionStanding
        trials, failures = self._trials, self._failures
        if not self.each_input:
            trials, failures = self.streams[0].trials, self.streams[0].failures
        return self._make_standing(
            criterion=self.plan.criterion,
            trials=trials,
            passed=trials - failures,
            planned=self.plan.trials * len(self.streams),
            decision=self.decision,
            has_rate=not find_procedure(self.plan.procedure).decides_mean,
        )

    @property
    def decision(self) -> Decision | None:
        """The decision over all streams, once each has one."""
        # Not before every stream is settled, and worked out once: there may be thousands of them.
        if self._decision is None and self.is_settled:
            known = [one.decision for one in self.streams if one.decision is not None]
            self._decision = combine(known) if len(known) == len(self.streams) else None
        return self._decision

    @property
    def stop(self) -> StopReason:
        """Why it needs no further trial, once it needs none."""
        early = any(
            one.decision is not None and one.next_place < one.limits.cap for one in self.streams
        )
        # One stream that stopped early is enough: the criterion did not need all its trials.
        if not early:
            return StopReason.COMPLETE
        limits = self.streams[0].limits
        sequential = limits.design is not None or bool(limits.looks)
        return StopReason.DECIDED if sequential else StopReason.CURTAILED


def combine_stops(stops: Collection[StopReason]) -> StopReason:
    """Return why a run ended: what cut it short, or how its first experiment ended.

    >>> combine_stops([StopReason.COMPLETE, StopReason.DECIDED])
    <StopReason.DECIDED: 'decided'>
    """
    for reason in stops:
        if reason.is_premature:
            return reason
    early = (StopReason.DECIDED, StopReason.CURTAILED)
    return next((one for one in early if one in stops), StopReason.COMPLETE)


#: Beyond this the recursion costs more than the few trials it saves of so many.
_LARGEST_CAP = 2_000


#: A horizon serves for this share of the concurrency, or of what is in flight where it holds back
#: a trial: so few results tell little that is new.
_FRESH_SHARE = 8


class Horizon:
    """How far ahead of its counted beginning a stream is worth feeding.

    Args:
        design: The stream's.
        concurrency: Trials in flight at most.
    """

    def __init__(self, design: SequentialDesign, concurrency: int) -> None:
        # Most runs have no horizon, and need not load what looks ahead.
        from trialwise.stats.sequential.concurrency import LIKELY_NEEDED, iterate_chances

        self._iterate, self._likely = iterate_chances, LIKELY_NEEDED
        self._design = design
        self._concurrency = concurrency
        # After how many results it was found, how far was looked, and the first place beyond it.
        self._results = -1
        self._window = 0
        self._until = 0

    @classmethod
    def of(cls, design: SequentialDesign | None, concurrency: int) -> Horizon | None:
        """None where every trial is to be started as soon as it can be."""
        if design is None or concurrency == 1 or design.cap > _LARGEST_CAP:
            return None
        return cls(design, concurrency)

    def allows(self, stream: Stream, place: int) -> bool:
        """Return whether the trial at a place of the stream will probably be needed."""
        window = self._concurrency
        # One slow trial must not hold up all that were issued after it.
        while window <= place - stream.next_place:
            window *= 2
        results = stream.next_place + len(stream.waiting)
        age = results - self._results
        others = place - results if place >= self._until else self._concurrency
        if (age and age * _FRESH_SHARE >= others) or window > self._window:
            self._results, self._window = results, window
            self._until = stream.next_place + self._count_wanted(stream, window)
        return place < self._until

    def _count_wanted(self, stream: Stream, window: int) -> int:
        """Count the places that will probably be needed, by all results that are in."""
        known = {place - stream.next_place: one for place, one in stream.waiting.items()}
        chances = self._iterate(self._design, stream.trials, stream.failures, (1.0, 1.0), known)
        return sum(1 for _ in takewhile(self._likely.__le__, islice(chances, window)))
