"""The same one-liners from a script, a coroutine, a thread and a notebook."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import trialwise as tw
from trialwise.engine.ports import Interrupt
from trialwise.runtime.comparing import compare
from trialwise.runtime.looping import run_to_end


async def answer(_question: str) -> str:
    await anyio.sleep(0)
    return "555"


def contract() -> tw.Contract:
    return tw.Contract("sums", answer, [tw.Criterion("answers", tw.contains("555"), at_least=0.9)])


def everything(folder: Path) -> list[str]:
    """Plan, run, measure and compare, each in a line."""
    options: dict[str, Any] = {"inputs": ["q"], "seed": 1}
    planned = tw.check(contract(), **options)
    ran = tw.run(contract(), store=None, **options)
    measured = tw.measure(contract(), trials=20, store=None, baselines=folder, **options)
    compared = compare(contract(), contract(), trials=10, store=None, **options)
    return [
        str(planned.criteria[0].procedure),
        ran.decision,
        str(measured.baseline.criteria["answers"].passed),
        str(compared.findings[0].p_value),
    ]


EVERYTHING = ["SEQUENTIAL", "PASS", "20", "1.0"]


def test_from_a_script(tmp_path: Path) -> None:
    """No loop is running."""
    assert everything(tmp_path) == EVERYTHING


def test_from_a_coroutine(tmp_path: Path) -> None:
    """Inside asyncio: the loop around it waits and is as it was."""

    async def inside() -> tuple[list[str], str]:
        task = asyncio.create_task(asyncio.sleep(0, "still here"))
        with pytest.warns(RuntimeWarning, match=r"await tw\.a(run|measure|compare)"):
            found = everything(tmp_path)
        return found, await task

    assert (EVERYTHING, "still here") == asyncio.run(inside())


def test_from_another_thread(tmp_path: Path) -> None:
    """Where no signal can be handled."""
    found: list[list[str]] = []
    worker = threading.Thread(target=lambda: found.append(everything(tmp_path)))
    worker.start()
    worker.join()

    assert [EVERYTHING] == found


def test_what_the_work_raises_is_raised_inside_a_loop_too() -> None:
    """Unchanged, from the thread that did it."""

    async def broken(_interrupted: Interrupt) -> None:
        raise LookupError("nothing here")

    async def inside() -> None:
        run_to_end(broken)

    with pytest.raises(LookupError, match="nothing here"):
        run_to_end(broken)
    with pytest.raises(LookupError, match="nothing here"):
        asyncio.run(inside())


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself are POSIX")
def test_an_interrupt_inside_a_loop_reaches_the_work() -> None:
    """It ends by itself, with what it has."""

    async def patient(interrupted: Interrupt) -> str:
        threading.Timer(0.05, _interrupt_main).start()
        await interrupted.wait()
        return "ended gently"

    async def inside() -> str:
        return run_to_end(patient)

    # Under `asyncio.run` Ctrl-C cancels the task instead of raising, so the loop is a bare one.
    loop = asyncio.new_event_loop()
    try:
        assert "ended gently" == loop.run_until_complete(inside())
    finally:
        loop.close()


def _interrupt_main() -> None:
    import signal

    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


# --- A real kernel ----------------------------------------------------------------------------


class Kernel:
    """An IPython kernel, as a notebook has one."""

    def __init__(self) -> None:
        from jupyter_client.manager import KernelManager

        self.manager = KernelManager()
        # Its own interpreter, not whichever kernel is registered under the name.
        assert self.manager.kernel_spec is not None
        self.manager.kernel_spec.argv = [
            sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}",
        ]  # fmt: skip
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, *, interrupt_once: str | None = None) -> dict[str, Any]:
        """What a cell shows: its text, its rich results, its error.

        Args:
            code: The cell.
            interrupt_once: Interrupt the kernel when the cell prints this.
        """
        wanted = self.client.execute(code)
        shown: dict[str, Any] = {"text": "", "html": "", "error": ""}
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                message = self.client.get_iopub_msg(timeout=1)
                if message["parent_header"].get("msg_id") != wanted:
                    continue
                content = message["content"]
                if message["msg_type"] == "stream":
                    shown["text"] += content["text"]
                    if interrupt_once and interrupt_once in content["text"]:
                        interrupt_once = None
                        self.manager.interrupt_kernel()
                elif message["msg_type"] == "execute_result":
                    shown["html"] += content["data"].get("text/html", "")
                elif message["msg_type"] == "error":
                    shown["error"] = f"{content['ename']}: {content['evalue']}"
                elif content.get("execution_state") == "idle":
                    return shown
        raise AssertionError("the kernel did not finish")

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """Started once: it takes a second or two."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    folder = tmp_path_factory.mktemp("notebook")
    before = os.getcwd()
    os.chdir(folder)
    started = Kernel()
    os.chdir(before)
    started.run(
        "import anyio, trialwise as tw\n"
        "from trialwise.runtime.comparing import compare\n"
        "async def answer(question, index):\n"
        "    if index == 3: print('under way', flush=True)\n"
        "    await anyio.sleep(0.01)\n"
        "    return '555'\n"
        "asked = [tw.Criterion('answers', tw.contains('555'), at_least=0.9)]\n"
        "contract = tw.Contract('sums', answer, asked)\n"
    )
    yield started
    started.stop()


@pytest.mark.slow
def test_a_notebook_runs_and_shows_a_verdict(kernel: Kernel) -> None:
    """The last line of a cell is shown as a fragment, inside the kernel's own event loop."""
    cell = kernel.run("tw.run(contract, inputs=['q'], seed=1)")

    assert "" == cell["error"]
    assert "PASS" in cell["html"]
    assert cell["html"].startswith('<div class="trialwise-out">')


def test_a_notebook_compares(kernel: Kernel) -> None:
    """Two services in turn, in one cell."""
    cell = kernel.run("compare(contract, contract, inputs=['q'], trials=10, seed=1)")

    assert "" == cell["error"]
    assert "not told apart" in cell["html"]


def test_a_cell_that_awaits_may_run_too(kernel: Kernel) -> None:
    """The same inside a coroutine of the user's."""
    cell = kernel.run(
        "async def go():\n    return tw.run(contract, inputs=['q'], seed=1, store=None)\n"
        "print((await go()).decision)"
    )

    assert ("", "PASS") == (cell["error"], cell["text"].split()[-1])


def test_the_stop_button_keeps_what_is_complete(kernel: Kernel) -> None:
    """An interrupted comparison ends within the trial that is under way."""
    cell = kernel.run(
        "compare(contract, contract, inputs=['q'], trials=100_000, store=None)",
        interrupt_once="under way",
    )

    assert cell["error"].startswith("RunInterrupted: interrupted after")
