"""Real Dask clusters for tests: a scheduler and workers, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class Cluster:
    """A scheduler and its workers.

    Args:
        folder: Where they write their files.
        workers: How many there are at first.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        from distributed import Client

        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = (folder / "dask.log").open("wb")
        # As the guide advises: the driver of a run knows better which trial to blame.
        self._environment = {
            **os.environ,
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
            "PYTHONWARNINGS": "ignore",
        }
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler",
            *("--scheduler-file", str(file), "--port", "0", "--dashboard-address", ":0"),
        )
        ends = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < ends, "no scheduler"
            time.sleep(0.05)
        self.address = str(json.loads(file.read_text(encoding="utf-8"))["address"])
        for _ in range(workers):
            self.add_worker(self.address)
        with Client(self.address, timeout=60) as client:
            client.wait_for_workers(workers, timeout=60)

    @property
    def port(self) -> int:
        """Where the scheduler listens."""
        return int(self.address.rpartition(":")[2])

    def add_worker(self, address: str) -> subprocess.Popen[bytes]:
        """Start a worker.

        Args:
            address: Where it finds the scheduler.
        """
        return self._start(
            "dask_worker",
            *(address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(self._folder)),
        )

    def _start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{program}", *options],
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        """End every process."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self._log.close()
