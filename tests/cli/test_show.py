"""`trialwise show`: a stored run again, in every form, and checked for having been altered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click import UsageError
from click.testing import CliRunner, Result

import trialwise as tw
from trialwise.cli import main
from trialwise.cli.stored_commands import show_command
from trialwise.errors import RunNotFound, TrialwiseError

#: Clears a terminal, turns the writing direction, breaks the line; then half a surrogate pair.
HOSTILE = "\x1b[2Jgone \u202eexe.txt\nsecond line \ud800"


def agent(question: str, seed: int) -> str:
    """Wrong in one of five trials, and then rude to terminals."""
    return HOSTILE if Random(seed).random() < 0.2 else f"right: {question}"


def contract(name: str = "asked") -> tw.Contract:
    return tw.Contract(
        name,
        agent,
        [
            tw.Criterion("right", tw.contains("right"), at_least=0.6),
            tw.Criterion("kind", tw.not_contains("fool"), never_fails=True),
        ],
    )


def store_run(folder: Path, name: str = "asked", **settings: Any) -> tw.Result:
    usual: dict[str, Any] = {"inputs": ["one", "two"], "seed": 4, "trials": 40, "curtail": False}
    return tw.run(contract(name), store=folder, progress=False, **(usual | settings))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stored(folder: Path) -> tw.Result:
    """One run in the folder's store."""
    return store_run(folder / ".trialwise")


def do_show(*arguments: str | Path) -> Result:
    return CliRunner().invoke(show_command, [*map(str, arguments)], standalone_mode=False)


def failed(result: tw.Result) -> list[tw.model.Trial]:
    return [trial for trial in result.record.trials if not trial.passed]


# --- Which run --------------------------------------------------------------------------------


def test_the_summary_is_what_the_run_printed(stored: tw.Result) -> None:
    """With the verdict, and 0 because it could be shown."""
    import io

    printed = io.StringIO()
    stored.show(stream=printed)
    done = do_show()

    assert done.return_value == 0
    assert printed.getvalue().splitlines()[:4] == ascii_lines(do_show("--ascii").stdout)[:4]
    assert "asked" in done.stdout


def ascii_lines(text: str) -> list[str]:
    assert text.isascii()
    return text.splitlines()


@pytest.mark.parametrize("verdict", [0.6, 0.99])
def test_whatever_the_verdict_was_it_exits_0(folder: Path, verdict: float) -> None:
    """A verdict was the exit code of the run; showing it is no second one."""
    one = tw.Contract("c", agent, [tw.Criterion("right", tw.contains("right"), at_least=verdict)])
    kept = tw.run(one, inputs=["1"], seed=4, store=folder / ".trialwise", progress=False)
    done = do_show()

    assert str(kept.decision) in done.stdout
    assert 0 == done.return_value


def test_a_run_is_found_by_name_folder_file_and_contract(stored: tw.Result) -> None:
    """All of them the same."""
    assert stored.path is not None
    first = do_show("latest").stdout
    names = [stored.record.run_id, str(stored.path), str(stored.path / "record.json"), "asked"]

    assert "asked" in first
    assert [first] * 4 == [do_show(name).stdout for name in names]


def test_the_latest_of_a_contract_is_meant(folder: Path) -> None:
    """And without a name the latest of all."""
    first = store_run(folder / ".trialwise", "first")
    second = store_run(folder / ".trialwise", "second")

    assert first.record.run_id in do_show("first").stdout
    assert second.record.run_id in do_show().stdout


def test_several_runs_are_one_suite(folder: Path) -> None:
    """By name, or all contracts at once, in the order they were run."""
    for name in ("first", "second", "first"):
        store_run(folder / ".trialwise", name)
    whole = do_show("--all").stdout

    assert whole == do_show("second", "first").stdout
    assert whole.index("second") < whole.index("first")
    assert "80 trials" in whole
    with pytest.raises(UsageError, match="leave out RUN"):
        raise do_show("--all", "first").exception or AssertionError


def test_an_unknown_run_is_told_what_there_is(stored: tw.Result) -> None:
    """Runs and contracts."""
    error = do_show("askd").exception

    assert isinstance(error, RunNotFound)
    assert stored.record.run_id in str(error)
    assert "Contracts with a verdict: asked" in str(error)


def test_an_empty_folder_is_no_traceback(folder: Path) -> None:
    """It says where it looked."""
    error = do_show().exception

    assert isinstance(error, TrialwiseError)
    assert ".trialwise" in str(error)
    assert [] == [*folder.iterdir()]


def test_a_run_that_was_killed_says_how_to_go_on(stored: tw.Result) -> None:
    """It has trials, and no verdict: what they show so far is INCONCLUSIVE."""
    assert stored.path is not None
    (stored.path / "record.json").unlink()
    shown = do_show(stored.record.run_id).output

    assert "INCONCLUSIVE  " in shown
    assert "40 trials" in shown
    assert f"trialwise run --resume {stored.record.run_id}" in " ".join(shown.split())


def test_the_store_is_the_suites(folder: Path) -> None:
    """From a folder below it, whose own name the suite gives, with a value of the environment."""
    (folder / "trialwise.yaml").write_text(
        "store: {runs: '${NOWHERE:-kept}/here'}\nservice: {python: 'no_such_module:f'}\n",
        encoding="utf-8",
    )
    store_run(folder / "kept" / "here")
    below = folder / "deep" / "er"
    below.mkdir(parents=True)
    os.chdir(below)

    assert 0 == do_show().return_value


@pytest.mark.parametrize(
    "suite", ["service: {pyt", "- a\n- list", "store: 3", "store: {runs: [1]}"]
)
def test_a_broken_suite_does_not_hide_a_run(stored: tw.Result, folder: Path, suite: str) -> None:
    """The record does not need it."""
    (folder / "trialwise.yaml").write_text(suite, encoding="utf-8")

    assert stored.record.run_id in do_show().stdout


def test_another_store_can_be_named(folder: Path) -> None:
    """Such as the one of a downloaded artefact."""
    kept = store_run(folder / "artefact")

    assert kept.record.run_id in do_show("--store", folder / "artefact").stdout


# --- In which form ----------------------------------------------------------------------------


def test_json_is_the_report(stored: tw.Result) -> None:
    """Valid under its schema, and nothing else on standard output."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    from trialwise.pages.json_report import read_report_schema

    done = do_show("--json")
    report = json.loads(done.stdout)

    assert [] == [*Draft202012Validator(read_report_schema()).iter_errors(report)]
    assert stored.record.run_id == report["runs"][0]["run_id"]
    assert ".trialwise/runs" in report["runs"][0]["record"]
    assert "" == done.stderr


@pytest.mark.parametrize("flags", [("--transparent",), ("--transparent", "--ascii")])
def test_transparent_is_the_whole_analysis(stored: tw.Result, flags: tuple[str, ...]) -> None:
    """As Python gives it, or in ASCII."""
    text = do_show(*flags).stdout

    assert "REPRODUCIBILITY" in text
    if "--ascii" in flags:
        assert text.isascii()
    else:
        assert stored.transparent().strip() == text.strip()


def test_transparent_and_json_exclude_each_other(stored: tw.Result) -> None:
    """The figures are in both."""
    assert stored.decision
    assert isinstance(do_show("--json", "--transparent").exception, UsageError)


def test_failures_are_listed_with_their_evidence(stored: tw.Result) -> None:
    """Each of them, with what came back and why that is a failure."""
    text = do_show("--failures").stdout
    wrong = failed(stored)

    assert 0 < len(wrong) < 40
    assert f"{len(wrong)} of 40 trials failed" in text
    shown = [int(found) for found in re.findall(r"^FAILED +trial (\d+)", text, re.MULTILINE)]
    assert [trial.index for trial in wrong] == shown
    assert str(wrong[0].seed) in text
    assert wrong[0].outcome("right").result.explanation[:20] in text


def test_what_a_service_said_is_shown_and_not_obeyed(stored: tw.Result) -> None:
    """No escape sequence, no turned writing; line breaks stay line breaks."""
    assert stored.decision
    text = do_show("--failures").stdout

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2Jgone" in text
    assert re.search(r"^ +second line", text, re.MULTILINE)


def test_trials_shows_the_first_few(stored: tw.Result) -> None:
    """Or, with failures, the first few of those."""
    text = do_show("--trials", "3").stdout
    few = do_show("--failures", "--trials", "1").stdout

    assert ["0", "1", "2"] == re.findall(r"^\w+ +trial (\d+)", text, re.MULTILINE)
    assert re.search(r"^asked: first 3 of \d+ trials$", text, re.MULTILINE)
    assert [str(failed(stored)[0].index)] == re.findall(r"^\w+ +trial (\d+)", few, re.MULTILINE)


def test_an_error_is_told_once(folder: Path) -> None:
    """And not again by each criterion that had nothing to look at."""

    def gone() -> str:
        raise tw.ServiceError("nobody is there", tw.ErrorClass.INFRASTRUCTURE)

    tw.run(
        tw.Contract("c", gone, contract().criteria),
        inputs=["1"],
        trials=20,
        intent="smoke",
        retries=0,
        store=folder / ".trialwise",
        progress=False,
    )
    text = do_show("--failures", "--trials", "1").stdout

    assert 1 == text.partition("FAILED")[2].count("nobody is there")


def test_every_attempt_and_an_empty_reply_are_told(folder: Path) -> None:
    """A failure of the service's own is of no class, and is not called so."""
    tried: set[int] = set()

    def flaky(index: int) -> str:
        if index in tried or index > 1:
            raise ValueError("my own mistake")
        if index == 1:
            tried.add(index)
            error = tw.ServiceError("overloaded", tw.ErrorClass.INFRASTRUCTURE)
            error.retry_after_s = 0.0
            raise error
        return ""

    tw.run(
        tw.Contract("c", flaky, contract().criteria),
        inputs=["1"],
        trials=20,
        retries=1,
        intent="smoke",
        store=folder / ".trialwise",
        progress=False,
    )
    first, second = do_show("--failures", "--trials", "2").stdout.split("FAILED")[1:]

    assert re.search(r"^  reply +\(empty\)$", first, re.MULTILINE)
    shown = [" ".join(line.split()) for line in second.splitlines()]
    assert shown[0].endswith("2 attempts")
    assert ["attempt 1 overloaded", "error ValueError: my own mistake"] == shown[1:3]


def test_trials_are_data_too(stored: tw.Result) -> None:
    """Every field of a trial, by name."""
    (run,) = json.loads(do_show("--json", "--failures").stdout)["runs"]
    wrong = failed(stored)

    assert (40, len(wrong)) == (run["trials"], run["failed"])
    assert [trial.index for trial in wrong] == [one["trial"] for one in run["shown"]]
    first = run["shown"][0]
    assert (wrong[0].seed, wrong[0].reply) == (first["seed"], first["reply"])
    assert "condition" == first["criteria"]["right"]["reason"]
    assert first["criteria"]["kind"]["passed"]


# --- What an agent did ------------------------------------------------------------------------

LONG = "as agreed with the customer " * 60
CALLS: list[dict[str, Any]] = [
    {"name": "find", "server": "shop", "args": {"order": 7}, "error": f"no order 7: {LONG}",
     "turn": 1, "started_s": 0.5, "duration_s": 0.25},
    {"name": HOSTILE, "args": {"note": LONG}, "result": '{\n "paid": 3\n}', "duration_s": 1.5},
    {"name": "silent"},
    {"args": HOSTILE, "error": HOSTILE},
]  # fmt: skip


def store_session(folder: Path, calls: list[dict[str, Any]]) -> tw.Result:
    def act(question: str) -> tw.Reply:  # noqa: ARG001
        return tw.Reply(value="wrong", details={"tool_calls": calls})

    criteria = [tw.Criterion("right", tw.contains("right"), at_least=0.6)]
    return tw.run(
        tw.Contract("acts", act, criteria), inputs=["one"], trials=20, seed=1, store=folder,
        progress=False, curtail=False,
    )  # fmt: skip


def test_each_tool_call_says_its_server_its_time_and_how_it_ended(folder: Path) -> None:
    """In a few lines of 80 columns each, whatever a tool said."""
    store_session(folder / ".trialwise", CALLS)
    lines = do_show("--failures", "--trials", "1").output.splitlines()
    shown = [" ".join(line.split()) for line in lines]
    calls = shown[next(k for k, one in enumerate(shown) if one.startswith("called find")) :]

    assert 'called find on shop · turn 1 · at 500 ms for 250 ms: {"order": 7}' == " ".join(
        calls[:2]
    )
    assert calls[2].startswith("failed no order 7: as agreed")
    assert 'returned { "paid": 3 }' in calls
    assert "called silent" in calls
    assert any(one.startswith("called a tool without a name: ") for one in calls)
    assert all(len(one) <= 80 for one in lines)
    assert len(calls) < 30
    assert not any(one in "\n".join(lines) for one in ("\x1b", "\u202e"))


def test_of_many_calls_the_first_and_the_last_are_shown(folder: Path) -> None:
    """The rest is counted, and the data holds them all."""
    store_session(folder / ".trialwise", [{"name": f"tool-{k}"} for k in range(100)])
    shown = do_show("--failures", "--trials", "1").output
    (only,) = json.loads(do_show("--failures", "--trials", "1", "--json").output)["runs"]

    names = [int(name) for name in re.findall(r"called +tool-(\d+)", shown)]
    assert [*range(30), *range(90, 100)] == names
    assert "60 calls left out; the run's journal holds them all." in shown
    assert 100 == len(only["shown"][0]["tool_calls"])


# --- Verified ---------------------------------------------------------------------------------


def test_an_honest_run_is_verified(stored: tw.Result) -> None:
    """Below its summary, and with 0 whatever its verdict is."""
    done = do_show("--verify")

    assert 0 == done.return_value
    line = done.stdout.splitlines()[-1]
    assert line.startswith(f"VERIFIED  {stored.record.run_id}")
    assert "40 trials" in line


def tamper(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_an_altered_verdict_exits_4_and_is_told(stored: tw.Result) -> None:
    """Field by field: never a code that is a verdict's."""
    assert stored.path is not None
    right = stored.verdict.findings[0].tally.passed
    tamper(stored.path / "record.json", f'"passed": {right}', f'"passed": {right + 1}')
    done = do_show("--verify")

    assert 4 == done.return_value
    assert "DIFFERS" in done.stdout
    expected = f"findings[right].tally.passed: {right + 1} is stored, {right} follows"
    assert expected in done.stdout


def test_a_damaged_journal_exits_4_and_is_told(stored: tw.Result) -> None:
    """Its lines are under checksums; the other runs are checked all the same."""
    assert stored.path is not None
    tamper(stored.path / "journal.jsonl", '"in":"1"', '"in":"2"')
    store_run(stored.path.parents[1], "whole")
    done = do_show("asked", "whole", "--verify")

    assert 4 == done.return_value
    assert re.search(
        r"^DAMAGED  .*asked.*journal.jsonl: line \d+ is damaged", done.stdout, re.MULTILINE
    )
    assert re.search(r"^VERIFIED  .*whole", done.stdout, re.MULTILINE)
    assert 1 == done.stdout.count("kept in ")


def test_without_verify_a_damaged_run_is_a_message(stored: tw.Result) -> None:
    """It cannot be shown."""
    assert stored.path is not None
    (stored.path / "record.json").write_text("{", encoding="utf-8")

    assert isinstance(do_show(stored.path).exception, TrialwiseError)


def test_a_verification_is_data_too(stored: tw.Result) -> None:
    """Path, stored, derived."""
    assert stored.path is not None
    before = json.loads(do_show("--verify", "--json").stdout)
    tamper(stored.path / "record.json", '"decision": "PASS"', '"decision": "FAIL"')
    done = do_show("--verify", "--json")
    after = json.loads(done.stdout)

    assert before["matches"] is True
    assert (4, False) == (done.return_value, after["matches"])
    found = {
        one["path"]: (one["stored"], one["derived"]) for one in after["runs"][0]["differences"]
    }
    assert ("FAIL", "PASS") == found["verdict.decision"]


# --- In a process of its own ------------------------------------------------------------------

registered = pytest.mark.skipif("show" not in main._COMMANDS, reason="not a command yet")


def process(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "show", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=60,
        **more,
    )


@registered
def test_an_unknown_run_exits_2_without_a_traceback(stored: tw.Result) -> None:
    """On standard error."""
    done = process("nonsense")

    assert (2, "") == (done.returncode, done.stdout)
    assert stored.record.run_id in done.stderr
    assert "Traceback" not in done.stderr


@registered
@pytest.mark.parametrize("flags", [(), ("--json",), ("--failures",), ("--transparent",)])
def test_an_ascii_terminal_gets_ascii(stored: tw.Result, flags: tuple[str, ...]) -> None:
    """And JSON stays JSON."""
    assert stored.decision
    done = process(*flags, env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})

    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.isascii()
    if "--json" in flags:
        json.loads(done.stdout)


@registered
def test_a_reader_that_goes_away_is_no_traceback(stored: tw.Result) -> None:
    """`trialwise show --failures | head`."""
    assert stored.decision
    shell = f"'{sys.executable}' -m trialwise.cli.main show --failures --transparent | true"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True)

    assert "" == done.stderr
