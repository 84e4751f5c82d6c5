"""Async work from plain code: with an event loop of its own, and Ctrl-C made gentle.

The first Ctrl-C asks the work to end cleanly; the second raises at once, for a function that does
not come back. Inside a running event loop, as in a notebook, the work gets a thread, and Ctrl-C,
which reaches the main thread alone, is passed on to it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from trialwise.engine.ports import Interrupt


T = TypeVar("T")


class _Interrupt:
    """A wish to end that another thread or a signal handler may utter.

    An event can only be set by its loop, and a function that runs in place keeps the loop busy. So
    the wish is noted at once, and the event follows for the tasks that wait for it.
    """

    def __init__(self) -> None:
        import asyncio

        import anyio

        self._loop = asyncio.get_running_loop()
        self._event = anyio.Event()
        self._is_set = False

    def set(self) -> None:
        """Ask for the end."""
        self._is_set = True
        self._loop.call_soon_threadsafe(self._event.set)

    def is_set(self) -> bool:
        """Whether somebody asked."""
        return self._is_set

    async def wait(self) -> None:
        """Wait until somebody asks."""
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
    import anyio

    results: list[T] = []

    async def whole(tell: Callable[[Callable[[], None]], None]) -> None:
        interrupted = _Interrupt()
        tell(interrupted.set)
        with _gentle_interrupts(interrupted.set):
            # Not the task's result: asyncio prints its task when it puts the signal handlers
            # back, and with it every trial of the run.
            results.append(await work(interrupted))

    if _inside_event_loop():
        _in_thread(lambda tell: anyio.run(whole, tell))
    else:
        anyio.run(whole, lambda _: None)
    return results[0]


@contextmanager
def _gentle_interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """Let the first SIGINT ask for the end; only the main thread may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupt()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _inside_event_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Callable[[Callable[[Callable[[], None]], None]], None]) -> None:
    """Do some work in a new thread and wait for it; what it raises is raised here.

    Args:
        work: Given a function by which it says how it can be interrupted.
    """
    from concurrent.futures import Future

    done: Future[None] = Future()
    ways: list[Callable[[], None]] = []

    def run() -> None:
        try:
            work(ways.append)
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    # A daemon, so that work which was given up does not keep the interpreter from ending.
    threading.Thread(target=run, name="trialwise", daemon=True).start()
    try:
        done.result()
    except KeyboardInterrupt:
        if done.done() or not ways:
            raise
        ways[0]()
        done.result()
