"""The budget of a whole session: all marked tests and all workers share its limits.

Without workers it is a few numbers in memory. With pytest-xdist it is a small file that workers
lock for the moment of a change: a trial is counted before it starts, so that two workers cannot
both start the last one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from trialwise.engine.spending_meter import find_used_up
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.options import Budget


@dataclass(slots=True)
class _Spent:
    """What the session has taken so far."""

    began_s: float | None = None
    """When the first trial started, on the machine's monotonic clock."""
    trials: int = 0
    usd: float = 0.0


class SessionBudget:
    """What is left of a session's budget.

    Args:
        budget: The session's limits.
        file: Where workers share what was spent; None for a session of one process.
        clock: The machine's monotonic clock, which all its processes read alike.
    """

    def __init__(
        self,
        budget: Budget,
        file: Path | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._budget = budget
        self._is_limited = budget != Budget()
        self._file = file
        self._clock = clock
        self._own = _Spent()

    def take(self) -> tuple[StopReason, str] | None:
        """Pay for the start of one trial; or which limit forbids it, in words too."""
        if not self._is_limited:
            return None
        with self._share_spending() as spent:
            if spent.began_s is None:
                spent.began_s = self._clock()
            forbidden = self._forbidden(spent)
            if forbidden is None:
                spent.trials += 1
            return forbidden

    def pay(self, usd: float | None) -> None:
        """Count what a trial cost."""
        if self._is_limited and usd:
            with self._share_spending() as spent:
                spent.usd += usd

    def pay_all(self, spending: Spending) -> None:
        """Count a run that was made in one piece."""
        if self._is_limited:
            with self._share_spending() as spent:
                spent.trials += spending.trials
                spent.usd += spending.paid_usd or 0.0

    def remaining(self) -> Budget | None:
        """Return what a run made in one piece may take; None where nothing is left.

        A run without limits of its own is given these.
        """
        if not self._is_limited:
            return self._budget
        with self._share_spending() as spent:
            if spent.began_s is None:
                spent.began_s = self._clock()
            if self._forbidden(spent) is not None:
                return None
            limit = self._budget
            gone_s = self._clock() - spent.began_s
            return Budget(
                trials=None if limit.trials is None else limit.trials - spent.trials,
                usd=None if limit.usd is None else limit.usd - spent.usd,
                seconds=None if limit.seconds is None else limit.seconds - gone_s,
            )

    def _forbidden(self, spent: _Spent) -> tuple[StopReason, str] | None:
        assert spent.began_s is not None
        return find_used_up(
            self._budget,
            trials=spent.trials,
            seconds=self._clock() - spent.began_s,
            usd=spent.usd,
            name="the session's budget",
        )

    @contextmanager
    def _share_spending(self) -> Iterator[_Spent]:
        if self._file is None:
            yield self._own
            return
        with _lock_file(self._file) as handle:
            # Read and written at offset 0 while the lock is held, so that no worker sees half.
            text = os.pread(handle, 1000, 0)
            spent = _Spent(**json.loads(text)) if text else _Spent()
            yield spent
            data = json.dumps(asdict(spent)).encode()
            os.ftruncate(handle, 0)
            os.pwrite(handle, data, 0)


@contextmanager
def _lock_file(file: Path) -> Iterator[int]:
    """The file, while no other process has it."""
    import fcntl

    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)
