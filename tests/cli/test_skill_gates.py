"""Gates without a criterion, skills over several samplings, and inputs that nobody grades."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.cli.suite_folders import enter_folder, type_command

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.model.gate import Metrics, Stability

#: Of every four trials one is wrong; every session has two turns of one length and one call.
SERVICE = """
import trialwise as tw

TRACE = {
    "tool_calls": [{"name": "search", "args": {"n": 1}}],
    "conversation": {
        "tokens": {"total": 100},
        "turns": [{"role": "assistant", "content": "yes"}, {"role": "assistant", "content": "yes"}],
    },
}

def ask(question, index):
    text = "no" if index % 4 == 3 else "right"
    return tw.Reply(value=f"{text}, thanks", details={"trace": TRACE})

def half(text):
    return 0.5
"""
SKILL = """
name: skill
service: {python: "svc:ask"}
samplings: {sums: [a, b], manners: [c], notes: [d]}
trials: 8
graders:
  - {name: right, contains: right, weight: 2, sampling: sums}
  - {name: polite, contains: thanks, sampling: sums}
  - {name: style, python: "svc:half", pass_at: 0.4, sampling: manners}
metrics:
  samplings: [sums, manners, notes]
  threshold: 0.6
  k: [1, 2]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the service."""
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def run(suite: str) -> tuple[dict[str, Any], int]:
    """Run a suite; return the run in the JSON report, and the exit code."""
    done = type_command(suite, "run", "-q", "-o", "r.json")
    found: dict[str, Any] = json.loads(Path("r.json").read_text())["runs"][0]
    return found, done.exit_code


def refusal(suite: str) -> str:
    """Return why a suite is refused before anything runs."""
    with pytest.raises(tw.TrialwiseError) as refused:
        type_command(suite, "check")
    return str(refused.value)


@pytest.mark.requirement(
    "reliability Surface",
    "Gates on reliability stand in a suite without any other test.",
    "a contract with `reliability`, `stability` or `metrics` and no `criteria`",
)
@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("stability: {}", 0),
        (
            "stability: {expect: [{target: stability.variance, matcher: {exact: 0.25}}]}",
            1,
        ),
        (
            "reliability: {expect: [{target: reliability.passhat_k, matcher: {exact: 100}}]}",
            0,
        ),
    ],
)
def test_a_suite_of_gates_alone_is_decided(gate: str, code: int) -> None:
    """Without a criterion a run passes if there was a reply, and the gate decides."""
    head = 'name: gates\nservice: {python: "svc:ask"}\ninputs: [a, b]\ntrials: 8\n'
    found, ended = run(f"{head}{gate}\n")
    (result,) = [one for one in found["results"] if one["kind"] != "criterion"]

    assert ended == code
    assert result["kind"] == "gate"
    assert result["facts"]["decision"] == found["decision"]
    (replied,) = found["verdict"]["findings"]
    assert replied["criterion"] == "replied"
    assert replied["counts"]["intent_to_treat"]["passed"] == 8


@pytest.mark.requirement(
    "reliability Surface",
    "A run of a gate is graded without promising a rate.",
    "`graders` of a contract; `report_only: true` on a criterion",
)
def test_graders_decide_through_a_gate_only() -> None:
    """One of four trials fails, so not every run of every input passes."""
    suite = """
name: gates
service: {python: "svc:ask"}
inputs: [a]
trials: 8
graders: [{name: right, contains: right}]
reliability: {expect: [{target: reliability.passhat_k, matcher: {exact: 100}}]}
"""
    found, code = run(suite)

    assert code == 1
    assert found["decision"] == "FAIL"
    assert [one["facts"]["advisory"] for one in found["results"]] == [True, False]


@pytest.mark.requirement(
    "stability Gate",
    "One run, or no number of runs, is an error when the suite is loaded.",
    "`trials` of at least 2 for each input; otherwise the suite is refused",
)
@pytest.mark.parametrize("trials", ["", "trials: 2", "trials: 3"])
@pytest.mark.parametrize(
    "criteria", ["", "criteria: [{name: a, contains: right, never_fails: true}]"]
)
def test_stability_without_repeated_runs_is_refused(trials: str, criteria: str) -> None:
    """Two inputs take four trials, and no promise about a rate says how many runs there are."""
    head = f'name: gates\nservice: {{python: "svc:ask"}}\ninputs: [a, b]\n{trials}\n{criteria}\n'

    assert "at least 4" in refusal(f"{head}stability: {{}}\n")


def test_a_contract_without_criteria_and_gates_is_refused() -> None:
    """In a suite and in Python."""
    assert "say what is promised" in refusal('service: {python: "svc:ask"}\ninputs: [a]\n')
    with pytest.raises(InvalidArgument, match="or add a gate"):
        tw.Contract("x", str, [], sampling=["a"])


@pytest.mark.requirement(
    "scoring computeSkillScore",
    "A skill is the mean over stimuli, each with graders of its own; trials are never pooled.",
    "`metrics.samplings` with `graders` or criteria for each sampling",
)
@pytest.mark.requirement(
    "scoring StimulusScore",
    "A stimulus without graders is unscored: it is kept, and part of no mean.",
    "a sampling that `metrics.samplings` names and no grader does",
)
def test_a_skill_is_the_mean_over_inputs_with_their_own_graders() -> None:
    """Worked out by hand: 2 weights of right and 1 of polite; 0.5 for style; nothing for notes."""
    found, _ = run(SKILL)
    (gate,) = found["verdict"]["gates"]
    inputs = {one["input_id"]: one for one in gate["evidence"]["inputs"]}
    # Which trials an input gets is drawn; two of eight are wrong.
    rates = [Fraction(inputs[f"sums: {name}"]["passed"], 4) for name in ("1", "2")]
    scores = [inputs[f"sums: {name}"]["score"] for name in ("1", "2")]

    assert sum(scores) / 2 == pytest.approx(float((2 * Fraction(3, 4) + 1) / 3))
    assert inputs["manners: 1"]["score"] == 0.5
    assert gate["evidence"]["unscored"] == ["notes: 1"]
    assert gate["evidence"]["score"] == pytest.approx((sum(scores) + 0.5) / 3)
    # A run passes from 0.6 on: one that is right and polite has 1, one that is only polite 1/3.
    assert sum(rates) / 2 == Fraction(3, 4)
    assert inputs["manners: 1"]["passed"] == 0
    assert gate["evidence"]["pass_rate"] == pytest.approx(float(sum(rates) / 3))


def test_the_numbers_of_a_skill_can_be_limited() -> None:
    """A limit on the score of the skill decides the run; unscored inputs are counted."""
    limits = """
  expect:
    - {target: metrics.score, matcher: {schema: {minimum: 0.7}}}
    - {target: metrics.unscored, matcher: {exact: 1}}
"""
    found, code = run(SKILL + limits.lstrip("\n"))
    low, low_code = run(SKILL + limits.lstrip("\n").replace("0.7", "0.75"))

    assert (code, low_code) == (0, 1)
    assert found["results"][-1]["facts"]["metrics.score"] == pytest.approx(0.7222, abs=1e-4)
    assert low["decision"] == "FAIL"


def test_a_sampling_that_is_not_there_is_named() -> None:
    """With the ones that are."""
    assert "there is no sampling `note`" in refusal(SKILL.replace("manners, notes]", "note]"))


def test_gates_alone_work_in_python() -> None:
    """A contract without criteria has one that asks for a reply, and reports it."""
    contract = tw.Contract("x", str, [], sampling=["a", "b"], stability=Stability())
    skill = tw.Contract(
        "y",
        str,
        [tw.Criterion("a", tw.contains("a"), at_least=0.2, trials=20, sampling="one")],
        sampling={"one": ["a"], "two": ["b"]},
        metrics=Metrics(samplings=("one", "two")),
    )
    result = tw.run(skill, trials=20, store=None)
    (gate,) = result.verdict.gates

    assert [one.name for one in contract.criteria] == ["replied"]
    assert [one.name for one in skill.criteria] == ["a", "replied [two]"]
    assert gate.evidence.unscored == ("two: 1",)  # type: ignore[union-attr]
    with pytest.raises(tw.TrialwiseError, match="trials"):
        tw.run(contract, store=None)
