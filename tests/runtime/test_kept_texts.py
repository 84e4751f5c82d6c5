"""A run keeps what was asked and what was expected, once, redacted, and safe from a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import JournalDamaged
from trialwise.stores.journal import read_journal
from trialwise.stores.runs import RunStore


def contract(answer: str = "delivery") -> tw.Contract:
    right = tw.Criterion("right", tw.equals("delivery"), at_least=0.5, trials=20)
    return tw.Contract("mail", lambda _: answer, [right])


def inputs() -> list[tw.Input]:
    return [
        tw.Input(id="q28", value="Where is my parcel?", expected="delivery"),
        tw.Input(id="q29", value={"text": "Où est-il ?", "n": 3}, expected="delivery"),
        tw.Input(id="again", value="Where is my parcel?", expected="delivery"),
    ]


def run(folder: Path, **settings: Any) -> tw.Result:
    usual: dict[str, Any] = {"inputs": inputs(), "seed": 1, "store": folder, "curtail": False}
    return tw.run(contract(), progress=False, **(usual | settings))


def test_inputs_and_expected_answers_are_read_back(tmp_path: Path) -> None:
    """A value that is not a text is kept as JSON, as people write it."""
    result = run(tmp_path)
    for record in (result.record, RunStore(tmp_path).load(result.record.run_id)):
        asked = record.texts.inputs
        assert asked["inputs", "q28"].value == "Where is my parcel?"
        assert asked["inputs", "q29"].value == '{"text": "Où est-il ?", "n": 3}'
        assert {one.expected for one in asked.values()} == {"delivery"}
        assert all(record.texts.find_input(trial) is not None for trial in record.trials)


def test_a_content_is_written_once_however_often_it_is_asked(tmp_path: Path) -> None:
    """Twenty trials of three inputs, two of which are alike: three lines, two contents."""
    result = run(tmp_path)
    assert result.path is not None
    lines = read_journal(result.path / "texts.jsonl")
    assert len(lines) == 3
    assert sum("value" in line for line in lines) == 2


def test_inputs_are_redacted_like_replies(tmp_path: Path) -> None:
    """A secret that an input or an expected answer holds is in no file of the run."""
    result = run(tmp_path, redact=lambda text: text.replace("parcel", "***").replace("deli", "##"))
    assert result.path is not None
    asked = result.record.texts.inputs["inputs", "q28"]
    assert (asked.value, asked.expected) == ("Where is my ***?", "##very")
    assert b"parcel" not in (result.path / "texts.jsonl").read_bytes()


def test_a_run_may_keep_no_inputs(tmp_path: Path) -> None:
    """`keep_inputs: false` leaves no file and no text, and changes nothing else."""
    result, usual = run(tmp_path, keep_inputs=False), run(tmp_path)
    assert result.path is not None
    assert not (result.path / "texts.jsonl").exists()
    assert result.record.texts.inputs == {}
    assert result.verdict.reproducibility.plan_hash == usual.verdict.reproducibility.plan_hash


def test_without_a_store_the_record_has_the_inputs_all_the_same() -> None:
    """What is not kept can still be shown."""
    result = tw.run(contract(), inputs=inputs(), seed=1, store=None, progress=False)
    assert result.record.texts.inputs["inputs", "q28"].expected == "delivery"


def test_a_damaged_line_is_found(tmp_path: Path) -> None:
    """A text that somebody altered is not shown as what was asked."""
    result = run(tmp_path)
    assert result.path is not None
    file = result.path / "texts.jsonl"
    file.write_bytes(file.read_bytes().replace(b"parcel", b"bottle", 1))
    with pytest.raises(JournalDamaged):
        RunStore(tmp_path).load(result.record.run_id)


KILLED = """
import os, signal, sys
import trialwise as tw

def ask(input, index):
    if index == 7 and sys.argv[1] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return "ok"

contract = tw.Contract("x", ask, [tw.Criterion("ok", tw.equals("ok"), at_least=0.5, trials=12)])
inputs = [f"question {k}" for k in range(12)]
tw.run(contract, inputs=inputs, seed=1, curtail=False, resume=sys.argv[1] != "die", progress=False)
"""


@pytest.mark.slow
def test_every_trial_that_survives_a_kill_has_its_input(tmp_path: Path) -> None:
    """An input is on disk before its first trial, and a resumed run writes none a second time."""
    (tmp_path / "killed.py").write_text(KILLED)
    command = [sys.executable, "killed.py"]
    done = subprocess.run([*command, "die"], cwd=tmp_path, check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    (folder,) = (tmp_path / ".trialwise" / "runs").iterdir()
    stored = RunStore(tmp_path / ".trialwise").open(folder.name)
    assert len(stored.trials()) == 7
    assert all(stored.texts().find_input(trial) is not None for trial in stored.trials())
    subprocess.run([*command, "go on"], cwd=tmp_path, check=True, env=os.environ)
    lines = read_journal(folder / "texts.jsonl")
    assert sorted(line["in"] for line in lines) == sorted(str(k) for k in range(1, 13))
