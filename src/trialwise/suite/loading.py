"""From a suite file to a suite: read, checked as a whole, refused with every reason at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trialwise.declarations.signatures import build_declared
from trialwise.declarations.structures import Fields
from trialwise.declarations.written import Node
from trialwise.errors import InvalidArgument
from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite.contract_building import Top, build_contract
from trialwise.suite.keys import COMPARE, SUITE
from trialwise.suite.loaded_suite import CompareSection, Redaction, Report, Suite, SuiteContract
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_problems import Source
from trialwise.suite.suite_services import build_preference
from trialwise.suite.yaml_reading import MAX_NODES, parse_yaml

_LARGEST = 1_000_000
_LINE = r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)"


def load_env_files(root: Node, context: Context) -> None:
    """Add the variables of the files that a suite names; those that are set already prevail.

    Services and the programs that they start read the process's own environment, so the variables
    are set there too, unless the suite is read with another one.

    Args:
        root: The suite.
        context: Takes the variables and the problems.
    """
    _, node = context.entries(root).get("env_file", (root, Node([])))
    for one in node.items() if node.is_list else [node]:
        if not isinstance(one.value, str):
            continue
        try:
            found = parse_env(read_text(context.file(one.value), limit=_LARGEST))
        except FileUnreadable as error:
            context.refuse(one, f"the file {error.reason}")
            continue
        # The programs that services start inherit it; a test that hands in variables must not leak.
        if context.variables is os.environ:
            for name, value in found.items():
                os.environ.setdefault(name, value)
        else:
            context.variables = {**found, **context.variables}


def parse_env(text: str) -> dict[str, str]:
    """Parse the variables of a file with `NAME=value` lines, comments and quotes.

    Raises:
        FileUnreadable: A line is none of these.

    >>> parse_env("# keys\\nexport KEY='sk 1'\\nMODEL=small # for tests")
    {'KEY': 'sk 1', 'MODEL': 'small'}
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.strip()
        if not plain or plain.startswith("#"):
            continue
        match = re.fullmatch(_LINE, plain)
        if match is None:
            raise FileUnreadable(f"has a line {number} that is not NAME=value")
        quoted = re.fullmatch(r"(['\"])(.*)\1\s*(?:#.*)?", match[2])
        bare = re.sub(r"(^|\s)#.*", "", match[2]).strip()
        found[match[1]] = quoted[2] if quoted else bare
    return found


#: Questions that mean nothing without a margin.
_NEED_MARGIN = ("not-worse", "equivalent")


def build_compare(fields: Any, context: Context) -> CompareSection:
    """Build the section; an empty one where the suite has none or a problem was reported."""
    if not isinstance(fields, Fields):
        return CompareSection()
    question = fields.get("question")
    if question in _NEED_MARGIN and "margin" not in fields.nodes:
        message = f"`question: {question}` needs a `margin`, such as `margin: 2%`"
        context.refuse(fields.at("question"), message)
    if question == "different" and "margin" in fields.nodes:
        message = "a `margin` belongs to `question: better`, `not-worse` or `equivalent`"
        context.refuse(fields.keys["margin"], message)
    if "trials" in fields.nodes and "max_trials" in fields.nodes:
        context.refuse(fields.keys["max_trials"], "`trials` fixes the number of pairs: keep one")
    made: CompareSection = build_declared(CompareSection, COMPARE.keys, fields, context)
    expected = fields.get("expect", ())
    return replace(
        made,
        # A rate that was refused is missing.
        expect=tuple(expected) if len(expected) == 2 else None,
        preference=build_preference(fields.get("preference"), context),
    )


def load_suite(
    path: Path,
    *,
    environment: Mapping[str, str],
    without_services: bool = False,
    with_arms: bool = False,
    settings: Sequence[str] = (),
) -> Suite:
    """Load the suite that a file describes.

    The functions it names are imported, the recordings and inputs it names are read, and nothing is
    called.

    Args:
        path: The suite file, such as `find_suite` finds it.
        environment: What `${NAME}` refers to, such as `os.environ`.
        without_services: Leave the contracts' services unmade, None in their place: where a
            recording is going to stand for them, neither their keys nor their libraries have to be
            there.
        with_arms: Also build the arms of the contracts, which only a comparison runs: a plain run
            must not need their keys and libraries.
        settings: What stands instead of what the file says, such as `rule=wilson` or
            `budget.money=2`: of every contract.

    Raises:
        SuiteError: Something is wrong with it; every problem is listed, each with its place.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "trialwise.yaml"
    >>> _ = path.write_text('''
    ... service: {command: [echo, "{input}"]}
    ... inputs: [What is 15 * 37?, Capital of Australia?]
    ... criteria:
    ...   - {name: answers, contains: "555", at_least: 90%}
    ... ''')
    >>> load_suite(path, environment={}).contracts[0].contract.criteria[0].at_least
    0.9
    """
    context = Context(path, environment, without_services=without_services, with_arms=with_arms)
    try:
        suite = _suite(context, settings)
    except RecursionError:
        # Each file is bounded; includes within includes add up.
        context.problems.add_at(Source(path, ""), 0, 0, "the suite nests too deeply")
        suite = None
    # An excerpt of the suite may show what a variable holds.
    context.problems.check(Redaction((), context.taken))
    assert suite is not None
    return suite


def _suite(context: Context, settings: Sequence[str]) -> Suite | None:
    root = context.root()
    if root is None:
        return None
    if root.is_mapping:
        load_env_files(root, context)
        for one in settings:
            _overlay_setting(one, root, context)
    fields = SUITE.read(root, "a suite", context)
    if not isinstance(fields, Fields):
        return None
    contracts = _contracts(fields, context)
    compare = build_compare(fields.get("compare"), context)
    patterns = _patterns(fields, context)
    # The stores and reports of a suite with mistakes are of no use to anybody.
    if len(context.problems):
        return None
    store = fields.get("store")
    folders = store.values if isinstance(store, Fields) else {}
    reports = fields.get("reports")
    return Suite(
        path=context.path,
        contracts=contracts,
        compare=compare,
        reports=tuple(
            Report(format=name, path=context.file(text))
            for name, text in (reports.values if isinstance(reports, Fields) else {}).items()
        ),
        runs_folder=context.file(folders.get("runs", ".trialwise")),
        baselines_folder=context.file(folders.get("baselines", "baselines")),
        redaction=Redaction(patterns, context.taken),
        files=tuple(context.files),
    )


def _overlay_setting(written: str, root: Node, context: Context) -> None:
    """Write a setting over the suite, as if its file said so; its place is the option.

    It stands at the top, which contracts share, and in each contract with a key of its own.
    """
    # A message about the value then points at the option, which is where somebody has to change it.
    source = Source(Path(f"--set {written}"), written, is_file=False)
    name, equals, value = written.partition("=")
    if not equals or not all(name.split(".")):
        message = "a setting is written as key=value, such as `rule=wilson` or `budget.money=2`"
        context.problems.add_at(source, 0, 0, message, length=len(written))
        return
    # Blanks where the key stands keep the columns of the value.
    shifted = Source(source.path, " " * (len(name) + 1) + value, is_file=False)
    node, _ = parse_yaml(shifted, context.problems, room=MAX_NODES)
    if node is None:
        return
    node.source = source
    first, *inner = name.split(".")
    contracts = context.entries(root).get("contracts")
    mappings = [*context.items(contracts[1])] if contracts and contracts[1].is_list else []
    for one in [root, *(each for each in mappings if each.is_mapping)]:
        if one is root or first in context.entries(one):
            _put(one, first, inner, node, context)


def _put(holder: Node, name: str, inner: Sequence[str], value: Node, context: Context) -> None:
    """Put a value under a key of a mapping, or under keys within it."""
    start, end = (0, 0), (0, value.column)
    key = Node(name, value.source, start, end)
    if inner:
        held = context.entries(holder).get(name)
        there = dict(context.entries(held[1])) if held and held[1].is_mapping else {}
        # A copy: what an alias repeats elsewhere stays as it is.
        within = Node(there, value.source, start, end)
        _put(within, inner[0], inner[1:], value, context)
        value = within
    holder.entries[name] = (key, value)


def _contracts(fields: Fields, context: Context) -> tuple[SuiteContract, ...]:
    top = Top(fields, context)
    if "contracts" in fields.nodes:
        for name in ("name", "description"):
            if name in fields.nodes:
                message = f"`{name}` belongs in each of the contracts if there are several"
                context.refuse(fields.keys[name], message)
        given: list[Fields | None] = fields.get("contracts", [])
    else:
        given = [None]
    found = [cell for one in given for cell in build_contract(one, top, context)]
    _check_names(found, context)
    return tuple(one for one, _ in found)


def _check_names(built: list[tuple[SuiteContract, Node]], context: Context) -> None:
    lines: dict[str, int] = {}
    for contract, node in built:
        if contract.name in lines:
            message = (
                f"the name `{contract.name}` is that of the contract on line "
                f"{lines[contract.name]} already: give this one a `name` of its own"
            )
            context.refuse(node, message)
        # The first one keeps the name: the message points from the second to it.
        lines.setdefault(contract.name, contract.line)


def _patterns(fields: Fields, context: Context) -> tuple[str, ...]:
    from trialwise.checks.texts import check_pattern

    if "redact" not in fields:
        return ()
    for node in context.items(fields.at("redact")):
        try:
            check_pattern("redact", node.value)
        except InvalidArgument as error:
            context.refuse(node, f"an item of `redact` must {error.allowed}")
    return tuple(fields["redact"])
