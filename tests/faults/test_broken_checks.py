"""A reply is paid for once: a run that a broken check has ended goes on with a repaired one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.command_runs import call, read_records, write

SUITE = """\
name: s
service: {{python: "agent:f"}}
inputs: [a, b]
seed: 3
criteria: [{{name: queue, python: "checks:names_queue", at_least: 80%}}]
{settings}
"""
#: Each call costs; its index is written down. The reply is a dict, a long text, and sometimes cut.
PAID = """
import json, os
from trialwise import Reply

def f(q, index):
    with open("calls", "a") as file:
        file.write(f"{index}\\n")
    if index == 3:
        raise RuntimeError("the service broke")
    text = json.dumps({"queue": "billing", "why": "x" * 9000})
    text = text[:50] if index == 6 else text
    return Reply(value=text, cost_usd=0.5, details={"pid": index})
"""
MISSPELT = """
import json
def names_queue(reply):
    return json.loads(reply.text)["que"] == "billing" and reply.details["pid"] >= 0
"""
UNKNOWN_NAME = """
def names_queue(reply):
    return jsn.loads(reply.text)["queue"] == "billing"
"""
#: Kills its process once, at the second trial.
KILLED_ONCE = """
    import os
    if reply.details["pid"] == 1 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
"""
REPAIRED = MISSPELT.replace('["que"]', '["queue"]')


def read_calls(folder: Path) -> Counter[int]:
    """Count the calls of each trial's index."""
    return Counter(map(int, (folder / "calls").read_text().split()))


def read_outcomes(folder: Path) -> list[tuple[int, str]]:
    """Read which trials of the last run passed, in order."""
    journal = sorted(folder.glob(".trialwise/runs/*/journal.jsonl"))[-1]
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return sorted((line["i"], line["ok"]) for line in lines)


@pytest.mark.parametrize(
    ("check", "settings", "calls"),
    [
        (MISSPELT, "", 3),
        (UNKNOWN_NAME, "", 1),
        (MISSPELT, "executor: processes", 3),
        (UNKNOWN_NAME, "concurrency: 4", 1),
    ],
)
def test_a_repaired_check_is_given_the_replies_that_were_paid_for(
    tmp_path: Path, check: str, settings: str, calls: int
) -> None:
    """The broken run exits with 4; resumed, it calls no trial again and decides as if unbroken."""
    write(tmp_path, PAID, SUITE.format(settings=settings))
    (tmp_path / "checks.py").write_text(check)

    code, output, errors = call(tmp_path, "run", "-q")

    assert (4, "") == (code, output)
    assert "the check 'names_queue' is broken" in errors
    assert "return js" in errors  # its line
    assert not read_records(tmp_path)
    (folder,) = tmp_path.glob(".trialwise/runs/*")
    stored = [
        json.loads(line)["i"]
        for one in folder.glob("journal*.jsonl")
        for line in one.read_text().splitlines()
    ]
    assert len(stored) >= calls

    # Broken a second time, and then repaired.
    assert 4 == call(tmp_path, "run", "-q", "--resume")[0]
    (tmp_path / "checks.py").write_text(REPAIRED)
    code, output, errors = call(tmp_path, "run", "-q", "--resume")

    assert 0 == code, errors
    paid = read_calls(tmp_path)
    assert [1] * len(stored) == [paid[index] for index in stored]
    resumed = read_outcomes(tmp_path)
    assert 0 == call(tmp_path, "show", "--verify")[0]
    (record,) = read_records(tmp_path)
    spent = record["verdict"]["spending"]
    # All that answered cost 50 cents, whichever part of the run has paid for them.
    assert 0.5 * (len(resumed) - 1) == spent["usd"]

    whole = tmp_path / "whole"
    whole.mkdir()
    write(whole, PAID, SUITE.format(settings=settings))
    (whole / "checks.py").write_text(REPAIRED)
    assert 0 == call(whole, "run", "-q")[0]
    assert read_outcomes(whole)[: len(resumed)] == resumed[: len(read_outcomes(whole))]
    assert [(3, "0"), (6, "0")] == [one for one in resumed if one[1] == "0"]


def test_another_question_does_not_resume_a_broken_run(tmp_path: Path) -> None:
    """Only the check may be another one: the replies belong to the inputs and rates of the plan."""
    write(tmp_path, PAID, SUITE.format(settings=""))
    (tmp_path / "checks.py").write_text(MISSPELT)
    assert 4 == call(tmp_path, "run", "-q")[0]
    write(tmp_path, PAID, SUITE.format(settings="").replace("80%", "70%"))
    (tmp_path / "checks.py").write_text(REPAIRED)

    code, _, errors = call(tmp_path, "run", "-q", "--resume")

    assert 2 == code
    assert "criteria" in errors


def test_a_kill_while_replies_are_checked_again_pays_for_none_of_them(tmp_path: Path) -> None:
    """The replies stay set aside until the run has its verdict."""
    write(tmp_path, PAID, SUITE.format(settings=""))
    (tmp_path / "checks.py").write_text(MISSPELT)
    assert 4 == call(tmp_path, "run", "-q")[0]
    stored = sorted(read_calls(tmp_path))
    dies = REPAIRED.replace("    return", KILLED_ONCE + "    return")
    (tmp_path / "checks.py").write_text(dies)
    assert -9 == call(tmp_path, "run", "-q", "--resume")[0]

    code, _, errors = call(tmp_path, "run", "-q", "--resume")

    assert 0 == code, errors
    paid = read_calls(tmp_path)
    assert [1] * len(stored) == [paid[index] for index in stored]
