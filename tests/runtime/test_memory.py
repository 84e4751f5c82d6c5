"""A trial of a long run takes some bytes of memory, whoever looks at the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FEW, MANY = 20_000, 220_000
#: So that a million trials fit into 150 MB beside what Python and the commands take.
MOST_BYTES = 110

SUITE = """
service: {{python: "agent:answer"}}
inputs: [a, b, c]
trials: {trials}
seed: 7
curtail: false
criteria:
  - {{name: answers, equals: '555', at_least: 50%}}
"""

#: A service that kills its process once, after nearly all trials.
AGENT = """
import os, signal
from pathlib import Path

calls = 0

async def answer(question):
    global calls
    calls += 1
    if calls == {last} and not Path("killed").exists():
        Path("killed").write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return "554" if calls % 1000 == 0 else "555"
"""

MEASURE = """
import resource, sys
from trialwise.cli.main import cli
cli.main(args=sys.argv[1:], prog_name="trialwise", standalone_mode=False)
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MEASURE, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def peak(folder: Path, *arguments: str) -> int:
    """The largest resident size of a command, in bytes."""
    done = call(folder, *arguments)
    word, kilobytes = done.stderr.splitlines()[-1].split()
    assert (word, done.returncode) == ("peak", 0), done.stderr
    return 1024 * int(kilobytes)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """A run of each size, killed after 99 % of its trials."""
    found = {}
    for trials in (FEW, MANY):
        found[trials] = folder = tmp_path_factory.mktemp(f"run{trials}")
        (folder / "agent.py").write_text(AGENT.format(last=trials * 99 // 100))
        (folder / "trialwise.yaml").write_text(SUITE.format(trials=trials))
        assert call(folder, "run").returncode < 0
    return found


def grow(folders: tuple[Path, Path], *arguments: str) -> float:
    """By how many bytes a command grows with each trial."""
    few, many = (peak(folder, *arguments) for folder in folders)
    return (many - few) / (MANY - FEW)


@pytest.mark.slow
def test_memory_grows_by_some_bytes_with_each_trial(folders: dict[int, Path]) -> None:
    """In a run that continues after a kill, and in every command that reads it afterwards."""
    both = (folders[FEW], folders[MANY])
    commands = [
        ("run", "--resume"),
        ("show",),
        ("show", "--verify"),
        *(("report", "-o", name) for name in ("r.html", "r.md", "r.json", "junit.xml")),
    ]
    grown = {" ".join(one): round(grow(both, *one)) for one in commands}

    assert not {name: size for name, size in grown.items() if size > MOST_BYTES}, grown
    # A page shows a sample of the failures: 220 in one run and 20 in the other.
    assert (folders[MANY] / "r.html").stat().st_size < 1_000_000
