"""What the engine asks of the outside, as protocols that adapters fulfil without knowing it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol

from trialwise.errors import TrialwiseError
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass

#: How the error of a trial begins that `before_each` did not let happen.
HOOK_FAILED = "`before_each` failed"


# Not frozen, only without anything that sets a field: one is made for every attempt, and freezing
# would triple what that takes.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class TrialContext:
    """What one attempt at a trial is given: its place in the run, its input and its own seed.

    A service that works in steps tells here how far it has come. Whatever ends it then, an error or
    a time limit, what it took until there is in the record.

    >>> trial = TrialContext(index=0, input="15 * 37", seed=7)
    >>> trial.keep(lambda: Reply(value="", cost_usd=0.02))
    >>> trial.partial.cost_usd
    0.02
    """

    index: int
    input: Any
    seed: int
    """Derived from the run's seed and the index, so that no executor changes a result."""
    attempt: int = 1
    """The number of the attempt at this trial, from 1. A retry has the number 2."""
    _so_far: Callable[[], Reply | None] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    ended: SystemExit | bool = field(default=False, init=False, repr=False, compare=False)
    """Whether the attempt is over; the exit by which a task of it ended the program."""

    def keep(self, so_far: Callable[[], Reply | None]) -> None:
        """Say where to ask what was done so far; the last one to say so is asked.

        Args:
            so_far: Asked when the call has ended without a reply, since a call that is cancelled
                can tell nothing itself. Usage, cost, setup and tool calls of what it returns become
                those of the trial.
        """
        self._so_far = so_far

    @property
    def partial(self) -> Reply | None:
        """What was done so far, if the service says; its value is no reply."""
        if self._so_far is None:
            return None
        try:
            found: object = self._so_far()
        except Exception:  # a service of the user's may raise anything
            return None
        return found if isinstance(found, Reply) else None


def make_context(index: int, given: Any, seed: int, attempt: int) -> TrialContext:
    """Make the context of an attempt: calling a class of Python takes three times as long."""
    context: TrialContext = object.__new__(TrialContext)
    context.index = index
    context.input = given
    context.seed = seed
    context.attempt = attempt
    context._so_far = None
    context.ended = False
    return context


class ServiceError(TrialwiseError):
    """A service gave no reply, and what kind of trouble that was.

    Args:
        message: What happened, for a person.
        error_class: How the trial is classed.
    """

    stops_run: ClassVar[bool] = False
    """Whether no later trial can do better, so that the run ends here."""
    retry_after_s: float | None = None
    """How long the other side asked to be left alone."""

    def __init__(self, message: str, error_class: ErrorClass) -> None:
        super().__init__(message)
        self.error_class = error_class


class Service(Protocol):
    """The system under test.

    One with an attribute `tells_cost` that is false never says what a reply costs; a limit on
    money is then refused unless the cost of a trial is declared.
    """

    async def call(self, trial: TrialContext) -> Reply:
        """One reply to one input.

        Raises `ServiceError` where there is none; anything else raised is the service's own
        failure. Cancelling the call must leave nothing running. What was paid for before either
        is told by `TrialContext.keep`.
        """
        ...

    async def aclose(self) -> None:
        """Release what the service holds; closing twice is harmless."""
        ...


class TrialLog(Protocol):
    """Where completed trials are made durable before they count."""

    def append_text(self, text: str) -> int | None:
        """Hand one record over as JSON: from here on it survives the death of this process.

        Returns:
            Where it stands, by which the trials from before a restart are read as well; None where
            nothing is read back.
        """
        ...

    def sync(self) -> None:
        """Wait until everything appended survives a power cut."""
        ...


class RecordLog(Protocol):
    """Where the texts are made durable that trials name."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record over: from here on it survives the death of this process."""
        ...

    def sync(self) -> None:
        """Wait until everything appended survives a power cut."""
        ...


class Clock(Protocol):
    """The time, which tests replace by their own."""

    def monotonic(self) -> float:
        """Seconds that never go back: for latencies, budgets and pacing."""
        ...

    def now(self) -> datetime:
        """Return the date and time, with its zone: for records only, since it may jump."""
        ...


class Timer(Clock, Protocol):
    """A clock that can be waited for."""

    async def sleep(self, seconds: float) -> None:
        """Wait, by the monotonic clock."""
        ...


class Interrupt(Protocol):
    """A request to end the run early; `anyio.Event` has this interface.

    One that has a `cause` tells what the service did to end the run; otherwise a person asked.
    """

    def is_set(self) -> bool:
        """Return whether somebody asked; true at once, even while the event loop is kept busy."""
        ...

    async def wait(self) -> None:
        """Wait until somebody asks."""
        ...


class SystemClock:
    """The machine's own clocks."""

    monotonic = staticmethod(time.perf_counter)

    def now(self) -> datetime:
        """Return the local date and time, with its zone."""
        return datetime.now().astimezone()

    async def sleep(self, seconds: float) -> None:
        """Let the event loop go on with something else."""
        from anyio import sleep

        await sleep(seconds)
