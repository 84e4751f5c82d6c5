"""Sessions without a marked test do not pay for trialwise: nothing of it is imported."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import _trialwise_pytest

if TYPE_CHECKING:
    from tests.plugin.conftest import Project

_LISTED = """
    import sys

    def pytest_sessionfinish():
        found = sorted(name for name in sys.modules if name.split(".")[0] == "trialwise")
        print("\\nimported:", ",".join(found) or "nothing")
"""


@pytest.mark.slow
def test_nothing_is_imported_without_a_marked_test(project: Project) -> None:
    """Collecting and running plain tests, with every option's default, imports no trialwise."""
    project.write(_LISTED, "conftest.py")
    project.write("def test_it(): pass\n\nclass TestMore:\n    def test_it(self): pass\n")

    result = project.run_apart("-s")

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["imported: nothing"])


@pytest.mark.slow
def test_nothing_is_imported_by_workers_and_their_controller(project: Project) -> None:
    """Neither side of pytest-xdist loads it for plain tests."""
    project.write(_LISTED, "conftest.py")
    project.write("import sys\ndef test_it(): assert 'trialwise' not in sys.modules\n")

    result = project.run_apart("-p", "xdist", "-n", "1", "-s")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["imported: nothing"])


def test_the_first_marked_test_loads_the_rest(project: Project) -> None:
    """Collecting one is enough."""
    project.write(_LISTED, "conftest.py")
    project.write(
        """
        import pytest

        @pytest.mark.trials(3, never_fails=True)
        def test_it(): pass
        """
    )

    result = project.run_apart("-s", "--collect-only")

    result.stdout.fnmatch_lines(["imported: *trialwise.plugin.hooks*"])


def test_the_entry_point_imports_pytest_alone() -> None:
    """What is imported when the file is read is pytest, which is there already."""
    source = Path(_trialwise_pytest.__file__).read_text(encoding="utf-8")
    imported = [
        name
        for node in ast.parse(source).body
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]

    assert ["__future__", "pytest"] == imported
