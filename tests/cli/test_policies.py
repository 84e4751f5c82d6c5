"""Policies of a suite: what an undecided run does, and what refuses a smoke run; old baselines."""

from __future__ import annotations

import json
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.suite import SuiteError

SERVICE = """
import os

def ask(input, index):
    os.environ["STAGE"] = os.environ.get("NEXT", os.environ.get("STAGE", ""))
    return "good" if index % 10 else "poor"
"""
OPEN = """
name: x
service: {python: "svc:ask"}
inputs: [a, b]
criteria: [{name: good, contains: good, at_least: 90%, max_trials: 60}]
"""
SAME = """
name: x
service: {python: "svc:ask"}
inputs: [a, b]
trials: 100
criteria: [{name: good, contains: good, no_worse_than: baseline}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


@pytest.mark.requirement(
    "statistical-ci exit codes",
    "Whether an undecided run blocks as undecided or as failed is a policy; as a pass it never is.",
    "`inconclusive: undecided | fail` in a suite, `--fail-on-inconclusive`; 0 follows only a PASS",
)
@pytest.mark.parametrize(("policy", "code"), [("undecided", 3), ("fail", 1)])
def test_the_exit_code_of_an_undecided_run_is_a_policy(policy: str, code: int) -> None:
    """The verdict stays INCONCLUSIVE, and the line says what the policy does."""
    done = do(f"{OPEN}inconclusive: {policy}\n", "run", "-o", "r.junit.xml", "-o", "r.json")
    report = json.loads(Path("r.json").read_text())
    case = ET.parse("r.junit.xml").getroot()[0].find("testcase")

    assert code == done.exit_code == report["exit_code"]
    assert "INCONCLUSIVE" == report["decision"] == report["runs"][0]["decision"]
    assert "INCONCLUSIVE  the criterion is undecided" in done.output
    assert ("`inconclusive: fail`" in done.output) is (policy == "fail")
    assert case is not None
    assert case.find("error") is not None
    asked = ("--fail-on-inconclusive",) if policy == "fail" else ()
    assert code == do(OPEN, "run", *asked).exit_code


def test_no_policy_makes_a_pass_of_missing_evidence() -> None:
    """The exit code 0 follows a PASS and nothing else."""
    with pytest.raises(SuiteError, match="inconclusive"):
        do(f"{OPEN}inconclusive: pass\n", "run")


def test_one_undecided_contract_of_several_follows_the_strictest_policy() -> None:
    """One blocks as a failure, the other as undecided."""
    text = OPEN.partition("criteria:")[0].replace("name: x\n", "") + (
        "criteria: [{name: good, contains: good, at_least: 90%, max_trials: 60}]\n"
        "contracts:\n  - {name: a, inconclusive: fail}\n  - {name: b}\n"
    )

    assert 1 == do(text, "run").exit_code


@pytest.mark.requirement(
    "companion 8.4.5",
    "Hard invalidators, which only warn in a SMOKE run, are promoted to errors by policy.",
    "`smoke_refuses: nothing | hard | major`",
)
def test_a_policy_refuses_a_smoke_run_too() -> None:
    """Another model is a hard invalidator, another region a major caveat."""
    smoke = f"{SAME}intent: smoke\n"
    do(f"{SAME}factors: {{model: one, region: eu}}\n", "measure", "--trials", "200")
    other = f"{smoke}factors: {{model: two, region: eu}}\n"
    moved = f"{smoke}factors: {{model: one, region: us}}\n"

    assert do(other, "run").exit_code in {0, 1}
    with pytest.raises(tw.DesignRefused, match="smoke_refuses: hard"):
        do(f"{other}smoke_refuses: hard\n", "run")
    assert do(f"{moved}smoke_refuses: hard\n", "run").exit_code in {0, 1}
    with pytest.raises(tw.DesignRefused, match="smoke_refuses: major"):
        do(f"{moved}smoke_refuses: major\n", "run")
    admitted = f'{moved}smoke_refuses: major\noverrides: ["factor:region"]\n'
    assert do(admitted, "run").exit_code in {0, 1}


@pytest.mark.requirement(
    "companion 8.4.3",
    "The provenance of a verdict says how many days its baseline is still valid.",
    "`-o report.txt`, from `trialwise measure --valid-days`",
)
def test_a_verdict_says_how_many_days_its_baseline_has_left() -> None:
    """29 whole days and a part of the 30th; and how long ago it expired."""
    do(SAME, "measure", "--trials", "200", "--valid-days", "30")
    do(SAME, "run", "-o", "r.txt")
    assert "(29 days remaining)" in " ".join(Path("r.txt").read_text().split())
    do(SAME, "measure", "--trials", "200", "--valid-days", "0.000001", "--grace-days", "1")
    time.sleep(0.1)
    do(SAME, "run", "-o", "r.txt")
    assert "(expired 0 days ago)" in " ".join(Path("r.txt").read_text().split())


@pytest.mark.requirement(
    "companion 8.4.4",
    "Several suitable baselines give a warning and change no verdict.",
    "`--baseline NAME`: a superseded one is named in the report",
)
def test_a_superseded_baseline_that_is_named_gives_a_warning() -> None:
    """The first was refreshed; without a name the second is taken, without a warning."""
    do(SAME, "measure", "--trials", "200", "--identifier", "first")
    do(SAME, "measure", "--trials", "200", "--identifier", "second")
    old, new = do(SAME, "run", "--baseline", "first"), do(SAME, "run")

    said = " ".join(old.output.split())
    assert "Baseline first (epoch 1" in said
    assert "is superseded by second (epoch 2" in said
    assert "is superseded by" not in new.output
    assert old.exit_code == new.exit_code


@pytest.mark.requirement(
    "companion 8.4.1",
    "Covariates are resolved when trials run, and a change qualifies the verdict.",
    "`covariates`: looked at again when the run ends; the report names what changed",
)
def test_a_covariate_that_changes_during_a_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service moves from one stage to the next while it is tried."""
    monkeypatch.setenv("STAGE", "blue")
    text = f"{OPEN}covariates: [{{name: stage, environment: STAGE}}]\n"
    assert "when it ended" not in do(text, "run").output
    monkeypatch.setenv("NEXT", "green")
    done = do(text, "run", "-o", "r.json")

    (run,) = json.loads(Path("r.json").read_text())["runs"]
    assert {"stage": "green"} == run["verdict"]["covariates_at_end"]
    said = "Covariate stage: blue when the run began, green when it ended"
    assert said in " ".join(done.output.split())
    assert 0 == do(text, "show", "--verify").exit_code
