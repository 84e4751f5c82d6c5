"""A run that ended without a verdict can be shown, reported, rerun and scored; it never passed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.faults.command_runs import DIES, call, write

SUITE = """\
name: s
service: {python: "agent:f"}
inputs: [a, b]
trials: 20
curtail: false
criteria: [{name: c, python: "checks:is_yes", at_least: 50%}]
"""
BROKEN = "def is_yes(text):\n    return txt == 'yes'\n"
RIGHT = "def is_yes(text):\n    return text == 'yes'\n"


@pytest.fixture(params=["killed", "broken"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A suite whose run was killed at trial 10, or ended at its first trial by a broken check."""
    is_killed = request.param == "killed"
    write(tmp_path, DIES if is_killed else "def f(q): return 'yes'\n", SUITE)
    (tmp_path / "checks.py").write_text(RIGHT if is_killed else BROKEN)
    assert (-9 if is_killed else 4) == call(tmp_path, "run", "-q")[0]
    return tmp_path


def test_it_is_shown_as_inconclusive_with_the_way_on(folder: Path) -> None:
    """By name and as the latest, with its trials, and in every report."""
    (run,) = (folder / ".trialwise/runs").iterdir()
    for names in ([], [run.name], ["latest"], ["s"]):
        code, output, errors = call(folder, "show", *names)
        assert 0 == code, errors
        assert "INCONCLUSIVE" in output
        assert "trialwise run --resume" in output.replace("\n", " ")
        assert "PASS" not in output

    code, output, errors = call(folder, "show", "--trials", "1")
    assert (0, True) == (code, "trial 0" in output), errors
    outputs = ("a.html", "a.json", "a.md", "a.xml", "a.jsonl")
    code, _, errors = call(folder, "report", *(part for one in outputs for part in ("-o", one)))
    assert 0 == code, errors
    assert all((folder / one).read_text() for one in outputs)
    (document,) = json.loads((folder / "a.json").read_text())["runs"]
    assert "INCONCLUSIVE" == document["verdict"]["decision"]


def test_one_of_its_trials_can_be_run_again(folder: Path) -> None:
    """With the check of today."""
    (folder / "checks.py").write_text(RIGHT)
    (folder / "died").touch()
    code, output, errors = call(folder, "rerun", "--trial", "0")

    assert 0 == code, errors
    assert "c      is_yes: passed" in output


def test_its_replies_can_be_scored_with_another_suite(folder: Path) -> None:
    """Whatever stopped it, the verdict is valid; the service of neither suite is called."""
    (run,) = (folder / ".trialwise/runs").iterdir()
    (folder / "checks.py").write_text(RIGHT)
    (folder / "agent.py").write_text("raise RuntimeError('imported')\n")
    other = SUITE.replace('python: "checks:is_yes"', "equals: 'no'")
    (folder / "other.yaml").write_text(other)

    for arguments in ([], ["--suite", "other.yaml"]):
        code, output, errors = call(folder, "score", run.name, *arguments, "-o", "scored.html")
        passed = not arguments
        # Ten of ten show more than 50 %, and none less: (2¹¹ − 1)/11 > 20. One does not.
        is_long = len((run / "journal.jsonl").read_text().splitlines()) == 10
        wanted = (0 if passed else 1) if is_long else 3
        assert wanted == code, output + errors
        assert "valid at any stopping time" in errors
        assert run.name in output
    assert 0 == call(folder, "show", "--all", "--verify")[0]

    # Scoring has hidden nothing: the run itself goes on.
    write(folder, "def f(q): return 'yes'\n", SUITE)
    code, _, errors = call(folder, "run", "-q", "--resume")
    assert 0 == code, errors
    (record,) = [json.loads((run / "record.json").read_text())]
    assert 20 == record["trials"]
