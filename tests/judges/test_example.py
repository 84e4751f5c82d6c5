"""The example of a judge: what is committed beside it is what its commands come to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trialwise.judges import Judge
from trialwise.suite import load_suite

EXAMPLE = Path(__file__).parents[2] / "examples" / "judge"


@pytest.mark.slow
def test_the_calibration_of_the_example_is_the_one_that_its_gold_set_gives(tmp_path: Path) -> None:
    """Measured again it is the same but for the date, and it lets the judge decide."""
    folder = tmp_path / "judge"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".trialwise", "__pycache__"))
    command = [sys.executable, "model.py", sys.executable, "-m", "trialwise.cli.main"]
    done = subprocess.run(
        [*command, "judge", "calibrate", "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    kept, again = (
        json.loads((one / "gold.calibration.json").read_text(encoding="utf-8"))
        for one in (EXAMPLE, folder)
    )
    (check,) = (
        load_suite(EXAMPLE / "trialwise.yaml", environment={})
        .contracts[0]
        .contract.criteria[0]
        .checks
    )

    assert 0 == done.returncode, done.stderr
    assert kept | {"measured_at": ""} == again | {"measured_at": ""}
    assert isinstance(check, Judge)
    assert () == check.advisory
