"""A machine that starts no further thread says nothing about the service."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.command_runs import decisions, write

SUITE = """\
name: s
service: {python: "agent:f"}
inputs: [a]
trials: 200
timeout: 30ms
concurrency: 4
curtail: false
criteria: [{name: c, equals: "yes", at_least: 50%}]
"""
#: A thread reserves 8 MB of addresses for its stack, so that few of them fit.
LIMITED = """\
import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (900 * 2**20,) * 2)
os.execv(sys.executable, [sys.executable, "-m", "trialwise.cli.main", *sys.argv[1:]])
"""


@pytest.mark.parametrize("executor", ["local", "processes:1"])
def test_used_up_threads_are_no_failures_of_the_service(tmp_path: Path, executor: str) -> None:
    """Functions that hang occupy their threads: one sentence ends the run, and nothing FAILs."""
    write(tmp_path, "import time\ndef f(q): time.sleep(1000)\n", SUITE)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "run", "-q", "--executor", executor],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 4, done.stdout + done.stderr
    assert decisions(tmp_path) == ["INCONCLUSIVE"]
    assert "no further thread can be started" in done.stdout
    assert "make the function async, use a command, or lower" in " ".join(done.stdout.split())
    (journal,) = tmp_path.glob(".trialwise/runs/*/journal.jsonl")
    kept = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    assert 0 < len(kept) < 200
    assert {one["error"] for one in kept} == {"no reply within 0.03 s"}
