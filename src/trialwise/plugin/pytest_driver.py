"""The trials of one test: drives the engine's run state from pytest's main thread.

pytest owns the main thread, its signals and its event loops, so the trials are started from here
and not on an event loop of the engine. Order, seeds, decisions and limits come from `RunState`, as
everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from trialwise.engine.drivers.run_drivers import Executor, drive
from trialwise.engine.excerpts import Excerpts, TextKeeper
from trialwise.engine.ports import SystemClock
from trialwise.engine.run_parts import Ledger
from trialwise.engine.run_state import RunOutcome, RunState
from trialwise.model.claim import Input
from trialwise.model.plan import Plan
from trialwise.plugin.body_trials import REPLY_LIMIT, describe_trial
from trialwise.plugin.run_folder import RunLog, TextLog
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.trial_items import TrialItem
from trialwise.stores.runs import StoredRun

_UNREACHED = "never reached their body's end (a fixture that failed or skipped, or infrastructure)"

T = TypeVar("T")


class TestRun:
    """One test, run trial by trial until its plan needs no more.

    Args:
        plan: What to run.
        budget: The session's budget.
        folder: Where runs are kept.
        resume: The stored run to resume.
        asked_to_stop: Whether the session is to end, and why.
    """

    __test__ = False

    def __init__(
        self,
        plan: Plan,
        *,
        budget: SessionBudget,
        folder: Path,
        resume: str | None = None,
        asked_to_stop: Callable[[], str | bool] = lambda: False,
    ) -> None:
        clock = SystemClock()
        # A test has one list of inputs, so one experiment.
        (self._experiment,) = plan.experiments
        self._log = RunLog(plan, folder, clock.now())
        done = () if resume is None else self._log.resume(resume)
        self._state = RunState(
            plan, done, clock=clock, start_limit=budget.take, unreached=_UNREACHED
        )
        self._clock = clock
        self._budget = budget
        self._excerpts = Excerpts(
            reply_limit=REPLY_LIMIT, redact=None, keeps_inputs=plan.options.keep_inputs
        )
        self._keeper = TextKeeper(
            self._excerpts,
            log=TextLog(self._log),
            known=None if self._log.stored is None else self._log.stored.texts(),
            keeps_inputs=plan.options.keep_inputs,
        )
        self._ledger = Ledger(self._state, self._log, clock, self._keeper)
        self._asked_to_stop = asked_to_stop
        self.teardown_error: pytest.ExceptionInfo[BaseException] | None = None
        """The error of the first trial whose fixtures could not be torn down."""
        self.teardown_failures = 0

    def go(self, executor: Executor[TrialItem], conclude: Callable[[TestRun], T]) -> T:
        """Run until no further trial is needed, and conclude, also after an interrupt.

        Args:
            executor: The executor of this test.
            conclude: Decides or measures; the run's folder is still open.

        Raises:
            KeyboardInterrupt: Somebody stopped the session; what is complete was concluded on.
            pytest.skip.Exception: The first trial was skipped, and so is the test.
        """
        try:
            stopped = drive(
                self._state,
                executor,
                self._count,
                stops_run=(KeyboardInterrupt, pytest.exit.Exception),
                asked_to_stop=self._asked_to_stop,
            )
            # Before the verdict is written: a record must not speak of trials that a power cut
            # could still take away.
            self._ledger.sync()
            found = conclude(self)
        finally:
            self._ledger.sync()
            self._log.close()
        if stopped is not None:
            raise stopped
        return found

    @property
    def outcome(self) -> RunOutcome:
        """The trials that count and why no further one was run."""
        return self._state.outcome()._replace(texts=self._keeper.texts)

    @property
    def stored_run(self) -> StoredRun:
        """What the run is kept in, open."""
        return self._log.open()

    @property
    def path(self) -> Path:
        """The folder that the run is kept in."""
        assert self._log.stored is not None
        return self._log.stored.path

    def _count(self, item: TrialItem) -> None:
        """Count one trial that pytest has torn down."""
        if item.course.teardown_error is not None:
            self.teardown_error = self.teardown_error or item.course.teardown_error
            self.teardown_failures += 1
        if item.course.is_abandoned:
            self._state.abandon(item.trial.index, [item.trial.so_far()])
            self._budget.pay(item.trial.cost_usd)
            return
        skipped = item.course.ending.skipped
        # A test that skips itself does so in its first trial, before anything is counted.
        if skipped is not None and not self._state.meter.trials:
            raise pytest.skip.Exception(skipped, _use_item_location=True)
        handle = item.trial
        (experiment,) = self._state.experiments
        trial = describe_trial(
            handle,
            item.course,
            experiment=self._experiment,
            position=experiment.order[handle.index],
            reach=self._state.reach,
            excerpts=self._excerpts,
            started_s=item.course.started_s - self._state.meter.began_s,
        )
        given = None
        if handle.input is not None:
            given = Input(id=trial.input_id, value=handle.input, expected=handle.expected)
        if self._ledger.count(trial, given) is None:
            self._state.abandon(trial.index)
            return
        self._budget.pay(trial.cost_usd)
        if self._ledger.take_turn(self._clock.monotonic()):
            self._ledger.sync()
