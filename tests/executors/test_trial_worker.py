"""A worker that engines call from threads: how it ends."""

from __future__ import annotations

import threading
import time

import pytest

import trialwise as tw
from trialwise.engine.run_state import TrialStart
from trialwise.executors.jobs import Batch, Job, JobContent
from trialwise.executors.trial_worker import BlockingWorker
from trialwise.model.options import RunOptions
from trialwise.procedures.run_plan import plan_run
from trialwise.services import CallableService

STARTED = threading.Event()


def hang(_: str) -> str:
    STARTED.set()
    time.sleep(600)
    return "never"


def test_a_batch_under_way_ends_with_the_worker() -> None:
    """Its thread is the engine's: if it waited for ever, the next run would not get it."""
    contract = tw.Contract(
        "c", hang, [tw.Criterion("c", str.isalpha, at_least=0.5)], sampling=["a"]
    )
    plan = plan_run(
        contract, RunOptions(), seed=1, structure={"c": "s"}, fingerprints={"inputs": "f"}
    )
    content = JobContent(plan, contract, CallableService(hang), None, None)
    worker = BlockingWorker(Job("key", content).pack())
    batch = Batch(starts=(TrialStart(0, 0, 0, 1),), began_s=0.0)
    told: list[str] = []

    def run_batch() -> None:
        with pytest.raises(RuntimeError) as caught:
            worker.run(batch)
        told.append(str(caught.value))

    thread = threading.Thread(target=run_batch, daemon=True)
    thread.start()
    assert STARTED.wait(20)
    worker.close()
    thread.join(20)

    assert told == ["the run has ended"]
    with pytest.raises(RuntimeError, match="the run has ended"):
        worker.run(batch)
