"""Running contracts: from a plan to a record that is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trialwise.errors import InvalidArgument, RunInterrupted, TrialwiseError
from trialwise.model.contract import Contract
from trialwise.model.evidence import StopReason
from trialwise.model.options import RunOptions
from trialwise.model.run_settings import RunSettings
from trialwise.runtime.deciding import decide_and_keep
from trialwise.runtime.looping import warn_inside_loop
from trialwise.runtime.preparing import PreparedRun, give_own_seed, options_of, prepare_run
from trialwise.runtime.result import Result, SuiteResult
from trialwise.runtime.workspace import Workspace, open_service

if TYPE_CHECKING:
    from trialwise.engine.ports import Listener
    from trialwise.model.run import RunRecord
    from trialwise.runtime.workspace import Execution


def run(
    contract: Contract,
    *,
    inputs: Any = None,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    baselines: str | Path = "baselines",
    resume: bool | str = False,
    progress: bool | None = None,
    listener: Listener | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> Result:
    """Run a contract and decide it.

    Every completed trial is in the journal before it counts; a run that was killed, interrupted or
    stopped by a budget continues with `resume`. Inside a running event loop use `await arun(...)`:
    this function blocks that loop, and calls async services in another one.

    Args:
        contract: What is promised, of which service.
        inputs: What to try it on, where the contract does not say.
        options: How the run is made; single settings given beside it prevail.
        store: The folder runs are kept in; None keeps nothing.
        baselines: The folder baselines are kept in.
        resume: True for the newest unfinished run of this contract, or a run's identifier.
        progress: Whether to show progress on standard error; None: where it is a terminal.
        listener: Hears of every step, beside the progress.
        redact: Takes secrets out of every text that is kept.
        settings: The fields of `RunOptions`.

    Raises:
        DesignRefused: The design cannot support its claim; nothing was run.
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is complete.
    """
    warn_inside_loop("run", contract)
    whole = contract if inputs is None else contract.with_inputs(inputs)
    space = Workspace.open(
        store, baselines, resume=resume, progress=progress, listener=listener, redact=redact
    )
    return run_prepared(prepare_run(whole, options_of(options, settings), space), space)


def run_prepared(prepared: PreparedRun, space: Workspace) -> Result:
    """Run and decide what was prepared; a run that was finished before is handed back as it is.

    Args:
        prepared: A contract with its plan.
        space: Where the run is kept and who hears of it.

    Raises:
        RunInterrupted: Somebody pressed Ctrl-C; its `result` holds what is complete.
    """
    if prepared.finished is not None:
        return hand_back(prepared.finished, space)
    with space.execute(prepared) as done:
        result = decide_prepared(prepared, done)
    tell_verdict(result, space)
    if done.outcome.stop is StopReason.INTERRUPTED:
        raise RunInterrupted(_describe_interrupt(result), result)
    return result


def hand_back(record: RunRecord, space: Workspace) -> Result:
    """Return the result of a run that was finished before."""
    assert space.store is not None
    return Result(record, space.store / "runs" / record.run_id)


def decide_prepared(prepared: PreparedRun, done: Execution) -> Result:
    """Decide a run and keep its record."""
    record = decide_and_keep(
        prepared.plan,
        done.outcome,
        done.stored,
        started_at=done.started_at,
        covariates=prepared.contract.covariates,
    )
    return Result(record, done.path)


def tell_verdict(result: Result, space: Workspace) -> None:
    """Tell listeners what was decided."""
    if space.listeners:
        from trialwise.engine.ports import VerdictReached

        space.on_event(VerdictReached(verdict=result.verdict, record=str(result.path or "")))


async def arun(
    contract: Contract,
    *,
    inputs: Any = None,
    options: RunOptions | None = None,
    store: str | Path | None = ".trialwise",
    baselines: str | Path = "baselines",
    resume: bool | str = False,
    progress: bool | None = None,
    listener: Listener | None = None,
    redact: Callable[[str], str] | None = None,
    **settings: Unpack[RunSettings],
) -> Result:
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
    from anyio import to_thread

    from trialwise.runtime.looping import let_cancellation_through

    whole = contract if inputs is None else contract.with_inputs(inputs)
    space = Workspace.open(
        store, baselines, resume=resume, progress=progress, listener=listener, redact=redact
    )
    chosen = options_of(options, settings)
    # A design that has to be searched for takes seconds, in which the loop must go on.
    prepared = await to_thread.run_sync(lambda: prepare_run(whole, chosen, space))
    if prepared.finished is not None:
        return hand_back(prepared.finished, space)
    async with space.aexecute(prepared) as done:
        result = decide_prepared(prepared, done)
    tell_verdict(result, space)
    if done.outcome.stop is StopReason.INTERRUPTED:
        await let_cancellation_through()
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
    if not several or len(set(names)) < len(names):
        raise InvalidArgument("contracts", names, "be at least one, of different names")
    shared = options or RunOptions()
    if arguments.get("seed") is not None:
        shared = replace(shared, seed=arguments.pop("seed"))
    for name in ("correction", "family", "family_size"):
        if name in arguments:
            shared = replace(shared, **{name: arguments.pop(name)})
    if len(several) > 1:
        from trialwise.procedures.planning.families import size_families

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


class RecordingRefused(TrialwiseError):
    """A recording has nothing to play, or would hold the replies of two runs."""


def replay_replies(prepared: Sequence[PreparedRun], file: Path) -> list[PreparedRun]:
    """Return the runs with a recording in place of their services.

    Raises:
        RecordingRefused: The recording holds no reply of a contract.
    """
    from trialwise.services import ReplayService

    replayed = []
    for one in prepared:
        replay = ReplayService(file, contract=one.contract.name)
        if not len(replay):
            raise RecordingRefused(f"{file} holds no reply of {one.contract.name}")
        # Nothing is under test that could be reset.
        contract = replace(one.contract.with_service(replay), before_each=None)
        replayed.append(one._replace(contract=contract))
    return replayed


def record_replies(prepared: Sequence[PreparedRun], file: Path) -> list[PreparedRun]:
    """Return the runs with every reply written to a file.

    Raises:
        RecordingRefused: The file holds replies of an earlier run of a contract, or trials run
            where it cannot be written.
    """
    from trialwise.services import RecordingService, ReplayService

    recorded = []
    for one in prepared:
        name, executor = one.contract.name, one.plan.options.executor
        if executor.partition(":")[0] not in ("local", "processes"):
            raise RecordingRefused(
                f"executor {executor}: its workers may be on other machines, and cannot write to "
                f"{file}. Record with the executor local or processes"
            )
        # A resumed run adds to its own recording.
        count = len(ReplayService(file, contract=name)) if file.exists() else 0
        if count and one.stored is None and one.finished is None:
            raise RecordingRefused(
                f"{file} holds {count} replies of {name} from another run, and --replay "
                "could not tell them apart: remove it, or name another file"
            )
        service = open_service(one.contract, one.plan.options)
        recording = RecordingService(service, file, contract=name)
        recorded.append(one._replace(contract=one.contract.with_service(recording)))
    return recorded
