"""Runs `trialwise` in a real process, in a folder with a suite and a service of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SUITE = """\
name: s
service: {python: "agent:f"}
inputs: [a, b]
trials: 20
curtail: false
criteria: [{name: c, equals: "yes", at_least: 50%}]
"""
YES = "def f(q): return 'yes'\n"
#: Kills its process once, at trial 10.
DIES = """\
import os
def f(q, index):
    if index == 10 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    return "yes"
"""


def write(folder: Path, agent: str = YES, suite: str = SUITE) -> None:
    """Write the suite and its service."""
    (folder / "trialwise.yaml").write_text(suite, encoding="utf-8")
    (folder / "agent.py").write_text(agent, encoding="utf-8")


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command of trialwise."""
    return subprocess.Popen(
        # Without -P the folder itself would come first on the path, as it does not for `trialwise`.
        [sys.executable, "-P", "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONUTF8": "1"},
    )


def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of a command."""
    process = start(folder, *arguments)
    try:
        output, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, output, errors


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Read the records of all runs, oldest first."""
    found = sorted(folder.glob(".trialwise/runs/*/record.json"))
    return [json.loads(one.read_text(encoding="utf-8")) for one in found]


def decisions(folder: Path) -> list[str]:
    """Return what the records on disk say."""
    return [one["verdict"]["decision"] for one in read_records(folder)]


def journal(folder: Path) -> Path:
    """Return the journal of the only run."""
    (found,) = folder.glob(".trialwise/runs/*/journal.jsonl")
    return found
