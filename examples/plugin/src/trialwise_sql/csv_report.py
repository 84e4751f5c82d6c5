"""A format of reports: one line for each criterion, for spreadsheets."""

from __future__ import annotations

import csv
import io

from trialwise.extend import ReportSource, report_format


@report_format("csv", ".csv", summary="one line for each criterion, for spreadsheets")
def FORMAT(source: ReportSource) -> str:  # noqa: N802 - the entry point names it
    """Render the findings of all runs."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["contract", "criterion", "decision"])
    for record in source.records:
        for finding in record.verdict.findings:
            writer.writerow([record.plan.contract, finding.criterion, finding.decision])
    return text.getvalue()
