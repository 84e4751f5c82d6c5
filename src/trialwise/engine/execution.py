"""One experiment under way: workers that start trials, wait for them and count them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from anyio import (
    CancelScope,
    Event,
    create_task_group,
    get_cancelled_exc_class,
    move_on_after,
    to_thread,
)
from anyio.lowlevel import checkpoint

from trialwise.engine.attempt import Caller, Response
from trialwise.engine.criterion_progress import Progress
from trialwise.engine.experiment_state import ExperimentState
from trialwise.engine.ledger import Ledger
from trialwise.engine.pacing import Pacer
from trialwise.engine.ports import Clock, ServiceError
from trialwise.engine.reply_checking import Examined, ReplyChecker
from trialwise.engine.spending_meter import Meter
from trialwise.model.evidence import StopReason
from trialwise.model.options import AbortRule
from trialwise.model.outcome import ErrorClass
from trialwise.model.trial import Trial

if TYPE_CHECKING:
    from trialwise.engine.run_events import Event as RunEvent
    from trialwise.model.sampling import Input

__all__ = ["Execution", "Halt", "Means"]

#: A service that never waits would keep everything else from running, an interrupt included.
_TURN_EVERY_S = 0.01
#: Whoever was asked and takes longer to let go is left to itself.
_CLOSING_S = 10.0
_LOG_FAILED = "the trial log cannot be written: {}"


class Halt:
    """Why a run ends before its plan, once something has said so."""

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.message = ""

    def because(self, reason: StopReason, message: str) -> None:
        """Ask for the end; the first reason stays."""
        if self.reason is None:
            self.reason, self.message = reason, message


class Means(NamedTuple):
    """What all experiments of a run share."""

    caller: Caller
    clock: Clock
    meter: Meter
    ledger: Ledger
    pacer: Pacer | None
    abort: AbortRule
    halt: Halt
    emit: Callable[[RunEvent], None] | None
    """None where nobody listens: then no event is even made."""
    progress: Sequence[Progress]
    """Of every criterion of the run."""


class Execution:
    """Runs the trials that a scheduler gives out.

    Args:
        scheduler: Of one experiment.
        scorer: Of the same.
        inputs: Of the same, by position.
        means: What is shared with the other experiments.
    """

    def __init__(
        self,
        scheduler: ExperimentState,
        scorer: ReplyChecker,
        inputs: Sequence[Input],
        means: Means,
    ) -> None:
        self._scheduler = scheduler
        self._scorer = scorer
        self._inputs = inputs
        self._means = means
        self._monotonic = means.clock.monotonic
        self._turned_s = self._monotonic()
        self._scope: CancelScope | None = None
        self._change: Event | None = None
        self._error: BaseException | None = None
        # Those before a restart are left out: what was wrong then may be mended.
        self._completed = 0
        self._excused = 0
        self._unanswered = 0
        self._last_trouble = ""

    async def run(self) -> None:
        """Run until the experiment is finished or the run is halted."""
        try:
            if self._scheduler.concurrency == 1:
                await self._work()
            else:
                await self._work_side_by_side()
        finally:
            self._means.meter.abandoned += self._scheduler.in_flight
            self._scheduler.in_flight = 0
            self._sync()
            if self._scorer.asks:
                with move_on_after(_CLOSING_S, shield=True):
                    await self._scorer.aclose()

    async def _work_side_by_side(self) -> None:
        async with create_task_group() as group:
            self._scope = group.cancel_scope
            for _ in range(self._scheduler.concurrency):
                group.start_soon(self._worker)
        if self._error is not None:
            raise self._error

    async def _worker(self) -> None:
        """Work; an error is kept for the caller, who would get it in a group otherwise."""
        try:
            await self._work()
        except get_cancelled_exc_class():
            raise
        except BaseException as error:
            self._error = self._error or error
            self._let_go()

    async def _work(self) -> None:
        scheduler, halt, pacer = self._scheduler, self._means.halt, self._means.pacer
        while halt.reason is None and not scheduler.is_settled:
            index = scheduler.peek()
            if index is None:
                if scheduler.is_issued:
                    return
                await self._wait_for_change()
            elif not self._is_affordable():
                self._tell_change()
            elif pacer is not None and not pacer.admit():
                await pacer.pause()
            else:
                scheduler.take()
                await self._trial(index)

    def _is_affordable(self) -> bool:
        meter = self._means.meter
        spent = meter.exhausted(self._scheduler.in_flight) if meter.is_limited else None
        if spent is not None:
            self._means.halt.because(*spent)
        return spent is None

    async def _trial(self, index: int) -> None:
        scheduler = self._scheduler
        given, seed = self._inputs[scheduler.order[index]], scheduler.seed_of(index)
        started = self._monotonic()
        try:
            response = await self._means.caller.respond(index, given.value, seed)
            examined = await self._asked(response, given, seed) if self._scorer.asks else None
        except ServiceError as error:
            self._give_up(str(error))
            return
        trial = self._scorer.trial(
            index,
            given,
            seed,
            response,
            started_s=round(started - self._means.meter.began_s, 6),
            examined=examined,
        )
        try:
            # Durable before it counts.
            self._means.ledger.append(trial)
        except OSError as error:
            self._give_up(_LOG_FAILED.format(error))
            return
        self._count(trial)
        await self._rest()

    async def _asked(self, response: Response, given: Input, seed: int) -> Examined | None:
        try:
            return await self._scorer.ask(response, given=given, seed=seed)
        except BaseException:
            # The reply was there, and nobody will count it.
            replies = (response.reply, response.partial, *response.lost)
            self._means.meter.abandon(one for one in replies if one is not None)
            raise

    def _count(self, trial: Trial) -> None:
        scheduler, means = self._scheduler, self._means
        settled = scheduler.add(trial)
        means.meter.add(trial)
        if means.emit is not None:
            self._tell(means.emit, trial, settled)
        self._completed += 1
        if trial.error_class is not ErrorClass.NONE:
            self._excused += trial.is_excused
        elif self._scorer.asks:
            unanswered = [one for one in trial.outcomes if one.error_class is not ErrorClass.NONE]
            if unanswered:
                self._unanswered += 1
                self._last_trouble = unanswered[0].result.explanation
        if scheduler.is_settled:
            self._let_go()
        elif self._excused or self._unanswered:
            self._check_error_rate()
        self._tell_change()

    def _tell(
        self, emit: Callable[[RunEvent], None], trial: Trial, settled: Sequence[Progress]
    ) -> None:
        from trialwise.engine.run_events import CriterionDecided, TrialDone

        means = self._means
        emit(
            TrialDone(
                trial=trial,
                standings=tuple(one.standing() for one in means.progress),
                spending=means.meter.spending(),
                in_flight=self._scheduler.in_flight,
            )
        )
        for one in settled:
            emit(CriterionDecided(standing=one.standing(), stop=one.stop))

    def _check_error_rate(self) -> None:
        rule = self._means.abort
        if self._completed < rule.after:
            return
        for count, what in (
            (self._excused, "never reached the service"),
            (self._unanswered, f"could not be judged ({self._last_trouble})"),
        ):
            if count > rule.max_error_rate * self._completed:
                self._means.halt.because(
                    StopReason.ERROR_RATE,
                    f"{count} of {self._completed} trials of {self._scheduler.experiment.name!r} "
                    f"{what}, more than the {rule.max_error_rate:.0%} allowed",
                )
                self._let_go()
                return

    async def _rest(self) -> None:
        """What is due between two trials: a sync, and a turn for everything else."""
        now = self._monotonic()
        if self._means.ledger.take_turn(now):
            if self._scope is None:
                self._sync()
            else:
                # The others' latencies must not wait for the disk.
                await to_thread.run_sync(self._sync)
        if now - self._turned_s >= _TURN_EVERY_S:
            self._turned_s = now
            await checkpoint()

    def _sync(self) -> None:
        try:
            self._means.ledger.sync()
        except OSError as error:
            self._means.halt.because(StopReason.SERVICE, _LOG_FAILED.format(error))

    def _give_up(self, message: str) -> None:
        self._means.halt.because(StopReason.SERVICE, message)
        self._let_go()

    def _let_go(self) -> None:
        """Cancel what is in flight: no result of it is needed."""
        if self._scope is not None:
            self._scope.cancel()

    async def _wait_for_change(self) -> None:
        if self._change is None:
            self._change = Event()
        await self._change.wait()

    def _tell_change(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None
