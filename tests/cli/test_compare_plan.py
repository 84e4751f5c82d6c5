"""`trialwise compare --dry-run` and `trialwise plan compare`: what a comparison will take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.suite_folders import Done, enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.cli.options import QUESTIONS
from trialwise.stats.paired import PAIRED_QUESTIONS

SERVICE = """
from pathlib import Path
from trialwise import Reply

def base(input, index):
    Path("called").touch()
    return Reply(value="yes" if index % 5 else "no", cost_usd=0.25)

good = base
"""
SUITE = """
name: support
service: {python: "svc:base"}
inputs: [a, b]
criteria:
  - {name: right, equals: "yes", at_least: 50%}
  - {name: short, length: {max: 5}, at_least: 50%}
arms:
  good: {service: {python: "svc:good"}}
  better: {service: {python: "svc:good"}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def plan(*arguments: str, suite: str = SUITE) -> dict[str, Any]:
    return dict(json.loads(do(suite, "compare", "--dry-run", "--json", *arguments).output))


def test_a_dry_run_calls_nothing_and_keeps_nothing(folder: Path) -> None:
    """It answers with exit code 0."""
    done = do(SUITE, "compare", "--dry-run", "--expect", "80%:90%", "--trials", "50")

    assert done.exit_code == 0
    assert "Plan: are the arms different?" in done.output
    assert "support, good, better: nothing was run" in done.output
    assert not (folder / "called").exists()
    assert not (folder / ".trialwise").exists()


@pytest.mark.parametrize(
    ("options", "tests", "arms"),
    [
        ((), 4, 3),
        (("--all-pairs",), 6, 3),
        (("--criterion", "right"), 2, 3),
        (("--correction", "none"), 1, 3),
        (("support", "good"), 2, 2),
    ],
)
@pytest.mark.usefixtures("folder")
def test_tests_are_criteria_times_candidates(
    options: tuple[str, ...], tests: int, arms: int
) -> None:
    """They share the level, and every arm makes a trial of each pair."""
    question = plan(*options, "--trials", "40")["question"]

    assert (question["tests"], question["arms"]) == (tests, arms)


@pytest.mark.usefixtures("folder")
def test_money_is_known_from_the_suite_or_from_earlier_runs() -> None:
    """A cost for each trial, times the trials of all arms."""
    told = do(SUITE, "compare", "--dry-run", "--trials", "40", "--set", "cost_per_trial=$0.50")
    assert "120 trials, $60.00" in told.output

    unknown = plan("--trials", "40")
    assert unknown["question"]["prices"]["trial_usd"] is None
    assert any("not known" in note for note in unknown["notes"])

    for name in ("good", "better"):
        do(SUITE, "compare", "support", name, "--trials", "20", "--quiet")
    assert plan("--trials", "40")["question"]["prices"]["trial_usd"] == pytest.approx(0.25)


@pytest.mark.usefixtures("folder")
def test_the_section_of_the_suite_is_planned() -> None:
    """With its question, its expected rates and its size."""
    suite = SUITE + "compare: {question: better, expect: [70%, 90%], trials: 30, confidence: 90%}\n"
    question = plan(suite=suite)["question"]

    assert (question["question"], question["rates"]) == ("better", [0.7, 0.9])
    assert (question["pairs"], question["confidence"]) == (30, 0.9)


@pytest.mark.usefixtures("folder")
def test_stored_arms_have_no_plan() -> None:
    """They cost nothing."""
    do(SUITE, "compare", "support", "good", "--trials", "20", "--quiet")
    with pytest.raises(click.UsageError, match="leave out --dry-run"):
        do(SUITE, "compare", "support", "good", "--stored", "--dry-run")


def test_the_options_know_every_question() -> None:
    """They are written out there, so that help loads no statistics."""
    assert QUESTIONS == PAIRED_QUESTIONS


# --- `plan compare` -------------------------------------------------------------------------------


def plan_form(*arguments: str) -> Done:
    return do(SUITE, "plan", "compare", *arguments)


@pytest.mark.usefixtures("folder")
def test_the_form_states_pairs_chances_money_and_time() -> None:
    """For the usual rule, which ships with the package."""
    done = plan_form("--price", "0.02", "--seconds", "3s", "--arms", "3", "--trials", "50")

    assert "50 pairs (150 trials, $3.00, 7.5 min) end with PASS in" in done.output
    for word in ("equal (0)", "as expected (+10)", "the other way (−10)", "INCONCLUSIVE"):
        assert word in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--expect", "80%:80%"), "--expect must differ: equal arms are never told apart"),
        (("--expect", "80%"), "--expect must be two rates such as 80%:90%"),
        (("--question", "equivalent"), "--margin must be given"),
        (("--question", "different", "--margin", "2%"), "--margin must be left out"),
        (("--trials", "5", "--max-trials", "9"), "--max-trials must be left out"),
        (("--rate", "90%"), "give --rate and --drop together"),
        (("--rate", "90%", "--drop", "5%", "--tests", "3"), "it belongs to --expect"),
        (("--discordance", "1%"), "--discordance must lie between 0.1"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes_are_named_by_their_option(arguments: tuple[str, ...], message: str) -> None:
    """In one sentence."""
    with pytest.raises(click.ClickException) as caught:
        plan_form(*arguments)
    assert message in caught.value.format_message()


@pytest.mark.usefixtures("folder")
def test_the_plan_is_written_as_json_and_html() -> None:
    """As the other forms are."""
    assert plan_form("--trials", "50", "-o", "p.json").exit_code == 0
    assert plan_form("--trials", "50", "--html", "p.html").exit_code == 0

    found = json.loads(Path("p.json").read_text())
    assert (found["form"], found["methods"][0]["most_pairs"]) == ("pairs", 50)
    assert "are the arms different?" in Path("p.html").read_text()
