"""Whatever ends a run, its commands end with it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.faults.command_runs import SUITE, decisions, start, write

COMMAND = """\
import os, pathlib, sys, time
pathlib.Path(f"pid-{os.getpid()}").touch()
time.sleep(600)
"""


def list_commands(folder: Path) -> list[int]:
    return [int(one.name.removeprefix("pid-")) for one in folder.glob("pid-*")]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_command_outlives_its_run(tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM and SIGHUP act like Ctrl-C; SIGKILL leaves nobody who could end them."""
    import sys

    service = f"{{command: {{run: ['{sys.executable}', sleeper.py], input_via: stdin}}}}"
    suite = SUITE.replace('{python: "agent:f"}', service) + "concurrency: 4\n"
    write(tmp_path, suite=suite)
    (tmp_path / "sleeper.py").write_text(COMMAND, encoding="utf-8")
    process = start(tmp_path, "run", "-q")
    end = time.monotonic() + 30
    while len(list_commands(tmp_path)) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=30)

    commands = list_commands(tmp_path)
    assert len(commands) >= 4
    end = time.monotonic() + 10
    while any(map(is_alive, commands)) and time.monotonic() < end:
        time.sleep(0.01)
    left = [one for one in commands if is_alive(one)]
    for one in left:
        os.kill(one, signal.SIGKILL)
    assert left == []
    if number is signal.SIGKILL:
        assert (process.returncode, decisions(tmp_path)) == (-9, [])
    else:
        assert (process.returncode, decisions(tmp_path)) == (130, ["INCONCLUSIVE"])
