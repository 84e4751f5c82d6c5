"""What the functions of the Python interface return, as one looks at it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw


def contract(right: int = 8) -> tw.Contract:
    def answer(_question: str, index: int) -> str:
        return "555" if index % 8 < right else "554"

    return tw.Contract("sums", answer, [tw.Criterion("answers", tw.contains("555"), at_least=0.9)])


def test_a_result_hands_out_its_trials_and_failures() -> None:
    """In their order, with what was said."""
    result = tw.run(contract(6), inputs=["q"], trials=40, curtail=False, seed=1, store=None)

    assert 40 == len(result.trials)
    assert [one.index for one in result.trials if one.index % 8 >= 6] == [
        one.index for one in result.failures
    ]
    assert "<Result FAIL: 'sums', 10 of 40 trials failed>" == repr(result)
    assert repr(result.failures[0]).startswith("<Trial 6 failed, input '1', seed ")
    assert "answers: '555' is not in the reply" in repr(result.failures[0])
    assert len(repr(result.record)) < 100


def test_a_trial_that_was_not_measured_is_no_failure() -> None:
    """As in every report."""

    def down(_question: str) -> str:
        raise ConnectionRefusedError("refused")

    result = tw.run(contract().with_service(down), inputs=["q"], retries=0, store=None)

    assert "INCONCLUSIVE" == result.decision
    assert ((), True) == (result.failures, len(result.trials) > 0)


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype html>"), ("r.md", "<!-- trialwise-report"), ("r.junit.xml", "<?xml")],
)
def test_a_result_writes_reports(name: str, begins: str, tmp_path: Path) -> None:
    """Which one follows from the name of the file, as on the command line."""
    result = tw.run(contract(), inputs=["q"], store=None)
    suite = tw.run_all([contract()], inputs=["q"], store=None)

    for one in (result, suite):
        written = one.write(tmp_path / name)
        assert written.read_text().lower().startswith(begins)
    assert repr(suite) == "<SuiteResult PASS: sums PASS>"
    with pytest.raises(tw.InvalidArgument):
        result.write(tmp_path / "report.docx")


@pytest.mark.slow
def test_a_plan_an_answer_and_a_measurement_are_short_to_look_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show()` prints what there is to read."""
    plan = tw.check(contract(), inputs=["q"], seed=1)
    answer = tw.plan(0.9, max_trials=50)
    measured = tw.measure(contract(), inputs=["q"], trials=20, store=None, baselines=tmp_path)

    assert "<CheckedPlan 'sums': answers; at most 215 trials, seed 1>" == repr(plan)
    assert repr(answer).startswith("<SizingAnswer ")
    assert "\n" not in repr(answer)
    assert len(repr(answer)) < 100
    assert f"<Measurement 'sums': answers 20 of 20 passed; {measured.path}>" == repr(measured)
    plan.show()
    measured.show()
    shown = capsys.readouterr().out
    assert "sums: at most 215 trials" in shown
    assert "answers 20 of 20 passed" in shown


def test_a_service_may_return_a_trace() -> None:
    """Its calls are checked, and its usage counts."""

    def agent(_question: str) -> tw.Trace:
        return tw.Trace(
            answer="booked",
            tool_calls=(tw.ToolCall(name="book", args={}),),
            usage=tw.Usage(input_tokens=3, output_tokens=2),
        )

    criteria = [
        tw.Criterion("booked", tw.tool_called("book"), at_least=0.9),
        tw.Criterion("said", tw.contains("booked"), at_least=0.9),
    ]
    result = tw.run(tw.Contract("agent", agent, criteria), inputs=["q"], store=None)

    assert "PASS" == result.decision
    assert result.trials[0].usage is not None
    assert 5 == result.trials[0].usage.total_tokens


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("timeout", "did you mean 'timeout_s'"),
        ("trails", "'trials'"),
        ("zzz", "settings are"),
        ("max_usd", r"write `budget=tw\.Budget\(usd="),
    ],
)
def test_an_unknown_setting_is_refused_with_a_remedy(name: str, hint: str) -> None:
    """With the value that was given, before anything runs."""
    wrong: dict[str, Any] = {name: 3}

    functions: tuple[Callable[..., object], ...] = (tw.run, tw.check, tw.measure)
    for function in functions:
        with pytest.raises(TypeError, match=rf"no setting '{name}' \(given 3\).*{hint}"):
            function(contract(), inputs=["q"], **wrong)
