"""Writes docs/coverage.md: what the source documents ask for, and what fulfils it.

A test names the requirement that it proves::

    @pytest.mark.requirement(
        "companion 1.4.5",
        "A criterion may only report.",
        "`report_only: true` on a criterion",
    )

`python -m tools.requirements` writes the page from these markers. `tests/repo/test_requirements.py`
fails where the page is not current, so a row of the page is always a test that exists.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
#: The documents in the order of the page, by the first word of a marker, and their titles.
DOCUMENTS = {
    "companion": "The statistical companion",
    "statistical-ci": "Statistical tests of agents in CI",
    "reliability": "Reliability of repeated runs",
    "stability": "Stability of an agent's behaviour",
    "scoring": "Scores of stimuli and skills",
}
_HEAD = """# What the source documents ask for

trialwise follows five [source documents](bibliography.md). Each item names what one of them asks
for, then the key, option, function or command that fulfils it (or why trialwise does not do it),
then the test that shows it.

`python -m tools.requirements` writes this page from the markers of the tests.
"""


@dataclass(frozen=True)
class Requirement:
    """What a source document asks for, and the test that shows how it is fulfilled."""

    document: str
    place: str
    asks: str
    answer: str
    test: str

    @property
    def sort_key(self) -> tuple[int, list[tuple[int, int, str]], str]:
        """The order on the page: by document, then by section, where 10.2 follows 9.1."""
        parts = re.findall(r"\d+|[^\d]+", self.place)
        numbered = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
        return list(DOCUMENTS).index(self.document), numbered, self.asks


def find_requirements(folder: Path = ROOT / "tests") -> list[Requirement]:
    """Read the markers of all tests, in the order of the page.

    Args:
        folder: The folder of the tests.

    Raises:
        ValueError: If a marker does not name one of the documents, or is not three strings.
    """
    found = [
        one
        for path in sorted(folder.rglob("test_*.py"))
        if "mark.requirement(" in (text := path.read_text(encoding="utf-8"))
        for one in _read_markers(ast.parse(text), path)
    ]
    return sorted(found, key=lambda one: one.sort_key)


def write_page(requirements: list[Requirement]) -> str:
    """Write the page, one list for each document.

    Args:
        requirements: What the tests name, in the order of the page.
    """
    parts = [_HEAD]
    for name, title in DOCUMENTS.items():
        rows = [one for one in requirements if one.document == name]
        if rows:
            parts.append(f"## {title}\n\n" + "\n".join(map(_row, rows)) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(write_page(find_requirements()), encoding="utf-8")


def _read_markers(tree: ast.Module, path: Path) -> Iterator[Requirement]:
    """Find the markers of the functions and classes of one module."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for decorator in node.decorator_list:
            if (
                isinstance(decorator, ast.Call)
                and ast.unparse(decorator.func) == "pytest.mark.requirement"
            ):
                place = f"{path}:{decorator.lineno}"
                yield _read_marker(decorator, f"{path.relative_to(ROOT)}::{node.name}", place)


def _read_marker(call: ast.Call, test: str, place: str) -> Requirement:
    """Read the three strings of one marker."""
    try:
        source, asks, answer = (ast.literal_eval(argument) for argument in call.args)
    except ValueError:
        message = f"{place}: a requirement is three strings: where, what is asked, what fulfils it"
        raise ValueError(message) from None
    document, _, section = source.partition(" ")
    if document not in DOCUMENTS:
        raise ValueError(f"{place}: {document!r} is none of {', '.join(DOCUMENTS)}")
    return Requirement(document, section, asks, answer, test)


def _row(one: Requirement) -> str:
    """Write one item of a list."""
    test = f"`{one.test.removeprefix('tests/')}`"
    return f"- **{one.place}:** {one.asks}\n  {one.answer}\n  {test}"


if __name__ == "__main__":
    main()
