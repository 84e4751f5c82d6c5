"""What `trialwise run` writes at its end: reports in files, and the result on standard output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.cli.selecting import name_suites

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.suite import Suite


class EndedRuns(NamedTuple):
    """What the runs of the suites came to."""

    records: list[RunRecord]
    suites: list[Suite]
    """Of each record."""
    interrupted: bool = False
    not_kept: tuple[str, ...] = ()
    """Why records are not on disk."""
    lost: tuple[str, ...] = ()
    """The runs whose records these are."""

    def of(self, suite: Suite) -> list[RunRecord]:
        """The records of one suite."""
        pairs = zip(self.records, self.suites, strict=False)
        return [record for record, owner in pairs if owner is suite]


class _Wanted(NamedTuple):
    """A report that somebody asked for."""

    path: Path
    format: str
    records: Sequence[RunRecord]
    known: dict[str, Any]


def report_runs(
    suites: Sequence[Suite], ended: EndedRuns, given: dict[str, Any], code: int
) -> list[str]:
    """Say the verdict, then write the reports; return what could not be written, in words.

    The verdict comes first: no report that cannot be made may hide it.

    Args:
        suites: Those that were run.
        ended: What came of them.
        given: The options of the command line.
        code: The exit code, for the JSON report.
    """
    records = ended.records
    not_kept = [f"NOT KEPT: {reason}" for reason in ended.not_kept]
    if not records:
        return not_kept
    from trialwise.cli.printing import near, say
    from trialwise.reports.report_files import render_report

    locations = {
        record.run_id: near(suite.runs_folder / "runs" / record.run_id)
        for suite in suites
        for record in ended.of(suite)
    }
    known: dict[str, Any] = {
        "name": name_suites(suites),
        "file": near(suites[0].path),
        "files": {
            record.run_id: near(suite.path) for suite in suites for record in ended.of(suite)
        },
        "exit_code": code,
        "locations": locations,
    }
    wanted = list(_list_wanted(suites, ended, given, known))
    troubles = not_kept
    if given["as_json"]:
        troubles += _print_json(render_report(records, "json", **known))
    else:
        _say_verdict(ended, known, is_transparent=given["transparent"], has_reports=bool(wanted))
    written, failed = _write(wanted)
    troubles += failed
    if not given["as_json"]:
        for path in written:
            say(f"report: {path}")
    if given["summary"] is not None:
        troubles += _append_markdown(given["summary"], records, known)
    if given["annotations"] == "github":
        _annotate(suites, ended)
    return troubles


def _say_verdict(
    ended: EndedRuns, known: dict[str, Any], *, is_transparent: bool, has_reports: bool
) -> None:
    from trialwise.cli.printing import output_of, say
    from trialwise.reports.report_files import render_report
    from trialwise.runtime.result import render_summary

    if is_transparent:
        say(render_report(ended.records, "transparent"))
    for run_id in ended.lost:
        say(f"NOT KEPT: the record of {run_id} could not be written")
    folders = () if has_reports else [*known["locations"].values()]
    say(render_summary(ended.records, output_of(), folders=folders, files=known["files"]))


def _list_wanted(
    suites: Sequence[Suite], ended: EndedRuns, given: dict[str, Any], known: dict[str, Any]
) -> Iterator[_Wanted]:
    """A suite's own reports are about its runs; those of the command line are about all."""
    from trialwise.cli.printing import near

    for suite in suites:
        about = {**known, "name": name_suites([suite]), "file": near(suite.path)}
        for report in suite.reports if ended.of(suite) else ():
            yield _Wanted(report.path, report.format, ended.of(suite), about)
    for path in given["outputs"]:
        yield _Wanted(path, "", ended.records, known)
    for kind in ("html", "junit"):
        if given[kind] is not None:
            yield _Wanted(given[kind], kind, ended.records, known)


def _write(wanted: Sequence[_Wanted]) -> tuple[list[str], list[str]]:
    """The reports that were written, and what went wrong with the others."""
    from trialwise.cli.printing import near
    from trialwise.reports.report_files import ReportNotWritten, write_report

    written: list[str] = []
    troubles: list[str] = []
    for one in wanted:
        try:
            path = write_report(one.path, one.records, format_=one.format, **one.known)
            written.append(near(path))
        except ReportNotWritten as error:
            troubles.append(str(error))
    return written, troubles


def _append_markdown(path: Path, records: Sequence[RunRecord], known: dict[str, Any]) -> list[str]:
    from trialwise.reports.report_files import ReportNotWritten, render_report

    try:
        text = render_report(records, "markdown", **known)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except ReportNotWritten as error:
        return [str(error)]
    except OSError as error:
        return [str(ReportNotWritten(path, error.strerror or str(error)))]
    return []


def _annotate(suites: Sequence[Suite], ended: EndedRuns) -> None:
    from trialwise.cli.printing import near, say
    from trialwise.pages.results import describe_suite
    from trialwise.renderers.ci_formats import render_github

    for suite in suites:
        if own := ended.of(suite):
            text = render_github(describe_suite(own), file=near(suite.path))
            if text:
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
