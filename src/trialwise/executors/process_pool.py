"""Worker processes on this machine, for services that keep a processor busy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from multiprocessing.connection import Connection, Listener, wait
from secrets import token_bytes

from trialwise.executors.batches import Batch, EndedBatch
from trialwise.executors.jobs import ExecutorUnusable, Job, LoadReport, PackedJob

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
        try:
            # All of them first: each takes a while to start, and they do so side by side.
            self._workers += [_Worker() for _ in range(count)]
            self._packed = job.pack_for(self._workers[0].load)
            for worker in self._workers[1:]:
                worker.load(self._packed)
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        """How many batches can run at once."""
        return self._share * len(self._workers)

    def submit(self, number: int, batch: Batch) -> None:
        """Send a batch to the worker that has the fewest."""
        worker = min(self._workers, key=lambda one: len(one.running))
        worker.running.add(number)
        try:
            worker.connection.send(("batch", number, batch))
        except OSError:
            self._replace(worker)

    def wait(self, timeout_s: float) -> Sequence[EndedBatch]:
        """Return the batches that have ended, those of dead workers included."""
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
        fresh = _Worker()
        self._workers[self._workers.index(worker)] = fresh
        fresh.load(self._packed)

    def cancel(self) -> None:
        """End the batches that are under way."""
        self._lost = []
        for worker in self._workers:
            if worker.running:
                worker.running.clear()
                try:
                    worker.connection.send(("cancel",))
                except OSError:
                    self._replace(worker)

    def close(self) -> None:
        """End all workers; each closes its service first."""
        for worker in self._workers:
            worker.ask_to_end()
        for worker in self._workers:
            worker.end(_CLOSING_S)


class _Worker:
    """One worker process and the connection to it."""

    def __init__(self) -> None:
        key = token_bytes(16)
        self.running: set[int] = set()
        self._listener = Listener(authkey=key)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "trialwise.executors.process_worker"),
                str(self._listener.address),
            ],
            stdin=subprocess.PIPE,
            # What a service prints must not get into the output of the run.
            stdout=2,
            # Ctrl-C is the driver's to handle; it ends the workers itself.
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(key)
        self.process.stdin.close()

    @cached_property
    def connection(self) -> Connection:
        """The connection to the process, once it has started."""
        with self._listener:
            return self._listener.accept()

    def load(self, packed: PackedJob) -> LoadReport:
        """Send a job and return what the worker says about it."""
        self.connection.send(("job", packed))
        if not self.connection.poll(_STARTING_S):
            raise ExecutorUnusable(f"a worker process did not answer within {_STARTING_S:g} s")
        try:
            report: LoadReport = self.connection.recv()
        except EOFError as error:
            message = "a worker process ended when it loaded the contract"
            raise ExecutorUnusable(message) from error
        return report

    def ask_to_end(self) -> None:
        """Ask the process to close its service and end."""
        if "connection" not in vars(self):
            self.process.kill()
            return
        with suppress(OSError):  # it may have ended already
            self.connection.send(("end",))

    def end(self, within_s: float = 1.0) -> int:
        """Wait for the end of the process, and kill it if it does not come.

        Args:
            within_s: How long to wait.
        """
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        if "connection" in vars(self):
            self.connection.close()
        else:
            self._listener.close()
        return code
