"""Starts a run over and over and kills it with SIGKILL at random instants, until it is finished.

Run as a script, in a process of its own: it forks, which a test process with threads must not.
Prints what happened as JSON; the test compares it with an uninterrupted run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import trialwise as tw
from trialwise.stores.journal import read_journal


def contract(log: Path) -> tw.Contract:
    """A service whose outcome depends on its seed alone, and that writes down every call."""

    async def service(trial: tw.TrialContext) -> str:
        import anyio

        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(handle, b"%d\n" % trial.index)
        os.close(handle)
        await anyio.sleep(trial.seed % 7 / 2000)
        return "good" if trial.seed % 10 else "bad"

    criteria = [
        tw.Criterion("often", tw.equals("good"), at_least=0.5, trials=400),
        tw.Criterion("fixed", tw.equals("good"), at_least=0.8, trials=600),
    ]
    return tw.Contract("kill", service, criteria, sampling=["a", "b", "c"])


def attempt(folder: Path, log: Path, seconds: float | None) -> bool:
    """One process that runs or resumes, killed after some seconds; True if it finished."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            started = (folder / "runs").exists() and any((folder / "runs").glob("*/plan.json"))
            tw.run(
                contract(log),
                seed=11,
                store=folder,
                concurrency=8,
                curtail=False,
                resume=started,
                progress=False,
            )
            code = 0
        finally:
            os._exit(code)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0


def main(folder: Path, most: int) -> None:
    """Kill runs until they have been killed often enough, each finished one followed by another."""
    source = random.Random(20261115)
    kills, runs, extra = 0, 0, 0
    while kills < most:
        store, log = folder / f"store-{runs}", folder / f"calls-{runs}"
        mine = 0
        while not attempt(store, log, source.uniform(0.0, 0.15)):
            kills += 1
            mine += 1
            if kills >= most:
                attempt(store, log, None)
                break
        # A kill before the plan was written leaves an empty folder, which nobody lists.
        (path,) = [file.parent for file in (store / "runs").glob("*/record.json")]
        lines = list(read_journal(path / "journal.jsonl"))
        calls = [int(line) for line in log.read_text().split()]
        counted = [line["i"] for line in lines]
        extra = max(extra, len(calls) - len(counted) - 8 * (mine + 1))
        assert sorted(counted) == list(range(600)), "lost or counted twice"
        assert set(counted) <= set(calls), "counted without a call"
        runs += 1
    report = {"kills": kills, "runs": runs, "unexplained_calls": max(extra, 0)}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
