"""Scores from 0 to 1: what passes, what a mean decides, and where reports show it."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.cli.suite_folders import enter_folder, type_command

import trialwise as tw
from trialwise.errors import BrokenCheck, InvalidArgument

#: Trial i answers i mod 10, so that every number of trials by ten has the same scores.
SERVICE = """
import trialwise as tw

def ask(question, index):
    return str(index % 10)

def tenth(text):
    return int(text) / 10

async def later(text):
    return int(text) / 10

def above(text):
    return int(text) > 4

def graded(text):
    score = int(text) / 10
    return tw.CheckResult(passed=score > 0.5, score=score,
                          reason=None if score > 0.5 else tw.model.FailReason.CONDITION)

def beyond(text):
    return 1.2

def count(text):
    return 3
"""
HEAD = """
name: graded
service: {python: "svc:ask"}
inputs: [one]
trials: 100
curtail: false
criteria:
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A service whose scores are 0, 0.1 … 0.9 in turn."""
    return enter_folder(tmp_path, monkeypatch, SERVICE)


def run(criteria: str, *arguments: str, head: str = HEAD) -> tuple[dict[str, Any], int]:
    """Run a suite with these criteria; return the run in the JSON report, and the exit code."""
    done = type_command(head + criteria, "run", "-q", "-o", "r.json", *arguments)
    found: dict[str, Any] = json.loads(Path("r.json").read_text())["runs"][0]
    return found, done.exit_code


def refusal(suite: str) -> str:
    """Return why a suite is refused before anything runs."""
    with pytest.raises(tw.TrialwiseError) as refused:
        type_command(suite, "check")
    return str(refused.value)


def facts(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the numbers of one criterion."""
    return next(one["facts"] for one in found["results"] if one["name"] == name)


def capital(scores: list[Fraction], mean: Fraction) -> Fraction:
    """What bets of 1, 1/2, 1/4 … win, in rationals."""
    shares = [Fraction(1, 2**k) for k in range(math.ceil(math.log2(len(scores)) / 2) + 2)]
    total = Fraction(0)
    for share in shares:
        won = Fraction(1)
        for score in scores:
            won *= 1 - share + share * score / mean
        total += won
    return total / len(shares)


@pytest.mark.requirement(
    "scoring StimulusScore",
    "A grader gives a score between 0 and 1.",
    "a Python check that returns a score; `pass_at` says which score passes",
)
@pytest.mark.parametrize("check", ["svc:tenth", "svc:later", "svc:graded"])
def test_pass_at_says_which_score_passes(check: str) -> None:
    """Of 0, 0.1 … 0.9 three reach 0.7, however the function gives its score."""
    found, code = run(f'  - {{name: good, python: "{check}", pass_at: 0.7, at_least: 20%}}')

    assert facts(found, "good") | {"passed": 30, "trials": 100, "pass_at": 0.7} == facts(
        found, "good"
    )
    assert facts(found, "good")["score_mean"] == pytest.approx(0.45)
    assert code == 0


def test_a_score_without_a_threshold_is_neither_a_pass_nor_a_failure() -> None:
    """The run stops, and the message says what is missing."""
    with pytest.raises(BrokenCheck, match=r"nothing says which score passes.*pass_at") as stopped:
        run('  - {name: good, python: "svc:tenth", at_least: 20%}')

    assert "mean_at_least" in str(stopped.value)


@pytest.mark.parametrize("check", ["svc:beyond", "svc:count"])
def test_a_score_beyond_1_stops_the_run(check: str) -> None:
    """It is no score."""
    with pytest.raises(BrokenCheck, match="instead of a score from 0 to 1"):
        run(f'  - {{name: good, python: "{check}", pass_at: 0.7, at_least: 20%}}')


@pytest.mark.requirement(
    "scoring SkillScore",
    "A skill passes if its overall score reaches a threshold.",
    "`mean_at_least` with an error rate; `metrics.score` as a gate",
)
@pytest.mark.parametrize(
    ("required", "decision", "ground"),
    [("0.35", "PASS", None), ("0.4", "INCONCLUSIVE", "not shown"), ("0.55", "FAIL", "shown below")],
)
def test_a_mean_is_decided_by_its_bounds(required: str, decision: str, ground: str | None) -> None:
    """PASS, FAIL and its ground are those of the capital in rationals; the interval agrees."""
    found, code = run(f'  - {{name: mean, python: "svc:tenth", mean_at_least: {required}}}')
    scores = [Fraction(k % 10, 10) for k in range(100)]
    limit = Fraction(required)
    shown = capital(scores, limit) >= 20
    below = capital([1 - one for one in scores], 1 - limit) >= 20
    found_facts, finding = facts(found, "mean"), found["verdict"]["findings"][0]

    assert (decision == "PASS", ground == "shown below") == (shown, below)
    assert found_facts["decision"] == decision
    assert finding["evidence"]["ground"] == ground
    assert (found_facts["interval_low"] >= float(limit)) is shown
    assert (found_facts["interval_high"] < float(limit)) is below
    assert found_facts["score_mean"] == found_facts["estimate"] == pytest.approx(0.45)
    assert code == {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3}[decision]


def test_what_shows_neither_may_fail() -> None:
    """As with a rate, and the label says that nothing is shown."""
    mean = '{name: mean, python: "svc:tenth", mean_at_least: 0.4, undecided: fail}'
    found, code = run(f"  - {mean}")

    assert facts(found, "mean")["decision"] == "FAIL"
    assert facts(found, "mean")["label"] == "FAIL (not shown)"
    assert code == 1


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (HEAD.replace("trials: 100", ""), "a fixed number of trials"),
        (HEAD.replace("trials: 100", "trials: 5"), "even if all scores are 1"),
        (HEAD + "", "strictly between 0 and 1"),
        (HEAD.replace("trials: 100", "trials: 100\nclaim: no-generalisation"), "claim"),
    ],
)
def test_a_mean_that_nothing_could_show_is_refused(head: str, message: str) -> None:
    """Before the first trial, with the way out."""
    required = "1.0" if "strictly" in message else "0.8"
    suite = f'{head}  - {{name: mean, python: "svc:tenth", mean_at_least: {required}}}'

    assert message in refusal(suite)


@pytest.mark.parametrize(("required", "label"), [("0.4", "SMOKE PASS"), ("0.5", "FAIL")])
def test_a_small_smoke_run_passes_on_the_observed_mean(required: str, label: str) -> None:
    """Ten scores of 0.45 on average would not show a mean of 0.9, and 10 are too few to."""
    head = HEAD.replace("trials: 100", "trials: 10\nintent: smoke")
    mean = f"{{name: mean, python: 'svc:tenth', mean_at_least: {required}, confidence: 99.999%}}"
    found, code = run(f"  - {mean}", head=head)

    assert facts(found, "mean")["label"] == label
    assert code == (0 if label == "SMOKE PASS" else 1)
    assert found["results"][0]["statement"].startswith("smoke: the mean") is (code == 0)


@pytest.mark.requirement(
    "scoring weights",
    "Graders have weights: the score of a trial is Σ weight · score / Σ weight.",
    "`graders` with `weight`; `Criterion(weights=…)`",
)
def test_a_panel_weighs_its_graders() -> None:
    """(3 · score + 1 · above) / 4 reaches 0.7 from 6 on, where it is exactly 0.7."""
    panel = """
  - name: panel
    graders:
      - {python: "svc:tenth", weight: 3, name: tenth}
      - {python: "svc:above"}
    pass_at: 0.7
    at_least: 20%
"""
    found, _ = run(panel)
    scores = [(3 * Fraction(k, 10) + (k > 4)) / 4 for k in range(10)]
    passing = sum(one >= Fraction(7, 10) for one in scores)
    plan = found["verdict"]["plan"]["criteria"][0]

    assert passing == 4
    assert facts(found, "panel")["passed"] == 10 * passing
    assert facts(found, "panel")["score_mean"] == pytest.approx(float(sum(scores) / 10))
    assert plan["graders"] == [["tenth", 3.0], ["above", 1.0]]


def test_without_a_threshold_every_check_of_a_criterion_has_to_hold() -> None:
    """Weights without one would mean nothing, and are refused."""
    with pytest.raises(InvalidArgument, match="weights must go with pass_at"):
        tw.Criterion("x", [tw.contains("a"), tw.contains("b")], at_least=0.5, weights=[1, 2])
    with pytest.raises(InvalidArgument, match="as many as the checks"):
        tw.Criterion("x", tw.contains("a"), at_least=0.5, pass_at=0.5, weights=[1, 2])
    suite = HEAD + "  - {name: x, graders: [{contains: a, weight: 2}], at_least: 50%}"
    assert "pass_at" in refusal(suite)


@pytest.mark.parametrize("weight", ["0", "-1"])
def test_a_weight_is_above_0(weight: str) -> None:
    """A grader that counts nothing is left out."""
    grader = f"{{contains: a, weight: {weight}}}"
    suite = HEAD + f"  - {{name: x, graders: [{grader}], pass_at: 0.5, at_least: 50%}}"

    assert "the weight must be above 0" in refusal(suite)


def test_every_report_shows_the_mean_and_its_interval() -> None:
    """Terminal, Markdown, HTML, JUnit and JSON, for a rate over scores and for a mean."""
    rows = """
  - {name: good, python: "svc:tenth", pass_at: 0.7, at_least: 20%}
  - {name: mean, python: "svc:tenth", mean_at_least: 0.35}
"""
    reports = [x for name in ("r.json", "r.md", "r.html", "r.xml") for x in ("-o", name)]
    done = type_command(HEAD + rows, "run", *reports)
    found = json.loads(Path("r.json").read_text())["runs"][0]
    low, high = (facts(found, "good")[f"score_{end}"] for end in ("low", "high"))
    ends = f"[{math.floor(1000 * low) / 1000:.3f}, {math.ceil(1000 * high) / 1000:.3f}]"

    text = re.sub(r"\s+", " ", done.output)
    assert f"mean score 0.450 {ends} (90 % interval) of 100 scores; 0.7 passes" in text
    assert re.search(rf"mean +PASS +mean 0.450 +{re.escape(ends)} +required ≥ 0.35", done.output)
    for name in ("r.md", "r.html"):
        page = Path(name).read_text().replace("\\", "")
        assert "0.450" in page
        assert ends in page
    values = {one.get("name"): one.get("value") for one in ET.parse("r.xml").iter("property")}
    assert float(values["mean of good.score_mean"] or 0) == pytest.approx(0.45)
    assert float(values["mean of good.score_low"] or 0) == low


def test_a_kept_run_with_scores_is_verified_resumed_and_shown() -> None:
    """Scores stand in the journal with every grader's, and are decided again from there."""
    panel = """
  - name: panel
    graders: [{python: "svc:tenth", weight: 3, name: tenth}, {python: "svc:above"}]
    mean_at_least: 0.3
"""
    type_command(HEAD.replace("curtail", "budget: {trials: 40}\ncurtail") + panel, "run", "-q")
    resumed, _ = run(panel, "--resume")
    verified = type_command(HEAD + panel, "show", "--verify")
    (journal, *_) = sorted(Path(".trialwise/runs").glob("*/journal.jsonl"))
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    ninth = next(one for one in lines if one.get("i") == 9)

    assert ninth["scores"] == [[0, pytest.approx((2.7 + 1) / 4), 0.9, 1.0]]
    assert facts(resumed, "panel")["score_mean"] == pytest.approx((3 * 0.45 + 0.5) / 4)
    assert "VERIFIED" in verified.output


def test_a_trial_without_a_reply_scores_0() -> None:
    """A timeout or an error of the service counts as it does for a rate."""

    def ask(_: str, index: int) -> str:
        if index % 4 == 0:
            raise RuntimeError("no")
        return "text"

    criterion = tw.Criterion("mean", lambda text: len(text) / 5, mean_at_least=0.5, trials=40)
    result = tw.run(tw.Contract("x", ask, [criterion], sampling=["a"]), store=None)
    scores = result.verdict.findings[0].scores
    assert scores is not None

    assert scores.mean == pytest.approx(0.6)


def test_each_input_has_a_mean_of_its_own() -> None:
    """One input that scores low fails although the mean of all would pass."""
    criterion = tw.Criterion(
        "mean",
        lambda text: 0.95 if text == "a" else 0.4,
        mean_at_least=0.6,
        trials=40,
        each_input=True,
    )
    contract = tw.Contract("x", lambda question: question, [criterion], sampling=["a", "b"])
    (finding,) = tw.run(contract, store=None).verdict.findings

    assert [part.decision for part in finding.by_input] == ["PASS", "FAIL"]
    assert finding.scores is not None
    assert finding.scores.mean == pytest.approx(0.675)


def test_a_changed_threshold_or_weight_is_another_criterion() -> None:
    """A baseline of the one is not compared with the other."""
    from trialwise.checks.criterion_scopes import criterion_structure

    def structure(**more: Any) -> str:
        checks = [tw.contains("a"), tw.contains("b")]
        return criterion_structure(tw.Criterion("x", checks, at_least=0.5, **more))

    known = {
        structure(),
        structure(pass_at=0.5),
        structure(pass_at=0.7),
        structure(pass_at=0.7, weights=[1, 2]),
    }
    assert len(known) == 4
    assert structure(pass_at=0.7, weights=[1, 1]) == structure(pass_at=0.7)


@pytest.mark.requirement(
    "scoring StimulusScore",
    "Scores of trials that were graded elsewhere are aggregated.",
    "`score --pass-at`, `score --mean-at-least`, `score(mean_at_least=…)`",
)
def test_a_file_of_scores_is_decided_by_its_mean() -> None:
    """The same bounds as of a run, and the same refusal where the scores are on another scale."""
    scores = [Fraction(k % 10, 10) for k in range(100)]
    Path("s.csv").write_text("q,score\n" + "".join(f"a,{float(one)}\n" for one in scores))
    done = type_command("", "score", "s.csv", "--input", "q", "--mean-at-least", "0.35")
    shown = type_command("", "score", "s.csv", "--input", "q", "--at-least", "20%", "--pass-at=0.7")
    Path("points.csv").write_text("q,score\n" + "a,4\na,1\n" * 20)

    assert (capital(scores, Fraction("0.35")) >= 20) is (done.exit_code == 0)
    assert "mean 0.450" in done.output
    assert "30 of 100 trials passed" in shown.output
    assert "mean score 0.450" in shown.output
    with pytest.raises(InvalidArgument, match="scores from 0 to 1"):
        type_command("", "score", "points.csv", "--input", "q", "--mean-at-least", "0.5")
    points = type_command(
        "", "score", "points.csv", "--input", "q", "--at-least=20%", "--pass-at=3"
    )
    assert "mean score" not in points.output


@pytest.mark.requirement(
    "scoring panel",
    "A panel of judges gives the mean of what its members say.",
    "a `judge` in a criterion with `pass_at` or `mean_at_least`: the share of votes that pass",
)
def test_a_judge_that_grades_gives_the_share_of_its_votes_and_only_advises() -> None:
    """Two of three jurors pass: 2/3 reaches 0.6, and nobody has measured such scores."""
    from trialwise.judges import Juror, judge
    from trialwise.services import CallableService

    def vote(answer: str) -> Juror:
        return Juror(CallableService(lambda _: answer), name=answer)

    jurors = [vote(f'{{"pass": true, "reasoning": "{one}"}}') for one in ("fine", "good")]
    jurors.append(vote('{"pass": false, "reasoning": "too short"}'))
    panel = judge("The answer is polite.", *jurors, name="polite")
    graded = tw.Criterion("graded", panel, pass_at=0.6, at_least=0.5)
    plain = tw.Criterion("plain", tw.contains("a"), at_least=0.5)
    contract = tw.Contract("x", lambda _: "a", [graded, plain], sampling=["q"])
    finding, _ = tw.run(contract, trials=12, store=None).verdict.findings
    assert finding.scores is not None

    assert finding.scores.mean == pytest.approx(2 / 3)
    assert finding.tally.rate == 1.0
    assert finding.advisory


def test_scores_of_a_long_run_are_read_back_from_its_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where no trial is held whole, the mean and the failures are the same."""
    panel = """
  - name: panel
    graders: [{python: "svc:tenth", weight: 3, name: tenth}, {python: "svc:above"}]
    pass_at: 0.7
    at_least: 20%
"""
    whole, _ = run(panel, "--seed", "5")
    monkeypatch.setattr("trialwise.model.trial_table.WHOLE_BYTES", 0)
    columns, _ = run(panel, "--seed", "5")

    assert facts(columns, "panel") == facts(whole, "panel")
    assert columns["results"][0]["failures"] == whole["results"][0]["failures"]
    assert "VERIFIED" in type_command(HEAD + panel, "show", "--verify").output


def test_workers_grade_as_this_process_does() -> None:
    """Scores come back from other processes with the trials."""
    mean = '  - {name: mean, python: "svc:tenth", mean_at_least: 0.35}'
    here, _ = run(mean, "--seed", "5")
    there, _ = run(mean, "--seed", "5", "--executor", "processes")

    assert facts(there, "mean")["score_mean"] == facts(here, "mean")["score_mean"]


def test_progress_counts_the_scores_of_a_mean_and_shows_no_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mean is not decided by how many replies pass, so no share of passes is shown for it."""
    enter_folder(
        tmp_path,
        monkeypatch,
        "def ask(input):\n    return 'x'\n\ndef grade(reply):\n    return 0.9\n",
    )
    suite = (
        "name: x\nservice: {python: 'svc:ask'}\ninputs: [a]\ntrials: 40\n"
        "criteria: [{name: quality, python: 'svc:grade', mean_at_least: 0.7}]\n"
    )

    done = type_command(suite, "run", "--seed", "1")

    assert done.exit_code == 0
    assert "quality: all 40 scores are in" in done.output
    assert "passed, 100" not in done.output
