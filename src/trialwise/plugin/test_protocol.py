"""A marked test from pytest's point of view: one setup, one call, one teardown, three reports.

Setup is what all trials share, the call is every trial and the verdict, teardown is what was
shared. Each is reported through the hooks that report any test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
from _pytest.runner import check_interactive_exception

from trialwise.plugin.other_plugins import interrupts_of
from trialwise.plugin.trial_items import shared_fixtures

When = Literal["setup", "call", "teardown"]


def report_phases(
    item: pytest.Function,
    nextitem: pytest.Item | None,
    *,
    call: Callable[[], None],
    leftovers: Callable[[], None],
) -> None:
    """Run a marked test.

    Args:
        item: The test.
        nextitem: The one after it, which may share fixtures.
        call: Every trial and the verdict.
        leftovers: Raises what went wrong in tearing trials down.
    """
    loose: Any = item
    hooks = item.ihook
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if not loose._request:  # a plugin runs the test again
        loose._initrequest()
    try:
        ready = _phase(item, "setup", lambda: _set_up_shared(item)).passed
        if ready and not item.config.getoption("setuponly", False):
            _phase(item, "call", lambda: _call(item, call))
        last = item.session.shouldfail or item.session.shouldstop

        def teardown() -> None:
            hooks.pytest_runtest_teardown(item=item, nextitem=None if last else nextitem)
            leftovers()

        _phase(item, "teardown", teardown)
    finally:
        loose._request, loose.funcargs = False, None
    hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _set_up_shared(item: pytest.Function) -> None:
    """Set up what all trials share, and leave the rest to them.

    What is wrong with it is an error of the test, as for any test: fifty trials could only say it
    fifty times.
    """
    own = item.fixturenames
    item.fixturenames = shared_fixtures(item)
    try:
        item.ihook.pytest_runtest_setup(item=item)
    finally:
        item.fixturenames = own
    _require_fixtures(item)
    # The test itself is not set up: its trials stand in its place.
    state = item.session._setupstate
    state.teardown_exact(_Sibling(item))  # type: ignore[arg-type]
    loose: Any = item
    loose._initrequest()


def _require_fixtures(item: pytest.Function) -> None:
    """Ask pytest for a fixture that does not exist, which raises the error of any test."""
    callspec = getattr(item, "callspec", None)
    known = {"request", *item._fixtureinfo.name2fixturedefs, *getattr(callspec, "params", ())}
    for name in item._fixtureinfo.names_closure:
        if name not in known:
            item._request.getfixturevalue(name)


def _call(item: pytest.Function, call: Callable[[], None]) -> None:
    """Call every trial as if that were the test's body, with all that plugins do around one."""
    loose: Any = item
    loose.runtest = call
    try:
        item.ihook.pytest_runtest_call(item=item)
    finally:
        del loose.runtest


class _Sibling:
    """An item beside another one, as far as the setup state asks."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def listchain(self) -> list[Any]:
        return [*self._item.listchain()[:-1], self]


def _phase(item: pytest.Item, when: When, function: Callable[[], None]) -> pytest.TestReport:
    call = pytest.CallInfo.from_call(function, when=when, reraise=interrupts_of(item.config))
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
    if check_interactive_exception(call, report):
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    return report
