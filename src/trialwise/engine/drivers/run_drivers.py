"""Driving a run: on an event loop with workers, or in the thread of the caller with an executor."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, Unpack

import anyio
from anyio.lowlevel import checkpoint

from trialwise import model
from trialwise.engine.arms_state import ArmsState, RoundSchedule
from trialwise.engine.attempt import OutOfTime
from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import Interrupt, Service, ServiceError, SystemClock
from trialwise.engine.run_parts import DriverSettings, RunParts
from trialwise.engine.run_state import Pacer, Pause, RunOutcome, RunState, TrialStart
from trialwise.engine.spending_meter import Meter
from trialwise.redaction import redact_with

#: A service that never waits would keep everything else from running, even an interrupt.
_TURN_EVERY_S = 0.01
#: A service that takes longer to close is left alone.
_CLOSING_S = 30.0
#: The same for judges and whatever else the checks of a run ask.
_CHECKS_CLOSING_S = 10.0

Watch: TypeAlias = Callable[[int, Meter], None]
"""Told of a trial that counts: the place of its arm, and what all arms have taken."""


async def run_plan(
    plan: model.Plan,
    contract: model.Contract,
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
    arm = DrivenArm(plan, contract, service, settings)
    (outcome,) = await _drive([arm], lambda parts: parts[0].state, interrupted)
    return outcome


class DrivenArm(NamedTuple):
    """A run that is ready, such as one arm of a comparison."""

    plan: model.Plan
    contract: model.Contract
    service: Service
    settings: DriverSettings
    """The clock and the redaction of several arms are those of the first."""


async def run_arms(
    arms: Sequence[DrivenArm],
    schedule: RoundSchedule | None = None,
    *,
    interrupted: Interrupt | None = None,
    watch: Watch | None = None,
) -> list[RunOutcome]:
    """Run the plans of several arms in step, round by round, and close their services.

    A cancellation from outside is treated as in `run_plan`.

    Args:
        arms: With one seed and the same inputs.
        schedule: Which arms are still asked; None asks all of them in every round.
        interrupted: Says from outside that all runs must end early.
        watch: Told of every trial that counts; must be quick, and must not raise.

    Raises:
        InvalidArgument: Trials or a contract do not belong to a plan; nothing was run.
    """
    clock, options = arms[0].settings.get("clock") or SystemClock(), arms[0].plan.options
    # One meter for all arms: a budget is what the comparison may cost, not each arm.
    meter = Meter(options.budget, clock, options.cost_per_trial_usd)
    together: DriverSettings = {"log": None, "clock": clock, "whole_meter": meter}
    shared = [one._replace(settings={**together, **one.settings, "clock": clock}) for one in arms]

    def open_state(parts: Sequence[RunParts]) -> ArmsState:
        # Arms of one service share its rate.
        pacers: dict[int, Pacer | None] = {}
        for one in parts:
            pacers.setdefault(id(one.service), one.state.pacer)
        states, plans = [one.state for one in parts], [one.plan for one in parts]
        own = [pacers[id(one.service)] for one in parts]
        return ArmsState(states, plans, meter=meter, pacers=own, schedule=schedule)

    return await _drive(shared, open_state, interrupted, watch)


async def _drive(
    arms: Sequence[DrivenArm],
    open_state: Callable[[Sequence[RunParts]], RunState | ArmsState],
    interrupted: Interrupt | None,
    watch: Watch | None = None,
) -> list[RunOutcome]:
    """Drive one run, or several in step, and close their services."""
    # Arms may share a service, which is closed once.
    services = {id(one.service): one.service for one in arms}
    with redact_with(arms[0].settings.get("redact")):
        try:
            parts = [RunParts(one.plan, one.contract, one.service, **one.settings) for one in arms]
            await AsyncRun(open_state(parts), parts, watch).go(interrupted)
        finally:
            # Also when a plan was refused: the caller handed the services over with the call.
            troubles = {name: await close_service(one) for name, one in services.items()}
        return [one.finish(troubles[id(one.service)]) for one in parts]


async def close_service(service: Service) -> str:
    """Close a service; what goes wrong is reported and loses no trial."""
    with anyio.move_on_after(_CLOSING_S, shield=True):
        try:
            await service.aclose()
        except (Exception, SystemExit) as error:
            return f"the service could not be closed: {error_text(error)}"
        return ""
    return f"the service could not be closed within {_CLOSING_S:g} s"


class AsyncRun:
    """One run on an event loop, or one comparison: workers, interrupts and the time limit.

    Args:
        state: Says which trial starts next, and whether the run is over.
        arms: The parts of the run, or of each arm of a comparison.
        watch: Told of every trial of a comparison that counts.
    """

    def __init__(
        self, state: RunState | ArmsState, arms: Sequence[RunParts], watch: Watch | None = None
    ) -> None:
        self._arms = arms
        self._watch = watch
        self._clock = arms[0].clock
        self._state = state
        # When the next sync is due, or the next turn for everything else.
        self._rest_s = self._clock.monotonic() + _TURN_EVERY_S
        # None with one worker: it sees for itself that the run is over, and a task group would
        # cost more than the rest of the engine.
        self._scope: anyio.CancelScope | None = None
        self._change: anyio.Event | None = None
        self._error: BaseException | None = None
        self._interrupted: Interrupt | None = None

    # --- The whole run ------------------------------------------------------------------------

    async def go(self, interrupted: Interrupt | None) -> None:
        """Run the experiments until they are done or something ends the run."""
        self._interrupted = interrupted
        try:
            for one in self._arms:
                one.tell_start()
            meter = self._state.meter
            # The workers look at the limit before each start; this ends what is in flight then.
            with anyio.move_on_after(meter.seconds_left) as limit:
                if interrupted is None:
                    await self._run()
                else:
                    await self._run_until(interrupted)
            if limit.cancelled_caught:
                self._state.stop(*meter.describe_time_limit())
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
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
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                try:
                    await self._run()
                except anyio.get_cancelled_exc_class():
                    raise
                except BaseException as caught:  # raised as it is, not in a group
                    error = caught
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            # The time limit may have come in between; it does not hide that a check is broken.
            if error is None:
                raise
        if error is not None:
            raise error

    def _interrupt(self) -> None:
        cause = "" if self._interrupted is None else getattr(self._interrupted, "cause", "")
        reason = model.StopReason.SERVICE if cause else model.StopReason.INTERRUPTED
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
            self._sync()
            with anyio.move_on_after(_CHECKS_CLOSING_S, shield=True):
                for one in self._arms:
                    await one.runner.aclose()

    async def _work_side_by_side(self) -> None:
        """Run until the workers have nothing to do, or one of them lets go of all the others.

        A decision cancels what is in flight, and the workers with it. The next experiment then
        starts with new workers.
        """
        async with anyio.create_task_group() as group:
            self._scope = group.cancel_scope
            for _ in range(self._state.concurrency):
                group.start_soon(self._worker)
        if self._error is not None:
            raise self._error

    async def _worker(self) -> None:
        """Work; an error is kept for the caller, who would get it in a group otherwise."""
        try:
            await self._work()
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:
            self._error = self._error or error
            self._let_go()

    async def _work(self) -> None:
        """Start trials, wait for them and count them, until there is nothing left to do."""
        state, interrupted = self._state, self._interrupted
        monotonic, began_s = self._clock.monotonic, state.meter.began_s
        # A trial that starts when the workers are cancelled would be lost with them.
        while self._scope is None or not self._scope.cancel_called:
            # A function that runs in place gives the watching task no turn, however long it takes.
            if interrupted is not None and interrupted.is_set():
                self._interrupt()
            step = state.next()
            if isinstance(step, Pause):
                await self._clock.sleep(step.seconds)
            elif step is not None:
                await self._run_trial(step, monotonic() - began_s)
                now = monotonic()
                if now >= self._rest_s:
                    await self._rest(now)
            elif state.is_over or state.lets_go:
                # A budget ends the run without cancelling: workers that wait must see it, too.
                self._tell_change()
                return
            else:
                await self._wait_for_change()

    async def _run_trial(self, start: TrialStart, began_s: float) -> None:
        arm = self._arms[start.arm]
        try:
            trial = await arm.runner.run(start, began_s)
        except ServiceError as error:
            arm.state.stop(model.StopReason.SERVICE, str(error))
            self._note(start, None)
            self._let_go()
            return
        except OutOfTime as error:
            why = f"ends before the service may be asked again ({error})"
            self._state.stop(*self._state.meter.describe_time_limit(why))
            # What it took was told to the meter already. Other trials may still end in time.
            arm.state.abandon(start.index)
            self._tell_change()
            return
        # Nothing is awaited between the last answer and the count: a worker cancelled there would
        # lose a trial that was complete.
        counts = arm.count(start, trial)
        self._rest_s = min(self._rest_s, arm.ledger.due_s)
        self._note(start, trial if counts else None)
        if self._scope is not None:
            # The other workers must know that a trial was counted.
            if self._state.lets_go:
                self._let_go()
            self._tell_change()

    def _note(self, start: TrialStart, trial: model.Trial | None) -> None:
        """Note in a comparison what came of a trial; None where it does not count."""
        if isinstance(self._state, ArmsState):
            self._state.note(start.arm, trial)
            if trial is not None and self._watch is not None:
                self._watch(start.arm, self._state.meter)

    # --- Between two trials ----------------------------------------------------------------------

    async def _rest(self, now: float) -> None:
        """Do what is due between two trials: a sync, and a turn for everything else."""
        self._rest_s = now + _TURN_EVERY_S
        due = [one for one in self._arms if one.ledger.take_turn(now)]
        if due:
            if self._scope is None:
                self._sync()
            else:
                # The others' latencies must not wait for the disk.
                await anyio.to_thread.run_sync(self._sync)
        await checkpoint()

    def _sync(self) -> None:
        """Make everything that was logged survive a power cut."""
        for one in self._arms:
            one.ledger.sync()

    def _let_go(self) -> None:
        """Cancel what is in flight: no result of it is needed."""
        if self._scope is not None:
            self._scope.cancel()

    async def _wait_for_change(self) -> None:
        if self._change is None:
            self._change = anyio.Event()
        await self._change.wait()

    def _tell_change(self) -> None:
        # A new event for every change: one that stays set would keep idle workers spinning.
        if self._change is not None:
            self._change.set()
            self._change = None


# --- Driving a run from the thread of the caller, with an executor that runs the trials -----------
#
# pytest owns the main thread, its signals and its event loops, so its trials cannot run on an event
# loop of the engine. The same holds for a pool of processes or a cluster, which is asked for what
# has ended.

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Executor(Protocol[T_co]):
    """Runs trials, one by one or side by side; it tears down every trial that it starts."""

    @property
    def in_flight(self) -> int:
        """How many trials were started and not handed back."""

    def start(self, start: TrialStart) -> None:
        """Begin a trial; it may also run to its end here."""

    def wait(self) -> Sequence[T_co]:
        """Hand back the trials that have ended since, at least one."""

    def let_go(self) -> None:
        """End what can be ended: no result of what is in flight is needed."""

    def close(self) -> None:
        """Tear down whatever is still open."""


def drive(
    state: RunState,
    executor: Executor[T],
    count: Callable[[T], None],
    *,
    stops_run: tuple[type[BaseException], ...] = (KeyboardInterrupt,),
    asked_to_stop: Callable[[], str | bool] = lambda: False,
) -> BaseException | None:
    """Run trials until the state needs no more, and close the executor.

    Args:
        state: Of the run.
        executor: Runs the trials.
        count: Takes a trial that was handed back and passes it to a `Ledger`, or abandons it.
        stops_run: Exceptions by which a person ends the run.
        asked_to_stop: Says between trials whether the run must end, and why.

    Returns:
        The exception that ended the run, if one of `stops_run` did: the caller first decides on
        what is complete and then raises it.
    """
    stopped: BaseException | None = None
    try:
        _loop(state, executor, count, asked_to_stop)
    except stops_run as error:
        stopped = error
        state.stop(model.StopReason.INTERRUPTED, "the run was interrupted")
        # What is complete still counts. A second Ctrl-C gets out of here at once.
        executor.let_go()
        while executor.in_flight:
            for item in executor.wait():
                count(item)
    finally:
        # In this order: what the executor still tears down was started and will never count.
        executor.close()
        state.let_go()
    return stopped


def _loop(
    state: RunState,
    executor: Executor[T],
    count: Callable[[T], None],
    asked_to_stop: Callable[[], str | bool],
) -> None:
    while True:
        _start_trials(state, executor)
        if not executor.in_flight:
            return
        if state.lets_go:
            # Still waited for below: an executor hands back also what it ended, to be torn down.
            executor.let_go()
        for item in executor.wait():
            count(item)
        if reason := asked_to_stop():
            state.stop(model.StopReason.INTERRUPTED, f"the session ends: {reason}")


def _start_trials(state: RunState, executor: Executor[T]) -> None:
    while (step := state.next()) is not None:
        if isinstance(step, TrialStart):
            executor.start(step)
        elif executor.in_flight:
            # Waiting for a result is better than sleeping through it.
            return
        else:
            time.sleep(step.seconds)
