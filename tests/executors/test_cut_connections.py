"""Connections to a cluster that break or are slow: no trial is lost, doubled or blamed for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.executors.cut_proxy import CutProxy
from tests.executors.dask_clusters import Cluster
from tests.executors.worker_projects import (
    calls,
    finish,
    kept_indices,
    kept_record,
    start,
    wait_for_calls,
)

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster for all tests of this file."""
    cluster = Cluster(tmp_path_factory.mktemp("dask"))
    yield cluster
    cluster.close()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[CutProxy]:
    """What stands between the scheduler and whoever connects here."""
    proxy = CutProxy(cluster.port)
    yield proxy
    proxy.close()


@pytest.mark.slow
def test_a_run_goes_on_after_its_connection_was_cut_three_times(
    project: Path, proxy: CutProxy
) -> None:
    """Batches under way are lost and sent again; a cut is no failure of the service."""
    run = start(project, "-q", "--executor", f"dask:tcp://127.0.0.1:{proxy.port}")
    for count in (5, 20, 35):
        wait_for_calls(project, count)
        proxy.cut()
        time.sleep(0.3)
        proxy.mend()
    code, output, errors = finish(run)

    assert code == 0, output + errors
    _assert_whole(project)


@pytest.mark.slow
def test_a_cut_that_lasts_leaves_a_run_that_can_be_resumed(project: Path, proxy: CutProxy) -> None:
    """The run ends undecided with exit code 4 and a reason, and goes on in this process."""
    run = start(project, "-q", "--executor", f"dask:tcp://127.0.0.1:{proxy.port}")
    wait_for_calls(project, 10)
    proxy.cut()
    code, output, errors = finish(run)

    assert code == 4, output + errors
    assert "is gone; completed trials are kept, and the run can be resumed" in output
    kept = kept_indices(project)
    assert 0 < len(kept) < 60
    code, output, errors = finish(start(project, "-q", "--resume"))
    assert code == 0, output + errors
    _assert_whole(project)


@pytest.mark.slow
def test_a_worker_that_is_cut_off_loses_nothing(
    project: Path, cluster: Cluster, proxy: CutProxy
) -> None:
    """One of three workers is behind the connection: its trials run on another one."""
    from distributed import Client

    with Client(cluster.address, timeout=60) as client:
        before = set(client.scheduler_info()["workers"])
        cluster.add_worker(f"tcp://127.0.0.1:{proxy.port}")
        client.wait_for_workers(len(before) + 1, timeout=60)
        run = start(project, "-q", "--executor", f"dask:{cluster.address}")
        ends = time.monotonic() + 60
        while len({process for _, process in calls(project)}) < 3:
            assert time.monotonic() < ends, "a worker gets no trial"
            time.sleep(0.01)
        proxy.cut()
        code, output, errors = finish(run)

    assert code == 0, output + errors
    _assert_whole(project)


@pytest.mark.slow
def test_a_slow_connection_changes_no_trial(project: Path, proxy: CutProxy) -> None:
    """Every piece is 50 ms late, in both directions."""
    proxy.delay_s = 0.05
    run = start(project, "-q", "--executor", f"dask:tcp://127.0.0.1:{proxy.port}")
    code, output, errors = finish(run)

    assert code == 0, output + errors
    _assert_whole(project)
    assert len(calls(project)) == 60


def _assert_whole(project: Path) -> None:
    """Every trial is kept once, and nothing but the service's own failures failed."""
    trials = kept_record(project).trials
    assert sorted(one.index for one in trials) == list(range(60))
    errors = {one.index: one.error for one in trials if one.error}
    assert errors == dict.fromkeys((19, 39, 59), "ValueError: every twentieth")
