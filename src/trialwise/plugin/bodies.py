"""Bodies side by side: sync ones in threads, async ones as tasks of one event loop.

Which event loop is not ours to choose where another plugin is in charge: fixtures may hold what
belongs to its loop. A plugin that gives every test a loop of its own gets a thread for each.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import pytest

from trialwise.plugin.one_by_one import info_of
from trialwise.plugin.trial_items import TrialItem

# No frame of this module belongs into the traceback of a body or a fixture.
__tracebackhide__ = True

Done = tuple[TrialItem, "pytest.CallInfo[None] | BaseException | None"]
"""A trial and what came of its body: nothing where it was let go, an interrupt as it is."""


class Bodies(Protocol):
    """Runs bodies that are set up; the caller tears them down."""

    def start(self, item: TrialItem) -> None:
        """Begin a body."""
        ...

    def wait(self, timeout_s: float | None) -> Sequence[Done]:
        """Bodies that have ended; none where the time is up first."""
        ...

    def cancel(self, item: TrialItem) -> bool:
        """Ask one body to end; False where it cannot be asked."""
        ...

    def close(self) -> None:
        """Release what the bodies ran in."""
        ...


def bodies_for(host: pytest.Function) -> Bodies:
    """Return what the bodies of a test run in."""
    function = host.obj
    asyncio_plugin = sys.modules.get("pytest_asyncio.plugin")
    if asyncio_plugin is not None and isinstance(host, asyncio_plugin.PytestAsyncioFunction):
        scope = _loop_scope(host)
        if scope == "function":
            return ThreadBodies()
        runner = f"_{scope}_scoped_runner"
        return TaskBodies(lambda item, _: item._request.getfixturevalue(runner).get_loop())
    if not inspect.iscoroutinefunction(function) or _is_testcase(host):
        return ThreadBodies()
    if "anyio_backend" in host.fixturenames:
        return TaskBodies(_anyio_loop)
    return TaskBodies(_own_loop)


def _loop_scope(host: pytest.Function) -> str:
    """Return how far the loop of a test of pytest-asyncio's is shared."""
    marker = host.get_closest_marker("asyncio")
    given = {} if marker is None else marker.kwargs
    usual = host.config.getini("asyncio_default_test_loop_scope")
    return str(given.get("loop_scope") or given.get("scope") or usual or "function")


def _is_testcase(host: pytest.Function) -> bool:
    """Return whether unittest runs the body: it has its own way with coroutines."""
    return bool(getattr(host, "nofuncargs", False))


def _anyio_loop(item: TrialItem, stack: ExitStack) -> asyncio.AbstractEventLoop:
    from anyio.pytest_plugin import extract_backend_and_options, get_runner

    name, options = extract_backend_and_options(item.funcargs["anyio_backend"])
    runner: Any = stack.enter_context(get_runner(name, options))
    loop: asyncio.AbstractEventLoop = runner.get_loop()
    return loop


def _own_loop(_item: TrialItem, stack: ExitStack) -> asyncio.AbstractEventLoop:
    return stack.enter_context(asyncio.Runner()).get_loop()


class ThreadBodies:
    """A thread for every body, which nobody has to wait for at the end of the process."""

    def __init__(self) -> None:
        self._ended: SimpleQueue[Done] = SimpleQueue()

    def start(self, item: TrialItem) -> None:
        """Begin a body, with the context variables that its fixtures set."""
        context = copy_context()

        def work() -> None:
            try:
                call = context.run(info_of, item, item.runtest, "call")
            except BaseException as error:
                self._ended.put((item, error))
            else:
                self._ended.put((item, call))

        threading.Thread(target=work, name=f"trial {item.trial.index}", daemon=True).start()

    def wait(self, timeout_s: float | None) -> Sequence[Done]:
        """Return the next that ends, and whatever ended with it."""
        try:
            done = [self._ended.get(timeout=timeout_s)]
            while True:
                done.append(self._ended.get_nowait())
        except Empty:
            return done if "done" in locals() else []

    def cancel(self, item: TrialItem) -> bool:  # noqa: ARG002
        """A thread cannot be stopped from outside."""
        return False

    def close(self) -> None:
        """Threads end with their bodies."""


class TaskBodies:
    """Tasks of one event loop, which runs whenever there is nothing to set up or tear down.

    Args:
        loop_of: Finds the loop, once the first trial is set up; what has to be released at the
            end is put on the stack.
    """

    def __init__(
        self, loop_of: Callable[[TrialItem, ExitStack], asyncio.AbstractEventLoop]
    ) -> None:
        self._loop_of = loop_of
        self._stack = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: dict[asyncio.Task[None], TrialItem] = {}
        self._cancelled: set[TrialItem] = set()

    def start(self, item: TrialItem) -> None:
        """Begin a body as a task, with the context variables that its fixtures set."""
        if self._loop is None:
            self._loop = self._loop_of(item, self._stack)
        task = self._loop.create_task(_time_body(item), context=copy_context())
        self._tasks[task] = item

    def wait(self, timeout_s: float | None) -> Sequence[Done]:
        """Run the loop until a body ends."""
        assert self._loop is not None
        done, _ = self._loop.run_until_complete(
            asyncio.wait(self._tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        )
        ordered = sorted(done, key=lambda task: self._tasks[task].trial.index)
        return [self._take_result(task) for task in ordered]

    def cancel(self, item: TrialItem) -> bool:
        """Cancel a body's task; it ends at its next wait."""
        for task, its_item in self._tasks.items():
            if its_item is item:
                self._cancelled.add(item)
                return task.cancel()
        return False

    def close(self) -> None:
        """Cancel what is left, and release the loop where it is ours."""
        try:
            if self._loop is not None and self._tasks:
                for task in self._tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.wait(self._tasks))
        finally:
            self._stack.close()

    def _take_result(self, task: asyncio.Task[None]) -> Done:
        item = self._tasks.pop(task)
        if task.cancelled() and item in self._cancelled:
            return item, None
        return item, info_of(item, lambda: _outcome(task), "call")


def _outcome(task: asyncio.Task[None]) -> None:
    try:
        task.result()
    except asyncio.CancelledError:
        raise RuntimeError("the body cancelled itself") from None


async def _time_body(item: TrialItem) -> None:
    given = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    item.course.started_s = time.perf_counter()
    try:
        await item.obj(**given)
    finally:
        item.course.body_s = time.perf_counter() - item.course.started_s
