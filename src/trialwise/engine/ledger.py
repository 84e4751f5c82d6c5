"""The log of a run: every trial is in it before it counts, and safe from a power cut soon after."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trialwise.engine.criterion_progress import Progress
from trialwise.engine.excerpts import TextKeeper
from trialwise.engine.ports import Clock, TrialLog
from trialwise.engine.run_state import RunState
from trialwise.model.evidence import StopReason
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial
from trialwise.model.trial_lines import spell_trial

#: At most so much of a run is lost to a power cut; waiting for the disk after every trial would
#: cost more than most trials do.
_SYNC_EVERY_S = 0.02


class Ledger:
    """Counts trials for every driver: first the log, then the run's state.

    A log that cannot be written ends the run. Trials that are not durable must not count, since a
    resumed run would decide without them.

    Args:
        state: The run's.
        log: Where trials are kept; None keeps nothing.
        clock: Times the syncs.
        keeper: Keeps the texts that trials name; None keeps none.
    """

    def __init__(
        self,
        state: RunState,
        log: TrialLog | None,
        clock: Clock,
        keeper: TextKeeper | None = None,
    ) -> None:
        self._state = state
        self._log = log
        self._keeper = keeper
        self._clock = clock
        self._synced_s = clock.monotonic()
        self._is_behind = False
        self.due_s = math.inf
        """When the next sync is due, by the clock."""

    def count(self, trial: Trial, given: Input | None = None) -> Sequence[Progress] | None:
        """Make a trial survive the death of this process, then count it.

        Args:
            trial: It has ended.
            given: Its input; None where there is none to show.

        Returns:
            The criteria that it settled; None where it could not be written and does not count.
        """
        at: int | None = None
        log = self._log
        try:
            if self._keeper is not None:
                self._keeper.keep(trial, given)
            if log is not None:
                # Before it counts: after a kill the journal holds at least what was decided on.
                at = log.append_text(spell_trial(trial))
        except OSError as error:
            self._fail(error)
            return None
        if not self._is_behind and log is not None:
            # Written is enough to survive a kill; only a power cut can take it until the sync.
            self._is_behind = True
            self.due_s = self._synced_s + _SYNC_EVERY_S
        return self._state.completed(trial, at)

    def take_turn(self, now: float) -> bool:
        """Return whether the caller must sync, because the last sync is too long ago."""
        if now < self.due_s:
            return False
        # Taken before the sync itself: other workers that come by meanwhile need not queue for it.
        self._synced_s = now
        self.due_s = now + _SYNC_EVERY_S
        return True

    def sync(self) -> None:
        """Make everything that was appended survive a power cut."""
        if self._log is None or not self._is_behind:
            return
        # Set first: what is appended while this waits for the disk is for the next sync. In this
        # order, since another thread may count a trial in between.
        self.due_s = math.inf
        self._is_behind = False
        try:
            if self._keeper is not None:
                self._keeper.sync()
            self._log.sync()
        except OSError as error:
            self._fail(error)
        self._synced_s = self._clock.monotonic()

    def _fail(self, error: OSError) -> None:
        self._state.stop(StopReason.SERVICE, f"the trial log cannot be written: {error}")
