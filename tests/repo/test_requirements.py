"""docs/coverage.md lists what the source documents ask for, as the tests' markers state it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import requirements
from tools.requirements import PAGE, find_requirements, write_page


def test_the_page_of_requirements_is_current() -> None:
    """`python -m tools.requirements` would write the same page."""
    assert PAGE.read_text(encoding="utf-8") == write_page(find_requirements())


def _write_test(folder: Path, *arguments: str) -> None:
    marker = f"@pytest.mark.requirement({', '.join(arguments)})"
    text = f"import pytest\n\n{marker}\ndef test_it():\n    pass\n"
    (folder / f"test_{len(list(folder.iterdir()))}.py").write_text(text, encoding="utf-8")


def test_rows_follow_the_order_of_the_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sections are ordered as numbers, and an item has its three parts."""
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    _write_test(tmp_path, "'scoring lift'", "'c'", "'`a|b`'")
    _write_test(tmp_path, "'companion 10.2'", "'b'", "'x'")
    _write_test(tmp_path, "'companion 9.1'", "'a'", "'x'")

    found = find_requirements(tmp_path)

    assert [(one.document, one.place) for one in found] == [
        ("companion", "9.1"),
        ("companion", "10.2"),
        ("scoring", "lift"),
    ]
    assert "- **lift:** c\n  `a|b`\n  `test_0.py::test_it`\n" in write_page(found)


@pytest.mark.parametrize("arguments", [("'novel 1'", "'a'", "'b'"), ("'companion 1'", "name")])
def test_a_marker_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """The message names the file and the line."""
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    _write_test(tmp_path, *arguments)

    with pytest.raises(ValueError, match=r"test_0\.py:3: "):
        find_requirements(tmp_path)
