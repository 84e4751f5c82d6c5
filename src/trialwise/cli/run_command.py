"""`trialwise run`: the main job."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import (
    FILE,
    GroupedCommand,
    criterion_option,
    input_option,
    json_option,
    output_option,
    quiet_option,
    selection,
    size_options,
)
from trialwise.cli.run_reports import EndedRuns, WantedReports, report_runs

if TYPE_CHECKING:
    from trialwise.cli.watched_run import WatchedRun
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.running import EndedRun
    from trialwise.runtime.selecting import Chosen, Selection
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite


@click.command(
    "run",
    cls=GroupedCommand,
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
@selection
@criterion_option
@size_options
@click.option("--fail-fast", is_flag=True, help="Start no contract after one that does not PASS.")
@input_option
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
@click.option("--record", type=FILE, help="Write every reply to a file.")
@click.option("--replay", type=FILE, help="Take the replies from a file.")
@click.option(
    "--watch",
    is_flag=True,
    help="Run again when a file of the project changes; ask only for replies that may differ.",
)
@click.option("--watched", type=click.Path(path_type=Path), hidden=True)  # a run of a watch
@output_option
@click.option("--html", type=FILE, hidden=True)  # -o says the same
@click.option("--junit", type=FILE, hidden=True)
@click.option("--summary", type=FILE, help="Append Markdown to this file.")
@click.option("--annotations", type=click.Choice(["github"]), help="Annotate a GitHub workflow.")
@json_option
@click.option("--transparent", is_flag=True, help="Also print the full statistical analysis.")
@click.option("--fail-on-inconclusive", is_flag=True, help="Exit 1 if the suite is INCONCLUSIVE.")
@quiet_option
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
    from trialwise.cli.watched_run import WatchedRun

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
    from trialwise.runtime.selecting import prepare_chosen
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
