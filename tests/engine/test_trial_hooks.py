"""`before_each`: called before each trial, and never counted against the service."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Setup

RIGHT = tw.Criterion("right", tw.contains("ok"), at_least=0.5)


def contract(service: Any, before_each: Any) -> tw.Contract:
    return tw.Contract("x", service, [RIGHT], before_each=before_each)


def run(service: Any, before_each: Any, **settings: Any) -> tw.Result:
    given = {"trials": 10, "retries": 0, "store": None, "progress": False, "curtail": False}
    return tw.run(contract(service, before_each), inputs=["a", "b"], **{**given, **settings})


def test_it_is_called_before_each_call_with_what_it_takes() -> None:
    heard: list[tuple[str, Any]] = []

    def reset(index: int, seed: int, input: str) -> None:  # noqa: A002 - the names are its contract
        heard.append(("reset", (index, seed, input)))

    def answer(question: str, index: int, seed: int) -> str:
        heard.append(("call", (index, seed, question)))
        return "ok"

    assert run(answer, reset).passed
    assert [name for name, _ in heard] == ["reset", "call"] * 10
    assert [what for name, what in heard if name == "reset"] == [
        what for name, what in heard if name == "call"
    ]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_plain_and_an_async_function_reset_what_is_under_test(
    concurrency: int, is_async: bool
) -> None:
    """A thread keeps the event loop free where several trials run at once."""
    calls = []

    def reset() -> None:
        calls.append(threading.current_thread())

    async def areset() -> None:
        await asyncio.sleep(0)
        reset()

    result = run(lambda _question: "ok", areset if is_async else reset, concurrency=concurrency)

    assert result.passed
    assert len(calls) == 10
    runs_elsewhere = any(one is not threading.main_thread() for one in calls)
    assert runs_elsewhere is (concurrency > 1 and not is_async)


def test_an_exception_in_it_is_not_measured_and_never_a_failure() -> None:
    """The trial is asked again; the service is not called in between."""
    calls: list[int] = []

    def reset(index: int) -> None:
        if index % 3 == 1:
            raise RuntimeError("the database is locked")

    def answer(_question: str, index: int) -> str:
        calls.append(index)
        return "ok"

    result = run(answer, reset)

    finding = result.verdict.findings[0]
    assert (result.decision, finding.tally.passed) == (tw.Decision.PASS, 10)
    assert all(index % 3 != 1 for index in calls)
    lost = [one for one in result.record.trials if not one.passed]
    assert {one.error_class.value for one in lost} == {"infrastructure"}
    assert "`before_each` failed: RuntimeError: the database is locked" in lost[0].error


def test_one_that_always_raises_ends_the_run_inconclusive() -> None:
    def reset() -> None:
        raise ConnectionError("refused")

    result = run(lambda _question: "ok", reset)

    assert result.decision is tw.Decision.INCONCLUSIVE
    assert result.verdict.aborted.startswith("`before_each` failed: ConnectionError: refused")
    assert "Is it running" not in result.verdict.aborted


def test_its_time_is_not_the_services() -> None:
    """Neither in the time limit nor in the latency."""
    result = run(lambda _question: "ok", lambda: time.sleep(0.25), timeout_s=0.2, trials=5)

    assert result.passed
    assert max(one.latency_s or 0 for one in result.record.trials) < 0.2


def test_a_retry_resets_again() -> None:
    heard: list[str] = []

    def answer(_question: str) -> str:
        heard.append("call")
        if len(heard) == 2:
            raise ConnectionError("reset by peer")
        return "ok"

    run(answer, lambda: heard.append("reset"), retries=1, trials=5)

    assert heard == ["reset", "call"] * 6


@pytest.mark.parametrize("wrong", [lambda reply: reply, 5, lambda a, /: a])
def test_a_function_that_cannot_be_called_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="before_each must be a function"):
        contract(str, wrong)


def test_a_comparison_resets_between_the_two() -> None:
    heard: list[str] = []

    def answer(name: str) -> Any:
        def service(_question: str) -> str:
            heard.append(name)
            return "ok"

        return service

    first = contract(answer("a"), lambda: heard.append("reset"))
    second = first.with_service(answer("b"))
    tw.compare(first, second, inputs=["q"], trials=20, store=None)

    assert heard[::2] == ["reset"] * 40
    assert sorted(heard[1::2]) == ["a"] * 20 + ["b"] * 20


def test_a_suite_names_it_and_a_replay_does_not_call_it(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "def note(word):\n"
        "    with open('heard.txt', 'a') as file:\n"
        "        file.write(word)\n"
        "def reset(): note('r')\n"
        "def answer(question):\n"
        "    note('c')\n"
        "    return 'ok'\n"
    )
    (tmp_path / "trialwise.yaml").write_text(
        'service: {python: "agent:answer"}\n'
        "before_each: agent:reset\n"
        "inputs: [a]\n"
        "criteria: [{name: right, equals: ok, at_least: 50%, trials: 6}]\n"
    )

    def trialwise(*arguments: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "trialwise.cli.main", "run", "-q", "--json", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        return report

    first = trialwise("--record", "replies.jsonl")
    heard = (tmp_path / "heard.txt").read_text()
    again = trialwise("--replay", "replies.jsonl")

    assert (first["decision"], again["decision"]) == ("PASS", "PASS")
    assert heard == "rc" * (len(heard) // 2)
    assert (tmp_path / "heard.txt").read_text() == heard


class TestWhatPreparingTakes:
    """It is setup of the trial, apart from its latency, tokens and cost."""

    criterion = tw.Criterion("answers", tw.contains("a"), at_least=0.5)

    def spent(self, before_each: Any, answer: Any) -> Any:
        contract = tw.Contract("x", answer, [self.criterion], before_each=before_each)
        settings: dict[str, Any] = {"trials": 6, "curtail": False, "retries": 0}
        result = tw.run(contract, inputs=["a"], store=None, progress=False, **settings)
        return result.verdict.spending

    @pytest.mark.requirement(
        "statistical-ci metrics",
        "The time of preparing a trial is kept apart from the time of the trial.",
        "`before_each`, whose time is the setup of a trial",
    )
    def test_its_time_is_setup(self) -> None:
        spent = self.spent(lambda: time.sleep(0.01), lambda given: given)
        assert 0.06 <= spent.setup_s < 5
        assert (spent.setup_tokens, spent.setup_usd) == (0, None)

    def test_what_it_says_is_setup_beside_that_of_the_service(self) -> None:
        usage = tw.Usage(input_tokens=3, output_tokens=4)

        def before() -> Setup:
            return Setup(seconds=2.0, usage=usage, cost_usd=0.5)

        def answer(given: str) -> tw.Reply:
            setup = Setup(seconds=1.0, usage=usage, cost_usd=0.25)
            return tw.Reply(value=given, cost_usd=0.125, setup=setup)

        spent = self.spent(before, answer)
        assert (spent.setup_s, spent.setup_tokens, spent.setup_usd) == (18.0, 84, 4.5)
        assert spent.usd == 0.75

    def test_it_counts_where_the_service_fails(self) -> None:
        async def before() -> Setup:
            return Setup(seconds=2.0, cost_usd=0.5)

        def answer(_: str) -> str:
            raise ValueError("no")

        spent = self.spent(before, answer)
        assert (spent.setup_s, spent.setup_usd) == (12.0, 3.0)
