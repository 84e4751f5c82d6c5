"""Async work from plain code: an event loop of its own, signals made gentle, exits contained.

The first Ctrl-C asks the work to end cleanly; the second raises at once, for a function that does
not come back. SIGTERM and SIGHUP ask like the first one, where nobody else handles them. asyncio
ends its loop when a task exits, and all trials with it; here the exit is the trial's, or it ends
the run with a reason. Inside a running event loop, as in a notebook, the work gets a thread, and
Ctrl-C, which reaches the main thread alone, is passed on to it.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from warnings import warn

from anyio import CancelScope, create_task_group, get_cancelled_exc_class, sleep_forever, to_thread
from anyio.lowlevel import checkpoint

from trialwise.engine.ports import Interrupt, charge_exit
from trialwise.errors import RunInterrupted

if TYPE_CHECKING:
    from trialwise.model.contract import Contract


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: Two SIGINT that are closer than this are one Ctrl-C: a terminal sends it to every process of a
#: command, and a process may pass its own on to another.
INTERRUPT_TWIN_S = 0.1
#: How long background tasks may take to end when the work is done.
_CLOSING_S = 5.0


class _Interrupt:
    """A request to end the run, which another thread or a signal handler may make.

    An event can only be set by its loop, and a function that runs in place keeps the loop busy. So
    the wish is noted at once, and the event follows for the tasks that wait for it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._is_set = False
        self.cause = ""

    def attach(self) -> None:
        """Belong to the running event loop, where tasks wait."""
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._is_set:
            self._event.set()

    def set(self, cause: str = "") -> None:
        """Ask for the end.

        Args:
            cause: What the service did; empty where a person asks.
        """
        if not self._is_set:
            self.cause = cause
        self._is_set = True
        if self._loop is not None and self._event is not None:
            self._loop.call_soon_threadsafe(self._event.set)

    def is_set(self) -> bool:
        """Return whether somebody asked."""
        return self._is_set

    async def wait(self) -> None:
        """Wait until somebody asks."""
        assert self._event is not None
        await self._event.wait()


def run_to_end(work: Callable[[Interrupt], Awaitable[T]]) -> T:
    """Run some work to its end, wherever the caller is.

    Args:
        work: Is told when somebody wants it to end early.

    >>> async def answer(interrupted):
    ...     return 555
    >>> run_to_end(answer)
    555
    """
    results: list[T] = []
    interrupted = _Interrupt()
    # Before the loop: asyncio then leaves Ctrl-C alone.
    signals = _GentleSignals(interrupted.set)

    async def whole() -> None:
        interrupted.attach()
        try:
            # Not the task's result: asyncio would print the task, and with it every trial.
            results.append(await work(interrupted))
        finally:
            signals.restore()

    def run() -> None:
        try:
            signals.handle()
            with asyncio.Runner(loop_factory=lambda: _contain_exits(interrupted.set)) as runner:
                runner.run(whole())
        except asyncio.InvalidStateError:
            # asyncio asks a task for its end that was given up when the loop was closed.
            if not results:
                raise
        finally:
            signals.restore()

    if is_inside_event_loop():
        _in_thread(run, interrupted.set)
    else:
        run()
    return results[0]


class Opened(Protocol[T_co]):
    """What is ready to be driven: the journals and the services are open."""

    async def go(self, interrupted: Interrupt | None) -> T_co:
        """Drive it on the running event loop."""
        ...


OpenedT = TypeVar("OpenedT", bound=Opened[Any])


def drive(opening: AbstractContextManager[OpenedT], finish: Callable[[OpenedT, Any], T]) -> T:
    """Open a run or the arms of a comparison, drive them to their end and conclude.

    Args:
        opening: Opens it, here: a function's own context must not hold the loop's.
        finish: Decides and keeps what came of it, before the journals are closed.
    """
    with opening as opened:
        return finish(opened, run_to_end(opened.go))


async def adrive(
    opening: AbstractContextManager[OpenedT], finish: Callable[[OpenedT, Any], T]
) -> T:
    """Drive it in the running event loop, where the caller's clients work.

    A cancellation is raised again once everything is kept.
    """
    with opening as opened:
        try:
            return finish(opened, await opened.go(None))
        except RunInterrupted:
            await let_cancellation_through()
            raise


def _contain_exits(end_run: Callable[[str], None]) -> asyncio.AbstractEventLoop:
    """Return an event loop that goes on when a task or a callback of the service exits.

    Args:
        end_run: Told of an exit that belongs to no trial under way.
    """
    loop = asyncio.new_event_loop()
    run_until_complete = loop.run_until_complete
    is_closing = False

    def run_past_exits(future: Any) -> Any:
        nonlocal is_closing
        task = asyncio.ensure_future(future, loop=loop)
        # The work itself takes as long as it takes. Afterwards asyncio waits for cancelled tasks.
        limit = loop.call_later(_CLOSING_S, loop.stop) if is_closing else None
        is_closing = True
        try:
            while True:
                try:
                    return run_until_complete(task)
                except SystemExit as left:
                    # What was waited for may itself have ended so: that is the caller's to know.
                    if task.done() and not task.cancelled() and task.exception() is left:
                        raise
                    if not charge_exit(left):
                        cause = f"a background task of the service exited (SystemExit: {left.code})"
                        end_run(cause)
                except RuntimeError:
                    if limit is None or task.done():
                        raise
                    _name_left_tasks(loop)
                    return None
        finally:
            if limit is not None:
                limit.cancel()

    loop.run_until_complete = run_past_exits  # type: ignore[method-assign]
    return loop


def _name_left_tasks(loop: asyncio.AbstractEventLoop) -> None:
    names = sorted({getattr(one.get_coro(), "__qualname__", "") for one in asyncio.all_tasks(loop)})
    warn(
        f"tasks of the service ignore their cancellation and are left: {', '.join(names)}",
        RuntimeWarning,
        stacklevel=2,
    )


class _GentleSignals:
    """Lets the first signal ask for the end; only the main thread may handle signals.

    Args:
        interrupt: Asks for the end.
    """

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._last_s: float | None = None
        self._before: dict[signal.Signals, Any] = {}

    def handle(self) -> None:
        """Handle signals from here on."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, self._hear)
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # One that is ignored (nohup) or handled by somebody else is theirs.
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                self._before[number] = signal.signal(number, self._hear)

    def restore(self) -> None:
        """Leave the signals to whoever handled them before; doing so twice is harmless."""
        while self._before:
            signal.signal(*self._before.popitem())

    def _hear(self, number: int, _frame: Any) -> None:
        now, before_s = time.monotonic(), self._last_s
        self._last_s = now
        if before_s is None:
            self._interrupt()
        elif number == signal.SIGINT and now - before_s > INTERRUPT_TWIN_S:
            raise KeyboardInterrupt


def is_inside_event_loop() -> bool:
    """Return whether an event loop of asyncio runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def warn_inside_loop(function: str, *contracts: Contract) -> None:
    """Point to the async form where an async function would be called in a loop not its own.

    Args:
        function: The one that the user called, such as `run`.
        contracts: Whose services are called.
    """
    if not is_inside_event_loop():
        return

    services = [one.service for one in contracts]
    calls = [getattr(one, "__call__", None) for one in services]  # noqa: B004 - its kind is looked at
    if any(map(iscoroutinefunction, [*services, *calls])):
        warn(
            f"tw.{function} blocks the running event loop and calls the async service in another "
            f"loop, where clients of this one do not work. Write `await tw.a{function}(...)`",
            RuntimeWarning,
            stacklevel=3,
        )


async def run_in_thread(
    work: Callable[[Callable[[], bool]], T], interrupted: Interrupt | None
) -> T:
    """Do work that blocks in a thread, while the event loop goes on.

    A cancellation asks the work to end, and its result is returned all the same: paid trials are to
    be decided and kept. The caller's next wait is cancelled as usual.

    Args:
        work: Given a function that says whether it must end early.
        interrupted: Says from outside that it must.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    is_cancelled = threading.Event()

    def must_end() -> bool:
        return is_cancelled.is_set() or (interrupted is not None and interrupted.is_set())

    async def run() -> None:
        with CancelScope(shield=True):
            try:
                results.append(await to_thread.run_sync(work, must_end))
            except BaseException as error:  # raised as it is, not in a group
                errors.append(error)
        group.cancel_scope.cancel()

    try:
        async with create_task_group() as group:
            group.start_soon(run)
            try:
                await sleep_forever()
            finally:
                # Too late where the work itself has ended the wait.
                is_cancelled.set()
    except get_cancelled_exc_class():
        pass
    if errors:
        raise errors[0]
    return results[0]


async def let_cancellation_through() -> None:
    """Raise a cancellation of the current task that the engine held back.

    The engine keeps a cancellation to itself until everything is written down.

    Raises:
        CancelledError: Somebody cancelled this task.
    """
    await checkpoint()
    if is_inside_event_loop():
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError


def _in_thread(work: Callable[[], None], interrupt: Callable[[], None]) -> None:
    """Do some work in a new thread and wait for it; what it raises is raised here.

    Args:
        work: What to do.
        interrupt: Asks the work to end.
    """
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    # A daemon, so that work which was given up does not keep the interpreter from ending.
    threading.Thread(target=run, name="trialwise", daemon=True).start()
    try:
        done.result()
    except KeyboardInterrupt:
        if done.done():
            raise
        interrupt()
        done.result()
