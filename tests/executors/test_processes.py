"""Trials in worker processes: the same verdict, whatever happens to the workers."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.executors.worker_projects import (
    calls,
    kept_indices,
    kill_a_worker,
    start,
    wait_for_calls,
    write_project,
)

import trialwise as tw
from trialwise.errors import ExecutorUnusable, InvalidArgument
from trialwise.executors.jobs import Batch, BatchResult, EndedBatch
from trialwise.stores.runs import RunStore
from trialwise.testing import assert_executor_conforms


def test_processes_conform() -> None:
    """They do what every executor must do."""
    assert_executor_conforms("processes:2")


@pytest.mark.slow
def test_a_suite_runs_in_as_many_processes_as_it_says(project: Path) -> None:
    """The suite names the executor; tracebacks come back from the workers."""
    write_project(project, "executor: {processes: 2}\n")

    done = start(project, "--json")
    out, err = done.communicate()

    assert done.returncode == 0, err
    assert json.loads(out)["decision"] == "PASS"
    processes = {process for _, process in calls(project)}
    assert len(processes) == 2
    assert done.pid not in processes
    assert sorted(index for index, _ in calls(project)) == list(range(60))
    store = RunStore(project / ".trialwise")
    record = store.load(store.latest().run_id)
    failed = next(one for one in record.trials if "every twentieth" in one.error)
    assert 'raise ValueError("every twentieth")' in record.texts.tracebacks[failed.traceback]


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_no_trial_is_lost_or_doubled(project: Path) -> None:
    """`kill -9` on a worker: its trials run again, and each is in the journal once."""
    run = start(project, "-q", "--executor", "processes:2")
    kill_a_worker(project)
    _, err = run.communicate()

    assert run.returncode == 0, err
    assert kept_indices(project) == list(range(60))
    assert len({process for _, process in calls(project)}) == 3


def test_a_killed_run_leaves_no_worker_and_goes_on_elsewhere(project: Path) -> None:
    """`kill -9` on the driver: the workers end, and the run is resumed in this process."""
    run = start(project, "-q", "--executor", "processes:2")
    wait_for_calls(project, 10)
    run.kill()
    run.communicate()
    workers = {process for _, process in calls(project)}
    ends = time.monotonic() + 20
    while any(Path(f"/proc/{one}").exists() for one in workers):
        assert time.monotonic() < ends, "a worker lives on"
        time.sleep(0.02)

    resumed = start(project, "-q", "--resume")
    _, err = resumed.communicate()

    assert resumed.returncode == 0, err
    assert kept_indices(project) == list(range(60))


def test_an_interrupt_keeps_what_is_complete(project: Path) -> None:
    """Ctrl-C ends the workers, and the rest is resumed."""
    run = start(project, "-q", "--executor", "processes:2")
    wait_for_calls(project, 6)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=30)

    assert run.returncode == 130, (out, err)
    assert 0 < len(kept_indices(project)) < 60
    resumed = start(project, "-q", "--resume", "--executor", "processes:1")
    resumed.communicate()
    assert resumed.returncode == 0
    assert kept_indices(project) == list(range(60))


def test_an_interrupt_waits_for_batches_of_short_trials(project: Path) -> None:
    """Of trials that take 2 ms, a batch holds a hundred; those that were run are kept."""
    agent = project / "agent.py"
    agent.write_text(agent.read_text().replace("time.sleep(0.03)", "time.sleep(0.002)"))
    suite = project / "trialwise.yaml"
    suite.write_text(suite.read_text().replace("trials: 60", "trials: 100000"))
    run = start(project, "-q", "--executor", "processes:2")
    wait_for_calls(project, 500)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=30)

    assert run.returncode == 130, (out, err)
    assert kept_indices(project) == sorted(index for index, _ in calls(project))


@pytest.mark.slow
def test_a_limit_on_time_ends_the_workers_trials(project: Path) -> None:
    """What is in flight at the limit is cancelled, and nothing is decided."""
    run = start(project, "-q", "--executor", "processes:2", "--max-seconds", "0.4")
    out, err = run.communicate(timeout=30)

    assert run.returncode == 3, err
    assert "the budget of 0.4 s is used up" in " ".join(out.split())


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        ("nowhere", "there is no executor 'nowhere'; the executors are local, processes, dask"),
        ("processes:many", "takes a number of processes, such as processes:4"),
    ],
)
def test_a_wrong_executor_is_refused_before_the_first_trial(
    project: Path, executor: str, words: str
) -> None:
    """The message says what can be written instead."""
    run = start(project, "-q", "--executor", executor)
    _, err = run.communicate()

    assert run.returncode == 2
    assert words in err
    assert not calls(project)


@pytest.mark.slow
def test_replies_are_recorded_by_workers_of_this_machine_and_replayed(project: Path) -> None:
    """Every reply is in the recording once; a cluster cannot write it and is refused."""
    recorded = start(project, "-q", "--executor", "processes:2", "--record", "replies.jsonl")
    recorded.communicate()
    replayed = start(project, "-q", "--executor", "processes:2", "--replay", "replies.jsonl")
    replayed.communicate()
    refused = start(project, "-q", "--executor", "dask", "--record", "other.jsonl")
    _, err = refused.communicate()

    assert (recorded.returncode, replayed.returncode, refused.returncode) == (0, 0, 2)
    assert len(calls(project)) == 60
    assert "Record with the executor local or processes" in " ".join(err.split())


def test_a_comparison_stays_in_one_process() -> None:
    """Its two runs take turns; another executor is refused and not ignored."""
    contract = tw.Contract("c", str, [tw.Criterion("x", tw.equals("1"), at_least=0.5)])

    with pytest.raises(InvalidArgument, match="be local in a comparison"):
        tw.compare(contract, contract, inputs=["1"], trials=10, executor="processes", store=None)


def test_two_executors_in_a_suite_are_refused(project: Path) -> None:
    """A mapping names one."""
    write_project(project, "executor: {processes: 2, dask: local}\n")

    run = start(project, "-q")
    _, err = run.communicate()

    assert run.returncode == 2
    assert "`executor` must name one executor, not 2" in err


class _LyingPool:
    """Loses every batch."""

    slots = 1

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def submit(self, number: int, batch: Batch) -> None:  # noqa: ARG002
        self._numbers.append(number)

    def wait(self, timeout_s: float) -> list[EndedBatch]:  # noqa: ARG002
        numbers, self._numbers = self._numbers, []
        return [EndedBatch(one, None, "the worker caught fire") for one in numbers]

    def cancel(self) -> None:
        self._numbers = []

    def close(self) -> None:
        pass


def test_a_service_that_always_kills_its_worker_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked for ever, and what crashes does not pass."""
    monkeypatch.setattr(
        "trialwise.executors.pool_driver.find_opener",
        lambda _: lambda address, job, concurrency: _LyingPool(),  # noqa: ARG005
    )
    contract = tw.Contract("c", str, [tw.Criterion("x", tw.equals("1"), at_least=0.5)])

    result = tw.run(contract, inputs=["1"], trials=10, store=None, executor="burning")

    assert result.decision is tw.Decision.FAIL
    assert result.trials[0].error == "the worker caught fire, twice, while it ran this trial"


def test_results_survive_the_way_back() -> None:
    """Trials are plain values that any process can read."""
    import pickle

    contract = tw.Contract("c", str, [tw.Criterion("x", tw.equals("1"), at_least=0.5)])
    trials = tw.run(contract, inputs=["1", "2"], trials=10, store=None).trials
    result = BatchResult(trials=tuple(trials))

    assert pickle.loads(pickle.dumps(result)) == result


def test_an_executor_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "trialwise.contrib.executors.dask_pool", raising=False)
    contract = tw.Contract("c", str, [tw.Criterion("x", tw.equals("1"), at_least=0.5)])

    with pytest.raises(ExecutorUnusable, match=r"Install trialwise\[dask\]"):
        tw.run(contract, inputs=["1"], trials=10, store=None, executor="dask")
