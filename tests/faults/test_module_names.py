"""Files beside the suite do not replace modules of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.command_runs import SUITE, call, decisions, write


def test_files_with_names_of_python_modules_change_nothing(tmp_path: Path) -> None:
    """The 10 names that broke the most, all at once, through a whole run with a report."""
    write(tmp_path)
    for name in ("html", "json", "string", "statistics", "logging", "textwrap", "traceback",
                 "random", "types", "inspect"):  # fmt: skip
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    code, _, errors = call(tmp_path, "run", "-q", "-o", "report.html")

    assert (code, decisions(tmp_path)) == (0, ["PASS"]), errors
    assert (tmp_path / "report.html").exists()


def test_a_module_beside_the_suite_comes_before_an_installed_one(tmp_path: Path) -> None:
    """A service called `pytest` is the folder's own."""
    write(tmp_path, suite=SUITE.replace("agent:f", "hypothesis:f"))
    (tmp_path / "agent.py").rename(tmp_path / "hypothesis.py")

    assert call(tmp_path, "run", "-q")[0] == 0


@pytest.mark.parametrize("name", ["statistics", "queue"])
def test_a_service_with_the_name_of_a_python_module_is_refused(tmp_path: Path, name: str) -> None:
    """Exit 2 with what to do, and no call of something else."""
    write(tmp_path, suite=SUITE.replace("agent:f", f"{name}:f"))
    (tmp_path / "agent.py").rename(tmp_path / f"{name}.py")
    code, _, errors = call(tmp_path, "check")

    assert code == 2
    assert "give your file another name" in errors
