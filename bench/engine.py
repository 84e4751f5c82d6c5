"""Runs to be timed: trivial services, so that what is measured is the engine and its journal."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from pathlib import Path

import trialwise as tw

WAIT_S = 0.05
_STORE = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _STORE, ignore_errors=True)


async def trivial(_question: str) -> str:
    """A service that costs nothing."""
    return "good"


def trivial_sync(_question: str) -> str:
    """The same, as a plain function."""
    return "good"


async def waiting(_question: str) -> str:
    """A service that takes as long as a quick model."""
    await asyncio.sleep(WAIT_S)
    return "good"


def run(trials: int, *, service: object = trivial, concurrency: int = 1) -> float:
    """A whole run, judged and kept; the rate, so that a benchmark has a number to agree on."""
    criterion = tw.Criterion("good", tw.equals("good"), at_least=0.5, trials=trials)
    contract = tw.Contract("bench", service, [criterion], sampling=["a", "b"])
    result = tw.run(
        contract, seed=1, store=_STORE, curtail=False, concurrency=concurrency, progress=False
    )
    rate = result.verdict.findings[0].tally.rate
    assert rate is not None
    return rate


_SUITE = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _SUITE, ignore_errors=True)


def run_suite(trials: int, *, service: str = "trivial") -> None:
    """The same through a suite file and the command `run`, with its progress and its summary."""
    from contextlib import chdir, redirect_stderr, redirect_stdout
    from io import StringIO

    from trialwise.cli.main import cli

    suite = _SUITE / f"{service}.yaml"
    suite.write_text(
        f'service: {{python: "bench.engine:{service}"}}\n'
        "inputs: [a, b]\n"
        "curtail: false\n"
        "criteria:\n"
        "  - {name: good, equals: good, at_least: 50%}\n"
    )
    arguments = ["run", f"--suite={suite}", f"--trials={trials}"]
    with chdir(_SUITE), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        assert cli.main(args=arguments, prog_name="trialwise", standalone_mode=False) == 0


def bare_calls(trials: int) -> float:
    """The same calls in a bare event loop."""

    async def whole() -> float:
        passed = 0
        for _ in range(trials):
            passed += await trivial("a") == "good"
        return passed / trials

    return asyncio.run(whole())


def bare_waits(trials: int, concurrency: int) -> float:
    """The same waits in a bare event loop, so many at once."""

    async def whole() -> float:
        places = asyncio.Semaphore(concurrency)

        async def one() -> bool:
            async with places:
                return await waiting("a") == "good"

        return sum(await asyncio.gather(*(one() for _ in range(trials)))) / trials

    return asyncio.run(whole())
