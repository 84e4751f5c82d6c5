"""`trialwise run`: the main job."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import (
    choose_sized,
    json_option,
    load,
    output_option,
    selection,
    size_options,
)

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite


@click.command("run")
@selection
@size_options
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[RUN]",
    help="Resume runs that were killed, interrupted or stopped by a budget.",
)
@click.option("--record", type=click.Path(path_type=Path), help="Write every reply to a file.")
@click.option("--replay", type=click.Path(path_type=Path), help="Take the replies from a file.")
@output_option
@click.option("--html", type=click.Path(path_type=Path), help="Write an HTML report to this file.")
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--summary", type=click.Path(path_type=Path), help="Append Markdown to this file.")
@click.option("--annotations", type=click.Choice(["github"]), help="Annotate a GitHub workflow.")
@json_option
@click.option("--transparent", is_flag=True, help="Also print the full statistical analysis.")
@click.option("--fail-on-inconclusive", is_flag=True, help="Exit 1 if the suite is INCONCLUSIVE.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
def command(names: tuple[str, ...], file: Path | None, tags: tuple[str, ...], **given: Any) -> int:
    """Run the contracts of a suite and report PASS, FAIL or INCONCLUSIVE.

    The suite is trialwise.yaml in this folder or above. Everything is checked and planned before
    the first trial. A design that cannot support its claim is refused with exit code 2.

    \b
    Examples:
      trialwise run
      trialwise run support-agent --max-usd 2 -o report.html -o results.junit.xml
      trialwise run --resume
    """
    from trialwise.runtime.earlier_runs import list_notes
    from trialwise.runtime.preparing import prepare_runs
    from trialwise.runtime.workspace import Workspace

    if given["record"] is not None and given["replay"] is not None:
        raise click.UsageError("--record and --replay exclude each other")
    suite = load(file, without_services=given["replay"] is not None)
    resume = given["resume"]
    space = Workspace.open(
        suite.runs_folder,
        suite.baselines_folder,
        resume=False if resume is None else resume or True,
        progress=not given["quiet"],
        redact=suite.redaction,
    )
    wanted = choose_sized(suite, names, tags, given)
    prepared = _with_recording(prepare_runs(wanted, space), given)
    if not given["quiet"]:
        _announce(suite, prepared)
    for one in prepared:
        for note in list_notes(one.plan, suite.runs_folder):
            click.echo(f"trialwise: {one.plan.contract}: {note}", err=True)
    ended = _run(prepared, space)
    code = _exit_code(ended, strict=given["fail_on_inconclusive"])
    troubles = _report(suite, ended, given, code)
    if code == ExitCode.PASS:
        troubles += _find_lost_records(suite, ended.records)
    for trouble in troubles:
        click.echo(f"trialwise: {trouble}", err=True)
    # Whoever waits for the report must not take its absence for a success.
    return ExitCode.ERROR if troubles and code == ExitCode.PASS else code


def _find_lost_records(suite: Suite, records: Sequence[RunRecord]) -> list[str]:
    """What is wrong with the records of passed runs: a service may have removed them."""
    from trialwise.stores.runs import RunStore

    store = RunStore(suite.runs_folder)
    lost = [one.run_id for one in records if not store.holds_pass(one.run_id)]
    return [
        f"the record of {name} is no longer on disk, so its PASS does not count" for name in lost
    ]


def _announce(suite: Suite, prepared: Sequence[PreparedRun]) -> None:
    from trialwise.pages.run_rules import render_rules, render_together
    from trialwise.runtime.earlier_runs import expense_of

    for one in prepared:
        if one.finished is None:
            text = render_rules(one.plan, expense=expense_of(one.plan, suite.runs_folder))
            click.echo(text, err=True)
    if chances := render_together([one.plan for one in prepared]):
        click.echo(chances, err=True)


class _Ended(NamedTuple):
    """What the runs of a suite came to."""

    records: list[RunRecord]
    interrupted: bool = False
    not_kept: str = ""
    """Why the last record is not on disk."""


def _run(prepared: Sequence[PreparedRun], space: Workspace) -> _Ended:
    """Run one contract after another; Ctrl-C ends the suite and keeps what there is."""
    from trialwise.errors import RunInterrupted
    from trialwise.runtime.result import Result
    from trialwise.runtime.running import run_prepared
    from trialwise.stores.runs import RecordNotKept

    # What is loaded by now stays as long as the process, and need not be looked through for
    # garbage when it ends: that would be a twentieth of a short run.
    gc.freeze()
    records: list[RunRecord] = []
    for one in prepared:
        if one.finished is not None:
            click.echo(f"{one.plan.contract}: finished before, kept", err=True)
        try:
            records.append(run_prepared(one, space).record)
        except RunInterrupted as stopped:
            click.echo(f"\n{stopped}", err=True)
            if isinstance(stopped.result, Result):
                records.append(stopped.result.record)
            return _Ended(records, interrupted=True)
        except RecordNotKept as error:
            # The next run would not be kept either.
            kept = [] if error.record is None else [error.record]
            return _Ended([*records, *kept], not_kept=str(error))
    return _Ended(records)


def _with_recording(prepared: list[PreparedRun], given: dict[str, Any]) -> list[PreparedRun]:
    if given["replay"] is None and given["record"] is None:
        return prepared
    from trialwise.runtime.running import record_replies, replay_replies

    if given["replay"] is not None:
        return replay_replies(prepared, given["replay"])
    return record_replies(prepared, given["record"])


def _exit_code(ended: _Ended, *, strict: bool) -> int:
    from trialwise.model.evidence import StopReason
    from trialwise.pages.suite_totals import pick_exit_code

    records = ended.records
    if ended.not_kept:
        return ExitCode.ERROR
    if ended.interrupted or not records:
        return ExitCode.INTERRUPTED
    code = pick_exit_code([record.verdict for record in records])
    broken = any(record.verdict.stop is StopReason.SERVICE for record in records)
    if code == ExitCode.INCONCLUSIVE and broken:
        return ExitCode.ERROR
    return ExitCode.FAIL if strict and code == ExitCode.INCONCLUSIVE else code


def _report(suite: Suite, ended: _Ended, given: dict[str, Any], code: int) -> list[str]:
    """Write the reports and say the verdict; what could not be written, in words."""
    records = ended.records
    if not records:
        return []
    from trialwise.cli.printing import near, output_of, say
    from trialwise.reports.report_files import ReportNotWritten, render_report, write_report
    from trialwise.runtime.result import render_summary

    locations = {
        record.run_id: near(suite.runs_folder / "runs" / record.run_id) for record in records
    }
    known: dict[str, Any] = {
        "name": suite.folder.name,
        "file": suite.path.name,
        "exit_code": code,
        "locations": locations,
    }
    wanted: list[tuple[Path, str]] = [(report.path, report.format) for report in suite.reports]
    wanted += [(path, "") for path in given["outputs"]]
    wanted += [(given[kind], kind) for kind in ("html", "junit") if given[kind] is not None]
    written: list[str] = []
    troubles = [f"NOT KEPT: {ended.not_kept}"] if ended.not_kept else []
    for path, kind in wanted:
        try:
            written.append(near(write_report(path, records, format_=kind, **known)))
        except ReportNotWritten as error:
            troubles.append(str(error))
    if given["summary"] is not None:
        try:
            with given["summary"].open("a", encoding="utf-8") as stream:
                stream.write(render_report(records, "markdown", **known))
        except OSError as error:
            why = error.strerror or str(error)
            troubles.append(str(ReportNotWritten(given["summary"], why)))
    if given["annotations"] == "github":
        from trialwise.pages.results import describe_suite
        from trialwise.renderers.ci_formats import render_github

        click.echo(render_github(describe_suite(records), file=suite.path.name), nl=False)
    if given["as_json"]:
        try:
            click.echo(render_report(records, "json", **known), nl=False)
        except OSError as error:
            from trialwise.cli.standard_streams import mute

            mute(1)
            troubles.append(f"standard output takes no JSON: {error.strerror}")
        return troubles
    if given["transparent"]:
        say(render_report(records, "transparent"))
    if ended.not_kept:
        say(f"NOT KEPT: the record of {records[-1].run_id} could not be written")
    say(render_summary(records, output_of(), written or [*locations.values()]))
    return troubles
