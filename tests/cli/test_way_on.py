"""An interrupted command names the command that continues, and that command does."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

AGENT = """
import pathlib, time

def answer(question):
    with open("calls.txt", "a") as file:
        file.write("x\\n")
    if not pathlib.Path("fast").exists():
        time.sleep(0.1)
    return "ok"
"""
ONE = """
name: one
service: {python: "agent:answer"}
inputs: [a, b]
criteria: [{name: right, equals: ok, at_least: 50%, trials: 40}]
"""
TWO = """
service: {python: "agent:answer"}
inputs: [a, b]
criteria: [{name: right, equals: ok, at_least: 50%, trials: 40}]
contracts: [{name: one}, {name: two}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "command", "way_on"),
    [
        (ONE, "run -q", r"trialwise run --resume \S+-one-\S+"),
        (TWO, "run -q", "trialwise run --resume"),
        (TWO, "run -q --jobs 2", "trialwise run --resume"),
        (ONE, "measure -q --trials 30", "trialwise measure --resume"),
    ],
)
def test_an_interrupted_command_names_the_way_on(
    tmp_path: Path, suite: str, command: str, way_on: str
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "trialwise.yaml").write_text(suite)
    program = [sys.executable, "-m", "trialwise.cli.main"]
    process = subprocess.Popen(
        [*program, *shlex.split(command)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    calls, limit = tmp_path / "calls.txt", time.monotonic() + 30
    while (not calls.exists() or len(calls.read_text()) < 6) and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 130
    found = re.search(f"`({way_on})`", errors)
    assert found, errors
    (tmp_path / "fast").touch()
    more = ["--trials", "30"] if "measure" in command else []
    again = subprocess.run(
        [*program, *found[1].split()[1:], "-q", *more],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
