"""The workers of a Ray cluster, or of a local one that is started for the run.

Each worker is an actor that holds the service. Ray itself starts an actor again when its process
dies, and runs the batch once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError, WorkerCrashedError

from trialwise.executors.batches import Batch, EndedBatch
from trialwise.executors.jobs import ExecutorUnusable, Job, LoadReport, PackedJob, try_to_load
from trialwise.executors.trial_worker import BlockingWorker
from trialwise.executors.worker_pools import PoolLost

#: What Ray raises when the process of an actor has ended.
_DEATHS = (RayActorError, WorkerCrashedError, OutOfMemoryError)
#: How long an actor may take to close its service.
_CLOSING_S = 15.0


def open_pool(address: str, job: Job, *, concurrency: int) -> RayPool:
    """Connect to a Ray cluster, or start a local one.

    Args:
        address: The cluster, such as `ray://host:10001` or `auto`; empty or `local` for a new one.
        job: What workers run.
        concurrency: How many trials may be in flight.

    Raises:
        ExecutorUnusable: The cluster is not there, or its workers cannot run the job.
    """
    is_ours = not ray.is_initialized()
    if is_ours:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if address in ("", "local"):
            options |= {"address": "local", "include_dashboard": False}
        else:
            options["address"] = address
        try:
            ray.init(**options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ExecutorUnusable(
                f"no Ray cluster can be reached at {address or 'this machine'}: {error}. Is it "
                "running?"
            ) from error
    try:
        return RayPool(job, concurrency, is_ours=is_ours)
    except BaseException:
        if is_ours:
            ray.shutdown()
        raise


class RayPool:
    """Actors of a Ray cluster, one for each of its processors.

    Args:
        job: What workers run.
        concurrency: How many trials may be in flight.
        is_ours: Whether to disconnect at the end.
    """

    def __init__(self, job: Job, concurrency: int, *, is_ours: bool) -> None:
        self._is_ours = is_ours
        self._refs: dict[Any, tuple[int, int]] = {}
        """The number of each batch, and the place of the actor that runs it."""
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._share = max(1, -(-concurrency // count))
        load = ray.remote(scheduling_strategy="SPREAD")(try_to_load)

        def try_in_workers(packed: PackedJob) -> list[LoadReport]:
            reports: list[LoadReport] = ray.get([load.remote(packed) for _ in range(count)])
            return reports

        packed = job.pack_for(try_in_workers)
        actor = ray.remote(
            num_cpus=1, max_restarts=-1, max_task_retries=1, max_concurrency=self._share + 1
        )(BlockingWorker)
        self._actors = [actor.remote(packed) for _ in range(count)]

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        return self._share * len(self._actors)

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to the actor with the fewest batches under way.

        Raises:
            PoolLost: The cluster is gone.
        """
        loads = Counter(place for _, place in self._refs.values())
        place = min(range(len(self._actors)), key=loads.__getitem__)
        with _naming_loss():
            self._refs[self._actors[place].run.remote(batch)] = number, place

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended.

        Raises:
            PoolLost: The cluster is gone.
        """
        if not self._refs:
            return []
        refs = list(self._refs)
        with _naming_loss():
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout_s)
            if ready:
                ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        ended: list[EndedBatch] = []
        for ref in ready:
            try:
                ended.append(self._read(ref))
            except PoolLost:
                # What has come back is counted first; the next call raises again.
                if not ended:
                    raise
                break
        return ended

    def _read(self, ref: Any) -> EndedBatch:
        number, _ = self._refs[ref]
        try:
            with _naming_loss():
                ended = EndedBatch(number, ray.get(ref))
        except RayError as error:
            if _is_cut_off(error):
                raise PoolLost(
                    "the Ray cluster is gone (the node of this run has died); completed trials "
                    "are kept, and the run can be resumed"
                ) from error
            problem = f"the Ray worker failed ({type(error).__name__})"
            ended = EndedBatch(number, None, problem, is_death=isinstance(error, _DEATHS))
        del self._refs[ref]
        return ended

    def cancel(self) -> None:
        """Cancel the batches that have not started; those that have are not waited for."""
        refs, self._refs = list(self._refs), {}
        with _naming_loss():
            for ref in refs:
                ray.cancel(ref)

    def close(self) -> None:
        """Close the service in every actor, and disconnect if this run connected."""
        try:
            with suppress(PoolLost), _naming_loss():
                closing = [actor.close.remote() for actor in self._actors]
                ray.wait(closing, num_returns=len(closing), timeout=_CLOSING_S)
                for actor in self._actors:
                    ray.kill(actor)
        finally:
            if self._is_ours:
                ray.shutdown()


def _is_cut_off(error: RayError) -> bool:
    """Return whether the node of this run died, and not the service.

    Ray then ends all actors of the run, for good, and each trial would look like one that ends its
    worker whenever it is tried.
    """
    if not isinstance(error, RayActorError):
        return False
    return "owner has died" in str(error) or not any(one["Alive"] for one in ray.nodes())


@contextmanager
def _naming_loss() -> Iterator[None]:
    """Name the loss of the cluster, for which Ray's client raises a plain exception."""
    try:
        yield
    except Exception as error:
        if ray.is_initialized() and not isinstance(error, ConnectionError):
            raise
        raise PoolLost(
            f"the Ray cluster is gone ({error}); completed trials are kept, and the run can be "
            "resumed"
        ) from error
