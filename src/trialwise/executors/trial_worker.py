"""Runs batches of trials inside a worker, on an event loop of its own."""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from trialwise import model
from trialwise.engine.attempt import Caller, OutOfTime
from trialwise.engine.check_watch import find_mistake
from trialwise.engine.error_classes import Reach
from trialwise.engine.excerpts import TextKeeper
from trialwise.engine.ports import ServiceError, SystemClock
from trialwise.engine.run_parts import make_excerpts
from trialwise.executors import jobs
from trialwise.redaction import redact_with

#: How long closing the service may take.
_CLOSING_S = 10.0
_OVER = "the run has ended"


class TrialWorker:
    """Runs the trials of one job; several batches may run at once.

    Args:
        content: The job.
    """

    def __init__(self, content: jobs.JobContent) -> None:
        self._content = content
        self._excerpts = make_excerpts(content.plan, content.redact, content.reply_limit)
        # Workers keep no log: tracebacks go back with the trials that name them.
        self._keeper = TextKeeper(self._excerpts)
        self._sent: set[str] = set()
        self._reach = Reach()
        # Batches run side by side on one loop; whichever ends first takes along what was lost.
        self._lost: list[model.Reply] = []
        self._ends_s = math.inf
        caller = Caller(
            content.service,
            timeout_s=content.plan.options.timeout_s,
            retries=content.plan.options.retries,
            clock=SystemClock(),
            excerpts=self._excerpts,
            abandon=self._lost.extend,
            seconds_left=lambda: self._ends_s - time.perf_counter(),
            reach=self._reach,
            note_raised=self._keeper.note_raised,
        )
        self._runner = content.make_runner(content.plan, content.contract, caller)

    async def run(self, batch: jobs.Batch) -> jobs.BatchResult:
        """Run a batch of trials one after another.

        A fault of ours comes back as such: a worker that ended would look as if a trial had ended
        it.

        Args:
            batch: Which trials.
        """
        try:
            result = await self._run(batch)
            pickle.dumps(result)  # what cannot be sent is known here, and by its name
        except Exception:
            return jobs.BatchResult(trials=(), fault=self._excerpts.text(traceback.format_exc()))
        return result

    async def _run(self, batch: jobs.Batch) -> jobs.BatchResult:
        began_s = time.perf_counter()
        if batch.seconds_left is not None:
            self._ends_s = began_s + batch.seconds_left
        self._reach.learn(batch.reach)
        trials: list[model.Trial] = []
        ending: dict[str, Any] = {}
        with redact_with(self._content.redact):
            for start in batch.starts:
                # A function that never waits would keep the worker from hearing that the run ends.
                await asyncio.sleep(0)
                started_s = batch.began_s + time.perf_counter() - began_s
                try:
                    trials.append(await self._runner.run(start, started_s))
                except ServiceError as error:
                    ending = {"stop": str(error)}
                except OutOfTime as error:
                    ending = {"out_of_time": str(error) or "no time is left"}
                if ending or find_mistake(trials[-1]) is not None:
                    break
        lost, self._lost[:] = tuple(self._lost), ()
        known = self._keeper.texts.tracebacks
        # Each is sent once.
        fresh = {key: text for key, text in known.items() if key not in self._sent}
        self._sent.update(fresh)
        return jobs.BatchResult(
            trials=tuple(trials),
            tracebacks=fresh,
            abandoned=tuple(replace(one, value=None, details={}) for one in lost),
            run_s=time.perf_counter() - began_s,
            reach=self._reach,
            **ending,
        )

    async def aclose(self) -> None:
        """Close the service and the checks; what goes wrong there loses no trial."""
        with suppress(Exception, SystemExit):
            async with asyncio.timeout(_CLOSING_S):
                await self._runner.aclose()
                await self._content.service.aclose()


class BlockingWorker:
    """A worker for engines that call it from threads; its event loop has a thread of its own.

    Args:
        packed: The job as it travelled.
    """

    def __init__(self, packed: jobs.PackedJob) -> None:
        self._packed = packed
        self._worker = TrialWorker(jobs.load_content(packed))
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._batches: set[Future[jobs.BatchResult]] = set()
        self._is_closed = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        self._loop.run_forever()
        # Threads of the service that report just now are answered, and later ones are refused.
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def run(self, batch: jobs.Batch) -> jobs.BatchResult:
        """Run a batch and wait for it.

        Raises:
            RuntimeError: The run has ended, and nobody waits for the batch.
        """
        with self._lock:
            if self._is_closed:
                raise RuntimeError(_OVER)
            future = asyncio.run_coroutine_threadsafe(self._worker.run(batch), self._loop)
            self._batches.add(future)
        try:
            return future.result()
        except CancelledError:
            raise RuntimeError(_OVER) from None
        finally:
            self._batches.discard(future)

    def close(self) -> None:
        """Cancel what is under way, close the service and end the event loop.

        A batch that were left to itself would wait for the event loop for ever, and with it the
        thread of the engine that runs it: the next run on the same worker would never begin.
        """
        with self._lock:
            self._is_closed = True
            left = list(self._batches)
        for one in left:
            one.cancel()
        asyncio.run_coroutine_threadsafe(self._worker.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        jobs.forget_job(self._packed)


# What a worker process of `process_pool` runs: it loads a job and runs batches until told to end.
#
# The event loop has the main thread, because services may need it. Messages are read in a second
# thread. When the driver is gone the connection breaks, and the worker ends at once.


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

    def _on_job(self, packed: jobs.PackedJob) -> None:
        with _end_on_error():
            os.chdir(packed.folder)
            report, content = jobs.load_job(packed)
            if content is not None:
                self._worker = TrialWorker(content)
            self._connection.send(report)

    def _on_batch(self, number: int, batch: jobs.Batch) -> None:
        task = self._loop.create_task(self._run(number, batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, number: int, batch: jobs.Batch) -> None:
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
