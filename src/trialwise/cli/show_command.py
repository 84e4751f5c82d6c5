"""`trialwise show`: a stored run, as it was shown when it ended, and more of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import json_option
from trialwise.cli.stored import (
    are_comparisons,
    chosen_runs,
    find_places,
    load_comparisons,
    run_choice,
)

if TYPE_CHECKING:
    from trialwise.model.run import RunRecord
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.runtime.verifying import Verification
    from trialwise.stores.runs import StoredRun


@click.command("show")
@run_choice
@click.option("--transparent", is_flag=True, help="Print the full statistical analysis instead.")
@click.option("--failures", is_flag=True, help="Also print every failed trial with its evidence.")
@click.option(
    "--trials", type=click.IntRange(1), metavar="N", help="Also print the first N trials."
)
@click.option("--verify", "verifies", is_flag=True, help="Decide the run again and compare.")
@json_option
@click.option("--ascii", "ascii_only", is_flag=True, help="Use no character beyond ASCII.")
def command(names: tuple[str, ...], every: bool, store: Path | None, **given: Any) -> int:
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
    if given["as_json"] and given["transparent"]:
        raise click.UsageError("--transparent is text; --json holds the same figures")
    folder = find_places().runs if store is None else store
    compared = () if every else _find_comparisons(names, folder, given)
    if compared:
        return _show_comparisons(compared, folder, given)
    stored = chosen_runs(names, store, every=every)
    if names:
        from trialwise.cli.measured_runs import show_measured

        stored = show_measured(stored, as_json=given["as_json"])
        if not stored:
            return ExitCode.PASS
    if given["verifies"]:
        return _verify(stored, given)
    from trialwise.runtime.deciding import read_run

    _show([read_run(one) for one in stored], stored, given)
    return ExitCode.PASS


def _find_comparisons(names: Sequence[str], folder: Path, given: dict[str, Any]) -> Sequence[str]:
    """Return the comparisons that somebody means: by name, or the one that was made last."""
    from trialwise.errors import RunNotFound
    from trialwise.stores.runs import RunStore

    if names:
        return names if are_comparisons(names, folder) else ()
    if given["failures"] or given["trials"] or given["transparent"] or given["verifies"]:
        return ()  # of the runs
    try:
        last = RunStore(folder).latest().comparison
    except RunNotFound:
        return ()
    return [last] if last else ()


def _show_comparisons(names: Sequence[str], folder: Path, given: dict[str, Any]) -> int:
    """Show comparisons again, or verify them and the runs of their arms."""
    from trialwise.cli.printing import output_of, say, say_json
    from trialwise.renderers.document_text import render_document_text
    from trialwise.runtime.verifying import verify_stored_comparison
    from trialwise.stores.runs import RunStore

    able = output_of(ascii_only=given["ascii_only"])
    holds = True
    for name, found in zip(names, load_comparisons(names, folder), strict=True):
        if given["verifies"]:
            runs = [RunStore(folder).open(one.record.run_id) for one in found.runs]
            checked = check_runs(runs)
            both = [verify_stored_comparison(name, store=folder), *checked.verifications]
            checked = replace(checked, verifications=both)
            holds = holds and checked.holds
            say_json(checked.data()) if given["as_json"] else say(render_checked(checked, able))
        elif given["as_json"]:
            say_json(found.to_dict())
        else:
            page = found.build_page() if given["transparent"] else found.build_summary()
            say(render_document_text(page, able).rstrip("\n"))
    return ExitCode.PASS if holds else ExitCode.ERROR


def _show(records: Sequence[RunRecord], stored: Sequence[StoredRun], given: dict[str, Any]) -> None:
    from trialwise.cli.printing import output_of, say, say_json
    from trialwise.cli.trial_listing import chosen_trials, render_trials, trials_data
    from trialwise.documents.printable import near

    folders = {one.run_id: near(one.path) for one in stored}
    limit, failing = given["trials"], given["failures"]
    lists = limit is not None or failing
    if given["as_json"] and lists:
        say_json(trials_data(records, limit=limit, failing=failing))
    elif given["as_json"]:
        from trialwise.reports.report_files import render_report

        name = find_places().name
        say_json(render_report(records, "json", name=name, locations=folders))
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
    from trialwise.runtime.result import render_summary

    return render_summary(records, able, folders=folders, files=_find_files(records))


def _find_files(records: Sequence[RunRecord]) -> dict[str, str]:
    """Find the suite file of this folder; a record does not say which one it was run from."""
    from trialwise.suite import SuiteNotFound, find_suite

    try:
        find_suite(Path.cwd())
    except SuiteNotFound:
        return {}
    return {record.run_id: "trialwise.yaml" for record in records}


def _verify(stored: Sequence[StoredRun], given: dict[str, Any]) -> int:
    from trialwise.cli.printing import output_of, say, say_json

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


SCHEMA = "trialwise.verification/1"


_UNCHECKED = "Times, versions and settings of pace are shown as stored and were not checked."

#: Beyond these one cause is seen many times.
_MOST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """Stored runs, decided again."""

    records: Sequence[RunRecord]
    """Those that could be read whole."""
    verifications: Sequence[Verification]
    damages: Sequence[tuple[str, str]]
    """The names of the others, and what is wrong with them."""

    @property
    def holds(self) -> bool:
        """Whether every record says what follows from it."""
        return not self.damages and all(one.matches for one in self.verifications)

    def data(self) -> dict[str, Any]:
        """Return everything as plain values."""
        runs: list[dict[str, Any]] = [
            {**asdict(one), "matches": one.matches, "damage": None} for one in self.verifications
        ]
        runs += [{"run_id": name, "matches": False, "damage": why} for name, why in self.damages]
        return {"schema": SCHEMA, "matches": self.holds, "runs": runs}


def check_runs(stored: Sequence[StoredRun]) -> Checked:
    """Decide runs again; one that is not as it was written does not hold.

    Raises:
        RunNotFound: One of them has no verdict yet.
    """
    from trialwise.errors import JournalDamaged
    from trialwise.runtime.verifying import verify
    from trialwise.stores.runs import StoreUnusable

    records, verifications, damages = [], [], []
    for one in stored:
        try:
            record = one.record()
            verifications.append(
                verify(record, known_hash=one.plan_hash, checksums=one.compare_checksums())
            )
            records.append(record)
        except (JournalDamaged, StoreUnusable) as error:
            damages.append((one.run_id, str(error)))
    return Checked(records, verifications, damages)


def render_checked(checked: Checked, able: Capabilities) -> str:
    """Render the outcome as text: a line a run, and what differs."""
    from trialwise.renderers.capabilities import Style

    lines: list[str] = []
    for one in checked.verifications:
        name = able.show(one.run_id or one.contract)
        if one.matches:
            mark = able.paint("VERIFIED", Style.GOOD)
            what = f"the verdict follows from the plan and its {one.trials} trials"
            lines.append(f"{mark}  {name}: {what}")
            if one.without_checksum:
                files = " and ".join(one.without_checksum)
                lines.append(f"  {files}: written without a checksum. {_UNCHECKED}")
            continue
        mark = able.paint("DIFFERS", Style.BAD)
        lines.append(f"{mark}  {name}: the record does not say what follows from it")
        shown = one.differences[:_MOST_DIFFERENCES]
        lines += [f"  {able.show(str(difference))}" for difference in shown]
        if len(one.differences) > len(shown):
            lines.append(f"  and {len(one.differences) - len(shown)} more")
    for name, why in checked.damages:
        lines.append(f"{able.paint('DAMAGED', Style.BAD)}  {able.show(name)}: {able.show(why)}")
    return "\n".join(lines)
