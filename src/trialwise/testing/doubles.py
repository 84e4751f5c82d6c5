"""A service that says what a test tells it to, and a clock that moves only while somebody waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply


class ScriptedService:
    """A service that answers each trial from a script.

    A script is a list, which is played from its beginning again once it ends, or a function of the
    trial. An answer is a value, a whole `Reply`, or an exception that is raised.

    >>> import anyio
    >>> service = ScriptedService(["yes", ConnectionError("down")])
    >>> anyio.run(service.call, TrialContext(index=0, input="really?", seed=1)).value
    'yes'
    >>> [trial.input for trial in service.trials]
    ['really?']

    Args:
        script: The answers in order, by index of the trial, or what gives them.
    """

    def __init__(self, script: Sequence[Any] | Callable[[TrialContext], Any]) -> None:
        self._script = script
        self.trials: list[TrialContext] = []
        """Every trial that was asked, in order."""
        self.closed = 0
        """How often the service was closed."""

    async def call(self, trial: TrialContext) -> Reply:
        """Answer one trial."""
        self.trials.append(trial)
        if callable(self._script):
            answer = self._script(trial)
        else:
            answer = self._script[trial.index % len(self._script)]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(value=answer)

    async def aclose(self) -> None:
        """Count that it was closed; a later call is answered all the same."""
        self.closed += 1


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
