"""Several contracts at a time, on one event loop: each is decided as soon as its trials end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from trialwise.errors import RunInterrupted
from trialwise.model.evidence import StopReason
from trialwise.model.verdict import Decision
from trialwise.runtime.running import decide_prepared, hand_back, run_prepared, tell_verdict
from trialwise.runtime.workspace import open_service

if TYPE_CHECKING:
    from trialwise.engine.ports import Interrupt, Service
    from trialwise.model.run import RunRecord
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.workspace import Workspace


class EndedRun(NamedTuple):
    """What came of one of several runs."""

    record: RunRecord | None = None
    """None where it was not run, or where nothing is known of it."""
    not_kept: str = ""
    """Why its record is not on disk."""
    was_started: bool = True
    was_interrupted: bool = False
    """Whether somebody pressed Ctrl-C."""


class _Job(NamedTuple):
    """A contract to run, and its service."""

    prepared: PreparedRun
    space: Workspace
    service: Service | None
    """None where the run was finished before."""


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
    from trialwise.runtime.result import Result
    from trialwise.stores.runs import RecordNotKept

    found: list[EndedRun] = []
    for prepared, space in several:
        try:
            record = run_prepared(prepared, space).record
            found.append(EndedRun(record))
            if fail_fast and record.verdict.decision is not Decision.PASS:
                break
        except RunInterrupted as stopped:
            kept = stopped.result.record if isinstance(stopped.result, Result) else None
            found.append(EndedRun(kept, was_interrupted=True))
            break
        except RecordNotKept as error:
            found.append(EndedRun(error.record, str(error)))
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
    from trialwise.runtime.looping import run_to_end

    # Outside of the loop: a function's own context must not hold the loop's.
    waiting = [
        _Job(
            one,
            space,
            open_service(one.contract, one.plan.options, in_thread=True)
            if one.finished is None
            else None,
        )
        for one, space in several
    ]
    return run_to_end(partial(_run_all, waiting, jobs, fail_fast))


async def _run_all(
    waiting: Sequence[_Job], jobs: int, fail_fast: bool, interrupted: Interrupt
) -> list[EndedRun]:
    from anyio import Semaphore

    from trialwise.engine.ports import gather

    room = Semaphore(jobs)
    not_passed: list[EndedRun] = []

    async def run(job: _Job) -> EndedRun:
        async with room:
            if fail_fast and not_passed:
                return EndedRun(was_started=False)
            ended = await _run_one(job, interrupted)
            if ended.record is None or ended.record.verdict.decision is not Decision.PASS:
                not_passed.append(ended)
            return ended

    return list(await gather([partial(run, one) for one in waiting]))


async def _run_one(job: _Job, interrupted: Interrupt) -> EndedRun:
    from anyio import to_thread

    from trialwise.stores.runs import RecordNotKept

    prepared, space, service = job
    if prepared.finished is not None:
        return EndedRun(hand_back(prepared.finished, space).record)
    with space.open_run(prepared, service=service) as run:
        done = run.finish(await run.go(interrupted))
        try:
            # In a thread: the others' calls are timed meanwhile.
            result = await to_thread.run_sync(decide_prepared, prepared, done)
        except RecordNotKept as error:
            return EndedRun(error.record, str(error))
        tell_verdict(result, space)
    stop = result.record.verdict.stop
    return EndedRun(result.record, was_interrupted=stop is StopReason.INTERRUPTED)
