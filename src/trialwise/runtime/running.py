"""Running contracts: from a plan that was admitted to a record that is kept."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trialwise import __version__
from trialwise.errors import InvalidArgument, RunInterrupted
from trialwise.model.codec import plan_hash
from trialwise.model.contract import Contract
from trialwise.model.evidence import Reproducibility, StopReason
from trialwise.model.options import RunOptions
from trialwise.model.plan import Plan
from trialwise.model.run import RunRecord
from trialwise.model.run_settings import RunSettings
from trialwise.procedures.deciding.run_verdict import decide_run
from trialwise.runtime.preparing import prepare
from trialwise.runtime.result import Result, SuiteResult
from trialwise.runtime.settings import options_of
from trialwise.runtime.workspace import Execution, Workspace

if TYPE_CHECKING:
    from trialwise.engine.run_events import Listener
    from trialwise.stores.runs import StoredRun

__all__ = ["reproducibility", "run", "run_all", "run_prepared"]


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
    """Run a contract and judge it.

    Every completed trial is in the journal before it counts; a run that was killed, interrupted or
    stopped by a budget goes on with `resume`.

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
    whole = contract if inputs is None else contract.with_inputs(inputs)
    space = Workspace.open(
        store=store,
        baselines=baselines,
        resume=resume,
        progress=progress,
        listener=listener,
        redact=redact,
    )
    kept = space.to_resume(whole.name)
    plan = prepare(
        whole,
        options_of(options, settings),
        space.baselines,
        now=space.clock.now() if kept is None else kept.started_at,
        seed=None if kept is None else kept.plan.seed,
    )
    return run_prepared(whole, plan, space, kept)


def run_prepared(
    contract: Contract, plan: Plan, space: Workspace, kept: StoredRun | None = None
) -> Result:
    """Run and judge a plan that was admitted, in a workspace.

    Args:
        contract: That the plan was made of.
        plan: What to run.
        space: Where it is kept and who hears of it.
        kept: The stored run to go on with.
    """
    with space.execute(contract, plan, kept) as done:
        result = _judged(plan, done)
        if done.stored is not None:
            done.stored.write_record(result.verdict)
    if space.listeners:
        from trialwise.engine.run_events import VerdictReached

        space.on_event(VerdictReached(verdict=result.verdict, record=str(result.path or "")))
    if done.outcome.stop is StopReason.INTERRUPTED:
        raise RunInterrupted(_interrupted(result), result)
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
    return SuiteResult({one.name: run(one, options=options, **arguments) for one in several})


def reproducibility(plan: Plan, known_hash: str = "") -> Reproducibility:
    """The numerical ingredients of this machine, for the record."""
    return Reproducibility(
        tool_version=__version__,
        python_version=platform.python_version(),
        seed=plan.seed,
        plan_hash=known_hash or plan_hash(plan),
    )


def _judged(plan: Plan, done: Execution) -> Result:
    outcome = done.outcome
    verdict = decide_run(
        plan,
        outcome.trials,
        stops=outcome.stops,
        stop=outcome.stop,
        spending=outcome.spending,
        run_id=done.run_id,
        started_at=done.started_at,
        message=outcome.message,
        reproducibility=reproducibility(plan, "" if done.stored is None else done.stored.plan_hash),
    )
    record = RunRecord(run_id=done.run_id, plan=plan, trials=outcome.trials, verdict=verdict)
    return Result(record, done.path)


def _interrupted(result: Result) -> str:
    kept = len(result.record.trials)
    if result.path is None:
        return f"interrupted after {kept} trials; nothing is kept without a store"
    return f"interrupted: {kept} trials are kept in {result.path}; go on with resume"
