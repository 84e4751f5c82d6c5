"""What `trialwise run` writes at its end: reports in files, and the result on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.documents.printable import near
from trialwise.runtime.selecting import name_suites

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.suite import Suite


class EndedRuns(NamedTuple):
    """What the runs of the suites came to."""

    pairs: list[tuple[Suite, RunRecord]]
    """The runs in their order, each with the suite that it is from."""
    interrupted: bool = False
    not_kept: tuple[str, ...] = ()
    """Why records are not on disk."""
    not_decided: tuple[str, ...] = ()
    """Which contracts have no verdict since an extension raised."""
    lost: tuple[str, ...] = ()
    """The runs whose records these are."""

    @property
    def records(self) -> list[RunRecord]:
        """The runs without their suites."""
        return [record for _, record in self.pairs]

    def by_suite(self) -> Iterator[tuple[Suite, list[RunRecord]]]:
        """Yield each suite with its runs."""
        for suite in {id(one): one for one, _ in self.pairs}.values():
            yield suite, [record for owner, record in self.pairs if owner is suite]


class WantedReports(NamedTuple):
    """What somebody wants to be told at the end, beside the reports that the suites name."""

    outputs: tuple[Path, ...]
    html: Path | None
    junit: Path | None
    summary: Path | None
    """Where Markdown is appended."""
    annotations: str | None
    as_json: bool
    transparent: bool


class _Report(NamedTuple):
    """A file to write."""

    path: Path
    format: str
    records: Sequence[RunRecord]
    known: dict[str, Any]


def report_runs(ended: EndedRuns, wanted: WantedReports, code: int) -> list[str]:
    """Say the verdict, then write the reports; return what could not be written, in words.

    The verdict comes first: no report that cannot be made may hide it.

    Args:
        ended: What came of the runs.
        wanted: Where and how to say it.
        code: The exit code, for the JSON report.
    """
    troubles = [f"NOT KEPT: {reason}" for reason in ended.not_kept]
    troubles += [f"NOT DECIDED: {reason}" for reason in ended.not_decided]
    if not ended.pairs:
        return troubles
    from trialwise.cli.printing import say
    from trialwise.reports.formats import render_report

    suites = [suite for suite, _ in ended.by_suite()]
    known: dict[str, Any] = {
        "name": name_suites(suites),
        "file": near(suites[0].path),
        "files": {record.run_id: near(suite.path) for suite, record in ended.pairs},
        "exit_code": code,
        "locations": {
            record.run_id: near(suite.runs_folder / "runs" / record.run_id)
            for suite, record in ended.pairs
        },
    }
    reports = list(_list_reports(ended, wanted, known))
    if wanted.as_json:
        troubles += _print_json(render_report(ended.records, "json", **known))
    else:
        _say_verdict(ended, known, is_transparent=wanted.transparent, has_reports=bool(reports))
    written, failed = _write(reports)
    troubles += failed
    for path in () if wanted.as_json else written:
        say(f"report: {path}")
    if wanted.summary is not None:
        troubles += _append_markdown(wanted.summary, ended.records, known)
    if wanted.annotations == "github":
        _annotate(ended)
    return troubles


def _say_verdict(
    ended: EndedRuns, known: dict[str, Any], *, is_transparent: bool, has_reports: bool
) -> None:
    from trialwise.cli.printing import output_of, say
    from trialwise.reports.formats import render_report
    from trialwise.runtime.result import render_summary

    if is_transparent:
        say(render_report(ended.records, "transparent"))
    for run_id in ended.lost:
        say(f"NOT KEPT: the record of {run_id} could not be written")
    folders = () if has_reports else [*known["locations"].values()]
    say(render_summary(ended.records, output_of(), folders=folders, files=known["files"]))


def _list_reports(
    ended: EndedRuns, wanted: WantedReports, known: dict[str, Any]
) -> Iterator[_Report]:
    """A suite's own reports are about its runs; those of the command line are about all."""
    for suite, records in ended.by_suite():
        about = {**known, "name": name_suites([suite]), "file": near(suite.path)}
        for report in suite.reports:
            yield _Report(report.path, report.format, records, about)
    for path in wanted.outputs:
        yield _Report(path, "", ended.records, known)
    for kind, given in (("html", wanted.html), ("junit", wanted.junit)):
        if given is not None:
            yield _Report(given, kind, ended.records, known)


def _write(reports: Sequence[_Report]) -> tuple[list[str], list[str]]:
    """Write files; return those that were written, and what went wrong with the others."""
    from trialwise.reports.formats import ReportNotWritten, write_report

    written: list[str] = []
    troubles: list[str] = []
    for one in reports:
        try:
            path = write_report(one.path, one.records, format_=one.format, **one.known)
            written.append(near(path))
        except ReportNotWritten as error:
            troubles.append(str(error))
    return written, troubles


def _append_markdown(path: Path, records: Sequence[RunRecord], known: dict[str, Any]) -> list[str]:
    from trialwise.reports.formats import ReportNotWritten, render_report

    try:
        text = render_report(records, "markdown", **known)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except ReportNotWritten as error:
        return [str(error)]
    except OSError as error:
        return [str(ReportNotWritten(path, error.strerror or str(error)))]
    return []


def _annotate(ended: EndedRuns) -> None:
    from trialwise.cli.printing import say
    from trialwise.pages.results import describe_suite
    from trialwise.renderers.ci_formats import render_github

    for suite, records in ended.by_suite():
        if text := render_github(describe_suite(records), file=near(suite.path)):
            say(text)


def _print_json(text: str) -> list[str]:
    from trialwise.cli.printing import say_json
    from trialwise.cli.standard_streams import mute, own_output

    try:
        say_json(text)
    except OSError as error:
        mute(own_output().fileno())
        return [f"standard output takes no JSON: {error.strerror}"]
    return []
