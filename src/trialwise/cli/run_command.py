"""`trialwise run`: the main job."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.run_reports import EndedRuns, report_runs
from trialwise.cli.selecting import (
    Chosen,
    choose_sized,
    criterion_option,
    json_option,
    load_all,
    output_option,
    prepare_chosen,
    selection,
    size_options,
)

if TYPE_CHECKING:
    from trialwise.cli.watched_run import WatchedRun
    from trialwise.model.run import RunRecord
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite


@click.command("run")
@selection
@criterion_option
@size_options
@click.option("--fail-fast", is_flag=True, help="Start no contract after one that does not PASS.")
@click.option("--input", "inputs", multiple=True, help="Only this input; may be repeated.")
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
@click.option("--record", type=click.Path(path_type=Path), help="Write every reply to a file.")
@click.option("--replay", type=click.Path(path_type=Path), help="Take the replies from a file.")
@click.option(
    "--watch",
    is_flag=True,
    help="Run again when a file of the project changes; ask only for replies that may differ.",
)
@click.option("--watched", type=click.Path(path_type=Path), hidden=True)  # a run of a watch
@output_option
@click.option("--html", type=click.Path(path_type=Path), hidden=True)  # -o says the same
@click.option("--junit", type=click.Path(path_type=Path), hidden=True)
@click.option("--summary", type=click.Path(path_type=Path), help="Append Markdown to this file.")
@click.option("--annotations", type=click.Choice(["github"]), help="Annotate a GitHub workflow.")
@json_option
@click.option("--transparent", is_flag=True, help="Also print the full statistical analysis.")
@click.option("--fail-on-inconclusive", is_flag=True, help="Exit 1 if the suite is INCONCLUSIVE.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Also print the plan: each rule in counts, with its chances.",
)
def command(
    names: tuple[str, ...], files: tuple[Path, ...], tags: tuple[str, ...], **given: Any
) -> int:
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
    if given["record"] is not None and given["replay"] is not None:
        raise click.UsageError("--record and --replay exclude each other")
    if given["watch"]:
        return _watch(files, given)
    if given["watched"] is None:
        return _run_suites(names, files, tags, given)
    from trialwise.cli.watched_run import WatchedRun

    watched = WatchedRun(given["watched"])
    with watched.keep_notes():
        return _run_suites(names, files, tags, given, watched)


def _watch(files: Sequence[Path], given: dict[str, Any]) -> int:
    import sys

    from trialwise.cli.watching import watch_runs
    from trialwise.suite import find_suite

    for name in ("resume", "record", "replay"):
        if given[name] is not None:
            raise click.UsageError(f"--watch records and replays by itself: leave out --{name}")
    suites = [path.absolute() for path in files or [find_suite(Path.cwd())]]
    return watch_runs([one for one in sys.argv[1:] if one != "--watch"], suites)


def _run_suites(
    names: tuple[str, ...],
    files: tuple[Path, ...],
    tags: tuple[str, ...],
    given: dict[str, Any],
    watched: WatchedRun | None = None,
) -> int:
    suites = load_all(files, without_services=given["replay"] is not None)
    chosen = _share_limits(choose_sized(suites, names, tags, given), given["jobs"])
    if watched is not None:
        watched.know_suites(suites)
        chosen = watched.choose_seeds(chosen)
    groups = _prepare(chosen, given)
    if watched is not None:
        groups = [
            one._replace(prepared=watched.reuse_replies(one.suite, one.prepared)) for one in groups
        ]
    _announce(groups, quiet=given["quiet"], verbose=given["verbose"])
    if given["jobs"] > 1:
        ended = _run_side_by_side(groups, given)
    else:
        ended = _run(groups, fail_fast=given["fail_fast"])
    code = _exit_code(ended, strict=given["fail_on_inconclusive"])
    troubles = report_runs([group.suite for group in groups], ended, given, code)
    if code == ExitCode.PASS:
        troubles += _find_lost_records(ended)
    for trouble in troubles:
        click.echo(f"trialwise: {trouble}", err=True)
    if watched is not None and (reuse := watched.describe_reuse()):
        click.echo(reuse, err=True)
    # Whoever waits for the report must not take its absence for a success.
    return ExitCode.ERROR if troubles and code == ExitCode.PASS else code


class _Group(NamedTuple):
    """The chosen contracts of one suite, ready to run."""

    suite: Suite
    space: Workspace
    prepared: list[PreparedRun]


def _prepare(chosen: Sequence[Chosen], given: dict[str, Any]) -> list[_Group]:
    """Plan everything before the first trial, suite by suite."""
    from trialwise.runtime.workspace import Workspace

    resume = given["resume"]
    groups = []
    for suite in {id(one.suite): one.suite for one in chosen}.values():
        space = Workspace.open(
            suite.runs_folder,
            suite.baselines_folder,
            resume=False if resume is None else resume or True,
            # Several at a time share a display.
            progress=not given["quiet"] and given["jobs"] == 1,
            redact=suite.redaction,
        )
        prepared = prepare_chosen(suite, chosen, space)
        groups.append(_Group(suite, space, _with_recording(prepared, given)))
    return groups


def _find_lost_records(ended: EndedRuns) -> list[str]:
    """Return what is wrong with the records of passed runs, which a service may have removed."""
    from trialwise.stores.runs import RunStore

    lost = [
        record.run_id
        for record, suite in zip(ended.records, ended.suites, strict=True)
        if not RunStore(suite.runs_folder).holds_decision(record.run_id, record.verdict.decision)
    ]
    return [
        f"the record of {name} is no longer on disk, so its verdict does not count" for name in lost
    ]


def _announce(groups: Sequence[_Group], *, quiet: bool, verbose: bool) -> None:
    from trialwise.pages.run_rules import render_rules, render_size, render_together
    from trialwise.runtime.earlier_runs import expense_of, list_notes

    planned = [(group.suite, one) for group in groups for one in group.prepared]
    if not quiet:
        for suite, one in planned:
            if one.finished is None:
                render = render_rules if verbose else render_size
                text = render(one.plan, expense=expense_of(one.plan, suite.runs_folder))
                click.echo(text, err=True)
        if verbose and (chances := render_together([one.plan for _, one in planned])):
            click.echo(chances, err=True)
    for suite, one in planned:
        for note in list_notes(one.plan, suite.runs_folder):
            click.echo(f"trialwise: {one.plan.contract}: {note}", err=True)


def _run(groups: Sequence[_Group], *, fail_fast: bool) -> EndedRuns:
    """Run one contract after another; Ctrl-C ends the suite and keeps what there is."""
    from trialwise.errors import RunInterrupted
    from trialwise.model.verdict import Decision
    from trialwise.runtime.result import Result
    from trialwise.runtime.running import run_prepared
    from trialwise.stores.runs import RecordNotKept

    # What is loaded by now stays as long as the process, and need not be looked through for
    # garbage when it ends: that would be a twentieth of a short run.
    gc.freeze()
    ended = EndedRuns([], [])
    waiting = [(group, one) for group in groups for one in group.prepared]
    while waiting:
        group, one = waiting.pop(0)
        if one.finished is not None:
            click.echo(f"{one.plan.contract}: finished before, kept", err=True)
        elif one.stored is not None and (torn := one.stored.count_torn_bytes()):
            click.echo(
                f"{one.plan.contract}: the last line of the journal was cut short; "
                f"its {torn} bytes are dropped and that trial is asked again",
                err=True,
            )
        ended.suites.append(group.suite)
        try:
            ended.records.append(run_prepared(one, group.space).record)
        except RunInterrupted as stopped:
            if isinstance(stopped.result, Result):
                ended.records.append(stopped.result.record)
            _say_interrupted(ended.records, is_alone=len(ended.records) == 1 and not waiting)
            return ended._replace(interrupted=True)
        except RecordNotKept as error:
            # The next run would not be kept either.
            if error.record is not None:
                ended.records.append(error.record)
                ended = ended._replace(lost=(error.record.run_id,))
            return ended._replace(not_kept=(str(error),))
        if fail_fast and waiting and ended.records[-1].verdict.decision is not Decision.PASS:
            _say_not_run([each.plan.contract for _, each in waiting])
            break
    return ended


def _share_limits(chosen: list[Chosen], jobs: int) -> list[Chosen]:
    """Return the contracts with their part of the limits that hold for all that run at once."""
    share = min(jobs, len(chosen))
    if share == 1:
        return chosen
    return [
        Chosen(suite, contract, options.share_pace(share)) for suite, contract, options in chosen
    ]


def _run_side_by_side(groups: Sequence[_Group], given: dict[str, Any]) -> EndedRuns:
    """Run several contracts at a time; Ctrl-C ends all of them and keeps what there is."""
    import sys

    from trialwise.renderers.progress import SharedProgress
    from trialwise.runtime.side_by_side import run_side_by_side

    gc.freeze()
    display = None if given["quiet"] else SharedProgress(sys.stderr)
    several = [
        (one, group.space if display is None else group.space.listen(display.follow()))
        for group in groups
        for one in group.prepared
    ]
    suites = [group.suite for group in groups for _ in group.prepared]
    found = run_side_by_side(several, given["jobs"], fail_fast=given["fail_fast"])
    is_interrupted = any(one.was_interrupted for one in found)
    kept = [(one.record, suite) for one, suite in zip(found, suites, strict=True) if one.record]
    left = [
        one.plan.contract
        for (one, _), each in zip(several, found, strict=True)
        if not each.was_started
    ]
    if is_interrupted:
        _say_interrupted([record for record, _ in kept], is_alone=False)
    elif left:
        _say_not_run(left)
    return EndedRuns(
        records=[record for record, _ in kept],
        suites=[suite for _, suite in kept],
        interrupted=is_interrupted,
        not_kept=tuple(one.not_kept for one in found if one.not_kept),
        lost=tuple(one.record.run_id for one in found if one.not_kept and one.record),
    )


def _say_not_run(contracts: Sequence[str]) -> None:
    click.echo(f"trialwise: --fail-fast: not run: {', '.join(contracts)}", err=True)


def _say_interrupted(records: Sequence[RunRecord], *, is_alone: bool) -> None:
    """Say what is kept and which command continues."""
    trials = sum(len(record.trials) for record in records)
    run = f" {records[0].run_id}" if is_alone and records else ""
    click.echo(
        f"\ninterrupted: {trials} trials are kept; `trialwise run --resume{run}` continues",
        err=True,
    )


def _with_recording(prepared: list[PreparedRun], given: dict[str, Any]) -> list[PreparedRun]:
    if given["replay"] is None and given["record"] is None:
        return prepared
    from trialwise.runtime.running import record_replies, replay_replies

    if given["replay"] is not None:
        return replay_replies(prepared, given["replay"])
    return record_replies(prepared, given["record"])


def _exit_code(ended: EndedRuns, *, strict: bool) -> int:
    from trialwise.documents.results import Status
    from trialwise.model.evidence import StopReason
    from trialwise.pages.suite_totals import pick_exit_code, pick_suite_status

    records = ended.records
    if ended.not_kept:
        return ExitCode.ERROR
    if ended.interrupted or not records:
        return ExitCode.INTERRUPTED
    verdicts = [record.verdict for record in records]
    if pick_suite_status(verdicts) is not Status.INCONCLUSIVE:
        return pick_exit_code(verdicts)
    if any(one.stop is StopReason.SERVICE for one in verdicts):
        return ExitCode.ERROR
    return ExitCode.FAIL if strict else pick_exit_code(verdicts)
