"""docs/reliability.md is written from the results of the fault tests."""

from __future__ import annotations

from pathlib import Path

from tools.write_reliability import PAGE, write_page

REPORT = """<testsuites><testsuite>
<testcase classname="tests.faults.test_kill" name="test_kills_lose_nothing_and_count_nothing_twice[30]"/>
<testcase classname="tests.faults.test_kill" name="test_kills_lose_nothing_and_count_nothing_twice[200]">
  <failure message="lost one"/>
</testcase></testsuite></testsuites>
"""  # noqa: E501 - as pytest writes it


def test_the_page_counts_what_passed_and_failed(tmp_path: Path) -> None:
    """Cases of one test are counted together, and what did not run is named."""
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    page = write_page(report)

    assert "In all: 1 failed, 1 passed." in page
    assert "| Kills lose nothing and count nothing twice. SIGKILL at random instants" in page
    (missing,) = (one for one in page.splitlines() if one.startswith("Not run this time: "))
    assert "`tests/faults/test_damaged_journals.py`" in missing
    assert "test_kill.py" not in missing


def test_no_case_of_the_page_failed() -> None:
    """A page with failures is not to be published."""
    assert " failed" not in PAGE.read_text(encoding="utf-8").partition("## ")[0]
