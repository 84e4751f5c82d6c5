"""The trials of one test: drives the engine's run state from pytest's main thread.

pytest owns the main thread, its signals and its event loops, so the trials are started from here
and not on an event loop of the engine. Order, seeds, decisions and limits come from `RunState`, as
everywhere; this module makes a `Trial` of what pytest saw of a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from trialwise.engine.drivers.blocking_driver import Executor, drive
from trialwise.engine.error_classes import Trouble
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ledger import Ledger
from trialwise.engine.ports import SystemClock
from trialwise.engine.run_state import RunOutcome, RunState
from trialwise.engine.text_keeper import TextKeeper
from trialwise.model.plan import Plan
from trialwise.model.sampling import Input
from trialwise.model.trial import FailReason, Trial
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.trial_items import TrialItem
from trialwise.stores.runs import RunStore, StoredRun

#: How much of what a body recorded as its reply is kept.
_REPLY_LIMIT = 4000
_UNREACHED = "never reached their body's end (a fixture that failed or skipped, or infrastructure)"

T = TypeVar("T")


class _RunLog:
    """The run's folder, made with the first trial that counts: a skipped test leaves none."""

    def __init__(self, plan: Plan, folder: Path, started_at: datetime) -> None:
        self._plan = plan
        self._runs = RunStore(folder)
        self.started_at = started_at
        self.stored: StoredRun | None = None

    def resume(self, run_id: str) -> Sequence[Trial]:
        """Go on with a stored run; its trials."""
        self.stored = self._runs.resume(run_id, self._plan)
        self.started_at = self.stored.started_at
        return self.stored.trials()

    def open(self) -> StoredRun:
        """Return the folder, with its journal open."""
        if self.stored is None:
            self.stored = self._runs.create(self._plan, self.started_at)
        return self.stored

    def append_text(self, text: str) -> None:
        """Journal a trial."""
        self.open().journal.append_text(text)

    def sync(self) -> None:
        """Make the journal safe."""
        if self.stored is not None:
            self.stored.journal.sync()

    def close(self) -> None:
        """Let go of the journal."""
        if self.stored is not None:
            self.stored.close()


class _TextLog:
    """The texts of the run's folder, which is made with the first of them."""

    def __init__(self, log: _RunLog) -> None:
        self._log = log

    def append(self, record: Mapping[str, Any]) -> None:
        """Keep a text."""
        self._log.open().text_log.append(record)

    def sync(self) -> None:
        """Make the texts safe."""
        if self._log.stored is not None:
            self._log.stored.text_log.sync()


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
        self._log = _RunLog(plan, folder, clock.now())
        done = () if resume is None else self._log.resume(resume)
        self._state = RunState(
            plan, done, clock=clock, start_limit=budget.take, unreached=_UNREACHED
        )
        self._clock = clock
        self._budget = budget
        self._excerpts = Excerpts(
            reply_limit=_REPLY_LIMIT, redact=None, keeps_inputs=plan.options.keep_inputs
        )
        self._keeper = TextKeeper(
            self._excerpts,
            log=_TextLog(self._log),
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
            self._state.abandon([item.trial.so_far()])
            self._budget.pay(item.trial.cost_usd)
            return
        skipped = item.course.ending.skipped
        # A test that skips itself does so in its first trial, before anything is counted.
        if skipped is not None and not self._state.meter.trials:
            raise pytest.skip.Exception(skipped, _use_item_location=True)
        trial = self._trial(item)
        handle = item.trial
        given = None
        if handle.input is not None:
            given = Input(id=trial.input_id, value=handle.input, expected=handle.expected)
        if self._ledger.count(trial, given) is None:
            self._state.abandon()
            return
        self._budget.pay(trial.cost_usd)
        if self._ledger.take_turn(self._clock.monotonic()):
            self._ledger.sync()

    def _trial(self, item: TrialItem) -> Trial:
        course, handle = item.course, item.trial
        ending = course.ending
        reached = ending.passed or ending.result.reason is FailReason.CONDITION
        if reached:
            self._state.reach.note_reply()
        # What was refused before the first answer is set up wrongly; afterwards it is an answer.
        settled = self._state.reach.settle(Trouble(ending.error_class, ending.status))
        ending = replace(ending, error_class=settled)
        latency = handle.latency_s if handle.latency_s is not None else course.body_s
        text = self._excerpts.text
        (experiment,) = self._state.experiments
        return Trial(
            experiment=self._experiment.name,
            index=handle.index,
            input_id=self._experiment.input_ids[experiment.order[handle.index]],
            seed=handle.seed,
            outcomes=handle.outcomes(ending),
            error_class=ending.error_class,
            error="" if reached else text(ending.result.explanation),
            latency_s=round(latency, 6) if reached else None,
            usage=handle.usage,
            cost_usd=handle.cost_usd,
            setup_s=round(course.setup_s, 6),
            started_s=round(max(0.0, course.started_s - self._state.meter.began_s), 6),
            reply=None if handle.reply is None else text(handle.reply, _REPLY_LIMIT),
        )
