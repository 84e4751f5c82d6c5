"""Several trials at once: set up and torn down one at a time, their bodies side by side.

Setting up stays in the main thread, where pytest's fixtures expect to be; what takes long in a
trial is its body. Bodies are tasks of one event loop, which runs whenever there is nothing to set
up or tear down; the task of a sync body waits for a thread. Output and logs are captured for the
test as a whole, since they cannot be told apart.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

import pytest
from _pytest.outcomes import TEST_OUTCOME
from _pytest.runner import SetupState

from trialwise.engine.run_state import TrialStart
from trialwise.plugin import trial_items
from trialwise.plugin.other_plugins import held_back, limit_body, timeout_of
from trialwise.plugin.trial_items import MakeItem, OneByOne, TrialItem, info_of
from trialwise.services.python_function import DaemonThreads

# No frame of this module belongs in the traceback of a body or a fixture.
__tracebackhide__ = True

FindLoop: TypeAlias = Callable[[TrialItem, ExitStack], asyncio.AbstractEventLoop]
"""Finds the loop, once the first trial is set up; what has to be released at the end is put on the
stack."""


class SideBySide(OneByOne):
    """Runs trials at once.

    Args:
        host: The test.
        make: Makes a trial's item.
    """

    def __init__(self, host: pytest.Function, make: MakeItem) -> None:
        super().__init__(make)
        self._find_loop, self._in_threads = _pick_loop(host)
        self._limit_s = timeout_of(host)
        self._open = OpenTrials(host.session)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack, self._threads = ExitStack(), DaemonThreads()
        self._under_way: dict[TrialItem, asyncio.Task[Any] | None] = {}
        """With the task of each body that has begun."""
        self._is_letting_go = False

    @property
    def in_flight(self) -> int:
        """Trials begun and not handed back."""
        return len(self._under_way) + len(self._ended)

    def start(self, start: TrialStart) -> None:
        """Set a trial up and begin its body, with the context variables that its fixtures set."""
        item = self._make(start)
        give_own_fixtures(item)
        with held_back():
            # Before its setup: an interrupt in the middle of that still finds it to tear it down.
            self._under_way[item] = None
            trial_items.run_phase(item, "setup", lambda: self._open.setup(item))
            if not item.course.ending.passed:
                self._end(item)
                return
            if self._loop is None:
                self._loop = self._find_loop(item, self._stack)
            body = self._run_body(item)
            self._under_way[item] = self._loop.create_task(body, context=copy_context())

    def wait(self) -> Sequence[TrialItem]:
        """Trials that have ended since, torn down; their bodies may end in any order."""
        while not self._ended:
            self._take_all(self._run_loop(asyncio.FIRST_COMPLETED))
        return super().wait()

    def let_go(self) -> None:
        """Cancel what can be cancelled; what cannot is waited for, and counts."""
        # A thread cannot be stopped from outside.
        if not self._is_letting_go and not self._in_threads:
            self._is_letting_go = True
            self._cancel_all()

    def close(self) -> None:
        """Tear down whatever is open, also what nobody waits for any more."""
        try:
            self._cancel_all()
            self._run_loop(asyncio.ALL_COMPLETED)
        finally:
            # The lease of a plugin's loop ends before the fixtures are torn down that hold the loop
            # itself.
            self._stack.close()
            self._threads.close()
            for item in list(self._under_way):
                with held_back():
                    self._end(item)
            self._open.restore()

    def _cancel_all(self) -> None:
        for task in filter(None, self._under_way.values()):
            task.cancel()

    def _run_loop(self, until: str) -> list[TrialItem]:
        """Run the loop until a body ends, or all of them; return the trials of those that did."""
        tasks = {task: item for item, task in self._under_way.items() if task is not None}
        if self._loop is None or not tasks:
            return []
        ended, _ = self._loop.run_until_complete(asyncio.wait(tasks, return_when=until))
        return sorted((tasks[task] for task in ended), key=lambda item: item.trial.index)

    async def _run_body(self, item: TrialItem) -> Any:
        """Run a body; return what came of it where that is known, and an interrupt as it is."""
        work = partial(info_of, item, item.runtest, "call")
        body = self._threads.run(work, abandon_on_cancel=True) if self._in_threads else _time(item)
        try:
            return await limit_body(self._limit_s, body)
        except KeyboardInterrupt as stopped:  # asyncio would leave its loop in the middle of it
            return stopped

    def _take_all(self, items: Sequence[TrialItem]) -> None:
        """Take every body that ended, also beside one that ends the session."""
        # Raised after the others are taken: their trials are complete and must count.
        leaving: BaseException | None = None
        for item in items:
            try:
                with held_back():
                    self._take(item)
            except BaseException as error:
                leaving = leaving or error
        if leaving is not None:
            raise leaving

    def _take(self, item: TrialItem) -> None:
        task = self._under_way[item]
        assert task is not None
        # Until its end is noted: an interrupt says nothing of the trial.
        item.course.is_abandoned = True
        try:
            if task.cancelled() and self._is_letting_go:
                return
            found = None if task.cancelled() or task.exception() else task.result()
            call: pytest.CallInfo[None] = (
                found
                if isinstance(found, pytest.CallInfo)
                else info_of(item, lambda: _read_result(task), "call")
            )
            item.course.is_abandoned = False
            trial_items.note_phase(item, call)
        finally:
            self._end(item)

    def _end(self, item: TrialItem) -> None:
        """Tear a trial down and hand it back."""
        del self._under_way[item]
        trial_items.run_phase(item, "teardown", lambda: self._open.end(item))
        trial_items.forget_item(item)
        self._ended.append(item)


def _read_result(task: asyncio.Task[Any]) -> None:
    try:
        stopped = task.result()
    except asyncio.CancelledError:
        raise RuntimeError("the body cancelled itself") from None
    if stopped is not None:
        raise stopped


async def _time(item: TrialItem) -> None:
    given = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    item.course.started_s = time.perf_counter()
    try:
        await item.obj(**given)
    finally:
        item.course.body_s = time.perf_counter() - item.course.started_s


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
    found = []
    for one in definitions:
        own = one
        if trial_items.scope_in(item, one) == "function":
            own = copy.copy(one)
            own.cached_result, own._finalizers = None, []
        found.append(own)
    return found


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


# --- The loop that bodies run in ------------------------------------------------------------------


def _pick_loop(host: pytest.Function) -> tuple[FindLoop, bool]:
    """Return how to find the loop for the bodies of a test, and whether they need threads.

    Which event loop is not ours to choose where another plugin is in charge: fixtures may hold what
    belongs to its loop. A plugin that gives every test a loop of its own gets a thread for each.
    """
    asyncio_plugin = sys.modules.get("pytest_asyncio.plugin")
    if asyncio_plugin is not None and isinstance(host, asyncio_plugin.PytestAsyncioFunction):
        # How far the loop is shared.
        marker = host.get_closest_marker("asyncio")
        given = {} if marker is None else marker.kwargs
        usual = host.config.getini("asyncio_default_test_loop_scope")
        scope = given.get("loop_scope") or given.get("scope") or usual or "function"
        if scope == "function":
            return _waiting_loop, True
        runner = f"_{scope}_scoped_runner"
        return lambda item, _: item._request.getfixturevalue(runner).get_loop(), False
    # A method of unittest's has its own way with coroutines.
    if not inspect.iscoroutinefunction(host.obj) or getattr(host, "nofuncargs", False):
        return _waiting_loop, True
    return (_anyio_loop if "anyio_backend" in host.fixturenames else _own_loop), False


def _anyio_loop(item: TrialItem, stack: ExitStack) -> asyncio.AbstractEventLoop:
    from anyio.pytest_plugin import extract_backend_and_options, get_runner

    name, options = extract_backend_and_options(item.funcargs["anyio_backend"])
    runner: Any = stack.enter_context(get_runner(name, options))
    loop: asyncio.AbstractEventLoop = runner.get_loop()
    return loop


def _own_loop(_item: TrialItem, stack: ExitStack) -> asyncio.AbstractEventLoop:
    return stack.enter_context(asyncio.Runner()).get_loop()


def _waiting_loop(_item: TrialItem, stack: ExitStack) -> asyncio.AbstractEventLoop:
    # Not a runner, which would make it the loop that fixtures of the main thread find.
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    return loop
