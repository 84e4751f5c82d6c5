"""`trialwise run`: the main job, and the reports at its end."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import click

from trialwise.cli import options
from trialwise.cli.options import opt
from trialwise.cli.process import ExitCode, mute, output_of, own_output, say, say_json
from trialwise.documents.printable import near
from trialwise.documents.results import Status
from trialwise.model import RunRecord, StopReason
from trialwise.pages import run_rules, suite_totals
from trialwise.pages.results import describe_suite
from trialwise.reports.formats import ReportNotWritten, ReportSource, render_report, write_report
from trialwise.runtime import earlier_runs, running
from trialwise.runtime.preparing import PreparedRun
from trialwise.runtime.result import render_summary
from trialwise.runtime.selecting import Chosen, Selection, name_suites, prepare_chosen
from trialwise.runtime.workspace import Workspace
from trialwise.stores.runs import RunStore
from trialwise.suite import Suite, find_suite

if TYPE_CHECKING:
    from trialwise.cli.watching import WatchedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    """How the contracts are run beside their own options, and what is told at the end.

    Args:
        fail_fast: Start no contract after one that does not PASS.
        jobs: Run N contracts at a time. They share the concurrency and the rate of each.
        resume: Resume runs that were killed, interrupted or stopped by a budget.
        record: Write every reply to a file.
        replay: Take the replies from a file.
        watch: Run again when a file of the project changes; ask only for replies that may differ.
        watched: The folder of the watch that this run belongs to.
        html: Write the report of `-o`.
        junit: Write the report of `-o`.
        summary: Append Markdown to this file.
        annotations: Annotate a GitHub workflow.
        transparent: Also print the full statistical analysis.
        fail_on_inconclusive: Exit 1 if the suite is INCONCLUSIVE.
        verbose: Also print the plan: each rule in counts, with its chances.
    """

    fail_fast: bool = False
    jobs: Annotated[int, opt("-j", "--jobs", type=click.IntRange(1), metavar="N")] = 1
    resume: Annotated[str | None, opt(is_flag=False, flag_value="", metavar="[RUN]")] = None
    """The run to resume, or "" for what is unfinished."""
    record: Path | None = None
    replay: Path | None = None
    watch: bool = False
    watched: Annotated[Path | None, opt(type=click.Path(path_type=Path), hidden=True)] = None
    outputs: tuple[Path, ...]
    html: Annotated[Path | None, opt(hidden=True)] = None
    junit: Annotated[Path | None, opt(hidden=True)] = None
    summary: Path | None = None
    annotations: Literal["github"] | None = None
    as_json: bool
    transparent: bool = False
    fail_on_inconclusive: bool = False
    quiet: bool
    verbose: Annotated[bool, opt("-v", "--verbose")] = False


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
@options.input_option
@options.declared(_How)
def command(selected: Selection, how: _How) -> int:
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
    if how.record is not None and how.replay is not None:
        raise click.UsageError("--record and --replay exclude each other")
    if how.watch:
        return _watch(selected, how)
    if how.watched is None:
        return _run_suites(selected, how)
    from trialwise.cli.watching import WatchedRun

    run = WatchedRun(how.watched)
    with run.keep_notes():
        return _run_suites(selected, how, run)


def _watch(selected: Selection, how: _How) -> int:
    from trialwise.cli.watching import watch_runs

    for name in ("resume", "record", "replay"):
        if getattr(how, name) is not None:
            raise click.UsageError(f"--watch records and replays by itself: leave out --{name}")
    files = [path.absolute() for path in selected.files or [find_suite(Path.cwd())]]
    return watch_runs([one for one in sys.argv[1:] if one != "--watch"], files)


class _Planned(NamedTuple):
    """A contract that is ready to run, the suite that it is from, and where its run is kept."""

    suite: Suite
    space: Workspace
    run: PreparedRun


#: The runs that have a record, each with the suite that it is from.
_Records = list[tuple[Suite, RunRecord]]


def _run_suites(selected: Selection, how: _How, watched: WatchedRun | None = None) -> int:
    suites = selected.load(without_services=how.replay is not None)
    chosen = selected.choose_sized(suites)
    if (share := min(how.jobs, len(chosen))) > 1:
        # The limits of a suite hold for all that run at once.
        chosen = [one._replace(options=one.options.share_pace(share)) for one in chosen]
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
    kept = [
        (one.suite, each.record) for one, each in zip(planned, ended, strict=True) if each.record
    ]
    troubles = [f"NOT KEPT: {one.not_kept}" for one in ended if one.not_kept]
    troubles += [f"NOT DECIDED: {one.not_decided}" for one in ended if one.not_decided]
    if kept:
        lost = [one.record.run_id for one in ended if one.not_kept and one.record]
        troubles += _report(kept, lost, how, code)
    # Only a PASS is believed without looking; any other code makes somebody look at the run.
    if code == ExitCode.PASS:
        troubles += _find_lost_records(kept)
    for trouble in troubles:
        click.echo(f"trialwise: {trouble}", err=True)
    if watched is not None and (reuse := watched.describe_reuse()):
        click.echo(reuse, err=True)
    # A caller that waits for the report must not take its absence for a success.
    return ExitCode.ERROR if troubles and code == ExitCode.PASS else code


def _prepare(chosen: Sequence[Chosen], how: _How, watched: WatchedRun | None) -> list[_Planned]:
    """Plan everything before the first trial, suite by suite."""
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
            prepared = running.replay_replies(prepared, how.replay)
        elif how.record is not None:
            prepared = running.record_replies(prepared, how.record)
        if watched is not None:
            prepared = watched.reuse_replies(suite, prepared)
        planned += [_Planned(suite, space, one) for one in prepared]
    return planned


def _announce(planned: Sequence[_Planned], how: _How) -> None:
    """Say what is going to run, and what an earlier run has to do with it."""
    render = run_rules.render_rules if how.verbose else run_rules.render_size
    said = []
    for suite, _, one in planned:
        if one.finished is None:
            expense = earlier_runs.expense_of(one.plan, suite.runs_folder)
            said.append(render(one.plan, expense=expense))
    if how.verbose:
        said.append(run_rules.render_together([one.run.plan for one in planned]))
    for text in filter(None, () if how.quiet else said):
        click.echo(text, err=True)
    for suite, _, one in planned:
        name = one.plan.contract
        for note in earlier_runs.list_notes(one.plan, suite.runs_folder):
            click.echo(f"trialwise: {name}: {note}", err=True)
        if one.finished is not None:
            click.echo(f"{name}: finished before, kept", err=True)
        elif one.stored is not None and (torn := one.stored.count_torn_bytes()):
            click.echo(
                f"{name}: the last line of the journal was cut short; "
                f"its {torn} bytes are dropped and that trial is asked again",
                err=True,
            )


def _run(planned: Sequence[_Planned], how: _How) -> list[running.EndedRun]:
    """Run the contracts; Ctrl-C ends all of them and keeps what there is."""
    several = [(one.run, one.space) for one in planned]
    if how.jobs == 1:
        found = running.run_in_turn(several, fail_fast=how.fail_fast)
    else:
        from trialwise.renderers.progress import share_progress

        if not how.quiet:
            follow = share_progress(sys.stderr)
            several = [(run, space.listen(follow())) for run, space in several]
        found = running.run_side_by_side(several, how.jobs, fail_fast=how.fail_fast)
    _say_unfinished(planned, found)
    return found


def _say_unfinished(planned: Sequence[_Planned], found: Sequence[running.EndedRun]) -> None:
    """Say what is kept of interrupted runs and which command continues, or what was not run."""
    pairs = zip(planned, found, strict=True)
    left = [one.run.plan.contract for one, each in pairs if not each.was_started]
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


def _find_lost_records(kept: _Records) -> list[str]:
    """Return what is wrong with the records of passed runs, which a service may have removed."""
    return [
        f"the record of {record.run_id} is no longer on disk, so its verdict does not count"
        for suite, record in kept
        if not RunStore(suite.runs_folder).holds_decision(record.run_id, record.verdict.decision)
    ]


def _pick_code(ended: Sequence[running.EndedRun], *, strict: bool) -> int:
    verdicts = [one.record.verdict for one in ended if one.record is not None]
    if any(one.not_kept or one.not_decided for one in ended):
        return ExitCode.ERROR
    if any(one.was_interrupted for one in ended) or not verdicts:
        return ExitCode.INTERRUPTED
    code = suite_totals.pick_exit_code(verdicts)
    # A FAIL stands, whatever else was not decided.
    if suite_totals.pick_suite_status(verdicts) is not Status.INCONCLUSIVE:
        return code
    # Nothing was measured of a service that was never reached: a retry of the build is right.
    if any(one.stop is StopReason.SERVICE for one in verdicts):
        return ExitCode.ERROR
    return ExitCode.FAIL if strict else code


# What `trialwise run` writes at its end: reports in files, and the result on standard output.


def _report(kept: _Records, lost: Sequence[str], how: _How, code: int) -> list[str]:
    """Say the verdict, then write the reports; return what could not be written, in words.

    The verdict comes first: no report that cannot be made may hide it.
    """
    suites, records = _list_suites(kept), [record for _, record in kept]
    folders = {
        record.run_id: near(suite.runs_folder / "runs" / record.run_id) for suite, record in kept
    }
    source = ReportSource(
        records=records,
        name=name_suites(suites),
        file=near(suites[0].path),
        files={record.run_id: near(suite.path) for suite, record in kept},
        exit_code=code,
        locations=folders,
    )
    reports = [*_list_reports(kept, how, source)]
    troubles = []
    if how.as_json:
        troubles += _print_json(render_report(source, "json"))
    else:
        if how.transparent:
            say(render_report(source, "transparent"))
        for run_id in lost:
            say(f"NOT KEPT: the record of {run_id} could not be written")
        # Whoever asks for reports looks there.
        shown = () if reports else [*folders.values()]
        say(render_summary(records, output_of(), folders=shown, files=source.files))
    for write in reports:
        try:
            path = write()
        except ReportNotWritten as error:
            troubles.append(str(error))
        else:
            if not how.as_json:
                say(f"report: {near(path)}")
    if how.summary is not None:
        troubles += _append_markdown(how.summary, source)
    if how.annotations == "github":
        from trialwise.renderers.ci_formats import render_github

        for suite in _list_suites(kept):
            mine = [record for owner, record in kept if owner is suite]
            if text := render_github(describe_suite(mine), file=near(suite.path)):
                say(text)
    return troubles


def _list_suites(kept: _Records) -> list[Suite]:
    return [*{id(suite): suite for suite, _ in kept}.values()]


def _list_reports(kept: _Records, how: _How, whole: ReportSource) -> Iterator[Callable[[], Path]]:
    """A suite's own reports are about its runs; those of the command line are about all."""
    for suite in _list_suites(kept):
        mine = [record for owner, record in kept if owner is suite]
        own = replace(whole, records=mine, name=name_suites([suite]), file=near(suite.path))
        for one in suite.reports:
            yield partial(write_report, one.path, own, format_=one.format)
    asked = [*((path, "") for path in how.outputs), (how.html, "html"), (how.junit, "junit")]
    for given, kind in asked:
        if given is not None:
            yield partial(write_report, given, whole, format_=kind)


def _append_markdown(path: Path, source: ReportSource) -> list[str]:
    try:
        text = render_report(source, "markdown")
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    except ReportNotWritten as error:
        return [str(error)]
    except OSError as error:
        return [str(ReportNotWritten(path, error.strerror or str(error)))]
    return []


def _print_json(text: str) -> list[str]:
    try:
        say_json(text)
    except OSError as error:
        mute(own_output().fileno())
        return [f"standard output takes no JSON: {error.strerror}"]
    return []
