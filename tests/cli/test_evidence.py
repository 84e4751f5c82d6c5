"""What a red result shows: the question, the answer, where the code raised, and what to do next."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do

import trialwise as tw
from trialwise.runtime.running import TrialNotFound
from trialwise.runtime.selecting import NothingSelected

SERVICE = """
import os

def ask(input):
    return "bad"

def deep(input):
    return look_up(input)

def look_up(input):
    return {}["answer"]

def secret(input):
    raise ValueError(os.environ["API_KEY"])
"""
PARCEL = """
name: x
service: {python: "svc:ask"}
inputs: [{id: q28, value: "Where is my parcel?", expected: delivery}]
criteria: [{name: right, as_expected: equals, at_least: 90%}]
"""
RAISES = """
name: x
service: {python: "svc:deep"}
inputs: [a, b]
criteria: [{name: ok, equals: ok, at_least: 90%}]
"""
BOTH = """
name: x
service: {python: "svc:ask"}
inputs: [a, b]
criteria:
  - name: both
    postconditions: [{contains: alpha}, {contains: beta}, {contains: b}]
    at_least: 50%
    trials: 10
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def test_every_report_shows_question_expectation_and_reply(folder: Path) -> None:
    """One failing trial is enough to understand what went wrong, wherever one looks."""
    names = ["r.html", "r.md", "r.junit.xml", "r.json", "r.tap"]
    outputs = [part for name in names for part in ("-o", name)]
    done = do(PARCEL, "run", "-q", *outputs, "--annotations", "github")
    assert done.exit_code == 1
    terminal, _, annotations = done.output.partition("::error")
    shown = do(PARCEL, "show", "--failures").output
    listed = do(PARCEL, "show", "--failures", "--json").output
    texts = [annotations, terminal, shown, listed, *((folder / name).read_text() for name in names)]
    for text in texts:
        assert "Where is my parcel?" in text
        assert "delivery" in text
        assert "bad" in text


def test_a_red_terminal_says_why_and_what_next() -> None:
    """The requirement, the reasons with counts, an example, and the next command."""
    text = do(PARCEL, "run", "-q").output
    assert "Why right failed (required ≥ 90 %)" in text
    assert "4 × equals what is expected: expected 'delivery'" in text
    assert "    input     Where is my parcel?\n    expected  delivery\n    reply     bad\n" in text
    assert "trialwise show x --failures" in text


def test_inputs_that_are_not_to_be_kept_are_in_no_file(folder: Path) -> None:
    """`keep_inputs: false` is a key of the suite."""
    do(f"{PARCEL}keep_inputs: false\n", "run", "-q", "-o", "r.html", "-o", "r.json")
    kept = [path for path in folder.rglob("*") if path.is_file() and path.name != "trialwise.yaml"]
    assert not [path for path in kept if b"parcel" in path.read_bytes()]


def test_an_exception_has_its_traceback_without_frames_of_trialwise(folder: Path) -> None:
    """File and line of the user's own code, once in the run, wherever a failing trial is shown."""
    run = do(RAISES, "run", "-q", "-o", "r.html", "-o", "r.junit.xml", "-o", "r.md").output
    shown = do(RAISES, "show", "--failures").output
    for text in (run, shown, (folder / "r.junit.xml").read_text()):
        assert 'File "svc.py", line 11, in look_up' in text
        assert 'return {}["answer"]' in text
        assert "site-packages" not in text
        assert "trialwise/" not in text.replace(".trialwise/", "")
    assert "line 11, in look_up" in (folder / "r.html").read_text()
    assert "line 11, in look_up" in (folder / "r.md").read_text()
    (texts,) = folder.glob(".trialwise/runs/*/texts.jsonl")
    assert texts.read_text().count("traceback") == 1


def test_a_traceback_is_redacted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret that an exception names is in no file of the run."""
    monkeypatch.setenv("API_KEY", "hunter2-hunter2")
    suite = RAISES.replace("svc:deep", "svc:secret") + "redact: [hunter2]\n"
    do(suite, "run", "-q", "-o", "r.html")
    kept = [path for path in folder.rglob("*") if path.is_file() and path.name != "trialwise.yaml"]
    assert not [path.name for path in kept if b"hunter2" in path.read_bytes()]


def test_every_postcondition_of_a_failing_trial_is_kept(folder: Path) -> None:
    """Two fail, one holds: both are named in the listing, each with its rate in the reports."""
    run = do(BOTH, "run", "-q", "-o", "r.json", "-o", "r.junit.xml", "-o", "r.md").output
    shown = do(BOTH, "show", "--failures").output
    assert "'alpha' is not in the reply" in shown
    assert "'beta' is not in the reply" in shown
    report = json.loads((folder / "r.json").read_text())
    checks = report["runs"][0]["results"][0]["postconditions"]
    trials = report["runs"][0]["results"][0]["facts"]["trials"]
    assert [one["name"] for one in checks] == ["contains 'alpha'", "contains 'beta'"]
    assert [(one["passed"], one["trials"]) for one in checks] == [(0, trials)] * 2
    for text in (run, (folder / "r.junit.xml").read_text(), (folder / "r.md").read_text()):
        assert f"check contains 'beta': 0.0 % (0 of {trials})" in text


def test_a_check_that_relies_on_the_one_before_it_is_not_broken(folder: Path) -> None:
    """After a failure it is asked as well, and may raise: it then says nothing."""
    (folder / "svc.py").write_text(
        SERVICE + "\ndef keyed(reply):\n    return __import__('json').loads(reply)['a'] == 1\n"
    )
    suite = BOTH.replace("{contains: beta}", '{python: "svc:keyed"}')
    assert do(suite, "run", "-q").exit_code == 1
    shown = do(suite, "show", "--failures", "--json").output
    trial = json.loads(shown)["runs"][0]["shown"][0]
    assert trial["criteria"]["both"]["failed"] == ["contains 'alpha'"]


REPEATS = """
name: x
service: {python: "svc:repeats"}
inputs: [a, b]
trials: 8
criteria: [{name: ok, equals: ok, never_fails: true}]
stability: {}
"""


def test_a_failed_stability_gate_names_run_input_and_sub_score(folder: Path) -> None:
    """Terminal, Markdown and JUnit say which session to look at, and what is low in it."""
    (folder / "svc.py").write_text(
        "import trialwise as tw\n"
        "def repeats(input, index):\n"
        "    calls = [{'name': 'a', 'args': {'i': 0 if index == 5 else i}} for i in range(3)]\n"
        "    return tw.Reply(value='ok', details={'trace': {'tool_calls': calls}})\n"
    )
    text = do(REPEATS, "run", "-q", "--seed", "1", "-o", "r.md", "-o", "r.junit.xml").output
    for one in (text, (folder / "r.md").read_text(), (folder / "r.junit.xml").read_text()):
        assert "The lowest is redundancy 0.333 in trial 5, input" in " ".join(one.split())


OTHER = BOTH.replace("name: x", "name: y")


def test_the_command_that_runs_a_trial_again_names_the_suite_file(folder: Path) -> None:
    """It can be pasted, also where the suite is not the one that is found by itself."""
    (folder / "svc.py").write_text("def ask(input): return 'bad'\n")
    (folder / "my suite.yaml").write_text(BOTH)

    done = do(OTHER, "run", "-q", "-s", "my suite.yaml")

    (command,) = [one for one in done.output.splitlines() if one.startswith("That trial again:")]
    words = shlex.split(command.partition(":")[2])
    assert words == ["trialwise", "rerun", "x", "-s", "my suite.yaml", "--trial", "0"]
    assert "trial 0" in do(OTHER, *words[1:]).output


def test_a_run_from_python_names_no_command_that_needs_a_suite(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its failures can be shown again, but only a suite says how to call its service again."""
    criterion = tw.Criterion("c", tw.equals("good"), at_least=0.5)
    contract = tw.Contract("x", lambda _: "bad", [criterion])

    tw.run(contract, inputs=["a"], trials=10, store=folder / ".trialwise", progress=False).show()

    shown = capsys.readouterr().out
    assert "trialwise show x --failures" in shown
    assert "trialwise rerun" not in shown


def test_a_trial_is_run_again_with_its_input_and_its_seed(folder: Path) -> None:
    """The service of today is asked the same, and the exit code says how it went."""
    (folder / "svc.py").write_text(
        "import json, pathlib\n"
        "def ask(input, index, seed):\n"
        "    return pathlib.Path('answer').read_text() + json.dumps([input, index, seed])\n"
    )
    (folder / "answer").write_text("bad")
    text = do(BOTH, "run", "-q").output
    assert "trialwise rerun x --trial 0" in text
    shown = json.loads(do(BOTH, "show", "--failures", "--json").output)["runs"][0]["shown"][1]
    again = do(BOTH, "rerun", "x", "--trial", "1")
    assert again.exit_code == 1
    assert json.dumps([shown["asked"], 1, shown["seed"]]) in again.output
    assert f"input  {shown['asked']}" in again.output
    assert "both   contains 'beta': failed" in again.output
    assert "both   contains 'b': passed" in again.output
    assert "FAILED in the run" in again.output
    (folder / "answer").write_text("alpha beta")
    assert do(BOTH, "rerun", "--trial", "1").exit_code == 0
    data = json.loads(do(BOTH, "rerun", "x", "--trial", "1", "--json").output)
    assert (data["contract"], data["trial"], data["asked"]) == ("x", 1, shown["asked"])
    assert (data["passed"], data["passed_in_run"]) == (True, False)
    assert {one["outcome"] for one in data["checks"]} == {"passed"}
    with pytest.raises(TrialNotFound, match="its trials are 0 to"):
        do(BOTH, "rerun", "--trial", "99")
    with pytest.raises(TrialNotFound, match="no longer has an input"):
        do(BOTH.replace("[a, b]", "[{id: other, value: c}]"), "rerun", "--trial", "1")


def test_a_run_may_ask_one_input(folder: Path) -> None:
    """Nothing else is asked, and the result says so; an unknown input is refused with a hint."""
    suite = PARCEL.replace("[{id", "[{id: q1, value: a, expected: b}, {id")
    text = do(suite, "run", "-q", "--input", "q28").output
    assert "about this input, not about others" in text
    (texts,) = folder.glob(".trialwise/runs/*/texts.jsonl")
    assert texts.read_text().count('"value"') == 1
    with pytest.raises(NothingSelected, match="did you mean 'q28'"):
        do(suite, "run", "-q", "--input", "q29")


def test_the_page_marks_what_differs_between_expectation_and_reply(folder: Path) -> None:
    """Side by side, and the reply is not repeated as evidence."""
    do(PARCEL, "run", "-q", "-o", "page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")

    assert "<del>delivery</del>" in page
    assert "<ins>bad</ins>" in page
    assert ">Evidence<" not in page


SESSION = """
import trialwise as tw

TURNS = [
    {"role": "system", "content": "You refund orders."},
    {"role": "user", "content": "Please refund order 1001."},
    {"role": "assistant", "content": "Let me look it up."},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "I could not find it."},
]
CALLS = [
    {"name": "find_order", "args": {"order": 1010}, "error": "no such order", "turn": 1},
    {"name": "list_orders", "args": {}, "result": "none", "turn": 2},
]

def refund(input):
    trace = {"tool_calls": CALLS, "conversation": {"turns": TURNS}}
    return tw.Reply(value=TURNS[-1]["content"], details={"trace": trace})
"""
REFUND = """
name: refund
service: {python: "svc:refund"}
inputs: [{id: first, value: refund 1001}]
trials: 10
criteria: [{name: done, contains: refunded, at_least: 50%}]
"""


def test_messages_and_tool_calls_are_one_timeline(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked, what the model said and what it called stand in their order."""
    enter_folder(folder, monkeypatch, SESSION)
    do(REFUND, "run", "-q", "-o", "r.html")
    page = (folder / "r.html").read_text()
    steps = [
        *("Please refund order 1001.", "Let me look it up.", "find_order", "no such order"),
        *("list_orders", "I could not find it."),
    ]
    timeline = page[page.index('<ol class="calls">') :]
    shown = do(REFUND, "show", "--failures", "--trials", "1").output

    for text in (timeline, shown):
        session = text[text.index("Please refund") :]
        places = [session.index(step) for step in steps]
        assert places == sorted(places)
        assert "You refund orders." not in text
    assert "3 messages; 2 tool calls, 1 failed" in page
    (trial,) = json.loads(do(REFUND, "show", "--trials", "1", "--json").output)["runs"][0]["shown"]
    assert [one["role"] for one in trial["messages"]] == ["user", *["assistant"] * 3]


def test_messages_of_people_are_not_kept_where_inputs_are_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's own messages are replies, and stay."""
    enter_folder(folder, monkeypatch, SESSION)
    do(f"{REFUND}keep_inputs: false\n", "run", "-q", "-o", "r.html")
    kept = "".join(
        path.read_text()
        for path in folder.rglob("*")
        if path.suffix in (".html", ".json", ".jsonl")
    )

    assert "Please refund order 1001." not in kept
    assert "Let me look it up." in kept
