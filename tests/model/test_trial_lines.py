"""The text of a journal line is the JSON of the trial, by whichever way it is made."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any, cast

import pytest

from trialwise.model.reply import Usage
from trialwise.model.trial import CheckResult, ErrorClass, Outcome, Trial
from trialwise.model.trial_lines import read_trial, spell_trial, write_trial

_PASSED = tuple(Outcome(criterion=name, result=CheckResult.ok()) for name in ("short", "polite"))
_PLAIN = Trial(
    experiment="inputs",
    index=3,
    input_id="1",
    seed=2**62 + 1,
    outcomes=_PASSED,
    latency_s=1.5e-05,
    started_s=0.25,
    reply="555",
)
_FAILED = (replace(_PASSED[0], result=CheckResult.fail("too long")), _PASSED[1])


def _to_json(trial: Trial) -> str:
    """An independent way: Python's own encoder on the record."""
    record = {**write_trial(trial), "x": trial.experiment}
    return json.dumps(record, separators=(",", ":"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"outcomes": ()},
        {"outcomes": _FAILED},
        {"reply": 'He said "5\\55"\n\t\x00 für 5 € \U0001f600 \u2028'},
        {"reply": ""},
        {"reply": None},
        {"experiment": 'the "hard" ones\n', "input_id": "Grüße\x7f"},
        {"latency_s": None},
        {"latency_s": 0.0},
        {"latency_s": 2},
        {"latency_s": 0.1 + 0.2},
        {"latency_s": 1e-22},
        {"started_s": 0.0},
        {"started_s": 1e-06},
        {"error": "it was late"},
        {"error_class": ErrorClass.TIMEOUT},
        {"attempts": 2, "attempt_errors": ("refused",)},
        {"usage": Usage(input_tokens=3)},
        {"cost_usd": 0.01},
        {"setup_s": 0.5},
        {"judging_usage": Usage(output_tokens=1)},
        {"judging_cost_usd": 0.0},
        {"tool_calls": ({"name": "search"},)},
        {"whole": {"value": {"n": 1}}},
        {"messages": (("user", "hello"),)},
        {"ended": "answer"},
        {"exit_code": 0},
        {"traceback": "0f3a"},
    ],
    ids=str,
)
def test_the_text_is_the_record_in_json(changes: dict[str, Any]) -> None:
    trial = replace(_PLAIN, **changes)

    text = spell_trial(trial)

    assert text == _to_json(trial)
    line = json.loads(text)
    assert line.pop("x") == trial.experiment
    names = tuple(one.criterion for one in trial.outcomes)
    kept = read_trial(line, experiment=trial.experiment, criteria=names)
    assert write_trial(kept) == write_trial(trial)


@pytest.mark.parametrize("name", ["latency_s", "started_s"])
def test_a_number_that_json_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        spell_trial(replace(_PLAIN, **cast("Any", {name: float("inf")})))


def test_every_field_of_a_trial_is_among_the_changes() -> None:
    """A new field must not be forgotten by the short way."""
    told = {"index", "seed", "shape", "setup_usage", "setup_cost_usd", "is_plain"}
    parameters = next(mark.args[1] for mark in test_the_text_is_the_record_in_json.pytestmark)
    changed = {name for changes in parameters for name in changes}

    assert set(Trial.__slots__) == told | changed


def _make_plain(**changes: Any) -> Trial:
    made = replace(_PLAIN, **changes)
    made.is_plain = True
    return made


def test_that_a_trial_is_known_to_be_plain_changes_nothing_of_it() -> None:
    made = _make_plain()

    assert made == _PLAIN
    assert hash(made) == hash(_PLAIN)
    assert repr(made) == repr(_PLAIN)


def test_a_plain_trial_travels_between_processes() -> None:
    made = pickle.loads(pickle.dumps(_make_plain()))

    assert made.is_plain
    assert made == _PLAIN


def test_a_changed_plain_trial_is_not_plain_any_more() -> None:
    changed = replace(_make_plain(), outcomes=_FAILED)

    assert not changed.is_plain
    assert changed == replace(_PLAIN, outcomes=_FAILED)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"reply": 'He said "5\\55"\n\t\x00 für 5 € \U0001f600 \u2028'},
        {"reply": ""},
        {"experiment": 'the "hard" ones\n', "input_id": "Grüße\x7f"},
        {"latency_s": 0.0},
        {"latency_s": 0.1 + 0.2},
        {"latency_s": 1e-22},
    ],
    ids=str,
)
def test_the_text_of_a_plain_trial_is_the_record_in_json(changes: dict[str, Any]) -> None:
    trial = _make_plain(**changes)

    assert spell_trial(trial) == _to_json(replace(trial, **changes))


#: By the key of a line: values that a trial has, and values that anybody could write there.
_LINE_VALUES: dict[str, tuple[list[Any], list[Any]]] = {
    "i": ([0, 7], [-1, True, 1.0, "1", None]),
    "in": (["a"], [1, None]),
    "seed": ([-5, 2**63], [2**64, 1.5, "7"]),
    "ok": (["11"], [11, None]),
    "latency_s": ([0, 0.5], [-0.1, float("nan"), float("inf"), "1", True]),
    "at": ([-0.5, 3], [float("nan"), "3"]),
    "reply": (["555"], [555]),
    "whole": ([{"value": 1}, {}], [[], "555"]),
    "class": (["timeout"], ["late", 1]),
    "attempts": ([2], [-1, 2.0]),
    "attempt_errors": ([["refused"], []], ["refused", [1]]),
    "usage": ([[3, 2]], [[3], [3, 2, 1], [3, -2], [3, "2"], {"in": 3}]),
    "setup_usage": ([[0, 0]], [[0]]),
    "judging_usage": ([[0, 1]], [[1, None]]),
    "cost_usd": ([0.01], [-1, "$1"]),
    "setup_s": ([1], ["1s"]),
    "setup_cost_usd": ([0.5], [[0.5]]),
    "judging_cost_usd": ([0.5], [float("nan")]),
    "error": (["late"], [None]),
    "tool_calls": ([[{"name": "find"}]], [["find"], {}]),
    "messages": ([[["user", "hello"]]], [[["user"]], [["user", "hello", "?"]], [["user", 1]]]),
    "shape": (
        [[2, 1, 1, [5, 6], 30], [0, 0, 0, [], None]],
        [[2, 1, 1, [5, 6]], [2, 1, 1, [5, 6], 30, 1], [2, 1, 1, ["5"], 30], [2, -1, 1, [], 30]],
    ),
    "ended": (["answer"], [0]),
    "exit": ([0, -9], [1.5, "0"]),
    "raised": (["0f3a"], [1]),
    "failed": (
        [[[0, "condition", "short", "too long", "x"]], [[0, "condition", None, "", "", "timeout"]]],
        [[[0, "condition", None, ""]], [[0, "condition", None, "", "", "none", ""]], [["0"]], {}],
    ),
    "also": (
        [[[0, "polite"]], [[0, "polite", "condition", "rude", "x"]]],
        [[[0]], [[0, "polite", "condition"]], [[0, "polite", 1, "", ""]], [["0", "polite"]]],
    ),
    "x": (["inputs"], [None]),
}


@pytest.mark.parametrize(
    ("key", "value", "is_read"),
    [
        (key, value, is_read)
        for key, (good, bad) in _LINE_VALUES.items()
        for values, is_read in ((good, True), (bad, False))
        for value in values
    ],
    ids=str,
)
def test_a_line_holds_what_a_trial_has_or_is_refused(key: str, value: Any, is_read: bool) -> None:
    """A checksum says that a line is whole, not that a trial stands in it."""
    line: dict[str, Any] = {"i": 0, "in": "1", "seed": 7, "ok": "11", key: value}
    if not is_read:
        with pytest.raises(ValueError, match=r"cannot be|is not a valid"):
            read_trial(line, experiment="inputs", criteria=("short", "polite"))
        return

    trial = read_trial(line, experiment="inputs", criteria=("short", "polite"))

    again = read_trial(write_trial(trial), experiment="inputs", criteria=("short", "polite"))
    assert trial == again


def test_what_a_later_version_has_written_is_left_alone() -> None:
    """A key that nobody knows yet says nothing of the trial."""
    line = {"i": 0, "in": "1", "seed": 7, "ok": "", "mood": ["good"]}

    assert read_trial(line, experiment="inputs", criteria=()).index == 0
