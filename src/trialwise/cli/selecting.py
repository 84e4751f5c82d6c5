"""Finding suites and choosing among their contracts: what `run`, `check` and `measure` share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from trialwise.cli.output_files import build_output_option
from trialwise.cli.plan.option_types import Written
from trialwise.declarations.amounts import describe_option, read_option
from trialwise.declarations.nearest_names import suggest_name
from trialwise.reports.formats import list_endings, match_format
from trialwise.run_options import OPTIONS

if TYPE_CHECKING:
    from trialwise.model.contract import Contract
    from trialwise.model.options import RunOptions
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite, SuiteContract


#: Whether the names of a contract match.
Matcher = Callable[[Sequence[str]], bool]
_TOKEN = r"\s*([()]|[^\s()]+)"


class BadExpression(ValueError):
    """A text is not an expression."""


def parse_expression(text: str) -> Matcher:
    """Return the function that says whether a contract's name and tags match.

    Args:
        text: Such as "support and not (slow or paid)".

    Raises:
        BadExpression: With what is missing.

    >>> matches = parse_expression("support and not slow")
    >>> matches(["Support-agent"]), matches(["support-agent", "slow"])
    (True, False)
    """
    tokens = re.findall(_TOKEN, text)
    matcher, rest = _parse_or(tokens)
    if rest:
        raise BadExpression(f"`{rest[0]}` does not belong here: write `and` or `or` before it")
    return matcher


def _parse_or(tokens: list[str]) -> tuple[Matcher, list[str]]:
    parts, rest = _parse_chain(tokens, "or", _parse_and)
    return (lambda names: any(part(names) for part in parts)), rest


def _parse_and(tokens: list[str]) -> tuple[Matcher, list[str]]:
    parts, rest = _parse_chain(tokens, "and", _parse_not)
    return (lambda names: all(part(names) for part in parts)), rest


def _parse_chain(
    tokens: list[str], word: str, parse: Callable[[list[str]], tuple[Matcher, list[str]]]
) -> tuple[list[Matcher], list[str]]:
    """Read parts that one word joins; return them and the tokens after the last one."""
    first, rest = parse(tokens)
    parts = [first]
    while rest and rest[0] == word:
        part, rest = parse(rest[1:])
        parts.append(part)
    return parts, rest


def _parse_not(tokens: list[str]) -> tuple[Matcher, list[str]]:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise BadExpression("a word is missing" + (f" before `{tokens[0]}`" if tokens else ""))
    first, *rest = tokens
    if first == "not":
        inner, rest = _parse_not(rest)
        return (lambda names: not inner(names)), rest
    if first == "(":
        inner, rest = _parse_or(rest)
        if rest[:1] != [")"]:
            raise BadExpression("a `)` is missing")
        return inner, rest[1:]
    word = first.lower()
    return (lambda names: any(word in name.lower() for name in names)), rest


F = TypeVar("F", bound=Callable[..., Any])


class Chosen(NamedTuple):
    """A contract to run, how, and the suite that it is from."""

    suite: Suite
    contract: Contract
    options: RunOptions


suite_option = click.option(
    "-s",
    "--suite",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The suite file. Default: trialwise.yaml in this folder or above.",
)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
output_option = build_output_option(
    match_format, list_endings(), "Write a report, by name or extension"
)


def selection(function: F) -> F:
    """Return the arguments that choose suites and contracts of them."""
    for decorate in (
        click.option("--tag", "tags", multiple=True, help="Only contracts with this tag."),
        click.option(
            "-k",
            "expression",
            metavar="EXPR",
            callback=_read_expression,
            help='Only contracts whose name or tag matches, as in "support and not slow".',
        ),
        click.option(
            "-s",
            "--suite",
            "files",
            multiple=True,
            type=click.Path(path_type=Path, dir_okay=False),
            help="A suite file; may be repeated. Default: trialwise.yaml in this folder or above.",
        ),
        click.argument("names", nargs=-1, metavar="[CONTRACT]..."),
    ):
        function = decorate(function)
    return function


criterion_option = click.option(
    "--criterion",
    "criteria",
    multiple=True,
    metavar="NAME",
    help="Only this criterion, without latency and gates; may be repeated.",
)


def _read_expression(_: click.Context, __: click.Parameter, text: str | None) -> Matcher | None:
    if text is None:
        return None
    try:
        return parse_expression(text)
    except BadExpression as error:
        raise click.BadParameter(f"{error}, in `{text}`") from None


def size_options(function: F) -> F:
    """Add an option for each setting of a run that the command line may change."""
    # Each criterion has its own confidence, and `inconclusive` is `--fail-on-inconclusive` here.
    return _add_options(function, leave_out=("confidence", "inconclusive"))


def pace_options(function: F) -> F:
    """Add the options of a run that decides nothing: its size, its pace and its limits."""
    return _add_options(function, leave_out=_DECIDING)


def pair_options(function: F) -> F:
    """Add the options of arms that take turns: their pace and their limits."""
    return _add_options(function, leave_out=("trials", *_DECIDING))


#: Options that only act on decisions.
_DECIDING = (
    *("confidence", "max-trials", "intent", "rule", "analysis", "override", "baseline"),
    *("horizon", "correction", "family", "family-size", "smoke-refuses", "inconclusive"),
)


def _add_options(function: F, *, leave_out: Sequence[str]) -> F:
    for name, _, kind, doc in reversed(OPTIONS):
        if name not in leave_out:
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


def load(file: Path | None, *, without_services: bool = False, with_arms: bool = False) -> Suite:
    """Load the suite of a file, or the one that this folder belongs to.

    Args:
        file: The suite's, if one was named.
        without_services: Whether something else will stand for what is under test.
        with_arms: Whether the arms of its contracts are built, too.
    """
    from trialwise.suite import SuiteNotFound, find_suite, load_suite

    path = find_suite(Path.cwd()) if file is None else file
    if not path.exists():
        raise SuiteNotFound((), f"{path}: no such file")
    return load_suite(
        path, environment=os.environ, without_services=without_services, with_arms=with_arms
    )


def load_all(
    files: Sequence[Path], *, without_services: bool = False, with_arms: bool = False
) -> list[Suite]:
    """Load the suites of several files, each once; the one of this folder where none is named.

    Args:
        files: Those that were named.
        without_services: Whether something else will stand for what is under test.
        with_arms: Whether the arms of their contracts are built, too.
    """
    distinct = {path.absolute(): path for path in files}
    return [
        load(path, without_services=without_services, with_arms=with_arms)
        for path in distinct.values() or [None]
    ]


def name_suites(suites: Sequence[Suite]) -> str:
    """Name what reports call the suites: by the names of their folders."""
    return ", ".join(dict.fromkeys(one.folder.resolve().name for one in suites))


def choose(
    suites: Sequence[Suite],
    names: Iterable[str],
    tags: Iterable[str],
    expression: Matcher | None = None,
) -> list[tuple[Suite, SuiteContract]]:
    """Choose the contracts of these names and tags; none is an error, since nothing run is no PASS.

    The name that a suite gives to a contract with `models` stands for all of its cells.

    Args:
        suites: In which to look for them.
        names: The names of contracts; all where there are none.
        tags: A contract needs one of them.
        expression: Matches the name and the tags of a contract.
    """
    wanted, marks = set[str](), set(tags)
    cells: dict[str, set[str]] = {}
    for suite in suites:
        for name, held in _by_name(suite).items():
            cells.setdefault(name, set()).update(held)
    there = [(suite, one) for suite in suites for one in suite.contracts]
    where = " and ".join(str(suite.path) for suite in suites)
    for name in names:
        if name not in cells:
            known = dict.fromkeys(one.name for _, one in there)
            has = "has" if len(suites) == 1 else "have"
            hint = suggest_name(name, cells, f"there are: {', '.join(known)}", quote="'")
            raise click.UsageError(f"{where} {has} no contract {name!r}; {hint}")
        wanted |= cells[name]
    named = [(suite, one) for suite, one in there if not wanted or one.name in wanted]
    tagged = [(suite, one) for suite, one in named if not marks or marks & set(one.tags)]
    if not tagged:
        tags_there = sorted({tag for _, one in there for tag in one.tags})
        raise click.UsageError(
            f"no contract has the tag {', '.join(sorted(marks))}. "
            f"Tags in {where}: {', '.join(tags_there) or 'none'}."
        )
    chosen = [
        (suite, one)
        for suite, one in tagged
        if expression is None or expression((one.name, *one.tags))
    ]
    if not chosen:
        there_are = ", ".join(dict.fromkeys(one.name for _, one in tagged))
        raise click.UsageError(f"no contract matches -k. There are: {there_are}.")
    return chosen


def _by_name(suite: Suite) -> dict[str, set[str]]:
    """Return the contracts that each name stands for; one of their own goes before one of cells."""
    own = {one.name: {one.name} for one in suite.contracts}
    shared: dict[str, set[str]] = {}
    for one in suite.contracts:
        name = one.name.removesuffix(f" [{one.contract.factors.get('model')}]")
        shared.setdefault(name, set()).add(one.name)
    return shared | own


def choose_sized(
    suites: Sequence[Suite], names: Iterable[str], tags: Iterable[str], given: dict[str, Any]
) -> list[Chosen]:
    """Choose contracts and their options, with the changes of the command line."""
    found = choose(suites, names, tags, given.get("expression"))
    sized = resize(found, given)
    sized = _keep_inputs(sized, given.get("inputs") or ())
    if len(sized) == 1:
        return sized
    from trialwise.procedures.planning.families import size_families
    from trialwise.runtime.preparing import give_own_seed

    families = size_families([(contract, options) for _, contract, options in sized])
    return [
        Chosen(suite, contract, give_own_seed(options, contract))
        for (suite, contract, _), options in zip(sized, families, strict=True)
    ]


def resize(chosen: Iterable[tuple[Suite, SuiteContract]], given: dict[str, Any]) -> list[Chosen]:
    """Return contracts with the sizes, options and criteria of the command line."""
    sized = [
        Chosen(suite, _change_size(one.contract, given), _change_options(one.options, given))
        for suite, one in chosen
    ]
    return _keep_criteria(sized, given.get("criteria") or ())


def prepare_chosen(suite: Suite, chosen: Sequence[Chosen], space: Workspace) -> list[PreparedRun]:
    """Plan the contracts that were chosen of a suite.

    Args:
        suite: Which one.
        chosen: The contracts of all suites.
        space: Where runs are kept.

    Raises:
        DesignRefused: With the place of each criterion that was refused.
    """
    from trialwise.errors import DesignRefused
    from trialwise.runtime.preparing import prepare_runs

    mine = [one for one in chosen if one.suite is suite]
    try:
        return prepare_runs([(one.contract, one.options) for one in mine], space)
    except DesignRefused as refused:
        named = {one.contract.name for one in mine}
        several = [one for one in suite.contracts if one.name in named]
        reasons = (_place(reason, several) for reason in refused.reasons)
        raise DesignRefused(tuple(reasons)) from None


def _place(reason: str, contracts: Sequence[SuiteContract]) -> str:
    """Return a reason with the place that it is about: a criterion, a key, or the contract."""
    from trialwise.cli.printing import near

    of = (one for one in contracts if reason.startswith(f"{one.name}: "))
    one = contracts[0] if len(contracts) == 1 else next(of, contracts[0])
    about = reason.removeprefix(f"{one.name}: ")
    known = [name for name in one.places if about.startswith(f"{name}: ")]
    # A reason that is about a key begins with it; `--override` is one of `overrides`.
    keys = [name for name in one.places if name.startswith(".") and len(name) > 1]
    known += [name for name in keys if name[1:].rstrip("s") in about[:20].lower()]
    file, _, line = one.places[next(iter(known), ".")].rpartition(":")
    return f"{near(Path(file))}:{line}: {reason}"


def _keep_criteria(chosen: list[Chosen], names: Sequence[str]) -> list[Chosen]:
    """Return the contracts with these criteria alone; those that have none of them are left out."""
    if not names:
        return chosen
    known = list(dict.fromkeys(one.name for _, each, _ in chosen for one in each.criteria))
    for name in names:
        if name not in known:
            hint = suggest_name(name, known, f"there are: {', '.join(known)}", quote="'")
            raise click.UsageError(f"no chosen contract has a criterion {name!r}; {hint}")
    return [
        Chosen(suite, contract.with_only(names), options)
        for suite, contract, options in chosen
        if any(one.name in names for one in contract.criteria)
    ]


def _keep_inputs(chosen: list[Chosen], inputs: Sequence[str]) -> list[Chosen]:
    """Return the contracts that have any of these inputs, tried on nothing else."""
    if not inputs:
        return chosen
    known = {
        one.id
        for _, contract, _ in chosen
        for sampling in contract.samplings.values()
        for one in sampling.inputs
    }
    for name in inputs:
        if name not in known:
            hint = suggest_name(name, sorted(known), quote="'")
            refusal = f"no chosen contract has the input {name!r}"
            raise click.UsageError(f"{refusal}; {hint}" if hint else f"{refusal}.")
    smaller = [(one, one.contract.with_only_inputs(inputs)) for one in chosen]
    return [one._replace(contract=contract) for one, contract in smaller if contract is not None]


def _change_size(contract: Contract, given: dict[str, Any]) -> Contract:
    """Return a contract whose criteria take the size of the command line, not their own."""
    if all(given.get(_parameter(size)) is None for size in ("trials", "max-trials")):
        return contract
    return contract.with_criteria(
        [replace(one, trials=None, max_trials=None) for one in contract.criteria]
    )


def _change_options(options: RunOptions, given: dict[str, Any]) -> RunOptions:
    """Return a contract's options with what the command line says instead."""
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
