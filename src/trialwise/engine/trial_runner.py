"""Runs one trial: calls the service, checks the reply and returns the completed trial.

Every place that runs trials uses it: the event loop of this process, and the workers of a pool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import Parameter, iscoroutinefunction, signature
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeAlias

from trialwise import model
from trialwise.engine import ports
from trialwise.engine.attempt import Caller, Response, own_failure
from trialwise.engine.check_watch import find_mistake
from trialwise.engine.excerpts import Excerpts, TextKeeper, error_text
from trialwise.engine.reply_checking import ReplyChecker
from trialwise.engine.run_state import TrialStart
from trialwise.errors import InvalidArgument
from trialwise.model.plan import ExperimentPlan
from trialwise.model.run import RunTexts
from trialwise.redaction import redact_with

# The function that a contract has called before each trial, such as one that resets a database.

#: Called before each attempt at a trial; returns what it took.
BeforeEach: TypeAlias = Callable[[ports.TrialContext], Awaitable[model.Setup]]
#: What the function may take, by these names.
_KNOWN = ("input", "index", "seed")


def make_hook(function: Callable[..., Any] | None, *, in_thread: bool) -> BeforeEach | None:
    """Make the hook of a function; None where there is none.

    Args:
        function: Takes any of `input`, `index` and `seed`, or nothing; may be async.
        in_thread: Whether a plain function must not hold up the event loop.
    """
    if function is None:
        return None
    taken = signature(function).parameters.values()
    takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in taken)
    names = _KNOWN if takes_all else [one.name for one in taken if one.name in _KNOWN]

    async def call(context: ports.TrialContext) -> model.Setup:
        began_s = perf_counter()
        found: object = None
        bound = partial(function, **{name: getattr(context, name) for name in names})
        try:
            if in_thread and not iscoroutinefunction(function):
                from anyio import to_thread

                found = await to_thread.run_sync(bound)
            else:
                found = bound()
                if isinstance(found, Awaitable):
                    found = await found
        except BaseException as caught:
            error = own_failure(caught)
            # Nothing was asked, so nothing can be said about the service.
            message = f"{ports.HOOK_FAILED}: {error_text(error)}"
            raise ports.ServiceError(message, model.ErrorClass.INFRASTRUCTURE) from error
        told = found if isinstance(found, model.Setup) else model.Setup()
        return told if told.seconds else replace(told, seconds=perf_counter() - began_s)

    return call


class RunsTrials(Protocol):
    """Runs trials; the service of a contract is called by `TrialRunner`."""

    async def run(self, start: TrialStart, started_s: float) -> model.Trial:
        """Run a trial to its end; see `TrialRunner.run`."""

    async def aclose(self) -> None:
        """Release what it holds."""


class TrialRunner:
    """Runs the trials of one plan by calling the service.

    Args:
        plan: What to run.
        contract: Holds the criteria's checks and the inputs' values.
        caller: Calls the service.

    Raises:
        InvalidArgument: The contract does not belong to the plan.
    """

    def __init__(self, plan: model.Plan, contract: model.Contract, caller: Caller) -> None:
        hook = make_hook(contract.before_each, in_thread=plan.options.concurrency > 1)
        self._caller = replace(caller, before=hook)
        self._experiments = [
            (_checker(plan, one, contract, caller), _inputs(contract, one))
            for one in plan.experiments
        ]

    @property
    def check_names(self) -> list[list[tuple[str, ...]]]:
        """The names of the checks, by experiment and criterion."""
        return [[mine for _, mine in checker.check_names] for checker, _ in self._experiments]

    def input_of(self, start: TrialStart) -> model.Input:
        """Return the input of a trial."""
        return self._experiments[start.experiment][1][start.position]

    async def run(self, start: TrialStart, started_s: float) -> model.Trial:
        """Ask the service once, with retries, and check what came back.

        Args:
            start: Which trial.
            started_s: Since the run began.

        Raises:
            ServiceError: One that stops the run.
            OutOfTime: The run has no time left for the next attempt.
        """
        checker, inputs = self._experiments[start.experiment]
        # To the microsecond; `round` takes twice as long.
        started_s = int(started_s * 1e6 + 0.5) / 1e6
        return await _run_trial(self._caller, checker, start, inputs[start.position], started_s)

    def describe_crash(self, start: TrialStart, why: str, started_s: float) -> model.Trial:
        """Return the failed trial of a service that ended its process.

        Args:
            start: Which trial.
            why: What happened, for a person.
            started_s: When it began.
        """
        checker, inputs = self._experiments[start.experiment]
        response = Response(None, model.ErrorClass.NONE, self._caller.excerpts.text(why))
        given = inputs[start.position]
        return checker.trial(start, given, response, round(started_s, 6))

    async def aclose(self) -> None:
        """Release what the checks hold, such as the connections of judges."""
        for checker, _ in self._experiments:
            if checker.asks:
                await checker.aclose()


async def _run_trial(
    caller: Caller, checker: ReplyChecker, start: TrialStart, given: model.Input, started_s: float
) -> model.Trial:
    response = await caller.respond(start.index, given.value, start.seed)
    examined = None
    if checker.asks:
        try:
            examined = await checker.ask(response, given=given, seed=start.seed)
        except BaseException:
            # The reply was there, and nobody will count it.
            replies = (response.reply, response.partial, *response.lost)
            caller.abandon([one for one in replies if one is not None])
            raise
    return checker.trial(start, given, response, started_s, examined)


def _checker(
    plan: model.Plan, experiment: ExperimentPlan, contract: model.Contract, caller: Caller
) -> ReplyChecker:
    known = {criterion.name: criterion for criterion in contract.criteria}
    names = [one.criterion for one in plan.criteria_of(experiment.name)]
    missing = [name for name in names if name not in known]
    if missing:
        raise InvalidArgument("contract", contract.name, f"hold the criteria {missing}")
    return ReplyChecker(
        experiment.name,
        [known[name] for name in names],
        activity=contract.activity,
        excerpts=caller.excerpts,
        note_raised=caller.note_raised,
    )


def _inputs(contract: model.Contract, experiment: ExperimentPlan) -> Sequence[model.Input]:
    sampling = contract.samplings.get(experiment.name)
    if sampling is None or tuple(one.id for one in sampling.inputs) != experiment.input_ids:
        allowed = f"hold the inputs of {experiment.name!r} that were planned"
        raise InvalidArgument("contract", contract.name, allowed)
    return sampling.inputs


# Driving one trial on its own: a trial of an earlier run again, for a person who looks into it.


class SingleTrial(NamedTuple):
    """A trial that was run on its own."""

    trial: model.Trial
    texts: RunTexts
    """Its input, and where the service raised."""
    checks: Sequence[tuple[str, Sequence[str]]]
    """The postconditions of each criterion."""


async def run_single_trial(
    contract: model.Contract,
    service: ports.Service,
    earlier: model.Trial,
    given: model.Input,
    *,
    options: model.RunOptions,
    redact: Callable[[str], str] | None,
) -> SingleTrial:
    """Run one trial again and close the service; nothing is counted and nothing is kept.

    Args:
        contract: Holds the criteria.
        service: What is under test.
        earlier: The trial as it was run before.
        given: Its input.
        options: Time limit and retries.
        redact: Takes secrets out of every text that is shown.

    Raises:
        ServiceError: One that would have ended the run.
        BrokenCheck: A check is broken whatever the reply says.
    """
    excerpts = Excerpts(reply_limit=4000, redact=redact)
    keeper, start = TextKeeper(excerpts), TrialStart(0, earlier.index, 0, earlier.seed)
    name = earlier.experiment
    checker = ReplyChecker(
        name,
        [one for one in contract.criteria if contract.experiment_of(one) == name],
        activity=contract.activity,
        excerpts=excerpts,
        note_raised=keeper.note_raised,
    )
    caller = Caller(
        service,
        timeout_s=options.timeout_s,
        retries=options.retries,
        clock=ports.SystemClock(),
        excerpts=excerpts,
        note_raised=keeper.note_raised,
        before=make_hook(contract.before_each, in_thread=False),
    )
    with redact_with(redact):
        try:
            trial = await _run_trial(caller, checker, start, given, 0.0)
        finally:
            await checker.aclose()
            await service.aclose()
    keeper.keep(trial, given)
    if (broken := find_mistake(trial)) is not None:
        raise broken.to_error(keeper.texts)
    return SingleTrial(trial, keeper.texts, checker.check_names)
