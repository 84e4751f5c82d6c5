"""Rows for each run: JSON lines that `score` reads back, and test cases of repeated runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.reports.formats import match_format

SERVICE = """
import trialwise as tw

def ask(input, index):
    if index == 3:
        raise ConnectionRefusedError("busy")
    return "good \\u2028 \\ud83d" if index % 5 else "poor"

def session(input, index):
    calls = tuple(tw.ToolCall(name="search", args={"q": index % 3 and k}) for k in range(4))
    turns = tuple(tw.Turn(role="assistant", content="x" * 10) for _ in range(4))
    return tw.Trace(tool_calls=calls, turns=turns)
"""
SUITE = """
name: x
service: {python: "svc:ask"}
inputs:
  - {id: a, value: first, cluster: one, metadata: {lang: en}, expected: good}
  - {id: b, value: second, stratum: rare}
trials: 20
retries: 0
curtail: false
criteria:
  - {name: good, contains: good, at_least: 50%}
  - {name: short, length: {maximum: 10}, never_fails: true}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def rows(name: str = "r.jsonl") -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").split("\n")[:-1]]


@pytest.mark.requirement(
    "scoring around",
    "Results are written as JSON lines, with what each grader says of each trial.",
    "`-o results.jsonl`, the format `trialwise.results/1`",
)
def test_json_lines_hold_a_row_for_each_run_result_and_trial() -> None:
    """[trial][grader]: every trial has the outcome of every criterion, by its name."""
    do(SUITE, "run", "--seed", "1", "-o", "r.jsonl", "-o", "r.json")

    found, report = rows(), json.loads(Path("r.json").read_text())
    assert ["run", "result", "result"] == [one["type"] for one in found[:3]]
    run, trials = found[0], [one for one in found if one["type"] == "trial"]
    assert ("trialwise.results/1", "x", ["good", "short"]) == (
        run["schema"],
        run["contract"],
        run["criteria"],
    )
    assert run["trials"] == len(trials) == report["spending"]["trials"]
    assert all([g["name"] for g in one["graders"]] == ["good", "short"] for one in trials)
    passed = sum(one["graders"][0]["passed"] for one in trials)
    assert passed == next(one["passed"] for one in found if one["type"] == "result")
    first = next(one for one in trials if one["input_id"] == "a")
    assert ("one", '{"lang": "en"}', "good", "first") == (
        first["cluster"],
        first["metadata"],
        first["expected"],
        first["asked"],
    )
    lost = [one for one in trials if one["error_class"] == "infrastructure"]
    assert [3] == [one["trial"] for one in lost]


@pytest.mark.requirement(
    "scoring around",
    "Results that were written as JSON lines are scored again.",
    "`trialwise score results.jsonl`",
)
def test_score_reads_its_own_json_lines_back() -> None:
    """The same counts, latencies and errors, for each criterion."""
    do(SUITE, "run", "--seed", "1", "-o", "r.jsonl")
    outcomes = tw.outcomes.read_outcomes("r.jsonl")
    done = do(SUITE, "score", "r.jsonl", "--at-least", "good=50%")

    trials = [one for one in rows() if one["type"] == "trial"]
    assert ("trialwise", "x", ("good", "short")) == (
        outcomes.format,
        outcomes.name,
        outcomes.criteria,
    )
    assert len(outcomes.rows) == 2 * len(trials)
    for row, (trial, grader) in zip(
        outcomes.rows, [(one, g) for one in trials for g in one["graders"]], strict=True
    ):
        assert (row.input_id, row.criterion, row.passed, row.latency_s) == (
            trial["input_id"],
            grader["name"],
            grader["passed"],
            trial["latency_s"],
        )
        assert row.error_class == trial["error_class"]
    passed = sum(one["graders"][0]["passed"] for one in trials)
    assert f"{passed} of {len(trials)} trials passed" in done.output


def test_the_runs_of_several_contracts_keep_their_criteria_apart() -> None:
    """The contract stands before each criterion."""
    two = SUITE.replace("name: x\n", "") + "contracts: [{name: one}, {name: two}]\n"
    do(two, "run", "-o", "r.ndjson")

    assert ("one: good", "one: short", "two: good", "two: short") == tw.outcomes.read_outcomes(
        "r.ndjson"
    ).criteria


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("trialwise.results/1", "trialwise.results/2"), "results/2 is not read"),
        (('"graders"', '"granted"'), "not a row of trialwise.results/1"),
        (('"type": "trial"', '"type": "result"'), "holds no trials"),
        (('"attempts": 1', '"attempts": "many"'), "`attempts` must be a number of at least 0"),
        (('"asked": "first"', '"asked": 5'), "`asked` must be a text"),
    ],
)
def test_a_file_of_another_form_is_refused(change: tuple[str, str], said: str) -> None:
    """With the line, and without a traceback."""
    do(SUITE, "run", "-o", "r.jsonl")
    path = Path("r.jsonl")
    path.write_text(path.read_text(encoding="utf-8").replace(*change), encoding="utf-8")

    with pytest.raises(tw.outcomes.OutcomesUnreadable, match=said):
        tw.outcomes.read_outcomes(path)


def test_the_reference_names_every_field_of_a_row() -> None:
    """A reader of the file finds each word of it in the guide to reports."""
    do(SUITE, "run", "-o", "r.jsonl")
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "report.md").read_text()
    run, trial = rows()[0], next(one for one in rows() if one["type"] == "trial")

    words = {*run, *trial, *trial["graders"][0], "stratum", "cluster"}
    assert set() == {word for word in words if f"`{word}`" not in guide}
    assert "jsonl" == match_format("out/Results.NDJSON").name


SESSIONS = """
name: weather
service: {python: "svc:SERVICE"}
inputs: [{id: sun, value: a}, {id: rain, value: b}]
trials: 10
criteria: [{name: answers, CHECK, at_least: 10%}]
"""
STABILITY = """
stability:
  expect: [{target: stability.weakest_score, matcher: {schema: {minimum: 0.9}}}]
"""


@pytest.mark.requirement(
    "stability gate",
    "Every run of a repeated session has a row of its own in JUnit, beside the row of the gate.",
    "`-o results.junit.xml` of a contract with `stability`, `reliability` or `metrics`",
)
def test_junit_has_a_case_for_each_repeated_run() -> None:
    """Five runs of each input, with the sub-score of their sessions; a failed run is no failure."""
    text = (
        SESSIONS.replace("SERVICE", "session").replace("CHECK", "tool_called: search") + STABILITY
    )
    done = do(text, "run", "-o", "r.junit.xml")

    suite = ET.parse("r.junit.xml").getroot()[0]
    cases = [one for one in suite.iter("testcase") if one.get("classname") == "weather runs"]
    names = sorted(str(one.get("name")) for one in cases)
    assert sorted(f"{name} #{k}" for name in ("sun", "rain") for k in range(1, 6)) == names
    scores = {
        one.get("value") for one in suite.iter("property") if one.get("name") == "weakest_score"
    }
    assert len(scores) > 1
    assert str(len(cases) + 2) == suite.get("tests")
    assert 1 == done.exit_code


def test_a_failed_run_is_skipped_in_junit_and_decides_nothing() -> None:
    """The criterion and the gate pass, and the file is green."""
    text = SESSIONS.replace("SERVICE", "ask").replace("CHECK", "contains: good")
    limit = "{target: reliability.pass_at_k, matcher: {schema: {minimum: 1}}}"
    gate = f"reliability: {{expect: [{limit}]}}\n"
    done = do(text + "retries: 0\n" + gate, "run", "--seed", "2", "-o", "r.junit.xml")

    root = ET.parse("r.junit.xml").getroot()
    skipped = [str(one.get("message")) for one in root.iter("skipped")]
    assert 0 == done.exit_code
    assert str(len(skipped)) == root.get("skipped") != "0"
    assert all(one.endswith("One run decides nothing.") for one in skipped)
    assert ("0", "0") == (root.get("failures"), root.get("errors"))


@pytest.mark.requirement(
    "stability gate",
    "The gate has one PASS/FAIL row in every reporter.",
    "`stability` in the terminal, HTML, Markdown, JUnit, TAP, JSON and JSON lines",
)
def test_the_row_of_a_gate_is_in_every_report() -> None:
    """With its verdict, in each format."""
    text = (
        SESSIONS.replace("SERVICE", "session").replace("CHECK", "tool_called: search") + STABILITY
    )
    names = ("r.html", "r.md", "r.junit.xml", "r.tap", "r.json", "r.txt", "r.jsonl")
    done = do(text, "run", *(word for name in names for word in ("-o", name)))

    assert "stability  FAIL" in done.output
    for name in names:
        shown = Path(name).read_text(encoding="utf-8")
        assert "stability" in shown, name
        assert "FAIL" in shown, name
    gate = next(one for one in rows() if one.get("kind") == "gate")
    assert ("stability", "FAIL") == (gate["name"], gate["decision"])
