"""What a worker process of `process_pool` runs: it loads a job and runs batches until told to end.

The event loop has the main thread, because services may need it. Messages are read in a second
thread. When the driver is gone the connection breaks, and the worker ends at once.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from trialwise.executors.batches import Batch
from trialwise.executors.jobs import PackedJob, load_job
from trialwise.executors.trial_worker import TrialWorker


class _Server:
    """Answers the messages of the driver.

    Args:
        connection: To the driver.
        loop: Runs the trials.
    """

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._loop = loop
        self._worker: TrialWorker | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def read_messages(self) -> None:
        """Read messages until the driver ends or asks for the end."""
        while True:
            try:
                kind, *parts = self._connection.recv()
            except (EOFError, OSError):
                # Nobody is left to send results to, and a service may not let itself be cancelled.
                os._exit(1)
            self._loop.call_soon_threadsafe(getattr(self, f"_on_{kind}"), *parts)
            if kind == "end":
                return

    def _on_job(self, packed: PackedJob) -> None:
        with _end_on_error():
            os.chdir(packed.folder)
            report, content = load_job(packed)
            if content is not None:
                self._worker = TrialWorker(content)
            self._connection.send(report)

    def _on_batch(self, number: int, batch: Batch) -> None:
        task = self._loop.create_task(self._run(number, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, number: int, batch: Batch) -> None:
        assert self._worker is not None
        with _end_on_error():
            result = await self._worker.run(batch)
            with suppress(OSError):  # the driver has no use for it any more
                self._connection.send((number, result))

    def _on_cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _on_end(self) -> None:
        self._on_cancel()
        self._loop.create_task(self._end())

    async def _end(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        if self._worker is not None:
            await self._worker.aclose()
        # Threads of the service may never end.
        os._exit(0)


@contextmanager
def _end_on_error() -> Iterator[None]:
    """End the process where it cannot answer: the driver would wait for the answer for ever."""
    try:
        yield
    except Exception:
        traceback.print_exc()
        os._exit(1)


def main() -> None:
    """Serve the driver at the other end of the connection that the command line names."""
    connection = Connection(int(sys.argv[1]))
    # Only this process may hold it: a program or a copy that the service starts and leaves behind
    # would hide from the driver that the worker has died.
    os.set_inheritable(connection.fileno(), False)
    os.register_at_fork(after_in_child=connection.close)
    loop = asyncio.new_event_loop()
    server = _Server(connection, loop)
    threading.Thread(target=server.read_messages, daemon=True).start()
    loop.run_forever()


if __name__ == "__main__":
    main()
