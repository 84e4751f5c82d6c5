"""What a comparison knows of itself: which arm is asked next, and when nothing is left to ask.

A round is one place in the order of inputs: every arm that takes part gets the same input and seed.
The trials of a round start next to each other, in an order that the seed chooses, and no round
starts before every trial of the round ahead has started. So what changes with time affects all arms
alike. Like `run_state`, nothing here waits, calls a service or writes a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Protocol

from trialwise.engine import run_state
from trialwise.engine.criterion_progress import derive_seed
from trialwise.engine.experiment_state import ExperimentState
from trialwise.engine.spending_meter import Meter
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial

_OTHER_ENDED = "another arm of the comparison ended, and a trial without a partner compares nothing"


class RoundSchedule(Protocol):
    """Says which arms are still asked, and hears of every trial.

    Trials come in any order. A schedule that decides must look at rounds in the order of inputs,
    without gaps; then neither concurrency nor a restart changes what it decides.
    """

    is_fixed: bool
    """Whether it only listens: every planned round asks all arms, and none ends the comparison."""

    def add(self, arm: int, trial: Trial) -> None:
        """Take note of a completed trial, also of one from before a restart.

        Args:
            arm: The place of its arm.
            trial: It is durable.
        """

    def takes_part(self, arm: int, experiment: str, index: int) -> bool:
        """Return whether an arm is asked in a round; once it is not, it is not asked again.

        Args:
            arm: The place of the arm.
            experiment: The name of the experiment.
            index: The place of the round in the order of inputs.
        """

    def is_decided(self, experiment: str) -> bool:
        """Return whether no further round of an experiment is needed, so that it ends now."""


class ArmsState:
    """The arms of a comparison in step, experiment by experiment, round by round.

    The protocol for a driver is that of `RunState`.

    Args:
        states: The states of the arms' runs, whose plans have one seed. They share `meter`.
        plans: The arms' plans; concurrency and rate are those of the first.
        meter: What all arms take together, and their common budget.
        pacers: For every arm what limits its rate; arms of one service share one.
        schedule: Which arms are still asked; one that is fixed, or none, asks all of them in every
            planned round, and asks the input of a trial again that was not measured.
    """

    def __init__(
        self,
        states: Sequence[run_state.RunState],
        plans: Sequence[Plan],
        *,
        meter: Meter,
        pacers: Sequence[run_state.Pacer | None],
        schedule: RoundSchedule | None = None,
    ) -> None:
        self.states = states
        self.meter = meter
        self._pacers = pacers
        self._schedule = schedule
        # One that is fixed only listens.
        self._leads = None if schedule is None or schedule.is_fixed else schedule
        self._seed = plans[0].seed
        self.concurrency = plans[0].options.concurrency
        """How many trials are under way at once, of all arms together."""
        # Arms may have criteria, and so experiments, that others do not have.
        self._names = list(dict.fromkeys(one.name for plan in plans for one in plan.experiments))
        self._place = -1
        self._current: list[ExperimentState | None] = []
        self._index = -1
        self._waiting: deque[int] = deque()
        self._has_begun = False
        self._reason: StopReason | None = None
        if schedule is not None:
            _replay(states, schedule)
        self._advance()

    @property
    def in_flight(self) -> int:
        """How many trials were started and have not come back."""
        return sum(one.in_flight for one in self.states)

    @property
    def is_over(self) -> bool:
        """Whether no further trial will be started."""
        return self._reason is not None or self._place >= len(self._names)

    @property
    def lets_go(self) -> bool:
        """Whether no result of what is in flight is needed, so that a driver may cancel it."""
        if self._reason is not None:
            return self._reason not in run_state.BUDGETS
        return not self.is_over and self._is_decided

    @property
    def _is_decided(self) -> bool:
        return self._leads is not None and self._leads.is_decided(self._names[self._place])

    def next(self) -> run_state.TrialStart | run_state.Pause | None:
        """Return the trial to start now; None where none may start before another completes."""
        while not self.is_over:
            in_flight = self.in_flight
            if in_flight >= self.concurrency:
                return None
            if self._is_decided or not (self._waiting or self._begin_round()):
                # The last trials may still decide, or have to be asked again.
                if in_flight:
                    return None
                self._advance()
                continue
            arm = self._waiting[0]
            may_start, pause = self._ask_limits(arm, in_flight)
            if not may_start:
                return pause
            self._waiting.popleft()
            self._has_begun = True
            start = self.states[arm].start(self._index)
            start.arm = arm
            return start
        return None

    def _begin_round(self) -> bool:
        """Line up the arms of the next round; False where there is none as things stand."""
        while self._index + 1 < self._count_rounds():
            self._index += 1
            arms = [arm for arm in range(len(self.states)) if self._is_asked(arm)]
            if arms:
                name = self._names[self._place]
                # A fixed order would give one arm the warm cache of the other in every round.
                Random(derive_seed("arms", self._seed, f"{name}/{self._index}")).shuffle(arms)
                self._waiting.extend(arms)
                self._has_begun = False
                return True
        return False

    def _count_rounds(self) -> int:
        # A schedule leaves out what was not measured and goes on with the next round. Without one
        # the size is fixed, so that the input is asked again at the end.
        asked = [one for one in self._current if one is not None]
        return max(one.planned if self._leads is not None else len(one.order) for one in asked)

    def _is_asked(self, arm: int) -> bool:
        experiment, index = self._current[arm], self._index
        if experiment is None or index >= len(experiment.order):
            return False
        # A resumed comparison has some trials of a round already, and asks only the missing arms.
        if index <= experiment.trials.last and experiment.trials.find(index) is not None:
            return False
        leads = self._leads
        return leads is None or leads.takes_part(arm, self._names[self._place], index)

    def _ask_limits(self, arm: int, in_flight: int) -> tuple[bool, run_state.Pause | None]:
        """Return whether a trial may start now, and when to ask again; a used up limit stops."""
        # A round starts where there is room for all of it: a trial without a partner compares
        # nothing.
        together = 1 if self._has_begun else len(self._waiting)
        limits = self.meter, self._pacers[arm], None, in_flight
        return run_state.ask_limits(*limits, stop=self.stop, together=together)

    def _advance(self) -> None:
        """Turn to the next experiment."""
        self._place += 1
        self._index = -1
        self._waiting.clear()
        if self._place < len(self._names):
            self._current = [one.enter(self._names[self._place]) for one in self.states]
            return
        # Every arm says why it needs no further trial.
        for one in self.states if self._reason is None else ():
            ran_all = all(each.planned <= len(each.trials) for each in one.experiments)
            one.stop(StopReason.COMPLETE if ran_all else StopReason.DECIDED, "")

    def note(self, arm: int, trial: Trial | None) -> None:
        """Take note of a trial that its arm's own state has counted; an arm that ended ends all.

        Args:
            arm: The place of its arm.
            trial: It is durable; None where it does not count.
        """
        if trial is not None and self._schedule is not None:
            self._schedule.add(arm, trial)
        reason = self.states[arm].stop_reason
        if reason is not None:
            # The others are not at fault: what they have is kept, and no verdict is given. Going on
            # with the arms that are left would make pairs of one arm.
            self._end(reason, _OTHER_ENDED, StopReason.SERVICE)

    def let_go(self) -> None:
        """Note that nothing in flight will be counted; an experiment that is decided ends here."""
        for one in self.states:
            one.let_go()
        if self.is_over:
            return
        if not self._is_decided:
            # Rounds of which a trial was lost are begun again.
            self._place -= 1
        self._advance()

    def stop(self, reason: StopReason, message: str) -> None:
        """End all arms before their plan; the first reason stays."""
        self._end(reason, message, reason)

    def _end(self, reason: StopReason, message: str, others: StopReason) -> None:
        if self._reason is None:
            self._reason = reason
            for one in self.states:
                one.stop(others, message)


def _replay(states: Sequence[run_state.RunState], schedule: RoundSchedule) -> None:
    """Tell a schedule of the trials from before a restart."""
    for arm, state in enumerate(states):
        for experiment in state.experiments:
            for trial in experiment.trials.sketches():
                schedule.add(arm, trial)
