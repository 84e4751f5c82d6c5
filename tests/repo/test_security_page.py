"""Every promise of docs/security.md names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^- (.*\n  `tests/.*)$", PAGE, re.MULTILINE)


def named_tests(row: str) -> list[str]:
    return re.findall(r"`(tests/[\w/]+\.py::\w+)`", row)


@pytest.mark.parametrize("row", ROWS)
def test_a_promise_names_its_tests(row: str) -> None:
    """At least one, and each is a function in that file."""
    assert named_tests(row)
    for name in named_tests(row):
        path, _, function = name.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert function in {one.name for one in tree.body if isinstance(one, functions)}


def test_the_page_is_linked() -> None:
    """From README and from the first page of the documentation."""
    assert "docs/security.md" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "\nsecurity\n" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
