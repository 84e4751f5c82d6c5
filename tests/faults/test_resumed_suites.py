"""A resumed suite keeps the results of the session that was stopped, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """\
inputs: [x, y]
trials: 40
curtail: false
contracts:
  - {name: a, service: {python: "agent:good"}, criteria: [{name: c, equals: "yes", at_least: 50%}]}
  - {name: b, service: {python: "agent:dies"}, criteria: [{name: c, equals: "yes", at_least: 50%}]}
"""
AGENT = """
import os, pathlib

def note(name):
    with open("calls", "a") as file: file.write(name)

def good(q):
    note("a")
    return "yes"

def dies(q, index):
    note("b")
    if index == 10 and not os.path.exists("died"):
        pathlib.Path("died").touch()
        os.kill(os.getpid(), 9)
    return "yes"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite of two contracts, the second of which kills the process once."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`trialwise run` in a real process; the calls are those of this run."""
    (folder / "calls").write_text("", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "run", "-q", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )


def test_a_finished_contract_that_has_changed_since_is_refused(folder: Path) -> None:
    """Its PASS answers another question: `equals` is another now, which can only FAIL."""
    assert run(folder).returncode == -9
    changed = SUITE.replace('equals: "yes"', 'equals: "NEVER"', 1)
    assert changed != SUITE
    (folder / "trialwise.yaml").write_text(changed, encoding="utf-8")

    again = run(folder, "--resume")

    assert again.returncode == 2
    assert "cannot be resumed with this plan" in again.stderr
    assert (folder / "calls").read_text() == ""


@pytest.mark.slow
def test_a_finished_contract_of_the_stopped_session_is_kept(folder: Path) -> None:
    """Only the missing trials of the second contract are run."""
    assert run(folder).returncode == -9
    again = run(folder, "--resume")

    assert again.returncode == 0, again.stderr
    assert "a: finished before, kept" in again.stderr
    assert (folder / "calls").read_text() == "b" * 30


@pytest.mark.slow
def test_a_pass_from_before_the_stopped_session_is_not_kept(folder: Path) -> None:
    """Yesterday both contracts passed; today only the second was started, and died."""
    (folder / "died").touch()
    assert run(folder).returncode == 0
    (folder / "died").unlink()
    assert run(folder, "b").returncode == -9

    again = run(folder, "--resume")

    assert again.returncode == 0, again.stderr
    calls = (folder / "calls").read_text()
    assert (calls.count("a"), calls.count("b")) == (40, 30)
    assert "kept" not in again.stderr
