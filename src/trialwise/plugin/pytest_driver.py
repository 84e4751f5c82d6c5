"""The trials of one test: from its plan to a record that is kept, by the engine's own rules.

The loop is the engine's, turned inside out: pytest owns the main thread, its signals and its event
loops, so that trials are started from here and not from an event loop of the engine's. Order,
seeds, decisions, limits and the verdict come from the same places as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from trialwise.engine.excerpts import Excerpts
from trialwise.engine.execution import Halt
from trialwise.engine.experiment_state import ExperimentState
from trialwise.engine.ledger import Ledger
from trialwise.engine.ports import SystemClock
from trialwise.engine.spending_meter import Meter
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.outcome import FailReason
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial
from trialwise.plugin.session_budget import SessionBudget
from trialwise.plugin.trial_items import TrialItem
from trialwise.procedures.deciding.run_verdict import decide_run
from trialwise.runtime.running import reproducibility
from trialwise.stores.runs import RunStore, StoredRun

__all__ = ["Executor", "TestRun"]

#: How much of what a body recorded as its reply is kept.
_REPLY_LIMIT = 4000

T = TypeVar("T")


class Executor(Protocol):
    """Runs trials, one by one or side by side; every trial it starts it also tears down."""

    @property
    def in_flight(self) -> int:
        """Trials started and not handed back."""
        ...

    def start(self, index: int, given: Input, seed: int) -> None:
        """Set a trial up and begin its body."""
        ...

    def wait(self) -> Sequence[TrialItem]:
        """Trials that have ended since, at least one; they are torn down."""
        ...

    def let_go(self) -> None:
        """No result of what is in flight is needed: end what can be ended."""
        ...

    def close(self) -> None:
        """Tear down whatever is still open."""
        ...


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

    def opened(self) -> StoredRun:
        """The folder, with its journal open."""
        if self.stored is None:
            self.stored = self._runs.create(self._plan, self.started_at)
        return self.stored

    def append(self, record: Mapping[str, Any]) -> None:
        """Journal a trial."""
        self.opened().journal.append(record)

    def sync(self) -> None:
        """Make the journal safe."""
        if self.stored is not None:
            self.stored.journal.sync()

    def close(self) -> None:
        """Let go of the journal."""
        if self.stored is not None:
            self.stored.close()


class TestRun:
    """One test, run trial by trial until its plan needs no more.

    Args:
        plan: What to run.
        contract: With the inputs' values.
        budget: The session's budget.
        folder: Where runs are kept.
        resume: The stored run to go on with.
        asked_to_stop: Whether the session is to end, and why.
    """

    __test__ = False

    def __init__(
        self,
        plan: Plan,
        contract: Contract,
        *,
        budget: SessionBudget,
        folder: Path,
        resume: str | None = None,
        asked_to_stop: Callable[[], str | bool] = lambda: False,
    ) -> None:
        clock = SystemClock()
        (experiment,) = plan.experiments
        self._plan = plan
        self._experiment = experiment
        self._inputs = contract.samplings[experiment.name].inputs
        self._log = _RunLog(plan, folder, clock.now())
        done = () if resume is None else self._log.resume(resume)
        self._scheduler = ExperimentState(plan, experiment, done)
        self._clock = clock
        self._meter = Meter(plan.options.budget, clock)
        for trial in done:
            self._meter.add(trial)
        self._budget = budget
        self._ledger = Ledger(self._log, clock)
        self._excerpts = Excerpts(reply_limit=_REPLY_LIMIT, redact=None)
        self._halt = Halt()
        self._asked_to_stop = asked_to_stop
        self._completed = 0
        self._excused = 0
        self.teardown_error: pytest.ExceptionInfo[BaseException] | None = None
        """Of the first trial whose fixtures could not be torn down."""
        self.teardown_failures = 0

    def go(self, executor: Executor, conclude: Callable[[TestRun], T]) -> T:
        """Run until no further trial is needed, and conclude, also where somebody stopped it.

        Args:
            executor: Of this test.
            conclude: Judges or measures; the run's folder is still open.

        Raises:
            KeyboardInterrupt: Somebody stopped the session; what is complete was concluded on.
            pytest.skip.Exception: The first trial was skipped, and so is the test.
        """
        stopped: BaseException | None = None
        try:
            try:
                self._loop(executor)
            except (KeyboardInterrupt, pytest.exit.Exception) as error:
                stopped = error
                self._halt.because(StopReason.INTERRUPTED, "the run was interrupted")
                self._drain(executor)
            finally:
                executor.close()
                self._ledger.sync()
            found = conclude(self)
        finally:
            self._log.close()
        if stopped is not None:
            raise stopped
        return found

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Those that count, in issue order."""
        return tuple(sorted(self._scheduler.trials, key=lambda trial: trial.index))

    @property
    def stop(self) -> StopReason:
        """Why no further trial was run."""
        if self._halt.reason is None or self._scheduler.is_finished:
            return self._scheduler.stop
        return self._halt.reason

    @property
    def message(self) -> str:
        """Why it ended before its plan, where it did."""
        return self._halt.message if self.stop.is_premature else ""

    @property
    def stored(self) -> StoredRun:
        """What it is kept in, open."""
        return self._log.opened()

    @property
    def path(self) -> Path:
        """The folder it is kept in."""
        assert self._log.stored is not None
        return self._log.stored.path

    def _loop(self, executor: Executor) -> None:
        scheduler, halt = self._scheduler, self._halt
        while True:
            while halt.reason is None and not scheduler.is_settled:
                if executor.in_flight >= scheduler.concurrency:
                    break
                index = scheduler.peek()
                if index is None or not self._is_affordable():
                    break
                scheduler.take()
                position = scheduler.order[index]
                executor.start(index, self._inputs[position], scheduler.seed_of(index))
            if not executor.in_flight:
                return
            if halt.reason is not None or scheduler.is_settled:
                executor.let_go()
            for item in executor.wait():
                self._count(item)
            if reason := self._asked_to_stop():
                halt.because(StopReason.INTERRUPTED, f"the session ends: {reason}")

    def _drain(self, executor: Executor) -> None:
        """After Ctrl-C: count what is complete; a second Ctrl-C waits for nothing."""
        executor.let_go()
        while executor.in_flight:
            for item in executor.wait():
                self._count(item)

    def _is_affordable(self) -> bool:
        spent = self._meter.exhausted(self._scheduler.in_flight) or self._budget.take()
        if spent is not None:
            self._halt.because(*spent)
        return spent is None

    def _count(self, item: TrialItem) -> None:
        """Journal one trial, then let it decide."""
        if item.course.teardown_error is not None:
            self.teardown_error = self.teardown_error or item.course.teardown_error
            self.teardown_failures += 1
        if item.course.is_abandoned:
            self._meter.abandoned += 1
            self._meter.abandon([item.trial.so_far()])
            self._budget.pay(item.trial.cost_usd)
            self._scheduler.in_flight -= 1
            return
        ending = item.course.ending
        if ending.skipped is not None and not self._scheduler.trials:
            raise pytest.skip.Exception(ending.skipped, _use_item_location=True)
        trial = self._trial(item)
        try:
            self._ledger.append(trial)  # durable before it counts
        except OSError as error:
            self._halt.because(StopReason.SERVICE, f"the trial log cannot be written: {error}")
            self._scheduler.in_flight -= 1
            return
        self._scheduler.add(trial)
        self._meter.add(trial)
        self._budget.pay(trial.cost_usd)
        if self._ledger.take_turn(self._clock.monotonic()):
            self._ledger.sync()
        self._completed += 1
        self._excused += trial.is_excused
        self._check_error_rate()

    def _trial(self, item: TrialItem) -> Trial:
        course, handle = item.course, item.trial
        ending = course.ending
        reached = ending.passed or ending.result.reason is FailReason.CONDITION
        latency = handle.latency_s if handle.latency_s is not None else course.body_s
        text = self._excerpts.text
        return Trial(
            experiment=self._experiment.name,
            index=handle.index,
            input_id=self._experiment.input_ids[self._scheduler.order[handle.index]],
            seed=handle.seed,
            outcomes=handle.outcomes(ending),
            error_class=ending.error_class,
            error="" if reached else text(ending.result.explanation),
            latency_s=round(latency, 6) if reached else None,
            usage=handle.usage,
            cost_usd=handle.cost_usd,
            setup_s=round(course.setup_s, 6),
            started_s=round(max(0.0, course.started_s - self._meter.began_s), 6),
            reply=None if handle.reply is None else text(handle.reply, _REPLY_LIMIT),
        )

    def _check_error_rate(self) -> None:
        rule = self._plan.options.abort
        if self._completed < rule.after:
            return
        if self._excused > rule.max_error_rate * self._completed:
            self._halt.because(
                StopReason.ERROR_RATE,
                f"{self._excused} of {self._completed} trials never reached their body's end: "
                "skipped, a fixture that failed, or infrastructure",
            )

    def judged(self) -> RunRecord:
        """The verdict on what was run, written down."""
        stored = self.stored
        verdict = decide_run(
            self._plan,
            self.trials,
            stops={self._experiment.name: self.stop},
            stop=self.stop,
            spending=self._meter.spending(),
            run_id=stored.run_id,
            started_at=stored.started_at,
            message=self.message,
            reproducibility=reproducibility(self._plan),
        )
        stored.write_record(verdict)
        return RunRecord(run_id=stored.run_id, plan=self._plan, trials=self.trials, verdict=verdict)
