"""When a trial may start, and when a failed attempt may be made again."""

from __future__ import annotations

from random import Random

from trialwise.engine.ports import Clock, ServiceError

__all__ = ["LONGEST_WAIT_S", "Pacer", "retry_delay"]

#: The first wait; each further one is twice as long.
_FIRST_WAIT_S = 0.5
_LONGEST_BACKOFF_S = 30.0
#: A server that asks for more is not worth a worker's wait: its trial ends as it is.
LONGEST_WAIT_S = 600.0


class Pacer:
    """Starts at equal distances, so that no second sees more of them than the rate.

    Args:
        rate_per_s: How many trials may start in a second.
        clock: By which they are timed.
    """

    def __init__(self, rate_per_s: float, clock: Clock) -> None:
        self._distance_s = 1 / rate_per_s
        self._clock = clock
        self._next_s = clock.monotonic()

    def admit(self) -> bool:
        """Whether a trial may start now; if so, it is taken to start."""
        now = self._clock.monotonic()
        if now < self._next_s:
            return False
        self._next_s = now + self._distance_s
        return True

    def seconds_left(self) -> float:
        """How long it takes until the next start is due."""
        return max(0.0, self._next_s - self._clock.monotonic())


def retry_delay(error: ServiceError, *, seed: int, attempt: int) -> float | None:
    """Seconds before the next attempt, or None where it is not worth waiting.

    What the other side asks for is honoured. Otherwise the wait doubles, with jitter so that
    trials that failed together do not come back together.

    Args:
        error: How the attempt failed.
        seed: The trial's, so that the jitter can be repeated.
        attempt: How many attempts have been made.
    """
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= LONGEST_WAIT_S else None
    longest = min(_LONGEST_BACKOFF_S, _FIRST_WAIT_S * 2.0 ** (attempt - 1))
    return longest * (0.5 + Random(f"retry/{seed}/{attempt}").random() / 2)
