"""A plan, run: experiment by experiment, until everything is decided or something ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from anyio import Event, create_task_group, get_cancelled_exc_class, move_on_after

from trialwise.engine.attempt import Caller
from trialwise.engine.excerpts import Excerpts, error_text
from trialwise.engine.execution import Execution, Halt, Means
from trialwise.engine.experiment_state import ExperimentState
from trialwise.engine.ledger import Ledger
from trialwise.engine.pacing import Pacer
from trialwise.engine.ports import Service, SystemClock, Timer, TrialLog
from trialwise.engine.reply_checking import ReplyChecker
from trialwise.engine.spending_meter import Meter
from trialwise.errors import InvalidArgument
from trialwise.model.contract import Contract
from trialwise.model.evidence import Spending, StopReason
from trialwise.model.plan import ExperimentPlan, Plan
from trialwise.model.sampling import Input
from trialwise.model.trial import Trial

if TYPE_CHECKING:
    from trialwise.engine.run_events import Listener

__all__ = ["RunOutcome", "run_plan"]

#: A service that takes longer to close is left to itself.
_CLOSING_S = 30.0


class RunOutcome(NamedTuple):
    """What a run leaves to be judged."""

    trials: tuple[Trial, ...]
    """Experiment by experiment, in issue order, those from before a restart included."""
    stops: Mapping[str, StopReason]
    """Why each experiment ended."""
    stop: StopReason
    """Why the run did."""
    spending: Spending
    message: str = ""
    """Why it ended before its plan, or what went wrong in closing the service."""


async def run_plan(
    plan: Plan,
    contract: Contract,
    service: Service,
    *,
    log: TrialLog | None,
    done: Sequence[Trial] = (),
    listener: Listener | None = None,
    clock: Timer | None = None,
    run_id: str = "",
    redact: Callable[[str], str] | None = None,
    reply_limit: int = 4000,
    interrupted: Event | None = None,
) -> RunOutcome:
    """Run a plan and close its service.

    Cancelled from outside, it lets go of what is in flight and returns what is complete, with
    `StopReason.INTERRUPTED`: a paid trial is never lost to an interrupt. The caller's next wait is
    cancelled as usual.

    Args:
        plan: What to run.
        contract: The criteria's postconditions and the inputs' values.
        service: What is under test; closed at the end, whatever happens.
        log: Where trials are made durable before they count; None keeps none.
        done: Trials from before a restart: counted first, never run again.
        listener: Hears of every step.
        clock: By default the machine's.
        run_id: How events name the run.
        redact: Takes secrets out of every text that is kept.
        reply_limit: The most characters of a reply that are kept; 0 for none.
        interrupted: Set from outside to end the run early.

    Raises:
        InvalidArgument: `done` or the contract does not belong to the plan; nothing was run.
    """
    try:
        run = _Run(
            plan,
            contract,
            service,
            log=log,
            done=done,
            listener=listener,
            clock=clock or SystemClock(),
            excerpts=Excerpts(reply_limit=reply_limit, redact=redact),
        )
        await run.go(run_id, interrupted)
    finally:
        trouble = await _close(service)
    return run.end(trouble)


async def _close(service: Service) -> str:
    """Close a service; what goes wrong is said and loses no trial."""
    with move_on_after(_CLOSING_S, shield=True):
        try:
            await service.aclose()
        except (Exception, SystemExit) as error:
            return f"the service could not be closed: {error_text(error)}"
        return ""
    return f"the service could not be closed within {_CLOSING_S:g} s"


class _Run:
    """All experiments of a plan and what they share."""

    def __init__(
        self,
        plan: Plan,
        contract: Contract,
        service: Service,
        *,
        log: TrialLog | None,
        done: Sequence[Trial],
        listener: Listener | None,
        clock: Timer,
        excerpts: Excerpts,
    ) -> None:
        options = plan.options
        names = {one.name for one in plan.experiments}
        for trial in done:
            if trial.experiment not in names:
                raise InvalidArgument("done", trial.experiment, "be trials of the plan's samplings")
        self._plan = plan
        self._excerpts = excerpts
        self._resumed = len(done)
        self._schedulers = [
            ExperimentState(plan, one, [trial for trial in done if trial.experiment == one.name])
            for one in plan.experiments
        ]
        meter = Meter(options.budget, clock)
        for trial in done:
            meter.add(trial)
        self._means = Means(
            caller=Caller(
                service,
                timeout_s=options.timeout_s,
                retries=options.retries,
                clock=clock,
                excerpts=excerpts,
                abandon=meter.abandon,
            ),
            clock=clock,
            meter=meter,
            ledger=Ledger(log, clock),
            pacer=None if options.rate_per_s is None else Pacer(options.rate_per_s, clock),
            abort=options.abort,
            halt=Halt(),
            emit=None if listener is None else listener.on_event,
            progress=[one for scheduler in self._schedulers for one in scheduler.progress],
        )
        self._executions = [
            Execution(
                scheduler,
                self._scorer(contract, scheduler.experiment),
                _inputs(contract, scheduler.experiment),
                self._means,
            )
            for scheduler in self._schedulers
        ]

    def _scorer(self, contract: Contract, experiment: ExperimentPlan) -> ReplyChecker:
        known = {criterion.name: criterion for criterion in contract.criteria}
        names = [one.criterion for one in self._plan.criteria_of(experiment.name)]
        missing = [name for name in names if name not in known]
        if missing:
            raise InvalidArgument("contract", contract.name, f"hold the criteria {missing}")
        return ReplyChecker(
            experiment.name,
            [known[name] for name in names],
            activity=contract.activity,
            excerpts=self._excerpts,
        )

    async def go(self, run_id: str, interrupted: Event | None) -> None:
        """Run the experiments until they are done or the run is ended."""
        try:
            self._announce(run_id)
            if interrupted is None:
                await self._experiments()
            else:
                await self._until(interrupted)
        except (get_cancelled_exc_class(), KeyboardInterrupt):
            self._interrupt()

    async def _until(self, interrupted: Event) -> None:
        error: BaseException | None = None

        async def watch() -> None:
            await interrupted.wait()
            self._interrupt()
            group.cancel_scope.cancel()

        async with create_task_group() as group:
            group.start_soon(watch)
            try:
                await self._experiments()
            except get_cancelled_exc_class():
                raise
            except BaseException as caught:  # raised as it is, not in a group
                error = caught
            group.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _experiments(self) -> None:
        for execution in self._executions:
            if self._means.halt.reason is None:
                await execution.run()

    def _interrupt(self) -> None:
        self._means.halt.because(StopReason.INTERRUPTED, "the run was interrupted")

    def _announce(self, run_id: str) -> None:
        emit = self._means.emit
        if emit is not None:
            from trialwise.engine.run_events import CriterionDecided, RunStarted

            emit(RunStarted(run_id=run_id, plan=self._plan, resumed=self._resumed))
            for one in self._means.progress:
                if one.is_settled:
                    emit(CriterionDecided(standing=one.standing(), stop=one.stop))

    def end(self, trouble: str) -> RunOutcome:
        """The outcome, told to whoever listens.

        Args:
            trouble: What went wrong in closing the service.
        """
        halt = self._means.halt
        stops = {
            one.experiment.name: one.stop if one.is_finished or halt.reason is None else halt.reason
            for one in self._schedulers
        }
        is_cut = any(reason.is_premature for reason in stops.values())
        message = "; ".join(filter(None, (halt.message if is_cut else "", trouble)))
        outcome = RunOutcome(
            trials=tuple(
                trial
                for one in self._schedulers
                for trial in sorted(one.trials, key=lambda trial: trial.index)
            ),
            stops=stops,
            stop=_whole(stops.values()),
            spending=self._means.meter.spending(),
            message=self._excerpts.text(message),
        )
        if self._means.emit is not None:
            from trialwise.engine.run_events import RunEnded

            ended = RunEnded(stop=outcome.stop, spending=outcome.spending, message=outcome.message)
            self._means.emit(ended)
        return outcome


def _inputs(contract: Contract, experiment: ExperimentPlan) -> Sequence[Input]:
    sampling = contract.samplings.get(experiment.name)
    if sampling is None or tuple(one.id for one in sampling.inputs) != experiment.input_ids:
        allowed = f"hold the inputs of {experiment.name!r} that were planned"
        raise InvalidArgument("contract", contract.name, allowed)
    return sampling.inputs


def _whole(stops: Iterable[StopReason]) -> StopReason:
    """Why a run ended: what cut it short, else the earliest kind of end among its experiments."""
    reasons = list(stops)
    for reason in reasons:
        if reason.is_premature:
            return reason
    early = (StopReason.DECIDED, StopReason.CURTAILED)
    return next((one for one in early if one in reasons), StopReason.COMPLETE)
