"""Gate numbers against a baseline: `measure` keeps them, and a later run must not be worse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.cli.main import main
from trialwise.errors import DesignRefused
from trialwise.model.gate import Expectation, Metrics, Stability
from trialwise.model.matcher import AllOf, Not, NoWorse, NumberSchema
from trialwise.runtime.verifying import verify
from trialwise.stores.runs import RunStore

ANSWERS = tw.Criterion("answers", tw.contains("yes"), at_least=0.3)


class Agent:
    """An agent whose sessions repeat a call this many times."""

    def __init__(self, calls: int, answers: str = "yes") -> None:
        self.calls, self.answers = calls, answers

    def __call__(self, _input: str) -> tw.Reply:
        trace = {"tool_calls": [{"name": "find"}] * self.calls, "conversation": {"turns": []}}
        return tw.Reply(value=self.answers, details={"trace": trace})


def ask(target: str, margin: float = 0.0) -> tuple[Expectation, ...]:
    return (Expectation(target=target, matcher=NoWorse(margin=margin)),)


def contract(calls: int, **gates: Any) -> tw.Contract:
    gates = gates or {"stability": Stability(expect=ask("stability.redundancy"))}
    return tw.Contract("agent", Agent(calls), [ANSWERS], sampling=["q"], **gates)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Any]:
    return {
        "store": tmp_path / "store",
        "baselines": tmp_path / "baselines",
        "progress": False,
        "trials": 10,
    }


@pytest.mark.requirement(
    "stability complement",
    "Behaviour within a session is compared with a captured baseline.",
    "`matcher: {no_worse_than: baseline}` on a target of a gate; `trialwise measure` keeps numbers",
)
@pytest.mark.parametrize(
    ("before", "now", "margin", "decision"),
    [
        (2, 2, 0.0, "PASS"),
        (2, 1, 0.0, "PASS"),
        (2, 3, 0.0, "FAIL"),  # 1/3 of the calls are distinct, and 1/2 were
        (2, 3, 0.2, "PASS"),
        (2, 4, 0.2, "FAIL"),
    ],
)
def test_a_number_must_not_be_worse_than_the_baselines(
    folders: dict[str, Any], before: int, now: int, margin: float, decision: str
) -> None:
    measured = tw.measure(contract(before), **folders)
    assert measured.baseline.gates["stability"].numbers["stability.redundancy"] == 1 / before
    gate = Stability(expect=ask("stability.redundancy", margin))
    result = tw.run(contract(now, stability=gate), **folders)
    (found,) = result.verdict.gates
    assert str(found.decision) == decision
    assert f"no worse than {1 / before:g} of {measured.baseline.identifier}" in found.statement
    stored = RunStore(folders["store"]).latest()
    assert verify(stored.record(), known_hash=stored.plan_hash).matches


def test_where_less_is_better_more_is_worse(folders: dict[str, Any]) -> None:
    gate = Stability(expect=ask("stability.drifted"))
    tw.measure(contract(2, stability=gate), **folders)  # 1/2 is not below the floor
    assert str(tw.run(contract(2, stability=gate), **folders).decision) == "PASS"
    assert str(tw.run(contract(3, stability=gate), **folders).decision) == "FAIL"


def test_pass_hat_k_is_compared_as_well(folders: dict[str, Any]) -> None:
    gate = Metrics(expect=ask("metrics.pass_hat.2", 0.1))
    tw.measure(contract(1, metrics=gate), **folders)
    assert str(tw.run(contract(1, metrics=gate), **folders).decision) == "PASS"
    failing = tw.Contract("agent", Agent(1, "no"), [ANSWERS], sampling=["q"], metrics=gate)
    (found,) = tw.run(failing, **folders).verdict.gates
    assert str(found.decision) == "FAIL"


def test_matchers_may_be_combined(folders: dict[str, Any]) -> None:
    both = AllOf(matchers=(NoWorse(), Not(matcher=NumberSchema(minimum=0.9))))
    gate = Stability(expect=(Expectation(target="stability.redundancy", matcher=both),))
    tw.measure(contract(2, stability=gate), **folders)
    assert str(tw.run(contract(2, stability=gate), **folders).decision) == "PASS"
    assert str(tw.run(contract(1, stability=gate), **folders).decision) == "FAIL"


def test_a_baseline_without_the_number_is_refused(folders: dict[str, Any]) -> None:
    with pytest.raises(tw.TrialwiseError, match="baseline"):
        tw.run(contract(1), **folders)
    plain = tw.Contract("agent", Agent(1), [ANSWERS], sampling=["q"])
    tw.measure(plain, **folders)
    with pytest.raises(DesignRefused, match=r"stability: .* holds no stability\.redundancy"):
        tw.run(contract(1), **folders)


def test_numbers_that_mean_something_else_are_refused(folders: dict[str, Any]) -> None:
    tw.measure(contract(1), **folders)
    other = Stability(expect=ask("stability.redundancy"), tokens_per_call=100)
    with pytest.raises(DesignRefused, match="was measured with other settings of this gate"):
        tw.run(contract(1, stability=other), **folders)
    with pytest.raises(DesignRefused, match="was measured on other inputs"):
        tw.run(contract(1).with_inputs(["another question"]), **folders)


def test_a_baseline_without_gates_is_written_as_before(folders: dict[str, Any]) -> None:
    measured = tw.measure(tw.Contract("agent", Agent(1), [ANSWERS], sampling=["q"]), **folders)
    assert "gates" not in json.loads(measured.path.read_text(encoding="utf-8"))


def test_the_command_line_measures_and_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = 'printf \'{"tool_calls": [%s], "answer": "yes"}\' "$(cat calls)"'
    suite = {
        "name": "agent",
        "service": {"command": {"run": ["sh", "-c", script, "{input}"], "trace": "$"}},
        "inputs": ["q"],
        "trials": 10,
        "criteria": [{"name": "answers", "equals": "yes", "at_least": "30%"}],
        "stability": {
            "expect": [
                {"target": "stability.redundancy", "matcher": {"no_worse_than": {"margin": 0.1}}}
            ]
        },
    }
    Path("trialwise.yaml").write_text(json.dumps(suite), encoding="utf-8")
    one, loop = '{"name": "find"}', '{"name": "find"}, {"name": "find"}'
    codes = []
    for calls, command in ((one, "measure"), (one, "run"), (loop, "run")):
        Path("calls").write_text(calls, encoding="utf-8")
        with pytest.raises(SystemExit) as ended:
            main([command, "--quiet"])
        codes.append(ended.value.code)
    assert codes == [0, 0, 1]
