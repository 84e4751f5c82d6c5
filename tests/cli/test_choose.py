"""`trialwise compare --question best` and `describe`: the best arm, and a description of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.errors import InvalidArgument, RunNotFound

SERVICE = """
from random import Random

def reply(rate, seed, name):
    return "yes" if Random(f"{name} {seed}").random() < rate else "no"

def small(input, seed):
    return reply(0.3, seed, "small")

def medium(input, seed):
    return reply(0.6, seed, "medium")

def large(input, seed):
    return reply(0.97, seed, "large")

def always(input):
    return "yes"
"""
SUITE = """
name: large
service: {python: "svc:large"}
inputs: [a, b, c]
criteria: [{name: right, equals: "yes", at_least: 50%}]
arms:
  medium: {service: {python: "svc:medium"}}
  small: {service: {python: "svc:small"}}
"""
ALIKE = SUITE.replace("svc:large", "svc:always").replace("svc:medium", "svc:always")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def describe(*arguments: str) -> Any:
    return do(SUITE, "compare", *arguments, "--question", "describe", "--quiet")


def choose(*arguments: str, suite: str = SUITE) -> Any:
    return do(suite, "compare", "--question", "best", *arguments, "--quiet")


@pytest.mark.usefixtures("folder")
def test_the_best_arm_is_chosen_and_worse_arms_are_asked_less() -> None:
    done = choose("--seed", "1", "--json")
    answer = json.loads(done.output)

    assert done.exit_code == 0
    assert (answer["outcome"], answer["chosen"]) == ("chosen", "large")
    trials = {one["label"]: one["tally"]["trials"] for one in answer["arms"]}
    assert trials["small"] < trials["large"]
    assert "large" in answer["unbeaten"]
    assert answer["trials"] == sum(trials.values())


@pytest.mark.usefixtures("folder")
def test_the_answer_is_a_sentence_with_its_condition() -> None:
    done = choose("--seed", "1", "--smallest-difference", "20%")

    assert done.exit_code == 0
    text = " ".join(done.output.split())
    assert "DECIDED large is the best arm or within 20 points of it (95 %)." in text
    assert "any other answer comes in at most 5 % of runs" in text
    assert "PASS" not in done.output


@pytest.mark.usefixtures("folder")
def test_arms_that_never_differ_are_tied_which_is_an_answer() -> None:
    done = choose("large", "medium", "--seed", "1", suite=ALIKE)

    assert done.exit_code == 0
    text = " ".join(done.output.split())
    assert "TIED Tied: large, medium. No arm is better than all others by 10 points" in text
    assert "DECIDED" not in text


@pytest.mark.usefixtures("folder")
def test_too_few_rounds_decide_nothing_and_say_who_remains() -> None:
    done = choose("--seed", "1", "--max-trials", "2")

    assert done.exit_code == 3
    assert "Not decided: large, medium, small remain." in done.output


@pytest.mark.usefixtures("folder")
def test_breaking_ties_takes_fewer_trials() -> None:
    usual, broken = (
        json.loads(choose("--seed", "1", "--json", *extra).output)
        for extra in ((), ("--break-ties",))
    )
    assert broken["chosen"] == "large"
    assert broken["trials"] <= usual["trials"]


def test_every_format_is_written_and_each_arm_is_an_ordinary_run(folder: Path) -> None:
    names = ["choice.html", "choice.md", "choice.txt", "choice.json"]
    done = choose("--seed", "1", *(part for name in names for part in ("-o", name)))

    assert done.exit_code == 0
    for name in names:
        assert "large" in (folder / name).read_text(encoding="utf-8")
    assert json.loads((folder / "choice.json").read_text())["chosen"] == "large"
    runs = do(SUITE, "runs", "--json")
    assert len(json.loads(runs.output)["runs"]) == 3
    assert do(SUITE, "show", "large/medium", "--verify").exit_code == 0


@pytest.mark.usefixtures("folder")
def test_a_dry_run_says_what_to_expect_and_runs_nothing() -> None:
    done = choose("--dry-run", "--expect", "97%,60%,30%", "--smallest-difference", "30%")

    assert done.exit_code == 0
    assert "the rates you expect" in done.output
    assert "simulated choices" in done.output
    assert not Path(".trialwise").exists()


@pytest.mark.usefixtures("folder")
def test_a_plan_needs_no_suite() -> None:
    asked = ["--question", "best", "--arms", "2", "--smallest-difference", "30%", "--json"]
    done = do("", "plan", "compare", *asked)
    plan = json.loads(done.output)

    assert done.exit_code == 0
    assert [one[0] for one in plan["forecasts"]] == [
        "one arm 30 points better",
        "one arm 60 points better",
        "all equal",
    ]


@pytest.mark.usefixtures("folder")
def test_an_unknown_criterion_and_stored_runs_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="criterion"):
        choose("--criterion", "nothing")

    describe("--trials", "5", "--seed", "1")
    runs = [str(path) for path in Path(".trialwise/runs").iterdir()]
    with pytest.raises(click.UsageError, match="a choice runs its arms"):
        choose(*runs)


@pytest.mark.usefixtures("folder")
def test_exploring_describes_and_never_decides() -> None:
    done = do(
        SUITE, "compare", "--question", "describe", "--trials", "40", "--seed", "1", "--quiet"
    )

    assert done.exit_code == 0
    rows = [line.split()[0] for line in done.output.splitlines() if "/40" in line]
    assert rows == ["large", "medium", "small"]
    text = " ".join(done.output.split())
    assert "If all arms were equally good" in text
    assert not any(word in done.output for word in ("PASS", "FAIL", "INCONCLUSIVE", "CHOSEN"))


@pytest.mark.usefixtures("folder")
def test_stored_runs_are_explored_alike() -> None:
    live = do(
        SUITE,
        "compare",
        "--question",
        "describe",
        "--trials",
        "30",
        "--seed",
        "1",
        "--quiet",
        "--json",
    )
    stored = describe("large", "--stored", "--json")

    def rates(done: Any) -> dict[str, Any]:
        found = json.loads(done.output)
        return {one["contract"]: one["tally"] for one in found["arms"]}

    assert stored.exit_code == 0
    assert rates(stored) == rates(live)
    assert len(json.loads(live.output)["unbeaten"]) == len(json.loads(stored.output)["unbeaten"])


def test_a_choice_is_shown_verified_and_reported_again(folder: Path) -> None:
    """By its name; without one, `show` shows what was made last."""
    kept = folder / ".trialwise" / "comparisons"
    known: set[str] = set()
    for command in ("choose", "explore"):
        done = do(SUITE, command, "--seed", "1", "--quiet")
        assert f"trialwise {command} is now `trialwise compare --question" in done.output
        (name,) = {one.name for one in kept.iterdir()} - known
        known.add(name)
        shown = do(SUITE, "show")
        verified = do(SUITE, "show", name, "--verify")

        assert shown.exit_code == verified.exit_code == 0
        assert "3 arms" in shown.output
        assert f"VERIFIED  {name}" in verified.output
        assert do(SUITE, "report", name, "-o", f"{command}.html").exit_code == 0
        assert "large" in (folder / f"{command}.html").read_text(encoding="utf-8")
        assert "| arm" in do(SUITE, "report", name).output


def test_a_choice_is_no_comparison_to_resume(folder: Path) -> None:
    """An unfinished choice is named as what it is, and its arms can be compared as stored runs."""
    choose("--seed", "1", "--max-usd", "$0.06", "--set", "cost_per_trial=$0.01")
    (name,) = (one.name for one in (folder / ".trialwise" / "comparisons").iterdir())

    with pytest.raises(RunNotFound, match="no comparison is unfinished"):
        do(SUITE, "compare", "--resume")
    with pytest.raises(RunNotFound, match="is not a comparison but a choice"):
        do(SUITE, "compare", "large", "medium", "small", "--resume", name, "--quiet")
    assert do(SUITE, "compare", "large", "medium", "--stored", "--json").exit_code == 3
    resumed = choose("--resume", "--max-usd", "$50", "--json")
    assert json.loads(resumed.output)["outcome"] == "chosen"
