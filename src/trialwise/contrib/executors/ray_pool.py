"""The workers of a Ray cluster, or of a local one that is started for the run.

Each worker is an actor that holds the service. Ray itself starts an actor again when its process
dies. It then says no more than that the actor is "unavailable", as it does when a connection broke
or a node is gone. So the actor is asked who it is: only where another process of it answers, and
its node is still there, did the process die. Everything else is a lost connection, which is never
held against a trial.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayError

from trialwise.errors import ExecutorUnusable
from trialwise.executors.jobs import Batch, EndedBatch, Job, LoadReport, PackedJob, try_to_load
from trialwise.executors.pool_driver import PoolLost
from trialwise.executors.trial_worker import BlockingWorker

#: How long an actor may take to close its service.
_CLOSING_S = 15.0
#: How long an actor may take to say who it is. Ray needs 15 s to notice that a node is gone.
_ANSWERING_S = 60.0


class _Process(NamedTuple):
    """The process of an actor."""

    worker: str
    node: str


class _RayWorker(BlockingWorker):
    """A worker that says which process it is."""

    def identify(self) -> _Process:
        """Return this process."""
        context = ray.get_runtime_context()
        return _Process(context.get_worker_id(), context.get_node_id())


class _Sent(NamedTuple):
    """A batch at an actor."""

    number: int
    place: int
    """Of the actor."""
    process: Any
    """What says which process it was sent to."""


class _Doubt(NamedTuple):
    """A batch whose actor did not answer for it, and has been asked who it is."""

    batch: _Sent
    problem: str
    ends_s: float
    """When nobody waits for that any more."""


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
        self._refs: dict[Any, _Sent] = {}
        self._doubts: dict[Any, _Doubt] = {}
        count = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._share = max(1, -(-concurrency // count))
        load = ray.remote(scheduling_strategy="SPREAD")(try_to_load)

        def try_in_workers(packed: PackedJob) -> list[LoadReport]:
            reports: list[LoadReport] = ray.get([load.remote(packed) for _ in range(count)])
            return reports

        packed = job.pack_for(try_in_workers)
        actor = ray.remote(
            num_cpus=1, max_restarts=-1, max_task_retries=0, max_concurrency=self._share + 1
        )(_RayWorker)
        self._actors = {place: actor.remote(packed) for place in range(count)}
        self._processes = {place: one.identify.remote() for place, one in self._actors.items()}

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        return self._share * len(self._actors)

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to the actor with the fewest batches under way.

        Raises:
            PoolLost: The cluster is gone.
        """
        loads = Counter(one.place for one in self._refs.values())
        place = min(self._actors, key=loads.__getitem__)
        with _naming_loss():
            ref = self._actors[place].run.remote(batch)
        self._refs[ref] = _Sent(number, place, self._processes[place])

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended.

        Raises:
            PoolLost: The cluster is gone.
        """
        refs = [*self._refs, *self._doubts]
        if not refs:
            return []
        with _naming_loss():
            ready, _ = ray.wait(refs, num_returns=1, timeout=timeout_s)
            if ready:
                ready, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        now_s = time.monotonic()
        late = [ref for ref, one in self._doubts.items() if one.ends_s < now_s]
        ended: list[EndedBatch] = []
        for ref in dict.fromkeys([*ready, *late]):
            try:
                found = self._read(ref) if ref in self._refs else self._settle(ref)
            except PoolLost:
                # What has come back is counted first; the next call raises again.
                if not ended:
                    raise
                break
            ended += [] if found is None else [found]
        return ended

    def _read(self, ref: Any) -> EndedBatch | None:
        """Return a batch that ended; None where its actor must be asked first who it is."""
        sent = self._refs[ref]
        ended: EndedBatch | None = None
        with _naming_loss():
            try:
                ended = EndedBatch(sent.number, ray.get(ref))
            except RayError as error:
                if _is_cut_off(error):
                    raise _describe_loss("the node of this run has died") from error
                problem = f"the Ray worker failed ({type(error).__name__})"
                if isinstance(error, RayActorError) and sent.place in self._actors:
                    self._ask(_Doubt(sent, problem, time.monotonic() + _ANSWERING_S))
                else:
                    is_death = isinstance(error, OutOfMemoryError)
                    ended = EndedBatch(sent.number, None, problem, is_death=is_death)
        del self._refs[ref]
        return ended

    def _ask(self, doubt: _Doubt) -> None:
        """Ask the actor of a batch who it is."""
        self._doubts[self._actors[doubt.batch.place].identify.remote()] = doubt

    def _settle(self, ref: Any) -> EndedBatch | None:
        """Return a batch that did not come back, by what its actor says; None where it is silent.

        While an actor starts again, Ray says of every question that the actor is unavailable.
        """
        doubt = self._doubts[ref]
        sent, is_death, is_late = doubt.batch, False, time.monotonic() > doubt.ends_s
        with _naming_loss():
            try:
                now: _Process = ray.get(ref, timeout=0)
                self._processes[sent.place] = ref
                with suppress(RayError):  # it may have died before it said who it was
                    before: _Process = ray.get(sent.process, timeout=0)
                    alive = {one["NodeID"] for one in ray.nodes() if one["Alive"]}
                    is_death = now.worker != before.worker and before.node in alive
            except RayError:
                if not is_late and sent.place in self._actors:
                    del self._doubts[ref]
                    self._ask(doubt)
                    return None
                # It does not start again, so that nothing more is sent there.
                self._actors.pop(sent.place, None)
                if not self._actors:
                    why = f"no worker has answered for {_ANSWERING_S:g} s"
                    raise _describe_loss(why) from None
        del self._doubts[ref]
        return EndedBatch(sent.number, None, doubt.problem, is_death=is_death)

    def cancel(self) -> None:
        """Cancel the batches that have not started; those that have are not waited for."""
        refs, self._refs, self._doubts = list(self._refs), {}, {}
        with _naming_loss():
            for ref in refs:
                ray.cancel(ref)

    def close(self) -> None:
        """Close the service in every actor, and disconnect if this run connected."""
        try:
            with suppress(PoolLost), _naming_loss():
                closing = [actor.close.remote() for actor in self._actors.values()]
                if closing:
                    ray.wait(closing, num_returns=len(closing), timeout=_CLOSING_S)
                for actor in self._actors.values():
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
        is_named = isinstance(error, PoolLost)
        if is_named or (ray.is_initialized() and not isinstance(error, ConnectionError)):
            raise
        raise _describe_loss(error) from error


def _describe_loss(why: object) -> PoolLost:
    return PoolLost(
        f"the Ray cluster is gone ({why}); completed trials are kept, and the run can be resumed"
    )
