"""One row, one sample, one level: what ran after a decision stands below it, everywhere."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import trialwise as tw
from trialwise.model.run import RunRecord
from trialwise.pages.results import describe_suite
from trialwise.pages.run_report import build_report_card
from trialwise.plugin.reporting import outcome_text
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.document_text import render_document_text
from trialwise.renderers.results_text import render_results
from trialwise.reports.formats import ReportSource, render_report

EARLY = tw.Criterion("early", tw.contains("yes"), at_least=0.8)


def changes(index: int) -> bool:
    return index < 25 or index % 2 == 0


def run(script: Any, *criteria: tw.Criterion, trials: int = 332, **given: Any) -> RunRecord:
    def answer(_: str, index: int) -> str:
        return "yes B" if script(index) else "no B"

    long = tw.Criterion("long", tw.contains("B"), at_least=0.5, trials=trials)
    usual: dict[str, Any] = {"store": None, "progress": False, "seed": 1, "curtail": False}
    contract = tw.Contract("later", answer, [*criteria, long])
    return tw.run(contract, inputs=["x"], **(usual | given)).record


def squeeze(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def steady() -> tuple[RunRecord, str]:
    """A run that keeps its PASS, and what its row says below."""
    record = run(lambda index: index % 12 != 11, EARLY)
    at = record.verdict.findings[0].decided_at
    assert at is not None
    passed = sum(index % 12 != 11 for index in range(at, 332))
    share = f"{100 * passed / (332 - at):.1f} %"
    return record, f"decided at trial {at}; of {332 - at} later trials {passed} passed ({share})"


@pytest.mark.parametrize("width", [40, 60, 80, 90, 100, 140, 200])
def test_a_second_line_says_what_came_later_at_every_width(
    steady: tuple[RunRecord, str], width: int
) -> None:
    """The row itself has the counts, the rate and the interval of the decision."""
    record, below = steady
    able = Capabilities(width=width, unicode=True)
    text = render_results(describe_suite([record]), capabilities=able)

    assert below in squeeze(text)
    finding = record.verdict.findings[0]
    row = next(line for line in text.splitlines() if line.lstrip().startswith("early"))
    assert f"{100 * finding.tally.passed / finding.tally.trials:.1f} %" in row
    if width >= 80:
        assert f"{finding.tally.trials} trials" in row
    assert max(map(len, text.splitlines())) <= width or width == 40


@pytest.mark.parametrize("report", ["markdown", "html", "junit"])
def test_every_report_shows_the_deciding_rate_and_the_later_trials(
    steady: tuple[RunRecord, str], report: str
) -> None:
    """One rate for one criterion, wherever it is read."""
    record, below = steady
    text = squeeze(render_report(ReportSource(records=[record]), report))

    assert below in text
    rate = record.verdict.findings[0].tally.rate
    assert rate is not None
    assert (f'"rate" value="{rate}"' if report == "junit" else f"{100 * rate:.1f} %") in text


def test_notebook_pytest_and_frames_show_the_same(steady: tuple[RunRecord, str]) -> None:
    """The card of a notebook, the block of pytest and the rows of a table."""
    record, below = steady
    finding = record.verdict.findings[0]
    counts = f"{finding.tally.passed} of {finding.tally.trials} trials passed"

    assert below in squeeze(
        render_document_text(build_report_card([record]), Capabilities(width=200))
    )
    assert outcome_text(finding).startswith(counts)
    assert outcome_text(finding).endswith(below)
    facts = json.loads(render_report(ReportSource(records=[record]), "json"))["runs"][0]["results"][
        0
    ]["facts"]
    assert (facts["trials"], facts["passed"]) == (finding.tally.trials, finding.tally.passed)
    assert facts["trials"] + facts["later_trials"] == 332
    assert facts["withdrawn"] is None


def test_a_withdrawn_decision_is_named_in_every_report() -> None:
    """The row is INCONCLUSIVE, the line below names what was withdrawn, the notes say why."""
    record = run(changes, EARLY)
    finding = record.verdict.findings[0]
    able = Capabilities(width=90, unicode=True)
    for text in (
        render_results(describe_suite([record]), capabilities=able),
        render_report(ReportSource(records=[record]), "markdown"),
        render_report(ReportSource(records=[record]), "junit"),
        render_report(ReportSource(records=[record]), "html"),
    ):
        assert f"PASS at trial {finding.decided_at} withdrawn; of" in squeeze(text)
        assert "the service changed during the run" in squeeze(text)
    assert "the path ends in the PASS region" in render_report(
        ReportSource(records=[record]), "html"
    )


def test_an_interval_at_another_level_than_the_heading_carries_its_own() -> None:
    """Two criteria at 90 %, one at 98 %: the heading has the common level, the row its own."""
    strict = dataclasses.replace(EARLY, name="strict", confidence=0.99)
    record = run(lambda _: True, EARLY, strict)
    text = render_results(describe_suite([record]), capabilities=Capabilities(width=140))
    rows = {line.split()[0]: line for line in text.splitlines() if "[" in line}

    assert "90 % intervals" in text
    assert "] (98 %)" in rows["strict"]
    assert "(9" not in rows["early"]
    assert "(9" not in rows["long"]
    assert "90 % interval |" in render_report(ReportSource(records=[record]), "markdown")
    assert "] (98 %)" in render_report(ReportSource(records=[record]), "markdown")
    page = squeeze(render_report(ReportSource(records=[record]), "html"))
    assert "90 % interval" in page
    assert "] (98 %)" in page


def test_a_correction_gives_every_row_its_level() -> None:
    """Shares of 1/3 leave 1 − 2·0.05/3 = 96.67 %, and the others their own."""
    other = dataclasses.replace(EARLY, name="other")
    record = run(lambda _: True, EARLY, other, correction="bonferroni")
    found = [one.interval for one in record.verdict.findings if one.interval]
    levels = {one.confidence or 0.0 for one in found}
    text = render_results(describe_suite([record]), capabilities=Capabilities(width=140))

    assert 1 - 2 * 0.05 / 3 == pytest.approx(max(levels))
    assert len(levels) == 1 or "(" in text.split("interval", 1)[1]
    assert "96.67 %" in text


def test_an_imported_wald_test_keeps_its_own_interval() -> None:
    """20 of 21 at 95 %: Wilson's interval is [77.3, 99.2], by its formula."""
    wald = tw.Criterion(
        "wald", tw.contains("yes"), at_least=0.9, margin=0.1, method="wald", beta=0.2, max_trials=50
    )
    record = run(lambda index: index != 2, wald, trials=21)
    text = render_results(describe_suite([record]), capabilities=Capabilities(width=100))
    n, p, z = 21, 20 / 21, 1.959963984540054
    middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    low, high = ((middle + sign * half) / (1 + z * z / n) for sign in (-1, 1))

    assert record.verdict.findings[0].tally.trials == 21
    assert f"95 % interval [{100 * low:.1f}, {100 * high:.1f}] by Wilson" in text
    assert "75 %" in text
