"""How one criterion stands while trials come in: one stream, or one for every input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trialwise.engine.lookahead import Horizon
from trialwise.model.evidence import StopReason
from trialwise.model.plan import CriterionPlan
from trialwise.model.verdict import Decision
from trialwise.procedures.composite import combine
from trialwise.procedures.streams import Stream

if TYPE_CHECKING:
    from trialwise.engine.run_events import CriterionStanding

__all__ = ["Progress"]


class Progress:
    """A criterion's streams and what they say together.

    Args:
        plan: The criterion's.
        inputs: Of the experiment.
        concurrency: Trials in flight at most.
    """

    def __init__(self, plan: CriterionPlan, *, inputs: int, concurrency: int) -> None:
        limits = plan.limits
        self.plan = plan
        self.each_input = plan.each_input
        self.streams = [Stream(limits) for _ in range(inputs if plan.each_input else 1)]
        self.open_streams = len(self.streams)
        """Those that more trials can still change."""
        self._trials = 0
        self._failures = 0
        self._inputs = inputs
        self._decision: Decision | None = None
        # One input that is nearly decided must not hold up the others behind it in the order.
        self._horizon = None if plan.each_input else Horizon.of(limits.design, concurrency)

    def add(self, index: int, position: int, passed: bool | None) -> bool:
        """Take one trial's outcome; True if that settled its stream.

        Args:
            index: The trial's place in the order of inputs.
            position: Its input's place in the list.
            passed: None for a trial that the analysis leaves out.
        """
        if self.each_input:
            stream = self.streams[position]
            before = stream.trials, stream.failures
            has_settled = stream.add(index // self._inputs, passed=passed)
            # Summed here and not when asked: there may be thousands of streams.
            self._trials += stream.trials - before[0]
            self._failures += stream.failures - before[1]
        else:
            has_settled = self.streams[0].add(index, passed=passed)
        self.open_streams -= has_settled
        return has_settled

    @property
    def is_settled(self) -> bool:
        """Whether no further trial can change it."""
        return self.open_streams == 0

    def needs(self, position: int) -> bool:
        """Whether a trial of an input could still change it."""
        return not self.streams[position if self.each_input else 0].is_settled

    def wants(self, index: int, position: int) -> bool:
        """Whether a trial will probably be needed, as far as can be said before it starts."""
        if not self.needs(position):
            return False
        return self._horizon is None or self._horizon.allows(self.streams[0], index)

    def standing(self) -> CriterionStanding:
        """Counts and decision, for listeners."""
        from trialwise.engine.run_events import CriterionStanding

        trials, failures = self._trials, self._failures
        if not self.each_input:
            trials, failures = self.streams[0].trials, self.streams[0].failures
        return CriterionStanding(
            criterion=self.plan.criterion,
            trials=trials,
            passed=trials - failures,
            planned=self.plan.trials * len(self.streams),
            decision=self.decision,
        )

    @property
    def decision(self) -> Decision | None:
        """Of all streams together, once each has one."""
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
        sequential = self.streams[0].limits.design is not None
        return StopReason.DECIDED if sequential else StopReason.CURTAILED
