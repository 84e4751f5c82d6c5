"""Where the arms of `trialwise compare` come from, and what each question's exit code is."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import click
import pytest
from tests.cli.suite_folders import Done, enter_folder
from tests.cli.suite_folders import type_command as do

from trialwise.cli.arm_choice import complete_arms
from trialwise.cli.compare_command import command
from trialwise.errors import InvalidArgument
from trialwise.runtime.selecting import NothingSelected
from trialwise.suite import SuiteError

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

def bad(input, index):
    return _answer("bad", not index % 8)

def like(input, index):
    return _answer("like", index % 2)

def sized(input, index, model):
    return _answer(model, model == "large" or index % 2)
"""
SUITE = """
inputs: [a, b]
criteria: [{name: right, equals: "yes", at_least: 50%}]
contracts:
  - name: support
    service: {python: "svc:base"}
    arms:
      good: {service: {python: "svc:good"}}
      bad: {service: {python: "svc:bad"}}
      like: {service: {python: "svc:like"}}
  - name: other
    service: {python: "svc:base"}
    arms: {like: {service: {python: "svc:like"}}}
  - {name: alone, service: {python: "svc:good"}}
  - {name: agent, service: {python: "svc:sized"}, models: [small, large]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def compare(*arguments: str, suite: str = SUITE) -> Done:
    return do(suite, "compare", *arguments, "--quiet")


def found(*arguments: str, suite: str = SUITE) -> dict[str, Any]:
    return dict(json.loads(compare(*arguments, "--json", suite=suite).output))


def labels(verdict: dict[str, Any]) -> list[str]:
    return [one["label"] for one in verdict["arms"]]


def called() -> set[str]:
    return set(Path("calls.txt").read_text().split()) if Path("calls.txt").exists() else set()


# --- Arms of a suite ------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("support", "good"), ("support", "support/good")])
@pytest.mark.usefixtures("folder")
def test_an_arm_is_known_by_its_full_name_and_by_its_own(names: tuple[str, ...]) -> None:
    """The contract is the control, and each run is kept under the arm's full name."""
    verdict = found(*names, "--trials", "40")

    assert verdict["decision"] == "PASS"
    assert labels(verdict) == ["support", "good"]
    assert [one["contract"] for one in verdict["arms"]] == ["support", "support/good"]


@pytest.mark.usefixtures("folder")
def test_an_arm_may_be_the_control() -> None:
    """The order of the names decides."""
    verdict = found("good", "support", "--trials", "40")

    assert (verdict["decision"], labels(verdict)) == ("FAIL", ["good", "support"])


@pytest.mark.usefixtures("folder")
def test_entries_of_a_matrix_are_arms() -> None:
    """One by one, or all of them by the name of the contract."""
    one_by_one = found("agent [small]", "agent [large]", "--trials", "40")
    together = found("agent", "--trials", "40")

    assert labels(one_by_one) == labels(together) == ["agent [small]", "agent [large]"]
    assert one_by_one["decision"] == together["decision"] == "PASS"


@pytest.mark.usefixtures("folder")
def test_run_runs_no_arms_and_check_checks_them() -> None:
    """A comparison alone calls the services of arms."""
    do(SUITE, "run", "--quiet", "--trials", "20")
    assert called() == {"base", "good", "small", "large"}  # `alone` answers as `good`

    assert "all 4 arms can be compared" in do(SUITE, "check").output
    broken = SUITE.replace("svc:bad", "svc:bda")
    do(broken, "run", "alone", "--quiet", "--trials", "20")
    with pytest.raises(SuiteError, match=r"trialwise.yaml:9:\d+: .*did you mean `bad`"):
        do(broken, "check")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("support", "goood"), "did you mean 'good'"),
        (("suport",), "did you mean 'support'"),
        (("support", "like"), "write support/like or other/like"),
        (("support", "support"), "named twice; --a-a"),
        (("agent", "agent [large]"), "named twice"),
        (("alone",), "'alone' has no arms.*there are: support, support/good"),
        ((), "several: support, other with arms.*compare: {control: …}"),
        (("support", "good", "--guardrail", "rihgt=2%"), "did you mean 'right'"),
        (("support", "good", "--trials", "5", "--max-trials", "9"), "leave out --max-trials"),
        (("support", "good", "--criterion", "rihgt"), "did you mean 'right'"),
    ],
)
def test_mistakes_are_named_before_the_first_call(
    folder: Path, names: tuple[str, ...], message: str
) -> None:
    """With the nearest name."""
    with pytest.raises((click.UsageError, NothingSelected), match=message):
        compare(*names)
    assert not called()
    assert not (folder / ".trialwise" / "runs").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--expect", "80%"), "two rates such as 80%:90%"),
        (("--expect", "80%:190%"), "two rates such as 80%:90%"),
        (("--guardrail", "right"), "a criterion and a margin"),
        (("--guardrail", "right=0"), "a criterion and a margin"),
        (("--margin", "much"), "a rate such as 90%"),
        (("--question", "worse"), "not one of"),
        (("-o", "nowhere/c.html"), "there is no folder nowhere"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_values_that_cannot_be_read_are_refused(option: tuple[str, str], message: str) -> None:
    """In one sentence."""
    with pytest.raises(click.ClickException) as caught:
        compare("support", "good", *option)
    assert message in f"{caught.value.format_message()}"
    assert not called()


@pytest.mark.parametrize(
    "question", [("--question", "not-worse"), ("--question", "different", "--margin", "2%")]
)
@pytest.mark.usefixtures("folder")
def test_a_margin_belongs_to_its_question(question: tuple[str, ...]) -> None:
    """Where it is needed, and where it means nothing."""
    with pytest.raises(InvalidArgument, match="margin"):
        compare("support", "good", *question)
    assert not called()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("sup", ["support", "support/good", "support/bad", "support/like"]),
        ("agent", ["agent [small]", "agent [large]"]),
        ("nothing", []),
    ],
)
def test_a_shell_completes_contracts_arms_and_entries(
    folder: Path, word: str, expected: list[str]
) -> None:
    """Without calling or importing a service; a suite with a mistake completes nothing."""
    (folder / "trialwise.yaml").write_text(SUITE)
    (folder / "svc.py").write_text("raise SystemExit('imported')")
    parameter, context = command.params[0], click.Context(command)
    assert complete_arms(context, parameter, word) == expected

    (folder / "trialwise.yaml").write_text("contracts: 5")
    assert complete_arms(context, parameter, word) == []


# --- The section `compare` ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "arms", "decision"),
    [
        ("{control: support, candidates: good, trials: 40}", ["support", "good"], "PASS"),
        ("{control: other, trials: 40}", ["other", "like"], "INCONCLUSIVE"),
        (
            "{control: other, trials: 40, question: not-worse, margin: 20%}",
            ["other", "like"],
            "PASS",
        ),
        ("{control: agent, trials: 40}", ["agent [small]", "agent [large]"], "PASS"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_suite_says_what_is_compared(section: str, arms: list[str], decision: str) -> None:
    """So that CI needs no arguments."""
    verdict = found(suite=f"{SUITE}compare: {section}\n")

    assert (labels(verdict), verdict["decision"]) == (arms, decision)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{control: suport}", "did you mean 'support'"),
        ("{control: support, candidates: [goood]}", "did you mean 'good'"),
        ("{control: support, candidates: good, guardrails: {rihgt: 2%}}", "did you mean 'right'"),
        ("{control: alone}", "'alone' has no arms"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_check_finds_names_of_the_section_that_are_not_there(section: str, message: str) -> None:
    """Before a comparison does."""
    with pytest.raises(click.UsageError, match=message):
        do(f"{SUITE}compare: {section}\n", "check")


@pytest.mark.usefixtures("folder")
def test_the_only_contract_with_arms_is_the_control() -> None:
    """Nothing else can be meant."""
    alone = SUITE.replace('arms: {like: {service: {python: "svc:like"}}}', "")
    alone = alone.replace('      bad: {service: {python: "svc:bad"}}\n', "")
    alone = alone.replace('      like: {service: {python: "svc:like"}}\n', "")

    assert labels(found("--trials", "40", suite=alone)) == ["support", "good"]


@pytest.mark.usefixtures("folder")
def test_the_command_line_prevails_over_the_section() -> None:
    """Option by option; another question does not keep the section's margin."""
    suite = f"{SUITE}compare: {{question: not-worse, margin: 20%, trials: 40, confidence: 90%}}\n"
    same = found("support", "support/like", suite=suite)["question"]
    other = found("support", "support/like", "--question", "different", suite=suite)["question"]
    wider = found("support", "support/like", "--margin", "30%", suite=suite)["question"]

    assert (same["question"], same["margin"], same["confidence"]) == ("not-worse", 0.2, 0.9)
    assert (other["question"], other["margin"]) == ("different", None)
    assert (wider["question"], wider["margin"]) == ("not-worse", 0.3)


# --- Exit codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arm", "question", "code"),
    [
        ("good", ("different",), 0),
        ("bad", ("different",), 1),
        ("support/like", ("different",), 3),
        ("good", ("better",), 0),
        ("bad", ("better",), 1),
        ("good", ("better", "--margin", "10%"), 0),
        ("good", ("not-worse", "--margin", "5%"), 0),
        ("bad", ("not-worse", "--margin", "5%"), 1),
        ("support/like", ("not-worse", "--margin", "20%"), 0),
        ("support/like", ("equivalent", "--margin", "20%"), 0),
        ("good", ("equivalent", "--margin", "10%"), 1),
    ],
)
@pytest.mark.usefixtures("folder")
def test_the_exit_code_answers_the_question_asked(
    arm: str, question: tuple[str, ...], code: int
) -> None:
    """The arm passes always (good), in 1 of 8 (bad) or like the control, which passes half."""
    assert compare("support", arm, "--trials", "80", "--question", *question).exit_code == code


# --- What was run before --------------------------------------------------------------------------


def write_results(name: str, passes: int, *, inputs: int = 60) -> None:
    rows = [
        {"input": f"q{place}", "criterion": "right", "passed": place < passes}
        for place in range(inputs)
    ]
    random.Random(1).shuffle(rows)
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.usefixtures("folder")
def test_files_with_results_are_arms() -> None:
    """Everything that `score` reads; without a suite, and in any number."""
    write_results("old.jsonl", 30)
    write_results("new.jsonl", 50)
    write_results("worse.jsonl", 10)
    Path("trialwise.yaml").unlink(missing_ok=True)
    verdict = found("old.jsonl", "new.jsonl", "worse.jsonl", suite="not: [a suite")

    assert labels(verdict) == ["old.jsonl", "new.jsonl", "worse.jsonl"]
    assert [one["contrast"] for one in verdict["findings"]] == ["better", "worse"]
    pairs = [one["pairs"] for one in verdict["findings"]]
    assert [(one["only_a"], one["only_b"]) for one in pairs] == [(0, 20), (20, 0)]


def test_stored_runs_are_arms_by_name_folder_contract_and_arm(folder: Path) -> None:
    """Nothing is run, and a broken service does not matter."""
    compare("support", "good", "--trials", "40")
    runs = sorted((folder / ".trialwise" / "runs").iterdir())
    names = [one.name for one in runs if one.is_dir() and (one / "plan.json").exists()]
    control = next(one for one in names if "good" not in one)
    candidate = next(one for one in names if "good" in one)
    (folder / "svc.py").write_text("raise SystemExit('imported')")
    folders = [str(folder / ".trialwise" / "runs" / one) for one in (control, candidate)]

    ways = [
        found("support", "good", "--stored"),
        found("support", "--stored"),
        found(control, candidate, "--stored"),
        found(*folders),
    ]
    assert [labels(one) for one in ways] == [["support", "support/good"]] * 4
    assert [one["findings"][0]["pairs"] for one in ways] == [ways[0]["findings"][0]["pairs"]] * 4


@pytest.mark.usefixtures("folder")
def test_arms_that_run_are_not_mixed_with_those_that_ran() -> None:
    """What changed in between would count as a difference."""
    write_results("old.jsonl", 30)

    with pytest.raises(click.UsageError, match="'support' would run and 'old"):
        compare("support", "old.jsonl")
    assert not called()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("old.jsonl",), "two stored runs or files"),
        (("old.jsonl", "nwe.jsonl"), "nwe.jsonl: there is no such file"),
        (("support", "nwe.jsonl"), "nwe.jsonl: there is no such file"),
        (("old.jsonl", "old.jsonl"), "named twice"),
        (("old.jsonl", "new.jsonl", "--trials", "5"), "stored runs have their size"),
        (("old.jsonl", "new.jsonl", "--guardrail", "rigth=5%"), "did you mean 'right'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes_with_stored_arms_are_named(arguments: tuple[str, ...], message: str) -> None:
    """As with arms that run."""
    write_results("old.jsonl", 30)
    write_results("new.jsonl", 50)

    with pytest.raises(click.UsageError, match=message):
        compare(*arguments)


@pytest.mark.usefixtures("folder")
def test_the_answer_is_printed_and_written_as_markdown() -> None:
    """For a pull request."""
    write_results("old.jsonl", 30)
    write_results("new.jsonl", 50)
    done = compare("old.jsonl", "new.jsonl", "--markdown", "-o", "c.md")

    assert done.exit_code == 0
    assert "new.jsonl is better: 33.3 points" in done.output
    assert Path("c.md").read_text().strip() in done.output


@pytest.mark.usefixtures("folder")
def test_a_report_that_cannot_be_written_is_no_success() -> None:
    """The verdict is printed, and the exit code says that something is missing."""
    write_results("old.jsonl", 30)
    write_results("new.jsonl", 50)
    Path("c.md").mkdir()
    Path("c.html").symlink_to("/dev/full")
    done = compare("old.jsonl", "new.jsonl", "-o", "c.html")

    assert "new.jsonl is better" in done.output
    assert done.exit_code == 4


def test_a_service_that_ends_the_process_does_not_pass(folder: Path) -> None:
    """`os._exit(0)` in an arm is no PASS."""
    import subprocess
    import sys

    (folder / "svc.py").write_text("import os\ndef base(input):\n    os._exit(0)\ngood = base\n")
    (folder / "trialwise.yaml").write_text(
        'service: {python: "svc:base"}\ninputs: [a]\nname: support\n'
        "criteria: [{name: right, contains: x, at_least: 50%}]\n"
        'arms: {good: {service: {python: "svc:good"}}}\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "trialwise", "compare", "support", "good", "--trials", "20"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 4
