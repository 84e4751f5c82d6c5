"""Clocks that jump, disks that fill up or cannot be written, neighbours in the same folder."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

import trialwise as tw
from trialwise.engine.ports import SystemClock
from trialwise.stores.runs import RunStore, StoreUnusable


def contract(name: str = "machine") -> tw.Contract:
    criterion = tw.Criterion("good", tw.equals("good"), at_least=0.5, trials=50)
    return tw.Contract(name, lambda _question: "good", [criterion], sampling=["a"])


def test_a_clock_that_jumps_changes_no_latency_and_no_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wall clock goes back and forth by days; only timestamps see it."""
    jumps = count()

    def now(_self: SystemClock) -> datetime:
        step = next(jumps)
        return datetime(2026, 3, 29, 1, 59, tzinfo=UTC) + timedelta(
            days=-step if step % 2 else step
        )

    monkeypatch.setattr(SystemClock, "now", now)
    result = tw.run(
        contract(), seed=1, store=tmp_path, curtail=False, budget=tw.Budget(seconds=600)
    )
    assert result.decision is tw.Decision.PASS
    assert result.verdict.stop is tw.model.StopReason.COMPLETE
    assert all(0 <= (trial.latency_s or 0) < 60 for trial in result.record.trials)
    assert 0 <= result.verdict.spending.seconds < 60


def test_a_folder_that_cannot_be_written_is_said_before_the_first_trial(tmp_path: Path) -> None:
    """A file stands where the folder should be: no trial is paid for, and the path is named."""
    calls = count()
    (tmp_path / "store").write_text("not a folder")
    given = contract()
    counted = tw.Contract(
        "machine", lambda _question: str(next(calls)), given.criteria, sampling=["a"]
    )
    with pytest.raises(StoreUnusable, match="store"):
        tw.run(counted, seed=1, store=tmp_path / "store")
    assert next(calls) == 0


FULL = """
import resource, sys
import trialwise as tw

def service(question):
    return "good " + "x" * 3000

criterion = tw.Criterion("good", tw.starts_with("good"), at_least=0.5, trials=100)
contract = tw.Contract("full", service, [criterion], sampling=["a"])
limit = int(sys.argv[2])
if limit:
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
result = tw.run(contract, seed=1, store=sys.argv[1], curtail=False, resume=not limit)
print(result.decision, result.verdict.stop, len(result.record.trials))
"""


def test_a_full_disk_keeps_what_fitted_and_the_run_goes_on_later(tmp_path: Path) -> None:
    """The journal may grow to 100 kB and no further: those trials are kept and never run again."""
    file = tmp_path / "full.py"
    file.write_text(FULL)
    store = tmp_path / "store"
    first = subprocess.run(
        [sys.executable, str(file), str(store), "100000"],
        capture_output=True,
        text=True,
        check=False,
    )
    unfinished = next(one for one in RunStore(store).list() if one.is_unfinished)
    kept = len(RunStore(store).open(unfinished.run_id).trials())
    assert 0 < kept < 100, first.stderr
    again = subprocess.run(
        [sys.executable, str(file), str(store), "0"], capture_output=True, text=True, check=False
    )
    assert again.stdout.split() == ["PASS", "complete", "100"], again.stderr


def test_two_runs_in_one_folder_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Two processes at once: two runs, both whole."""
    script = tmp_path / "neighbour.py"
    script.write_text(FULL.replace("resume=not limit", "resume=False"))
    arguments = [sys.executable, str(script), str(tmp_path / "store"), "0"]
    both = [subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        out, _ = process.communicate(timeout=60)
        assert out.split() == ["PASS", "complete", "100"]
    runs = RunStore(tmp_path / "store").list()
    assert len(runs) == 2
    assert len({run.run_id for run in runs}) == 2


def test_a_record_can_be_decided_again_by_anybody(tmp_path: Path) -> None:
    """From the stored run alone the same verdict follows."""
    from trialwise.procedures.run_verdict import decide_run

    result = tw.run(contract(), seed=1, store=tmp_path)
    store = RunStore(tmp_path)
    record = store.load(result.record.run_id)
    assert record.verdict == result.verdict
    again = decide_run(
        record.plan,
        record.trials,
        stops={one.name: one.stop for one in record.verdict.experiments},
        stop=record.verdict.stop,
        spending=record.verdict.spending,
        run_id=record.run_id,
        started_at=record.verdict.started_at,
        message=record.verdict.aborted,
        reproducibility=record.verdict.reproducibility,
    )
    assert again == record.verdict
