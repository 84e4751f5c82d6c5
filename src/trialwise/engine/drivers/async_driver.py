"""Driving a run on an event loop: workers that start trials, wait for them and count them."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar, Unpack

from anyio import (
    CancelScope,
    Event,
    create_task_group,
    get_cancelled_exc_class,
    move_on_after,
    to_thread,
)
from anyio.lowlevel import checkpoint

from trialwise.engine.attempt import OutOfTime
from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import Interrupt, Service, ServiceError, Timer
from trialwise.engine.run_parts import DriverSettings, RunParts
from trialwise.engine.run_state import Pause, RunOutcome, RunState, TrialStart
from trialwise.engine.spending_meter import Meter
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.redaction import redact_with

#: A service that never waits would keep everything else from running, even an interrupt.
_TURN_EVERY_S = 0.01
#: A service that takes longer to close is left alone.
_CLOSING_S = 30.0
#: The same for judges and whatever else the checks of a run ask.
_CHECKS_CLOSING_S = 10.0


async def run_plan(
    plan: Plan,
    contract: Contract,
    service: Service,
    *,
    interrupted: Interrupt | None = None,
    **settings: Unpack[DriverSettings],
) -> RunOutcome:
    """Run a plan and close its service.

    When it is cancelled from outside, it lets go of what is in flight and returns what is complete,
    with `StopReason.INTERRUPTED`: a paid trial is never lost to an interrupt. The caller's next
    wait is cancelled as usual.

    Args:
        plan: What to run.
        contract: Holds the criteria's checks and the inputs' values.
        service: What is under test. It is closed at the end, whatever happens.
        interrupted: Says from outside that the run must end early.
        settings: See `DriverSettings`.

    Raises:
        InvalidArgument: `done` or the contract does not belong to the plan; nothing was run.
    """
    with redact_with(settings.get("redact")):
        try:
            parts = RunParts(plan, contract, service, **settings)
            await _PlanRun(parts).go(interrupted)
        finally:
            # Also when the plan was refused: the caller handed the service over with the call.
            trouble = await close_service(service)
        return parts.finish(trouble)


async def close_service(service: Service) -> str:
    """Close a service; what goes wrong is reported and loses no trial."""
    with move_on_after(_CLOSING_S, shield=True):
        try:
            await service.aclose()
        except (Exception, SystemExit) as error:
            return f"the service could not be closed: {error_text(error)}"
        return ""
    return f"the service could not be closed within {_CLOSING_S:g} s"


class DrivenState(Protocol):
    """What the driver asks of the state of a run, or of a comparison."""

    meter: Meter

    def next(self) -> Any:
        """Return the trial to start now, or a `Pause`; None where none may start before another."""
        ...

    @property
    def concurrency(self) -> int:
        """The largest number of trials in flight at once."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether no further trial will be started."""
        ...

    @property
    def lets_go(self) -> bool:
        """Whether no result of what is in flight is needed."""
        ...

    def let_go(self) -> None:
        """Note that nothing in flight will be counted."""
        ...

    def stop(self, reason: StopReason, message: str) -> None:
        """End before the plan; the first reason stays."""
        ...


S = TypeVar("S", bound=DrivenState)
S_co = TypeVar("S_co", bound=DrivenState, covariant=True)


class DrivenParts(Protocol[S_co]):
    """What the driver works with: the parts of a run, or those of all arms of a comparison."""

    clock: Timer

    @property
    def state(self) -> S_co:
        """The state, which says which trial starts next and whether the run is over."""
        ...

    def tell_start(self) -> None:
        """Tell listeners of the start."""
        ...

    def take_turn(self, now: float) -> bool:
        """Return whether the caller must sync, because the last sync is too long ago."""
        ...

    def sync(self) -> None:
        """Make what was logged survive a power cut."""
        ...

    async def close_checkers(self) -> None:
        """Release what the checks hold."""
        ...


class AsyncRun(Generic[S]):
    """One run on an event loop, or one comparison: workers, interrupts and the time limit.

    Args:
        parts: What it works with.
    """

    def __init__(self, parts: DrivenParts[S]) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._state = parts.state
        self._turned_s = parts.clock.monotonic()
        # None with one worker: it sees for itself that the run is over, and a task group would
        # cost more than the rest of the engine.
        self._scope: CancelScope | None = None
        self._change: Event | None = None
        self._error: BaseException | None = None
        self._interrupted: Interrupt | None = None

    async def _run_trial(self, step: Any, began_s: float) -> None:
        """Run the trial that starts next, and count it.

        Args:
            step: What the state answered.
            began_s: Seconds since the run began.
        """
        raise NotImplementedError

    # --- The whole run ------------------------------------------------------------------------

    async def go(self, interrupted: Interrupt | None) -> None:
        """Run the experiments until they are done or something ends the run."""
        self._interrupted = interrupted
        try:
            self._parts.tell_start()
            meter = self._state.meter
            # The workers look at the limit before each start; this ends what is in flight then.
            with move_on_after(meter.seconds_left) as limit:
                if interrupted is None:
                    await self._run()
                else:
                    await self._run_until(interrupted)
            if limit.cancelled_caught:
                self._state.stop(*meter.describe_time_limit())
        except (get_cancelled_exc_class(), KeyboardInterrupt):
            # Swallowed on purpose: complete trials are to be decided and kept. A cancellation is
            # raised again at the caller's next wait.
            self._interrupt()

    async def _run_until(self, interrupted: Interrupt) -> None:
        error: BaseException | None = None

        async def watch() -> None:
            await interrupted.wait()
            self._interrupt()
            group.cancel_scope.cancel()

        # The watching task cancels the group, which is how workers that wait for a reply hear of
        # the interrupt. Workers between two trials look for themselves.
        try:
            async with create_task_group() as group:
                group.start_soon(watch)
                try:
                    await self._run()
                except get_cancelled_exc_class():
                    raise
                except BaseException as caught:  # raised as it is, not in a group
                    error = caught
                group.cancel_scope.cancel()
        except get_cancelled_exc_class():
            # The time limit may have come in between; it does not hide that a check is broken.
            if error is None:
                raise
        if error is not None:
            raise error

    def _interrupt(self) -> None:
        cause = "" if self._interrupted is None else getattr(self._interrupted, "cause", "")
        reason = StopReason.SERVICE if cause else StopReason.INTERRUPTED
        self._state.stop(reason, cause or "the run was interrupted")

    async def _run(self) -> None:
        state = self._state
        try:
            while not state.is_over:
                try:
                    if state.concurrency == 1:
                        await self._work()
                    else:
                        await self._work_side_by_side()
                finally:
                    # Whatever the workers left is cancelled by now, so that it never counts.
                    state.let_go()
        finally:
            # The log first: closing a judge may hang, and no trial may be lost to that.
            self._parts.sync()
            await self._close_checkers()

    async def _close_checkers(self) -> None:
        with move_on_after(_CHECKS_CLOSING_S, shield=True):
            await self._parts.close_checkers()

    async def _work_side_by_side(self) -> None:
        """Run until the workers have nothing to do, or one of them lets go of all the others.

        A decision cancels what is in flight, and the workers with it. The next experiment then
        starts with new workers.
        """
        async with create_task_group() as group:
            self._scope = group.cancel_scope
            for _ in range(self._state.concurrency):
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
        """Start trials, wait for them and count them, until there is nothing left to do."""
        state, interrupted = self._state, self._interrupted
        monotonic, began_s = self._clock.monotonic, state.meter.began_s
        while not self._has_let_go:
            # A function that runs in place gives the watching task no turn, however long it takes.
            if interrupted is not None and interrupted.is_set():
                self._interrupt()
            step = state.next()
            if isinstance(step, Pause):
                await self._clock.sleep(step.seconds)
            elif step is not None:
                await self._run_trial(step, monotonic() - began_s)
            elif state.is_over or state.lets_go:
                # A budget ends the run without cancelling: workers that wait must see it, too.
                self._tell_change()
                return
            else:
                await self._wait_for_change()

    def _end_early(self, own: RunState, error: ServiceError | OutOfTime, index: int) -> None:
        """End the run by what a trial raised; all other errors make a failed trial.

        Args:
            own: The state of the run whose trial it was.
            error: What it raised.
            index: The place of the trial.
        """
        if isinstance(error, ServiceError):
            own.stop(StopReason.SERVICE, str(error))
            self._let_go()
            return
        why = f"ends before the service may be asked again ({error})"
        self._state.stop(*self._state.meter.describe_time_limit(why))
        # What it took was told to the meter already. Other trials may still end in time.
        own.abandon(index)
        self._tell_change()

    # --- Between two trials ----------------------------------------------------------------------

    def _tell_others(self) -> None:
        """Let the other workers know that a trial was counted."""
        if self._state.lets_go:
            self._let_go()
        self._tell_change()

    async def _rest(self, now: float) -> None:
        """Do what is due between two trials: a sync, and a turn for everything else."""
        if self._parts.take_turn(now):
            if self._scope is None:
                self._parts.sync()
            else:
                # The others' latencies must not wait for the disk.
                await to_thread.run_sync(self._parts.sync)
        if now - self._turned_s >= _TURN_EVERY_S:
            self._turned_s = now
            await checkpoint()

    def _let_go(self) -> None:
        """Cancel what is in flight: no result of it is needed."""
        if self._scope is not None:
            self._scope.cancel()

    @property
    def _has_let_go(self) -> bool:
        """Whether the workers are cancelled: a trial that starts now would be lost with them."""
        return self._scope is not None and self._scope.cancel_called

    async def _wait_for_change(self) -> None:
        if self._change is None:
            self._change = Event()
        await self._change.wait()

    def _tell_change(self) -> None:
        # A new event for every change: one that stays set would keep idle workers spinning.
        if self._change is not None:
            self._change.set()
            self._change = None


class _PlanRun(AsyncRun[RunState]):
    """One run on an event loop."""

    def __init__(self, parts: RunParts) -> None:
        super().__init__(parts)
        self._announcer = parts.announcer
        self._ledger = parts.ledger
        self._runner = parts.runner

    async def _run_trial(self, step: TrialStart, began_s: float) -> None:
        ledger, runner, announcer = self._ledger, self._runner, self._announcer
        try:
            trial = await runner.run(step, began_s)
        except (ServiceError, OutOfTime) as error:
            self._end_early(self._state, error, step.index)
            return
        # Nothing is awaited between the last answer and the count: a worker cancelled there would
        # lose a trial that was complete.
        settled = ledger.count(trial, runner.input_of(step))
        if settled is not None and announcer.is_heard:
            announcer.tell_trial(trial, settled)
        if self._scope is not None:
            self._tell_others()
        now = self._clock.monotonic()
        if now >= ledger.due_s or now - self._turned_s >= _TURN_EVERY_S:
            await self._rest(now)
