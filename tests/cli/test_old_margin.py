"""Suites that relied on the margin of 0.1 are told what changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
name: x
service: {python: "service:answer"}
inputs: [a]
criteria: [{name: right, contains: right, at_least: 90%MARGIN}]
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder in which 0.1 ran a suite without a margin, which it took for 10 points."""
    (tmp_path / "service.py").write_text("def answer(input):\n    return 'right'\n")
    return tmp_path


def trialwise(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and everything that a command prints, on one line."""
    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
def test_check_and_run_name_the_margin_that_is_gone(suite: Path) -> None:
    """
    The newest run of the contract was planned by 0.1: the note says how to keep its question.
    """
    path = suite / "trialwise.yaml"
    path.write_text(SUITE.replace("MARGIN", ", margin: 10%, power: 80%"))
    assert trialwise(suite, "run", "-q")[0] == 0
    for file in (suite / ".trialwise" / "runs").rglob("*.json"):
        file.write_text(file.read_text().replace("sequential/optimal/2", "sequential/optimal"))
    path.write_text(SUITE.replace("MARGIN", ""))

    assert "write `margin: 10%` and `power: 80%`" in trialwise(suite, "check")[1]
    assert "write `margin: 10%` and `power: 80%`" in trialwise(suite, "run", "-q")[1]
    assert "margin: 10%" not in trialwise(suite, "run", "-q")[1]
