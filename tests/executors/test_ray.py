"""Trials on a real Ray cluster of two workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
from tests.executors.cut_proxy import CutProxy
from tests.executors.worker_projects import (
    finish,
    kept_indices,
    kept_record,
    kill_a_worker,
    start,
    wait_for_calls,
)

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


@pytest.mark.slow
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


def kill_raylet(run: int) -> None:
    """Kill the process by which a run of Ray on this machine starts its workers."""
    parents, raylets = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().partition(b"\0")[0]
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = parent
        raylets += [int(folder.name)] if command.endswith(b"/raylet") else []
    for raylet in raylets:
        ancestor = raylet
        while ancestor not in (run, 0, 1):
            ancestor = parents.get(ancestor, 0)
        if ancestor == run:
            os.kill(raylet, signal.SIGKILL)
            return
    raise AssertionError("the run has no raylet")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="the processes are found in /proc")
def test_a_killed_raylet_leaves_a_run_that_can_be_resumed(project: Path) -> None:
    """Ray needs 15 s to notice; no trial may then count as a failure of the service."""
    pytest.importorskip("ray")
    suite = project / "trialwise.yaml"
    suite.write_text(suite.read_text().replace("trials: 60", "trials: 3000"), encoding="utf-8")
    run = start(project, "-q", "--executor", "ray")
    wait_for_calls(project, 6)
    kill_raylet(run.pid)
    code, output, errors = finish(run, 150)

    assert code == 4, output + errors
    assert "the Ray cluster is gone" in output
    kept = len(kept_indices(project))
    assert 0 < kept < 3000
    assert not any("Ray worker failed" in (one.error or "") for one in kept_record(project).trials)
    code, output, errors = finish(start(project, "-q", "--resume"), 150)
    assert code == 0, output + errors
    assert kept_indices(project) == list(range(3000))


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, Path]]:
    """A head of its own, with the port of its client server and the folder of its processes."""
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    folder = Path(mkdtemp(prefix="rx", dir="/tmp"))  # the names of its sockets must be short
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"]
    command += ["--port", str(ports[0]), "--ray-client-server-port", str(ports[1])]
    command += ["--num-cpus", "2", "--include-dashboard", "false", "--temp-dir", str(folder)]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for_port(ports[1], folder / "log")
        yield ports[1], folder
    finally:
        for process in (started.pid, *list_processes(str(folder))):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        started.wait()
        rmtree(folder, ignore_errors=True)


def wait_for_port(port: int, log: Path) -> None:
    """Wait until somebody listens there."""
    ends = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < ends, log.read_text(encoding="utf-8")
            time.sleep(0.1)


def list_processes(folder: str, program: str = "") -> list[int]:
    """The processes whose command names a folder, which only those of one cluster do."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            if folder in words and words.partition("\0")[0].endswith(program):
                found.append(int(process.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="the processes are found in /proc")
def test_a_killed_head_of_a_client_leaves_no_failed_trial(
    project: Path, head: tuple[int, Path]
) -> None:
    """The service is always right: no trial may count as its failure, and the rest is resumed.

    Ray says "unavailable" of every actor then, as it does of one whose process has died.
    """
    port, folder = head
    suite = project / "trialwise.yaml"
    text = suite.read_text().replace("trials: 60", "trials: 400").replace("70%", "99%")
    suite.write_text(text, encoding="utf-8")
    agent = project / "agent.py"
    right = agent.read_text().partition("    if index % 20")[0] + '    return "yes"\n'
    agent.write_text(right, encoding="utf-8")
    run = start(project, "-q", "--executor", f"ray:ray://127.0.0.1:{port}")
    wait_for_calls(project, 100)
    (raylet,) = list_processes(str(folder), "/raylet")
    os.kill(raylet, signal.SIGKILL)
    code, output, errors = finish(run, 300)

    assert code == 4, output + errors
    assert "can be resumed" in output
    kept = kept_record(project).trials
    assert 0 < len(kept) < 400
    assert all(one.passed for one in kept)
    code, output, errors = finish(start(project, "-q", "--resume", "--executor", "local"), 150)
    assert code == 0, output + errors
    assert kept_indices(project) == list(range(400))


@pytest.fixture(scope="module")
def client_port(cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where Ray's client connects to the cluster, as from another machine."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--mode", "legacy", "--address", cluster]
    log = tmp_path_factory.mktemp("ray") / "client.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, "-m", "ray.util.client.server", *options], stdout=output, stderr=output
        )
    try:
        wait_for_port(port, log)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def proxy(client_port: int) -> Iterator[CutProxy]:
    """What stands between Ray's client and its server."""
    proxy = CutProxy(client_port)
    yield proxy
    proxy.close()


@pytest.mark.slow
def test_a_run_goes_on_after_its_connection_was_cut(project: Path, proxy: CutProxy) -> None:
    """Ray's client connects again; every trial is kept once."""
    run = start(project, "-q", "--executor", f"ray:ray://127.0.0.1:{proxy.port}")
    wait_for_calls(project, 6)
    proxy.cut()
    time.sleep(0.5)
    proxy.mend()
    code, output, errors = finish(run, 90)

    assert code == 0, output + errors
    assert kept_indices(project) == list(range(60))


@pytest.mark.slow
def test_a_cut_that_lasts_leaves_a_run_that_can_be_resumed(project: Path, proxy: CutProxy) -> None:
    """Ray's client tries for 30 s; then the run ends undecided, and goes on in this process."""
    run = start(project, "-q", "--executor", f"ray:ray://127.0.0.1:{proxy.port}")
    wait_for_calls(project, 10)
    proxy.cut()
    code, output, errors = finish(run, 90)

    assert code == 4, output + errors
    assert "the Ray cluster is gone" in output
    assert len(kept_indices(project)) < 60
    code, output, errors = finish(start(project, "-q", "--resume"))
    assert code == 0, output + errors
    assert kept_indices(project) == list(range(60))
