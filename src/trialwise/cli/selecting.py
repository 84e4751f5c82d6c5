"""Finding the suite and choosing among its contracts: what `run`, `check` and `measure` share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from trialwise.model.contract import Contract
    from trialwise.model.options import RunOptions
    from trialwise.suite import Suite, SuiteContract

__all__ = ["choose", "load", "option_changes", "selection", "size_changes", "size_options"]

_AMOUNT = click.FloatRange(min=0, min_open=True)

F = TypeVar("F", bound=Callable[..., Any])


def selection(function: F) -> F:
    """The arguments that choose a suite and contracts of it."""
    for decorate in (
        click.option("--tag", "tags", multiple=True, help="Only contracts with this tag."),
        click.option(
            "-s",
            "--suite",
            "file",
            type=click.Path(path_type=Path, dir_okay=False),
            help="The suite file; found in this folder or above where not given.",
        ),
        click.argument("names", nargs=-1, metavar="[CONTRACT]..."),
    ):
        function = decorate(function)
    return function


def size_options(function: F) -> F:
    """Settings of a run that the command line may change."""
    for decorate in (
        click.option("--baseline", help="The baseline to compare with, by identifier."),
        click.option(
            "--override", "overrides", multiple=True, help="Admit a major caveat, by its code."
        ),
        click.option("--concurrency", type=click.IntRange(1), help="Trials side by side."),
        click.option("--max-usd", type=_AMOUNT, help="Stop before spending more; keep everything."),
        click.option("--max-seconds", type=_AMOUNT, help="Stop after so long; keep everything."),
        click.option(
            "--rule", type=click.Choice(["wilson", "exact"]), help="The rule set to decide by."
        ),
        click.option(
            "--intent",
            type=click.Choice(["verification", "smoke"], case_sensitive=False),
            help="Evidence, or a cheap sentinel.",
        ),
        click.option("--seed", type=int, help="Of the issue order and of every trial."),
        click.option("--max-trials", type=click.IntRange(1), help="The most of an early decision."),
        click.option(
            "--trials", type=click.IntRange(1), help="A fixed number for every criterion."
        ),
    ):
        function = decorate(function)
    return function


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


def size_changes(contract: Contract, given: dict[str, Any]) -> Contract:
    """A contract whose criteria take the size of the command line, not their own."""
    if given.get("trials") is None and given.get("max_trials") is None:
        return contract
    return contract.with_criteria(
        [replace(one, trials=None, max_trials=None) for one in contract.criteria]
    )


def option_changes(options: RunOptions, given: dict[str, Any]) -> RunOptions:
    """A contract's options with what the command line says instead."""
    from trialwise.model.verdict import Intent

    changes: dict[str, Any] = {
        name: given[name]
        for name in ("seed", "rule", "concurrency", "baseline")
        if given.get(name) is not None
    }
    if given.get("intent"):
        changes["intent"] = Intent(given["intent"].upper())
    if given.get("overrides"):
        changes["overrides"] = (*options.overrides, *given["overrides"])
    # One of the two sizes replaces the other: the suite may have said either.
    if given.get("trials") is not None:
        changes |= {"trials": given["trials"], "max_trials": None}
    elif given.get("max_trials") is not None:
        changes |= {"max_trials": given["max_trials"], "trials": None}
    limits = {"usd": given.get("max_usd"), "seconds": given.get("max_seconds")}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    if limits:
        changes["budget"] = replace(options.budget, **limits)
    return replace(options, **changes)
