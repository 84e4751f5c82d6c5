"""Trials on a real Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.executors.worker_projects import (
    calls,
    kept_indices,
    kill_a_worker,
    start,
    wait_for_calls,
)

from trialwise.testing import assert_executor_conforms

distributed = pytest.importorskip("distributed")


class Cluster:
    """A scheduler and two workers.

    Args:
        folder: Where they write their files.
    """

    def __init__(self, folder: Path) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = (folder / "dask.log").open("wb")
        # As the guide advises: the driver of a run knows better which trial to blame.
        self._environment = {
            **os.environ,
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
            "PYTHONWARNINGS": "ignore",
        }
        file = folder / "scheduler.json"
        common = ["--scheduler-file", str(file)]
        self.scheduler = self._start(
            "dask_scheduler", *common, "--port", "0", "--dashboard-address", ":0"
        )
        for _ in range(2):
            folders = ["--local-directory", str(folder)]
            self._start("dask_worker", *common, "--nthreads", "1", "--no-dashboard", *folders)
        ends = time.monotonic() + 60
        while not file.exists():
            assert time.monotonic() < ends, "no scheduler"
            time.sleep(0.05)
        with distributed.Client(scheduler_file=str(file), timeout=60) as client:
            client.wait_for_workers(2, timeout=60)
            self.address = str(client.scheduler.address)

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster for all tests of this file."""
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


def test_dask_conforms(cluster: Cluster) -> None:
    """It does what every executor must do, a service that kills its worker included."""
    assert_executor_conforms(f"dask:{cluster.address}")


def test_code_that_workers_do_not_have_is_sent_and_a_killed_worker_is_replaced(
    cluster: Cluster, project: Path
) -> None:
    """The suite's module is in no folder of the workers; `kill -9` on one of them loses nothing."""
    run = start(project, "-q", "--executor", f"dask:{cluster.address}")
    kill_a_worker(project)
    out, err = run.communicate(timeout=60)

    assert run.returncode == 0, (out, err)
    assert kept_indices(project) == list(range(60))


def test_a_dead_scheduler_leaves_a_run_that_can_be_resumed(
    tmp_path_factory: pytest.TempPathFactory, project: Path
) -> None:
    """The run ends undecided with exit code 4 and a reason, and goes on in this process."""
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        run = start(project, "-q", "--executor", f"dask:{cluster.address}")
        wait_for_calls(project, 10)
        cluster.scheduler.kill()
        out, err = run.communicate(timeout=60)
    finally:
        cluster.close()

    assert run.returncode == 4, (out, err)
    assert "INCONCLUSIVE" in out
    assert "the Dask scheduler" in " ".join(out.split())
    resumed = start(project, "-q", "--resume")
    _, err = resumed.communicate(timeout=60)
    assert resumed.returncode == 0, err
    assert kept_indices(project) == list(range(60))


def test_a_scheduler_that_is_not_there_is_named(project: Path) -> None:
    """Nothing is called, and the message says where it looked."""
    run = start(project, "-q", "--executor", "dask:tcp://127.0.0.1:1")
    _, err = run.communicate(timeout=60)

    assert run.returncode == 2
    assert "no Dask workers can be reached at tcp://127.0.0.1:1" in err
    assert not calls(project)
