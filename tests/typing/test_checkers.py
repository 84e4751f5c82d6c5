"""The public types, as users' own checkers see them: mypy and pyright at their strictest."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PROGRAMS = ("accepted.py", "refused.py")


@pytest.mark.slow
def test_mypy_accepts_and_refuses_what_it_should(tmp_path: Path) -> None:
    """Strict, without this project's settings: no error where none is marked, one where one is."""
    pytest.importorskip("mypy")
    for name in PROGRAMS:  # away from the project, whose settings would be found
        shutil.copy(HERE / name, tmp_path)
    run = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--config-file=",
            f"--cache-dir={tmp_path / 'cache'}", *PROGRAMS,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    assert (0, "") == (run.returncode, run.stdout), run.stdout + run.stderr


@pytest.mark.slow
def test_pyright_accepts_and_refuses_what_it_should() -> None:
    """The same with pyright, which has to fetch itself once; skipped where it cannot."""
    pytest.importorskip("pyright")
    run = subprocess.run(
        [
            sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable,
            "-p", str(HERE / "pyrightconfig.json"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if not run.stdout.lstrip().startswith("{"):
        pytest.skip(f"pyright could not be started: {(run.stderr or run.stdout)[-200:]}")
    report = json.loads(run.stdout)
    wrong = [
        f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
        for one in report["generalDiagnostics"]
        if Path(one["file"]).name in PROGRAMS
    ]

    assert report["summary"]["filesAnalyzed"] >= len(PROGRAMS)
    assert [] == wrong
