"""Which contracts of suites somebody means, how they are to be run, and their plans.

The command line reads options and hands them down as `Selection` and `Changes`; what they do to
suites is the same for whoever selects.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trialwise.declarations.written import suggest_name
from trialwise.documents.printable import near
from trialwise.errors import DesignRefused, TrialwiseError

if TYPE_CHECKING:
    from trialwise.model import Contract, RunOptions
    from trialwise.runtime.preparing import PreparedRun
    from trialwise.runtime.workspace import Workspace
    from trialwise.suite import Suite, SuiteContract

#: Whether the name and the tags of a contract match.
Matcher = Callable[[Sequence[str]], bool]


class NothingSelected(TrialwiseError):
    """What was asked for is not there; nothing run is no PASS."""


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
    matcher, rest = _parse_joined(re.findall(r"\s*([()]|[^\s()]+)", text), ("or", "and"))
    if rest:
        raise BadExpression(f"`{rest[0]}` does not belong here: write `and` or `or` before it")
    return matcher


def _parse_joined(tokens: list[str], words: tuple[str, ...]) -> tuple[Matcher, list[str]]:
    """Read parts that the first word joins, each of which the others may join; return the rest."""
    if not words:
        return _parse_single(tokens)
    word, *inner = words
    parts: list[Matcher] = []
    while not parts or tokens[:1] == [word]:
        part, tokens = _parse_joined(tokens[1:] if parts else tokens, tuple(inner))
        parts.append(part)
    holds = any if word == "or" else all
    return (lambda names: holds(part(names) for part in parts)), tokens


def _parse_single(tokens: list[str]) -> tuple[Matcher, list[str]]:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise BadExpression("a word is missing" + (f" before `{tokens[0]}`" if tokens else ""))
    first, *rest = tokens
    if first == "not":
        inner, rest = _parse_single(rest)
        return (lambda names: not inner(names)), rest
    if first == "(":
        inner, rest = _parse_joined(rest, ("or", "and"))
        if rest[:1] != [")"]:
            raise BadExpression("a `)` is missing")
        return inner, rest[1:]
    word = first.lower()
    return (lambda names: any(word in name.lower() for name in names)), rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What stands instead of what a suite says about its runs."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `RunOptions`."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Budget`."""
    criteria: tuple[str, ...] = ()
    """The only criteria, without latency and gates; all where there are none."""
    inputs: tuple[str, ...] = ()
    """The only inputs."""

    def resize(self, chosen: Iterable[tuple[Suite, SuiteContract]]) -> list[Chosen]:
        """Return contracts with these sizes, options and criteria."""
        sized = [
            Chosen(suite, self._drop_sizes(one.contract), self._change_options(one.options))
            for suite, one in chosen
        ]
        return self._keep_criteria(sized)

    def _drop_sizes(self, contract: Contract) -> Contract:
        """Return the contract without sizes of criteria where a size was given for all of them."""
        if not {"trials", "max_trials"} & self.options.keys():
            return contract
        sized = [replace(one, trials=None, max_trials=None) for one in contract.criteria]
        return contract.with_criteria(sized)

    def _change_options(self, options: RunOptions) -> RunOptions:
        changes = dict(self.options)
        # Codes that are accepted add to those of the suite.
        if "overrides" in changes:
            changes["overrides"] = (*options.overrides, *changes["overrides"])
        # One of the two sizes replaces the other: the suite may have said either.
        if "trials" in changes:
            changes["max_trials"] = None
        elif "max_trials" in changes:
            changes["trials"] = None
        if self.limits:
            changes["budget"] = replace(options.budget, **self.limits)
        return replace(options, **changes)

    def _keep_criteria(self, chosen: list[Chosen]) -> list[Chosen]:
        """Return the contracts that have any of the criteria, with these alone."""
        if not self.criteria:
            return chosen
        known = list(dict.fromkeys(one.name for _, each, _ in chosen for one in each.criteria))
        for name in self.criteria:
            if name not in known:
                hint = suggest_name(name, known, f"there are: {', '.join(known)}", quote="'")
                raise NothingSelected(f"no chosen contract has a criterion {name!r}; {hint}")
        return [
            one._replace(contract=one.contract.with_only(self.criteria))
            for one in chosen
            if any(each.name in self.criteria for each in one.contract.criteria)
        ]

    def keep_inputs(self, chosen: list[Chosen]) -> list[Chosen]:
        """Return the contracts that have any of the inputs, tried on nothing else."""
        if not self.inputs:
            return chosen
        known = {
            one.id
            for _, contract, _ in chosen
            for sampling in contract.samplings.values()
            for one in sampling.inputs
        }
        for name in self.inputs:
            if name not in known:
                hint = suggest_name(name, sorted(known), quote="'")
                refusal = f"no chosen contract has the input {name!r}"
                raise NothingSelected(f"{refusal}; {hint}" if hint else f"{refusal}.")
        smaller = [(one, one.contract.with_only_inputs(self.inputs)) for one in chosen]
        return [one._replace(contract=contract) for one, contract in smaller if contract]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Suites, the contracts of them that are meant, and how they are run."""

    files: tuple[Path, ...] = ()
    """The suite files; the suite of this folder where there are none."""
    names: tuple[str, ...] = ()
    """Names of contracts; that of one with `models` stands for all of its cells."""
    tags: tuple[str, ...] = ()
    """A contract needs one of them."""
    expression: Matcher | None = None
    """Matches the name and the tags of a contract."""
    settings: tuple[str, ...] = ()
    """What stands instead of what the files say, as `key=value`."""
    changes: Changes = Changes()

    def load(self, *, without_services: bool = False, with_arms: bool = False) -> list[Suite]:
        """Load each of the suites once.

        Args:
            without_services: Whether something else will stand for what is under test.
            with_arms: Whether the arms of their contracts are built, too.
        """
        distinct = {path.absolute(): path for path in self.files}
        return [
            load(
                path, settings=self.settings, without_services=without_services, with_arms=with_arms
            )
            for path in distinct.values() or [None]
        ]

    def choose(self, suites: Sequence[Suite]) -> list[tuple[Suite, SuiteContract]]:
        """Choose the contracts that are meant.

        Raises:
            NothingSelected: There is none, or a name is that of none.
        """
        wanted = self._find_names(suites)
        there = [(suite, one) for suite in suites for one in suite.contracts]
        named = [(suite, one) for suite, one in there if not wanted or one.name in wanted]
        marks = set(self.tags)
        tagged = [(suite, one) for suite, one in named if not marks or marks & set(one.tags)]
        if not tagged:
            tags_there = sorted({tag for _, one in there for tag in one.tags})
            raise NothingSelected(
                f"no contract has the tag {', '.join(sorted(marks))}. "
                f"Tags in {_name_files(suites)}: {', '.join(tags_there) or 'none'}."
            )
        matches = self.expression
        chosen = [one for one in tagged if not matches or matches((one[1].name, *one[1].tags))]
        if not chosen:
            there_are = ", ".join(dict.fromkeys(one.name for _, one in tagged))
            raise NothingSelected(f"no contract matches -k. There are: {there_are}.")
        return chosen

    def _find_names(self, suites: Sequence[Suite]) -> set[str]:
        """Find the contracts that the names stand for."""
        cells: dict[str, set[str]] = {}
        for suite in suites:
            for name, held in _list_names(suite).items():
                cells.setdefault(name, set()).update(held)
        for name in self.names:
            if name not in cells:
                known = dict.fromkeys(one.name for suite in suites for one in suite.contracts)
                has = "has" if len(suites) == 1 else "have"
                hint = suggest_name(name, cells, f"there are: {', '.join(known)}", quote="'")
                where = _name_files(suites)
                raise NothingSelected(f"{where} {has} no contract {name!r}; {hint}")
        return {cell for name in self.names for cell in cells[name]}

    def choose_sized(self, suites: Sequence[Suite]) -> list[Chosen]:
        """Choose contracts with the changes of their sizes, options, criteria and inputs."""
        sized = self.changes.keep_inputs(self.changes.resize(self.choose(suites)))
        if len(sized) == 1:
            return sized
        from trialwise.procedures.families import size_families
        from trialwise.runtime.preparing import give_own_seed

        families = size_families([(contract, options) for _, contract, options in sized])
        return [
            one._replace(options=give_own_seed(options, one.contract))
            for one, options in zip(sized, families, strict=True)
        ]


def _name_files(suites: Sequence[Suite]) -> str:
    return " and ".join(str(suite.path) for suite in suites)


def _list_names(suite: Suite) -> dict[str, set[str]]:
    """List the contracts that each name stands for; one of their own goes before one of cells."""
    own = {one.name: {one.name} for one in suite.contracts}
    shared: dict[str, set[str]] = {}
    for one in suite.contracts:
        name = one.name.removesuffix(f" [{one.contract.factors.get('model')}]")
        shared.setdefault(name, set()).add(one.name)
    return shared | own


class Chosen(NamedTuple):
    """A contract to run, how, and the suite that it is from."""

    suite: Suite
    contract: Contract
    options: RunOptions


def load(
    file: Path | None,
    *,
    settings: Sequence[str] = (),
    without_services: bool = False,
    with_arms: bool = False,
) -> Suite:
    """Load the suite of a file, or the one that this folder belongs to.

    Args:
        file: The suite's, if one was named.
        settings: What stands instead of what the file says.
        without_services: Whether something else will stand for what is under test.
        with_arms: Whether the arms of its contracts are built, too.
    """
    from trialwise.suite import SuiteNotFound, find_suite, load_suite

    path = find_suite(Path.cwd()) if file is None else file
    if not path.exists():
        raise SuiteNotFound((), f"{path}: no such file")
    return load_suite(
        path,
        environment=os.environ,
        without_services=without_services,
        with_arms=with_arms,
        settings=settings,
    )


def name_suites(suites: Sequence[Suite]) -> str:
    """Name what reports call the suites: by the names of their folders."""
    return ", ".join(dict.fromkeys(one.folder.resolve().name for one in suites))


def prepare_chosen(suite: Suite, chosen: Sequence[Chosen], space: Workspace) -> list[PreparedRun]:
    """Plan the contracts that were chosen of a suite.

    Args:
        suite: Which one.
        chosen: The contracts of all suites.
        space: Where runs are kept.

    Raises:
        DesignRefused: With the place of each criterion that was refused.
    """
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
    of = (one for one in contracts if reason.startswith(f"{one.name}: "))
    one = contracts[0] if len(contracts) == 1 else next(of, contracts[0])
    about = reason.removeprefix(f"{one.name}: ")
    known = [name for name in one.places if about.startswith(f"{name}: ")]
    # A reason that is about a key begins with it; `--override` is one of `overrides`.
    keys = [name for name in one.places if name.startswith(".") and len(name) > 1]
    known += [name for name in keys if name[1:].rstrip("s") in about[:20].lower()]
    place = one.places[next(iter(known), ".")]
    if place.startswith("--"):  # an option of the command line, and no file
        return f"{place}: {reason}"
    file, _, line = place.rpartition(":")
    return f"{near(Path(file))}:{line}: {reason}"
