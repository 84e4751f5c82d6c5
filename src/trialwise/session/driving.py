"""Running the engine from plain code: with an event loop of its own, and Ctrl-C made gentle.

The first Ctrl-C ends the run cleanly: what is in flight is let go, what is complete is kept. The
second raises at once, for a function that does not come back.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trialwise.engine.ports import Service
from trialwise.model.contract import Contract
from trialwise.model.plan import Plan

if TYPE_CHECKING:
    import anyio

    from trialwise.engine.runner import RunOutcome

__all__ = ["drive"]


def drive(plan: Plan, contract: Contract, service: Service, **arguments: Any) -> RunOutcome:
    """Run a plan to its outcome; inside a running event loop, in a thread of its own.

    Args:
        plan: What to run.
        contract: Its criteria and inputs.
        service: What is under test.
        arguments: The keyword arguments of `run_plan`.
    """
    import anyio

    outcomes: list[RunOutcome] = []

    async def whole() -> None:
        from trialwise.engine.runner import run_plan

        interrupted = anyio.Event()
        with _gentle_interrupts(interrupted):
            outcomes.append(
                await run_plan(plan, contract, service, interrupted=interrupted, **arguments)
            )

    # The outcome is not the task's result: asyncio prints its task when it puts the signal
    # handlers back, and with it every trial of the run.
    if _inside_event_loop():
        _in_thread(lambda: anyio.run(whole))
    else:
        anyio.run(whole)
    return outcomes[0]


@contextmanager
def _gentle_interrupts(interrupted: anyio.Event) -> Iterator[None]:
    """Let the first SIGINT set an event; only the main thread may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import asyncio

    loop = asyncio.get_running_loop()

    def handle(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        loop.call_soon_threadsafe(interrupted.set)

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _inside_event_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Callable[[], None]) -> None:
    """Do some work in a new thread and wait for it; what it raises is raised here."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(work).result()
