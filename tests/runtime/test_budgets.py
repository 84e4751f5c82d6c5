"""Limits on money, tokens and time hold, however many trials run side by side."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.errors import DesignRefused, InvalidArgument


def run(service: Any, *, trials: int = 400, **settings: Any) -> tw.Result:
    """A run that only a limit can end."""
    contract = tw.Contract(
        "paid", service, [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)], sampling=["q"]
    )
    kept: dict[str, Any] = {"curtail": False, "store": None, "progress": False}
    return tw.run(contract, trials=trials, **(kept | settings))


async def dollar(question: str) -> tw.Reply:  # noqa: ARG001
    """One dollar and a hundred tokens."""
    await anyio.sleep(0.01)
    usage = tw.Usage(input_tokens=60, output_tokens=40)
    return tw.Reply(value="ok", cost_usd=1.0, usage=usage)


class Billing:
    """A service that takes one dollar and a hundred tokens, and writes every call down.

    Args:
        file: Also written by workers of other processes.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    async def __call__(self, question: str) -> tw.Reply:
        """Answer."""
        with self._file.open("a", encoding="utf-8") as calls:
            calls.write(".")
        return await dollar(question)

    def count_calls(self) -> int:
        """Return how often it was called, by whichever process."""
        return len(self._file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("executor", ["local", "processes:2"])
@pytest.mark.parametrize("concurrency", [1, 8, 50])
def test_money_is_never_exceeded_by_trials_side_by_side(
    concurrency: int, executor: str, tmp_path: Path
) -> None:
    """Five dollars buy five trials of one dollar, with 8 or 50 workers as with one."""
    service = Billing(tmp_path / "calls")
    result = run(service, concurrency=concurrency, executor=executor, budget=tw.Budget(usd=5))

    assert service.count_calls() == len(result.record.trials) == 5
    assert result.verdict.spending.usd == 5.0
    assert result.verdict.stop is tw.model.StopReason.MONEY_BUDGET
    assert result.decision is tw.Decision.INCONCLUSIVE


@pytest.mark.parametrize("executor", ["local", "processes:2"])
@pytest.mark.parametrize("concurrency", [8, 50, 500])
def test_tokens_are_never_exceeded_by_trials_side_by_side(
    concurrency: int, executor: str, tmp_path: Path
) -> None:
    """10,000 tokens are a hundred trials of a hundred."""
    service = Billing(tmp_path / "calls")
    budget = tw.Budget(tokens=10_000)
    result = run(service, concurrency=concurrency, executor=executor, budget=budget)

    assert service.count_calls() == 100
    assert result.verdict.spending.tokens == 10_000
    assert result.verdict.stop is tw.model.StopReason.TOKEN_BUDGET


def test_a_trial_that_might_not_fit_is_not_started() -> None:
    """After costs of 1 and 3 dollars, 5 dollars have no room for another 3."""

    async def uneven(question: str, index: int) -> tw.Reply:  # noqa: ARG001
        return tw.Reply(value="ok", cost_usd=3.0 if index % 2 else 1.0)

    result = run(uneven, concurrency=4, budget=tw.Budget(usd=5))

    assert (result.verdict.spending.usd or 0) <= 5.0
    assert "no room for another trial" in result.verdict.aborted


def test_a_limit_makes_no_run_slower_than_it_must() -> None:
    """Far from the limit all workers are busy: 200 trials of 10 ms with 50 workers."""
    most = 0
    now = 0

    async def busy(question: str) -> tw.Reply:  # noqa: ARG001
        nonlocal most, now
        now += 1
        most = max(most, now)
        await anyio.sleep(0.01)
        now -= 1
        return tw.Reply(value="ok", cost_usd=1.0)

    run(busy, trials=200, concurrency=50, budget=tw.Budget(usd=1000))

    assert most == 50


async def silent(question: str) -> str:  # noqa: ARG001
    """A reply that does not tell what it cost."""
    await anyio.sleep(0.001)
    return "ok"


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_limit_on_money_ends_a_run_whose_replies_tell_no_cost(concurrency: int) -> None:
    """One trial shows it; the message has the two ways out."""
    result = run(silent, concurrency=concurrency, budget=tw.Budget(usd=0.01))

    assert len(result.record.trials) == 1
    assert result.decision is tw.Decision.INCONCLUSIVE
    assert "cost_per_trial" in result.verdict.aborted
    assert "budget: {trials: …}" in result.verdict.aborted


def test_a_limit_on_tokens_ends_a_run_whose_replies_tell_none() -> None:
    """The same for tokens."""
    result = run(silent, budget=tw.Budget(tokens=100))

    assert len(result.record.trials) == 1
    assert "does not tell how many tokens" in result.verdict.aborted


@pytest.mark.parametrize("concurrency", [1, 8, 50])
def test_a_declared_cost_is_reserved_and_billed(concurrency: int) -> None:
    """At 10 cents a trial, one dollar is ten trials from the first moment on."""
    result = run(silent, concurrency=concurrency, budget=tw.Budget(usd=1), cost_per_trial_usd=0.1)

    assert len(result.record.trials) == 10
    assert result.verdict.spending.usd == pytest.approx(1.0)


def test_a_declared_cost_above_the_budget_is_refused() -> None:
    """Not one trial could be run."""
    with pytest.raises(InvalidArgument, match="which would allow no trial"):
        tw.RunOptions(budget=tw.Budget(usd=1), cost_per_trial_usd=2.0)


@pytest.mark.parametrize(
    "service",
    [
        tw.services.CommandService(["echo", "ok {input}"]),
        tw.services.HttpService("http://127.0.0.1:9/"),
        tw.services.ChatService("http://127.0.0.1:9/v1", "small", api_key_env=None),
    ],
    ids=["command", "http", "chat without prices"],
)
def test_a_limit_on_money_is_refused_where_nobody_can_know_the_cost(service: Any) -> None:
    """Before the first trial, with the two ways out."""
    with pytest.raises(DesignRefused, match="cost_per_trial") as refused:
        run(service, budget=tw.Budget(usd=0.01))
    assert "budget: {trials: …}" in str(refused.value)


def test_a_suite_with_a_limit_on_an_unknown_cost_exits_2(tmp_path: Path) -> None:
    """Nothing was run; with `cost_per_trial` the limit acts."""
    suite = (
        "name: x\n"
        'service: {command: [echo, "ok {input}"]}\n'
        "inputs: [a, b]\n"
        "trials: 40\n"
        "criteria: [{name: ok, contains: ok, at_least: 50%}]\n"
    )
    command = [sys.executable, "-m", "trialwise.cli.main", "run", "-q", "--max-usd", "0.05"]

    def codes(text: str) -> tuple[int, str]:
        (tmp_path / "trialwise.yaml").write_text(text, encoding="utf-8")
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    code, said = codes(suite)
    assert code == 2
    assert "cost_per_trial" in said
    code, said = codes(suite + "cost_per_trial: $0.01\n")
    assert code == 3
    journal = next(tmp_path.glob(".trialwise/runs/*/journal.jsonl"))
    assert len(journal.read_text().splitlines()) == 5


# Time


async def forever(question: str, index: int) -> str:  # noqa: ARG001
    """The fourth trial never comes back."""
    await anyio.sleep(3600 if index == 3 else 0)
    return "ok"


def blocking(question: str) -> str:  # noqa: ARG001
    """A plain function that takes its time."""
    time.sleep(4)
    return "ok"


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("service", [forever, blocking])
def test_a_time_limit_ends_what_is_in_flight(service: Any, concurrency: int) -> None:
    """No trial is waited for beyond the limit, with a timeout of its own or without."""
    began = time.monotonic()
    result = run(service, concurrency=concurrency, budget=tw.Budget(seconds=0.5))
    took = time.monotonic() - began

    assert took < 3
    assert result.verdict.stop is tw.model.StopReason.TIME_BUDGET
    assert result.decision is tw.Decision.INCONCLUSIVE
    assert result.verdict.spending.abandoned >= 1


def test_no_wait_begins_that_ends_after_the_time_limit() -> None:
    """A server asks for 590 s of patience, and the run has 5: it ends at once."""

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self.send_response(429)
            self.send_header("Retry-After", "590")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        service = tw.services.HttpService(f"http://127.0.0.1:{server.server_port}/")
        began = time.monotonic()
        result = run(service, retries=1, budget=tw.Budget(seconds=5))
        took = time.monotonic() - began
    finally:
        server.shutdown()
        server.server_close()

    assert took < 3
    assert result.verdict.stop is tw.model.StopReason.TIME_BUDGET
    assert "may be asked again" in result.verdict.aborted
    assert result.record.trials == ()


def test_no_pause_of_the_rate_begins_that_ends_after_the_time_limit() -> None:
    """One trial a minute and two seconds: the second trial is not waited for."""
    began = time.monotonic()
    result = run(silent, rate_per_s=1 / 60, budget=tw.Budget(seconds=2))

    assert time.monotonic() - began < 1.5
    assert len(result.record.trials) == 1
    assert result.verdict.stop is tw.model.StopReason.TIME_BUDGET


def test_a_decided_run_is_decided_although_the_limit_is_near() -> None:
    """A time limit that is never reached changes nothing."""
    result = run(silent, trials=40, budget=tw.Budget(seconds=60))

    assert result.decision is tw.Decision.PASS
    assert json.loads(json.dumps(result.to_dict()))["decision"] == "PASS"
