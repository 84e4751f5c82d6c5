"""A run after an INCONCLUSIVE one says what the runs together are worth."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trialwise.cli.main import main

SUITE = """
name: x
service: {python: "svc:ask"}
inputs: [a]
max_trials: 40
criteria: [{name: ok, equals: ok, at_least: 90%}]
"""
SERVICE = """
def ask(input, index):
    return "bad" if index % 10 == 9 else "ok"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite whose service passes 9 of 10, where 90 % is required: open after 40 trials."""
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    (tmp_path / "svc.py").write_text(SERVICE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> int:
    sys.modules.pop("svc", None)  # each test, and each change of the service, has its own
    shutil.rmtree("__pycache__", ignore_errors=True)
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def run_json(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    call("run", "-q", "--json", *arguments)
    found: dict[str, Any] = json.loads(capfd.readouterr().out)["runs"][0]
    return found


def design_of(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = run["verdict"]["plan"]["criteria"][0]["design"]
    return found


def count_ends(design: dict[str, Any], rate: float) -> tuple[float, float, float]:
    """PASS, FAIL and INCONCLUSIVE of a design, by following every path through its boundaries."""
    alive, ends = {0: 1.0}, [0.0, 0.0, 0.0]
    for n in range(1, design["cap"] + 1):
        after: dict[int, float] = {}
        for failures, chance in alive.items():
            after[failures] = after.get(failures, 0.0) + chance * rate
            after[failures + 1] = after.get(failures + 1, 0.0) + chance * (1 - rate)
        alive = {}
        for failures, chance in after.items():
            low, high = design["futile"][n] if design["futile"] else (1, 0)
            if failures <= design["accept"][n]:
                ends[0] += chance
            elif failures >= design["reject"][n]:
                ends[1] += chance
            elif n == design["cap"] or low <= failures <= high:
                ends[2] += chance
            else:
                alive[failures] = chance
    return ends[0], ends[1], ends[2]


def join_runs(designs: Sequence[dict[str, Any]], rate: float) -> tuple[float, float]:
    """PASS and FAIL in any of several runs, each made only if all before it were left open."""
    passes = fails = 0.0
    still_open = 1.0
    for design in designs:
        one_passes, one_fails, one_open = count_ends(design, rate)
        passes += still_open * one_passes
        fails += still_open * one_fails
        still_open *= one_open
    return passes, fails


def test_a_second_run_states_the_joint_error_of_both_exactly(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In JSON as numbers; in the terminal, the page and `check` as a sentence."""
    first = run_json(capfd)
    second = run_json(capfd, "--max-trials", "60")
    third = run_json(capfd, "-o", "page.html")
    call("run")
    shown = capfd.readouterr()
    call("check")
    checked = capfd.readouterr().out

    assert first["decision"] == second["decision"] == third["decision"] == "INCONCLUSIVE"
    assert first["results"][0]["facts"]["joint_wrong_pass"] is None
    two = join_runs([design_of(first), design_of(second)], 0.9)
    facts = second["results"][0]["facts"]
    assert (facts["joint_wrong_pass"], facts["joint_wrong_fail"]) == pytest.approx(two, abs=1e-9)
    three = join_runs([design_of(one) for one in (first, second, third)], 0.9)
    facts = third["results"][0]["facts"]
    assert (facts["joint_wrong_pass"], facts["joint_wrong_fail"]) == pytest.approx(three, abs=1e-9)
    page = (folder / "page.html").read_text("utf-8")
    assert f"PASS at a true rate of 90 % in {100 * three[0]:.2f} %" in " ".join(page.split())
    four = join_runs([design_of(one) for one in (first, second, third, third)], 0.9)
    sentence = f"PASS at a true rate of 90 % in {100 * four[0]:.2f} %"
    assert sentence in " ".join(shown.out.split())
    five = join_runs([design_of(one) for one in (first, second, third, third, third)], 0.9)
    assert f"PASS at a true rate of 90 % in {100 * five[0]:.2f} %" in " ".join(checked.split())


def test_a_decided_run_or_another_question_starts_anew(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was asked before says nothing of another requirement, or after a decision."""
    run_json(capfd)
    suite = folder / "trialwise.yaml"
    suite.write_text(SUITE.replace("90%", "91%"), encoding="utf-8")
    other = run_json(capfd)
    suite.write_text(SUITE, encoding="utf-8")
    (folder / "svc.py").write_text("def ask(input):\n    return 'ok'\n", encoding="utf-8")
    passed = run_json(capfd, "--max-trials", "80")
    after = run_json(capfd)

    assert other["results"][0]["facts"]["joint_wrong_pass"] is None
    assert passed["decision"] == "PASS"
    assert after["results"][0]["facts"]["joint_wrong_pass"] is None


def test_a_run_that_was_cut_short_counts_with_a_bound(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Somebody chose the moment, so only the whole error of its design bounds what it spent."""
    (folder / "svc.py").write_text(
        "import time\ndef ask(input, index):\n"
        "    time.sleep(0 if index < 5 else 5)\n    return 'ok'\n",
        encoding="utf-8",
    )
    first = run_json(capfd, "--max-seconds", "0.3")
    (folder / "svc.py").write_text(SERVICE, encoding="utf-8")
    second = run_json(capfd)

    assert first["decision"] == "INCONCLUSIVE"
    (one, _, _), (two, _, _) = (count_ends(design_of(run), 0.9) for run in (first, second))
    facts = second["results"][0]["facts"]
    assert facts["joint_wrong_pass"] == pytest.approx(1 - (1 - one) * (1 - two), abs=1e-9)
    assert any("in at most" in note for note in second["results"][0]["notes"])


@pytest.mark.usefixtures("folder")
def test_a_record_with_joint_errors_verifies(capfd: pytest.CaptureFixture[str]) -> None:
    """They are part of the plan, and not of what the plan is known by."""
    first, second = run_json(capfd, "--seed", "1"), run_json(capfd, "--seed", "1")
    hashes = [run["verdict"]["reproducibility"]["plan_hash"] for run in (first, second)]

    assert hashes[0] == hashes[1]
    assert call("show", "--verify", second["run_id"]) == 0


@pytest.mark.usefixtures("folder")
def test_a_resumed_run_counts_the_runs_before_it_and_not_itself(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is stopped by a budget, resumed, and still the second run."""
    first = run_json(capfd)
    stopped = run_json(capfd, "--max-seconds", "0.0001")
    resumed = run_json(capfd, "--resume")

    assert stopped["decision"] == "INCONCLUSIVE"
    assert stopped["run_id"] == resumed["run_id"] != first["run_id"]
    pair = join_runs([design_of(first), design_of(resumed)], 0.9)
    facts = resumed["results"][0]["facts"]
    assert (facts["joint_wrong_pass"], facts["joint_wrong_fail"]) == pytest.approx(pair, abs=1e-9)
