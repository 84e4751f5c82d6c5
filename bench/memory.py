"""Measures the memory of a run and of the commands that read it: `python -m bench.memory`.

Each command runs in a process of its own, whose largest resident size is printed. Memory does not
depend on what else the machine does, so that one look is enough.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_COMMANDS = (("run",), ("show",), ("show", "--verify"), ("report", "-o", "report.html"))
_MEASURE = """
import resource, sys
from trialwise.cli.main import cli
code = cli.main(args=sys.argv[1:], prog_name="trialwise", standalone_mode=False)
own = resource.getrusage(resource.RUSAGE_SELF)
print(f"{own.ru_maxrss / 1024:.0f} MB, {own.ru_utime + own.ru_stime:.1f} s CPU", file=sys.stderr)
"""


def measure(trials: int) -> None:
    """Run so many trials of a plain function, then read them back with each command."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text("def answer(question):\n    return '555'\n")
        (folder / "trialwise.yaml").write_text(
            'service: {python: "agent:answer"}\n'
            "inputs: [a, b, c]\n"
            f"trials: {trials}\n"
            "curtail: false\n"
            "criteria:\n"
            "  - {name: answers, equals: '555', at_least: 50%}\n"
        )
        for command in _COMMANDS:
            done = subprocess.run(
                [sys.executable, "-c", _MEASURE, *command],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"{trials:>9,} trials  {' '.join(command):24} {done.stderr.splitlines()[-1]}")


if __name__ == "__main__":
    for size in [int(one) for one in sys.argv[1:]] or [10_000, 100_000]:
        measure(size)
