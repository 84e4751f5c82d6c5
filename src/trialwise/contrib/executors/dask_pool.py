"""The workers of a Dask cluster, or of a local cluster that is started for the run.

The job is registered as a plugin, so that workers which join or restart later get it as well.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import dask
from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, secede

from trialwise.errors import ExecutorUnusable
from trialwise.executors.jobs import (
    Batch,
    BatchResult,
    EndedBatch,
    Job,
    LoadReport,
    PackedJob,
    try_to_load,
)
from trialwise.executors.pool_driver import PoolLost
from trialwise.executors.trial_worker import BlockingWorker

#: How long to wait for the scheduler and its first worker.
_CONNECTING_S = 15.0
#: A scheduler that is away for this long is gone.
_AWAY_S = 10.0

#: The jobs that this process runs as a worker, by key.
_JOBS: dict[str, BlockingWorker] = {}


def open_pool(address: str, job: Job, *, concurrency: int) -> DaskPool:
    """Connect to a Dask cluster, or start a local one.

    Args:
        address: The scheduler, such as `tcp://scheduler:8786`; empty or `local` for a new cluster.
        job: What workers run.
        concurrency: How many trials may be in flight.

    Raises:
        ExecutorUnusable: The cluster is not there, or its workers cannot run the job.
    """
    # What goes wrong with the connection is told by the run, in one sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    cluster: Any = None
    if address in ("", "local"):
        # By default Dask runs a task on up to four workers that it kills. The driver of the run
        # does better: it runs the trials of such a batch one by one.
        dask.config.set({"distributed.scheduler.allowed-failures": 0})
        # One thread each: a plain function would share its interpreter with others otherwise.
        cluster = LocalCluster(threads_per_worker=1, processes=True, dashboard_address=":0")
    try:
        client = Client(cluster or address, timeout=_CONNECTING_S)
        client.wait_for_workers(1, timeout=_CONNECTING_S)
        return DaskPool(client, cluster, job, concurrency)
    except (OSError, TimeoutError, ValueError) as error:
        _close(cluster)
        raise ExecutorUnusable(
            f"no Dask workers can be reached at {address or 'the local cluster'}: {error}. Is the "
            "scheduler running, and has it workers?"
        ) from error
    except BaseException:
        _close(cluster)
        raise


class DaskPool:
    """The workers of a Dask cluster.

    Args:
        client: Connected, with at least one worker.
        cluster: The cluster to close at the end, if it was started for this run.
        job: What workers run.
        concurrency: How many trials may be in flight.
    """

    def __init__(self, client: Any, cluster: Any, job: Job, concurrency: int) -> None:
        self._client = client
        self._cluster = cluster
        self._futures: dict[int, Any] = {}
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._away_since: float | None = None
        self._address = str(client.scheduler.address)
        job.sends_own_modules = True
        packed = job.pack_for(self._load)
        self._key = packed.key
        self._plugin = f"trialwise-{packed.key}"
        client.register_plugin(_JobPlugin(packed), name=self._plugin)
        threads: int = sum(client.nthreads().values())
        self._slots = max(threads, concurrency)
        # A batch that mostly waits for its service gives its thread to the next one.
        self._secedes = concurrency > threads

    def _load(self, packed: PackedJob) -> list[LoadReport]:
        return list(self._client.run(try_to_load, packed).values())

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        return self._slots

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to the scheduler.

        Raises:
            PoolLost: The scheduler is gone.
        """
        try:
            future = self._client.submit(
                _run_batch, self._key, batch, secedes=self._secedes, pure=False, retries=0
            )
        except OSError as error:
            raise self._describe_loss() from error
        self._futures[number] = future
        future.add_done_callback(lambda _: self._ended.put(number))

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended.

        Raises:
            PoolLost: The scheduler is gone.
        """
        ended: list[EndedBatch] = []
        try:
            number = self._ended.get(timeout=timeout_s)
            while True:
                future = self._futures.pop(number, None)
                if future is not None:
                    ended.append(_read_future(number, future))
                number = self._ended.get_nowait()
        except Empty:
            pass
        # What has come back is counted first.
        if not ended:
            self._check_scheduler()
        return ended

    def _check_scheduler(self) -> None:
        if self._client.status == "running":
            self._away_since = None
            return
        now = time.monotonic()
        self._away_since = self._away_since or now
        if self._client.status == "closed" or now - self._away_since > _AWAY_S:
            raise self._describe_loss()

    def _describe_loss(self) -> PoolLost:
        return PoolLost(
            f"the Dask scheduler at {self._address} is gone; completed trials are kept, and the "
            "run can be resumed"
        )

    def cancel(self) -> None:
        """Cancel the batches that have not started; those that have are not waited for."""
        futures, self._futures = list(self._futures.values()), {}
        with suppress(OSError):  # a scheduler that is gone runs nothing
            self._client.cancel(futures, force=True)

    def close(self) -> None:
        """Close the service in every worker, and the cluster if it was started for this run."""
        with suppress(OSError, TimeoutError):
            if self._client.status == "running":
                self._client.unregister_worker_plugin(self._plugin)
        with suppress(OSError, TimeoutError):
            self._client.close(timeout=5)
        _close(self._cluster)


def _close(cluster: Any) -> None:
    if cluster is not None:
        cluster.close(timeout=10)


def _read_future(number: int, future: Any) -> EndedBatch:
    if future.status == "finished":
        result: BatchResult = future.result()
        return EndedBatch(number, result)
    if future.status == "error":
        error = future.exception()
        problem = f"the Dask worker failed ({type(error).__name__}: {error})"
        return EndedBatch(number, None, problem, is_death=isinstance(error, KilledWorker))
    problem = f"the connection to the Dask scheduler broke (the batch is {future.status})"
    return EndedBatch(number, None, problem, is_death=False)


class _JobPlugin(WorkerPlugin):  # type: ignore[misc]
    """Loads a job in a worker, and closes it at the end.

    Args:
        packed: The job as it travels.
    """

    def __init__(self, packed: PackedJob) -> None:
        self._packed = packed

    def setup(self, worker: Any) -> None:  # noqa: ARG002
        """Load the job; also in a worker that joins later."""
        _JOBS[self._packed.key] = BlockingWorker(self._packed)

    def teardown(self, worker: Any) -> None:  # noqa: ARG002
        """Close the service of the job."""
        loaded = _JOBS.pop(self._packed.key, None)
        if loaded is not None:
            loaded.close()


def _run_batch(key: str, batch: Batch, *, secedes: bool) -> BatchResult:
    if secedes:
        secede()
    return _JOBS[key].run(batch)
