"""`await tw.arun(...)`: a run in the loop of the caller, with the caller's clients."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw


class Client:
    """Works in one event loop only, like the connections of an HTTP client."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._waiting = asyncio.Event()

    async def ask(self, _question: str) -> str:
        async with self._lock:
            asyncio.get_running_loop().call_soon(self._waiting.set)
            await self._waiting.wait()
            self._waiting.clear()
        return "555"


def contract(service: Any, *checks: Any, at_least: float = 0.9) -> tw.Contract:
    criterion = tw.Criterion("answers", checks or (tw.contains("555"),), at_least=at_least)
    return tw.Contract("sums", service, [criterion])


def test_an_async_client_of_the_caller_serves_the_trials() -> None:
    """Before the run, in it, and afterwards."""

    async def main() -> list[str]:
        client = Client()
        before = await client.ask("first")
        asked = contract(client.ask)
        result = await tw.arun(asked, inputs=["q"], store=None, concurrency=4, seed=1)
        assert 0 == len(result.failures)
        return [before, str(result.decision), await client.ask("last")]

    assert ["555", "PASS", "555"] == asyncio.run(main())


def test_a_baseline_and_a_comparison_use_the_client_of_the_caller(tmp_path: Path) -> None:
    """The counts are those of the same work without a loop."""

    async def main() -> tuple[tw.Measurement, tw.Comparison]:
        client = Client()
        await client.ask("first")
        asked = contract(client.ask)
        given: dict[str, Any] = {"inputs": ["q"], "trials": 30, "seed": 1}
        measured = await tw.ameasure(
            asked, store=tmp_path / "runs", baselines=tmp_path / "baselines", **given
        )
        worse = asked.with_service(lambda _question, seed: "555" if seed % 3 else "554")
        return measured, await tw.acompare(asked, worse, store=None, **given)

    measured, compared = asyncio.run(main())

    def wrong(_question: str, seed: int) -> str:
        return "555" if seed % 3 else "554"

    right = contract(lambda _question: "555")
    plain = tw.compare(
        right, right.with_service(wrong), inputs=["q"], trials=30, seed=1, store=None
    )
    found = measured.baseline.criteria["answers"]
    assert (found.passed, found.trials) == (30, 30)
    assert compared.decision is tw.Decision.FAIL
    assert [one.passed for one in compared.candidate.trials] == [
        one.passed for one in plain.candidate.trials
    ]


def test_a_cancelled_comparison_keeps_both_runs(tmp_path: Path) -> None:
    async def stuck(_question: str, index: int) -> str:
        await asyncio.sleep(60 if index == 8 else 0)
        return "555"

    async def main() -> None:
        asked = contract(stuck)
        task = asyncio.create_task(
            tw.acompare(asked, asked, inputs=["q"], trials=30, store=tmp_path)
        )
        await asyncio.sleep(0.7)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert len(list(tmp_path.glob("runs/*/record.json"))) == 2


@pytest.mark.parametrize("name", ["measure", "compare"])
def test_the_plain_forms_point_to_the_async_ones(tmp_path: Path, name: str) -> None:
    async def answer(_question: str) -> str:
        return "555"

    async def main() -> None:
        asked = contract(answer)
        given: dict[str, Any] = {"inputs": ["q"], "trials": 20}
        if name == "measure":
            tw.measure(asked, store=None, baselines=tmp_path, **given)
        else:
            tw.compare(asked, asked, store=None, **given)

    with pytest.warns(RuntimeWarning, match=rf"Write `await tw.a{name}\(...\)`"):
        asyncio.run(main())


def test_the_other_tasks_of_the_loop_go_on() -> None:
    """Also while a plain function works, which gets a thread."""
    turns = 0
    threads = set()

    def slow(_question: str) -> str:
        threads.add(threading.current_thread())
        time.sleep(0.005)
        return "555"

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def main() -> None:
        task = asyncio.create_task(count_turns())
        await tw.arun(contract(slow), inputs=["q"], store=None, seed=1)
        task.cancel()

    asyncio.run(main())

    assert turns > 40
    assert threading.main_thread() not in threads


def test_the_result_is_the_one_of_a_plain_run(tmp_path: Path) -> None:
    """With the same seed: the same trials, and a record that can be read."""

    async def answer(_question: str, seed: int) -> str:
        return "555" if seed % 8 else "554"

    asked = contract(answer, at_least=0.7)
    plain = tw.run(asked, inputs=["q"], seed=4, store=None)

    async def main() -> tw.Result:
        return await tw.arun(asked, inputs=["q"], seed=4, store=tmp_path)

    ours = asyncio.run(main())

    assert plain.decision is ours.decision
    assert [one.passed for one in plain.trials] == [one.passed for one in ours.trials]
    assert ours.path is not None
    assert (ours.path / "record.json").exists()


@pytest.mark.parametrize("executor", ["local", "processes:1"])
@pytest.mark.parametrize("cancel", ["task", "timeout", "scope"])
def test_cancelling_keeps_what_is_complete_and_is_a_cancellation(
    cancel: str, executor: str, tmp_path: Path
) -> None:
    """A cancelled task is cancelled, a time limit has passed; `resume` goes on."""

    def stuck_at(place: int | None) -> Callable[..., Any]:
        async def answer(_question: str, index: int) -> str:
            if index == place:
                (tmp_path / "stuck").touch()
                await anyio.sleep(60)
            return "555"

        return answer

    options: dict[str, Any] = {"inputs": ["q"], "store": tmp_path, "trials": 30}

    async def see_it_stuck() -> None:
        while not (tmp_path / "stuck").exists():
            await asyncio.sleep(0.01)
        # What came before is in the journal by then, also of a worker that answers in batches.
        await asyncio.sleep(0.3)

    async def main() -> bool:
        work = tw.arun(contract(stuck_at(10)), executor=executor, **options)
        if cancel == "task":
            task = asyncio.create_task(work)
            await see_it_stuck()
            task.cancel()
            await asyncio.wait([task])
            return task.cancelled()
        if cancel == "timeout":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(work, 0.5)
            return True
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def cancel_it() -> None:
                    await see_it_stuck()
                    scope.cancel()

                group.start_soon(cancel_it)
                await work
        return scope.cancelled_caught

    began_s = time.monotonic()
    assert asyncio.run(main())

    assert time.monotonic() - began_s < 30
    (record,) = tmp_path.glob("runs/*/record.json")
    assert '"stop": "interrupted"' in record.read_text(encoding="utf-8")
    resumed = tw.run(contract(stuck_at(None)), resume=True, **options)
    assert len(resumed.trials) == 29 or resumed.passed


def test_trio_will_do() -> None:
    """A service that waits by anyio runs in any loop that anyio knows."""
    pytest.importorskip("trio")

    async def answer(_question: str) -> str:
        await anyio.sleep(0)
        return "555"

    async def main() -> bool:
        return (await tw.arun(contract(answer), inputs=["q"], store=None)).passed

    assert anyio.run(main, backend="trio")


def test_a_plain_run_in_a_loop_points_to_the_async_one(capsys: pytest.CaptureFixture[str]) -> None:
    """By a warning, and again where the service uses a client of the caller's loop."""

    async def main() -> tw.Result:
        client = Client()
        await client.ask("first")
        return tw.run(contract(client.ask), inputs=["q"], store=None, progress=True)

    with pytest.warns(RuntimeWarning, match=r"Write `await tw.arun\(...\)`"):
        result = asyncio.run(main())

    assert "INCONCLUSIVE" == result.decision
    assert "service-unusable" == result.verdict.stop
    assert "`await tw.arun(...)`" in capsys.readouterr().err


def test_a_plain_function_in_a_loop_is_no_reason_to_warn() -> None:
    """As in a notebook, where every cell is in one."""

    async def main() -> bool:
        return tw.run(contract(lambda _: "555"), inputs=["q"], store=None).passed

    assert asyncio.run(main())


# --- Async checks -----------------------------------------------------------------------------


def test_an_async_check_is_awaited_in_the_same_loop() -> None:
    """With the same clients; plain and named checks stand beside it."""
    said: list[str] = []

    async def main() -> tw.Result:
        client = Client()

        async def agrees(text: str, input: str) -> bool:  # noqa: A002
            said.append(input)
            return text == await client.ask(text)

        checks = (agrees, tw.contains("5"), tw.predicate(agrees, name="again"))
        return await tw.arun(
            contract(client.ask, *checks), inputs=["q"], store=None, concurrency=3, seed=1
        )

    result = asyncio.run(main())

    assert "PASS" == result.decision
    assert 2 * len(result.trials) <= len(said)


def test_an_async_check_fails_by_false_an_assertion_or_a_result() -> None:
    """As a plain one does, with the same explanations."""

    async def is_right(text: str) -> bool:
        return text == "555"

    async def asserts(text: str) -> None:
        assert text == "555", f"{text} is wrong"

    async def tells(_text: str) -> tw.CheckResult:
        return tw.CheckResult.fail("I say so")

    for check, words in ((is_right, "is_right is false"), (asserts, "554 is wrong"), (tells, "so")):
        result = tw.run(contract(lambda _: "554", check), inputs=["q"], store=None)
        assert "FAIL" == result.decision
        assert words in result.trials[0].outcomes[0].result.explanation


def test_a_broken_async_check_stops_the_run() -> None:
    """With its own traceback: neither a failure of the service nor a pass."""

    async def broken(text: str) -> bool:
        return text.nothing  # type: ignore[attr-defined,no-any-return]

    async def forgets(text: str) -> None:
        text == "555"  # noqa: B015

    for check, words in ((broken, "AttributeError"), (forgets, "returned None")):
        with pytest.raises(tw.BrokenCheck, match=words):
            tw.run(contract(lambda _: "555", check), inputs=["q"], store=None)


def test_an_async_check_that_cannot_reach_anybody_is_not_measured() -> None:
    """As everywhere."""

    async def unreachable(text: str) -> bool:
        raise ConnectionRefusedError(f"no answer to {text}")

    result = tw.run(contract(lambda _: "555", unreachable), inputs=["q"], store=None)

    assert "INCONCLUSIVE" == result.decision
