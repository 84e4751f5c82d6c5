"""A run that is killed at any instant goes on as if nothing had happened."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trialwise as tw
from trialwise.stores.runs import RunStore

DRIVER = Path(__file__).with_name("kill_driver.py")


@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, kills: int) -> None:
    """SIGKILL at random instants, then resume: journal, call log and verdict agree."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path), str(kills)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["kills"] == kills
    # At most what was in flight is called again after a kill.
    assert report["unexplained_calls"] == 0

    spec = importlib.util.spec_from_file_location("kill_driver", DRIVER)
    assert spec is not None
    assert spec.loader is not None
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    undisturbed = tw.run(
        driver.contract(tmp_path / "calls"), seed=11, store=None, concurrency=8, curtail=False
    )
    for number in range(report["runs"]):
        record = RunStore(tmp_path / f"store-{number}")
        killed = record.load(record.latest().run_id)
        assert killed.verdict.decision is undisturbed.decision
        expected = [
            (finding.criterion, finding.decision, finding.tally)
            for finding in undisturbed.verdict.findings
        ]
        assert expected == [
            (finding.criterion, finding.decision, finding.tally)
            for finding in killed.verdict.findings
        ]
