"""Writes docs/reliability.md from what the fault tests did.

    make test-faults

runs tests/faults and tests/executors with a JUnit report and then this tool on it:

    python -m tools.write_reliability report.xml

The page has a line for each file of tests: what it breaks, in how many cases, and what came of it.
The texts are the docstrings of the files, so that page and tests cannot disagree.
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
# Fault tests

`make test-faults` breaks runs in many ways, with real processes and servers, and writes this page
from what came of it. Each case must end in a verdict or in a clean refusal with the [documented
exit code](guides/faults-and-resume.md); no paid trial may be lost, and none may count twice. The
files of tests say what each case does.
"""


def write_page(*reports: Path) -> str:
    """Return the page for JUnit reports.

    Args:
        reports: What pytest wrote with `--junitxml`.
    """
    cases: dict[str, Counter[str]] = defaultdict(Counter)
    for case in (one for each in reports for one in ElementTree.parse(each).iter("testcase")):
        cases[case.get("classname", "")][_result(case)] += 1
    parts = [_HEAD, f"In all: {_describe(sum(cases.values(), Counter()))}.\n"]
    rows = [
        _write_row(ROOT / f"{module.replace('.', '/')}.py", cases[module])
        for module in sorted(cases)
    ]
    table = ["| what is broken | tests | cases |", "|---|---|---|", *rows, ""]
    return "\n".join([*parts, *_name_missing(set(cases)), *table])


def _name_missing(modules: set[str]) -> list[str]:
    """Name the files of tests that did not run."""
    files = (one for folder in FOLDERS for one in sorted((ROOT / folder).glob("test_*.py")))
    places = [one.relative_to(ROOT).as_posix() for one in files]
    missing = [f"`{one}`" for one in places if one[:-3].replace("/", ".") not in modules]
    return [f"Not run this time: {', '.join(missing)}.\n"] if missing else []


def _write_row(file: Path, results: Counter[str]) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    title = " ".join(text.partition("\n\n")[0].split()).removesuffix(".").replace("|", "\\|")
    place = file.relative_to(ROOT / "tests").as_posix()
    return f"| {title} | `{place}` | {_describe(results)} |"


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
