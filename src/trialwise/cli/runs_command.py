"""`trialwise runs`: a list of the runs that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option, store_option

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
@store_option
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

    The arms of a comparison stand below it. `trialwise show NAME` shows a run or a comparison.
    Nothing is run, and nothing is written but with --repair. That keeps the damaged file beside
    the repaired one.

    \b
    Examples:
      trialwise runs
      trialwise runs support-agent -n 5 --json
      trialwise runs --repair 2026-11-15T06-25-24Z-support-agent-3f9c
    """
    from trialwise.cli.printing import say, say_json
    from trialwise.cli.stored import find_places
    from trialwise.stores.runs import RunStore

    folder = find_places().runs if store is None else store
    runs = RunStore(folder)
    if repair is not None:
        return _repair(runs.open(repair), as_json=as_json)
    kept = [one for one in runs.list() if not contracts or one.contract in contracts]
    shown = [_describe(runs, one) for one in kept[:last]]
    compared = _list_comparisons(folder, {one.comparison for one in kept[:last]})
    if as_json:
        whole = {"schema": SCHEMA, "runs": shown}
        say_json({**whole, "comparisons": [*compared.values()]} if compared else whole)
    elif not shown:
        say("no run is kept here")
    else:
        say("\n".join(_list_lines(shown, compared)))
        if len(kept) > last:
            say(f"{len(kept) - last:,} older; -n shows more")
    return ExitCode.PASS


def _repair(stored: StoredRun, *, as_json: bool) -> int:
    from trialwise.cli.printing import say, say_json
    from trialwise.documents.numbers import as_count
    from trialwise.documents.printable import near
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
            trials = len(stored.shown_trials())
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
        **({"comparison": one.comparison} if one.comparison else {}),
    }


def _list_comparisons(folder: Path, names: set[str]) -> dict[str, dict[str, Any]]:
    """Describe the comparisons whose arms are listed, by name; one that is damaged is left out."""
    from trialwise.errors import TrialwiseError
    from trialwise.stores.comparisons import ComparisonStore

    found = {}
    for name in filter(None, names):
        try:
            stored = ComparisonStore(folder).open(name)
            head, verdict = stored.head, stored.verdict()
        except TrialwiseError:
            continue
        result = "UNFINISHED" if verdict is None else str(verdict["decision"])
        found[name] = {
            "comparison": name,
            "result": result,
            "statement": "" if verdict is None else str(verdict.get("statement", "")),
            "started_at": head.started_at.isoformat(),
            "arms": dict(zip(head.runs, head.labels, strict=True)),
        }
    return found


def _list_lines(
    shown: Sequence[dict[str, Any]], compared: dict[str, dict[str, Any]]
) -> Iterator[str]:
    """Yield a line for each run, the arms of a comparison together below it."""
    from trialwise.documents.numbers import as_count

    told: set[str] = set()
    for one in shown:
        comparison = compared.get(one.get("comparison", ""))
        if comparison is None:
            yield _render(one["result"], one, _count_trials(one), one["run_id"])
        elif comparison["comparison"] not in told:
            told.add(comparison["comparison"])
            arms = comparison["arms"]
            count = as_count(len(arms), "arm")
            yield _render(comparison["result"], comparison, count, comparison["comparison"])
            mine = {each["run_id"]: each for each in shown if each["run_id"] in arms}
            for name, label in arms.items():
                if name in mine:
                    trials = _count_trials(mine[name])
                    yield _render("  arm", mine[name], trials, f"{name}  {label}")


def _count_trials(one: dict[str, Any]) -> str:
    from trialwise.documents.numbers import as_count

    return "" if one["trials"] is None else as_count(one["trials"], "trial")


def _render(result: str, one: dict[str, Any], size: str, name: str) -> str:
    from trialwise.cli.printing import output_of

    started = (one["started_at"] or "")[:16].replace("T", " ")
    return output_of().show(f"{result:<12}  {started:<16}  {size:>13}  {name}")
