"""The log of a run: every trial is in it before it counts, and safe from a power cut soon after."""

from __future__ import annotations

from trialwise.engine.ports import Clock, TrialLog
from trialwise.model.trial import Trial

__all__ = ["Ledger"]

#: At most so much of a run is lost to a power cut; waiting for the disk after every trial would
#: cost more than most trials do.
_SYNC_EVERY_S = 0.02


class Ledger:
    """Hands trials to a log, and knows when the log has waited long enough.

    Args:
        log: None keeps nothing.
        clock: By which the waiting is timed.
    """

    def __init__(self, log: TrialLog | None, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._synced_s = clock.monotonic()
        self._is_behind = False

    def append(self, trial: Trial) -> None:
        """Make a trial survive the death of this process."""
        if self._log is not None:
            record = trial.to_dict()
            record["x"] = trial.experiment
            self._log.append(record)
            self._is_behind = True

    def is_due(self, now: float) -> bool:
        """Whether the last sync is long enough ago for the next."""
        return self._is_behind and now - self._synced_s >= _SYNC_EVERY_S

    def sync(self) -> None:
        """Make everything appended survive a power cut."""
        if self._log is not None and self._is_behind:
            # Set first: while another thread syncs, no second one need follow.
            self._is_behind = False
            self._synced_s = self._clock.monotonic()
            self._log.sync()
            self._synced_s = self._clock.monotonic()
