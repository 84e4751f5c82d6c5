"""Measures the memory of a run and of the commands that read it: `python -m bench.memory`.

Each command runs in a process of its own, whose largest resident size is printed and held against
the goal: 150 MB for 1,000,000 trials. Memory does not depend on what else the machine does, so that
one look is enough. Sizes are given as arguments.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

GOAL_MB = 150
_COMMANDS = (
    ("run",),
    ("show",),
    ("show", "--verify"),
    *(("report", "-o", name) for name in ("report.html", "report.md", "report.json", "junit.xml")),
)
#: The service kills the process of a run once it finds a file, after 99 % of the trials.
_AGENT = """
import os, signal

calls = 0

async def answer(question):
    global calls
    calls += 1
    if calls == {last} and os.path.exists("kill"):
        os.remove("kill")
        os.kill(os.getpid(), signal.SIGKILL)
    return "555"
"""
_SUITE = """
service: {{python: "agent:answer"}}
inputs: [a, b, c]
trials: {trials}
curtail: false
criteria:
  - {{name: answers, equals: '555', at_least: 50%}}
"""
_MEASURE = """
import resource, sys
from trialwise.cli.main import cli
code = cli.main(args=sys.argv[1:], prog_name="trialwise", standalone_mode=False)
own = resource.getrusage(resource.RUSAGE_SELF)
print(own.ru_maxrss / 1024, own.ru_utime + own.ru_stime, file=sys.stderr)
"""


def measure(trials: int) -> bool:
    """Run so many trials, read them back with each command, resume a killed run; print all of it.

    Returns:
        Whether every command keeps the goal.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(_AGENT.format(last=trials * 99 // 100))
        (folder / "trialwise.yaml").write_text(_SUITE.format(trials=trials))
        kept = [_measure_command(folder, trials, *command) for command in _COMMANDS]
        (folder / "kill").write_text("")
        _call(folder, "run")
        kept.append(_measure_command(folder, trials, "run", "--resume"))
    return all(kept)


def _call(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stderr.splitlines() or [""])[-1]


def _measure_command(folder: Path, trials: int, *command: str) -> bool:
    megabytes, seconds = map(float, _call(folder, *command).split())
    is_kept = megabytes <= GOAL_MB
    verdict = "met" if is_kept else f"missed: more than {GOAL_MB} MB"
    shown = f"{megabytes:4.0f} MB  {seconds:6.1f} s CPU  {verdict}"
    print(f"{trials:>9,} trials  {' '.join(command):24} {shown}", flush=True)
    return is_kept


if __name__ == "__main__":
    sizes = [int(one) for one in sys.argv[1:]] or [10_000, 100_000]
    kept = [measure(size) for size in sizes]
    sys.exit(0 if all(kept) else 1)
