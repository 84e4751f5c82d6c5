"""Each sub-score of a session, and the runs that drifted, as targets of a gate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.gate import Expectation, Stability, targets_of
from trialwise.model.matcher import Exact, NumberSchema
from trialwise.stats.trace_stability import SUB_SCORES, StabilityFloors

#: Of each run of the session: its calls, and the lengths of what the model said.
SESSIONS = [
    ([("find", 1), ("find", 2), ("find", 2), ("book", 1)], [10, 10], 4_000),
    ([("find", 1), ("find", 1), ("find", 1), ("find", 1)], [10, 30], 12_000),
    ([("find", 1), ("find", 2)], [10, 12], 1_000),
]


def _answer(_input: str, index: int) -> tw.Reply:
    calls, lengths, tokens = SESSIONS[index % len(SESSIONS)]
    trace = {
        "tool_calls": [{"name": name, "args": {"n": n}} for name, n in calls],
        "conversation": {
            "turns": [{"role": "assistant", "content": "x" * length} for length in lengths],
            "tokens": {"total": tokens},
        },
    }
    return tw.Reply(value="yes", details={"trace": trace})


def _scores(session: Any) -> dict[str, float]:
    """The formulas of the stability report, in rationals up to the root."""
    calls, lengths, tokens = session
    mean = Fraction(sum(lengths), len(lengths))
    variance = sum((length - mean) ** 2 for length in lengths) / len(lengths)
    tools = {name for name, _ in calls}
    distinct = len(set(calls))
    return {
        "tool_usage_stability": float(1 - Fraction(len(tools) - 1, len(calls) - 1)),
        "response_consistency": 1 - min(1.0, float(variance) ** 0.5 / float(mean)),
        "redundancy": distinct / len(calls),
        "cost_per_progress": 2000 / max(2000, tokens / distinct),
    }


def _run(gate: Stability) -> Any:
    criterion = tw.Criterion("answers", tw.equals("yes"), at_least=0.5)
    contract = tw.Contract("x", _answer, [criterion], stability=gate)
    (found,) = tw.run(contract, inputs=["q"], trials=6, store=None, progress=False).verdict.gates
    return found


def _ask(target: str, matcher: Any, **settings: Any) -> Stability:
    return Stability(expect=(Expectation(target=target, matcher=matcher),), **settings)


@pytest.mark.requirement(
    "stability API",
    "Each sub-score of a session is an assertable signal.",
    "targets `stability.redundancy`, `.tool_usage_stability`, `.response_consistency`, "
    "`.cost_per_progress`",
)
@pytest.mark.parametrize("name", SUB_SCORES)
def test_a_sub_score_is_the_lowest_of_all_runs(name: str) -> None:
    lowest = min(_scores(session)[name] for session in SESSIONS)
    held = _run(_ask(f"stability.{name}", NumberSchema(minimum=lowest)))
    missed = _run(_ask(f"stability.{name}", NumberSchema(minimum=min(1.0, lowest + 0.01))))
    assert held.checks[0].value == pytest.approx(lowest, rel=1e-12)
    assert (str(held.decision), str(missed.decision)) == ("PASS", "FAIL")


@pytest.mark.requirement(
    "stability API",
    "`drift_flags` names the sub-scores strictly below their floor, as a signal to assert on.",
    "target `stability.drifted` with `floors`",
)
@pytest.mark.parametrize("floor", [0.0, 0.25, 0.3, 0.5, 0.75, 0.8, 1.0])
def test_runs_below_a_floor_are_counted(floor: float) -> None:
    """Strictly below: a floor of 0 flags nothing, one of 1 whatever is not perfect."""
    floors = StabilityFloors(**dict.fromkeys(SUB_SCORES, floor))
    flagged = 2 * sum(any(one < floor for one in _scores(s).values()) for s in SESSIONS)
    found = _run(_ask("stability.drifted", Exact(value=0), floors=floors))
    assert found.checks[0].value == flagged
    assert str(found.decision) == ("FAIL" if flagged else "PASS")


@pytest.mark.requirement(
    "stability sub-scores",
    "A session of two calls to two tools has a tool usage stability of 0.",
    "`exclude: [tool_usage_stability]`; the guide on reliability explains the case",
)
def test_two_calls_of_two_tools_have_no_tool_usage_stability() -> None:
    calls = [{"name": "find"}, {"name": "book"}]

    def answer(_: str) -> tw.Reply:
        return tw.Reply(value="yes", details={"trace": {"tool_calls": calls}})

    criterion = tw.Criterion("answers", tw.equals("yes"), at_least=0.5)
    for gate, decision in (
        (Stability(), "FAIL"),
        (Stability(exclude=("tool_usage_stability",)), "PASS"),
    ):
        contract = tw.Contract("x", answer, [criterion], stability=gate)
        result = tw.run(contract, inputs=["q"], trials=6, store=None, progress=False)
        assert str(result.verdict.gates[0].decision) == decision


def test_a_suite_names_them(tmp_path: Any) -> None:
    from trialwise.suite import load_suite

    lines = "".join(
        f"    - {{target: {target}, matcher: {{schema: {{minimum: 0}}}}}}\n"
        for target in targets_of("stability")
    )
    (tmp_path / "trialwise.yaml").write_text(
        'service: {command: [echo, "{input}"]}\ninputs: [a]\ntrials: 10\n'
        "criteria: [{name: c, contains: a, at_least: 50%}]\n"
        f"stability:\n  expect:\n{lines}",
        encoding="utf-8",
    )
    (one,) = load_suite(tmp_path / "trialwise.yaml", environment={}).contracts
    assert one.contract.stability is not None
    assert len(one.contract.stability.expect) == 8


def test_sub_scores_without_a_limit_stand_in_no_list_of_numbers() -> None:
    """So that records of earlier versions recompute to the same finding."""
    found = _run(Stability())
    assert [one.target.rpartition(".")[2] for one in found.numbers] == [
        "score",
        "weakest_score",
        "variance",
    ]


def test_a_service_that_tells_no_session_is_told_how() -> None:
    criterion = tw.Criterion("answers", tw.equals("yes"), at_least=0.5)
    contract = tw.Contract("x", lambda _: "yes", [criterion], stability=Stability())
    result = tw.run(contract, inputs=["q"], trials=6, store=None, progress=False)
    (gate,) = result.verdict.gates
    assert str(gate.decision) == "INCONCLUSIVE"
    assert "6 runs without a session" in gate.caveats[0]
    assert "`trace: $.trace`" in gate.caveats[0]
