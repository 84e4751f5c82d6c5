"""A project whose trials run in workers, and what its service and its journal tell about them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from trialwise.model.run import RunRecord
from trialwise.stores.runs import RunStore

SUITE = """\
name: s
service: {python: "agent:answer"}
inputs: [a, b]
trials: 60
seed: 7
curtail: false
criteria: [{name: c, equals: "yes", at_least: 70%}]
"""
AGENT = """\
import os, time
from pathlib import Path
from random import Random

def answer(question, index, seed):
    # Workers of a cluster have folders of their own.
    with open("FOLDER/calls", "a") as calls:
        calls.write(f"{index} {os.getpid()}\\n")
    time.sleep(0.03)
    if index % 20 == 19:
        raise ValueError("every twentieth")
    return "yes" if Random(seed).random() < 0.95 else "no"
"""


def write_project(folder: Path, more: str = "") -> None:
    """Write a suite and the function that it tests."""
    (folder / "trialwise.yaml").write_text(SUITE + more, encoding="utf-8")
    agent = AGENT.replace("FOLDER", str(folder))
    (folder / "agent.py").write_text(agent, encoding="utf-8")


def start(project: Path, *options: str) -> subprocess.Popen[str]:
    """Start `trialwise run` in a project."""
    return subprocess.Popen(
        [str(Path(sys.executable).with_name("trialwise")), "run", *options],
        cwd=project,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(run: subprocess.Popen[str], timeout_s: float = 60) -> tuple[int, str, str]:
    """Return the exit code and the output of a run, each white space one blank.

    A run that does not end is killed, with its output in the error.
    """
    try:
        output, errors = run.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        output, errors = run.communicate()
        raise AssertionError(f"no end within {timeout_s:g} s:\n{output}\n{errors}") from None
    return run.returncode, " ".join(output.split()), " ".join(errors.split())


def calls(project: Path) -> list[tuple[int, int]]:
    """Every call of the service, with the process that made it."""
    file = project / "calls"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [(int(one.split()[0]), int(one.split()[1])) for one in lines]


def wait_for_calls(project: Path, count: int) -> None:
    """Wait until the service was called so often."""
    # A cluster takes a minute to start on a machine that is busy with other tests.
    ends = time.monotonic() + 180
    while len(calls(project)) < count:
        assert time.monotonic() < ends, "the service is not called"
        time.sleep(0.01)


def kill_a_worker(project: Path) -> None:
    """Kill the process that has made the newest of the first calls."""
    wait_for_calls(project, 6)
    os.kill(calls(project)[-1][1], signal.SIGKILL)


def kept_indices(project: Path) -> list[int]:
    """The trials in the journal of the newest run."""
    return sorted(one.index for one in kept_record(project).trials)


def kept_record(project: Path) -> RunRecord:
    """The record of the newest run."""
    store = RunStore(project / ".trialwise")
    return store.load(store.latest().run_id)
