"""A trial in the main thread: set up, called and torn down through every hook of pytest.

So other plugins see what they would see of a test, and fixtures end in the order they should.
Nothing is reported: what a trial comes to is noted in its `Course`, and plugins that write reports
see the test alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import pytest

from trialwise.engine.run_state import TrialStart
from trialwise.model.trial import CheckResult
from trialwise.plugin.other_plugins import held_back, interrupts_of
from trialwise.plugin.reasons import Ending, ending_of, is_mistake
from trialwise.plugin.trial_fixture import UnknownCriterion
from trialwise.plugin.trial_items import TrialItem, forget_item

if TYPE_CHECKING:
    from trialwise.plugin.reasons import Reasons


# No frame of this module belongs into the traceback of a body or a fixture.
__tracebackhide__ = True

When = Literal["setup", "call", "teardown"]

MakeItem = Callable[[TrialStart], TrialItem]
"""Makes the item of a trial."""


class OneByOne:
    """Trials one after the other, each the whole way through pytest.

    Args:
        make: Makes a trial's item.
    """

    def __init__(self, make: MakeItem) -> None:
        self._make = make
        self._done: list[TrialItem] = []

    @property
    def in_flight(self) -> int:
        """Whether there is a trial that was not handed back."""
        return len(self._done)

    def start(self, start: TrialStart) -> None:
        """Run a trial from its setup to its teardown."""
        item = self._make(start)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=item.host)
        self._done.append(item)

    def wait(self) -> Sequence[TrialItem]:
        """Return the trial that was run."""
        done, self._done = self._done, []
        return done

    def let_go(self) -> None:
        """Nothing is under way between two calls."""

    def close(self) -> None:
        """Nothing is open between two calls."""


def call_trial(item: TrialItem, reasons: Reasons) -> None:
    """Run one trial: called by pytest for the trial's item.

    Raises:
        KeyboardInterrupt: Somebody stopped the session; the trial is torn down.
        pytest.exit.Exception: The body did.
    """
    hooks = item.ihook
    try:
        # Ctrl-C in the middle of a setup would leave fixtures that nobody tears down, so it is
        # held back until the phase is over. A body may take long and is interrupted at once.
        with held_back():
            setup = info_of(item, lambda: hooks.pytest_runtest_setup(item=item), "setup")
            note_setup(item, setup, reasons)
        if setup.excinfo is None:
            call = info_of(item, lambda: hooks.pytest_runtest_call(item=item), "call")
            note_call(item, call, reasons)
    finally:
        with held_back():
            ended = info_of(
                item,
                lambda: hooks.pytest_runtest_teardown(item=item, nextitem=item.host),
                "teardown",
            )
            end_trial(item, ended)
            reasons.note_sections(item.trial.index, item.course.sections)
            forget_item(item)


def info_of(item: TrialItem, function: Callable[[], object], when: When) -> pytest.CallInfo[None]:
    """Return what came of one phase; an interrupt is raised as it is."""
    found: pytest.CallInfo[None] = pytest.CallInfo.from_call(
        function,  # type: ignore[arg-type]
        when=when,
        reraise=interrupts_of(item.config),
    )
    return found


def note_setup(item: TrialItem, call: pytest.CallInfo[None], reasons: Reasons) -> None:
    """Take down what came of the setup."""
    _report(item, call)
    item.course.setup_s = call.duration
    if call.excinfo is not None:
        item.course.ending = _ending(item, call.excinfo, "setup", reasons)


def note_call(item: TrialItem, call: pytest.CallInfo[None], reasons: Reasons) -> None:
    """Take down what came of the body.

    Raises:
        BaseException: The body asks for what the marker does not know, or its code is wrong.
    """
    _report(item, call)
    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, UnknownCriterion) or (error and is_mistake(error, item.path)):
        raise error
    if call.excinfo is not None:
        item.course.ending = _ending(item, call.excinfo, "call", reasons)
    elif item.subtest_failures:
        item.course.ending = _subtest_ending(item, reasons)


def end_trial(item: TrialItem, call: pytest.CallInfo[None]) -> None:
    """Take down what came of the teardown, and what was printed and logged until then."""
    _report(item, call)
    item.course.teardown_error = call.excinfo
    item.course.sections = item._report_sections


def _report(item: TrialItem, call: pytest.CallInfo[None]) -> None:
    """Let every plugin see the phase's report, as they note things of it that fixtures read."""
    usepdb = item.config.getoption("usepdb", False)
    item.is_told = bool(usepdb)
    try:
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    finally:
        item.is_told = True
    if usepdb and call.excinfo is not None and report.failed:
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)


def _ending(
    item: TrialItem,
    excinfo: pytest.ExceptionInfo[BaseException],
    when: When,
    reasons: Reasons,
) -> Ending:
    ending = ending_of(excinfo, when=when, root=item.config.rootpath, file=item.path)
    reasons.note(ending, item.trial.index, lambda: item.repr_failure(excinfo))
    return ending


def _subtest_ending(item: TrialItem, reasons: Reasons) -> Ending:
    first = item.subtest_failures[0]
    crash = getattr(first.longrepr, "reprcrash", None)
    said = str(crash.message if crash is not None else first.longrepr).partition("\n")[0]
    count = len(item.subtest_failures)
    more = f" (and {count - 1} more)" if count > 1 else ""
    where = None if crash is None else f"{item.path.name}:{crash.lineno}"
    ending = Ending(result=CheckResult.fail(f"subtest: {said}{more}"), where=where)
    reasons.note(ending, item.trial.index, lambda: first.longrepr)
    return ending
