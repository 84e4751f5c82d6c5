"""A run that stood still does not blame its service."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.faults.command_runs import SUITE, journal, read_records, start, write

from trialwise.engine import error_classes

ASYNC = """\
import asyncio, os, pathlib
pathlib.Path("pid").write_text(str(os.getpid()))
async def f(q):
    pathlib.Path("called").touch()
    await asyncio.sleep(0.3)
    return "yes"
"""
THREADS = ASYNC.replace("async def", "def").replace(
    "await asyncio.sleep", "__import__('time').sleep"
)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [ASYNC, THREADS], ids=["async", "threads"])
def test_a_stop_of_two_seconds_is_no_timeout_of_the_service(tmp_path: Path, agent: str) -> None:
    """Eight trials were under way: they are not measured, and asked again."""
    write(tmp_path, agent, SUITE.replace("20", "24") + "timeout: 1s\nconcurrency: 8\n")
    process = start(tmp_path, "run", "-q", "--seed", "1")
    while not (tmp_path / "called").exists():
        time.sleep(0.01)
    worker = int((tmp_path / "pid").read_text())
    os.kill(worker, signal.SIGSTOP)
    time.sleep(2)
    os.kill(worker, signal.SIGCONT)
    output, errors = process.communicate(timeout=60)

    assert process.returncode == 0, output + errors
    (record,) = read_records(tmp_path)
    (finding,) = record["verdict"]["findings"]
    assert (finding["tally"]["trials"], finding["tally"]["passed"]) == (24, 24)
    assert "stood still" in journal(tmp_path).read_text()


def test_a_service_that_blocks_the_event_loop_is_late() -> None:
    """Only the whole process standing still excuses: the thread that watches goes on here."""
    error_classes.watch_for_stalls()
    began_s = time.monotonic()
    time.sleep(1)
    assert not error_classes.has_stalled_since(began_s)
