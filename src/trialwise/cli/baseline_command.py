"""`trialwise baseline`: the measured references of a project, looked at and looked after."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trialwise.cli.exits import ExitCode
from trialwise.cli.options import FOLDER, json_option
from trialwise.documents.printable import near
from trialwise.runtime.chosen_runs import find_places

if TYPE_CHECKING:
    from trialwise.pages.baselines import Shelf
    from trialwise.stores.baselines import BaselineStore

_folder = click.option(
    "--folder",
    type=FOLDER,
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
    from trialwise.cli.printing import say_json, say_page

    shelf = _read(_open(folder), contract)
    if as_json:
        say_json(shelf.to_dict())
    elif shelf.entries:
        say_page(shelf.build_page(), wide=True)
    else:
        whose = "" if contract is None else f" of {contract!r}"
        click.echo(
            f"{_find_folder(folder)}: no baseline{whose}. Measure one: trialwise measure", err=True
        )
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
    from trialwise.cli.printing import say_json, say_page
    from trialwise.pages.baselines import build_baseline_page

    store, file = _open(folder), Path(name)
    path, found = (file, store.load(file)) if file.is_file() else _read(store, contract).find(name)
    if as_json:
        say_json(path.read_text(encoding="utf-8"))
    else:
        say_page(build_baseline_page(path, found, datetime.now(UTC)), wide=True)
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
    from trialwise.cli.printing import say, say_json

    store = _open(folder)
    path = store.promote(file)
    shelf = _read(store, None)
    kept = next(one for one in shelf.entries if one.path == path)
    one = kept.baseline
    if as_json:
        say_json(kept.to_dict())
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
    from trialwise.cli.printing import say, say_json

    store = _open(folder)
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


def _open(folder: Path | None) -> BaselineStore:
    from trialwise.stores.baselines import BaselineStore

    return BaselineStore(_find_folder(folder))


def _find_folder(given: Path | None) -> Path:
    return find_places().baselines if given is None else given


def _read(store: BaselineStore, contract: str | None) -> Shelf:
    from trialwise.pages.baselines import Shelf

    return Shelf.of(store.all(contract), datetime.now(UTC))
