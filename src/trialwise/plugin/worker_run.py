"""The trials of one test whose executor runs them in other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from trialwise.engine.ports import SystemClock
from trialwise.engine.run_events import Event, TrialDone
from trialwise.engine.run_state import RunOutcome
from trialwise.executors.pool_driver import run_in_pool
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.reply import Reply
from trialwise.plugin.body_trials import REPLY_LIMIT
from trialwise.plugin.other_plugins import timeout_of
from trialwise.plugin.run_folder import RunLog, TextLog
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.worker_bodies import SKIPPED, Body
from trialwise.runtime.looping import run_in_thread, run_to_end
from trialwise.stores.runs import StoredRun

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
