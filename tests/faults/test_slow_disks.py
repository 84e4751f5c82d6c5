"""A disk that is slow to sync delays a run and changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.command_runs import YES, call, decisions, journal, write

SLOW = "import os, time\nsync = os.fsync\nos.fsync = lambda file: (time.sleep(0.1), sync(file))\n"


@pytest.mark.slow
def test_a_slow_disk_loses_nothing(tmp_path: Path) -> None:
    """Every sync takes 100 ms: the same verdict, every trial in the journal, exit 0."""
    write(tmp_path, SLOW + YES)
    code, output, errors = call(tmp_path, "run", "-q", "--concurrency", "4")

    assert (code, decisions(tmp_path)) == (0, ["PASS"]), output + errors
    assert len(journal(tmp_path).read_text().splitlines()) == 20
