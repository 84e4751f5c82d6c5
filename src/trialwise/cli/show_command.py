"""`trialwise show`: a stored run, as it was shown when it ended, and more of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.stored import chosen_runs, run_choice

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.stores.runs import StoredRun

__all__ = ["command"]


@click.command("show")
@run_choice
@click.option("--transparent", is_flag=True, help="Print the full statistical analysis instead.")
@click.option("--failures", is_flag=True, help="Also print every failed trial with its evidence.")
@click.option(
    "--trials", type=click.IntRange(1), metavar="N", help="Also print the first N trials."
)
@click.option("--verify", "verifies", is_flag=True, help="Decide the run again and compare.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Use no character beyond ASCII.")
def command(names: tuple[str, ...], every: bool, store: Path | None, **given: Any) -> int:
    """Show a stored run again; the latest where none is named.

    RUN is a run's name or folder, `latest`, or a contract, of which the latest run is meant.
    Nothing is run and nothing is written. --failures with --trials shows the first N failures.

    --verify decides the run again from its plan and its trials and compares every field.

    Exits 0 where the run could be shown, whatever its verdict was: that was the exit code of
    `trialwise run`. Exits 4 where --verify finds the record altered or damaged.

    \b
    Examples:
      trialwise show
      trialwise show support-agent --failures
      trialwise show --transparent --ascii > analysis.txt
      trialwise show --all --verify
    """
    if given["as_json"] and given["transparent"]:
        raise click.UsageError("--transparent is text; --json holds the same figures")
    stored = chosen_runs(names, store, every=every)
    if given["verifies"]:
        return _verify(stored, given)
    _show([one.record() for one in stored], stored, given)
    return ExitCode.PASS


def _show(records: Sequence[RunRecord], stored: Sequence[StoredRun], given: dict[str, Any]) -> None:
    from trialwise.cli.printing import near, output_of, say, say_json
    from trialwise.cli.trial_listing import chosen_trials, render_trials, trials_data

    folders = {one.run_id: near(one.path) for one in stored}
    limit, failing = given["trials"], given["failures"]
    lists = limit is not None or failing
    if given["as_json"] and lists:
        say_json(trials_data(records, limit=limit, failing=failing))
    elif given["as_json"]:
        from trialwise.reports.report_files import render_report

        say_json(render_report(records, "json", locations=folders))
    else:
        able = output_of(ascii_only=given["ascii_only"])
        say(_render(records, [*folders.values()], able, transparent=given["transparent"]))
        for record in records if lists else ():
            chosen = chosen_trials(record, limit=limit, failing=failing)
            say("")
            say(render_trials(record, chosen, able, failing=failing))


def _render(
    records: Sequence[RunRecord], folders: Sequence[str], able: Capabilities, *, transparent: bool
) -> str:
    if transparent:
        from trialwise.pages.analysis import render_analysis

        return "\n".join(
            render_analysis(
                record.verdict,
                title=able.show(record.verdict.contract or record.plan.contract),
                unicode=able.unicode,
            )
            for record in records
        )
    from trialwise.pages.results import describe_verdicts
    from trialwise.renderers.results_text import render_results

    results = describe_verdicts([record.verdict for record in records])
    return render_results(results, capabilities=able, reports=folders)


def _verify(stored: Sequence[StoredRun], given: dict[str, Any]) -> int:
    from trialwise.cli.printing import output_of, say, say_json
    from trialwise.cli.verify import check_runs, render_checked

    checked = check_runs(stored)
    if given["as_json"]:
        say_json(checked.data())
    else:
        if checked.records:
            whole = {record.run_id for record in checked.records}
            _show(checked.records, [one for one in stored if one.run_id in whole], given)
            say("")
        say(render_checked(checked, output_of(ascii_only=given["ascii_only"])))
    return ExitCode.PASS if checked.holds else ExitCode.ERROR
