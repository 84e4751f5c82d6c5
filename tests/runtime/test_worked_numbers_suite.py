"""The agent documents through a suite file and the command: their numbers, rules and refusals.

The agent of these suites is told by its model's name what to do: the letters of `PPPF` are the
outcomes of its runs in order, and after an `@` stand the weakest scores of their sessions in
percent. Typed in are figures of the documents and of their readings; intervals are computed again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import comb
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import beta

from trialwise.model.metrics import (
    GateFinding,
    MetricsEvidence,
    ReliabilityEvidence,
    StabilityEvidence,
)
from trialwise.model.verdict import Decision
from trialwise.runtime.result import Result
from trialwise.runtime.running import run
from trialwise.stats.result_types import Interval, Undefined
from trialwise.suite import SuiteError, load_suite

AGENT = """
from trialwise import Reply


def answer(question, index, model):
    letters, _, scores = model.partition("@")
    passed = letters[index % len(letters)] == "P"
    if question in ("always", "never"):
        passed = question == "always"
    details = {}
    if scores:
        # Two equal turns and one call: only the tokens make a sub-score other than 1.
        weakest = int(scores.split("-")[index % (scores.count("-") + 1)]) / 100
        call = {"name": "weather", "server": "w", "args": {"city": "Sacramento"}}
        turns = [{"role": "assistant", "content": "It is warm."}] * 2
        told = {"turns": turns, "tokens": {"total": round(2000 / weakest)}}
        details = {"trace": {"tool_calls": [call], "conversation": told}}
    return Reply(value="yes" if passed else "no", details=details)
"""
_MODULES = count()


@dataclass
class Bench:
    """A folder with the agent in it."""

    folder: Path
    module: str

    def write(self, block: str, **changes: Any) -> Path:
        """A suite whose criterion asks for nothing that decides."""
        model = changes.get("model", "PPPF")
        text = (
            f'name: agent\nservice: {{python: "{self.module}:answer"}}\n'
            f"models: {changes.get('models', f'[{model}]')}\n"
            f"inputs: {changes.get('inputs', '[What is the weather in Sacramento?]')}\n"
            f"trials: {changes.get('trials', len(model.partition('@')[0]))}\n"
            "criteria:\n  - {name: answers, equals: 'yes', at_least: 1%, confidence: 50%}\n"
            f"{changes.get('criteria', '')}intent: smoke\n{block}"
        )
        file = self.folder / "trialwise.yaml"
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, block: str, **changes: Any) -> list[Result]:
        """What every cell of a suite comes to."""
        suite = load_suite(self.write(block, **changes), environment={})
        return [
            run(one.contract, options=one.options, store=None, progress=False)
            for one in suite.contracts
        ]

    def gate(self, name: str, block: str, **changes: Any) -> GateFinding:
        """What one gate of the only cell found."""
        (result,) = self.run(block, **changes)
        (found,) = [one for one in result.verdict.gates if one.gate == name]
        return found

    def refused(self, block: str, **changes: Any) -> SuiteError:
        """Why a suite cannot be loaded."""
        file = self.write(block, **changes)
        with pytest.raises(SuiteError) as caught:
            load_suite(file, environment={})
        return caught.value

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command, as a user gives it."""
        return subprocess.run(
            [sys.executable, "-m", "trialwise.cli.main", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONUTF8": "1"},
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield from _bench(tmp_path)


def _bench(folder: Path) -> Iterator[Bench]:
    made = Bench(folder, f"documented_agent_{next(_MODULES)}")
    (folder / f"{made.module}.py").write_text(AGENT, encoding="utf-8")
    path = [*sys.path]
    yield made
    sys.path[:] = path
    sys.modules.pop(made.module, None)


def expecting(gate: str, **asked: object) -> str:
    """A block; a number is asked for exactly, a text is a matcher."""
    lines = [
        f"    - {{target: {gate}.{name}, matcher: "
        f"{value if isinstance(value, str) else f'{{exact: {value}}}'}}}\n"
        for name, value in asked.items()
    ]
    return f"{gate}:\n  expect:\n{''.join(lines)}"


def values(finding: GateFinding) -> dict[str, float | Undefined]:
    """Every target of a block that names no k, by its last name."""
    return {one.target.partition(".")[2]: one.value for one in finding.numbers}


# --- Reliability ------------------------------------------------------------------------------

RELIABILITY = ("runs", "pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation")


@pytest.mark.requirement(
    "reliability Reliability-decay summary",
    "The decay curve, the variance amplification and the graceful degradation of repeated runs.",
    "`reliability` of a suite, `stats.summarize`",
)
@pytest.mark.parametrize(
    ("record", "numbers", "curve"),
    [
        ("PPPF", (4, 100, 0, 87, 60), (100, 100, 100, 31)),
        ("FPPP", (4, 100, 0, 87, 90), (0, 25, 29, 31)),
        ("PFPP", (4, 100, 0, 87, 80), (100, 25, 29, 31)),
        ("PFPF", (4, 100, 0, 100, 40), None),
        ("PPPP", (4, 100, 100, 0, 100), (100, 100, 100, 100)),
        ("FFFF", (4, 0, 0, 0, 0), (0, 0, 0, 0)),
        ("PF", (2, 100, 0, 100, 33), None),
        ("PPF", (3, 100, 0, 94, 50), None),
        ("FFPFFFFFFFFFFFF", (15, 100, 0, 50, 3), None),
    ],
)
def test_the_reliability_report_of_a_suite(
    bench: Bench, record: str, numbers: tuple[int, ...], curve: tuple[int, ...] | None
) -> None:
    """All five targets, whether or not anything is asked, and the curve, which need not fall."""
    found = bench.gate("reliability", "reliability: {}\n", model=record)
    evidence = found.evidence
    assert isinstance(evidence, ReliabilityEvidence)

    assert dict(zip(RELIABILITY, numbers, strict=True)) == values(found)
    assert (None, ()) == (found.decision, found.checks)
    assert curve is None or curve == evidence.decay_curve


@pytest.mark.requirement(
    "reliability Targets",
    "The five targets are assertable through one dot-path resolver.",
    "`reliability.expect` with a `target` and a `matcher`",
)
def test_an_expectation_on_each_target_of_reliability(bench: Bench) -> None:
    """One grammar: limits, the number itself, and what it is not."""
    block = expecting(
        "reliability",
        runs="{schema: {minimum: 4, maximum: 4}}",
        pass_at_k=100,
        passhat_k="{not: {exact: 100}}",
        variance_amplification="{schema: {exclusiveMinimum: 86, exclusiveMaximum: 88}}",
        graceful_degradation="{any_of: [{exact: 90}, {all_of: [{exact: 60}, {not: {exact: 90}}]}]}",
    )
    found = bench.gate("reliability", block)

    assert (Decision.PASS, [True] * 5) == (found.decision, [one.holds for one in found.checks])
    assert (
        "reliability.variance_amplification",
        "reliability.graceful_degradation",
    ) == found.heuristics


@pytest.mark.requirement(
    "reliability Power analysis",
    "N runs so that the interval of the rate has at most a half-width, and the half-width of N.",
    "`reliability.half_width`; `stats.recommend_runs`, `stats.confidence_band`",
)
@pytest.mark.parametrize(
    ("half_width", "confidence", "wald"),
    [
        (half, level, runs)
        for half, row in {
            "5%": (271, 385, 664),
            "10%": (68, 97, 166),
            "2%": (1692, 2401, 4148),
            "1%": (6766, 9604, 16590),
        }.items()
        for level, runs in zip(("90%", "95%", "99%"), row, strict=True)
    ],
)
def test_the_recommended_runs_of_a_suite(
    bench: Bench, half_width: str, confidence: str, wald: int
) -> None:
    """The published table, and by Wilson's interval as few as cover what they say."""
    block = f"reliability: {{half_width: {half_width}, confidence: {confidence}}}\n"
    evidence = bench.gate("reliability", block, model="PF").evidence
    assert isinstance(evidence, ReliabilityEvidence)
    advice = evidence.recommendation
    assert advice is not None

    assert wald == advice.wald
    assert advice.wilson < wald
    assert (half_width, confidence) != ("5%", "95%") or 381 == advice.wilson


def test_estimates_that_nobody_asked_about_have_intervals(bench: Bench) -> None:
    """Nine of ten: the exact ones of the rate, mapped, and reasons where there is none."""
    low, high = (
        float(beta.ppf(tail, *shape)) for tail, shape in ((0.025, (9, 2)), (0.975, (10, 1)))
    )
    blocks = "reliability: {}\nmetrics: {}\n"
    (result,) = bench.run(blocks, model="PPPPPPPPPF")
    found = {one.target: one.interval for gate in result.verdict.gates for one in gate.numbers}
    expected = {
        "metrics.pass_rate": (low, high),
        "metrics.flakiness": (100 * min(low, 1 - high), 100 * max(1 - low, 0) if low > 0.5 else 50),
        "reliability.pass_at_k": (100 * (1 - (1 - low) ** 10), 100 * (1 - (1 - high) ** 10)),
        # One of the ten failed, so the unbiased estimate is 0, and the interval holds it.
        "reliability.passhat_k": (0.0, 100 * high**10),
        "reliability.variance_amplification": (
            200 * (high * (1 - high)) ** 0.5,
            200 * (low * (1 - low)) ** 0.5,
        ),
    }

    for target, ends in expected.items():
        interval = found[target]
        assert isinstance(interval, Interval), target
        assert ends == pytest.approx(tuple(interval), abs=1e-6), target
    for target in ("reliability.runs", "metrics.flaky", "metrics.unscored"):
        reason = found[target]
        assert isinstance(reason, Undefined)
        assert "estimates nothing" in reason.reason


# --- Stability --------------------------------------------------------------------------------

DOCUMENTED = "PPPPP@90-80-70-60-50"
SHOWN = """
stability:
  expect:
    - target: stability.score
      matcher: { schema: { minimum: 0.7 } }
    - target: stability.weakest_score
      matcher: { schema: { minimum: 0.5 } }
    - target: stability.variance
      matcher: { schema: { maximum: 0.05 } }
"""


def test_the_stability_report_of_a_suite(bench: Bench) -> None:
    """.9, .8, .7, .6, .5: a mean of .7, a minimum of .5, a population variance of .02."""
    found = bench.gate("stability", SHOWN, model=DOCUMENTED)

    assert {"score": 0.7, "weakest_score": 0.5, "variance": 0.02} == {
        # Tokens are whole numbers, which moves a score by less than this.
        name: pytest.approx(value, abs=1e-4)
        for name, value in values(found).items()
    }
    assert Decision.PASS is found.decision
    assert set(found.heuristics) == {one.target for one in found.checks}


@pytest.mark.parametrize(
    ("sessions", "holds"),
    [
        ("PPPPP@90-80-70-60-50", [True, True, True]),
        ("PPPPP@60-60-60-60-60", [False, True, True]),
        ("PPPPP@100-100-100-100-49", [True, False, True]),
        ("PPPP@100-100-50-50", [True, True, False]),
    ],
)
def test_each_line_of_the_shown_block_can_fail_alone(
    bench: Bench, sessions: str, holds: list[bool]
) -> None:
    """On average, at worst, and from run to run."""
    found = bench.gate("stability", SHOWN, model=sessions)

    assert holds == [one.holds for one in found.checks]
    assert (Decision.PASS if all(holds) else Decision.FAIL) is found.decision


@pytest.mark.parametrize(
    ("sessions", "decision"), [("PP@100-50", "PASS"), ("PP@100-49", "FAIL"), ("PP@49-100", "FAIL")]
)
def test_the_default_gate_of_a_suite(bench: Bench, sessions: str, decision: str) -> None:
    """`{}` is a weakest score of at least one half, of the single worst run."""
    found = bench.gate("stability", "stability: {}\n", model=sessions)

    assert decision == found.decision
    assert ["stability.weakest_score at least 0.5"] == [
        f"{one.target} {one.matcher}" for one in found.checks
    ]


def test_nothing_is_computed_without_a_block(bench: Bench) -> None:
    """It is opt-in."""
    (result,) = bench.run("", model=DOCUMENTED)

    assert () == result.verdict.gates


def test_drift_is_flagged_strictly_below_the_floors(bench: Bench) -> None:
    """At .5, .7 and .9 by a floor of .7; a floor of 0 never flags; neither decides."""
    for floor, flagged in (("0.7", [True, False, False]), ("0", [False] * 3), ("1", [True] * 3)):
        block = f"stability: {{floors: {{cost_per_progress: {floor}}}}}\n"
        found = bench.gate("stability", block, model="PPP@50-70-90")
        evidence = found.evidence
        assert isinstance(evidence, StabilityEvidence)
        assert flagged == [one.drift == ("cost_per_progress",) for one in evidence.runs]
        assert Decision.PASS is found.decision


# --- Metrics ----------------------------------------------------------------------------------


@pytest.mark.requirement(
    "scoring StimulusScore",
    "A stimulus that both passed and failed is flaky; the share of the rarer outcome is reported.",
    "`metrics.flaky`, `metrics.flakiness`",
)
@pytest.mark.parametrize("record", ["PPPFF", "PPFPP", "PPPPPPPPFF"])
def test_the_scoring_reference_of_a_suite(bench: Bench, record: str) -> None:
    """For every k up to n: unbiased by counting subsets, the others by their formulas."""
    n, passed = len(record), record.count("P")
    rate = Fraction(passed, n)
    ks = list(range(1, n + 1))
    found = bench.gate("metrics", f"metrics: {{k: {ks}}}\n", model=record)
    evidence = found.evidence
    assert isinstance(evidence, MetricsEvidence)

    assert ks == [row.k for row in evidence.pass_k]
    for k, row in zip(ks, evidence.pass_k, strict=True):
        subsets = comb(n, k)
        assert float(1 - Fraction(comb(n - passed, k), subsets)) == row.pass_at_k
        assert float(Fraction(comb(passed, k), subsets)) == row.pass_hat_k
        assert float(1 - (1 - rate) ** k) == pytest.approx(row.pass_at_k_naive)
        assert float(rate**k) == pytest.approx(row.pass_hat_k_plugin)
        for interval in (row.pass_at_k_interval, row.pass_hat_k_interval):
            assert isinstance(interval, Interval)
    assert values(found)["flakiness"] == 100 * min(passed, n - passed) / n


@pytest.mark.parametrize(
    ("record", "asked"),
    [
        ("PPPFF", {"pass_at.1": 0.6, "pass_at.2": 0.9, "pass_at.3": 1, "pass_at.4": 1}),
        ("PPPFF", {"pass_hat.1": 0.6, "pass_hat.2": 0.3, "pass_hat.3": 0.1, "pass_hat.5": 0}),
        (
            "PPPFF",
            {"pass_hat_plugin.1": 0.6, "pass_hat_plugin.2": 0.36, "pass_hat_plugin.3": 0.216},
        ),
        ("PPPFF", {"pass_hat_plugin.4": 0.1296, "pass_hat_plugin.5": 0.07776, "pass_at.5": 1}),
        ("PPFPP", {"pass_rate": 0.8, "pass_at.5": 1, "pass_hat_plugin.5": 0.32768}),
        ("PPFPP", {"pass_at_naive.5": 0.99968, "pass_hat.5": 0, "flakiness": 20, "flaky": 1}),
        ("PPPPPPPPFF", {"pass_at.1": 0.8, "pass_at.3": 1, "pass_at.5": 1}),
    ],
)
def test_the_golden_vectors_as_expectations(
    bench: Bench, record: str, asked: dict[str, float]
) -> None:
    """Typed as the readings print them."""
    found = bench.gate("metrics", expecting("metrics", **asked), model=record)

    assert (Decision.PASS, [True] * len(asked)) == (
        found.decision,
        [one.holds for one in found.checks],
    )


@pytest.mark.requirement(
    "scoring computeSkillScore",
    "The metrics of a skill are means of the metrics of its stimuli, not of pooled trials.",
    "`metrics.pass_hat.K` and the other targets of `metrics`",
)
def test_tasks_are_averaged_and_never_pooled(bench: Bench) -> None:
    """Five of five and none of five: .5 by either estimator, where pooling says .031."""
    block = expecting(
        "metrics", **{"pass_hat.5": 0.5, "pass_hat_plugin.5": 0.5, "pass_at.5": 0.5, "flaky": 0}
    ) + expecting("reliability", pass_at_k=50, passhat_k=50, variance_amplification=0)
    (result,) = bench.run(block, inputs="[always, never]", trials=10)

    assert [Decision.PASS] * 2 == [one.decision for one in result.verdict.gates]
    assert 0.031 == round(float(Fraction(1, 2) ** 5), 3)


def test_weights_and_a_threshold_of_a_suite(bench: Bench) -> None:
    """(1·1 + ½·0)/1½ is .667 and misses .7; equal weights are .5."""
    second = "  - {name: sings, contains: la, at_least: 1%, confidence: 50%}\n"
    block = "metrics: {weights: {answers: 1, sings: 0.5}, threshold: 70%}\n"
    found = bench.gate("metrics", block, model="PPP", criteria=second)
    plain = bench.gate("metrics", "metrics: {}\n", model="PPP", criteria=second)
    assert isinstance(found.evidence, MetricsEvidence)

    assert 0.667 == round(float(Fraction(1) / Fraction("1.5")), 3)
    assert float(Fraction(2, 3)) == pytest.approx(values(found)["score"])
    assert (False, [0, 0, 0]) == (
        found.evidence.passed,
        [values(found)[name] for name in ("pass_rate", "flaky", "unscored")],
    )
    assert 0.5 == values(plain)["score"]


def test_an_input_without_a_run_is_unscored(bench: Bench) -> None:
    """Kept apart and named; as 0 it would punish what nobody measured."""
    found = bench.gate("metrics", "metrics: {}\n", inputs="[always, always too, never]", trials=2)
    evidence = found.evidence
    assert isinstance(evidence, MetricsEvidence)
    tried = {one.input_id for one in evidence.inputs}

    assert 3 == len(evidence.unscored) + len(tried)
    assert tried.isdisjoint(evidence.unscored)
    assert values(found)["unscored"] == len(evidence.unscored) >= 1
    assert sum(one.rate for one in evidence.inputs) / len(tried) == values(found)["pass_rate"]


# --- What cannot be meant ---------------------------------------------------------------------

ASKS = "{gate}:\n  expect:\n    - {{target: {gate}.{target}, matcher: {matcher}}}\n"


def asks(gate: str, target: str, matcher: str) -> str:
    return ASKS.format(gate=gate, target=target, matcher=matcher)


@pytest.mark.parametrize(
    ("block", "place", "message"),
    [
        (
            asks("stability", "wekest", "{exact: 1}"),
            "stability.wekest",
            "did you mean `stability.weak",
        ),
        (
            asks("reliability", "decay_curve", "{exact: 1}"),
            "reliability.decay_curve",
            "there are reli",
        ),
        (
            asks("metrics", "pass_hat", "{exact: 1}"),
            "metrics.pass_hat",
            "such as `metrics.pass_hat.3`",
        ),
        (
            asks("metrics", "pass_at.0", "{exact: 1}"),
            "metrics.pass_at.0",
            "such as `metrics.pass_at.3`",
        ),
        (
            asks("stability", "score", "{schema: {minimum: 70}}"),
            "{schema: {minimum: 70}}",
            "which is a number from 0 to 1: write 0.7 for 70 %, got `at least 70`",
        ),
        (
            asks("stability", "variance", "{schema: {minimum: 0.3}}"),
            "{schema: {minimum: 0.3}}",
            "a number from 0 to 0.25",
        ),
        (asks("metrics", "pass_hat.2", "{exact: 1.5}"), "{exact: 1.5}", "a number from 0 to 1"),
        (asks("metrics", "flakiness", "{exact: 51}"), "{exact: 51}", "a number from 0 to 50"),
        (
            asks("reliability", "runs", "{schema: {maximum: -1}}"),
            "{schema",
            "at least 0, got `at most",
        ),
        (
            asks("reliability", "passhat_k", "{schema: {minimum: 0.9}}"),
            "{schema: {minimum: 0.9}}",
            "be in percent, as reliability.passhat_k is: write 90 for 0.9",
        ),
        (
            asks("stability", "score", "{not: {schema: {minimum: 0}}}"),
            "{not",
            "must hold for some stability.score",
        ),
        (asks("stability", "score", "{schema: {minimum: 70%}}"), "70%", "0.7 for any other"),
        (
            asks("stability", "score", "{schema: {minimum: high}}"),
            "high",
            "`minimum` must be a number",
        ),
        (asks("stability", "score", "0.7"), "0.7", "a matcher such as `schema: {minimum: 0.5}`"),
        (asks("stability", "score", "{at_least: 0.7}"), "at_least", "write `schema: {minimum: …}`"),
        (
            "stability:\n  expect:\n    - {target: stability.score, minimum: 0.7}\n",
            "minimum",
            "`matcher: {schema: {minimum: …}}`",
        ),
        (
            "stability:\n  expect:\n    - {target: stability.score, exact: 1}\n",
            "exact",
            "`matcher: {exact: …}`",
        ),
        ("stability: true\n", "true", "`stability` must be a mapping, or {} for a weakest score"),
        (
            "reliability: [runs]\n",
            "[runs]",
            "`reliability` must be a mapping, or {} for the numbers",
        ),
        ("metrics: {weights: {anwsers: 1}}\n", "anwsers", "did you mean `answers`?"),
        ("metrics: {weights: {answers: 0}}\n", "0", "the weight of `answers` must be above 0"),
        ("stability: {exclude: [redundncy]}\n", "redundncy", "did you mean `redundancy`?"),
    ],
)
def test_one_mistake_is_one_problem_at_its_place(
    bench: Bench, block: str, place: str, message: str
) -> None:
    """File, line and column of what is wrong, and what would be right."""
    error = bench.refused(block)
    (problem,) = error.problems
    text = (bench.folder / "trialwise.yaml").read_text(encoding="utf-8")
    line = text.splitlines()[problem.line - 1]

    assert message in problem.message
    assert line[problem.column - 1 :].startswith(place)
    assert f"trialwise.yaml:{problem.line}:{problem.column}: {problem.message}" in str(error)


@pytest.mark.parametrize("gate", ["reliability", "stability", "metrics"])
@pytest.mark.parametrize("matcher", ["llm-judge", "llm-jury", "similar"])
def test_no_gate_asks_a_model(bench: Bench, gate: str, matcher: str) -> None:
    """An error in every block, at any depth, and never a silent pass."""
    target = {"reliability": "pass_at_k", "stability": "score", "metrics": "score"}[gate]
    for written in (f"{{{matcher}: {{rubric: kind}}}}", f"{{all_of: [{{not: {{{matcher}: x}}}}]}}"):
        (problem,) = bench.refused(asks(gate, target, written)).problems
        assert problem.message.startswith(f"unknown key `{matcher}`: it asks a model")


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ("0", "`trials` must be a whole number of at least 1, got `0`"),
        ("1", "needs at least 2 runs of each input, and some would get one: give at least 2"),
    ],
)
@pytest.mark.parametrize("gate", ["reliability", "stability"])
def test_fewer_than_two_runs_are_refused_before_anything_runs(
    bench: Bench, gate: str, trials: str, message: str
) -> None:
    """A sample of one has no variance and no worst of many."""
    bench.write(f"{gate}: {{}}\n", trials=trials)
    done = bench.command("check")

    assert done.returncode == 2
    assert message in done.stderr


# --- Models and reports -----------------------------------------------------------------------

STEADY, LATE = "PPPP@90-80-70-60", "PPPF@90-80-25-60"
MATRIX = """
reliability:
  expect:
    - {target: reliability.graceful_degradation, matcher: {schema: {minimum: 90}}}
stability: {}
metrics:
  expect:
    - {target: metrics.pass_hat.2, matcher: {schema: {minimum: 0.4}}}
"""
#: (cell, gate, decision), in the order of the suite: 60 of 90 late, .25 of .5, and C(3,2)/C(4,2).
ROWS = [
    (STEADY, "reliability", "PASS"),
    (STEADY, "stability", "PASS"),
    (STEADY, "metrics", "PASS"),
    (LATE, "reliability", "FAIL"),
    (LATE, "stability", "FAIL"),
    (LATE, "metrics", "PASS"),
]


@dataclass
class Reported:
    """A matrix that was run by the command, with every report there is."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    folder = tmp_path_factory.mktemp("matrix")
    for bench in _bench(folder):
        bench.write(MATRIX, models=f'["{STEADY}", "{LATE}"]')
        names = ("r.json", "r.junit.xml", "r.md", "r.tap", "r.html", "r.txt", "r.codequality.json")
        outputs = [part for name in names for part in ("-o", name)]
        done = bench.command("run", "-q", "--annotations", "github", *outputs)
        yield Reported(folder, done)


def test_a_failed_gate_ends_the_command_with_1(matrix: Reported) -> None:
    """Though every criterion passed; and a stranger comes to the same verdict."""
    report = json.loads(matrix.read("r.json"))

    assert (1, "") == (matrix.done.returncode, matrix.done.stderr)
    assert 1 == report["exit_code"]
    assert ["PASS", "PASS"] == [run["verdict"]["functional_decision"] for run in report["runs"]]
    assert ["PASS", "FAIL"] == [run["verdict"]["decision"] for run in report["runs"]]


def test_the_json_report_has_a_row_for_each_cell(matrix: Reported) -> None:
    """With the numbers, their intervals, and which of them are heuristics."""
    runs = json.loads(matrix.read("r.json"))["runs"]
    rows = [
        (run["contract"], one["name"], one["facts"]["decision"])
        for run in runs
        for one in run["results"]
        if one["kind"] == "gate"
    ]
    late = {one["gate"]: one for one in runs[1]["verdict"]["gates"]}
    told = {one["target"]: one for gate in late.values() for one in gate["numbers"]}

    assert [(f"agent [{model}]", gate, decision) for model, gate, decision in ROWS] == rows
    assert [60, 0.25, 0.5] == [one["checks"][0]["value"] for one in late.values()]
    assert 0.75 == told["metrics.pass_rate"]["value"]
    assert [4, 100, 0, 87, 60] == [told[f"reliability.{name}"]["value"] for name in RELIABILITY]
    assert "heuristic" == told["stability.weakest_score"]["basis"]
    assert "further runs may be worse" in json.dumps(told["stability.weakest_score"]["interval"])


def test_the_terminal_has_a_line_for_each_cell(matrix: Reported) -> None:
    """Under the name of the cell, with what was asked and whether it is a heuristic."""
    text = matrix.done.stdout
    rows: list[tuple[str, str, str]] = []
    model = ""
    for line in text.split("Needs attention")[0].splitlines():
        if found := re.match(r"agent \[(.+?)\](?: |$)", line):
            model = found[1]
        elif found := re.match(r"  (reliability|stability|metrics) +(\w+) ", line):
            rows.append((model, found[1], found[2]))
    told = " ".join(text.split())

    assert ROWS == rows
    assert "weakest_score 0.25, at least 0.5 (4 runs, heuristic)" in told
    assert "pass_hat.2 0.5, at least 0.4 (4 runs, no error rate)" in told
    assert "1 of 2 contracts failed" in told


def test_annotations_name_the_cell(matrix: Reported) -> None:
    """One for each gate that failed, on a line of its own."""
    errors = [line for line in matrix.done.stdout.splitlines() if line.startswith("::error")]
    issues = json.loads(matrix.read("r.codequality.json"))

    for gate in ("reliability", "stability"):
        assert 1 == sum(f"agent [{LATE}]%3A {gate} is FAIL" in line for line in errors)
        assert 1 == sum(
            one["check_name"] == "trialwise/gate" and gate in one["description"] for one in issues
        )
    assert not any(STEADY in line for line in errors)


def test_the_junit_report_has_a_case_for_each_cell(matrix: Reported) -> None:
    """A failed gate is a failure; each of the four runs beside it is a case of its own."""
    cases = [
        (case.attrib["classname"], case.attrib["name"], case.find("failure") is not None)
        for case in ET.fromstring(matrix.read("r.junit.xml")).iter("testcase")
        if case.attrib["name"] != "answers"
    ]
    gates = [one for one in cases if not one[0].endswith(" runs")]
    models = dict.fromkeys(model for model, _, _ in ROWS)
    runs = [(f"agent [{model}] runs", f"1 #{k}", False) for model in models for k in range(1, 5)]

    assert [(f"agent [{model}]", gate, said == "FAIL") for model, gate, said in ROWS] == gates
    assert runs == [one for one in cases if one[0].endswith(" runs")]


def test_the_tap_report_has_a_point_for_each_cell(matrix: Reported) -> None:
    """With the number under the name of its target."""
    text = matrix.read("r.tap")
    points = re.findall(r"^(ok|not ok) \d+ - (.*)$", text, flags=re.MULTILINE)
    said = [(word == "ok", point) for word, point in points if "answers" not in point]

    assert [one[2] == "PASS" for one in ROWS] == [ok for ok, _ in said]
    for (model, gate, _), (_, point) in zip(ROWS, said, strict=True):
        assert model in point
        assert gate in point
    assert "stability.weakest_score: 0.25" in text


def test_the_markdown_has_a_row_for_each_cell(matrix: Reported) -> None:
    """And says of every gate that it has no error rate."""
    rows = [
        line
        for line in matrix.read("r.md").splitlines()
        if re.match(r"\| (reliability|stability|metrics)\b", line)
    ]

    assert len(ROWS) == len(rows)
    for (_, gate, decision), row in zip(ROWS, rows, strict=True):
        assert row.startswith(f"| {gate}")
        assert decision in row
        assert "no error rate" in row


def test_the_analysis_has_a_section_for_each_cell(matrix: Reported) -> None:
    """With basis and interval of what was asked, and the numbers that nobody asked about."""
    text = matrix.read("r.txt")
    told = " ".join(text.split())

    sections = re.findall(r"^GATE: (\w+) · (\w+) · 4 runs$", text, flags=re.MULTILINE)
    assert [(gate, decision) for _, gate, decision in ROWS] == sections
    assert 2 == told.count("pass_hat.2 chance that all of 2 runs pass (unbiased estimate)")
    later = "share of passing runs, where later runs count more (heuristic)"
    assert 2 == told.count(f"graceful_degradation {later}")
    assert 2 == told.count("weakest_score weakest score of the worst run (heuristic)")
    assert re.search(r"^  variance_amplification +87 % +\[", text, flags=re.MULTILINE)
    assert "Decay curve: 100, 100, 100, 31" in told
    assert "381 runs (Wilson; 385" in told
    # What lies below its floor carries a mark, in the column of its score.
    (_, drifted) = re.findall(
        r"^  run +cost per progress .*\n((?:  trial.*\n)+)", text, re.MULTILINE
    )
    assert re.search(r"^  trial \d +\S+ ! ", drifted, flags=re.MULTILINE)


def test_the_page_has_a_heading_for_each_cell(matrix: Reported) -> None:
    """Each gate of each cell, with its decision."""
    page = matrix.read("r.html")
    told = " ".join(re.sub(r"<[^>]+>", " ", page).split())

    for model in (STEADY, LATE):
        assert f"agent [{model}]" in told
    for target in (
        "reliability.graceful_degradation",
        "stability.weakest_score",
        "metrics.pass_hat.2",
    ):
        assert told.count(target) >= 2
    assert "no error rate" in told


@pytest.mark.parametrize(
    "name", ["r.json", "r.junit.xml", "r.md", "r.tap", "r.html", "r.txt", "terminal"]
)
def test_every_report_says_which_gates_are_heuristics(matrix: Reported, name: str) -> None:
    """By the targets that are."""
    text = matrix.done.stdout if name == "terminal" else matrix.read(name)

    assert "heuristic" in text.casefold()


def test_an_estimate_is_no_heuristic(matrix: Reported) -> None:
    """Two of the three gates are, and the third is not called so."""
    runs = json.loads(matrix.read("r.json"))["runs"]
    named = [one["facts"]["heuristics"] for one in runs[0]["results"] if one["kind"] == "gate"]

    assert ["reliability.graceful_degradation", "stability.weakest_score", ""] == named


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("PPPF", "`models` must be a list of models, got `PPPF`"),
        ("[]", "`models` must be a list of models, it has 0"),
        (
            "[5]",
            'an item of `models` must be the name of a model, got `5`; put quotes around it, "5"',
        ),
        ("[PP, PP]", "the model `PP` is there twice"),
    ],
)
def test_a_mistake_in_the_matrix_is_one_problem(bench: Bench, models: str, message: str) -> None:
    """At the models, and not at the service that then has none."""
    (problem,) = bench.refused("stability: {}\n", models=models).problems

    assert message == problem.message


@pytest.mark.slow
def test_the_name_of_a_matrix_stands_for_its_cells(bench: Bench) -> None:
    """Each cell has a name and a tag of its own, and what is misspelt is refused."""
    bench.write("", models="[PPPP, PPPF]")

    def chosen(*arguments: str) -> list[str]:
        done = bench.command("check", *arguments)
        return re.findall(r"^(agent[^:]*):", done.stdout, flags=re.MULTILINE)

    assert ["agent [PPPP]", "agent [PPPF]"] == chosen("agent") == chosen()
    assert ["agent [PPPF]"] == chosen("agent [PPPF]") == chosen("agent", "--tag", "PPPF")
    wrong = bench.command("run", "agnt")
    assert (2, True) == (wrong.returncode, "did you mean 'agent'?" in wrong.stderr)


def test_a_contract_of_that_name_goes_before_the_cells(bench: Bench) -> None:
    """A name is the contract's own, where there is one."""
    text = bench.write("", models="[PPPP]").read_text(encoding="utf-8")
    shared = text.replace("name: agent\n", "").replace("models: [PPPP]\n", "")
    contracts = (
        'contracts:\n  - {name: agent, service: {command: [echo, "{input}"]}}\n'
        "  - {name: agent, models: [PPPP, PPPF]}\n"
    )
    (bench.folder / "trialwise.yaml").write_text(shared + contracts, encoding="utf-8")
    every, own = (
        re.findall(r"^(agent[^:]*):", bench.command("check", *names).stdout, flags=re.MULTILINE)
        for names in ((), ("agent",))
    )

    assert ["agent", "agent [PPPP]", "agent [PPPF]"] == every
    assert ["agent"] == own


def test_the_verdict_of_a_gated_run_can_be_checked_again(matrix: Reported) -> None:
    """From the record alone."""
    done = Bench(matrix.folder, "").command("show", "--verify")

    assert "VERIFIED" in done.stdout
