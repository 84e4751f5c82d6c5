"""One trial as a pytest item of its own: a copy of the test with its own request and fixtures.

The copy has the test's name, its marks and its place in the collection tree, so that whatever a
fixture or another plugin asks of it is answered as for the test. What a trial does differently
stands in `TrialItem`, which is put in front of the test's own class.

A trial in the main thread is set up, called and torn down through every hook of pytest. So other
plugins see what they would see of a test, and fixtures end in the order they should. Nothing is
reported: what a trial comes to is noted in its `Course`, and plugins that write reports see the
test alone.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Literal

import pytest

from trialwise.engine.run_state import TrialStart
from trialwise.model.trial import CheckResult
from trialwise.plugin.other_plugins import Reporters, held_back, interrupts_of
from trialwise.plugin.reasons import Course, Ending, Reasons, ending_of, is_mistake
from trialwise.plugin.trial_fixture import TrialHandle, UnknownCriterion

# No frame of this module belongs in the traceback of a body or a fixture.
__tracebackhide__ = True

When = Literal["setup", "call", "teardown"]

MakeItem = Callable[[TrialStart], "TrialItem"]
"""Makes the item of a trial."""

_REPORTERS = pytest.StashKey[Reporters]()


class TrialItem(pytest.Function):
    """What a trial's item does differently from the test it is a copy of."""

    trial: TrialHandle
    start: TrialStart
    reasons: Reasons
    course: Course
    host: pytest.Function
    """The test itself."""
    reseed: Callable[[int], None] | None
    """Undoes what a plugin does to make every test's random numbers the same."""
    reporters: Reporters
    subtest_failures: list[pytest.TestReport]
    is_told: bool
    """Whether a traceback is worth its price now: most of them nobody reads."""

    @property
    def ihook(self) -> Any:
        """The hooks of the test as a trial sends them."""
        return _TrialHooks(self.reporters, super().ihook, self.subtest_failures)

    def setup(self) -> None:
        """Set up the fixtures."""
        if self.reseed is not None:
            self.reseed(self.trial.seed - 1)
        super().setup()

    def runtest(self) -> None:
        """Run the body."""
        if self.reseed is not None:
            self.reseed(self.trial.seed)
        self.course.started_s = time.perf_counter()
        try:
            super().runtest()
        finally:
            self.course.body_s = time.perf_counter() - self.course.started_s

    def _repr_failure_py(self, excinfo: Any, style: Any = None) -> Any:
        return super()._repr_failure_py(excinfo, style) if self.is_told else ""


class _TrialHooks:
    """A hook relay that leaves out plugins that report tests: a trial is no test of the session.

    The failures of subtests are kept instead of being reported.
    """

    def __init__(self, reporters: Reporters, hooks: Any, failures: list[pytest.TestReport]) -> None:
        self._reporters = reporters
        self._hooks = hooks
        self._failures = failures

    def __getattr__(self, name: str) -> Any:
        return self._reporters.leave_out(name, self._hooks)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failures.append(report)


@lru_cache(maxsize=64)
def _trial_class(kind: type[pytest.Function]) -> type[TrialItem]:
    """Return the class of a trial of tests of some class."""
    meta: Any = type(kind)
    made: type[TrialItem] = meta(kind.__name__, (TrialItem, kind), {"__module__": kind.__module__})
    return made


def copy_item(host: pytest.Function, **own: Any) -> TrialItem:
    """Return a trial's own item.

    Args:
        host: The test.
        own: What belongs to the trial: its `trial`, `start`, `reasons` and `reseed`.
    """
    # A copy and not a new item: other plugins have put their own attributes on the test, and
    # collecting it again would call their hooks once for every trial.
    item: Any = copy.copy(host)
    item.__class__ = _trial_class(type(host))
    item.__dict__.update(own, host=host)
    if _REPORTERS not in host.config.stash:
        host.config.stash[_REPORTERS] = Reporters(host.config.pluginmanager)
    item.reporters = host.config.stash[_REPORTERS]
    item.course, item.subtest_failures, item.is_told = Course(), [], True
    # Lists of its own: what a trial prints or notes would otherwise pile up on the test.
    item._report_sections, item.user_properties = [], []
    item.own_markers = list(host.own_markers)
    item.fixturenames = list(host._fixtureinfo.names_closure)
    item.stash = _copy_of_stash(host.stash)
    item._store = item.stash  # the older name, which some plugins still use
    # What was put on the test itself while its trials run, and unittest's list of results.
    for name in ("runtest", "_excinfo"):
        item.__dict__.pop(name, None)
    _renew_instance(item)
    item._initrequest()
    found: TrialItem = item
    return found


def _copy_of_stash(stash: pytest.Stash) -> pytest.Stash:
    """Return what plugins noted of the test; what they note of the trial stays with the trial."""
    own = pytest.Stash()
    own._storage = {
        key: dict(value) if type(value) is dict else value for key, value in stash._storage.items()
    }
    return own


def _renew_instance(item: Any) -> None:
    """Every trial of a method has an instance of the class of its own."""
    is_method = isinstance(item.parent, pytest.Class)
    bound = item.host.obj if is_method else getattr(item, "_obj", None)
    item.__dict__.pop("_instance", None)
    # Hypothesis takes another instance for another test; it makes its examples anew anyway.
    if not is_method or getattr(bound, "is_hypothesis_test", False):
        if bound is not None:
            item._instance = getattr(bound, "__self__", None)
        return
    item.__dict__.pop("_obj", None)
    function = getattr(bound, "__func__", None)
    # Another plugin may have put its own function there; that one is kept, on the new instance.
    if function is not None and function is not getattr(item.cls, item.originalname, function):
        item._obj = function.__get__(item.instance)


def forget_item(item: TrialItem) -> None:
    """Let go of what a finished trial held: it has been torn down and nobody asks it again.

    Every fixture that a shared one was requested by leaves a finalizer with it, to be torn down
    first. Those of a trial are done; kept, they would hold every trial until the session's end.
    """
    for definition in chain.from_iterable(item._fixtureinfo.name2fixturedefs.values()):
        waiting = definition._finalizers
        if waiting and scope_in(item, definition) != "function":
            waiting[:] = [one for one in waiting if not _is_done(one)]
    # A property with the same value in every trial is one property of the test.
    known = item.host.user_properties
    known += [one for one in item.user_properties if one not in known]
    loose: Any = item
    loose._request, loose.funcargs = False, None
    loose.__dict__.pop("_instance", None)
    loose.__dict__.pop("_obj", None)
    # A failed subtest fails its trial; pytest would fail the whole test for it.
    subtests = sys.modules.get("_pytest.subtests")
    key = getattr(subtests, "failed_subtests_key", None)
    if key is not None and key in item.config.stash:
        item.config.stash[key].pop(getattr(item, "id", item.nodeid), None)


def _is_done(finalizer: object) -> bool:
    """Return whether a finalizer is the end of a fixture that has ended already."""
    if not isinstance(finalizer, partial):
        return False
    owner = getattr(finalizer.func, "__self__", None)
    return isinstance(owner, pytest.FixtureDef) and owner.cached_result is None


def scope_in(item: pytest.Function, definition: Any) -> str:
    """Return the scope of one definition of a fixture for a test."""
    own = getattr(getattr(item, "callspec", None), "_arg2scope", {}).get(definition.argname)
    scope: str = definition.scope if own is None else own.value
    # Outside a class its scope is the test's own.
    return "function" if scope == "class" and item.cls is None else scope


def shared_fixtures(item: pytest.Function) -> list[str]:
    """Return the fixtures that all trials of a test share, in the order they are set up."""
    definitions = item._fixtureinfo.name2fixturedefs
    return [
        name
        for name in item._fixtureinfo.names_closure
        if definitions.get(name) and scope_in(item, definitions[name][-1]) != "function"
    ]


class OneByOne:
    """Trials one after the other, each the whole way through pytest.

    Args:
        make: Makes a trial's item.
    """

    def __init__(self, make: MakeItem) -> None:
        self._make = make
        self._ended: list[TrialItem] = []

    @property
    def in_flight(self) -> int:
        """Trials begun and not handed back."""
        return len(self._ended)

    def start(self, start: TrialStart) -> None:
        """Run a trial from its setup to its teardown."""
        item = self._make(start)
        item.ihook.pytest_runtest_protocol(item=item, nextitem=item.host)
        self._ended.append(item)

    def wait(self) -> Sequence[TrialItem]:
        """Return the trials that have ended since."""
        ended, self._ended = self._ended, []
        return ended

    def let_go(self) -> None:
        """Nothing is under way between two calls."""

    def close(self) -> None:
        """Nothing is open between two calls."""


def call_trial(item: TrialItem) -> None:
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
            run_phase(item, "setup", lambda: hooks.pytest_runtest_setup(item=item))
        if item.course.ending.passed:
            run_phase(item, "call", lambda: hooks.pytest_runtest_call(item=item))
    finally:
        with held_back():
            end = partial(hooks.pytest_runtest_teardown, item=item, nextitem=item.host)
            run_phase(item, "teardown", end)
            item.reasons.note_sections(item.trial.index, item.course.sections)
            forget_item(item)


def run_phase(item: TrialItem, when: When, function: Callable[[], object]) -> None:
    """Run one phase of a trial, and take down what came of it."""
    note_phase(item, info_of(item, function, when))


def info_of(item: TrialItem, function: Callable[[], Any], when: When) -> pytest.CallInfo[Any]:
    """Return what came of one phase; an interrupt is raised as it is."""
    return pytest.CallInfo.from_call(function, when=when, reraise=interrupts_of(item.config))


def note_phase(item: TrialItem, call: pytest.CallInfo[None]) -> None:
    """Take down what came of a phase.

    Raises:
        BaseException: The body asks for what the marker does not know, or its code is wrong.
    """
    _report(item, call)
    course, error = item.course, call.excinfo
    if call.when == "teardown":
        course.teardown_error, course.sections = error, item._report_sections
        return
    if call.when == "setup":
        course.setup_s = call.duration
    elif error is not None and (
        isinstance(error.value, UnknownCriterion) or is_mistake(error.value, item.path)
    ):
        raise error.value
    if error is not None:
        root = item.config.rootpath
        course.ending = ending_of(error, when=call.when, root=root, file=item.path)
        item.reasons.note(course.ending, item.trial.index, lambda: item.repr_failure(error))
    elif item.subtest_failures:
        course.ending = _subtest_ending(item)


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


def _subtest_ending(item: TrialItem) -> Ending:
    first, *others = item.subtest_failures
    crash = getattr(first.longrepr, "reprcrash", None)
    said = str(crash.message if crash is not None else first.longrepr).partition("\n")[0]
    more = f" (and {len(others)} more)" if others else ""
    where = None if crash is None else f"{item.path.name}:{crash.lineno}"
    ending = Ending(result=CheckResult.fail(f"subtest: {said}{more}"), where=where)
    item.reasons.note(ending, item.trial.index, lambda: first.longrepr)
    return ending
