"""What pytest calls once a marked test is collected, and what a session keeps."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from _pytest.reports import CollectErrorRepr
from _pytest.runner import check_interactive_exception
from _pytest.terminal import TerminalReporter

from trialwise.plugin import other_plugins, summary, trial_items
from trialwise.plugin.admission import CASE, admit, is_marked
from trialwise.plugin.marked_test import RESULTS, MarkedTest, Workbench
from trialwise.plugin.reporting import Judged
from trialwise.plugin.session import SessionBudget, settings_of
from trialwise.plugin.trial_items import TrialItem, When
from trialwise.runtime.earlier_runs import EarlierRuns
from trialwise.stores.run_files import join_session


def report_phases(test: MarkedTest, nextitem: pytest.Item | None) -> None:
    """Run a marked test.

    Args:
        test: The test.
        nextitem: The one after it, which may share fixtures.
    """
    item = test.item
    loose: Any = item
    hooks = item.ihook
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if not loose._request:  # a plugin runs the test again
        loose._initrequest()
    try:
        ready = _phase(item, "setup", lambda: _set_up_shared(item)).passed
        if ready and not item.config.getoption("setuponly", False):
            _phase(item, "call", lambda: _call(test))
        last = item.session.shouldfail or item.session.shouldstop

        def teardown() -> None:
            hooks.pytest_runtest_teardown(item=item, nextitem=None if last else nextitem)
            test.raise_leftovers()

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
    item.fixturenames = trial_items.shared_fixtures(item)
    try:
        item.ihook.pytest_runtest_setup(item=item)
    finally:
        item.fixturenames = own
    _require_fixtures(item)
    # The test itself is not set up: its trials stand in its place, below the same parent.
    item.session._setupstate.teardown_exact(item.parent)  # type: ignore[arg-type]
    loose: Any = item
    loose._initrequest()


def _require_fixtures(item: pytest.Function) -> None:
    """Ask pytest for a fixture that does not exist, which raises the error of any test."""
    callspec = getattr(item, "callspec", None)
    known = {"request", *item._fixtureinfo.name2fixturedefs, *getattr(callspec, "params", ())}
    for name in item._fixtureinfo.names_closure:
        if name not in known:
            item._request.getfixturevalue(name)


def _call(test: MarkedTest) -> None:
    """Call every trial as if that were the test's body, with all that plugins do around one."""
    loose: Any = test.item
    loose.runtest = test.call
    try:
        loose.ihook.pytest_runtest_call(item=loose)
    finally:
        del loose.runtest


def _phase(item: pytest.Item, when: When, function: Callable[[], None]) -> pytest.TestReport:
    ends = other_plugins.interrupts_of(item.config)
    call = pytest.CallInfo.from_call(function, when=when, reraise=ends)
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
    if check_interactive_exception(call, report):
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    return report


class TrialwisePlugin:
    """The session's part of trialwise.

    Args:
        config: The session's.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = settings_of(config)
        shared: dict[str, Any] = getattr(config, "workerinput", {})
        # Every worker of pytest-xdist is a process, and all of them are one session.
        join_session(str(shared.get("testrunuid", ""))[:12])
        folder = shared.get("trialwise_folder")
        self.budget = SessionBudget(
            self.settings.budget, None if folder is None else Path(folder) / "budget.json"
        )
        self._earlier = EarlierRuns(self.settings.store) if self.settings.resume else None
        self.results: list[dict[str, Any]] = []
        """The results of every marked test that was reported, in that order."""

    # --- Collection ---------------------------------------------------------------------------

    def admit(
        self, items: Sequence[pytest.Item], report: pytest.CollectReport | None = None
    ) -> None:
        """Plan marked tests; what is wrong with them is an error of their collector."""
        for item in items:
            if CASE in item.stash:
                other_plugins.drop_rerun_marker(item)
        errors = admit(items, self.settings)
        if not errors:
            return
        text = "\n".join(errors)
        if report is None:
            raise pytest.UsageError(text)
        report.outcome, report.longrepr = "failed", CollectErrorRepr(text)

    def print_plans(self, items: Sequence[pytest.Item]) -> None:
        """Say what would be run and what it could cost."""
        cases = [item.stash[CASE] for item in items if CASE in item.stash]
        summary.write_plans(self.config, [case.plan for case in cases], self.settings)

    # --- Running ------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> object:
        """Run a marked test as many times as its plan needs; before any plugin that reruns."""
        if isinstance(item, TrialItem):
            trial_items.call_trial(item)
            return True
        if not is_marked(item):
            return None
        assert isinstance(item, pytest.Function)
        test = MarkedTest(item, self.settings, self.budget, self._earlier)
        try:
            report_phases(test, nextitem)
        except (KeyboardInterrupt, pytest.exit.Exception):
            # No report will say what the test came to until here.
            self.results += item.stash.get(RESULTS, [])
            raise
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Let nobody else call a marked test: its trials are called, and it is decided once."""
        is_trials = isinstance(item, TrialItem) or "runtest" in vars(item)  # one, or side by side
        if not is_trials and is_marked(item):
            other_plugins.refuse_second_run(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> object:
        """Run a coroutine function that no other plugin answers for."""
        if not isinstance(pyfuncitem, TrialItem) or not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        if pyfuncitem.funcargs.get("anyio_backend"):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        given = {name: pyfuncitem.funcargs[name] for name in names}
        anyio.run(partial(pyfuncitem.obj, **given))
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show a verdict as it should be read, and send its data along."""
        report = yield
        results = item.stash.get(RESULTS, None)
        if isinstance(item, TrialItem) or call.when != "call" or results is None:
            return report
        if call.excinfo is not None and isinstance(call.excinfo.value, Judged):
            if report.passed:  # whoever turned it: a verdict is not for others to change
                report.outcome = "failed"
            if report.failed:
                report.longrepr = call.excinfo.value.shown
        report.trialwise = results  # type: ignore[attr-defined]
        return report

    # --- Reporting ----------------------------------------------------------------------------

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the results, whichever worker they come from."""
        self.results += getattr(report, "trialwise", ())

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Write INCONCLUSIVE where pytest would write FAILED."""
        results = [one for one in getattr(report, "trialwise", ()) if "verdict" in one]
        decisions = {one["verdict"]["decision"] for one in results}
        if report.failed and decisions <= {"PASS", "INCONCLUSIVE"} and "INCONCLUSIVE" in decisions:
            return "failed", "F", "INCONCLUSIVE"
        return None

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say how all marked tests went."""
        if self.results:
            summary.write_summary(terminalreporter, self.results, self.settings, self.config)

    def workbench(self, item: pytest.Item) -> Workbench:
        """Return the `trialwise` fixture of a test."""
        return Workbench(item, self.settings, self.budget)
