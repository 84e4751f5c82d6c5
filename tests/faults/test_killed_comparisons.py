"""A comparison that is killed and resumed by the command line: nothing is lost, nothing doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SERVICE = """
import os, time

def _answer(name, index, passes):
    with open("calls.txt", "a") as calls:
        calls.write(f"{name} {index}\\n")
    time.sleep(0.01)
    return "yes" if passes else "no"

def base(input, index):
    return _answer("base", index, index % 3)

def good(input, index):
    return _answer("good", index, index % 7)

def like(input, index):
    return _answer("like", index, index % 3)
"""
SUITE = """
name: support
service: {python: "svc:base"}
inputs: [a, b, c]
criteria: [{name: right, equals: "yes", at_least: 50%}]
arms:
  good: {service: {python: "svc:good"}}
  like: {service: {python: "svc:like"}}
compare: {trials: 60}
concurrency: 3
seed: 1
"""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "trialwise", "compare", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_calls(folder: Path) -> list[str]:
    path = folder / "calls.txt"
    return path.read_text().splitlines() if path.exists() else []


def finish(folder: Path, *arguments: str) -> dict[str, Any]:
    done = start(folder, *arguments, "--json", "--quiet")
    out, err = done.communicate(timeout=60)
    assert out, err
    return dict(json.loads(out))


@pytest.mark.slow
@pytest.mark.requirement(
    "statistical-ci lessons",
    "A comparison that was killed continues where it ended, and its verdict is the same.",
    "`trialwise compare --resume`",
)
@pytest.mark.parametrize("calls_before", [25, 140])
def test_a_killed_comparison_is_resumed_without_arguments(
    tmp_path: Path, calls_before: int
) -> None:
    """kill -9 of the whole process group, early and late."""
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "svc.py").write_text(SERVICE)
        (tmp_path / name / "trialwise.yaml").write_text(SUITE)
    folder = tmp_path / "killed"
    running = start(folder, "--quiet")
    end = time.monotonic() + 30
    while len(read_calls(folder)) < calls_before and time.monotonic() < end:
        time.sleep(0.005)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    before = len(read_calls(folder))
    assert calls_before <= before < 180

    resumed, whole = finish(folder, "--resume"), finish(tmp_path / "whole")

    for one, other in zip(resumed["findings"], whole["findings"], strict=True):
        assert (one["arm"], one["pairs"]) == (other["arm"], other["pairs"])
        assert (one["p_value"], one["decision"]) == (other["p_value"], other["decision"])
    assert resumed["decision"] == whole["decision"]
    # Only calls that were under way when it was killed are made again.
    counted = Counter(read_calls(folder))
    assert set(counted) == set(read_calls(tmp_path / "whole"))
    assert sum(counted.values()) - len(counted) <= 2 * 3
    for run in (folder / ".trialwise" / "runs").iterdir():
        lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
        assert len(lines) >= 60
    assert len(list((folder / ".trialwise" / "comparisons").iterdir())) == 1
    assert [one["spending"]["trials"] for one in resumed["arms"]] == [60, 60, 60]
