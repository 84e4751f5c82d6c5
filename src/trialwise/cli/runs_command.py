"""`trialwise runs`: a list of the runs that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import json_option

if TYPE_CHECKING:
    from trialwise.model.run import RunSummary
    from trialwise.stores.runs import StoredRun

SCHEMA = "trialwise.runs/1"


@click.command("runs")
@click.argument("contracts", nargs=-1, metavar="[CONTRACT]...")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Show the last N runs.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the runs. Default: the suite's, else .trialwise.",
)
@click.option(
    "--repair",
    metavar="RUN",
    help="Set the damaged lines of an unfinished run aside, so that it can be resumed.",
)
@json_option
def command(
    contracts: tuple[str, ...], last: int, store: Path | None, repair: str | None, as_json: bool
) -> int:
    """List stored runs, the newest first: verdict, start, number of trials and name.

    `trialwise show NAME` shows one of them. Nothing is run, and nothing is written but with
    --repair. That keeps the damaged file beside the repaired one.

    \b
    Examples:
      trialwise runs
      trialwise runs support-agent -n 5 --json
      trialwise runs --repair 2026-11-15T06-25-24Z-support-agent-3f9c
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.cli.stored import find_places
    from trialwise.stores.runs import RunStore

    runs = RunStore(find_places().runs if store is None else store)
    if repair is not None:
        return _repair(runs.open(repair), as_json=as_json)
    kept = [one for one in runs.list() if not contracts or one.contract in contracts]
    shown = [_describe(runs, one) for one in kept[:last]]
    if as_json:
        say_json({"schema": SCHEMA, "runs": shown})
    elif not shown:
        say("no run is kept here")
    else:
        say("\n".join(_render(one) for one in shown))
        if len(kept) > last:
            say(f"{len(kept) - last:,} older; -n shows more")
    return ExitCode.PASS


def _repair(stored: StoredRun, *, as_json: bool) -> int:
    from trialwise.cli.printing import near, say, say_json
    from trialwise.documents.numbers import as_count
    from trialwise.stores.journal_repair import repair_run

    found = repair_run(stored)
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


def _describe(runs: Any, one: RunSummary) -> dict[str, Any]:
    """Describe a run as plain values; a run without a verdict is a measurement or unfinished."""
    from trialwise.errors import JournalDamaged
    from trialwise.stores.runs import StoreUnusable

    trials, result = one.trials, str(one.decision or "")
    if one.damage:
        result = "DAMAGED"
    elif not one.is_decided:
        stored = runs.open(one.run_id)
        try:
            trials = len(stored.trials())
            measured = stored.plan.purpose == "measure" and trials >= stored.plan.max_trials
            result = "MEASURED" if measured else "UNFINISHED"
        except (JournalDamaged, StoreUnusable):
            result = "DAMAGED"
    return {
        "run_id": one.run_id,
        "contract": one.contract,
        "result": result,
        "started_at": None if one.started_at is None else one.started_at.isoformat(),
        "trials": trials,
    }


def _render(one: dict[str, Any]) -> str:
    from trialwise.documents.numbers import as_count

    started = (one["started_at"] or "")[:16].replace("T", " ")
    trials = "" if one["trials"] is None else as_count(one["trials"], "trial")
    return f"{one['result']:<12}  {started:<16}  {trials:>13}  {one['run_id']}"
