"""Runs that are cut off: by a full disk, a lost recording, a signal or a kill."""

from __future__ import annotations

import errno
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.drivers.run_drivers import run_plan
from trialwise.engine.run_state import RunOutcome
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion
from trialwise.model.evidence import StopReason
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.model.trial_lines import read_trial
from trialwise.services import CallableService, RecordingService, ReplayService
from trialwise.stores.journal import Journal, read_journal

pytestmark = pytest.mark.anyio

PlanOf = Callable[..., Plan]


async def answer(seed: int) -> str:
    await anyio.sleep(0)
    return "yes" if seed % 5 else "no"


def contract(function: Any = answer) -> Contract:
    criterion = Criterion("yes", lambda text: text == "yes", at_least=0.9)
    return Contract("c", function, [criterion], sampling=["a", "b", "c"])


class FullDisk(Journal):
    """A journal whose disk fills up."""

    room = 4
    can_sync = True

    def append_text(self, text: str) -> int:
        if len(self) >= self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().append_text(text)

    def sync(self) -> None:
        if not self.can_sync:
            raise OSError(errno.EIO, "Input/output error")
        super().sync()


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_full_disk_ends_the_run_with_what_is_written(
    plan_of: PlanOf, tmp_path: Path, concurrency: int
) -> None:
    """A trial that is not durable does not count."""
    path = tmp_path / "j"
    with FullDisk(path) as log:
        outcome = await run_plan(
            plan_of(contract(), trials=20, concurrency=concurrency),
            contract(),
            CallableService(answer),
            log=log,
        )

    assert (StopReason.SERVICE, 4) == (outcome.stop, len(outcome.trials))
    assert {one.index for one in outcome.trials} == {one["i"] for one in read_journal(path)}
    assert "No space left" in outcome.message
    assert outcome.spending.abandoned >= 1


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_disk_that_does_not_sync_ends_the_run(
    plan_of: PlanOf, tmp_path: Path, concurrency: int, virtual_clock: Any
) -> None:
    """What was appended is kept: this process has not died."""

    async def slow(question: str) -> str:  # noqa: ARG001
        virtual_clock.time += 0.03
        return "yes"

    log = FullDisk(tmp_path / "j")
    with log:
        log.room, log.can_sync = 100, False
        outcome = await run_plan(
            plan_of(contract(), trials=20, concurrency=concurrency),
            contract(),
            CallableService(slow),
            log=log,
            clock=virtual_clock,
        )
        log.can_sync = True

    assert StopReason.SERVICE is outcome.stop
    assert 1 <= len(outcome.trials) <= concurrency
    assert "Input/output error" in outcome.message


class Watched(Journal):
    """A journal that notes when it was asked for what."""

    def __init__(self, path: Path, clock: Any) -> None:
        super().__init__(path)
        self.clock = clock
        self.seen: list[tuple[str, float]] = []

    def append_text(self, text: str) -> int:
        self.seen.append(("append", self.clock.time))
        return super().append_text(text)

    def sync(self) -> None:
        self.seen.append(("sync", self.clock.time))
        super().sync()


async def test_the_log_is_synced_now_and_then_and_at_the_end(
    plan_of: PlanOf, tmp_path: Path, virtual_clock: Any
) -> None:
    """Not after every trial, and never later than 20 ms after a trial that follows another."""

    async def quick(question: str) -> str:  # noqa: ARG001
        virtual_clock.time += 0.008
        return "yes"

    log = Watched(tmp_path / "j", virtual_clock)
    with log:
        await run_plan(
            plan_of(contract(), trials=10),
            contract(),
            CallableService(quick),
            log=log,
            clock=virtual_clock,
        )
        seen = list(log.seen)

    syncs = [place for place, (what, _) in enumerate(seen) if what == "sync"]
    # Every third trial makes 24 ms, and the tenth is the last.
    assert [3, 7, 11, 13] == syncs


async def test_a_recording_that_cannot_be_written_ends_the_run(plan_of: PlanOf) -> None:
    """Every later trial would be paid for and lost."""
    lines: list[bytes] = []

    def sink(line: bytes) -> None:
        if len(lines) == 3:
            raise OSError("disk full")
        lines.append(line)

    service = RecordingService(CallableService(answer), sink)

    outcome = await run_plan(plan_of(contract(), trials=20), contract(), service, log=None)

    assert (StopReason.SERVICE, 3) == (outcome.stop, len(outcome.trials))
    assert "the recording cannot be written" in outcome.message


async def test_a_recording_that_is_used_up_ends_the_run(plan_of: PlanOf) -> None:
    """A replay decides as the recorded run did, as far as it goes."""
    lines: list[bytes] = []
    recording = RecordingService(CallableService(answer), lines.append)
    recorded = await run_plan(plan_of(contract(), trials=12), contract(), recording, log=None)

    played = await run_plan(
        plan_of(contract(), trials=12), contract(), ReplayService(lines), log=None
    )
    short = await run_plan(
        plan_of(contract(), trials=12), contract(), ReplayService(lines[:5]), log=None
    )

    assert timeless(recorded) == timeless(played)
    assert [one.latency_s for one in recorded.trials] == [one.latency_s for one in played.trials]
    assert (StopReason.SERVICE, 5) == (short.stop, len(short.trials))


def timeless(outcome: RunOutcome) -> list[Trial]:
    return [replace(one, started_s=0.0, latency_s=0.0) for one in outcome.trials]


PROGRAM = """
import os, signal, sys
import anyio
sys.path.insert(0, {folder!r})
from pathlib import Path
from conftest import make_plan
from test_faults import answer, contract
from trialwise.engine.drivers.run_drivers import run_plan
from trialwise.services import CallableService
from trialwise.stores.journal import Journal

async def struck(index, seed):
    if index == 17:
        os.kill(os.getpid(), signal.{signal})
        await anyio.sleep(60)
    return await answer(seed)

async def main():
    plan = make_plan(contract(), trials=40, concurrency={concurrency})
    with Journal(Path({path!r})) as log:
        outcome = await run_plan(plan, contract(struck), CallableService(struck), log=log)
    print(outcome.stop, len(outcome.trials))

anyio.run(main)
"""


def strike(path: Path, sent: str, concurrency: int) -> subprocess.CompletedProcess[str]:
    folder = str(Path(__file__).parent)
    program = PROGRAM.format(folder=folder, path=str(path), signal=sent, concurrency=concurrency)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def survivors(path: Path) -> list[Trial]:
    return [
        read_trial(line, experiment=line["x"], criteria=("yes",)) for line in read_journal(path)
    ]


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_killed_run_goes_on_where_it_was(
    plan_of: PlanOf, tmp_path: Path, concurrency: int
) -> None:
    """Killed in the middle and resumed from its journal, it ends as if nothing had happened."""
    path = tmp_path / "j"
    killed = strike(path, "SIGKILL", concurrency)
    done = survivors(path)
    plan = plan_of(contract(), trials=40, concurrency=concurrency)

    with Journal(path) as log:
        resumed = await run_plan(plan, contract(), CallableService(answer), log=log, done=done)
    whole = await run_plan(plan, contract(), CallableService(answer), log=None)

    assert -signal.SIGKILL == killed.returncode
    assert 17 - concurrency < len(done) < 40
    assert timeless(whole) == timeless(resumed)
    assert 40 == len(survivors(path))


@pytest.mark.parametrize("concurrency", [1, 4])
def test_an_interrupt_signal_keeps_what_is_complete(tmp_path: Path, concurrency: int) -> None:
    """Even where nobody turns the signal into an event."""
    path = tmp_path / "j"

    struck = strike(path, "SIGINT", concurrency)

    assert "" == struck.stderr
    stop, trials = struck.stdout.split()
    assert "interrupted" == stop
    assert 17 - concurrency < int(trials) == len(survivors(path)) < 40


async def test_a_sync_function_that_hangs_does_not_keep_a_run_from_ending(plan_of: PlanOf) -> None:
    """Its thread is left to itself once the verdict is certain."""
    leave, hangs = threading.Event(), threading.Event()

    def hang(index: int) -> str:
        if index == 1:
            # The verdict is not certain before the other one hangs, however slow the machine is.
            hangs.wait(30)
        if index == 2:
            hangs.set()
            leave.wait(30)
        return "no"

    promised = contract(hang)

    outcome = await run_plan(
        plan_of(promised, trials=10, cutoff=9, concurrency=2),
        promised,
        CallableService(hang),
        log=None,
    )
    leave.set()

    assert (StopReason.CURTAILED, 2, 1) == (
        outcome.stop,
        len(outcome.trials),
        outcome.spending.abandoned,
    )
