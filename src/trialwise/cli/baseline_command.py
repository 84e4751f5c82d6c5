"""`trialwise baseline`: the measured references of a project, looked at and looked after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.selecting import json_option

if TYPE_CHECKING:
    from trialwise.stores.baselines import BaselineStore


_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the baselines. Default: the suite's, else baselines/.",
)
_contract = click.option("--contract", help="Only this contract's.")


@click.group("baseline", no_args_is_help=True)
def command() -> None:
    """Look at and look after measured baselines.

    `trialwise measure` writes them; a criterion with `no_worse_than: baseline` is held against the
    newest that was measured under the same conditions. They are files to be kept in git.

    \b
    Examples:
      trialwise baseline list
      trialwise baseline promote artifacts/support-agent.json
    """


@command.command("list", short_help="List baselines: rates, age, which is in force.")
@_folder
@_contract
@json_option
def list_(folder: Path | None, contract: str | None, as_json: bool) -> int:
    """List baselines: their rates, their age, and which of them is in force.

    Of each contract and each set of conditions the newest is in force; the others are superseded.

    \b
    Example:
      trialwise baseline list --contract support-agent
    """
    from trialwise.cli.baseline_listing import Shelf, render_shelf
    from trialwise.cli.printing import output_of, say, say_json

    shelf = Shelf.read(_store(folder), contract, now=_now())
    if as_json:
        say_json(shelf.data())
    elif shelf.entries:
        say(render_shelf(shelf, output_of()))
    else:
        whose = "" if contract is None else f" of {contract!r}"
        where = _where(folder)
        click.echo(f"{where}: no baseline{whose}. Measure one: trialwise measure", err=True)
    return ExitCode.PASS


@command.command()
@click.argument("name")
@_folder
@_contract
@json_option
def show(name: str, folder: Path | None, contract: str | None, as_json: bool) -> int:
    """Show one baseline: counts, conditions, validity.

    NAME is an identifier, a file, or a contract, of which the newest baseline is meant. --json
    prints the file as it is kept.

    \b
    Examples:
      trialwise baseline show support-agent
      trialwise baseline show baselines/support-agent/nightly.json --json
    """
    from trialwise.cli.baseline_listing import Shelf, render_baseline
    from trialwise.cli.printing import output_of, say, say_json

    store = _store(folder)
    shelf = Shelf.read(store, contract, now=_now()) if not Path(name).is_file() else None
    path, found = (Path(name), store.load(Path(name))) if shelf is None else shelf.find(name)
    if as_json:
        say_json(path.read_text(encoding="utf-8"))
    else:
        say(render_baseline(path, found, output_of(), now=_now()))
    return ExitCode.PASS


@command.command(short_help="Take a baseline from elsewhere.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_folder
@json_option
def promote(file: Path, folder: Path | None, as_json: bool) -> int:
    """Take a baseline from elsewhere, such as a build's artefact, into this project.

    The file is checked, copied and given the next epoch. Promoting one that is there already
    changes nothing.

    \b
    Example:
      trialwise baseline promote artifacts/support-agent.json
    """
    from trialwise.cli.baseline_listing import Shelf
    from trialwise.cli.printing import near, say, say_json

    store = _store(folder)
    path = store.promote(file)
    shelf = Shelf.read(store, None, now=_now())
    kept = next(one for one in shelf.entries if one.path == path)
    one = kept.baseline
    if as_json:
        say_json(kept.data())
        return ExitCode.PASS
    say(f"{one.contract}: {one.identifier} (epoch {one.epoch}) is {kept.state}, in {near(path)}")
    return ExitCode.PASS


@command.command(short_help="Delete all but the newest few.")
@click.option(
    "--keep", type=click.IntRange(1), required=True, help="How many to keep of each index."
)
@click.option("--yes", is_flag=True, help="Delete them; without it they are only listed.")
@_folder
@_contract
@json_option
def prune(keep: int, yes: bool, folder: Path | None, contract: str | None, as_json: bool) -> int:
    """Delete all but the newest few baselines of each contract and set of conditions.

    Without --yes nothing is deleted. A stored verdict keeps the counts it was decided against.

    \b
    Example:
      trialwise baseline prune --keep 3 --yes
    """
    from trialwise.cli.printing import near, say, say_json

    store = _store(folder)
    old = (store.prune if yes else store.list_old)(keep, contract=contract)
    if as_json:
        say_json({"deleted": yes, "files": [near(path) for path in old]})
        return ExitCode.PASS
    for path in old:
        say(f"{'deleted' if yes else 'would delete'} {near(path)}")
    if not old:
        click.echo("nothing to delete", err=True)
    elif not yes:
        click.echo("nothing was deleted; add --yes to delete them", err=True)
    return ExitCode.PASS


def _store(folder: Path | None) -> BaselineStore:
    from trialwise.stores.baselines import BaselineStore

    return BaselineStore(_where(folder))


def _where(folder: Path | None) -> Path:
    if folder is not None:
        return folder
    from trialwise.cli.stored import find_places

    return find_places().baselines


def _now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)
