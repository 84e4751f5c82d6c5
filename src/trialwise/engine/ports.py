"""What the engine asks of the outside, as protocols that adapters fulfil without knowing it."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar

from trialwise import model
from trialwise.errors import TrialwiseError
from trialwise.model.evidence import Spending

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
    >>> trial.keep(lambda: model.Reply(value="", cost_usd=0.02))
    >>> trial.partial.cost_usd
    0.02
    """

    index: int
    input: Any
    seed: int
    """Derived from the run's seed and the index, so that no executor changes a result."""
    attempt: int = 1
    """The number of the attempt at this trial, from 1. A retry has the number 2."""
    _so_far: Callable[[], model.Reply | None] | None = field(
        default=None, init=False, repr=False, compare=False
    )
    ended: SystemExit | bool = field(default=False, init=False, repr=False, compare=False)
    """Whether the attempt is over; the exit by which a task of it ended the program."""

    def keep(self, so_far: Callable[[], model.Reply | None]) -> None:
        """Say where to ask what was done so far; the last one to say so is asked.

        Args:
            so_far: Asked when the call has ended without a reply, since a call that is cancelled
                can tell nothing itself. Usage, cost, setup and tool calls of what it returns become
                those of the trial.
        """
        self._so_far = so_far

    @property
    def partial(self) -> model.Reply | None:
        """What was done so far, if the service says; its value is no reply."""
        if self._so_far is None:
            return None
        try:
            found: object = self._so_far()
        except Exception:  # a service of the user's may raise anything
            return None
        return found if isinstance(found, model.Reply) else None


class ServiceError(TrialwiseError):
    """A service gave no reply, and what kind of trouble that was.

    Args:
        message: What happened, for a person.
        error_class: How the trial is classed.
        stops_run: Whether no later trial can do better, so that the run ends here.
    """

    stops_run: bool = False
    """Whether the run ends here; a subclass may say so once for all of its errors."""
    retry_after_s: float | None = None
    """How long the other side asked to be left alone."""

    def __init__(
        self, message: str, error_class: model.ErrorClass, *, stops_run: bool = False
    ) -> None:
        super().__init__(message)
        self.error_class = error_class
        self.stops_run = self.stops_run or stops_run


class Service(Protocol):
    """The system under test.

    One with an attribute `tells_cost` that is false never says what a reply costs; a limit on
    money is then refused unless the cost of a trial is declared.
    """

    async def call(self, trial: TrialContext) -> model.Reply:
        """One reply to one input.

        Raises `ServiceError` where there is none; anything else raised is the service's own
        failure. Cancelling the call must leave nothing running. What was paid for before either
        is told by `TrialContext.keep`.
        """

    async def aclose(self) -> None:
        """Release what the service holds; closing twice is harmless."""


class TrialLog(Protocol):
    """Where completed trials are made durable before they count."""

    def append_text(self, text: str) -> int | None:
        """Hand one record over as JSON: from here on it survives the death of this process.

        Returns:
            Where it stands, by which the trials from before a restart are read as well; None where
            nothing is read back.
        """

    def sync(self) -> None:
        """Wait until everything appended survives a power cut."""


class RecordLog(Protocol):
    """Where the texts are made durable that trials name."""

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record over: from here on it survives the death of this process."""

    def sync(self) -> None:
        """Wait until everything appended survives a power cut."""


class Clock(Protocol):
    """The time, which tests replace by their own."""

    def monotonic(self) -> float:
        """Seconds that never go back: for latencies, budgets and pacing."""

    def now(self) -> datetime:
        """Return the date and time, with its zone: for records only, since it may jump."""


class Timer(Clock, Protocol):
    """A clock that can be waited for."""

    async def sleep(self, seconds: float) -> None:
        """Wait, by the monotonic clock."""


class Interrupt(Protocol):
    """A request to end the run early; `anyio.Event` has this interface.

    One that has a `cause` tells what the service did to end the run; otherwise a person asked.
    """

    def is_set(self) -> bool:
        """Return whether somebody asked; true at once, even while the event loop is kept busy."""

    async def wait(self) -> None:
        """Wait until somebody asks."""


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


# What listeners hear of a run while it goes on.


# Not frozen, like `TrialDone`: one is made of every criterion after every trial.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class CriterionStanding:
    """Counts of one criterion in the order of inputs, and its decision once that is certain."""

    criterion: str
    trials: int
    passed: int
    planned: int
    """N, or the cap; over all inputs with `each_input`."""
    decision: model.Decision | None = None
    has_rate: bool = True
    """Whether its passes are what it is decided by; a mean score is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The plan is admitted and the first trial is about to start."""

    run_id: str
    plan: model.Plan
    resumed: int = 0
    """Trials already in the journal."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class TrialDone:
    """A trial is durable and counted."""

    trial: model.Trial
    standings: tuple[CriterionStanding, ...]
    """The standings of every criterion of the run."""
    spending: Spending
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDecided:
    """A criterion's verdict can no longer change."""

    standing: CriterionStanding
    stop: model.StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """No further trial will be run."""

    stop: model.StopReason
    spending: Spending
    message: str = ""
    """Why, where the run ended before its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReached:
    """The run was decided and its record written."""

    verdict: model.Verdict
    record: str = ""
    """Where the record is kept."""


Event: TypeAlias = RunStarted | TrialDone | CriterionDecided | RunEnded | VerdictReached


class Listener(Protocol):
    """Hears of a run; must be quick, and must not raise.

    One that has a method `wants_trial(trials: int) -> bool` hears of a completed trial only where
    that method says so, given how many trials are complete: an event for every trial takes as long
    as the trial of a quick function. A trial that settles a criterion is told in any case.
    """

    def on_event(self, event: Event) -> None:
        """Take note of one event."""


# Runs several calls at once, and finds out which call was cancelled or ended the program.

T = TypeVar("T")


async def gather(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Return what each call returns, in order.

    A task group raises what its tasks raise in a group of exceptions, which no caller expects. Here
    the first error lets the other calls go and is raised itself.

    >>> import anyio
    >>> async def answer() -> str:
    ...     return "555"
    >>> anyio.run(gather, [answer, answer])
    ['555', '555']
    """
    if len(calls) == 1:
        return [await calls[0]()]
    from anyio import create_task_group, get_cancelled_exc_class

    found: dict[int, T] = {}
    errors: list[BaseException] = []

    async def one(place: int, call: Callable[[], Awaitable[T]]) -> None:
        try:
            found[place] = await call()
        except get_cancelled_exc_class():
            raise
        except BaseException as error:
            errors.append(error)
            group.cancel_scope.cancel()

    async with create_task_group() as group:
        for place, call in enumerate(calls):
            group.start_soon(one, place, call)
    if errors:
        raise errors[0]
    return [found[place] for place in range(len(calls))]


def is_unasked(error: BaseException) -> bool:
    """Return whether an error is a cancellation of the current task that nobody outside asked for.

    A cancelled trial and a service that cancelled itself raise the same exception. The first must
    be let through; the second would silently end the run although nobody asked for that.
    """
    from anyio import current_effective_deadline, get_cancelled_exc_class

    if not isinstance(error, get_cancelled_exc_class()):
        return False
    if current_effective_deadline() == -math.inf:
        return False
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # not asyncio: anyio's scopes are all there is
        return True
    return task is not None and task.cancelling() == 0


#: The last attempt that this task has made, which tasks that a service starts inherit.
ATTEMPT: ContextVar[TrialContext | None] = ContextVar("trialwise_attempt", default=None)


def charge_exit(left: SystemExit) -> bool:
    """Charge an exit that ended the event loop to the call whose task or callback it was.

    Returns:
        Whether that call is still under way.
    """
    import asyncio

    trace = left.__traceback__
    while trace is not None:
        handle = trace.tb_frame.f_locals.get("self")
        if isinstance(handle, asyncio.Handle):
            attempt = handle._context.get(ATTEMPT)  # type: ignore[attr-defined]
            if attempt is None or attempt.ended is True:
                return False
            attempt.ended = attempt.ended or left
            return True
        trace = trace.tb_next
    return False
