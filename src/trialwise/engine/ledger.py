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

    def take_turn(self, now: float) -> bool:
        """Whether the caller is to sync: the last one is long enough ago, and nobody else will."""
        if not self._is_behind or now - self._synced_s < _SYNC_EVERY_S:
            return False
        self._synced_s = now
        return True

    def sync(self) -> None:
        """Make everything appended survive a power cut."""
        if self._log is not None and self._is_behind:
            # Set first: what is appended while this waits for the disk is for the next sync.
            self._is_behind = False
            self._log.sync()
            self._synced_s = self._clock.monotonic()
