"""Runs batches of trials inside a worker, on an event loop of its own."""

from __future__ import annotations

import asyncio
import math
import pickle
import threading
import time
import traceback
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from trialwise.engine.attempt import OutOfTime
from trialwise.engine.check_watch import find_mistake
from trialwise.engine.error_classes import Reach
from trialwise.engine.ports import ServiceError, SystemClock
from trialwise.engine.run_parts import make_excerpts
from trialwise.engine.text_keeper import TextKeeper
from trialwise.engine.trial_runner import RunsTrials, TrialRunner
from trialwise.executors.batches import Batch, BatchResult
from trialwise.executors.jobs import JobContent, PackedJob, WorkerParts, forget_job, load_content
from trialwise.model.reply import Reply
from trialwise.model.trial import Trial
from trialwise.redaction import redact_with

#: How long closing the service may take.
_CLOSING_S = 10.0
_OVER = "the run has ended"


class TrialWorker:
    """Runs the trials of one job; several batches may run at once.

    Args:
        content: The job.
    """

    def __init__(self, content: JobContent) -> None:
        self._content = content
        self._excerpts = make_excerpts(content.plan, content.redact, content.reply_limit)
        # Workers keep no log: tracebacks go back with the trials that name them.
        self._keeper = TextKeeper(self._excerpts)
        self._sent: set[str] = set()
        self._reach = Reach()
        # Batches run side by side on one loop; whichever ends first takes along what was lost.
        self._lost: list[Reply] = []
        self._ends_s = math.inf
        self._runner = self._make_runner()

    def _make_runner(self) -> RunsTrials:
        content = self._content
        if content.make_runner is not None:
            parts = WorkerParts(
                content.plan,
                content.contract,
                self._excerpts,
                self._reach,
                self._keeper.note_raised,
            )
            return content.make_runner(parts)
        return TrialRunner(
            content.plan,
            content.contract,
            content.service,
            clock=SystemClock(),
            excerpts=self._excerpts,
            abandon=self._lost.extend,
            seconds_left=lambda: self._ends_s - time.perf_counter(),
            reach=self._reach,
            note_raised=self._keeper.note_raised,
        )

    async def run(self, batch: Batch) -> BatchResult:
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
            return BatchResult(trials=(), fault=self._excerpts.text(traceback.format_exc()))
        return result

    async def _run(self, batch: Batch) -> BatchResult:
        began_s = time.perf_counter()
        if batch.seconds_left is not None:
            self._ends_s = began_s + batch.seconds_left
        self._reach.has_answered |= batch.has_answered
        self._reach.has_worked |= batch.has_worked
        trials: list[Trial] = []
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
        return BatchResult(
            trials=tuple(trials),
            tracebacks=self._take_tracebacks(),
            abandoned=tuple(replace(one, value=None, details={}) for one in lost),
            run_s=time.perf_counter() - began_s,
            has_answered=self._reach.has_answered,
            has_worked=self._reach.has_worked,
            **ending,
        )

    def _take_tracebacks(self) -> dict[str, str]:
        """Return the tracebacks that were not sent before."""
        known = self._keeper.texts.tracebacks
        fresh = {key: text for key, text in known.items() if key not in self._sent}
        self._sent.update(fresh)
        return fresh

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

    def __init__(self, packed: PackedJob) -> None:
        self._packed = packed
        self._worker = TrialWorker(load_content(packed))
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._batches: set[Future[BatchResult]] = set()
        self._is_closed = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        self._loop.run_forever()
        # Threads of the service that report just now are answered, and later ones are refused.
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def run(self, batch: Batch) -> BatchResult:
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
        forget_job(self._packed)
