"""Gates from a suite file to a verdict: the documents' numbers, through real runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.gate import Expectation, Reliability, Stability
from trialwise.model.matcher import Exact
from trialwise.model.metrics import GateFinding, MetricsEvidence, StabilityEvidence
from trialwise.model.trial_lines import read_trial, write_trial
from trialwise.model.verdict import Decision
from trialwise.runtime.result import Result
from trialwise.runtime.running import run
from trialwise.runtime.verifying import verify
from trialwise.stats.result_types import Interval
from trialwise.suite import load_suite

_NUMBERS = count()

#: Answers by the place in the issue order: P passes; a letter of a trace stands for a session.
AGENT = """
from trialwise import Reply

OUTCOMES = {outcomes!r}
TRACES = {traces!r}


def answer(question, index):
    details = {{"trace": TRACES[index % len(TRACES)]}} if TRACES else {{}}
    return Reply(value="yes" if OUTCOMES[index % len(OUTCOMES)] == "P" else "no", details=details)
"""

Suite = Callable[..., Result]


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Suite]:
    """Write a suite over an agent with these outcomes and traces, load it and run it."""
    names: list[str] = []
    path = [*sys.path]

    def written(block: str, outcomes: str = "P", traces: Any = (), **changes: Any) -> Result:
        name = f"gated_agent_{next(_NUMBERS)}"
        names.append(name)
        source = AGENT.format(outcomes=outcomes, traces=list(traces))
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        trials = changes.get("trials", len(outcomes))
        text = (
            f'name: agent\nservice: {{python: "{name}:answer"}}\n'
            f"inputs: {changes.get('inputs', '[What is 15 * 37?]')}\ntrials: {trials}\n"
            "criteria: [{name: answers, contains: 'yes', at_least: 1%, confidence: 50%}]\n"
            f"intent: smoke\n{block}"
        )
        file = tmp_path / "trialwise.yaml"
        file.write_text(text, encoding="utf-8")
        (one,) = load_suite(file, environment={}).contracts
        return run(one.contract, options=one.options, store=None, progress=False)

    yield written
    sys.path[:] = path
    for name in names:
        sys.modules.pop(name, None)


def gate(result: Result, name: str) -> GateFinding:
    (found,) = [one for one in result.verdict.gates if one.gate == name]
    return found


def asks(gate_name: str, **asked: float) -> str:
    """A block that asks each target for exactly one number."""
    lines = [
        f"    - {{target: {gate_name}.{name}, matcher: {{exact: {value}}}}}\n"
        for name, value in asked.items()
    ]
    return f"{gate_name}:\n  expect:\n" + "".join(lines)


def session(*calls: Any, tokens: float = 0, lengths: tuple[int, ...] = (9, 9)) -> dict[str, Any]:
    """The envelope of the stability document."""
    turns = [{"role": "assistant", "content": "é" * length} for length in lengths]
    return {
        "tool_calls": list(calls),
        "conversation": {"tokens": {"total": tokens}, "turns": turns},
    }


def call(name: str = "search", **args: Any) -> dict[str, Any]:
    return {"name": name, "server": "docs", "args": args or {"q": "a"}}


# --- The documents ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("PPPF", (4, 100, 0, 87, 60)),
        ("FPPP", (4, 100, 0, 87, 90)),
        ("PFPF", (4, 100, 0, 100, 40)),
        ("PPPP", (4, 100, 100, 0, 100)),
        ("FFFF", (4, 0, 0, 0, 0)),
        ("PF", (2, 100, 0, 100, 33)),
        ("PPF", (3, 100, 0, 94, 50)),
        ("FFP" + 12 * "F", (15, 100, 0, 50, 3)),
    ],
)
def test_the_reliability_report(suite: Suite, outcomes: str, expected: tuple[int, ...]) -> None:
    """Every worked number, as five assertions of one block."""
    names = ["runs", "pass_at_k", "passhat_k", "variance_amplification", "graceful_degradation"]
    block = asks("reliability", **dict(zip(names, expected, strict=True)))
    found = gate(suite(block, outcomes), "reliability")

    assert (Decision.PASS, [True] * 5) == (found.decision, [one.holds for one in found.checks])


FOUR = [call(x=1, y=[{"a": 1, "b": 2}]), call(y=[{"b": 2, "a": 1}], x=1)]


@pytest.mark.parametrize(
    ("trace", "weakest"),
    [
        # The document's own envelope: one turn, one call, so that nothing is measured.
        (session(call(), tokens=3000, lengths=(3,)), 1.0),
        # The same with two turns: 2000 of 3000 tokens.
        (session(call(), tokens=3000), 2 / 3),
        (session(call(), call(q="b"), tokens=3000), 1.0),
        (session(call(), call(q="b"), tokens=10_000), 0.4),
        (session(tokens=1), 0.0),
        # Four equal calls; two that differ in the order of keys alone, at every depth.
        (session(*[call()] * 4), 0.25),
        (session(*FOUR), 0.5),
        (session(call(q=1), call(q=1.0), call(q=True)), 2 / 3),
        # Five calls of three tools, of five, of one; two of two.
        (session(*(call(name, n=place) for place, name in enumerate("abcab"))), 0.5),
        (session(*(call(name) for name in "abcde")), 0.0),
        (session(*(call(n=place) for place in range(5))), 1.0),
        (session(call("a"), call("b")), 0.0),
        # Lengths in code points, with the population's standard deviation.
        (session(lengths=(100, 300)), 0.5),
        (session(lengths=(100, 200)), 2 / 3),
        (session(lengths=(50, 150, 400)), 0.2640),
        (session(lengths=(0, 0)), 1.0),
        # What is malformed is read as absent, but for a call.
        ({"tool_calls": [None, None], "conversation": 5}, 0.5),
    ],
)
def test_the_stability_report(suite: Suite, trace: Any, weakest: float) -> None:
    """Each formula, from the trace of a reply to the weakest score of a gate."""
    found = gate(suite("stability: {}\n", "PP", [trace]), "stability")
    (check,) = found.checks

    assert weakest == pytest.approx(check.value, abs=5e-5)
    assert ("PASS" if weakest >= 0.5 else "FAIL") == found.decision


def test_the_runs_of_the_stability_report(suite: Suite) -> None:
    """Weakest scores of .9 to .5 are .7 on average, .5 at worst, with a variance of .02."""
    # Tokens are whole numbers, so that the scores are what is asked within their rounding.
    scores = (0.9, 0.8, 0.7, 0.6, 0.5)
    traces = [session(call(), tokens=round(2000 / score)) for score in scores]
    near = "matcher: {{schema: {{minimum: {}, maximum: {}}}}}"
    block = (
        "stability:\n  expect:\n"
        f"    - {{target: stability.score, {near.format(0.6999, 0.7001)}}}\n"
        f"    - {{target: stability.weakest_score, {near.format(0.5, 0.5)}}}\n"
        f"    - {{target: stability.variance, {near.format(0.0199, 0.0201)}}}\n"
    )
    found = gate(suite(block, "PPPPP", traces), "stability")

    assert Decision.PASS is found.decision
    evidence = found.evidence
    assert isinstance(evidence, StabilityEvidence)
    assert 5 == len(evidence.runs)
    assert 0.5 == min(one.weakest_score for one in evidence.runs)


@pytest.mark.parametrize(
    ("outcomes", "asked"),
    [
        ("PPPFF", {"pass_at.1": 0.6, "pass_at.2": 0.9, "pass_at.3": 1, "pass_at.5": 1}),
        ("PPPFF", {"pass_hat.1": 0.6, "pass_hat.2": 0.3, "pass_hat.3": 0.1, "pass_hat.4": 0}),
        ("PPPFF", {"pass_hat_plugin.2": 0.36, "pass_hat_plugin.3": 0.216}),
        ("PPPFF", {"pass_hat_plugin.4": 0.1296, "pass_hat_plugin.5": 0.07776}),
        ("PPFPP", {"pass_rate": 0.8, "pass_at.5": 1, "pass_at_naive.5": 0.99968}),
        ("PPFPP", {"pass_hat_plugin.5": 0.32768, "pass_hat.5": 0, "flaky": 1, "flakiness": 20}),
        ("PFPF", {"flaky": 1, "flakiness": 50}),
        ("PPPP", {"flaky": 0, "flakiness": 0, "score": 1, "unscored": 0}),
        ("FFFPF", {"pass_at_naive.5": 0.67232}),
        ("FFFFFFFPPP", {"pass_at_naive.5": 0.83193, "pass_at_naive.3": 0.657}),
        ("PPPPPPPPPF", {"pass_at_naive.3": 0.999}),
    ],
)
def test_the_scoring_reference(suite: Suite, outcomes: str, asked: dict[str, float]) -> None:
    """Unbiased, naive and plug-in, each under its own name."""
    found = gate(suite(asks("metrics", **asked), outcomes), "metrics")

    assert [True] * len(asked) == [one.holds for one in found.checks]


def test_inputs_of_a_suite_are_averaged_and_not_pooled(tmp_path: Path) -> None:
    """One question that is always answered and one that never is: pass^5 is one half."""

    def answer(question: str) -> str:
        return question

    contract = tw.Contract(
        "both",
        answer,
        [tw.Criterion("c", tw.contains("yes"), never_fails=True, trials=10)],
        sampling=["yes", "no"],
        reliability=Reliability(
            expect=(Expectation(target="reliability.passhat_k", matcher=Exact(value=50)),)
        ),
    )
    result = run(contract, store=tmp_path, progress=False)

    assert Decision.PASS is gate(result, "reliability").decision
    assert Decision.FAIL is result.decision  # for the criterion


def test_the_published_intervals_of_a_score(suite: Suite) -> None:
    """Nine of ten: Clopper and Pearson's interval of the rate is [.555, .9975]."""
    found = gate(suite(asks("metrics", pass_rate=0.9), "PPPPPPPPPF"), "metrics")
    interval = found.checks[0].interval
    assert isinstance(interval, Interval)

    assert (0.554984, 0.997471) == pytest.approx(tuple(interval), abs=5e-6)


# --- Runs -------------------------------------------------------------------------------------


def test_all_planned_runs_are_made(suite: Suite) -> None:
    """Also where the criterion is certain after the first."""
    result = suite("stability: {}\n", "P" * 7, [session(call())])

    assert 7 == len(result.record.trials) == gate(result, "stability").runs


def test_shuffled_keys_make_one_call_and_survive_the_journal(suite: Suite) -> None:
    """The counts of a session are kept with its trial, and the verdict follows from them."""
    result = suite("stability: {}\n", "PP", [session(*FOUR)])
    shapes = [trial.shape for trial in result.record.trials]
    line = json.loads(json.dumps(write_trial(result.record.trials[0])))
    read = read_trial(line, experiment="inputs", criteria=("answers",))

    assert [(2, 1)] * 2 == [(one.total_calls, one.distinct_calls) for one in shapes if one]
    assert result.record.trials[0] == read
    assert [] == list(verify(result.record).differences)


@pytest.mark.parametrize("outcomes", ["PPPF", "FFFF", "PPPP"])
def test_a_record_with_gates_can_be_decided_again(suite: Suite, outcomes: str) -> None:
    """From its plan and its trials, by a stranger."""
    blocks = "reliability: {}\nstability: {}\nmetrics: {k: [1, 2]}\n"
    record = suite(blocks, outcomes, [session(call(), tokens=3000)]).record

    assert 3 == len(record.verdict.gates)
    assert [] == [str(one) for one in verify(record).differences]


def test_a_service_without_traces_is_undecided(suite: Suite) -> None:
    """No trace is not evidence of stability."""
    found = gate(suite("stability: {}\n", "PPP"), "stability")

    assert Decision.INCONCLUSIVE is found.decision
    assert "3 runs without a session" in found.caveats[0]


def test_tool_calls_alone_are_a_trace(tmp_path: Path) -> None:
    """As a chat service reports them, with the tokens of its usage."""

    def answer(question: str) -> tw.Reply:  # noqa: ARG001
        return tw.Reply(
            value="yes",
            usage=tw.Usage(input_tokens=4000, output_tokens=4000),
            details={"tool_calls": [{"name": "a", "args": {}}, {"name": "a", "args": {"b": 1}}]},
        )

    contract = tw.Contract(
        "calls",
        answer,
        [tw.Criterion("c", tw.contains("yes"), never_fails=True, trials=2)],
        sampling=["q"],
        stability=Stability(),
    )
    (check,) = gate(run(contract, store=tmp_path, progress=False), "stability").checks

    assert 0.5 == check.value  # 8000 tokens for two calls


def test_a_hostile_trace_is_no_trace() -> None:
    """Whatever a service hands over, the run goes on."""

    class Hostile(dict[str, Any]):
        def __contains__(self, key: object) -> bool:
            raise RuntimeError("no")

    def answer(question: str) -> tw.Reply:  # noqa: ARG001
        return tw.Reply(value="yes", details={"trace": Hostile(a=1)})

    contract = tw.Contract(
        "hostile",
        answer,
        [tw.Criterion("c", tw.contains("yes"), never_fails=True, trials=2)],
        sampling=["q"],
        stability=Stability(),
    )

    assert Decision.INCONCLUSIVE is run(contract, store=None, progress=False).decision


def test_a_run_stopped_by_its_budget_decides_no_gate(suite: Suite) -> None:
    """Two of six runs are not six."""
    result = suite("stability: {}\nbudget: {trials: 2}\n", "PPPPPP", [session(call())])

    assert Decision.INCONCLUSIVE is gate(result, "stability").decision
    assert Decision.INCONCLUSIVE is result.decision


def test_metrics_that_nobody_gates_are_of_whatever_was_run(tmp_path: Path) -> None:
    """A decision may stop early, and the estimates say that they are described by it."""
    from trialwise.model.gate import Metrics

    contract = tw.Contract(
        "early",
        lambda question: f"yes: {question}",
        [tw.Criterion("c", tw.contains("yes"), at_least=0.9)],
        sampling=["q"],
        metrics=Metrics(),
    )
    result = run(contract, store=tmp_path, progress=False, seed=1)
    found = gate(result, "metrics")
    assert isinstance(found.evidence, MetricsEvidence)

    runs = len(result.record.trials)
    powers = [k for k in (1, 2, 4, 8, 16) if k < runs]

    assert runs < result.record.plan.experiments[0].trials
    assert (Decision.PASS, None, runs) == (result.decision, found.decision, found.runs)
    assert [*powers, runs] == [row.k for row in found.evidence.pass_k]
    assert "no estimate is unbiased" in found.caveats[0]
    interval = found.evidence.pass_k[0].pass_hat_k_interval
    assert isinstance(interval, Interval)
    assert "descriptive after stopping early" in interval.method


# --- The command ------------------------------------------------------------------------------

COMMANDED = """
from trialwise import Reply


def answer(question, index, model):
    calls = [{"name": "search", "args": {"q": question}}] * (4 if model == "looping" else 1)
    turns = [{"role": "assistant", "content": "same"}] * 2
    trace = {"tool_calls": calls, "conversation": {"turns": turns}}
    return Reply(value="yes", details={"trace": trace})
"""
MATRIX = """
name: agent
service: {python: "agent:answer"}
models: [steady, looping]
inputs: [one, two]
trials: 20
criteria: [{name: answers, equals: "yes", at_least: 50%}]
stability: {}
"""


def trialwise(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "PYTHONUTF8": "1"},
    )


@pytest.mark.slow
def test_a_failed_gate_ends_with_exit_code_1(tmp_path: Path) -> None:
    """One cell of the matrix loops; every reporter has a line for each, and the record verifies."""
    (tmp_path / "agent.py").write_text(COMMANDED)
    (tmp_path / "trialwise.yaml").write_text(MATRIX)
    done = trialwise(tmp_path, "run", "--quiet", "-o", "r.json", "-o", "r.junit.xml")
    report = json.loads((tmp_path / "r.json").read_text())
    lines = [
        (run["contract"], one["facts"]["decision"])
        for run in report["runs"]
        for one in run["results"]
        if one["kind"] == "gate"
    ]

    assert (1, "") == (done.returncode, done.stderr)
    assert [("agent [steady]", "PASS"), ("agent [looping]", "FAIL")] == lines
    assert "weakest_score 0.25, at least 0.5" in done.stdout
    junit = (tmp_path / "r.junit.xml").read_text()
    assert 2 == junit.count('name="stability"')
    assert 0 == trialwise(tmp_path, "run", "--quiet", "--tag", "steady").returncode
    assert "VERIFIED" in trialwise(tmp_path, "show", "--verify").stdout


def test_a_suite_without_runs_ends_with_exit_code_2(tmp_path: Path) -> None:
    """With the place of the block; `--trials` gives the runs that the file does not."""
    (tmp_path / "agent.py").write_text(COMMANDED)
    (tmp_path / "trialwise.yaml").write_text(MATRIX.replace("trials: 20", "max_trials: 20"))
    done = trialwise(tmp_path, "run")

    assert 2 == done.returncode
    line = MATRIX[: MATRIX.index("stability:")].count("\n") + 1
    assert f"trialwise.yaml:{line}: agent [steady]: stability: it needs a number of" in done.stderr
    assert trialwise(tmp_path, "run", "--quiet", "--trials", "20").returncode == 1
    (tmp_path / "trialwise.yaml").write_text(MATRIX)
    few = trialwise(tmp_path, "run", "--trials", "2", "--intent", "smoke")
    assert 2 == few.returncode
    assert "stability: it needs at least 2 runs of each input" in few.stderr


def test_an_empty_envelope_tells_of_no_session(suite: Suite) -> None:
    """Nothing is known of such a run, so that its stability is not 1 but undefined."""
    found = gate(suite("stability: {}\n", "PP", [{}]), "stability")

    assert "PASS" != found.decision
