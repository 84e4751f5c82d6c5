"""Real programs that misbehave: a run survives them, classes them and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

import trialwise as tw
from trialwise.stores.runs import RunStore

PYTHON = sys.executable


def command(script: str, tmp_path: Path) -> tw.services.CommandService:
    file = tmp_path / "agent.py"
    file.write_text(script)
    return tw.services.CommandService([PYTHON, str(file), "{input}", "{index}"], grace_s=0.2)


def run(
    service: tw.services.CommandService, tmp_path: Path, trials: int, **settings: float
) -> tw.Result:
    criterion = tw.Criterion("good", tw.equals("good"), at_least=0.5, trials=trials)
    contract = tw.Contract("faults", service, [criterion], sampling=["a b", 'c"d'])
    return tw.run(
        contract,
        seed=5,
        store=tmp_path / "store",
        curtail=False,
        timeout_s=settings.get("timeout_s", 20.0),
        concurrency=int(settings.get("concurrency", 4)),
    )


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return state != "Z"


@pytest.mark.slow
def test_a_command_that_hangs_and_forks_is_ended_with_its_children(tmp_path: Path) -> None:
    """Every third trial forks a child that ignores SIGTERM and sleeps: both are gone afterwards."""
    script = f"""
import os, signal, sys, time
if int(sys.argv[2]) % 3 == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = os.fork()
    with open({str(tmp_path / "pids")!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(600)
print("good")
"""
    result = run(command(script, tmp_path), tmp_path, 9, timeout_s=1.5)
    finding = result.verdict.findings[0]
    assert (finding.tally.trials, finding.tally.passed) == (9, 6)
    assert finding.breakdown is not None
    assert finding.breakdown.errors == {"timeout": 3}
    assert finding.per_protocol == finding.intent_to_treat  # a timeout is the service's own
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 6
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "a process was left running"
        time.sleep(0.05)


def test_crashes_floods_and_garbage_are_single_failures(tmp_path: Path) -> None:
    """Raising, dying by a signal, flooding standard output, bytes that are no text, silence."""
    script = """
import os, signal, sys
kind = int(sys.argv[2]) % 6
if kind == 0:
    raise RuntimeError("boom")
if kind == 1:
    sys.stdout.write("go"); sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)
if kind == 2:
    sys.stdout.write("x" * 5_000_000)
if kind == 3:
    sys.stdout.buffer.write(bytes(range(128, 256)))
if kind == 4:
    sys.exit(3)
if kind == 5:
    print("good")
"""
    result = run(command(script, tmp_path), tmp_path, 18)
    finding = result.verdict.findings[0]
    assert (finding.tally.trials, finding.tally.passed) == (18, 3)
    assert all(len(trial.reply or "") <= 4100 for trial in result.record.trials)
    # The record is readable whatever the replies were.
    assert RunStore(tmp_path / "store").latest().record() == result.record


def test_a_program_that_is_not_there_aborts_to_inconclusive(tmp_path: Path) -> None:
    """Infrastructure errors alone: the run stops after five, and it is neither PASS nor FAIL."""
    missing = str(tmp_path / "missing")
    result = run(tw.services.CommandService([missing, "{input}"]), tmp_path, 200, concurrency=1)
    assert result.decision is tw.Decision.INCONCLUSIVE
    assert result.verdict.stop is tw.model.StopReason.ERROR_RATE
    assert len(result.record.trials) == 5
    assert result.verdict.aborted.startswith(f"The command '{missing}' cannot be started")
    assert result.verdict.aborted.endswith("Nothing was measured.")


def test_arguments_with_spaces_and_quotes_arrive_as_they_are(tmp_path: Path) -> None:
    """No shell: the inputs reach the program byte for byte."""
    script = f"""
import sys
with open({str(tmp_path / "seen")!r}, "a") as file:
    file.write(sys.argv[1] + "\\n")
print("good")
"""
    run(command(script, tmp_path), tmp_path, 6)
    assert set((tmp_path / "seen").read_text().splitlines()) == {"a b", 'c"d'}
