"""Fixtures of several trials at once: each trial its own, and those of a wider scope shared.

pytest keeps a fixture's value with its definition and what is set up on one stack, since it never
runs two tests at a time. Here a trial gets copies of the definitions that are its own, and the
stack a leaf for every trial that is open.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.outcomes import TEST_OUTCOME
from _pytest.runner import SetupState

from trialwise.plugin.trial_items import TrialItem, scope_in

__all__ = ["OpenTrials", "give_own_fixtures"]

# No frame of this module belongs into the traceback of a body or a fixture.
__tracebackhide__ = True


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
        """The definitions of a name; looked up where the body asks for a fixture by itself."""
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
        """Whether a trial or something shared is set up."""
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
