"""How many trials do I need: the questions of `trialwise plan`, asked in Python."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from click.testing import CliRunner

import trialwise as tw
from trialwise.cli.plan_command import command
from trialwise.errors import InvalidArgument

QUESTIONS: list[tuple[Any, list[str]]] = [
    (lambda: tw.plan(0.9, max_trials=40, trial_usd=0.02), ["90%", "--max-trials", "40"]),
    (lambda: tw.planning.plan_compliance(0.9, trials=100), ["90%", "--fixed", "--trials", "100"]),
    (
        lambda: tw.planning.plan_regression((951, 1000), drop=0.1),
        ["regression", "--baseline", "951/1000", "--drop", "10%"],
    ),
    (
        lambda: tw.planning.plan_latency((0.95,), trials=400, limit_s=0.5),
        ["latency", "--trials", "400", "--limit", "500ms"],
    ),
    (lambda: tw.planning.plan_precision(0.9, margin=0.05), ["90%", "--estimate", "--margin", "5%"]),
    (
        lambda: tw.planning.plan_compare(0.9, drop=0.1, pairs=100),
        ["compare", "--rate", "90%", "--drop", "10%", "--pairs", "100"],
    ),
]


@pytest.mark.parametrize(
    ("ask", "words"), QUESTIONS, ids=[words[0] + words[1] for _, words in QUESTIONS]
)
def test_python_and_the_command_line_give_one_answer(ask: Any, words: list[str]) -> None:
    """Number by number; the command line writes it as JSON."""
    priced = ["--price", "0.02"] if words[1] == "--max-trials" else []

    said = CliRunner().invoke(command, [*words, *priced, "--json"], standalone_mode=False)

    assert said.exception is None, said.output
    assert json.loads(said.stdout) == json.loads(ask().render("json"))


def test_an_answer_shows_itself() -> None:
    """As text, as plain values, as a page and as charts."""
    answer = tw.planning.plan_compliance(0.9, trials=100)
    stream = io.StringIO()

    answer.show(stream=stream)

    assert answer.render("text", unicode=True).splitlines()[0] in stream.getvalue()
    assert "compliance" == answer.to_dict()["form"]
    assert answer.render("html").startswith("<!DOCTYPE html>")
    assert "<svg" in answer.render("svg")


def test_an_answer_says_whether_no_such_test_can_pass() -> None:
    """Five trials cannot show 99 %."""
    assert tw.planning.plan_compliance(0.99, trials=5).is_refused
    assert not tw.planning.plan_compliance(0.9, trials=100).is_refused


def test_a_question_that_makes_no_sense_names_its_argument() -> None:
    """Before anything is computed."""
    with pytest.raises(InvalidArgument, match="required_rate"):
        tw.plan(1.5)


@pytest.mark.slow
def test_a_long_search_is_announced() -> None:
    """With the upper limit on trials, before it starts."""
    limits: list[int] = []

    from trialwise.runtime.trial_sizing import plan

    plan(0.9, max_trials=40, before_search=limits.append)

    assert [40] == limits
