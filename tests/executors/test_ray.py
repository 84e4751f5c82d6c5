"""Trials on a real Ray cluster of two workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.executors.worker_projects import kept_indices, kill_a_worker, start

from trialwise.testing import assert_executor_conforms

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster for all tests of this file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray: Any = pytest.importorskip("ray")
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
        )
        yield str(ray.get_runtime_context().gcs_address)
        ray.shutdown()


def test_ray_conforms(cluster: str) -> None:
    """It does what every executor must do; this process is connected already."""
    assert cluster
    assert_executor_conforms("ray")


def test_code_that_workers_do_not_have_is_sent_and_a_killed_worker_is_replaced(
    cluster: str, project: Path
) -> None:
    """The suite's module is in no folder of the workers; `kill -9` on one of them loses nothing."""
    run = start(project, "-q", "--executor", f"ray:{cluster}")
    kill_a_worker(project)
    out, err = run.communicate(timeout=90)

    assert run.returncode == 0, (out, err)
    assert kept_indices(project) == list(range(60))
