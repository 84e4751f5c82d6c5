"""Stored sessions, decided by the checks and gates of a suite through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trialwise.cli.score_command import command
from trialwise.errors import DesignRefused, InvalidArgument
from trialwise.traces import TraceError

SUITE = """
name: shop
service: {http: {url: "http://localhost:9/"}}
inputs:
  - {id: refund, value: Refund it., expected: Refunded.}
  - {id: find, value: Find it., expected: Found.}
trials: 40
criteria:
  - {name: looks, tool_called: look, at_least: 50%}
  - {name: right, as_expected: equals, at_least: 50%}
stability: {exclude: [tool_usage_stability]}
"""
ANSWERS = {"Refund it.": "Refunded.", "Find it.": "Found."}


def chat(asked: str | None, *tools: str, answer: str | None = None) -> list[dict[str, Any]]:
    """A session that calls some tools and answers."""
    calls = [
        {"id": str(place), "function": {"name": name, "arguments": json.dumps({"n": place})}}
        for place, name in enumerate(tools)
    ]
    said = ANSWERS.get(asked or "", "Done.") if answer is None else answer
    begin = {"role": "user", "content": asked}
    if asked is None:
        begin = {"role": "system", "content": "You keep a shop."}
    return [
        begin,
        {"role": "assistant", "content": "Let me see", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": one["id"], "content": "ok"} for one in calls),
        {"role": "assistant", "content": said},
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "trialwise.yaml").write_text(SUITE, encoding="utf-8")
    return tmp_path


def write(folder: Path, name: str, document: Any) -> None:
    file = folder / "traces" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document), encoding="utf-8")


def score(folder: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    files = sorted(str(one) for one in (folder / "traces").rglob("*.json"))
    arguments = [*files, "--suite", str(folder / "trialwise.yaml"), "--json", *more]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, json.loads(done.stdout), done.stderr


@pytest.mark.requirement(
    "stability input",
    "Stored traces are decided without calling the agent.",
    "`trialwise score traces/*.json --suite trialwise.yaml`",
)
def test_stored_sessions_are_decided_by_checks_and_gates(folder: Path) -> None:
    """Every input may have another number of them."""
    for number in range(9):
        write(folder, f"a{number}.json", chat("Refund it.", "look"))
    for number in range(4):
        write(folder, f"b{number}.json", chat("Find it.", "look"))
    code, verdict, said = score(folder)
    tallies = {one["criterion"]: one["tally"]["trials"] for one in verdict["findings"]}
    assert (code, verdict["decision"], said) == (0, "PASS", "")
    assert tallies == {"looks": 13, "right": 13}
    assert [one["decision"] for one in verdict["gates"]] == ["PASS"]


def test_a_loop_in_one_of_them_fails_the_gate(folder: Path) -> None:
    for number in range(10):
        asked = sorted(ANSWERS)[number % 2]
        write(folder, f"{number}.json", chat(asked, "look"))
    looping = chat("Find it.", "look", "look", "look", "look")
    for call in looping[1]["tool_calls"]:
        call["function"]["arguments"] = "{}"
    write(folder, "loop.json", looping)
    code, verdict, _ = score(folder)
    assert (code, verdict["decision"]) == (1, "FAIL")
    assert verdict["gates"][0]["checks"][0]["value"] == 0.25  # 1 of 4 calls is distinct


def test_a_session_belongs_to_the_input_of_its_file_or_folder(folder: Path) -> None:
    """Where it does not tell what was asked."""
    for number in range(5):
        write(folder, f"refund-{number}.json", chat(None, "look", answer="Refunded."))
        write(folder, f"find/{number}.json", chat(None, "look", answer="Found."))
    code, verdict, _ = score(folder)
    assert (code, verdict["decision"]) == (0, "PASS")


def test_calls_that_are_unknown_pass_nothing(folder: Path) -> None:
    suite = SUITE.replace("{name: looks, tool_called: look, at_least: 50%}", "").replace(
        "criteria:\n  - ", "criteria:\n  - {name: no, tool_not_called: delete, at_least: 50%}"
    )
    (folder / "trialwise.yaml").write_text(suite.replace("stability:", "# "), encoding="utf-8")
    for number in range(12):
        unknown = [*chat(sorted(ANSWERS)[number % 2], "look"), {"role": "critic", "content": "hm"}]
        write(folder, f"{number}.json", unknown)
    code, verdict, _ = score(folder)
    (found,) = [one for one in verdict["findings"] if one["criterion"] == "no"]
    assert (code, found["decision"]) == (3, "INCONCLUSIVE")


def test_several_sessions_of_one_file_are_several_trials(folder: Path) -> None:
    lines = [{"messages": chat(asked, "look")} for asked in sorted(ANSWERS) * 6]
    write(folder, "all.json", lines)
    _, verdict, _ = score(folder)
    assert {one["tally"]["trials"] for one in verdict["findings"]} == {12}


def test_inputs_without_a_session_are_named(folder: Path) -> None:
    for number in range(10):
        write(folder, f"{number}.json", chat("Find it.", "look"))
    code, _, said = score(folder)
    assert (code, said) == (0, "1 of 2 inputs have no trace: refund\n")
    never = SUITE.replace("stability:", "  - {name: n, tool_not_called: x, never_fails: true}\n#")
    (folder / "trialwise.yaml").write_text(never, encoding="utf-8")
    with pytest.raises(InvalidArgument, match="'n' asks every input: there is none of refund"):
        score(folder)


def test_too_few_sessions_are_refused(folder: Path) -> None:
    write(folder, "1.json", chat("Find it.", "look"))
    with pytest.raises(DesignRefused, match="cannot show a rate above"):
        score(folder)


@pytest.mark.parametrize(
    "block",
    [
        "criteria: [{name: quick, max_latency: 1s, at_least: 50%}]",
        "criteria: [{name: quick, any_of: [{max_latency: 1s}, {contains: x}], at_least: 50%}]",
    ],
)
def test_a_limit_on_time_needs_sessions_that_tell_theirs(folder: Path, block: str) -> None:
    begin = SUITE[: SUITE.index("criteria:")]
    (folder / "trialwise.yaml").write_text(begin + block, encoding="utf-8")
    for number in range(10):
        write(folder, f"{number}.json", chat("Find it.", "look"))
    with pytest.raises(InvalidArgument, match=r"tell how long the session took, which .* 'quick'"):
        score(folder)
    for number in range(10):
        envelope = {"tool_calls": [], "conversation": {"turns": []}, "duration_s": 0.5}
        write(folder, f"{number}.json", {**envelope, "answer": "x"})
    assert score(folder)[0] == 0


def test_a_file_that_holds_no_session_is_named(folder: Path) -> None:
    write(folder, "1.json", {"steps": []})
    with pytest.raises(TraceError, match=r"1\.json: the format of the trace is not recognised"):
        score(folder)


def test_a_suite_says_what_is_asked(folder: Path) -> None:
    write(folder, "1.json", chat("Find it.", "look"))
    with pytest.raises(Exception, match="leave other questions out"):
        score(folder, "--at-least", "90%")
    several = SUITE.replace("name: shop", "contracts: [{name: a}, {name: b}]")
    (folder / "trialwise.yaml").write_text(several, encoding="utf-8")
    with pytest.raises(Exception, match="name one contract of the suite with --contract: a, b"):
        score(folder)
