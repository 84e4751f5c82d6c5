"""One trial's call: its time limit, its retries, and the class of whatever went wrong.

An attempt is a transport try inside a trial: however many there are, they make one trial, and the
record says how many.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from random import Random
from typing import Any

from anyio import CancelScope, get_cancelled_exc_class, move_on_after

from trialwise import model
from trialwise.engine import error_classes, ports
from trialwise.engine.excerpts import Excerpts, error_text
from trialwise.engine.spending_meter import known_sum, known_usage

#: The first wait; each further one is twice as long.
_FIRST_WAIT_S = 0.5
_LONGEST_BACKOFF_S = 30.0
#: How long a service may take to close what it opened, once its time is up.
TEARDOWN_S = 1.0
#: A server that asks for more is not worth a worker's wait: its trial ends as it is.
LONGEST_WAIT_S = 600.0


class OutOfTime(Exception):
    """Raised when the wait before the next attempt would end after the run's time limit."""


# Not frozen: one is made for every trial, and freezing would triple what that takes.
@dataclass(slots=True)
class Response:
    """What came of a trial's call."""

    reply: model.Reply | None
    error_class: model.ErrorClass = model.ErrorClass.NONE
    error: str = ""
    """Why there is no reply."""
    attempts: int = 1
    attempt_errors: tuple[str, ...] = ()
    """What the attempts before the last one said."""
    partial: model.Reply | None = None
    """What the last attempt had done when it came to nothing, if the service tells."""
    lost: tuple[model.Reply, ...] = ()
    """The same of the attempts before it."""
    traceback: str = ""
    """The hash of where the service raised."""


@dataclass(slots=True)
class Caller:
    """Calls a service until there is a reply or no use in trying again.

    Args:
        service: What is under test.
        timeout_s: Time limit of one attempt, in seconds.
        retries: Further attempts after an infrastructure error, and after no other.
        clock: For the waits in between.
        excerpts: How messages are kept.
        abandon: Told what a trial took that is cancelled, or ends the run.
        seconds_left: How long the run may still take.
        reach: What the run has seen of the service.
        note_raised: Keeps where an exception came from; the hash by which that is known.
        before: Called before each attempt, outside of its time limit.
    """

    service: ports.Service
    _: KW_ONLY
    timeout_s: float | None
    retries: int
    clock: ports.Timer
    excerpts: Excerpts
    abandon: Callable[[Sequence[model.Reply]], None] = lambda _: None
    seconds_left: Callable[[], float] = lambda: math.inf
    reach: error_classes.Reach = field(default_factory=error_classes.Reach)
    note_raised: Callable[[BaseException], str] = lambda _: ""
    before: Callable[[ports.TrialContext], Awaitable[model.Setup]] | None = None

    async def respond(self, index: int, given: Any, seed: int) -> Response:
        """Return the response to one trial.

        Raises:
            ServiceError: One that ends the run; any other is a response.
            OutOfTime: There is no time for another attempt.
        """
        earlier: tuple[str, ...] = ()
        lost: tuple[model.Reply, ...] = ()
        context: ports.TrialContext | None = None
        try:
            while True:
                # A service that changes its input must not change the next trial's.
                own = given if type(given) is str else fresh_copy(given)
                context = ports.TrialContext(
                    index=index, input=own, seed=seed, attempt=len(earlier) + 1
                )
                prepared: model.Setup | None = None
                try:
                    if self.before is not None:
                        prepared = await self.before(context)
                    # Tasks that the service starts inherit it: one that ends the program is charged
                    # to this trial.
                    ports.ATTEMPT.set(context)
                    if self.timeout_s is None:  # one coroutine less for most calls
                        reply = await self.service.call(context)
                    else:
                        reply = await call_in_time(self.service, context, self.timeout_s)
                    if context.ended or type(reply) is not model.Reply:
                        _require_reply(reply, context.ended)
                    context.ended = True
                    if not self.reach.has_worked:
                        self.reach.note_reply()
                    if not earlier and prepared is None:
                        return Response(reply)
                    made = len(earlier) + 1
                    reply = _add_setup(reply, prepared)
                    return Response(reply, model.ErrorClass.NONE, "", made, earlier, None, lost)
                except BaseException as caught:
                    context.ended = True
                    error = own_failure(caught)
                message = self.excerpts.text(error_text(error))
                made = len(earlier) + 1
                trouble = error_classes.classify_error(error)
                error_class = self.reach.settle(trouble)
                delay = self._delay(error, trouble, seed, made)
                # Read once and forgotten: what an attempt took must not be abandoned as well.
                partial, context = context.partial, None
                if prepared is not None:
                    # Apart from what the service says: it may say nothing.
                    lost += (model.Reply(value="", setup=prepared),)
                if delay is None:
                    raised = self.note_raised(error)
                    return Response(
                        None, error_class, message, made, earlier, partial, lost, raised
                    )
                earlier += (message,)
                lost += () if partial is None else (partial,)
                if delay > self.seconds_left():
                    raise OutOfTime(message)
                await self.clock.sleep(delay)
        except BaseException:
            # Nobody waits for this trial any more, and what it took is paid for.
            partial = None if context is None else context.partial
            self.abandon(lost if partial is None else (*lost, partial))
            raise

    def _delay(
        self, error: BaseException, trouble: error_classes.Trouble, seed: int, attempts: int
    ) -> float | None:
        """Seconds until the next attempt, or None where there is none."""
        if isinstance(error, ports.ServiceError) and error.stops_run:
            # No later trial can do better, and as a response it would count against the service.
            raise error
        # Only what says nothing about the service is tried again. A retried timeout or wrong answer
        # would measure the best of several tries and call it one.
        if trouble.error_class is not model.ErrorClass.INFRASTRUCTURE or attempts > self.retries:
            return None
        return retry_delay(trouble.retry_after_s, seed=seed, attempt=attempts)


def _add_setup(reply: model.Reply, prepared: model.Setup | None) -> model.Reply:
    """Return a reply whose setup includes what `before_each` took."""
    told = reply.setup
    if told is None or prepared is None:
        return replace(reply, setup=told or prepared)
    both = model.Setup(
        seconds=told.seconds + prepared.seconds,
        usage=known_usage((told.usage, prepared.usage)),
        cost_usd=known_sum((told.cost_usd, prepared.cost_usd)),
    )
    return replace(reply, setup=both)


def own_failure(caught: BaseException) -> BaseException:
    """Return the failed trial of a service that raised an exception.

    Raises:
        BaseException: What does not come from the service: a cancellation from outside, Ctrl-C.
    """
    if isinstance(caught, get_cancelled_exc_class()):
        # A cancellation from outside ends the trial. One that the service made up would end the
        # run without a reason, so it counts as the service's failure.
        if ports.is_unasked(caught):
            return RuntimeError("the service cancelled itself")
        raise caught
    if isinstance(caught, KeyboardInterrupt):
        raise caught
    if isinstance(caught, BaseExceptionGroup):
        asked = caught.subgroup((KeyboardInterrupt, get_cancelled_exc_class()))
        if asked is not None:
            raise caught
    # Everything else is the service's, also what is no `Exception`, such as a Rust panic.
    return error_classes.innermost_error(caught)


async def call_in_time(
    service: ports.Service, context: ports.TrialContext, timeout_s: float
) -> model.Reply:
    """Return the reply of a service within a time limit.

    Raises:
        ServiceError: There was no reply in time. It is a timeout of the service unless this process
            stood still meanwhile.
    """
    # Before the limit starts: the first beat must not be later than the call that it vouches for.
    error_classes.watch_for_stalls()
    began_s = time.monotonic()
    limit = _Limit(timeout_s)
    with limit.scope:
        with limit.teardown, limit:
            reply = await service.call(context)
        # A service may not let itself be cancelled, and then be late; one whose reply is in
        # time by its own measure is not late because the event loop was busy.
        if not limit.scope.cancel_called or _require_reply(reply).latency_s <= timeout_s:
            return reply
        # Of no use any more, and paid for.
        context.keep(lambda: reply)
    if error_classes.has_stalled_since(began_s):
        stalled = f"this process stood still while a reply was due within {timeout_s:g} s"
        raise ports.ServiceError(stalled, model.ErrorClass.INFRASTRUCTURE)
    left = f"; it had not ended {TEARDOWN_S:g} s after it was cancelled, and was left"
    message = f"no reply within {timeout_s:g} s{left if limit.teardown.cancel_called else ''}"
    raise ports.ServiceError(message, model.ErrorClass.TIMEOUT)


class _Limit:
    """A time limit that cancels once, so that a service can close what it opened.

    A cancelled scope cancels every later wait as well, also those of a teardown. So the scope
    inside is shielded as soon as the service has been told, and cancelled after the grace. On other
    loops than asyncio's there is no grace.

    Args:
        timeout_s: Seconds until the service is cancelled.
    """

    def __init__(self, timeout_s: float) -> None:
        import asyncio

        self.teardown = CancelScope()
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self.scope = move_on_after(timeout_s)
            self._timer: asyncio.TimerHandle | None = None
            return
        self.scope = CancelScope()
        self._task = asyncio.current_task(self._loop)
        self._timer = self._loop.call_later(timeout_s, self._cancel)

    def __enter__(self) -> None:
        """Start; the timer runs already."""

    def __exit__(self, *_error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _cancel(self) -> None:
        assert self._task is not None
        before = self._task.cancelling()
        self.scope.cancel()
        self._timer = self._loop.call_later(TEARDOWN_S, self.teardown.cancel)
        # Where the service shields itself, it is told when it no longer does.
        if self._task.cancelling() > before:
            self.teardown.shield = True


def _require_reply(reply: object, ended: SystemExit | bool = False) -> model.Reply:
    if isinstance(ended, SystemExit):
        raise ended  # by a task or a callback that nobody waited for
    if isinstance(reply, model.Reply):
        return reply
    raise TypeError(f"the service returned {type(reply).__name__}, expected a Reply")


def fresh_copy(given: Any) -> Any:
    """Return an input whose lists and dicts are the trial's own."""
    if type(given) is dict:
        return {key: fresh_copy(value) for key, value in given.items()}
    if type(given) is list:
        return [fresh_copy(value) for value in given]
    return given


def retry_delay(retry_after_s: float | None, *, seed: int, attempt: int) -> float | None:
    """Seconds before the next attempt, or None where it is not worth waiting.

    What the other side asks for is honoured. Otherwise the wait doubles, with jitter so that
    trials that failed together do not come back together.

    Args:
        retry_after_s: How long the other side asked to be left alone, if it did.
        seed: The trial's, so that the jitter can be repeated.
        attempt: How many attempts have been made.
    """
    if retry_after_s is not None:
        return retry_after_s if retry_after_s <= LONGEST_WAIT_S else None
    # Half of it is fixed and half is drawn, so that a wait is never next to nothing ("equal
    # jitter", Brooker, Exponential Backoff And Jitter, AWS 2015).
    longest = min(_LONGEST_BACKOFF_S, _FIRST_WAIT_S * 2.0 ** (attempt - 1))
    return longest * (0.5 + Random(f"retry/{seed}/{attempt}").random() / 2)
