"""Ctrl-C ends a run cleanly: what is complete is kept and decided, and the run can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trialwise as tw
from trialwise.stores.runs import RunStore

SCRIPT = """
import sys
import time
import trialwise as tw

def {name}(trial):
    with open(sys.argv[2], "a") as log:
        log.write(f"{{trial.index}}\\n")
    {wait}
    return "good"

criteria = [tw.Criterion("good", tw.equals("good"), at_least=0.9, trials=200)]
contract = tw.Contract("interrupted", {name}, criteria, sampling=["a", "b"])
resume = len(sys.argv) > 3
if resume:
    time.sleep = lambda seconds: None
result = tw.run(contract, seed=3, store=sys.argv[1], curtail=False, resume=resume, {settings})
sys.exit(0 if result.passed else 1)
"""
SYNC = SCRIPT.format(name="call", wait="time.sleep(0.02)", settings="concurrency=1")
THREADS = SCRIPT.format(name="call", wait="time.sleep(0.05)", settings="concurrency=4")
ASYNC = SCRIPT.replace("def {name}", "async def {name}").format(
    name="call",
    wait="import anyio; await anyio.sleep(0 if resume else 0.05)",
    settings="concurrency=4",
)


def start(script: str, folder: Path, *more: str) -> subprocess.Popen[str]:
    file = folder / "script.py"
    file.write_text(script)
    arguments = [sys.executable, str(file), str(folder / "store"), str(folder / "calls"), *more]
    return subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True)


def wait_for_calls(log: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while not log.exists() or len(log.read_text().split()) < count:
        assert time.monotonic() < deadline, "the run does not call its service"
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("script", [SYNC, THREADS, ASYNC], ids=["sync", "threads", "async"])
def test_an_interrupted_run_is_kept_and_resumed(tmp_path: Path, script: str) -> None:
    """SIGINT to a real process: a KeyboardInterrupt, a record, and on resume nothing run twice."""
    process = start(script, tmp_path)
    wait_for_calls(tmp_path / "calls", 12)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "RunInterrupted" in errors
    store = RunStore(tmp_path / "store")
    (unfinished,) = (one for one in store.list() if one.is_unfinished)
    assert f"`resume={unfinished.run_id!r}` continues the run" in errors
    record = store.load(unfinished.run_id)
    assert record.verdict.stop is tw.model.StopReason.INTERRUPTED
    assert record.verdict.decision is tw.Decision.INCONCLUSIVE
    kept = {trial.index for trial in record.trials}
    assert kept
    (tmp_path / "calls").unlink()

    again = start(script, tmp_path, "--resume")
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    called = [int(line) for line in (tmp_path / "calls").read_text().split()]
    assert not kept & set(called)
    assert sorted([*kept, *called]) == list(range(200))
    assert store.latest().record().verdict.decision is tw.Decision.PASS


def test_a_second_interrupt_ends_a_function_that_does_not_come_back(tmp_path: Path) -> None:
    """A sync function that hangs: the first Ctrl-C waits for it, the second does not."""
    script = SYNC.replace("time.sleep(0.02)", "time.sleep(0.02 if trial.index < 5 else 600)")
    process = start(script, tmp_path)
    wait_for_calls(tmp_path / "calls", 6)
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    store = RunStore(tmp_path / "store")
    (unfinished,) = (one for one in store.list() if one.is_unfinished)
    assert len(store.open(unfinished.run_id).trials()) == 5
    assert os.path.exists(tmp_path / "calls")
