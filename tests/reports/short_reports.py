"""The short formats of runs, each rendered from the one page that all of them show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.documents.results import ResultLine
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Verdict
from trialwise.pages.json_report import describe_report
from trialwise.pages.result_lines import describe_lines
from trialwise.pages.results import describe_suite, describe_verdicts
from trialwise.pages.results_page import build_results_page
from trialwise.renderers import ci_formats, results_text
from trialwise.renderers.document_markdown import render_document_markdown


def result_lines(record: RunRecord) -> tuple[ResultLine, ...]:
    return describe_lines(record.verdict, record)


def totals_of(records: Sequence[RunRecord]) -> str:
    return describe_suite(records).totals


def render_junit(records: Sequence[RunRecord], **known: Any) -> str:
    return ci_formats.render_junit(describe_suite(records, **known))


def render_tap(records: Sequence[RunRecord]) -> str:
    return ci_formats.render_tap(describe_suite(records))


def render_markdown(records: Sequence[RunRecord], **known: Any) -> str:
    return render_document_markdown(build_results_page(describe_suite(records, **known)))


def render_github(records: Sequence[RunRecord], **known: Any) -> str:
    return ci_formats.render_github(describe_suite(records), **known)


def render_gitlab(records: Sequence[RunRecord], **known: Any) -> str:
    return ci_formats.render_gitlab(describe_suite(records), **known)


def render_json(
    records: Sequence[RunRecord],
    *,
    name: str = "trialwise",
    exit_code: int | None = None,
    locations: Mapping[str, str] | None = None,
) -> str:
    report = describe_report(records, name=name, exit_code=exit_code, locations=locations)
    return ci_formats.render_json(report)


def render_summary(verdicts: Sequence[Verdict], **known: Any) -> str:
    return results_text.render_results(describe_verdicts(verdicts), **known)
