"""Several trials at once: set up and torn down one at a time, their bodies side by side.

Setting up stays in the main thread, where pytest's fixtures expect to be; what takes long in a
trial is its body. Sync bodies run in threads, async ones as tasks of one event loop. Output and
logs are captured for the test as a whole, since they cannot be told apart.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

import pytest
from _pytest.outcomes import TEST_OUTCOME
from _pytest.runner import SetupState

from trialwise.engine.run_state import TrialStart
from trialwise.plugin import other_plugins, trial_items
from trialwise.plugin.other_plugins import held_back
from trialwise.plugin.trial_items import MakeItem, OneByOne, TrialItem, info_of

# No frame of this module belongs in the traceback of a body or a fixture.
__tracebackhide__ = True

Done = tuple[TrialItem, "pytest.CallInfo[None] | BaseException | None"]
"""A trial and what came of its body: nothing where it was let go, an interrupt as it is."""

FindLoop: TypeAlias = Callable[[TrialItem, ExitStack], asyncio.AbstractEventLoop]


class SideBySide(OneByOne):
    """Runs trials at once.

    Args:
        host: The test.
        make: Makes a trial's item.
    """

    def __init__(self, host: pytest.Function, make: MakeItem) -> None:
        super().__init__(make)
        self._bodies = bodies_for(host)
        self._limit_s = other_plugins.timeout_of(host)
        self._open = OpenTrials(host.session)
        self._under_way: dict[TrialItem, float] = {}
        """With when each began."""
        self._late: set[TrialItem] = set()
        self._is_letting_go = False
        other_plugins.stop_timer(host)

    @property
    def in_flight(self) -> int:
        """Trials begun and not handed back."""
        return len(self._under_way) + len(self._ended)

    def start(self, start: TrialStart) -> None:
        """Set a trial up and begin its body."""
        item = self._make(start)
        give_own_fixtures(item)
        with held_back():
            self._under_way[item] = time.monotonic()
            trial_items.run_phase(item, "setup", lambda: self._open.setup(item))
            if item.course.ending.passed:
                self._bodies.start(item)
            else:
                self._end(item)

    def wait(self) -> Sequence[TrialItem]:
        """Trials that have ended since, torn down; their bodies may end in any order."""
        while not self._ended:
            self._take_all(self._bodies.wait(self._until_late()))
            self._give_up_late_ones()
        return super().wait()

    def let_go(self) -> None:
        """Cancel what can be cancelled; what cannot is waited for, and counts."""
        if not self._is_letting_go:
            self._is_letting_go = True
            for item in self._under_way:
                self._bodies.cancel(item)

    def close(self) -> None:
        """Tear down whatever is open, also what nobody waits for any more."""
        try:
            self._bodies.close()
        finally:
            for item in list(self._under_way):
                with held_back():
                    self._end(item)
            self._open.restore()

    def _take_all(self, bodies: Sequence[Done]) -> None:
        """Take every body that ended, also beside one that ends the session."""
        # Raised after the others are taken: their trials are complete and must count.
        leaving: BaseException | None = None
        for done in bodies:
            try:
                self._take(done)
            except BaseException as error:
                leaving = leaving or error
        if leaving is not None:
            raise leaving

    def _take(self, done: Done) -> None:
        item, call = done
        if item not in self._under_way:
            # Too late: it was given up. A thread cannot be stopped, so it ran on to its end.
            return
        if isinstance(call, BaseException):
            item.course.is_abandoned = True
            with held_back():
                self._end(item)
            raise call
        if call is None and item in self._late:
            call = info_of(item, self._raise_late, "call")
        with held_back():
            try:
                if call is None:
                    item.course.is_abandoned = True
                else:
                    trial_items.note_phase(item, call)
            finally:
                self._end(item)

    def _end(self, item: TrialItem) -> None:
        """Tear a trial down and hand it back."""
        del self._under_way[item]
        self._late.discard(item)
        trial_items.run_phase(item, "teardown", lambda: self._open.end(item))
        trial_items.forget_item(item)
        self._ended.append(item)

    def _until_late(self) -> float | None:
        """Seconds until the next trial has taken too long."""
        if self._limit_s is None:
            return None
        waiting = [began for item, began in self._under_way.items() if item not in self._late]
        return max(0.0, min(waiting) + self._limit_s - time.monotonic()) if waiting else None

    def _give_up_late_ones(self) -> None:
        if self._limit_s is None:
            return
        now = time.monotonic()
        for item, began in list(self._under_way.items()):
            if item in self._late or now - began < self._limit_s:
                continue
            self._late.add(item)
            if not self._bodies.cancel(item):
                self._take((item, info_of(item, self._raise_late, "call")))

    def _raise_late(self) -> None:
        raise TimeoutError(f"no end within {self._limit_s:g} s")


def give_own_fixtures(item: TrialItem) -> None:
    """Let a trial set up fixtures without another trial seeing them."""
    loose: Any = item
    known = item._fixtureinfo
    own = _OwnDefinitions(item, known.name2fixturedefs)
    loose._fixtureinfo = dataclasses.replace(known, name2fixturedefs=own)
    loose._initrequest()


class _OwnDefinitions(dict[str, Any]):
    """Fixture definitions by name, those of the trial's own scope copied when asked for."""

    def __init__(self, item: TrialItem, known: Any) -> None:
        super().__init__({name: _copies(item, found) for name, found in known.items()})
        self._item = item

    def copy(self) -> _OwnDefinitions:
        """Itself: pytest before 9 takes a copy for every request, which would not look up."""
        return self

    def get(self, name: str, default: Any = None) -> Any:
        """Return the definitions of a fixture, also of one that the body asks for itself."""
        if name not in self:
            found = self._item.session._fixturemanager.getfixturedefs(name, self._item)
            if found is None:
                return default
            self[name] = _copies(self._item, found)
        return self[name]


def _copies(item: TrialItem, definitions: Any) -> list[Any]:
    return [
        _copy(one) if trial_items.scope_in(item, one) == "function" else one for one in definitions
    ]


def _copy(definition: Any) -> Any:
    own = copy.copy(definition)
    own.cached_result, own._finalizers = None, []
    return own


class OpenTrials(SetupState):
    """What is set up while trials run side by side.

    Args:
        session: Whose setup state this stands in for, until `restore`.
    """

    def __init__(self, session: pytest.Session) -> None:
        super().__init__()
        self._session = session
        self._before = session._setupstate
        self.stack = self._before.stack
        self._trials: dict[Any, list[Callable[[], object]]] = {}
        session._setupstate = self

    def restore(self) -> None:
        """Hand back to the state before."""
        self._session._setupstate = self._before

    def setup(self, item: pytest.Item) -> None:
        """Open a trial; what it shares is set up already."""
        self._trials[item] = [item.teardown]
        item.setup()

    def is_node_active(self, node: Any) -> bool:
        """Return whether a trial or something shared is set up."""
        return node in self._trials or node in self.stack

    def addfinalizer(self, finalizer: Callable[[], object], node: Any) -> None:
        """Note what to do when a node ends."""
        if node in self._trials:
            self._trials[node].append(finalizer)
        else:
            super().addfinalizer(finalizer, node)

    def end(self, item: pytest.Item) -> None:
        """Tear a trial down, whatever goes wrong on the way."""
        finalizers = self._trials.pop(item)
        errors: list[BaseException] = []
        while finalizers:
            try:
                finalizers.pop()()
            except TEST_OUTCOME as error:
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise BaseExceptionGroup(f"errors while tearing down {item!r}", errors[::-1])


# --- Bodies side by side --------------------------------------------------------------------------


def bodies_for(host: pytest.Function) -> ThreadBodies | TaskBodies:
    """Return what the bodies of a test run in.

    Which event loop is not ours to choose where another plugin is in charge: fixtures may hold what
    belongs to its loop. A plugin that gives every test a loop of its own gets a thread for each.
    """
    asyncio_plugin = sys.modules.get("pytest_asyncio.plugin")
    if asyncio_plugin is not None and isinstance(host, asyncio_plugin.PytestAsyncioFunction):
        scope = _loop_scope(host)
        if scope == "function":
            return ThreadBodies()
        runner = f"_{scope}_scoped_runner"
        return TaskBodies(lambda item, _: item._request.getfixturevalue(runner).get_loop())
    # A method of unittest's has its own way with coroutines.
    if not inspect.iscoroutinefunction(host.obj) or getattr(host, "nofuncargs", False):
        return ThreadBodies()
    return TaskBodies(_anyio_loop if "anyio_backend" in host.fixturenames else _own_loop)


def _loop_scope(host: pytest.Function) -> str:
    """Return how far the loop of a test of pytest-asyncio's is shared."""
    marker = host.get_closest_marker("asyncio")
    given = {} if marker is None else marker.kwargs
    usual = host.config.getini("asyncio_default_test_loop_scope")
    return str(given.get("loop_scope") or given.get("scope") or usual or "function")


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
                self._ended.put((item, context.run(info_of, item, item.runtest, "call")))
            except BaseException as error:
                self._ended.put((item, error))

        threading.Thread(target=work, name=f"trial {item.trial.index}", daemon=True).start()

    def wait(self, timeout_s: float | None) -> Sequence[Done]:
        """Return the next that ends, and whatever ended with it."""
        done: list[Done] = []
        with suppress(Empty):
            done.append(self._ended.get(timeout=timeout_s))
            while True:
                done.append(self._ended.get_nowait())
        return done

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

    def __init__(self, loop_of: FindLoop) -> None:
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
        return item, info_of(item, lambda: _read_result(task), "call")


def _read_result(task: asyncio.Task[None]) -> None:
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
