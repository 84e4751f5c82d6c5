"""`trialwise run`: the main job, and the reports at its end."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trialwise.cli import options
from trialwise.cli.process import ExitCode, mute, output_of, own_output, say, say_json
from trialwise.documents.printable import near
from trialwise.reports.formats import ReportNotWritten, render_report, write_report
from trialwise.runtime.selecting import Chosen, Selection, name_suites, prepare_chosen

if TYPE_CHECKING:
    from trialwise.cli.watching import WatchedRun
    from trialwise.model.run import RunRecord
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.running import EndedRun
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite


@click.command(
    "run",
    cls=options.GroupedCommand,
    groups={
        "Choose": "files expression criteria inputs",
        "Size": "option_trials option_max_trials",
        "Decide": "option_intent settings",
        "Run": "option_concurrency watch",
        "Limits": "option_max_usd option_max_seconds",
        "Continue": "resume fail_fast",
        "Output": "outputs as_json quiet verbose",
    },
)
@options.selection
@options.criterion_option
@options.size_options
@click.option("--fail-fast", is_flag=True, help="Start no contract after one that does not PASS.")
@options.input_option
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Run N contracts at a time. They share the concurrency and the rate of each.",
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[RUN]",
    help="Resume runs that were killed, interrupted or stopped by a budget.",
)
@click.option("--record", type=options.FILE, help="Write every reply to a file.")
@click.option("--replay", type=options.FILE, help="Take the replies from a file.")
@click.option(
    "--watch",
    is_flag=True,
    help="Run again when a file of the project changes; ask only for replies that may differ.",
)
@click.option("--watched", type=click.Path(path_type=Path), hidden=True)  # a run of a watch
@options.output_option
@click.option("--html", type=options.FILE, hidden=True)  # -o says the same
@click.option("--junit", type=options.FILE, hidden=True)
@click.option("--summary", type=options.FILE, help="Append Markdown to this file.")
@click.option("--annotations", type=click.Choice(["github"]), help="Annotate a GitHub workflow.")
@options.json_option
@click.option("--transparent", is_flag=True, help="Also print the full statistical analysis.")
@click.option("--fail-on-inconclusive", is_flag=True, help="Exit 1 if the suite is INCONCLUSIVE.")
@options.quiet_option
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print the plan: each rule in counts, with its chances.",
)
def command(selected: Selection, *, watch: bool, watched: Path | None, **given: Any) -> int:
    """Run the contracts of a suite and report PASS, FAIL or INCONCLUSIVE.

    The suite is trialwise.yaml in this folder or above. Everything is checked and planned before
    the first trial. A design that cannot support its claim is refused with exit code 2.

    \b
    Examples:
      trialwise run
      trialwise run support-agent --max-usd 2 -o report.html -o results.junit.xml
      trialwise run -s search.yaml -s support.yaml --fail-fast
      trialwise run --watch
      trialwise run --resume
    """
    reports = WantedReports(**{name: given.pop(name) for name in WantedReports._fields})
    how = _How(**given)
    if how.record is not None and how.replay is not None:
        raise click.UsageError("--record and --replay exclude each other")
    if watch:
        return _watch(selected, how)
    if watched is None:
        return _run_suites(selected, how, reports)
    from trialwise.cli.watching import WatchedRun

    run = WatchedRun(watched)
    with run.keep_notes():
        return _run_suites(selected, how, reports, run)


class _How(NamedTuple):
    """How the contracts are run, beside their own options."""

    jobs: int
    fail_fast: bool
    resume: str | None
    """The run to resume, or "" for what is unfinished."""
    record: Path | None
    replay: Path | None
    fail_on_inconclusive: bool
    quiet: bool
    verbose: bool


def _watch(selected: Selection, how: _How) -> int:
    from trialwise.cli.watching import watch_runs
    from trialwise.suite import find_suite

    for name in ("resume", "record", "replay"):
        if getattr(how, name) is not None:
            raise click.UsageError(f"--watch records and replays by itself: leave out --{name}")
    suites = [path.absolute() for path in selected.files or [find_suite(Path.cwd())]]
    return watch_runs([one for one in sys.argv[1:] if one != "--watch"], suites)


class _Planned(NamedTuple):
    """A contract that is ready to run, the suite that it is from, and where its run is kept."""

    suite: Suite
    space: Workspace
    run: PreparedRun


def _run_suites(
    selected: Selection, how: _How, reports: WantedReports, watched: WatchedRun | None = None
) -> int:
    suites = selected.load(without_services=how.replay is not None)
    chosen = _share_limits(selected.choose_sized(suites), how.jobs)
    if watched is not None:
        watched.know_suites(suites)
        chosen = watched.choose_seeds(chosen)
    planned = _prepare(chosen, how, watched)
    _announce(planned, how)
    # What is loaded by now stays as long as the process, and need not be looked through for
    # garbage when it ends: that would be a twentieth of a short run.
    gc.freeze()
    ended = _run(planned, how)
    code = _pick_code(ended, strict=how.fail_on_inconclusive)
    troubles = report_runs(ended, reports, code)
    if code == ExitCode.PASS:
        troubles += _find_lost_records(ended)
    for trouble in troubles:
        click.echo(f"trialwise: {trouble}", err=True)
    if watched is not None and (reuse := watched.describe_reuse()):
        click.echo(reuse, err=True)
    # A caller that waits for the report must not take its absence for a success.
    return ExitCode.ERROR if troubles and code == ExitCode.PASS else code


def _share_limits(chosen: list[Chosen], jobs: int) -> list[Chosen]:
    """Return the contracts with their part of the limits that hold for all that run at once."""
    share = min(jobs, len(chosen))
    if share == 1:
        return chosen
    return [one._replace(options=one.options.share_pace(share)) for one in chosen]


def _prepare(chosen: Sequence[Chosen], how: _How, watched: WatchedRun | None) -> list[_Planned]:
    """Plan everything before the first trial, suite by suite."""
    from trialwise.runtime.running import record_replies, replay_replies
    from trialwise.runtime.workspace import Workspace

    planned = []
    for suite in {id(one.suite): one.suite for one in chosen}.values():
        space = Workspace.open(
            suite.runs_folder,
            suite.baselines_folder,
            resume=False if how.resume is None else how.resume or True,
            # Several at a time share a display.
            progress=not how.quiet and how.jobs == 1,
            redact=suite.redaction,
        )
        prepared = prepare_chosen(suite, chosen, space)
        if how.replay is not None:
            prepared = replay_replies(prepared, how.replay)
        elif how.record is not None:
            prepared = record_replies(prepared, how.record)
        if watched is not None:
            prepared = watched.reuse_replies(suite, prepared)
        planned += [_Planned(suite, space, one) for one in prepared]
    return planned


def _announce(planned: Sequence[_Planned], how: _How) -> None:
    """Say what is going to run, and what an earlier run has to do with it."""
    from trialwise.pages.run_rules import render_rules, render_size, render_together
    from trialwise.runtime.earlier_runs import expense_of, list_notes

    render = render_rules if how.verbose else render_size
    for suite, _, one in planned:
        if one.finished is None and not how.quiet:
            text = render(one.plan, expense=expense_of(one.plan, suite.runs_folder))
            click.echo(text, err=True)
    if how.verbose and not how.quiet:
        chances = render_together([one.run.plan for one in planned])
        if chances:
            click.echo(chances, err=True)
    for suite, _, one in planned:
        name = one.plan.contract
        for note in list_notes(one.plan, suite.runs_folder):
            click.echo(f"trialwise: {name}: {note}", err=True)
        if one.finished is not None:
            click.echo(f"{name}: finished before, kept", err=True)
        elif one.stored is not None and (torn := one.stored.count_torn_bytes()):
            click.echo(
                f"{name}: the last line of the journal was cut short; "
                f"its {torn} bytes are dropped and that trial is asked again",
                err=True,
            )


def _run(planned: Sequence[_Planned], how: _How) -> EndedRuns:
    """Run the contracts; Ctrl-C ends all of them and keeps what there is."""
    from trialwise.runtime.running import run_in_turn, run_side_by_side

    if how.jobs == 1:
        several = [(one.run, one.space) for one in planned]
        found = run_in_turn(several, fail_fast=how.fail_fast)
    else:
        from trialwise.renderers.progress import share_progress

        follow = None if how.quiet else share_progress(sys.stderr)
        several = [
            (one.run, one.space if follow is None else one.space.listen(follow()))
            for one in planned
        ]
        found = run_side_by_side(several, how.jobs, fail_fast=how.fail_fast)
    _say_unfinished(planned, found)
    kept = [(one.suite, each.record) for one, each in zip(planned, found, strict=True)]
    return EndedRuns(
        pairs=[(suite, record) for suite, record in kept if record is not None],
        interrupted=any(one.was_interrupted for one in found),
        not_kept=tuple(one.not_kept for one in found if one.not_kept),
        not_decided=tuple(one.not_decided for one in found if one.not_decided),
        lost=tuple(one.record.run_id for one in found if one.not_kept and one.record),
    )


def _say_unfinished(planned: Sequence[_Planned], found: Sequence[EndedRun]) -> None:
    """Say what is kept of interrupted runs and which command continues, or what was not run."""
    left = [
        one.run.plan.contract
        for one, each in zip(planned, found, strict=True)
        if not each.was_started
    ]
    if any(one.was_interrupted for one in found):
        records = [one.record for one in found if one.record is not None]
        trials = sum(len(one.trials) for one in records)
        run = f" {records[0].run_id}" if len(planned) == 1 and records else ""
        click.echo(
            f"\ninterrupted: {trials} trials are kept; `trialwise run --resume{run}` continues",
            err=True,
        )
    elif left and not any(one.not_kept for one in found):
        click.echo(f"trialwise: --fail-fast: not run: {', '.join(left)}", err=True)


def _find_lost_records(ended: EndedRuns) -> list[str]:
    """Return what is wrong with the records of passed runs, which a service may have removed."""
    from trialwise.stores.runs import RunStore

    return [
        f"the record of {record.run_id} is no longer on disk, so its verdict does not count"
        for suite, record in ended.pairs
        if not RunStore(suite.runs_folder).holds_decision(record.run_id, record.verdict.decision)
    ]


def _pick_code(ended: EndedRuns, *, strict: bool) -> int:
    from trialwise.documents.results import Status
    from trialwise.model.evidence import StopReason
    from trialwise.pages.suite_totals import pick_exit_code, pick_suite_status

    if ended.not_kept or ended.not_decided:
        return ExitCode.ERROR
    if ended.interrupted or not ended.pairs:
        return ExitCode.INTERRUPTED
    verdicts = [record.verdict for record in ended.records]
    if pick_suite_status(verdicts) is not Status.INCONCLUSIVE:
        return pick_exit_code(verdicts)
    if any(one.stop is StopReason.SERVICE for one in verdicts):
        return ExitCode.ERROR
    return ExitCode.FAIL if strict else pick_exit_code(verdicts)


# What `trialwise run` writes at its end: reports in files, and the result on standard output.


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
    from trialwise.pages.results import describe_suite
    from trialwise.renderers.ci_formats import render_github

    for suite, records in ended.by_suite():
        if text := render_github(describe_suite(records), file=near(suite.path)):
            say(text)


def _print_json(text: str) -> list[str]:
    try:
        say_json(text)
    except OSError as error:
        mute(own_output().fileno())
        return [f"standard output takes no JSON: {error.strerror}"]
    return []
