"""The trials of one test whose executor runs them in other processes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import pytest
from anyio import move_on_after

from trialwise.engine.attempt import fresh_copy, own_failure
from trialwise.engine.ports import Event, ServiceError, SystemClock, TrialDone
from trialwise.engine.run_state import RunOutcome, TrialStart
from trialwise.executors.jobs import WorkerParts
from trialwise.executors.pool_driver import run_in_pool
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.plugin.body_trials import REPLY_LIMIT, describe_trial
from trialwise.plugin.other_plugins import timeout_of
from trialwise.plugin.reasons import ending_of, is_mistake, show_place
from trialwise.plugin.run_folder import RunLog, TextLog
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.trial_fixture import TrialHandle, UnknownCriterion
from trialwise.plugin.trial_items import Course
from trialwise.runtime.looping import run_in_thread, run_to_end
from trialwise.services.python_function import DaemonThreads
from trialwise.stores.runs import StoredRun

#: How a run says that its first trial was skipped, and so is the test.
SKIPPED = "the body skipped its first trial: "


@dataclass(frozen=True, kw_only=True)
class Body:
    """The test function that is sent to a worker.

    A method is looked up in a new instance of its class for each trial.
    """

    function: Callable[..., Any]
    owner: type | None
    name: str
    """How its class calls it."""
    arguments: Mapping[str, Any]
    """What `parametrize` gives it."""
    takes_trial: bool
    in_thread: bool
    """Whether a plain function gets a thread, since several run side by side or have a limit."""
    limit_s: float | None
    """How many seconds one trial may take."""
    root: Path
    """The folder that places are given below."""
    file: Path
    """The test's own."""

    def __call__(self, parts: WorkerParts) -> BodyRunner:
        """Return what runs the body in a worker."""
        return BodyRunner(self, parts)


class BodyRunner:
    """Runs the trials of a test by calling its body.

    Args:
        body: What to call.
        parts: What the worker has.
    """

    def __init__(self, body: Body, parts: WorkerParts) -> None:
        self._body = body
        self._parts = parts
        (self._experiment,) = parts.plan.experiments
        self._inputs = parts.contract.samplings[self._experiment.name].inputs
        self._criteria = tuple(one.name for one in parts.contract.criteria)
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
        handle = TrialHandle(
            index=start.index,
            input=fresh_copy(given.value),
            expected=fresh_copy(given.expected),
            seed=start.seed,
            criteria=self._criteria,
        )
        handle.on_failed = self._find_place
        course, raised = Course(), ""
        mistake: CheckResult | None = None
        began_s = time.perf_counter()
        try:
            await self._call(handle)
        except UnknownCriterion as unknown:
            mistake = CheckResult.fail(f"cannot be counted: {unknown}", reason=FailReason.BROKEN)
        except BaseException as caught:
            failure = own_failure(caught)
            if is_mistake(failure, self._body.file):
                said = f"raised {type(failure).__name__}: {failure}"
                mistake = CheckResult.fail(said, reason=FailReason.BROKEN)
            excinfo = pytest.ExceptionInfo.from_exception(failure)
            body = self._body
            course.ending = ending_of(excinfo, when="call", root=body.root, file=body.file)
            raised = self._parts.note_raised(failure)
        course.body_s = time.perf_counter() - began_s
        if course.ending.skipped is not None and start.index == 0:
            message = f"{SKIPPED}{course.ending.skipped}"
            raise ServiceError(message, ErrorClass.PRE_VALIDATION)
        trial = describe_trial(
            handle,
            course,
            experiment=self._experiment,
            position=start.position,
            reach=self._parts.reach,
            excerpts=self._parts.excerpts,
            started_s=started_s,
            traceback=raised,
        )
        if mistake is None:
            return trial
        # The run stops without a verdict.
        broken = [Outcome.of_failure(name, mistake, self._body.name) for name in self._criteria]
        return replace(trial, outcomes=tuple(broken))

    async def _call(self, handle: TrialHandle) -> None:
        body = self._body
        function = body.function if body.owner is None else getattr(body.owner(), body.name)
        given = {**body.arguments, **({"trial": handle} if body.takes_trial else {})}
        with move_on_after(body.limit_s) as limit:
            if inspect.iscoroutinefunction(function):
                await function(**given)
            elif body.in_thread:
                await self._threads.run(partial(function, **given), abandon_on_cancel=True)
            else:
                function(**given)
        if limit.cancelled_caught:
            raise TimeoutError(f"no end within {body.limit_s:g} s")

    def _find_place(self, _name: str, _result: CheckResult, frame: FrameType) -> str:
        return show_place(Path(frame.f_code.co_filename), frame.f_lineno, self._body.root)

    async def aclose(self) -> None:
        """End the threads that wait for work."""
        self._threads.close()


T = TypeVar("T")


class WorkerRun:
    """One test, run in workers until its plan needs no more.

    Args:
        item: The test.
        plan: What to run.
        contract: Its contract.
        budget: The session's budget.
        folder: Where runs are kept.
        resume: The stored run to resume.
    """

    teardown_error: pytest.ExceptionInfo[BaseException] | None = None
    """Nothing is torn down in this process."""
    teardown_failures = 0

    def __init__(
        self,
        item: pytest.Function,
        plan: Plan,
        contract: Contract,
        *,
        budget: SessionBudget,
        folder: Path,
        resume: str | None = None,
    ) -> None:
        self._plan = plan
        # The body itself says what holds; what stands for it in a fingerprint is no check.
        criteria = [replace(one, postconditions=_check_nothing) for one in contract.criteria]
        self._contract = replace(contract, criteria=criteria)
        self._budget = budget
        self._log = RunLog(plan, folder, SystemClock().now())
        self._done = () if resume is None else self._log.resume(resume)
        self._body = _describe_body(item, plan.options.concurrency)
        self._outcome: RunOutcome | None = None

    def go(self, conclude: Callable[[WorkerRun], T]) -> T:
        """Run until no further trial is needed, and conclude, also after an interrupt.

        Args:
            conclude: Decides or measures; the run's folder is still open.

        Raises:
            KeyboardInterrupt: Somebody stopped the session; what is complete was concluded on.
            pytest.skip.Exception: The first trial was skipped, and so is the test.
        """
        try:
            self._outcome = run_to_end(lambda asked: run_in_thread(self._run, asked))
            if self._outcome.message.startswith(SKIPPED):
                why = self._outcome.message.removeprefix(SKIPPED)
                raise pytest.skip.Exception(why, _use_item_location=True)
            found = conclude(self)
        finally:
            self._log.close()
        if self._outcome.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        return found

    def _run(self, must_end: Callable[[], bool]) -> RunOutcome:
        return run_in_pool(
            self._plan,
            self._contract,
            self._contract.service,
            is_interrupted=must_end,
            make_runner=self._body,
            # Not imported there: pytest has rewritten its assertions, and it may do things.
            by_value=[self._body.function.__module__.partition(".")[0]],
            log=self._log,
            text_log=TextLog(self._log),
            done=self._done,
            known=None if self._log.stored is None else self._log.stored.texts(),
            listener=self,
            reply_limit=REPLY_LIMIT,
            start_limit=self._budget.take,
            unreached="never reached their body's end",
        )

    def on_event(self, event: Event) -> None:
        """Charge a trial to the budget of the session."""
        if isinstance(event, TrialDone):
            self._budget.pay(event.trial.cost_usd)

    @property
    def outcome(self) -> RunOutcome:
        """The trials that count and why no further one was run."""
        assert self._outcome is not None
        return self._outcome

    @property
    def stored_run(self) -> StoredRun:
        """What the run is kept in, open."""
        return self._log.open()

    @property
    def path(self) -> Path:
        """The folder that the run is kept in."""
        return self.stored_run.path


def _check_nothing(reply: Reply) -> bool:
    """Stands where a contract has a check; bodies are not asked by it."""
    raise AssertionError(reply)


def _describe_body(item: pytest.Function, concurrency: int) -> Body:
    callspec = getattr(item, "callspec", None)
    names = item._fixtureinfo.argnames
    given = getattr(callspec, "params", {})
    limit_s = timeout_of(item)
    return Body(
        function=item.function,
        owner=item.cls,
        name=item.originalname,
        arguments={name: given[name] for name in names if name in given},
        takes_trial="trial" in names,
        in_thread=concurrency > 1 or limit_s is not None,
        limit_s=limit_s,
        root=item.config.rootpath,
        file=item.path,
    )
