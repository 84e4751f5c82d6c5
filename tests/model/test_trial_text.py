"""The text of a journal line is the JSON of the trial, by whichever way it is made."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any, cast

import pytest

from trialwise.model.reply import Usage
from trialwise.model.trial import CheckResult, ErrorClass, Outcome, Trial
from trialwise.model.trial_text import PlainTrial, make_plain_trial, spell_trial

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
    record = {**trial.to_dict(), "x": trial.experiment}
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
        {"latency_s": 1e22},
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
    kept = Trial.from_dict(line, experiment=trial.experiment, criteria=names)
    assert kept.to_dict() == trial.to_dict()


@pytest.mark.parametrize("name", ["latency_s", "started_s"])
def test_a_number_that_json_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        spell_trial(replace(_PLAIN, **cast("Any", {name: float("inf")})))


def test_every_field_of_a_trial_is_among_the_changes() -> None:
    """A new field must not be forgotten by the short way."""
    told = {"index", "seed", "shape", "setup_usage", "setup_cost_usd"}
    parameters = next(mark.args[1] for mark in test_the_text_is_the_record_in_json.pytestmark)
    changed = {name for changes in parameters for name in changes}

    assert set(Trial.__slots__) == told | changed


def _make_plain(
    experiment: str = "inputs", input_id: str = "1", latency_s: float = 1.5e-05, reply: str = "555"
) -> Trial:
    return make_plain_trial(experiment, 3, input_id, 2**62 + 1, _PASSED, latency_s, 0.25, reply)


def test_a_plain_trial_is_what_the_class_makes() -> None:
    """Every field is set, also those that are as they are by default."""
    made = _make_plain()

    assert type(made) is PlainTrial
    assert made == _PLAIN
    assert _PLAIN == made
    assert hash(made) == hash(_PLAIN)
    assert repr(made) == repr(_PLAIN)
    assert [getattr(made, name) for name in Trial.__slots__] == [
        getattr(_PLAIN, name) for name in Trial.__slots__
    ]


def test_a_plain_trial_travels_between_processes() -> None:
    made = pickle.loads(pickle.dumps(_make_plain()))

    assert type(made) is PlainTrial
    assert made == _PLAIN


def test_a_changed_plain_trial_is_not_plain_any_more() -> None:
    changed = replace(_make_plain(), outcomes=_FAILED)

    assert type(changed) is Trial
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
        {"latency_s": 1e22},
    ],
    ids=str,
)
def test_the_text_of_a_plain_trial_is_the_record_in_json(changes: dict[str, Any]) -> None:
    trial = _make_plain(**changes)

    assert spell_trial(trial) == _to_json(replace(trial, **changes))
