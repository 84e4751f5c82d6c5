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
    import anyio

__all__ = ["run_to_end"]

T = TypeVar("T")


def run_to_end(work: Callable[[anyio.Event], Awaitable[T]]) -> T:
    """Run some work to its end, wherever the caller is.

    Args:
        work: Given an event that is set when somebody wants it to end early.

    >>> async def answer(interrupted):
    ...     return 555
    >>> run_to_end(answer)
    555
    """
    import anyio

    results: list[T] = []

    async def whole(tell: Callable[[Callable[[], None]], None]) -> None:
        import asyncio

        interrupted, loop = anyio.Event(), asyncio.get_running_loop()

        def interrupt() -> None:
            loop.call_soon_threadsafe(interrupted.set)

        tell(interrupt)
        with _gentle_interrupts(interrupt):
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
