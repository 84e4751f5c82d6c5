"""The trials of one test: in pytest's main thread, one by one or side by side, or in workers.

pytest owns the main thread, its signals and its event loops, so local trials are started from there
and not on an event loop of the engine. Order, seeds, decisions and limits come from `RunState`, as
everywhere.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from types import FrameType, TracebackType
from typing import Any, TypeAlias, TypeVar

import pytest

from trialwise.engine import ports, run_parts
from trialwise.engine.attempt import Caller, own_failure
from trialwise.engine.drivers.run_drivers import drive
from trialwise.engine.run_state import RunOutcome, TrialStart
from trialwise.executors.pool_driver import run_in_pool
from trialwise.model import Contract, Plan, Reply, StopReason
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.plugin import other_plugins, reasons, trial_fixture
from trialwise.plugin.admission import Case
from trialwise.plugin.session import SessionBudget
from trialwise.plugin.side_by_side import SideBySide
from trialwise.plugin.trial_items import OneByOne, TrialItem, copy_item
from trialwise.runtime.earlier_runs import EarlierRun
from trialwise.runtime.looping import run_in_thread, run_to_end
from trialwise.services.python_function import DaemonThreads
from trialwise.stores.runs import RunStore, StoredRun

_UNREACHED = "never reached their body's end (a fixture that failed or skipped, or infrastructure)"
#: How a run in workers says that its first trial was skipped, and so is the test.
_SKIPPED = "the body skipped its first trial: "

T = TypeVar("T")

_Ended: TypeAlias = tuple[RunOutcome, BaseException | None]
"""What came of the trials, and the interrupt that ended them."""


@dataclass(eq=False)
class TestRun:
    """One test, run until its plan needs no more."""

    __test__ = False

    item: pytest.Function
    case: Case
    """What it asks."""
    earlier: EarlierRun
    """Its plan, and the stored run to resume."""
    budget: SessionBudget
    """The session's budget."""
    folder: Path
    """Where runs are kept."""
    reasons: reasons.Reasons
    """Takes note of why trials fail."""

    def __post_init__(self) -> None:
        self._plan, contract = self.earlier.plan, self.case.contract
        # The body itself says what holds; what stands for it in a fingerprint is no check.
        criteria = [replace(one, postconditions=_check_nothing) for one in contract.criteria]
        self._contract = replace(contract, criteria=criteria)
        self.teardown_errors: list[BaseException] = []
        """What went wrong in tearing trials down."""

    def go(self, conclude: Callable[[RunOutcome, StoredRun], T]) -> T:
        """Run until no further trial is needed, and conclude, also after an interrupt.

        Args:
            conclude: Decides or measures; the run's folder is still open.

        Raises:
            KeyboardInterrupt: Somebody stopped the session; what is complete was concluded on.
            pytest.skip.Exception: The first trial was skipped, and so is the test.
        """
        runs, earlier = RunStore(self.folder), self.earlier.stored
        if earlier is None:
            stored = runs.create(self._plan, ports.SystemClock().now())
        else:
            stored = runs.resume(earlier.run_id, self._plan)
        with stored:
            settings: run_parts.DriverSettings = {
                "log": stored.journal,
                "text_log": stored.text_log,
                "done": stored.trials(),
                "known": stored.texts(),
                "start_limit": self.budget.take,
                "unreached": _UNREACHED,
            }
            try:
                is_local = self._plan.options.executor == "local"
                run = self._run_here if is_local else self._run_in_workers
                outcome, stopped = run(settings)
            except BaseException:
                # A test that is skipped, or whose code is wrong, has measured nothing to be kept.
                # What an earlier session left is never removed: it may hold replies paid for.
                if earlier is None and not stored.trials():
                    rmtree(stored.path)
                raise
            found = conclude(outcome, stored)
        if stopped is not None:
            raise stopped
        return found

    def _run_here(self, settings: run_parts.DriverSettings) -> _Ended:
        item, session, contract = self.item, self.item.session, self._contract
        self._reseed = other_plugins.reseeding_of(item.config)
        self._criteria = [one.name for one in contract.criteria]
        parts = run_parts.RunParts(self._plan, contract, contract.service, **settings)
        self._parts = parts
        is_alone = self._plan.options.concurrency == 1
        executor = OneByOne(self._make_item) if is_alone else SideBySide(item, self._make_item)
        stopped = drive(
            parts.state,
            executor,
            self._count,
            stops_run=(KeyboardInterrupt, pytest.exit.Exception),
            asked_to_stop=lambda: session.shouldfail or session.shouldstop,
        )
        # Before the verdict is written: a record must not speak of trials that a power cut could
        # still take away.
        parts.ledger.sync()
        return parts.finish(), stopped

    def _make_item(self, start: TrialStart) -> TrialItem:
        given = self._parts.runner.input_of(start)
        handle = trial_fixture.TrialHandle(
            start, given, self._criteria, lambda *failed: self._note_failed(item, *failed)
        )
        own = {"trial": handle, "start": start, "reasons": self.reasons, "reseed": self._reseed}
        item = copy_item(self.item, **own)
        return item

    def _note_failed(
        self, item: TrialItem, name: str, result: CheckResult, frame: FrameType
    ) -> str:
        """Show a failed check like an assertion, while its frame is there."""
        path = Path(frame.f_code.co_filename)
        where = reasons.show_place(path, frame.f_lineno, item.config.rootpath)

        def write() -> Any:
            error = CheckFailed(f"{name}: {result.explanation}")
            trace = TracebackType(None, frame, frame.f_lasti, frame.f_lineno)
            excinfo = pytest.ExceptionInfo.from_exception(error.with_traceback(trace))
            return item.repr_failure(excinfo)

        ending = reasons.Ending(result=result, where=where)
        self.reasons.note(ending, item.trial.index, write)
        return where

    def _count(self, item: TrialItem) -> None:
        """Count one trial that pytest has torn down."""
        parts, state, course = self._parts, self._parts.state, item.course
        if course.teardown_error is not None:
            self.teardown_errors.append(course.teardown_error.value)
        # Its outcome is not known, but what it has cost was spent all the same.
        if course.is_abandoned:
            state.abandon(item.trial.index, [item.trial.so_far()])
            self.budget.pay(item.trial.cost_usd)
            return
        # A test that skips itself does so in its first trial, before anything is counted.
        if course.ending.skipped is not None and not state.meter.trials:
            raise pytest.skip.Exception(course.ending.skipped, _use_item_location=True)
        (experiment,) = self._plan.experiments
        trial = trial_fixture.describe_trial(
            item.trial,
            course,
            experiment=experiment,
            reach=state.reach,
            excerpts=parts.excerpts,
            started_s=course.started_s - state.meter.began_s,
        )
        given = parts.runner.input_of(item.start)
        if parts.ledger.count(trial, None if given.value is None else given) is None:
            state.abandon(trial.index)
            return
        self.budget.pay(trial.cost_usd)
        if parts.ledger.take_turn(parts.clock.monotonic()):
            parts.ledger.sync()

    # In workers nothing is set up or torn down in this process.
    def _run_in_workers(self, settings: run_parts.DriverSettings) -> _Ended:
        settings["listener"] = self

        def run(must_end: Callable[[], bool]) -> RunOutcome:
            return run_in_pool(
                self._plan,
                self._contract,
                self._contract.service,
                is_interrupted=must_end,
                make_runner=_describe_body(self.item),
                # Not imported there: pytest has rewritten its assertions, and it may do things.
                by_value=[self.item.function.__module__.partition(".")[0]],
                **settings,
            )

        outcome = run_to_end(lambda asked: run_in_thread(run, asked))
        if outcome.message.startswith(_SKIPPED):
            why = outcome.message.removeprefix(_SKIPPED)
            raise pytest.skip.Exception(why, _use_item_location=True)
        stopped = KeyboardInterrupt() if outcome.stop is StopReason.INTERRUPTED else None
        return outcome, stopped

    def on_event(self, event: ports.Event) -> None:
        """Charge a trial to the budget of the session."""
        if isinstance(event, ports.TrialDone):
            self.budget.pay(event.trial.cost_usd)


def _check_nothing(reply: Reply) -> bool:
    """Stands where a contract has a check; bodies are not asked by it."""
    raise AssertionError(reply)


class CheckFailed(AssertionError):
    """A check that does not hold, shown like an assertion at its place."""

    # Tracebacks would spell out where it is defined, which nobody needs to know.
    __module__ = "builtins"


# --- A test whose executor runs its body in other processes ---------------------------------------


@dataclass(eq=False)
class BodyRunner:
    """Runs the trials of a test in a worker, by calling its function.

    A method is looked up in a new instance of its class for each trial.
    """

    plan: Plan
    contract: Contract
    caller: Caller
    """Knows how texts are kept."""
    _: KW_ONLY
    function: Callable[..., Any]
    owner: type | None
    name: str
    """How its class calls it."""
    arguments: Mapping[str, Any]
    """What `parametrize` gives it."""
    takes_trial: bool
    limit_s: float | None
    """How many seconds one trial may take."""
    root: Path
    """The folder that places are given below."""
    file: Path
    """The test's own."""

    def __post_init__(self) -> None:
        (self._experiment,) = self.plan.experiments
        self._inputs = self.contract.samplings[self._experiment.name].inputs
        self._criteria = tuple(one.name for one in self.contract.criteria)
        self._threads = DaemonThreads()

    async def run(self, start: TrialStart, started_s: float) -> Trial:
        """Run the body once.

        Args:
            start: Which trial.
            started_s: When it began, in seconds since the run began.

        Raises:
            ServiceError: The test skips itself.
        """
        given = self._inputs[start.position]
        handle = trial_fixture.TrialHandle(start, given, self._criteria, self._find_place)
        course, raised = reasons.Course(), ""
        mistake = ""
        began_s = time.perf_counter()
        try:
            await self._call(handle)
        except trial_fixture.UnknownCriterion as unknown:
            mistake = f"cannot be counted: {unknown}"
        except BaseException as caught:
            failure = own_failure(caught)
            if reasons.is_mistake(failure, self.file):
                mistake = f"raised {type(failure).__name__}: {failure}"
            excinfo = pytest.ExceptionInfo.from_exception(failure)
            course.ending = reasons.ending_of(excinfo, when="call", root=self.root, file=self.file)
            raised = self.caller.note_raised(failure)
        course.body_s = time.perf_counter() - began_s
        if course.ending.skipped is not None and start.index == 0:
            message = f"{_SKIPPED}{course.ending.skipped}"
            raise ports.ServiceError(message, ErrorClass.PRE_VALIDATION)
        trial = trial_fixture.describe_trial(
            handle,
            course,
            experiment=self._experiment,
            reach=self.caller.reach,
            excerpts=self.caller.excerpts,
            started_s=started_s,
            traceback=raised,
        )
        if not mistake:
            return trial
        # Here the process of the session cannot be told otherwise: such a trial ends the run.
        result = CheckResult.fail(mistake, reason=FailReason.BROKEN)
        broken = [Outcome.of_failure(name, result, self.name) for name in self._criteria]
        return replace(trial, outcomes=tuple(broken))

    async def _call(self, handle: trial_fixture.TrialHandle) -> None:
        function = self.function if self.owner is None else getattr(self.owner(), self.name)
        given = {**self.arguments, **({"trial": handle} if self.takes_trial else {})}
        if inspect.iscoroutinefunction(function):
            await other_plugins.limit_body(self.limit_s, function(**given))
        elif self.plan.options.concurrency > 1 or self.limit_s is not None:
            # Several side by side must not wait for each other, and a thread can be left alone.
            work = self._threads.run(partial(function, **given), abandon_on_cancel=True)
            await other_plugins.limit_body(self.limit_s, work)
        else:
            function(**given)

    def _find_place(self, _name: str, _result: CheckResult, frame: FrameType) -> str:
        path = Path(frame.f_code.co_filename)
        return reasons.show_place(path, frame.f_lineno, self.root)

    async def aclose(self) -> None:
        """End the threads that wait for work."""
        self._threads.close()


def _describe_body(item: pytest.Function) -> partial[BodyRunner]:
    callspec = getattr(item, "callspec", None)
    names = item._fixtureinfo.argnames
    given = getattr(callspec, "params", {})
    return partial(
        BodyRunner,
        function=item.function,
        owner=item.cls,
        name=item.originalname,
        arguments={name: given[name] for name in names if name in given},
        takes_trial="trial" in names,
        limit_s=other_plugins.timeout_of(item),
        root=item.config.rootpath,
        file=item.path,
    )
