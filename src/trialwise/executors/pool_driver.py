"""Drives a run whose trials run in the workers of a pool.

The run state hands out trials, one batch for each free slot of the pool; what comes back is
journalled and counted here. So budgets, pace, early stopping and the verdict are those of a run in
one process, and a worker needs to know nothing of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import Protocol, Unpack, cast

from trialwise import model
from trialwise.engine.ports import Service
from trialwise.engine.run_parts import DriverSettings, RunParts
from trialwise.engine.run_state import Pause, RunOutcome, TrialStart
from trialwise.engine.trial_runner import TrialRunner
from trialwise.errors import ExecutorUnusable, TrialwiseError
from trialwise.executors.jobs import Batch, BatchResult, EndedBatch, Job, JobContent, MakeRunner
from trialwise.extensions import EXECUTORS, extension_names, find_extension
from trialwise.redaction import redact_with

#: How long a batch should take: long enough that sending it costs little, and short enough that a
#: decision is not held up by trials that were handed out before it.
_BATCH_S = 0.25
_LARGEST_BATCH = 256
#: A batch grows at most this much at a time, since the first trials may be unusually fast.
_GROWTH = 4
#: How long an interrupt waits for batches of short trials, which are paid for already.
_LAST_S = 4 * _BATCH_S
#: How long the driver waits for workers before it looks at the clock and for an interrupt.
_TURN_S = 0.1
#: A trial that was under way so often when its worker died is not asked again.
# Once may be an accident of the machine, such as the out-of-memory killer at work on somebody
# else's behalf.
_MOST_DEATHS = 2
#: A run whose connections break so often around one trial gets nowhere.
_MOST_LOSSES = 5


class WorkerFault(Exception):
    """Something of ours went wrong in a worker: an internal error, and never a failed trial.

    Args:
        traceback: Where it happened.
    """

    def __init__(self, traceback: str) -> None:
        super().__init__(
            f"a worker could not run a batch or send its results:\n{traceback.rstrip()}\n"
            "No trial counts for that. Completed trials are kept, and `--resume --executor local` "
            "goes on in one process"
        )


def run_in_pool(
    plan: model.Plan,
    contract: model.Contract,
    service: Service,
    *,
    is_interrupted: Callable[[], bool] = lambda: False,
    make_runner: MakeRunner = TrialRunner,
    by_value: Collection[str] = (),
    **settings: Unpack[DriverSettings],
) -> RunOutcome:
    """Run a plan in the workers that its `executor` names.

    Args:
        plan: What to run.
        contract: Holds the criteria's checks and the inputs' values.
        service: What is under test. Workers get copies of it; this one is never called.
        is_interrupted: Says whether the run must end early.
        make_runner: Makes what runs the trials in a worker.
        by_value: Packages and modules that are sent to workers and not imported there.
        settings: See `DriverSettings`.

    Raises:
        InvalidArgument: `done` or the contract does not belong to the plan; nothing was run.
        ExecutorUnusable: The executor cannot run this plan; nothing was run.
        BrokenCheck: A check could not say whether replies are good.
        WorkerFault: A worker could not run a batch or send its results.
    """
    redact = settings.get("redact")
    with redact_with(redact):
        key = settings.get("run_id") or f"{contract.name}-{plan.seed}"
        limit = settings.get("reply_limit")
        content = JobContent(plan, contract, service, redact, limit, make_runner)
        job = Job(key, content, by_value)
        pool = open_pool(plan.options.executor, job, concurrency=plan.options.concurrency)
        try:
            # Here, since the limit on time is about trials and not about the start of a cluster.
            parts = RunParts(plan, contract, service, **settings)
            parts.tell_start()
            _PoolRun(parts, pool).go(is_interrupted)
        finally:
            pool.close()
    return parts.finish()


class _PoolRun:
    """One run whose trials run in a pool.

    Args:
        parts: What it works with. Its runner calls nothing here: it knows the inputs, and
            describes trials that crashed.
        pool: Runs the trials.
    """

    def __init__(self, parts: RunParts, pool: WorkerPool) -> None:
        self._parts = parts
        self._clock = parts.clock
        self._state = parts.state
        self._pool = pool
        self._running: dict[int, Batch] = {}
        self._number = 0
        self._size = 1
        self._again: list[TrialStart] = []
        self._deaths: Counter[tuple[int, int]] = Counter()
        self._losses: Counter[tuple[int, int]] = Counter()

    def go(self, is_interrupted: Callable[[], bool]) -> None:
        """Run until the state needs no more trials, or something ends the run."""
        state = self._state
        try:
            while True:
                pause_s = self._hand_out()
                if not self._running:
                    if pause_s is None:
                        return
                    time.sleep(min(pause_s, _TURN_S))
                else:
                    self._take_ended(min(_TURN_S, pause_s or _TURN_S))
                if is_interrupted():
                    self._take_last()
                    state.stop(model.StopReason.INTERRUPTED, "the run was interrupted")
                elif state.meter.seconds_left <= 0 and not state.is_over:
                    state.stop(*state.meter.describe_time_limit())
                if state.lets_go or (state.is_over and state.meter.seconds_left <= 0):
                    self._let_go()
                if self._parts.ledger.take_turn(self._clock.monotonic()):
                    self._parts.ledger.sync()
        except PoolLost as error:
            state.stop(model.StopReason.SERVICE, str(error))
        finally:
            state.let_go()
            self._parts.ledger.sync()

    # --- Handing out --------------------------------------------------------------------------

    def _hand_out(self) -> float | None:
        """Fill the free slots; the seconds until the pace allows more, None without a pause."""
        pause_s: float | None = None
        while len(self._running) < self._pool.slots:
            starts, pause_s = self._next_starts()
            if starts:
                self._submit(starts)
            if not starts or pause_s is not None:
                break
        return pause_s

    def _next_starts(self) -> tuple[list[TrialStart], float | None]:
        if self._again and not self._state.is_over:
            # Alone: if a trial kills its worker again, it is known which one did.
            return ([] if self._running else [self._again.pop()]), None
        self._state.widen(self._pool.slots * self._size)
        starts: list[TrialStart] = []
        while len(starts) < self._size:
            step = self._state.next()
            if isinstance(step, Pause):
                return starts, step.seconds
            if step is None:
                break
            starts.append(step)
        return starts, None

    def _submit(self, starts: Sequence[TrialStart]) -> None:
        meter = self._state.meter
        left = meter.seconds_left
        self._number += 1
        self._running[self._number] = batch = Batch(
            starts=tuple(starts),
            began_s=meter.seconds,
            seconds_left=left if left < float("inf") else None,
            reach=self._state.reach,
        )
        self._pool.submit(self._number, batch)

    def _let_go(self) -> None:
        """End what is in flight: no result of it is needed."""
        if self._running:
            self._pool.cancel()
        # A batch that comes back all the same is not known any more, and does not count.
        self._running.clear()
        self._again.clear()
        self._state.let_go()

    # --- Counting -----------------------------------------------------------------------------

    def _take_ended(self, wait_s: float) -> None:
        ended = self._pool.wait(wait_s)
        # Results first: a loss may end the run.
        for one in sorted(ended, key=lambda one: one.result is None):
            self._take(one)

    def _take_last(self) -> None:
        """Count the batches that end within a moment; the others are let go."""
        ends_s = self._clock.monotonic() + _LAST_S
        while self._running and (left_s := ends_s - self._clock.monotonic()) > 0:
            self._take_ended(min(_TURN_S, left_s))

    def _take(self, ended: EndedBatch) -> None:
        batch = self._running.pop(ended.number, None)
        if batch is None:
            return
        if ended.result is None:
            self._run_again(batch, ended)
            return
        result, state = ended.result, self._state
        if result.fault:
            raise WorkerFault(result.fault)
        self._parts.keeper.adopt_tracebacks(result.tracebacks)
        state.reach.learn(result.reach)
        for start, trial in zip(batch.starts, result.trials, strict=False):
            self._parts.count(start, trial)
        state.meter.abandon(result.abandoned)
        unrun = batch.starts[len(result.trials) :]
        if unrun:
            self._end_early(result, unrun)
        elif result.run_s > 0:
            self._adapt(len(batch.starts), result.run_s)

    def _end_early(self, result: BatchResult, unrun: Sequence[TrialStart]) -> None:
        """End the run for the reason that a batch was not run to its end."""
        state = self._state
        if result.stop:
            state.stop(model.StopReason.SERVICE, result.stop)
        elif result.out_of_time:  # otherwise a broken check ended it, which the state knows
            why = f"ends before the service may be asked again ({result.out_of_time})"
            state.stop(*state.meter.describe_time_limit(why))
        for start in unrun:
            state.abandon(start.index)

    def _run_again(self, batch: Batch, ended: EndedBatch) -> None:
        for start in batch.starts:
            place = start.experiment, start.index
            self._deaths[place] += ended.is_death
            self._losses[place] += not ended.is_death
            if self._losses[place] == _MOST_LOSSES:
                raise PoolLost(
                    f"{ended.problem}, {_MOST_LOSSES} times; completed trials are kept, and the "
                    "run can be resumed"
                )
            if self._deaths[place] < _MOST_DEATHS:
                self._again.append(start)
                continue
            # The second time it ran alone, so that the service itself must have ended the worker.
            why = f"{ended.problem}, twice, while it ran this trial"
            self._parts.count(start, self._parts.runner.describe_crash(start, why, batch.began_s))

    def _adapt(self, trials: int, run_s: float) -> None:
        """Choose the size of the next batches by how long trials take."""
        # By the last batch alone: an average would still hold the first trials, which load what all
        # later ones have.
        wanted = int(_BATCH_S * trials / run_s)
        self._size = max(1, min(wanted, self._size * _GROWTH, _LARGEST_BATCH))


# --- The port that every executor fulfils, and how one is opened by its name ----------------------
#
# An executor of another distribution is declared by an entry point:
#
#     [project.entry-points."trialwise.executors"]
#     slurm = "my_package.slurm:open_pool"
#
# The function takes what `PoolOpener` describes. `trialwise.testing.check_executor` runs the tests
# that every executor must pass.

#: The modules of the built-in executors; each has a function `open_pool`.
_MODULES = {
    "processes": "trialwise.executors.process_pool",
    "dask": "trialwise.contrib.executors.dask_pool",
    "ray": "trialwise.contrib.executors.ray_pool",
}


class PoolLost(TrialwiseError):
    """The pool as a whole is gone, such as the scheduler of a cluster; the run can be resumed."""


class WorkerPool(Protocol):
    """Workers that run batches of trials."""

    @property
    def slots(self) -> int:
        """How many batches can run at once."""

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to a worker; does not wait.

        Args:
            number: Names the batch when it comes back.
            batch: The trials.
        """

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended; nothing if none has within the time.

        Every batch comes back once, also one whose worker has died, except after `cancel`.

        Raises:
            PoolLost: No batch will ever come back.
        """

    def cancel(self) -> None:
        """End every batch that was submitted; none of them need come back."""

    def close(self) -> None:
        """Release the workers; called once, whatever happened before."""


class PoolOpener(Protocol):
    """Opens the workers of an executor."""

    def __call__(self, address: str, job: Job, *, concurrency: int) -> WorkerPool:
        """Open workers that are ready to run a job.

        Args:
            address: What stands behind the executor's name; empty where nothing does.
            job: What workers need; `Job.pack_for` sends it.
            concurrency: How many trials the run wants in flight at once. A pool may offer more
                slots, so that no worker is idle.

        Raises:
            ExecutorUnusable: It cannot run this job.
        """


def find_opener(name: str) -> PoolOpener:
    """Return what opens an executor.

    Args:
        name: Its name, such as `processes`.

    Raises:
        ExecutorUnusable: There is no such executor, or something that it needs is not installed.
    """
    if name in _MODULES:
        try:
            # Every executor sends functions to workers with it.
            import_module("cloudpickle")
            module = import_module(_MODULES[name])
        except ImportError as error:
            raise ExecutorUnusable(
                f"the executor {name} needs a package that is not installed ({error}). Install "
                f"trialwise[{name}]"
            ) from error
        return cast(PoolOpener, module.open_pool)
    other = find_extension(
        EXECUTORS, name, lambda found: cast(PoolOpener, found) if callable(found) else None
    )
    if other is not None:
        return other
    known = ", ".join(["local", *_MODULES, *extension_names(EXECUTORS)])
    raise ExecutorUnusable(f"there is no executor {name!r}; the executors are {known}")


def open_pool(executor: str, job: Job, *, concurrency: int) -> WorkerPool:
    """Open the workers that an executor's text names.

    Args:
        executor: A name, or a name and an address: `dask:tcp://scheduler:8786`.
        job: What workers need.
        concurrency: How many trials the run wants in flight at once.

    Raises:
        ExecutorUnusable: There is no such executor, or it cannot run this job.
    """
    name, _, address = executor.partition(":")
    return find_opener(name)(address, job, concurrency=concurrency)
