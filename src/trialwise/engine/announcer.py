"""Tells listeners what happens in a run; every driver uses it.

Events are imported when they are sent, so that a run without a listener loads nothing of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from trialwise.engine.run_state import RunOutcome, RunState
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial

if TYPE_CHECKING:
    from trialwise.engine.criterion_progress import Progress
    from trialwise.engine.run_events import Event, Listener, TrialDone


class Announcer:
    """Tells one listener about one run.

    Args:
        state: The state of the run.
        listener: Hears of every step; None where nobody listens.
    """

    def __init__(self, state: RunState, listener: Listener | None) -> None:
        self._state = state
        self._emit: Callable[[Event], None] | None = None
        self.is_heard = listener is not None
        """Whether anybody listens."""
        self._wants_trial: Callable[[int], bool] | None = None
        if listener is not None:
            self._emit = listener.on_event
            self._wants_trial = getattr(listener, "wants_trial", None)
        # Looked up once: importing takes a while even when it has been done.
        self._make_event: type[TrialDone] | None = None

    def tell_start(self, run_id: str, plan: Plan, resumed: int) -> None:
        """Tell that the run starts, and what trials from before a restart have decided.

        Args:
            run_id: The name of the run.
            plan: What is run.
            resumed: How many trials were in the journal.
        """
        if self._emit is None:
            return
        from trialwise.engine.run_events import CriterionDecided, RunStarted

        self._emit(RunStarted(run_id=run_id, plan=plan, resumed=resumed))
        for one in self._state.progress:
            if one.is_settled:
                self._emit(CriterionDecided(standing=one.standing(), stop=one.stop))

    def tell_trial(self, trial: Trial, settled: Sequence[Progress]) -> None:
        """Tell that a trial counts, and which criteria it settled."""
        if self._emit is None:
            return
        state = self._state
        wants = self._wants_trial
        if wants is not None and not settled and not wants(state.meter.trials):
            return
        if self._make_event is None:
            from trialwise.engine.run_events import TrialDone

            self._make_event = TrialDone
        self._emit(
            self._make_event(
                trial=trial,
                standings=tuple([one.standing() for one in state.progress]),
                spending=state.meter.spending(),
                in_flight=state.in_flight,
            )
        )
        for one in settled:
            from trialwise.engine.run_events import CriterionDecided

            self._emit(CriterionDecided(standing=one.standing(), stop=one.stop))

    def tell_end(self, outcome: RunOutcome) -> None:
        """Tell that no further trial will run."""
        if self._emit is None:
            return
        from trialwise.engine.run_events import RunEnded

        self._emit(RunEnded(stop=outcome.stop, spending=outcome.spending, message=outcome.message))
