"""A short run of atheris over every reader; `make fuzz` takes longer."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.fuzz.reader_targets import ROOT, TARGETS


@pytest.mark.slow
@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_some_seconds_find_nothing(name: str, tmp_path: Path) -> None:
    """Every input is read, or refused with a sentence."""
    command = [sys.executable, "-m", "tests.fuzz.fuzz_target", name, "--seconds", "4"]
    done = subprocess.run(
        [*command, "--corpus", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert "Done " in done.stderr
