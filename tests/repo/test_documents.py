"""What the documents show is what happens."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "name", ["README.md", "docs/statistics.md", "docs/sequential.md", "docs/postconditions.md"]
)
def test_the_examples_in_the_documents_run(name: str) -> None:
    """Every `>>>` in a document gives what stands below it."""
    result = doctest.testfile(
        str(ROOT / name), module_relative=False, optionflags=doctest.ELLIPSIS, encoding="utf-8"
    )

    assert (0, True) == (result.failed, result.attempted > 0)


def test_every_function_the_readme_names_exists() -> None:
    """The table of functions is a table of functions."""
    from trialwise import stats

    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## The statistics")[1]
    names = re.findall(r"`(\w+)`", table.split("## Proof")[0].split("|---|---|")[1])

    assert [] == [name for name in names if name not in dir(stats)]


def test_the_demo_decides_the_worked_example() -> None:
    """The example prints the composite verdict and the numbers of the methodology's §10.3."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "worked_decision.py")],
        capture_output=True,
        encoding="utf-8",
        env={"PYTHONIOENCODING": "utf-8"},
        check=True,
    )

    for part in ("FAIL (triggered by layperson-readable)", "c = 939", "0.964891", "0.156211"):
        assert part in run.stdout


def test_the_demo_works_on_an_ascii_terminal() -> None:
    """Without Unicode the symbols have their fallbacks, and nothing crashes."""
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "worked_decision.py")],
        capture_output=True,
        encoding="ascii",
        env={"PYTHONIOENCODING": "ascii"},
        check=True,
    )

    assert "configured alpha" in run.stdout


def test_the_repository_names_no_machine() -> None:
    """No path of a workplace and no registry host in a tracked file."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    words = ("/wo" + "rk/", "py" + "pi.org", "registry.np" + "mjs")
    found = [
        name
        for name in listed.stdout.split()
        if (file := ROOT / name).is_file()
        and any(word in file.read_text(encoding="utf-8", errors="replace") for word in words)
    ]

    assert [] == found
