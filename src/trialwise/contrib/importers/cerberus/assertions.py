"""An assertion in JavaScript as postconditions that hold for the same replies.

An output that is a JSON object and any other output are looked at apart, because cerberus gives an
assertion an empty object for the latter. The two are put together again where they differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.contrib.importers.cerberus import javascript as js
from trialwise.contrib.importers.cerberus.conditions import Meaning
from trialwise.contrib.importers.cerberus.formulas import (
    FALSE,
    TRUE,
    Atom,
    Formula,
    Needs,
    Not,
    certain,
    every,
    needs_json,
    to_cel,
)
from trialwise.contrib.importers.cerberus.tokens import NotCarried
from trialwise.contrib.importers.cerberus.values import Report, Scope
from trialwise.errors import InvalidArgument

__all__ = ["Assertion", "read_assertion"]

_OBJECT: dict[str, Any] = {"json_schema": {"type": "object"}}
_NOT_OBJECT: dict[str, Any] = {
    "any_of": [{"not": {"parses": "json"}}, {"json_schema": {"not": {"type": "object"}}}]
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What an assertion asks of a reply."""

    postconditions: list[dict[str, Any]]
    """As a suite spells them; all have to hold."""
    notes: tuple[str, ...] = ()
    """Where the original counts or compares otherwise."""


def read_assertion(text: str, scenario: Mapping[str, Any]) -> Assertion:
    """The postconditions of an assertion.

    Args:
        text: The expression.
        scenario: What `scenario` stands for in it.

    Raises:
        NotCarried: A part of it has no counterpart.

    >>> read_assertion("output.meta.exitCode === 0 && output.parsed.n >= 3", {}).postconditions
    [{'exit_code': 0}, {'json_path': {'path': '$.n', 'minimum': 3}}]
    """
    report = Report()
    try:
        tree = js.parse_expression(text)
        on_object = _formulas(tree, Meaning(scenario, is_object=True), report)
        on_others = _formulas(tree, Meaning(scenario, is_object=False), Report())
    except RecursionError:
        raise NotCarried("the assertion is too involved", 0) from None
    postconditions = _together(on_object, on_others)
    if not postconditions:
        raise NotCarried("the assertion always holds: it says nothing about a reply", 0)
    if every(*on_object) == FALSE and every(*on_others) == FALSE:
        raise NotCarried("the assertion never holds: no reply could satisfy it", 0)
    for one in postconditions:
        _check(one)
    return Assertion(postconditions=postconditions, notes=tuple(sorted(report.notes)))


def _formulas(tree: js.Node, meaning: Meaning, report: Report) -> list[Formula]:
    """A formula for each part of the conjunction, in order."""
    scope = Scope(frozenset(), report)
    found: list[Formula] = []
    for part in _conjuncts(tree):
        found.append(meaning.condition(part, scope).formula)
        scope = scope.knowing(meaning.implied(part, True, scope))
    return found


def _conjuncts(tree: js.Node) -> list[js.Node]:
    if isinstance(tree, js.Binary) and tree.operator == "&&":
        return [*_conjuncts(tree.left), *_conjuncts(tree.right)]
    return [tree]


def _together(on_object: list[Formula], on_others: list[Formula]) -> list[dict[str, Any]]:
    one, other = every(*on_object), every(*on_others)
    if one == other and not needs_json(one):
        return _spelled(on_object)
    # What cannot hold without an object does not have to ask for one.
    is_asked = any(_needs_object(part) for part in on_object)
    objects = [*([] if is_asked else [_OBJECT]), *_spelled(on_object)]
    if other == FALSE:
        return objects
    others = _spelled(on_others)
    if one == FALSE:
        return [_NOT_OBJECT, *others]
    if other == certain(one, Needs.JSON) == certain(one, Needs.OBJECT):
        return _spelled(on_object)
    ways = [_all([_NOT_OBJECT, *others])] if others else _NOT_OBJECT["any_of"]
    return [{"any_of": [_all(objects), *ways]}]


def _needs_object(formula: Formula) -> bool:
    if isinstance(formula, Atom) and formula.needs:
        return True  # it looks for a key of the reply, which nothing but an object has
    return certain(formula, Needs.OBJECT) == FALSE


def _all(postconditions: list[dict[str, Any]]) -> dict[str, Any]:
    return postconditions[0] if len(postconditions) == 1 else {"all_of": postconditions}


def _spelled(formulas: list[Formula]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for formula in formulas:
        if formula == TRUE:
            continue
        one = _native(formula) or {"expression": to_cel(formula)}
        if one not in found:
            found.append(one)
    return found


def _native(formula: Formula) -> dict[str, Any] | None:
    if isinstance(formula, Atom):
        return formula.native
    if isinstance(formula, Not) and isinstance(formula.of, Atom):
        native = formula.of.native or {}
        if "contains" in native:
            return {"not_contains": native["contains"]}
    return None


def _check(postcondition: dict[str, Any]) -> None:
    """Refuse what comes out too long, too deep or otherwise beyond a postcondition's bounds."""
    from trialwise.checks.check_registry import from_spec

    try:
        from_spec(postcondition)
    except InvalidArgument as error:
        raise NotCarried(f"the assertion is too involved: it must {error.allowed}", 0) from None
