"""`trialwise runs`: a list of the runs that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import json_option

if TYPE_CHECKING:
    from trialwise.model.run import RunSummary

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
@json_option
def command(contracts: tuple[str, ...], last: int, store: Path | None, as_json: bool) -> int:
    """List stored runs, the newest first: verdict, start, number of trials and name.

    `trialwise show NAME` shows one of them. Nothing is run and nothing is written.

    \b
    Examples:
      trialwise runs
      trialwise runs support-agent -n 5 --json
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.cli.stored import find_places
    from trialwise.stores.runs import RunStore

    runs = RunStore(find_places().runs if store is None else store)
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


def _describe(runs: Any, one: RunSummary) -> dict[str, Any]:
    """Describe a run as plain values; a run without a verdict is a measurement or unfinished."""
    trials, result = one.trials, str(one.decision or "")
    if one.damage:
        result = "DAMAGED"
    elif not one.is_decided:
        stored = runs.open(one.run_id)
        trials = len(stored.trials())
        measured = stored.plan.purpose == "measure" and trials >= stored.plan.max_trials
        result = "MEASURED" if measured else "UNFINISHED"
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
