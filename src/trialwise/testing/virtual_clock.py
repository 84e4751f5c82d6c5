"""A clock whose time passes only when somebody waits for it: tests of timeouts need no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["VirtualClock"]

_START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualClock:
    """Time that passes only when somebody waits for it, or says so.

    >>> clock = VirtualClock()
    >>> clock.advance(2.5)
    >>> clock.monotonic(), clock.now().isoformat()
    (2.5, '2026-01-01T00:00:02.500000+00:00')
    """

    def __init__(self) -> None:
        self.time = 0.0
        """Seconds since the start."""
        self.waits: list[float] = []
        """How long was waited, each time."""

    def __call__(self) -> float:
        """Return the time, for constructors that take a clock as a function."""
        return self.time

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self.time

    def now(self) -> datetime:
        """Return the date and time; the clock starts with the year 2026."""
        return _START + timedelta(seconds=self.time)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.time += seconds

    async def sleep(self, seconds: float) -> None:
        """Let time pass, and let other tasks run."""
        from anyio.lowlevel import checkpoint

        self.waits.append(seconds)
        self.advance(seconds)
        await checkpoint()
