"""Running contracts: from a plan to a kept record, alone or side by side; one trial again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Unpack

from anyio import Semaphore, to_thread

from trialwise.declarations.written import suggest_name
from trialwise.engine.ports import Interrupt, Service, VerdictReached, gather
from trialwise.engine.trial_runner import SingleTrial, run_single_trial
from trialwise.errors import InvalidArgument, RunInterrupted, TrialwiseError
from trialwise.extensions import ExtensionRaised
from trialwise.model import Contract, RunOptions, StopReason
from trialwise.procedures.families import size_families
from trialwise.runtime import looping
from trialwise.runtime.preparing import PreparedRun, give_own_seed, prepare_run, take_contract
from trialwise.runtime.result import Result, SuiteResult
from trialwise.runtime.workspace import OpenRun, RunArguments, Workspace, open_service
from trialwise.services import RecordingService, ReplayService
from trialwise.stats.result_types import Decision
from trialwise.stores.run_files import RecordNotKept
from trialwise.stores.runs import StoredRun

if TYPE_CHECKING:
    from trialwise.engine.run_state import RunOutcome
    from trialwise.model import Input, RunRecord, Trial


def run(contract: Contract, **arguments: Unpack[RunArguments]) -> Result:
    """Run a contract and decide it.

    Every completed trial is in the journal before it counts; a run that was killed, interrupted or
    stopped by a budget continues with `resume`. Inside a running event loop use `await arun(...)`:
    this function blocks that loop, and calls async services in another one.

    Args:
        contract: What is promised, of which service.
        arguments: `inputs`, `store`, `resume` and the other fields of `RunArguments`, among them
            every field of `RunOptions`.

    Raises:
        DesignRefused: The design cannot support its claim; nothing was run.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is complete.
    """
    looping.warn_inside_loop("run", contract)
    return run_prepared(*_prepare(contract, {**arguments}))


async def arun(contract: Contract, **arguments: Unpack[RunArguments]) -> Result:
    """Run a contract in the running event loop and decide it.

    An async service is called in the loop of the caller, so that it can use the caller's clients,
    and other tasks of the loop go on meanwhile. A plain function runs in a thread. Cancelling ends
    the run: what is complete is kept, and `resume` continues it.

    The arguments are those of `run`.

    >>> import asyncio
    >>> import trialwise as tw
    >>> async def answer(question):
    ...     return "555"
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> contract = tw.Contract("sums", answer, [criterion])
    >>> async def main():
    ...     result = await tw.arun(contract, inputs=["What is 15 * 37?"], store=None)
    ...     return result.decision
    >>> asyncio.run(main())
    <Decision.PASS: 'PASS'>

    Raises:
        DesignRefused: The design cannot support its claim; nothing was run.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is complete.
    """
    # In a thread, since a search for a design takes seconds and the caller's loop goes on.
    prepared, space = await to_thread.run_sync(lambda: _prepare(contract, {**arguments}))
    if prepared.finished is not None:
        return _hand_back(prepared.finished, space)
    return await looping.adrive(space.open_run(prepared, in_thread=True), _decide)


def _prepare(contract: Contract, given: dict[str, Any]) -> tuple[PreparedRun, Workspace]:
    space = Workspace.take(given)
    return prepare_run(*take_contract(contract, given), space), space


def run_prepared(prepared: PreparedRun, space: Workspace) -> Result:
    """Run and decide what was prepared; a run that was finished before is handed back as it is.

    Args:
        prepared: A contract with its plan.
        space: Where the run is kept and who hears of it.

    Raises:
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is complete.
    """
    if prepared.finished is not None:
        return _hand_back(prepared.finished, space)
    return looping.drive(space.open_run(prepared), _decide)


def _hand_back(record: RunRecord, space: Workspace) -> Result:
    """Return the result of a run that was finished before."""
    assert space.store is not None
    return Result(record, space.store / "runs" / record.run_id)


def _decide(run: OpenRun, outcome: RunOutcome) -> Result:
    """Decide a run, keep its record and tell listeners."""
    result = Result(run.decide(outcome), run.path)
    if run.space.listeners:
        run.space.on_event(VerdictReached(verdict=result.verdict, record=str(result.path or "")))
    if outcome.stop is StopReason.INTERRUPTED:
        raise RunInterrupted(_describe_interrupt(result), result)
    return result


def run_all(
    contracts: Iterable[Contract], *, options: RunOptions | None = None, **arguments: Any
) -> SuiteResult:
    """Run several contracts one after another and conclude over all of them.

    Args:
        contracts: With their samplings, and different names.
        options: How the runs are made.
        arguments: As of `run`.
    """
    several = list(contracts)
    names = [one.name for one in several]
    # A report and a resumed run find a contract by its name.
    if not several or len(set(names)) < len(names):
        raise InvalidArgument("contracts", names, "be at least one, of different names")
    common = ("seed", "correction", "family", "family_size")
    given = {name: arguments.pop(name) for name in common if name in arguments}
    shared = replace(options or RunOptions(), **given)
    if len(several) > 1:
        inputs = arguments.get("inputs")
        whole = [one if inputs is None else one.with_inputs(inputs) for one in several]
        sized = size_families([(one, shared) for one in whole])
        return SuiteResult(
            {
                one.name: run(one, options=give_own_seed(options, one), **arguments)
                for one, options in zip(several, sized, strict=True)
            }
        )
    return SuiteResult({names[0]: run(several[0], options=shared, **arguments)})


def _describe_interrupt(result: Result) -> str:
    kept = len(result.record.trials)
    if result.path is None:
        return f"interrupted after {kept} trials; nothing is kept without a store"
    return (
        f"interrupted: {kept} trials are kept in {result.path}; "
        f"`resume={result.path.name!r}` continues the run"
    )


# --- Several contracts at a time -------------------------------------------------------------


class EndedRun(NamedTuple):
    """What came of one of several runs."""

    record: RunRecord | None = None
    """None where it was not run, or where nothing is known of it."""
    not_kept: str = ""
    """Why its record is not on disk."""
    not_decided: str = ""
    """Which extension raised when its trials were to be decided."""
    was_started: bool = True

    was_interrupted: bool = False
    """Whether somebody pressed Ctrl-C."""

    @property
    def has_passed(self) -> bool:
        """Whether its verdict is PASS."""
        return self.record is not None and self.record.verdict.decision is Decision.PASS


def _end(prepared: PreparedRun, decide: Callable[[], Result]) -> EndedRun:
    """Say how one of several runs ended; whatever befell it, the others go on."""
    try:
        return EndedRun(decide().record)
    except RunInterrupted as stopped:
        kept = stopped.result.record if isinstance(stopped.result, Result) else None
        return EndedRun(kept, was_interrupted=True)
    except RecordNotKept as error:
        return EndedRun(error.record, str(error))
    except ExtensionRaised as error:
        return EndedRun(not_decided=f"{prepared.plan.contract}: {error}")


_Waiting: TypeAlias = "tuple[PreparedRun, Workspace, Service | None]"
"""A contract to run, and its service; None where the run was finished before."""


def run_in_turn(
    several: Sequence[tuple[PreparedRun, Workspace]], *, fail_fast: bool = False
) -> list[EndedRun]:
    """Run and decide several contracts one after another; the answers are in their order.

    Ctrl-C ends all of them, and so does a record that cannot be written: the next run would not be
    kept either.

    Args:
        several: Contracts with their plans, each with where it is kept.
        fail_fast: Whether to start no further contract once one did not PASS.
    """
    found: list[EndedRun] = []
    for prepared, space in several:
        ended = _end(prepared, partial(run_prepared, prepared, space))
        found.append(ended)
        has_failed = ended.record is not None and not ended.has_passed
        if ended.was_interrupted or ended.not_kept or (fail_fast and has_failed):
            break
    return found + [EndedRun(was_started=False)] * (len(several) - len(found))


def run_side_by_side(
    several: Sequence[tuple[PreparedRun, Workspace]], jobs: int, *, fail_fast: bool = False
) -> list[EndedRun]:
    """Run and decide several contracts, some at a time; the answers are in their order.

    Ctrl-C ends all of them; what is complete is kept.

    Args:
        several: Contracts with their plans, each with where it is kept.
        jobs: How many run at once.
        fail_fast: Whether to start no further contract once one did not PASS.
    """
    # Outside of the loop: a function's own context must not hold the loop's.
    waiting: list[_Waiting] = []
    for one, space in several:
        service = None  # where the run was finished before
        if one.finished is None:
            service = open_service(one.contract, one.plan.options, in_thread=True)
        waiting.append((one, space, service))
    return looping.run_to_end(partial(_run_all, waiting, jobs, fail_fast))


async def _run_all(
    waiting: Sequence[_Waiting], jobs: int, fail_fast: bool, interrupted: Interrupt
) -> list[EndedRun]:
    room = Semaphore(jobs)
    not_passed: list[EndedRun] = []

    async def run(prepared: PreparedRun, space: Workspace, service: Service | None) -> EndedRun:
        async with room:
            if fail_fast and not_passed:
                return EndedRun(was_started=False)
            ended = await _run_one(prepared, space, service, interrupted)
            if not ended.has_passed:
                not_passed.append(ended)
            return ended

    return list(await gather([partial(run, *one) for one in waiting]))


async def _run_one(
    prepared: PreparedRun, space: Workspace, service: Service | None, interrupted: Interrupt
) -> EndedRun:
    if prepared.finished is not None:
        return EndedRun(prepared.finished)
    with space.open_run(prepared, service=service) as run:
        outcome = await run.go(interrupted)
        # In a thread: the others' calls are timed meanwhile.
        return await to_thread.run_sync(_end, prepared, partial(_decide, run, outcome))


# --- Replies that are recorded or replayed -----------------------------------------------------


class RecordingRefused(TrialwiseError):
    """A recording has nothing to play, or would hold the replies of two runs."""


def replay_replies(
    prepared: Sequence[PreparedRun], file: Path, labels: Sequence[str] | None = None
) -> list[PreparedRun]:
    """Return the runs with a recording in place of their services.

    Args:
        prepared: The runs.
        file: The recording.
        labels: Under which each run's replies are kept, where not under its contract.

    Raises:
        RecordingRefused: The recording holds no reply of a run.
    """
    replayed = []
    for one, label in zip(prepared, labels or _name_contracts(prepared), strict=True):
        replay = ReplayService(file, contract=label)
        if not len(replay):
            raise RecordingRefused(f"{file} holds no reply of {label}")
        # Nothing is under test that could be reset.
        contract = replace(one.contract.with_service(replay), before_each=None)
        replayed.append(one._replace(contract=contract))
    return replayed


def record_replies(
    prepared: Sequence[PreparedRun],
    file: Path,
    labels: Sequence[str] | None = None,
    *,
    in_thread: bool = False,
) -> list[PreparedRun]:
    """Return the runs with every reply written to a file.

    Args:
        prepared: The runs.
        file: Where to.
        labels: Under which each run's replies are kept, where not under its contract.
        in_thread: Whether a plain function must not hold up the event loop.

    Raises:
        RecordingRefused: The file holds replies of an earlier run of a contract, or trials run
            where it cannot be written.
    """
    recorded = []
    for one, label in zip(prepared, labels or _name_contracts(prepared), strict=True):
        executor = one.plan.options.executor
        if executor.partition(":")[0] not in ("local", "processes"):
            raise RecordingRefused(
                f"executor {executor}: its workers may be on other machines, and cannot write to "
                f"{file}. Record with the executor local or processes"
            )
        # A resumed run adds to its own recording.
        count = len(ReplayService(file, contract=label)) if file.exists() else 0
        if count and one.stored is None and one.finished is None:
            raise RecordingRefused(
                f"{file} holds {count} replies of {label} from another run, and --replay "
                "could not tell them apart: remove it, or name another file"
            )
        service = open_service(one.contract, one.plan.options, in_thread=in_thread)
        recording = RecordingService(service, file, contract=label)
        recorded.append(one._replace(contract=one.contract.with_service(recording)))
    return recorded


def _name_contracts(prepared: Sequence[PreparedRun]) -> list[str]:
    return [one.contract.name for one in prepared]


# One trial of a stored run again: the same input and the same seed, on the service of today.


class TrialNotFound(TrialwiseError):
    """A run has no such trial, or the contract no longer has its input."""


def find_trial(stored: StoredRun, index: int, experiment: str | None = None) -> Trial:
    """Find the trial of a run with a number.

    Args:
        stored: The run.
        index: Its place in the order of inputs, from 0.
        experiment: Which sampling, where a run has several.

    Raises:
        TrialNotFound: There is none, or several samplings have one.
    """
    tables = [one for one in stored.shown_trials().tables if experiment in (None, one.experiment)]
    found = [one[place] for one in tables if (place := one.find(index)) is not None]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(one.experiment for one in found)
        raise TrialNotFound(f"several samplings have a trial {index}; name one: {names}")
    last = max((one.last for one in tables), default=None)
    there = "it has no trials" if last is None else f"its trials are 0 to {last}"
    raise TrialNotFound(f"{stored.run_id} has no trial {index}: {there}")


def find_input(contract: Contract, experiment: str, input_id: str) -> Input:
    """Find an input of a contract as it is today.

    Raises:
        TrialNotFound: The contract no longer has it.
    """
    sampling = contract.samplings.get(experiment)
    inputs = {} if sampling is None else {one.id: one for one in sampling.inputs}
    if input_id in inputs:
        return inputs[input_id]
    hint = suggest_name(input_id, inputs, "it may have been renamed", quote="'")
    raise TrialNotFound(f"{contract.name} no longer has an input {input_id!r}; {hint}")


def rerun_trial(
    contract: Contract,
    options: RunOptions,
    trial: Trial,
    *,
    redact: Callable[[str], str] | None = None,
) -> SingleTrial:
    """Run a trial again with its input and its seed; nothing is kept.

    Args:
        contract: With the service and the inputs of today.
        options: Time limit and retries.
        trial: The one to repeat.
        redact: Takes secrets out of every text that is shown.
    """
    given = find_input(contract, trial.experiment, trial.input_id)
    service = open_service(contract, options)

    async def whole(_: Interrupt) -> SingleTrial:
        return await run_single_trial(
            contract, service, trial, given, options=options, redact=redact
        )

    return looping.run_to_end(whole)
