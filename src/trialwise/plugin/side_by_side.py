"""Several trials at once: set up and torn down one at a time, their bodies side by side.

Setting up stays in the main thread, where pytest's fixtures expect to be; what takes long in a
trial is its body. Output and logs are captured for the test as a whole, since they cannot be told
apart.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from _pytest.outcomes import TEST_OUTCOME
from _pytest.runner import SetupState

from trialwise.engine.run_state import TrialStart
from trialwise.plugin import other_plugins
from trialwise.plugin.bodies import Bodies, Done, bodies_for
from trialwise.plugin.one_by_one import MakeItem, end_trial, info_of, note_call, note_setup
from trialwise.plugin.other_plugins import held_back
from trialwise.plugin.reasons import Reasons
from trialwise.plugin.trial_items import TrialItem, forget_item, scope_in

# No frame of this module belongs into the traceback of a body or a fixture.
__tracebackhide__ = True


class SideBySide:
    """Runs trials at once.

    Args:
        host: The test.
        make: Makes a trial's item.
        reasons: Takes note of why trials fail.
    """

    def __init__(self, host: pytest.Function, make: MakeItem, reasons: Reasons) -> None:
        self._make = make
        self._reasons = reasons
        self._bodies: Bodies = bodies_for(host)
        self._limit_s = other_plugins.timeout_of(host)
        self._open = OpenTrials(host.session)
        self._under_way: dict[TrialItem, float] = {}
        """With when each began."""
        self._late: set[TrialItem] = set()
        self._ended: list[TrialItem] = []
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
            setup = info_of(item, lambda: self._open.setup(item), "setup")
            note_setup(item, setup, self._reasons)
            if setup.excinfo is not None:
                self._end(item)
            else:
                self._bodies.start(item)

    def wait(self) -> Sequence[TrialItem]:
        """Trials that have ended since, torn down; their bodies may end in any order."""
        while not self._ended:
            self._take_all(self._bodies.wait(self._until_late()))
            self._give_up_late_ones()
        ended, self._ended = self._ended, []
        return ended

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
                    note_call(item, call, self._reasons)
            finally:
                self._end(item)

    def _end(self, item: TrialItem) -> None:
        """Tear a trial down and hand it back."""
        del self._under_way[item]
        self._late.discard(item)
        end_trial(item, info_of(item, lambda: self._open.end(item), "teardown"))
        forget_item(item)
        self._ended.append(item)

    def _until_late(self) -> float | None:
        """Seconds until the next trial has taken too long."""
        if self._limit_s is None:
            return None
        waiting = [began for item, began in self._under_way.items() if item not in self._late]
        if not waiting:
            return None
        return max(0.0, min(waiting) + self._limit_s - time.monotonic())

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
    return [_copy(one) if scope_in(item, one) == "function" else one for one in definitions]


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
