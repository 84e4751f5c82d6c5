"""Python functions: what they are given, how they are timed, how they misbehave."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, NoReturn

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import ErrorClass
from trialwise.services import CallableService

pytestmark = pytest.mark.anyio

TRIAL = TrialContext(index=3, input="question", seed=11)


class Agent:
    async def __call__(self, question: str, *, seed: int) -> str:
        await anyio.sleep(0)
        return f"{question} {seed}"

    def answer(self, question: str) -> str:
        return question.upper()


def named_input(other: int = 0, *, input: str) -> str:  # noqa: A002 - the name that is asked for
    return input * (other + 1)


def two_unknown(question: str, answer: str) -> str:
    return question + answer


def annotated(context: TrialContext, question: str) -> tuple[int, str]:
    return context.index, question


def positional_only(seed: int, question: str, /) -> tuple[int, str]:
    return seed, question


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda question: question, "question"),
        (named_input, "question"),
        (lambda index, seed: (index, seed), (3, 11)),
        (lambda trial: trial, TRIAL),
        (lambda trial, question: (trial.seed, question), (11, "question")),
        (lambda seed, question: (seed, question), (11, "question")),
        (lambda question, retries=2: (question, retries), ("question", 2)),
        (lambda question, seed=None: (question, seed), ("question", 11)),
        (lambda seed, retries=2: (seed, retries), (11, 2)),
        (lambda question="none": question, "question"),
        (lambda *given: given, ("question",)),
        (lambda *, question: question, "question"),
        (lambda: "nothing", "nothing"),
        (annotated, (3, "question")),
        (positional_only, (11, "question")),
        (Agent(), "question 11"),
        (Agent().answer, "QUESTION"),
        (partial(Agent(), seed=5), "question 5"),
        (str.upper, "QUESTION"),
        (len, 8),
        (dict.fromkeys, dict.fromkeys("question")),
    ],
)
async def test_a_function_is_given_what_its_signature_asks_for(
    function: Callable[..., Any], expected: object
) -> None:
    """By name where it uses our names, and the input where it uses its own."""
    assert expected == (await CallableService(function).call(TRIAL)).value


@pytest.mark.parametrize(
    "function",
    [two_unknown, lambda trial, question, answer: (trial, question, answer), "text", None],
)
def test_a_function_that_asks_for_more_is_refused(function: Any) -> None:
    """Before the first trial, by the name of what is missing."""
    with pytest.raises(InvalidArgument, match="function must"):
        CallableService(function)


def test_a_generator_is_refused() -> None:
    """Nobody would ever read what it yields."""

    async def later() -> Any:
        yield 1

    def now() -> Any:
        yield 1

    for function in (later, now):
        with pytest.raises(InvalidArgument, match="not yield"):
            CallableService(function)


async def test_a_sync_function_leaves_the_event_loop_free_and_keeps_the_context() -> None:
    """It runs in another thread, where context variables still hold."""
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("kept")

    reply = await CallableService(lambda: (threading.get_ident(), variable.get())).call(TRIAL)

    assert reply.value[0] != threading.get_ident()
    assert "kept" == reply.value[1]


async def test_without_a_thread_it_runs_where_it_is_called() -> None:
    """For functions too short to be worth a thread."""
    reply = await CallableService(lambda _: threading.get_ident(), in_thread=False).call(TRIAL)

    assert threading.get_ident() == reply.value


async def test_more_trials_than_the_default_number_of_threads_run_at_once() -> None:
    """The engine's concurrency is the only limit."""
    together = threading.Barrier(60, timeout=20)
    service = CallableService(partial(together.wait, 20))
    places: list[int] = []

    async def call() -> None:
        places.append((await service.call(TRIAL)).value)

    async with anyio.create_task_group() as group:
        for _ in range(60):
            group.start_soon(call)
    await service.aclose()

    assert [*range(60)] == sorted(places)


@pytest.mark.parametrize("in_thread", [True, False])
async def test_the_latency_is_the_functions_own(in_thread: bool) -> None:
    """Two readings of the clock around the call."""
    readings = iter([10.0, 12.5])
    service = CallableService(lambda: "x", in_thread=in_thread, clock=lambda: next(readings))

    assert 2.5 == (await service.call(TRIAL)).latency_s


async def test_an_async_function_is_timed_to_the_end_of_its_await() -> None:
    """Making the coroutine is not the work."""
    now = [0.0]

    async def slow() -> str:
        await anyio.sleep(0)
        now[0] = 4.0
        return "done"

    assert 4.0 == (await CallableService(slow, clock=lambda: now[0]).call(TRIAL)).latency_s


async def test_a_sync_function_may_return_something_to_await() -> None:
    """As a lambda around an async function does."""

    async def answer(question: str) -> str:
        return question.title()

    assert "Questions" == (await CallableService(lambda q: answer(q + "s")).call(TRIAL)).value


async def test_a_reply_is_passed_on_and_timed_unless_it_is() -> None:
    """A function that measured its own latency is believed."""
    readings = iter([0.0, 1.0, 0.0, 1.0])
    measured = CallableService(
        lambda: Reply(value="a", latency_s=0.2, cost_usd=0.1), clock=lambda: next(readings)
    )
    bare = CallableService(lambda: Reply(value="a", cost_usd=0.1), clock=lambda: next(readings))

    assert Reply(value="a", latency_s=0.2, cost_usd=0.1) == await measured.call(TRIAL)
    assert Reply(value="a", latency_s=1.0, cost_usd=0.1) == await bare.call(TRIAL)


@pytest.mark.parametrize(
    "error", [ValueError("own"), ServiceError("none", ErrorClass.INFRASTRUCTURE), TimeoutError()]
)
async def test_what_a_function_raises_arrives_unchanged(error: Exception) -> None:
    """The engine classes it."""

    def sync() -> NoReturn:
        raise error

    async def later() -> NoReturn:
        raise error

    for function in (sync, later):
        with pytest.raises(type(error)) as caught:
            await CallableService(function).call(TRIAL)
        assert error is caught.value


async def test_leaving_the_interpreter_is_a_failure_and_not_the_end() -> None:
    """`sys.exit` in a service does not take the run with it."""

    async def later() -> NoReturn:
        sys.exit(3)

    for function in (lambda: sys.exit(3), later):
        with pytest.raises(RuntimeError, match=r"sys.exit\(3\)"):
            await CallableService(function).call(TRIAL)


async def test_a_sync_function_that_hangs_is_abandoned() -> None:
    """A cancelled call returns at once; the thread ends when the function does."""
    release = threading.Event()
    started = time.perf_counter()
    with pytest.raises(TimeoutError), anyio.fail_after(0.05):
        await CallableService(lambda: release.wait(20)).call(TRIAL)
    elapsed = time.perf_counter() - started
    release.set()

    assert elapsed < 10


def test_a_function_that_hangs_for_ever_does_not_keep_the_interpreter() -> None:
    """The program that abandoned it can end."""
    code = """
import anyio, threading
from trialwise.engine.ports import TrialContext
from trialwise.services import CallableService

async def main():
    with anyio.move_on_after(0.05):
        await CallableService(threading.Event().wait).call(
            TrialContext(index=0, input=None, seed=1)
        )

anyio.run(main)
print("ended")
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )

    assert ("ended\n", "") == (ended.stdout, ended.stderr)


async def test_an_abandoned_function_may_end_when_its_run_is_over() -> None:
    """What it returns then goes nowhere, and the service can be used in the next run."""
    release, ended = threading.Event(), threading.Event()

    def slow() -> str:
        release.wait(20)
        ended.set()
        return "late"

    service = CallableService(slow)

    async def abandon() -> None:
        with anyio.move_on_after(0.01):
            await service.call(TRIAL)

    other = threading.Thread(target=anyio.run, args=(abandon,))
    other.start()
    other.join(20)
    release.set()
    assert ended.wait(20)

    assert "late" == (await service.call(TRIAL)).value
    await service.aclose()


async def test_a_service_that_cancels_itself_fails() -> None:
    """As one does that awaits a task it has cancelled; the trial is not lost."""

    async def own() -> None:
        task = asyncio.create_task(asyncio.sleep(20))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(RuntimeError, match="cancelled itself"):
        await CallableService(own).call(TRIAL)


async def test_a_native_cancellation_is_one() -> None:
    """Cancelling the task itself, as Ctrl-C does, is passed on."""
    task = asyncio.create_task(CallableService(anyio.sleep_forever).call(TRIAL))
    await asyncio.sleep(0.01)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_stop_iteration_arrives_as_an_error() -> None:
    """`next` on an exhausted script is a failure like any other."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await CallableService(lambda: next(iter(()))).call(TRIAL)


async def test_a_sync_function_can_be_waited_for() -> None:
    """Without abandoning, cancelling takes as long as the function."""
    done: list[bool] = []

    def slow() -> None:
        time.sleep(0.1)
        done.append(True)

    with anyio.move_on_after(0.01):
        await CallableService(slow, abandon_on_cancel=False).call(TRIAL)

    assert [True] == done


async def test_cancelling_an_async_function_ends_it() -> None:
    """Its clean-up has run when the call returns."""
    ended: list[bool] = []

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    with anyio.move_on_after(0.01):
        await CallableService(hang).call(TRIAL)

    assert [True] == ended


async def test_threads_do_not_pile_up_and_closing_twice_is_harmless() -> None:
    """200 calls one after the other need one thread."""
    service = CallableService(lambda _: threading.current_thread())
    idents = {(await service.call(TRIAL)).value for _ in range(200)}
    await service.aclose()
    await service.aclose()

    assert 1 == len(idents)
    assert "CallableService(Agent.answer)" == repr(CallableService(Agent().answer))


@pytest.mark.parametrize("in_thread", [True, False])
def test_a_sync_function_may_run_an_event_loop_of_its_own(in_thread: bool) -> None:
    """Many a client's sync method is `asyncio.run` inside; so is many an agent."""

    async def inner() -> str:
        await anyio.sleep(0)
        return "from inside"

    services = [
        CallableService(lambda _question: asyncio.run(inner()), in_thread=in_thread),
        CallableService(lambda _question: anyio.run(inner), in_thread=in_thread),
    ]

    async def whole(service: CallableService) -> list[object]:
        replies = [await service.call(TrialContext(index=0, input="q", seed=1)) for _ in range(3)]
        await anyio.sleep(0)  # the outer loop is still there
        return [reply.value for reply in replies]

    for service in services:
        assert ["from inside"] * 3 == anyio.run(whole, service)


def test_what_one_trial_sets_is_not_there_for_the_next() -> None:
    """Context variables are the caller's, fresh for every trial."""
    variable: ContextVar[int] = ContextVar("variable", default=0)

    def count(_question: str) -> int:
        variable.set(variable.get() + 1)
        return variable.get()

    service = CallableService(count, in_thread=False)

    async def whole() -> list[object]:
        return [
            (await service.call(TrialContext(index=0, input="q", seed=1))).value for _ in range(3)
        ]

    assert [1, 1, 1] == anyio.run(whole)
