"""Where runs and baselines are kept, and which runs somebody means.

Looking at what was stored must not need a suite that loads: its functions are not imported, and a
mistake in it does not hide the record of an earlier run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from trialwise.runtime.answers import Answer
    from trialwise.stores.runs import RunStore, StoredRun


F = TypeVar("F", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path, file_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a project keeps things."""

    suite: Path | None = None
    """None: there is no suite here or above."""
    runs: Path = Path(".trialwise")
    baselines: Path = Path("baselines")

    @property
    def name(self) -> str:
        """What reports call the project: by the folder of its suite, as `run` does."""
        return (Path.cwd() if self.suite is None else self.suite.parent).resolve().name


def find_places() -> Places:
    """Find the folders that the suite of this folder names; the usual ones where it names none."""
    from trialwise.suite import SuiteNotFound, find_suite

    try:
        suite = find_suite(Path.cwd())
    except SuiteNotFound:
        return Places()
    named = _named_folders(suite)
    return Places(
        suite=suite,
        runs=suite.parent / named.get("runs", ".trialwise"),
        baselines=suite.parent / named.get("baselines", "baselines"),
    )


def run_choice(function: F) -> F:
    """Return the arguments that choose stored runs."""
    for decorate in (
        click.option(
            "--store",
            type=_FOLDER,
            help="Folder of the runs. Default: the suite's, else .trialwise.",
        ),
        click.option("--all", "every", is_flag=True, help="Use the latest run of every contract."),
        click.argument("names", nargs=-1, metavar="[RUN]...", shell_complete=_complete),
    ):
        function = decorate(function)
    return function


def chosen_runs(names: Sequence[str], store: Path | None, *, every: bool) -> list[StoredRun]:
    """Return the runs that somebody means: by name, folder or contract, or all that were run last.

    Raises:
        RunNotFound: There is no such run; names near to it are given.
    """
    from trialwise.stores.runs import RunStore

    if names and every:
        raise click.UsageError("--all names every contract already: leave out RUN")
    runs = RunStore(find_places().runs if store is None else store)
    if every:
        contracts = dict.fromkeys(one.contract for one in runs.list() if one.is_decided)
        # The oldest of the latest first, as they were run.
        names = list(contracts)[::-1]
    return [_find(runs, name) for name in names] or _list_last(runs)


def _list_last(runs: RunStore) -> list[StoredRun]:
    """List the latest run and, of each other contract, the latest that was run together with it."""
    newest = _find_latest(runs)
    if not newest.session:
        return [newest]
    last: dict[str, str] = {}
    for one in runs.list():
        if one.session == newest.session and (one.is_decided or one.run_id == newest.run_id):
            last.setdefault(one.contract, one.run_id)
    # As they were run.
    return [runs.open(name) for name in list(last.values())[::-1]]


def _find_latest(runs: RunStore, contract: str | None = None) -> StoredRun:
    """Find the newest run with a verdict; where none has one, the newest of all."""
    from trialwise.errors import RunNotFound

    try:
        return runs.latest(contract)
    except RunNotFound:
        for one in runs.list():
            if not one.damage and contract in (None, one.contract):
                return runs.open(one.run_id)
        raise


def _find(runs: RunStore, name: str) -> StoredRun:
    from trialwise.errors import RunNotFound

    if name == "latest":
        return _find_latest(runs)
    try:
        return runs.open(name)
    except RunNotFound as missing:
        try:
            return _find_latest(runs, name)
        except RunNotFound:
            contracts = sorted({one.contract for one in runs.list() if one.is_decided})
            known = f". Contracts with a verdict: {', '.join(contracts)}" if contracts else ""
            raise RunNotFound(f"{missing}{known}") from None


def _named_folders(suite: Path) -> dict[str, str]:
    """Return what the suite's `store` says, as far as it can be read."""
    from trialwise.suite.reading_context import Context

    context = Context(suite, os.environ)
    root = context.root()
    if root is None or not root.is_mapping:
        return {}
    entry = context.entries(root).get("store")
    if entry is None or not entry[1].is_mapping:
        return {}
    named: dict[str, str] = {}
    for name, (_, node) in context.entries(entry[1]).items():
        text = context.environment.filled(node, node.value) if type(node.value) is str else None
        if text:
            named[name] = text
    return named


def _complete(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem | str]:
    from trialwise.stores.runs import RunStore

    runs = RunStore(find_places().runs).list()
    names = dict.fromkeys(
        ["latest", *(one.contract for one in runs), *(one.run_id for one in runs)]
    )
    return [name for name in names if name and name.startswith(incomplete)]


def are_comparisons(names: Sequence[str], folder: Path) -> bool:
    """Return whether all names are those of comparisons of a store."""
    files = [folder / "comparisons" / name / "comparison.json" for name in names]
    return bool(files) and all(one.is_file() for one in files)


def load_comparisons(names: Sequence[str], folder: Path) -> Sequence[Answer]:
    """Return the comparisons and choices of these names; none where any is another's name.

    Args:
        names: As a user gives them.
        folder: The store.
    """
    if not are_comparisons(names, folder):
        return []
    from trialwise.runtime.answers import load_answer

    return [load_answer(name, store=folder) for name in names]
