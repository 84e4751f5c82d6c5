"""Threads for sync functions that may never return.

Not `anyio.to_thread`: its threads are not daemons, so one function that hangs for ever would keep
the interpreter from ending long after the verdict is out. These are reused like anyio's, carry
the caller's context variables, and end by themselves when idle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from anyio import Event
    from anyio.lowlevel import EventLoopToken

T = TypeVar("T")

#: A thread without work for this long ends.
_IDLE_S = 10.0


class DaemonThreads:
    """As many threads as there are calls at once: the engine is the one that limits those."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    async def run(self, function: Callable[[], T], *, abandon_on_cancel: bool) -> T:
        """What a function returns or raises in another thread.

        Args:
            function: What to call.
            abandon_on_cancel: Whether a cancelled call leaves the thread to itself; else it waits.
        """
        from anyio import CancelScope, Event
        from anyio.lowlevel import checkpoint_if_cancelled, current_token

        await checkpoint_if_cancelled()
        job = _Job(function, Event(), current_token())
        try:
            thread = self._idle.pop()
        except IndexError:
            thread = _Thread(self._idle)
            thread.start()
        thread.jobs.put(job)
        with CancelScope(shield=not abandon_on_cancel):
            await job.done.wait()
        return job.result()

    def close(self) -> None:
        """End the threads that wait for work."""
        while self._idle:
            self._idle.pop().jobs.put(None)


class _Job(Generic[T]):
    """One call, on its way to a thread and back."""

    def __init__(self, function: Callable[[], T], done: Event, token: EventLoopToken) -> None:
        self.done = done
        self._function = function
        self._context = copy_context()
        self._token = token
        self._results: list[T] = []
        self._error: BaseException | None = None

    def work(self) -> None:
        try:
            self._results.append(self._context.run(self._function))
        except BaseException as error:
            self._error = error

    def report(self, release: Callable[[], None]) -> None:
        """Wake the caller; the thread is free before, so that the next call finds it."""
        from anyio import from_thread

        def finish() -> None:
            release()
            self.done.set()

        try:
            from_thread.run_sync(finish, token=self._token)
        except RuntimeError:
            # Nobody waits for an abandoned call whose run is over.
            release()

    def result(self) -> T:
        if isinstance(self._error, StopIteration):
            # It would end whatever generator is waiting, as Python's own coroutines know.
            raise RuntimeError("the service raised StopIteration") from self._error
        if self._error is not None:
            raise self._error
        return self._results[0]


class _Thread(threading.Thread):
    def __init__(self, idle: list[_Thread]) -> None:
        super().__init__(name="trialwise service", daemon=True)
        self.jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._waiting = idle

    def run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=_IDLE_S)
            except Empty:
                try:
                    self._waiting.remove(self)
                except ValueError:
                    # Just taken: its job is on the way.
                    continue
                return
            if job is None:
                return
            job.work()
            job.report(partial(self._waiting.append, self))
            del job
