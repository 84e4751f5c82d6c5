"""The body of a marked test in a worker: other processes have neither its fixtures nor its session.

So only the fixture `trial` and the arguments of `parametrize` are there. What the worker sends back
is a trial, as of any run.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from anyio import move_on_after

from trialwise.engine.attempt import fresh_copy, own_failure
from trialwise.engine.ports import ServiceError
from trialwise.engine.run_state import TrialStart
from trialwise.executors.jobs import WorkerParts
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Outcome, Trial
from trialwise.plugin.body_trials import describe_trial
from trialwise.plugin.reasons import ending_of, is_mistake, show_place
from trialwise.plugin.trial_fixture import TrialHandle, UnknownCriterion
from trialwise.plugin.trial_items import Course
from trialwise.services.python_function import DaemonThreads

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
