"""Writes docs/reliability.md from what the fault tests did.

    make test-faults

runs tests/faults and tests/executors with a JUnit report and then this tool on it:

    python -m tools.write_reliability report.xml

The page has a table for each file of tests: what was tried, in how many cases, and what came of
it. The texts are the docstrings of the files and tests, so that page and tests cannot disagree.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

from tools.generated_blocks import find_block

ROOT = Path(__file__).parents[1]
FOLDERS = ("tests/faults", "tests/executors")
PAGE = ROOT / "docs" / "reliability.md"
_HEAD = """\
# Reliability

This page is written from the results of the fault tests, which `make test-faults` runs. They break
runs in many ways and look at what is left: each case must end in a verdict or in a clean refusal
with the [documented exit code](guides/faults-and-resume.md), no paid trial may be lost and none may
count twice. The tests start real processes and servers. The tables list what ran when this page was
written.
"""


def write_page(*reports: Path) -> str:
    """Return the page for JUnit reports.

    Args:
        reports: What pytest wrote with `--junitxml`.
    """
    cases: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for case in (one for each in reports for one in ElementTree.parse(each).iter("testcase")):
        module = case.get("classname", "")
        function = case.get("name", "").partition("[")[0]
        cases[module][function][_result(case)] += 1
    total = sum((sum(one.values(), Counter()) for one in cases.values()), Counter())
    parts = [_HEAD, f"In all: {_describe(total)}.\n"]
    tables = [
        _write_table(ROOT / f"{module.replace('.', '/')}.py", cases[module])
        for module in sorted(cases)
    ]
    return "\n".join([*parts, *_name_missing(set(cases)), *tables])


def _name_missing(modules: set[str]) -> list[str]:
    """Name the files of tests that did not run."""
    files = (one for folder in FOLDERS for one in sorted((ROOT / folder).glob("test_*.py")))
    places = [one.relative_to(ROOT).as_posix() for one in files]
    missing = [f"`{one}`" for one in places if one[:-3].replace("/", ".") not in modules]
    return [f"Not run this time: {', '.join(missing)}.\n"] if missing else []


def _write_table(file: Path, found: dict[str, Counter[str]]) -> str:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    title = _first_line(tree).removesuffix(".")
    texts = {
        one.name: _first_line(one)
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    rows = [
        f"| {_sentence(name)} {texts.get(name, '')} | {_describe(results)} |"
        for name, results in found.items()
    ]
    place = file.relative_to(ROOT).as_posix()
    return "\n".join([f"## {title}", "", f"| `{place}` | cases |", "|---|---|", *rows, ""])


def _first_line(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _sentence(name: str) -> str:
    words = name.removeprefix("test_").replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}."


def _describe(results: Counter[str]) -> str:
    return ", ".join(f"{count} {result}" for result, count in sorted(results.items()))


def _result(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "passed" if case.find("skipped") is None else "skipped"


if __name__ == "__main__":
    written = write_page(*map(Path, sys.argv[1:]))
    # `make fuzz` writes this part.
    fuzzing = find_block(PAGE.read_text(encoding="utf-8"), "fuzzing")
    PAGE.write_text(f"{written}\n{fuzzing}\n" if fuzzing else written, encoding="utf-8")
