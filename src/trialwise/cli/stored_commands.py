"""`trialwise show`, `runs`, `report` and `rerun`: what was run before, looked at again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import click
from click.shell_completion import CompletionItem

from trialwise.cli import options
from trialwise.cli.options import F, opt, store_option
from trialwise.cli.process import ExitCode, output_of, say, say_json, say_page
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import near
from trialwise.errors import InvalidArgument, RunNotFound
from trialwise.model.run import RunRecord
from trialwise.pages import stored_runs
from trialwise.reports import formats
from trialwise.reports.formats import ReportSource, write_report
from trialwise.runtime.chosen_runs import CheckedRuns, RunChooser, count_measured, find_places
from trialwise.runtime.workspace import read_run
from trialwise.stores.runs import StoredRun


def _complete(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem | str]:
    return [name for name in RunChooser().list_names() if name.startswith(incomplete)]


def _takes_runs(function: F) -> F:
    """Add the arguments that choose stored runs: names, whether all are meant, and a chooser."""

    @store_option
    @click.option("--all", "every", is_flag=True, help="Use the latest run of every contract.")
    @click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=_complete)
    @wraps(function)
    def call(*, names: tuple[str, ...], every: bool, store: Path | None, **given: Any) -> Any:
        if names and every:
            raise click.UsageError("--all names every contract already: leave out RUN")
        return function(names=names, every=every, chooser=RunChooser(store), **given)

    return call  # type: ignore[return-value]


# --- show -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is shown of stored runs.

    Args:
        transparent: Print the full statistical analysis instead.
        failures: Also print every failed trial with its evidence.
        trials: Also print the first N trials.
        verifies: Decide the run again and compare.
        ascii_only: Use no character beyond ASCII.
    """

    transparent: bool = False
    failures: bool = False
    trials: Annotated[int | None, opt(type=click.IntRange(1), metavar="N")] = None
    verifies: Annotated[bool, opt("--verify")] = False
    as_json: bool
    ascii_only: Annotated[bool, opt("--ascii")] = False


@click.command("show")
@_takes_runs
@options.declared(_Shown)
def show_command(names: tuple[str, ...], every: bool, chooser: RunChooser, how: _Shown) -> int:
    """Show stored runs again; all that were run last where none is named.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant. The
    name of a comparison shows what it concluded; its arms are runs of their own.
    Nothing is run and nothing is written. --failures with --trials shows the first N failures.

    --verify decides the run again from its plan and its trials and compares every field; of a
    comparison it verifies every arm as well.

    Exits 0 where the run could be shown, whatever its verdict was: that was the exit code of
    `trialwise run`. Exits 4 where --verify finds the record altered or damaged.

    \b
    Examples:
      trialwise show
      trialwise show support-agent --failures
      trialwise show --transparent --ascii > analysis.txt
      trialwise show --all --verify
    """
    if how.as_json and how.transparent:
        raise click.UsageError("--transparent is text; --json holds the same figures")
    compared = () if every else _find_comparisons(names, chooser, how)
    if compared:
        return _show_comparisons(compared, chooser, how)
    stored = chooser.choose(names, every=every)
    if names:
        stored = _show_measured(stored, as_json=how.as_json)
        if not stored:
            return ExitCode.PASS
    if how.verifies:
        return _verify(stored, how)
    _show([read_run(one) for one in stored], stored, how)
    return ExitCode.PASS


def _find_comparisons(names: Sequence[str], chooser: RunChooser, how: _Shown) -> Sequence[str]:
    """Return the comparisons that somebody means: by name, or the one that was made last."""
    if names:
        return names if chooser.are_comparisons(names) else ()
    if how.failures or how.trials or how.transparent or how.verifies:
        return ()  # of the runs
    try:
        last = chooser.runs.latest().comparison
    except RunNotFound:
        return ()
    return [last] if last else ()


def _show_comparisons(names: Sequence[str], chooser: RunChooser, how: _Shown) -> int:
    """Show comparisons again, or verify them and the runs of their arms."""
    from trialwise.runtime.verifying import verify_stored_comparison

    ascii_only, holds = how.ascii_only, True
    for name, found in zip(names, chooser.load_comparisons(names), strict=True):
        if how.verifies:
            runs = [chooser.runs.open(one.record.run_id) for one in found.runs]
            checked = CheckedRuns.check(runs)
            checked.verifications.insert(0, verify_stored_comparison(name, store=chooser.folder))
            holds = holds and checked.holds
            _say_checked(checked, how)
        elif how.as_json:
            say_json(found.to_dict())
        else:
            page = found.build_page() if how.transparent else found.build_summary()
            say_page(page, ascii_only=ascii_only)
    return ExitCode.PASS if holds else ExitCode.ERROR


def _show_measured(stored: Sequence[StoredRun], *, as_json: bool) -> list[StoredRun]:
    """Print the counts of measurements, which have no verdict; return the other runs."""
    measured = [one for one in stored if one.plan.purpose == "measure"]
    found = [count_measured(one) for one in measured]
    if found and as_json:
        say_json({"schema": "trialwise.measurement/1", "runs": found})
    elif found:
        say_page(stored_runs.build_measured_page(found), wide=True)
    return [one for one in stored if one not in measured]


def _show(records: Sequence[RunRecord], stored: Sequence[StoredRun], how: _Shown) -> None:
    folders = {one.run_id: near(one.path) for one in stored}
    chosen: dict[str, Any] = {"limit": how.trials, "failing": how.failures}
    lists = how.trials is not None or how.failures
    if how.as_json and lists:
        say_json(stored_runs.list_trials_data(records, **chosen))
        return
    if how.as_json:
        source = ReportSource(records=records, name=find_places().name, locations=folders)
        say_json(formats.render_report(source, "json"))
        return
    able = output_of(ascii_only=how.ascii_only)
    if how.transparent:
        from trialwise.pages.analysis import render_analysis

        for record in records:
            title = able.show(record.verdict.contract or record.plan.contract)
            say(render_analysis(record.verdict, title=title, unicode=able.unicode))
    else:
        from trialwise.runtime.result import render_summary

        # A record does not say which suite it was run from.
        suite = "" if find_places().suite is None else "trialwise.yaml"
        files = {record.run_id: suite for record in records} if suite else {}
        say(render_summary(records, able, folders=[*folders.values()], files=files))
    for record in records if lists else ():
        say("")
        say_page(stored_runs.build_trials_page(record, **chosen), ascii_only=how.ascii_only)


def _verify(stored: Sequence[StoredRun], how: _Shown) -> int:
    checked = CheckedRuns.check(stored)
    if checked.records and not how.as_json:
        whole = {record.run_id for record in checked.records}
        _show(checked.records, [one for one in stored if one.run_id in whole], how)
        say("")
    _say_checked(checked, how)
    return ExitCode.PASS if checked.holds else ExitCode.ERROR


def _say_checked(checked: CheckedRuns, how: _Shown) -> None:
    if how.as_json:
        say_json(checked.to_dict())
    else:
        say_page(checked.build_page(), ascii_only=how.ascii_only, wide=True)


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """Which runs are listed.

    Args:
        last: Show the last N runs.
        repair: Set the damaged lines of an unfinished run aside, so that it can be resumed.
    """

    last: Annotated[
        int, opt("-n", "--last", type=click.IntRange(1), show_default=True, metavar="N")
    ] = 20
    store: Path | None
    repair: Annotated[str | None, opt(metavar="RUN")] = None
    as_json: bool


@click.command("runs")
@click.argument("contracts", nargs=-1, metavar="[CONTRACT]...")
@options.declared(_Listed)
def runs_command(contracts: tuple[str, ...], how: _Listed) -> int:
    """List stored runs, the newest first: verdict, start, number of trials and name.

    The arms of a comparison stand below it. `trialwise show NAME` shows a run or a comparison.
    Nothing is run, and nothing is written but with --repair. That keeps the damaged file beside
    the repaired one.

    \b
    Examples:
      trialwise runs
      trialwise runs support-agent -n 5 --json
      trialwise runs --repair 2026-11-15T06-25-24Z-support-agent-3f9c
    """
    chooser = RunChooser(how.store)
    if how.repair is not None:
        return _repair(chooser.runs.open(how.repair), as_json=how.as_json)
    shown, compared, older = chooser.describe(contracts, how.last)
    if how.as_json:
        whole = {"schema": "trialwise.runs/1", "runs": shown}
        say_json({**whole, "comparisons": [*compared.values()]} if compared else whole)
    elif shown:
        say_page(stored_runs.build_runs_page(shown, compared, older), wide=True)
    else:
        say("no run is kept here")
    return ExitCode.PASS


def _repair(stored: StoredRun, *, as_json: bool) -> int:
    found = stored.repair()
    if as_json:
        files = {
            name: {"kept": one.kept, "damaged": one.damaged, "aside": one.aside and str(one.aside)}
            for name, one in found.items()
        }
        say_json({"schema": "trialwise.repair/1", "run_id": stored.run_id, "files": files})
        return ExitCode.PASS
    for name, one in found.items():
        if one.aside is None:
            say(f"{name}: nothing is damaged")
        else:
            lines = as_count(one.damaged, "damaged line")
            say(f"{name}: {as_count(one.kept, 'line')} kept, {lines} left out")
            say(f"  the file as it was is kept in {near(one.aside)}")
    say(f"`trialwise run --resume {stored.run_id}` asks for the trials that are missing")
    return ExitCode.PASS


# --- report ---------------------------------------------------------------------------------------


_FORMATS = f"[{'|'.join(formats.BUILT_IN)}]"


def _choose_format(
    _: click.Context, __: click.Parameter, name: str | None
) -> formats.ReportFormat | None:
    try:
        return None if name is None else formats.find_format(name.lower())
    except InvalidArgument as error:
        raise click.BadParameter(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reported:
    """Which reports are written.

    Args:
        format_: Print this report on standard output; markdown where neither it nor -o is given.
        opens: Open the HTML report in a browser.
    """

    outputs: tuple[Path, ...]
    format_: Annotated[
        Any, opt("--format", type=str, callback=_choose_format, metavar=_FORMATS)
    ] = None
    opens: Annotated[bool, opt("--open")] = False


@click.command("report")
@_takes_runs
@options.declared(_Reported)
def report_command(names: tuple[str, ...], every: bool, chooser: RunChooser, how: _Reported) -> int:
    """Write reports of stored runs; of all that were run last where none is named.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant.
    Several runs make one report. The name of a comparison reports what it concluded. Nothing is
    run. Exits 0 where the reports could be written, whatever the verdicts were.

    --open shows the HTML report: the one that -o names, else one beside the run.

    \b
    Examples:
      trialwise report --open
      trialwise report -o report.html -o results.junit.xml
      trialwise report --all --format markdown >> "$GITHUB_STEP_SUMMARY"
      trialwise report support-agent -o gl-code-quality-report.json
    """
    compared, outputs = chooser.load_comparisons(names), how.outputs
    if compared and (outputs or how.opens) and len(compared) > 1:
        raise click.UsageError("a file reports one comparison: name one")
    stored = [] if compared else chooser.choose(names, every=every)
    records, places = [read_run(one) for one in stored], find_places()
    locations = {one.run_id: near(one.path) for one in stored}
    source = ReportSource(records=records, name=places.name, locations=locations)
    if places.suite is not None:
        source = replace(source, file=places.suite.name)
    pages = [path for path in outputs if formats.match_format(path).name == "html"]
    if how.opens and not pages:
        pages = [stored[-1].path / "report.html" if stored else Path("comparison.html")]
        outputs = (*outputs, *pages)
    for path in outputs:
        written = compared[0].write(path) if compared else write_report(path, source)
        click.echo(f"wrote {written}", err=True)
    if how.opens:
        click.launch(str(pages[0].resolve()))
    if how.format_ is not None or not outputs:
        chosen = how.format_ or formats.BUILT_IN["markdown"]
        texts = [one.render(chosen.name) for one in compared]
        for text in texts or [formats.render_report(source, chosen.name)]:
            (say_json if chosen.is_json else say)(text)
    return ExitCode.PASS


# --- rerun ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rerun:
    """Which trial is run again.

    Args:
        index: Number of the trial.
        sampling: Sampling of the trial, where the contract has several.
    """

    index: Annotated[int, opt("--trial", type=click.IntRange(0))]
    sampling: str | None = None
    store: Path | None
    file: Path | None
    as_json: bool


@click.command("rerun")
@click.argument("run", default="latest", shell_complete=_complete)
@options.declared(_Rerun)
def rerun_command(run: str, how: _Rerun) -> int:
    """Run one trial of a stored run again: the same input, the same seed.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant. The
    service and the checks are those of the suite as it is now. Prints the input, the reply and the
    outcome of each check. Nothing is counted and nothing is written.

    Exits 0 where every check holds, 1 where one does not, and 3 where the service was not reached.

    \b
    Examples:
      trialwise rerun --trial 28
      trialwise rerun support-agent --trial 28 --json
    """
    from trialwise.documents.blocks import Document
    from trialwise.runtime.running import find_trial, rerun_trial
    from trialwise.runtime.selecting import Selection, load

    stored = RunChooser(how.store).find(run)
    # The input and the seed are those of the record, whatever the suite draws today.
    before, contract = find_trial(stored, how.index, how.sampling), stored.plan.contract
    suite = load(how.file)
    ((_, chosen),) = Selection(names=(contract,)).choose([suite])
    done = rerun_trial(chosen.contract, chosen.options, before, redact=suite.redaction)
    asked = stored.texts().find_input(before)
    if asked is not None and asked != done.texts.find_input(done.trial):
        click.echo("trialwise: this input has changed since the run", err=True)
    names = dict(done.checks)
    checks = [
        (one.criterion, name, word)
        for one in done.trial.outcomes
        for name, word in stored_runs.list_checks(one, names[one.criterion])
    ]
    if how.as_json:
        of = {"schema": stored_runs.TRIALS_SCHEMA, "contract": contract, "run_id": stored.run_id}
        said = [dict(zip(("criterion", "check", "outcome"), one, strict=True)) for one in checks]
        now = {**stored_runs.describe_trial(done.trial, done.texts), "checks": said}
        say_json({**of, "passed_in_run": before.passed, **now})
    else:
        shown = stored_runs.build_trial(
            done.trial,
            done.texts,
            before=f"{'passed' if before.passed else 'FAILED'} in the run",
            checks=[(criterion, f"{name}: {word}") for criterion, name, word in checks],
        )
        say_page(Document(kind="Trial", title="", blocks=(shown,)))
    # A service that was not reached says nothing of the reply, so that it is neither 0 nor 1.
    if done.trial.is_excused:
        return ExitCode.INCONCLUSIVE
    return ExitCode.PASS if done.trial.passed else ExitCode.FAIL
