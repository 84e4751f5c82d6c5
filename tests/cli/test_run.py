"""`trialwise run`, `check` and `measure` as a shell sees them: output, files and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

AGENT = """
import os, random, sys, time

def answer(question, seed):
    return "good" if random.Random(seed).random() < float(os.environ.get("RATE", "1")) else "bad"

def leave(question):
    sys.exit(0)

def slow(question, trial):
    with open("calls", "a") as log:
        log.write(f"{trial.index}\\n")
    time.sleep(0.02 if "SLOW" in os.environ else 0)
    return "good"

def paid(question):
    import trialwise
    return trialwise.Reply(value="good", cost_usd=0.5)
"""
SUITE = """
name: agent
service: {python: "agent:answer"}
inputs: [one, two]
criteria:
  - {name: right, equals: good, at_least: 90%}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "trialwise.yaml").write_text(SUITE)
    return tmp_path


def trialwise(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def write(folder: Path, **changes: str) -> None:
    text = SUITE
    for old, new in changes.items():
        text = text.replace({"function": "answer", "criteria": "at_least: 90%"}[old], new)
    (folder / "trialwise.yaml").write_text(text)


# --- One code, one meaning ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "arguments", "code", "word"),
    [
        ("1", (), 0, "PASS"),
        ("0", (), 1, "FAIL"),
        ("1", ("--trials", "30", "--max-seconds", "0.000001"), 3, "INCONCLUSIVE"),
        ("1", ("--trials", "10"), 2, "refused"),
    ],
    ids=["pass", "fail", "inconclusive", "refused"],
)
def test_each_end_has_its_own_exit_code(
    folder: Path, rate: str, arguments: tuple[str, ...], code: int, word: str
) -> None:
    """And says in words what the code means."""
    done = trialwise(folder, "run", *arguments, RATE=rate)
    assert done.returncode == code, done.stderr
    assert word in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_undecided_is_a_failure_where_that_is_asked_for(folder: Path) -> None:
    """`--fail-on-inconclusive` turns 3 into 1 and nothing else."""
    short = ("--trials", "30", "--max-seconds", "0.000001", "--fail-on-inconclusive")
    assert trialwise(folder, "run", *short).returncode == 1
    assert trialwise(folder, "run", "--fail-on-inconclusive").returncode == 0


@pytest.mark.parametrize(
    "suite",
    [
        SUITE.replace("agent:answer", "no_such_module:answer"),
        SUITE.replace("agent:answer", "agent:no_such_function"),
        SUITE.replace("at_least", "at_lest"),
        "service: [unclosed",
        "",
        SUITE.replace("inputs: [one, two]", "inputs: []"),
    ],
    ids=["module", "function", "key", "yaml", "empty", "inputs"],
)
def test_what_cannot_be_run_is_never_green(folder: Path, suite: str) -> None:
    """An unimportable agent, a misspelt key, broken YAML: exit 2, the place, and no traceback."""
    (folder / "trialwise.yaml").write_text(suite)
    for command in ("run", "check"):
        done = trialwise(folder, command)
        assert done.returncode == 2, done.stdout
        assert "trialwise.yaml" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_service_that_exits_does_not_end_the_process(folder: Path) -> None:
    """`sys.exit(0)` in the agent is a FAIL, not a success."""
    write(folder, function="leave")
    done = trialwise(folder, "run")
    assert done.returncode == 1
    assert "FAIL" in done.stdout


def test_an_empty_selection_is_refused(folder: Path) -> None:
    """A name or tag that chooses nothing runs nothing, and nothing is no PASS."""
    unknown = trialwise(folder, "run", "agnet")
    assert unknown.returncode == 2
    assert "did you mean 'agent'?" in unknown.stderr
    assert trialwise(folder, "run", "--tag", "nightly").returncode == 2


def test_no_suite_is_said_with_what_to_do(tmp_path: Path) -> None:
    """Outside a project the message points to `init`."""
    done = trialwise(tmp_path, "run")
    assert done.returncode == 2
    assert "trialwise.yaml" in done.stderr


# --- Before the first trial -----------------------------------------------------------------------


def test_check_says_the_rule_in_counts_and_runs_nothing(folder: Path) -> None:
    """The earliest PASS and FAIL, the end, and exact chances at both rates."""
    write(folder, function="slow")
    done = trialwise(folder, "check", "--max-trials", "50")
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert "PASS after 35 of 35 at the earliest" in shown
    assert (
        "if the true rate is 90 % (as required): "
        "PASS in 5.0 % of runs, FAIL in 5.0 %, INCONCLUSIVE in 90.0 %" in shown
    )
    assert "nothing was run" in shown
    assert not (folder / "calls").exists()
    data = json.loads(trialwise(folder, "check", "--json").stdout)
    assert data["contracts"][0]["criteria"][0]["max_trials"] == 215


def test_a_design_that_cannot_support_its_claim_is_refused_by_both(folder: Path) -> None:
    """With the number configured, the number needed and the way out."""
    for command in ("check", "run"):
        done = trialwise(folder, command, "--trials", "10")
        assert done.returncode == 2
        assert "10 trials" in done.stderr
        assert "At least 29" in done.stderr
        assert "smoke" in done.stderr


# --- What is printed and written ------------------------------------------------------------------


def test_json_is_alone_on_standard_output(folder: Path) -> None:
    """Progress goes to standard error, so that a pipe gets JSON and nothing else."""
    done = trialwise(folder, "run", "--json")
    report = json.loads(done.stdout)
    assert report["exit_code"] == 0
    assert report["runs"][0]["verdict"]["decision"] == "PASS"
    assert "agent" in done.stderr


def test_quiet_says_nothing_while_running(folder: Path) -> None:
    """Only the summary is left."""
    done = trialwise(folder, "run", "--quiet")
    assert done.stderr == ""
    assert "PASS" in done.stdout


def test_the_plan_is_printed_on_request(folder: Path) -> None:
    """Between it and nothing there is the size of the run, and its progress."""
    plain, whole = trialwise(folder, "run"), trialwise(folder, "run", "-v")

    assert "agent: at most 215 trials, seed " in plain.stderr
    assert "at the earliest" not in plain.stderr
    assert "PASS after 40 of 40 at the earliest" in whole.stderr
    assert "verdict PASS" in plain.stderr


def test_reports_are_written_by_their_extension(folder: Path) -> None:
    """HTML, JUnit, JSON, Markdown, TAP and text from one run."""
    names = ["r.html", "r.junit.xml", "r.json", "r.md", "r.tap", "r.txt"]
    outputs = [part for name in names for part in ("-o", name)]
    done = trialwise(folder, "run", *outputs, "--summary", "step.md", "--annotations", "github")
    assert done.returncode == 0, done.stderr
    assert all((folder / name).stat().st_size > 0 for name in [*names, "step.md"])
    assert "<html" in (folder / "r.html").read_text()
    assert trialwise(folder, "run", "-o", "report.pdf").returncode == 2


def test_the_whole_analysis_is_printed_on_request(folder: Path) -> None:
    """`--transparent` shows the hypotheses and the reproducibility block."""
    done = trialwise(folder, "run", "--transparent")
    assert "HYPOTHESIS TEST" in done.stdout
    assert "REPRODUCIBILITY" in done.stdout


# --- Money, interrupts, resuming, recording -------------------------------------------------------


def test_a_money_cap_stops_and_keeps(folder: Path) -> None:
    """Ten trials at fifty cents are five dollars; the rest is not bought."""
    write(folder, function="paid")
    done = trialwise(folder, "run", "--trials", "40", "--max-usd", "5", "--json")
    assert done.returncode == 3
    verdict = json.loads(done.stdout)["runs"][0]["verdict"]
    assert (verdict["stop"], verdict["spending"]["usd"]) == ("money-budget", 5.0)
    again = trialwise(folder, "run", "--trials", "40", "--resume")
    assert again.returncode == 0, again.stderr


def test_ctrl_c_is_130_and_resume_goes_on(folder: Path) -> None:
    """SIGINT to the real command; afterwards no trial is run twice."""
    write(folder, function="slow")
    command = [sys.executable, "-m", "trialwise.cli.main", "run", "--trials", "100"]
    process = subprocess.Popen(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "SLOW": "1"}
    )
    deadline = time.monotonic() + 60
    while not (folder / "calls").exists() or len((folder / "calls").read_text().split()) < 10:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    done = trialwise(folder, "run", "--trials", "100", "--resume")
    assert done.returncode == 0, done.stderr
    calls = [int(line) for line in (folder / "calls").read_text().split()]
    # At most the one in flight was called again.
    assert len(calls) - len(set(calls)) <= 1


def test_there_must_be_something_to_resume(folder: Path) -> None:
    """A finished suite is not run again under the name of resuming."""
    assert trialwise(folder, "run", "--resume").returncode == 2
    assert trialwise(folder, "run").returncode == 0
    done = trialwise(folder, "run", "--resume")
    assert done.returncode == 2
    assert "nothing to resume" in done.stderr


def test_a_recorded_run_replays_without_its_service(folder: Path) -> None:
    """The same seed gives the same verdict from the recording alone."""
    first = trialwise(folder, "run", "--seed", "5", "--record", "tape.jsonl", "--json", RATE="0.95")
    assert first.returncode in (0, 1), first.stderr
    (folder / "agent.py").write_text(AGENT.replace('"good" if', '"broken" if'))
    again = trialwise(folder, "run", "--seed", "5", "--replay", "tape.jsonl", "--json")
    assert again.returncode == first.returncode, again.stderr
    tallies = [
        json.loads(done.stdout)["runs"][0]["verdict"]["findings"][0]["tally"]
        for done in (first, again)
    ]
    assert tallies[0] == tallies[1]


def test_a_name_that_asks_for_no_report_is_refused_before_the_first_trial(folder: Path) -> None:
    """Not after they are paid for."""
    done = trialwise(folder, "run", "--quiet", "-o", "report.pdf")

    assert 2 == done.returncode
    assert "output must end with" in done.stderr
    assert not (folder / ".trialwise" / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["-o", "--html", "--summary"])
def test_a_report_that_cannot_be_written_does_not_hide_the_verdict(
    folder: Path, option: str
) -> None:
    """The other reports are written; what passed is no success without its report."""
    (folder / "taken").write_text("")
    lost = (option, "taken/report.html")
    done = trialwise(folder, "run", "--quiet", *lost, "-o", "kept.md")
    failed = trialwise(folder, "run", "--quiet", *lost, RATE="0.2")

    assert (4, 1) == (done.returncode, failed.returncode)
    assert "PASS  the criterion passed" in done.stdout
    assert "taken/report.html: the report could not be written" in done.stderr
    assert (folder / "kept.md").is_file()


def test_two_runs_are_not_mixed_in_one_recording(folder: Path) -> None:
    """A replay would judge the old replies as well: nothing is run, and what is there stays."""
    run = ("run", "--quiet", "--seed", "5", "--record", "tape.jsonl")
    assert 0 == trialwise(folder, *run).returncode
    tape = (folder / "tape.jsonl").read_bytes()

    again = trialwise(folder, *run)

    assert 2 == again.returncode
    assert "from another run" in again.stderr
    assert tape == (folder / "tape.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("tape", "message"),
    [
        ("", "tape.jsonl holds no reply of agent"),
        ("{}\n", "line 1 of tape.jsonl is not one of a recording"),
    ],
)
def test_a_recording_without_a_reply_is_refused(folder: Path, tape: str, message: str) -> None:
    """Before the first trial, with its name."""
    (folder / "tape.jsonl").write_text(tape)

    done = trialwise(folder, "run", "--quiet", "--replay", "tape.jsonl")

    assert 2 == done.returncode
    assert message in done.stderr
    assert not (folder / ".trialwise" / "runs").exists()


def test_a_recorded_matrix_replays_to_each_model_its_own(folder: Path) -> None:
    """Though all of them were asked the same, and one file holds them all."""
    (folder / "agent.py").write_text("def answer(question, model):\n    return model\n")
    (folder / "trialwise.yaml").write_text(SUITE + "models: [good, bad]\ntrials: 40\n")
    run = ("run", "--quiet", "--json", "--seed", "5")
    done = [
        trialwise(folder, *run, "--record", "tape.jsonl"),
        trialwise(folder, *run, "--replay", "tape.jsonl"),
    ]

    assert [1, 1] == [one.returncode for one in done], done[1].stderr
    for one in done:
        verdicts = [part["verdict"]["decision"] for part in json.loads(one.stdout)["runs"]]
        assert ["PASS", "FAIL"] == verdicts


@pytest.mark.slow
def test_measure_writes_a_baseline_that_run_compares_with(folder: Path) -> None:
    """From a measured baseline to a degradation that is signalled."""
    text = SUITE.replace("at_least: 90%", "no_worse_than: baseline")
    (folder / "trialwise.yaml").write_text(text)
    none = trialwise(folder, "run", "--trials", "50")
    assert none.returncode == 2
    assert "measure" in none.stderr
    measured = trialwise(folder, "measure", "--trials", "200", "--valid-days", "30")
    assert measured.returncode == 0, measured.stderr
    assert "right 200 of 200" in measured.stdout
    assert trialwise(folder, "run", "--trials", "50").returncode == 0
    assert trialwise(folder, "run", "--trials", "50", RATE="0.5").returncode == 1


@pytest.mark.parametrize("command", ["run", "check", "measure"])
def test_help_shows_an_example(folder: Path, command: str) -> None:
    """Every command explains itself."""
    done = trialwise(folder, command, "--help")
    assert done.returncode == 0
    assert f"trialwise {command}" in done.stdout


def test_the_command_lines_size_is_every_criterions(folder: Path) -> None:
    """`--trials` replaces what a criterion says for itself."""
    text = SUITE.replace("at_least: 90%", "at_least: 90%, trials: 50")
    (folder / "trialwise.yaml").write_text(text)
    done = trialwise(folder, "check", "--trials", "80", "--json")
    assert json.loads(done.stdout)["contracts"][0]["criteria"][0]["max_trials"] == 80
