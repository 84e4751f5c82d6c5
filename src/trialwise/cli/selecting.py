"""Finding the suite and choosing among its contracts: what `run`, `check` and `measure` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trialwise.cli.plan.option_types import Written
from trialwise.declarations.amounts import describe_option, read_option
from trialwise.reports.formats import list_endings, match_format
from trialwise.run_options import OPTIONS

if TYPE_CHECKING:
    from trialwise.model.contract import Contract
    from trialwise.model.options import RunOptions
    from trialwise.suite import Suite, SuiteContract


F = TypeVar("F", bound=Callable[..., Any])

suite_option = click.option(
    "-s",
    "--suite",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The suite file. Default: trialwise.yaml in this folder or above.",
)


def _check_endings(
    _: click.Context, __: click.Parameter, paths: tuple[Path, ...]
) -> tuple[Path, ...]:
    """Refuse a name that asks for no report before anything is read or run."""
    for path in paths:
        match_format(path)
    return paths


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
output_option = click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    callback=_check_endings,
    help=f"Write a report, by extension: {' '.join(list_endings())}; may be repeated.",
)


def selection(function: F) -> F:
    """The arguments that choose a suite and contracts of it."""
    for decorate in (
        click.option("--tag", "tags", multiple=True, help="Only contracts with this tag."),
        suite_option,
        click.argument("names", nargs=-1, metavar="[CONTRACT]..."),
    ):
        function = decorate(function)
    return function


def size_options(function: F) -> F:
    """Add an option for each setting of a run that the command line may change."""
    for name, _, kind, doc in reversed(OPTIONS):
        if name == "confidence":
            continue  # each criterion has its own
        function = click.option(
            f"--{name}",
            _parameter(name),
            type=_type_of(kind),
            multiple=kind == "names",
            default=None,
            help=doc,
        )(function)
    return function


def _parameter(name: str) -> str:
    return f"option_{name.replace('-', '_')}"


def _type_of(kind: str) -> click.ParamType[Any]:
    if "|" in kind:
        return click.Choice(kind.split("|"), case_sensitive=False)
    if kind in ("text", "names"):
        return click.STRING
    # A value is read as suites and markers read it.
    return Written(
        kind.split(maxsplit=1)[0], f"be {describe_option(kind)}", partial(read_option, kind)
    )


def load(file: Path | None, *, without_services: bool = False) -> Suite:
    """The suite of a file, or the one that this folder belongs to.

    Args:
        file: The suite's, if one was named.
        without_services: Whether something else will stand for what is under test.
    """
    from trialwise.suite import find_suite, load_suite

    path = find_suite(Path.cwd()) if file is None else file
    return load_suite(path, environment=os.environ, without_services=without_services)


def choose(suite: Suite, names: Iterable[str], tags: Iterable[str]) -> list[SuiteContract]:
    """The contracts of these names and tags; none is an error, since nothing run is no PASS.

    The name that a suite gives to a contract with `models` stands for all of its cells.
    """
    wanted, marks = set[str](), set(tags)
    cells = _by_name(suite)
    for name in names:
        if name not in cells:
            from difflib import get_close_matches

            known = [one.name for one in suite.contracts]
            near = get_close_matches(name, list(cells), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(known)}."
            raise click.UsageError(f"{suite.path} has no contract {name!r}.{hint}")
        wanted |= cells[name]
    chosen = [
        one
        for one in suite.contracts
        if (not wanted or one.name in wanted) and (not marks or marks & set(one.tags))
    ]
    if not chosen:
        there = sorted({tag for one in suite.contracts for tag in one.tags})
        raise click.UsageError(
            f"no contract has the tag {', '.join(sorted(marks))}. "
            f"Tags in {suite.path}: {', '.join(there) or 'none'}."
        )
    return chosen


def _by_name(suite: Suite) -> dict[str, set[str]]:
    """The contracts that each name stands for; one of their own goes before one of cells."""
    own = {one.name: {one.name} for one in suite.contracts}
    shared: dict[str, set[str]] = {}
    for one in suite.contracts:
        name = one.name.removesuffix(f" [{one.contract.factors.get('model')}]")
        shared.setdefault(name, set()).add(one.name)
    return shared | own


def choose_sized(
    suite: Suite, names: Iterable[str], tags: Iterable[str], given: dict[str, Any]
) -> list[tuple[Contract, RunOptions]]:
    """The chosen contracts and their options, with what the command line changes about both."""
    sized = [
        (_change_size(one.contract, given), _change_options(one.options, given))
        for one in choose(suite, names, tags)
    ]
    if len(sized) == 1:
        return sized
    from trialwise.procedures.planning.families import size_families
    from trialwise.runtime.preparing import give_own_seed

    return [
        (contract, give_own_seed(options, contract))
        for (contract, _), options in zip(sized, size_families(sized), strict=True)
    ]


def _change_size(contract: Contract, given: dict[str, Any]) -> Contract:
    """A contract whose criteria take the size of the command line, not their own."""
    if all(given.get(_parameter(size)) is None for size in ("trials", "max-trials")):
        return contract
    return contract.with_criteria(
        [replace(one, trials=None, max_trials=None) for one in contract.criteria]
    )


def _change_options(options: RunOptions, given: dict[str, Any]) -> RunOptions:
    """A contract's options with what the command line says instead."""
    changes: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for name, target, kind, _ in OPTIONS:
        value = given.get(_parameter(name))
        if value is None or value == ():
            continue
        holder, _, field = target.rpartition(".")
        if kind == "names":
            value = (*getattr(options, field), *value)
        (limits if holder == "budget" else changes)[field] = value
    # One of the two sizes replaces the other: the suite may have said either.
    if "trials" in changes:
        changes["max_trials"] = None
    elif "max_trials" in changes:
        changes["trials"] = None
    if limits:
        changes["budget"] = replace(options.budget, **limits)
    return replace(options, **changes)
