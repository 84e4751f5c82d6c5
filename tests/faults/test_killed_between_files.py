"""A kill between two files that a run writes: each trial and each measurement counts once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.command_runs import YES, call, journal, write

RECORDED = """\
name: s
service: {python: "agent:f"}
inputs: [a, b]
trials: 20
curtail: false
seed: 5
criteria: [{name: c, python: "agent:check", at_least: 5%}]
"""
#: Says something else with every call, and dies when the reply is recorded and not journalled.
DIES_IN_CHECK = """\
import os
from pathlib import Path

def f(q):
    with open("calls", "a") as calls:
        calls.write(".")
    return f"reply {Path('calls').stat().st_size}"

def check(reply):
    if reply.value == "reply 8" and Path("armed").exists():
        os.kill(os.getpid(), 9)
    return int(reply.value.split()[1]) % 3 > 0
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", "processes:1"])
def test_the_last_recording_of_a_trial_is_replayed(tmp_path: Path, executor: str) -> None:
    """The reply before the kill is recorded but did not count: the replay has the one that did."""
    write(tmp_path, DIES_IN_CHECK, RECORDED)
    (tmp_path / "armed").touch()
    options = ["--record", "replies.jsonl", "--executor", executor]
    code, output, errors = call(tmp_path, "run", "-q", *options)
    if executor == "local":
        assert code == -9
        code, output, errors = call(tmp_path, "run", "-q", *options, "--resume")

    assert code == 0, output + errors
    calls = (tmp_path / "calls").read_text()
    assert len(calls) > 20
    recorded = _replies(journal(tmp_path))
    assert len(recorded) == 20
    assert "reply 8" not in recorded.values()
    (tmp_path / ".trialwise").rename(tmp_path / "first")
    (tmp_path / "armed").unlink()
    code, output, errors = call(tmp_path, "run", "-q", "--replay", "replies.jsonl")

    assert code == 0, output + errors
    assert _replies(journal(tmp_path)) == recorded
    assert (tmp_path / "calls").read_text() == calls


def _replies(file: Path) -> dict[int, str]:
    trials = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {one["i"]: one["reply"] for one in trials if "i" in one}


def test_a_measurement_that_is_killed_after_its_baseline_has_one(tmp_path: Path) -> None:
    """The process ends between the baseline's file and everything after it."""
    write(tmp_path, YES)
    script = (
        "import os\n"
        "from trialwise.stores.baselines import BaselineStore\n"
        "save = BaselineStore.save\n"
        "def save_and_die(self, baseline):\n"
        "    save(self, baseline)\n"
        "    os.kill(os.getpid(), 9)\n"
        "BaselineStore.save = save_and_die\n"
        "from trialwise.cli.main import main\n"
        "main()\n"
    )
    (tmp_path / "killed.py").write_text(script, encoding="utf-8")
    subprocess.run(
        [sys.executable, "killed.py", "measure", "-q", "--trials", "30"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        timeout=60,
    )
    (written,) = tmp_path.glob("baselines/s/*.json")
    before = written.read_bytes()
    code, output, errors = call(tmp_path, "measure", "-q", "--trials", "30", "--resume")

    assert code == 0, errors
    assert written.name in output
    assert list(tmp_path.glob("baselines/s/*.json")) == [written]
    assert written.read_bytes() == before
