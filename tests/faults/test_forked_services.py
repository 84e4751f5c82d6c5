"""A service that forks: its copies leave the run alone, its journal and its lock included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SUITE = """
name: forking
service: {python: "agent:f"}
inputs: [one, two]
trials: 20
concurrency: CONCURRENCY
curtail: false
criteria: [{name: ok, equals: "yes", at_least: 60%}]
"""
COMMAND = [sys.executable, "-m", "trialwise.cli.main"]
PLAIN = "def f(q, index):"
ASYNC = "async def f(q, index):"


def write(folder: Path, agent: str, concurrency: int = 1) -> None:
    suite = SUITE.replace("CONCURRENCY", str(concurrency))
    (folder / "trialwise.yaml").write_text(suite, encoding="utf-8")
    (folder / "agent.py").write_text(agent, encoding="utf-8")


def do(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.slow(
    "sys.exit(0)-def f(q, index):-4",
    "return 'no'-def f(q, index):-1",
    "return 'no'-def f(q, index):-4",
)
@pytest.mark.parametrize(("head", "concurrency"), [(ASYNC, 1), (PLAIN, 1), (PLAIN, 4)])
@pytest.mark.parametrize("ending", ["sys.exit(0)", "return 'no'"])
def test_a_copy_of_the_service_writes_nothing_into_the_run(
    tmp_path: Path, head: str, concurrency: int, ending: str
) -> None:
    """In the event loop, in place and in a thread: the journal holds the run's 20 trials."""
    write(
        tmp_path,
        "import os, sys\nfrom pathlib import Path\n"
        f"{head}\n"
        "    if index == 5:\n"
        "        child = os.fork()\n"
        f"        if child == 0: {ending}\n"
        "        Path('child').write_text(str(child))\n"
        "        os.waitpid(child, 0)\n"
        "    return 'yes'\n",
        concurrency,
    )

    result = do(tmp_path, "run", "--quiet")

    assert result.returncode == 0, result.stdout + result.stderr
    (journal,) = tmp_path.glob(".trialwise/runs/*/journal.jsonl")
    assert 20 == len(journal.read_text(encoding="utf-8").splitlines())
    assert "VERIFIED" in do(tmp_path, "show", "--verify").stdout
    assert not Path(f"/proc/{(tmp_path / 'child').read_text()}").exists()


@pytest.mark.slow
def test_a_copy_that_lives_on_does_not_hold_the_run(tmp_path: Path) -> None:
    """The command is killed while the copy sleeps, and the run is resumed at once."""
    write(
        tmp_path,
        "import os, time\nfrom pathlib import Path\n"
        f"{PLAIN}\n"
        "    if index == 5 and not Path('forked').exists():\n"
        "        child = os.fork()\n"
        "        if child == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        Path('part').write_text(f'{os.getpid()} {child}')\n"
        "        os.rename('part', 'forked')\n"
        "        time.sleep(60)\n"
        "    return 'yes'\n",
    )
    running = subprocess.Popen(
        [*COMMAND, "run", "--quiet"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 30
    while not (tmp_path / "forked").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    worker, child = map(int, (tmp_path / "forked").read_text().split())
    try:
        os.kill(worker, signal.SIGKILL)
        running.wait(timeout=30)

        resumed = do(tmp_path, "run", "--quiet", "--resume")

        assert Path(f"/proc/{child}").exists()
        assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    finally:
        os.kill(child, signal.SIGKILL)
