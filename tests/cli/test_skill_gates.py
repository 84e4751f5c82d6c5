"""Gates without a criterion, skills over several samplings, and inputs that nobody grades."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import pairwise
from math import comb
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from scipy.stats import beta
from tests.cli.suite_folders import enter_folder, type_command

import trialwise as tw
from trialwise import stats
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
        ("stability: {expect: [{target: stability.variance, matcher: {exact: 0.25}}]}", 1),
        ("reliability: {expect: [{target: reliability.passhat_k, matcher: {exact: 100}}]}", 0),
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


PASSES = """
name: passes
service: {python: "svc:ask"}
inputs: [a]
trials: 5
graders: [{name: right, contains: right}]
metrics: {k: [1, 2, 4, 5]}
"""


def clopper_pearson(passed: int, trials: int) -> tuple[float, float]:
    """The exact 95 % interval of a rate, by the quantiles of the beta distribution."""
    low = beta.ppf(0.025, passed, trials - passed + 1) if passed else 0.0
    high = beta.ppf(0.975, passed + 1, trials - passed) if passed < trials else 1.0
    return float(low), float(high)


@pytest.mark.requirement(
    "scoring passAtK",
    "pass@k is 1 − C(n−c, k)/C(n, k), and pass^k says whether all of k trials succeed.",
    "`metrics`: a table, a line for each input, JSON and JUnit properties, with exact intervals",
)
def test_every_report_has_pass_k_of_each_input_with_one_interval_behind_both() -> None:
    """4 of 5 passed: pass@k and pass^k by binomial coefficients, ends by p → 1 − (1−p)^k and p^k.

    So the ends are monotone in k, pass@k is nowhere below pass^k, and the estimate is inside.
    """
    reports = [x for name in ("r.json", "r.md", "r.html", "r.xml") for x in ("-o", name)]
    type_command(PASSES, "run", "-q", *reports)
    found = json.loads(Path("r.json").read_text())["runs"][0]
    rows = found["inputs"][0]["criteria"]["right"]["pass_k"]
    low, high = clopper_pearson(4, 5)

    assert [row["k"] for row in rows] == [1, 2, 4, 5]
    for row in rows:
        k = row["k"]
        some, every = 1 - comb(1, k) / comb(5, k), comb(4, k) / comb(5, k)
        assert (row["pass_at_k"], row["pass_hat_k"]) == pytest.approx((some, every))
        ends = 1 - (1 - low) ** k, 1 - (1 - high) ** k
        assert row["pass_at_k_low"] == pytest.approx(min(ends[0], some))
        assert row["pass_at_k_high"] == pytest.approx(max(ends[1], some))
        assert row["pass_hat_k_low"] == pytest.approx(min(low**k, every))
        assert row["pass_hat_k_high"] == pytest.approx(max(high**k, every))
    for one, other in pairwise(rows):
        assert one["pass_at_k_low"] <= other["pass_at_k_low"]
        assert one["pass_at_k_high"] <= other["pass_at_k_high"]
        assert one["pass_hat_k_low"] >= other["pass_hat_k_low"]
        assert one["pass_hat_k_high"] >= other["pass_hat_k_high"]
    page = Path("r.md").read_text().replace("\\", "").replace("&#8203;", "")
    assert "1: 4 of 5 passed, pass@4 1.000" in page
    assert "pass@k and pass^k of each input" in Path("r.html").read_text()
    values = {one.get("name"): one.get("value") for one in ET.parse("r.xml").iter("property")}
    assert float(values["metrics.input.1.pass_hat.4"] or 0) == pytest.approx(1 / 5)
    assert float(values["metrics.input.1.pass_hat.4.high"] or 0) == pytest.approx(high**4)
    detail = type_command(PASSES, "show", "passes", "--transparent")
    assert "PASS@K AND PASS^K OF EACH INPUT" in detail.output


@pytest.mark.requirement(
    "scoring computeMultiTrialMetrics",
    "The metrics of true, true, false, true, true: rate 0.8, pass^5 0.33; pass@5 by the unbiased "
    "estimator is 1, and not the 0.99 that the document prints.",
    "`stats.multi_trial_metrics`; `metrics.pass_at.K`, `metrics.pass_hat_plugin.K`",
)
def test_the_worked_numbers_of_the_scoring_reference() -> None:
    """passAtK(5, 3, 5) = 1, passToTheK(0.8, 5) = 0.328, weights 1 and ½ give 0.667 < 0.7."""
    found = stats.multi_trial_metrics([True, True, False, True, True])
    marks = [
        stats.GraderResult(grader="a", score=1.0, passed=True),
        stats.GraderResult(grader="b", score=0.0, passed=False),
    ]
    weighed = stats.stimulus_score("s", [marks], weights={"a": 1, "b": 0.5}, threshold=0.7)

    assert stats.pass_at_k(5, 3, 5) == 1.0
    assert stats.pass_hat_k_plugin(0.8, 5) == pytest.approx(0.8**5)
    assert (found.pass_rate, found.pass_at_k, found.k) == (0.8, 1.0, 5)
    assert round(found.pass_hat_k_plugin, 2) == 0.33
    assert weighed.aggregate_score == pytest.approx(2 / 3)
    assert weighed.trial_passed == (False,)
    assert weighed.flakiness == stats.Flakiness(flaky=False, percent=0.0)


def test_a_panel_of_a_suite_has_the_score_of_the_reference() -> None:
    """Weights 1 and ½, the second grader fails: 0.667 does not reach 0.7."""
    suite = """
name: panel
service: {python: "svc:ask"}
inputs: [a]
trials: 20
criteria:
  - name: panel
    graders: [{contains: thanks, weight: 1}, {contains: never, weight: 0.5}]
    pass_at: PASS
    at_least: 50%
"""
    low, code = run(suite.replace("PASS", "0.7"))
    high, reached = run(suite.replace("PASS", "0.66"))

    assert (code, reached) == (1, 0)
    for found in (low, high):
        facts = found["results"][0]["facts"]
        assert facts["score_mean"] == pytest.approx(2 / 3)


@pytest.mark.requirement(
    "scoring around",
    "A skill is compared with and without: how much it adds, pair by pair.",
    "`tw.compare` with `Comparison.score_lift`, an interval for every distribution of scores",
)
def test_what_a_skill_adds_is_the_mean_of_the_differences_within_pairs() -> None:
    """Scores by the place of the trial, so that the differences are known; bounds in rationals."""

    def contract(name: str, offset: float) -> tw.Contract:
        def answer(_: str, index: int) -> str:
            return f"{index % 5 / 10 + offset:.1f}"

        def good(text: str) -> float:
            return float(text)

        criterion = tw.Criterion("good", good, pass_at=0.5, at_least=0.5)
        return tw.Contract(name, answer, [criterion], sampling=["a", "b"])

    found = tw.compare(contract("plain", 0.1), contract("skilled", 0.4), trials=40, store=None)
    lift = found.score_lift("good", confidence=0.9)
    low, high = ((end + 1) / 2 for end in lift.interval)

    assert (lift.control, lift.candidate) == pytest.approx((0.3, 0.6))
    assert lift.pairs == 40
    assert lift.difference == pytest.approx(0.3)
    # All differences are 0.3: 40 scores of 0.65, whose capital is known in closed form.
    for end, score in ((low, 0.65), (1 - high, 0.35)):
        shares = [2.0**-k for k in range(5)]
        capital = sum((1 - one + one * score / end) ** 40 for one in shares) / len(shares)
        assert capital == pytest.approx(20, rel=1e-4)
    with pytest.raises(InvalidArgument, match="be one of good"):
        found.score_lift("bad")
