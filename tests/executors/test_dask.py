"""Trials on a real Dask cluster: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.executors.dask_clusters import Cluster
from tests.executors.worker_projects import (
    calls,
    finish,
    kept_indices,
    kept_record,
    kill_a_worker,
    start,
    wait_for_calls,
    write_project,
)

from trialwise.testing import assert_executor_conforms

pytest.importorskip("distributed")


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


@pytest.mark.slow
def test_a_cluster_runs_the_code_of_today(
    cluster: Cluster, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its workers have run an earlier version of the module, and another project's of its name."""
    other = tmp_path_factory.mktemp("other")
    write_project(other)
    for folder in (project, other):
        code, output, errors = finish(start(folder, "-q", "--executor", f"dask:{cluster.address}"))
        assert code == 0, output + errors
        assert len(calls(folder)) == 60
    agent = project / "agent.py"
    agent.write_text(agent.read_text(encoding="utf-8").replace('"yes"', '"no"'), encoding="utf-8")

    code, output, errors = finish(start(project, "-q", "--executor", f"dask:{cluster.address}"))

    assert code == 1, output + errors
    assert {one.reply for one in kept_record(project).trials} == {"no", None}


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(project: Path) -> None:
    """Nothing is called, and the message says where it looked."""
    run = start(project, "-q", "--executor", "dask:tcp://127.0.0.1:1")
    _, err = run.communicate(timeout=60)

    assert run.returncode == 2
    assert "no Dask workers can be reached at tcp://127.0.0.1:1" in err
    assert not calls(project)
