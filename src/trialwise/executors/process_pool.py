"""Worker processes on this machine, for services that keep a processor busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait

from trialwise.errors import ExecutorUnusable
from trialwise.executors.jobs import Batch, EndedBatch, Job, LoadReport, PackedJob
from trialwise.executors.pool_driver import PoolLost

#: How long a worker may take to start.
_STARTING_S = 60.0
#: How long a worker may take to close its service.
_CLOSING_S = 15.0


def open_pool(address: str, job: Job, *, concurrency: int) -> ProcessPool:
    """Open worker processes.

    Args:
        address: How many; empty for one for each processor.
        job: What they run.
        concurrency: How many trials may be in flight; each worker runs its share of them.

    Raises:
        ExecutorUnusable: The number is wrong, or a worker cannot load the job.
    """
    count = os.cpu_count() or 1
    if address:
        if not address.isdecimal() or int(address) < 1:
            raise ExecutorUnusable(
                f"executor: processes takes a number of processes, such as processes:4, and not "
                f"{address!r}"
            )
        count = int(address)
    return ProcessPool(job, count, max(1, -(-concurrency // count)))


class ProcessPool:
    """Worker processes; one that dies is replaced.

    Args:
        job: What they run.
        count: How many processes.
        share: How many batches each of them runs at once.
    """

    def __init__(self, job: Job, count: int, share: int) -> None:
        self._share = share
        self._workers: list[_Worker] = []
        self._lost: list[EndedBatch] = []
        self._loss: PoolLost | None = None
        try:
            # All of them first: each takes a while to start, and they do so side by side.
            for _ in range(count):
                self._workers.append(_Worker())
            self._packed = job.pack_for(self._load)
        except BaseException:
            self.close()
            raise

    def _load(self, packed: PackedJob) -> list[LoadReport]:
        for worker in self._workers:
            worker.send("job", packed)
        return [worker.read_report() for worker in self._workers]

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        return self._share * len(self._workers)

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to the worker that has the fewest.

        Raises:
            PoolLost: A worker died, and no other could take its place.
        """
        self._check_loss()
        # Not in turn: a worker that has long trials would get as many as the others.
        worker = min(self._workers, key=lambda one: len(one.running))
        worker.running.add(number)
        try:
            worker.connection.send(("batch", number, batch))
        except OSError:
            self._replace(worker)

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended, those of dead workers included.

        Raises:
            PoolLost: A worker died, and no other could take its place.
        """
        self._check_loss()
        ended: list[EndedBatch] = []
        connections = {one.connection: one for one in self._workers}
        for ready in wait(list(connections), 0 if self._lost else timeout_s):
            worker = connections[ready]  # type: ignore[index]
            try:
                while worker.connection.poll():
                    number, result = worker.connection.recv()
                    worker.running.discard(number)
                    ended.append(EndedBatch(number, result))
            except (EOFError, OSError):
                self._replace(worker)
        ended += self._lost
        self._lost = []
        return ended

    def _replace(self, worker: _Worker) -> None:
        code = worker.end()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        problem = f"the worker process ended with {how}"
        self._lost += [EndedBatch(number, None, problem) for number in sorted(worker.running)]
        self._workers.remove(worker)
        try:
            fresh = _Worker()
            self._workers.append(fresh)
            fresh.send("job", self._packed)
            trouble = fresh.read_report().problem
        except ExecutorUnusable as error:
            trouble = str(error)
        if trouble:
            # Raised by the next call: what this one has received must be counted first.
            self._loss = PoolLost(
                f"{problem}, and no other could take its place: {trouble}. Completed trials are "
                "kept, and the run can be resumed"
            )

    def _check_loss(self) -> None:
        if self._loss is not None:
            raise self._loss

    def cancel(self) -> None:
        """End the batches that are under way."""
        self._lost = []
        for worker in list(self._workers):
            if worker.running:
                worker.running.clear()
                try:
                    worker.connection.send(("cancel",))
                except OSError:
                    self._replace(worker)

    def close(self) -> None:
        """End all workers; each closes its service first."""
        for worker in self._workers:
            worker.send("end")
        for worker in self._workers:
            worker.end(_CLOSING_S)


class _Worker:
    """One worker process and the connection to it.

    Raises:
        ExecutorUnusable: The machine allows no further process.
    """

    def __init__(self) -> None:
        self.running: set[int] = set()
        try:
            self.connection, theirs = Pipe()
            # Only the worker keeps its end, so that its death ends the connection. Our own end is
            # closed with this object where no process starts.
            with theirs:
                number = theirs.fileno()
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "trialwise.executors.trial_worker", str(number)],
                    pass_fds=[number],
                    stdin=subprocess.DEVNULL,
                    # What a service prints must not get into the output of the run.
                    stdout=2,
                    # Ctrl-C is the driver's to handle; it ends the workers itself.
                    start_new_session=True,
                )
        except OSError as error:
            raise ExecutorUnusable(f"a worker process cannot be started: {error}") from error

    def send(self, *message: object) -> None:
        """Send a message; a process that has ended is found when it is read from."""
        with suppress(OSError):
            self.connection.send(message)

    def read_report(self) -> LoadReport:
        """Return what the process says about the job.

        Raises:
            ExecutorUnusable: It says nothing.
        """
        if not self.connection.poll(_STARTING_S):
            raise ExecutorUnusable(f"a worker process did not answer within {_STARTING_S:g} s")
        try:
            report: LoadReport = self.connection.recv()
        except (EOFError, OSError) as error:
            message = "a worker process ended when it loaded the contract"
            raise ExecutorUnusable(message) from error
        return report

    def end(self, within_s: float = 1.0) -> int:
        """Wait for the end of the process, and kill it if it does not come.

        Args:
            within_s: How long to wait.
        """
        # First: a worker that is sending what nobody reads would wait for ever.
        self.connection.close()
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
