"""What pytest calls once a marked test is collected, what a session keeps, and what it shows.

A worker of pytest-xdist sends what a test came to as plain values; the summary at the end of the
session is made of those alone, so that it is the same with workers and without.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from _pytest.reports import CollectErrorRepr
from _pytest.runner import check_interactive_exception
from _pytest.terminal import TerminalReporter

from trialwise.documents.numbers import as_count, as_duration, as_money
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.documents.results import LineKind, ResultLine, RunResults, Status
from trialwise.errors import TrialwiseError
from trialwise.model import Decision, Plan, Verdict
from trialwise.model.codec import from_plain
from trialwise.pages.results import describe_verdicts, list_attention
from trialwise.pages.suite_totals import bound_suite_errors, list_error_sentences, sum_spending
from trialwise.plugin import other_plugins, trial_items
from trialwise.plugin.admission import CASE, admit, is_marked
from trialwise.plugin.marked_test import RESULTS, MarkedTest, Workbench
from trialwise.plugin.reporting import Judged
from trialwise.plugin.session import BODY, SessionBudget, Settings, settings_of
from trialwise.plugin.trial_items import TrialItem, When
from trialwise.renderers.capabilities import Capabilities, pick_style, read_capabilities
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
        plans = [item.stash[CASE].plan for item in items if CASE in item.stash]
        write_plans(self.config, plans, self.settings)

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
            kept = item.stash.get(RESULTS, None)
            self.results += kept or []
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
        given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
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
            write_summary(terminalreporter, self.results, self.settings, self.config)

    def workbench(self, item: pytest.Item) -> Workbench:
        """Return the `trialwise` fixture of a test."""
        return Workbench(item, self.settings, self.budget)


# --- What stands at the end of the session, or before it ------------------------------------------

_GAP = "  "
#: What has a line: a criterion speaks for its inputs.
_SHOWN = (LineKind.CRITERION, LineKind.LATENCY)
#: What has a sentence instead of figures, which stands below its name.
_GATES = (LineKind.GATE, LineKind.REPORTED)


def write_summary(
    terminal: TerminalReporter,
    results: Sequence[dict[str, Any]],
    settings: Settings,
    config: pytest.Config,
) -> None:
    """Say how all marked tests went, and write the reports that were asked for."""
    writer = terminal._tw
    able = read_capabilities(writer._file)
    able = replace(able, colour=writer.hasmarkup, width=writer.fullwidth)
    terminal.write_sep("=", "trialwise")
    if hasattr(config.option, "tx") and config.option.tx:
        # Workers finish in any order.
        results = sorted(results, key=lambda one: str(one["contract"]))
    decided = [one for one in results if "verdict" in one]
    verdicts = [from_plain(Verdict, one["verdict"]) for one in decided]
    runs = describe_verdicts(verdicts).runs if verdicts else ()
    for line in _draw_lines(runs, able):
        terminal.write_line(line)
    for text in _list_comparisons(results, able):
        terminal.write_line(text)
    for one in results:
        if "baseline" in one:
            rates = ", ".join(
                rate if name == BODY else f"{name} {rate}" for name, rate in one["rates"].items()
            )
            terminal.write_line(f"measured {rates}{_GAP}{one['contract']}")
            for warning in one["warnings"]:
                terminal.write_line(f"{_GAP}{warning}")
            terminal.write_line(f"{_GAP}{one['baseline']}")
    for text in (*_list_totals(verdicts, able), *_list_notes(results, verdicts, config)):
        indent = " " * (len(text) - len(text.lstrip()))
        for line in wrap_text(able.show(text.strip()), able.width - len(indent)):
            terminal.write_line(f"{indent}{line}")
    for line in _write_reports(decided, settings):
        terminal.write_line(line)


def _list_comparisons(results: Sequence[dict[str, Any]], able: Capabilities) -> Iterator[str]:
    """List what each comparison came to, in the sentence that answers its question."""
    for one in results:
        if "comparison" in one:
            decision = Decision(one["decision"])
            mark = able.paint(decision.value, pick_style(Status(decision).tone))
            indent = " " * (len(decision.value) + len(_GAP))
            lines = wrap_text(able.show(one["statement"]), able.width - len(indent))
            yield f"{mark}{_GAP}{lines[0]}"
            yield from (f"{indent}{line}" for line in lines[1:])
            yield f"{indent}{able.show(one['comparison'])}"


def _draw_lines(runs: Sequence[RunResults], able: Capabilities) -> Iterator[str]:
    """Draw a line a criterion: verdict and figures first, since a test's name may be long."""
    everything = [line for run in runs for line in run.lines]
    gates = [line for line in everything if line.kind in _GATES and line.sentence]
    lines = [line for line in everything if line.kind in (*_SHOWN, *_GATES) and line not in gates]
    # A single column is a sentence.
    figures = [
        (line.sentence,)
        if line.figures is None or line.sentence
        else line.figures.with_level().columns[:7]
        for line in lines
    ]
    table = [columns for columns in figures if len(columns) > 1]
    widths = [max(map(count_cells, column)) for column in zip(*table, strict=True)]
    word = max((count_cells(line.label) for line in (*lines, *gates)), default=0)
    filled = [width for width in widths if width]
    whole = sum(filled) + len(_GAP) * max(0, len(filled) - 1)
    whole = max([whole, *(count_cells(columns[0]) for columns in figures if len(columns) == 1)])
    for line, columns in zip(lines, figures, strict=True):
        if len(columns) == 1:
            text = pad(columns[0], whole)
        else:
            sized = enumerate(zip(columns, widths, strict=True))
            # A column that is empty in every line takes no room.
            cells = [pad(cell, width, right=n in (0, 3)) for n, (cell, width) in sized if width]
            text = pad(_GAP.join(cells), whole)
        space = " " * (word - count_cells(line.label))
        mark = able.paint(able.show(line.label), pick_style(line.tone))
        yield f"{mark}{space}{_GAP}{able.show(text)}{_GAP}{able.show(_name_line(line))}".rstrip()
        yield from (f"{' ' * (word + len(_GAP))}{able.show(one)}" for one in line.below)
    for line in gates:
        space = " " * (word - count_cells(line.label))
        mark = able.paint(able.show(line.label), pick_style(line.status.tone))
        yield f"{mark}{space}{_GAP}{able.show(_name_line(line))}"
        for text in wrap_text(able.show(line.sentence), able.width - word - 2 * len(_GAP)):
            yield f"{' ' * (word + len(_GAP))}{text}"


def _name_line(line: ResultLine) -> str:
    return line.contract if line.name == BODY else f"{line.contract} {line.name}"


def _list_totals(verdicts: Sequence[Verdict], able: Capabilities) -> Iterator[str]:
    """List how many, what they took, and what may be wrong about all of them together."""
    if not verdicts:
        return
    decisions = [verdict.decision for verdict in verdicts]
    counts = [f"{decisions.count(which)} {which.value}" for which in Decision if which in decisions]
    spent = sum_spending(verdicts)
    said = [f"{as_count(len(verdicts), 'verdict')}: {', '.join(counts)}"]
    said += [as_count(spent.trials, "trial"), as_duration(spent.seconds)]
    yield able.dot.join(said if spent.usd is None else [*said, as_money(spent.usd)])
    yield from list_error_sentences(bound_suite_errors(verdicts))


def _list_notes(
    results: Sequence[dict[str, Any]], verdicts: Sequence[Verdict], config: pytest.Config
) -> Iterator[str]:
    """List what a reader would otherwise miss; what failed has said so above."""
    unfinished = [one for one in verdicts if one.stop.is_premature]
    # A run that was decided before its limit is not continued: more trials could turn its verdict.
    if any(one.decision is Decision.INCONCLUSIVE for one in unfinished):
        yield "`pytest --trialwise-resume` continues unfinished tests; their trials are kept"
    if other_plugins.reruns_failures(config):
        yield "decided tests were not rerun: running one again until it passes would bias its rate"
    for one in results:
        if one.get("note"):
            yield f"{one['contract']}: {one['note']}"
    for verdict in verdicts:
        if verdict.decision is Decision.PASS:
            for note in list_attention(verdict):
                yield f"{verdict.contract}: {note.removeprefix(f'{BODY}: ')}"


def _write_reports(decided: Sequence[dict[str, Any]], settings: Settings) -> Iterator[str]:
    """Write the reports that were asked for, and where they are."""
    if not decided or (settings.html is None and settings.summary is None):
        return
    from trialwise.reports.formats import ReportSource, render_report, write_report
    from trialwise.stores.runs import RunStore

    runs = RunStore(settings.store)
    locations = {one["run_id"]: one["run"] for one in decided}
    try:
        records = [runs.load(one["run_id"]) for one in decided]
        source = ReportSource(records=records, name="pytest", locations=locations)
        if settings.html is not None:
            yield f"report: {write_report(settings.html, replace(source, locations={}))}"
        if settings.summary is not None:
            text = render_report(source, "markdown")
            with settings.summary.open("a", encoding="utf-8") as stream:
                stream.write(text)
            yield f"summary: {settings.summary}"
    except (TrialwiseError, OSError) as error:
        yield f"the report was not written: {error}"


def write_plans(config: pytest.Config, plans: Sequence[Plan], settings: Settings) -> None:
    """Print plans instead of running them."""
    from trialwise.pages.run_rules import render_rules, render_together
    from trialwise.runtime.earlier_runs import expense_of

    terminal: Any = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    terminal.write_sep("=", "trialwise: what would be run")
    for plan in plans:
        expense = expense_of(plan, settings.store)
        terminal.write(render_rules(plan, expense=expense, width=terminal._tw.fullwidth))
        terminal.write_line("")
    terminal.write(render_together(plans, width=terminal._tw.fullwidth))
    most = as_count(sum(plan.max_trials for plan in plans), "trial")
    terminal.write_line(f"{as_count(len(plans), 'decided test')}, at most {most}; nothing was run")
