"""`trialwise compare` with arms that run: any number of them, resumed, recorded and replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.suite_folders import Done, enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.errors import RunNotFound

SERVICE = """
from pathlib import Path

def _answer(name, passes):
    with Path("calls.txt").open("a") as calls:
        calls.write(name + "\\n")
    return "yes" if passes else "no"

def base(input, index):
    return _answer("base", index % 2)

def good(input):
    return _answer("good", True)

def like(input, index):
    return _answer("like", index % 2)
"""
SUITE = """
name: support
service: {python: "svc:base"}
inputs: [a, b]
criteria: [{name: right, equals: "yes", at_least: 50%}]
arms:
  good: {service: {python: "svc:good"}}
  like: {service: {python: "svc:like"}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def compare(*arguments: str, suite: str = SUITE) -> Done:
    return do(suite, "compare", *arguments, "--quiet")


def found(*arguments: str, suite: str = SUITE) -> dict[str, Any]:
    return dict(json.loads(compare(*arguments, "--json", suite=suite).output))


def calls() -> list[str]:
    return Path("calls.txt").read_text().split()


def test_a_contract_alone_is_compared_with_all_its_arms() -> None:
    """One is better and one is not told apart, so that the whole is undecided."""
    verdict = found("support", "--trials", "40", "--seed", "1")

    assert [one["label"] for one in verdict["arms"]] == ["support", "good", "like"]
    contrasts = {one["arm"]: one["contrast"] for one in verdict["findings"]}
    assert contrasts == {"good": "better", "like": "not told apart"}
    assert verdict["decision"] == "INCONCLUSIVE"


def test_all_pairs_compares_the_candidates_as_well() -> None:
    """Three arms make three tests."""
    verdict = found("--all-pairs", "--trials", "40", "--seed", "1")

    couples = [(one["against"], one["arm"]) for one in verdict["findings"]]
    assert couples == [("support", "good"), ("support", "like"), ("good", "like")]


def test_arms_stop_as_soon_as_the_pairs_decide() -> None:
    """Without --trials; --max-trials is the most."""
    verdict = found("support", "good", "--seed", "1")
    assert verdict["decision"] == "PASS"
    assert len(calls()) < 80

    Path("calls.txt").unlink()
    short = found("support", "good", "--seed", "1", "--max-trials", "8")
    assert short["decision"] == "INCONCLUSIVE"
    assert len(calls()) <= 16


def test_expected_rates_plan_another_rule() -> None:
    """A large difference needs few pairs: arms that are alike are given up sooner."""
    compare("support", "like", "--seed", "1", "--expect", "20%:95%")
    few = len(calls())
    Path("calls.txt").unlink()
    compare("support", "like", "--seed", "1")

    assert few < len(calls()) / 4


def test_a_comparison_is_resumed_without_arguments() -> None:
    """With its arms, question and size; a larger budget may be given. No pair is run twice."""
    started = ("support", "good", "--trials", "30", "--seed", "1", "--question", "better")
    whole = found(*started)
    expected = len(calls())
    Path("calls.txt").unlink()
    cut = found(*started, "--max-usd", "$0.11", "--set", "cost_per_trial=$0.01")
    assert cut["decision"] == "INCONCLUSIVE"
    assert len(calls()) < expected

    resumed = found("--resume", "--max-usd", "$5")
    assert len(calls()) == expected
    assert resumed["findings"][0]["pairs"] == whole["findings"][0]["pairs"]
    assert resumed["question"] == whole["question"]
    with pytest.raises(RunNotFound, match="no comparison is unfinished"):
        compare("--resume")


def test_a_comparison_is_resumed_by_name_and_refused_with_another_question() -> None:
    """What it asked is kept with it."""
    started = ("support", "good", "--trials", "30", "--seed", "1")
    compare(*started, "--max-usd", "$0.11", "--set", "cost_per_trial=$0.01")
    (name,) = (one.name for one in Path(".trialwise/comparisons").iterdir())

    with pytest.raises(RunNotFound, match="another question"):
        compare(*started, "--question", "better", "--resume", name)
    assert found("--resume", name, "--max-usd", "$5")["decision"] == "PASS"


def test_replies_are_recorded_and_replayed() -> None:
    """The services are not needed for the second comparison."""
    arguments = ("support", "good", "--trials", "30", "--seed", "1")
    first = found(*arguments, "--record", "replies.jsonl")
    Path("svc.py").write_text("raise SystemExit('imported')")
    again = found(*arguments, "--replay", "replies.jsonl")

    assert again["findings"][0]["pairs"] == first["findings"][0]["pairs"]
    with pytest.raises(click.UsageError, match="exclude each other"):
        compare(*arguments, "--record", "a", "--replay", "b")


def test_what_runs_is_announced() -> None:
    """Before the first call, on standard error."""
    done = do(SUITE, "compare", "support", "good", "--trials", "30", "--seed", "1")

    assert "support, good: 30 pairs (60 trials) end with PASS in" in done.output


def test_stored_runs_of_a_comparison_come_to_what_it_came_to() -> None:
    """By the rules that it was made by."""
    live = found("support", "good", "--seed", "1")
    stored = found("support", "good", "--stored")

    assert stored["findings"][0]["p_value"] == live["findings"][0]["p_value"]
    assert stored["decision"] == live["decision"] == "PASS"


def test_reports_of_a_stored_comparison_are_written_by_its_name() -> None:
    """In every format of a comparison; without a file it is Markdown on standard output."""
    compare("support", "good", "--trials", "30", "--seed", "1")
    (name,) = (one.name for one in Path(".trialwise/comparisons").iterdir())
    answer = "good is better: 50.0 points, at least "
    do(SUITE, "report", name, "-o", "c.html", "-o", "c.xml")
    printed = do(SUITE, "report", name)

    assert answer in Path("c.html").read_text(encoding="utf-8")
    assert "<testsuite" in Path("c.xml").read_text(encoding="utf-8")
    assert answer in printed.output
    assert "| criterion" in printed.output
