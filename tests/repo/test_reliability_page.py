"""docs/reliability.md is written from the results of the fault tests."""

from __future__ import annotations

from pathlib import Path

from tools.fuzz_readers import write_block
from tools.generated_blocks import find_block, replace_block
from tools.write_reliability import PAGE, write_page

REPORT = """<testsuites><testsuite>
<testcase classname="tests.faults.test_kill" name="test_kills_lose_nothing_and_count_nothing_twice[30]"/>
<testcase classname="tests.faults.test_kill" name="test_kills_lose_nothing_and_count_nothing_twice[200]">
  <failure message="lost one"/>
</testcase></testsuite></testsuites>
"""  # noqa: E501 - as pytest writes it


def test_the_page_counts_what_passed_and_failed(tmp_path: Path) -> None:
    """Cases of one file are counted together, and what did not run is named."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    page = write_page(report)

    assert "In all: 1 failed, 1 passed." in page
    assert "| `faults/test_kill.py` | 1 failed, 1 passed |" in page
    (missing,) = (one for one in page.splitlines() if one.startswith("Not run this time: "))
    assert "`tests/faults/test_damaged_journals.py`" in missing
    assert "test_kill.py" not in missing


def test_no_case_of_the_page_failed() -> None:
    """A page with failures is not to be published."""
    assert " failed" not in PAGE.read_text(encoding="utf-8").partition("## ")[0]


ROWS = [
    {"target": "suite", "executions": 1200, "features": 30, "findings": [], "minutes": 1.5},
    {
        "target": "trace",
        "executions": 34,
        "features": 5,
        "findings": [{"error": "KeyError: 'a' (src/trialwise/x.py:3)", "input": "f"}],
        "minutes": 1.5,
    },
]


def test_the_section_on_fuzzing_adds_up_its_rows() -> None:
    """Minutes, inputs and findings, and what is not mended is named."""
    left = ["`trace`: KeyError: 'a' (src/trialwise/x.py:3)"]
    text = write_block({"on": "2026-01-01", "python": "3.11.0", "rows": ROWS}, left)

    assert "3 minutes,\n1,234 inputs. Findings: 1; not mended: 1." in text
    assert "| trace | 1.5 | 34 | 5 | 1 |" in text
    assert f"- {left[0]}" in text
    assert "- A line of a journal whose checksum fits" in text


def test_each_tool_leaves_the_part_of_the_other_alone() -> None:
    """The block is replaced in its place, or put at the end."""
    page = replace_block("# Page\n", "fuzzing", "old")

    assert replace_block(page, "fuzzing", "new") == page.replace("old", "new")
    assert "old" in find_block(page, "fuzzing")
    assert find_block("# Page", "fuzzing") == ""


def test_nothing_that_fuzzing_found_is_left() -> None:
    """A page with findings is not to be published."""
    assert "Not mended yet" not in find_block(PAGE.read_text(encoding="utf-8"), "fuzzing")
