"""Read and write checks as suite files spell them.

    {contains: "555"}                                one argument, the short form
    {contains: {text: "555", ignore_case: true}}     several, by name
    {any_of: [{contains: a}, {not: {parses: json}}]} nested

A function of Python's is not among them: only the reader of a suite can decide to import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.checks.check_base import Check, write_spec
from trialwise.checks.check_declarations import (
    COMBINING,
    CheckDeclaration,
    check_names,
    find_check,
    suggest,
)
from trialwise.errors import InvalidArgument

__all__ = ["from_spec", "spellings", "to_spec"]

_MAX_NESTING = 50


def spellings() -> tuple[str, ...]:
    """Every name that a suite file may use for a built-in check.

    >>> "json_schema" in spellings()
    True
    """
    return (*check_names(), *COMBINING)


def from_spec(spec: Mapping[str, Any]) -> Check:
    """The check that a suite file spells.

    Args:
        spec: One name with its argument, or with an object of its arguments. `min` and `max` stand
            for `minimum` and `maximum`.

    Raises:
        InvalidArgument: The name or an argument is unknown, or an argument is wrong.

    >>> from_spec({"contains": "555"}).name
    "contains '555'"
    >>> from_spec({"contians": "555"})
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: postcondition must be a known name (did you mean
    'contains'?), got 'contians'
    """
    return _build(spec, 0)


def to_spec(check: object) -> dict[str, Any]:
    """How a suite file spells a check; the opposite of `from_spec`.

    >>> from trialwise.checks.texts import length
    >>> to_spec(length(maximum=200))
    {'length': {'maximum': 200}}
    """
    return write_spec(check)


def _build(spec: object, depth: int) -> Check:
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InvalidArgument("postcondition", spec, "be an object of one name")
    if depth > _MAX_NESTING:
        raise InvalidArgument("postcondition", depth, f"nest at most {_MAX_NESTING} deep")
    ((name, argument),) = spec.items()
    if name in COMBINING:
        return _combine(name, argument, depth + 1)
    if name == "python":
        allowed = "be built in; a Python function is imported by what reads the suite"
        raise InvalidArgument("postcondition", name, allowed)
    declared = find_check(name) if isinstance(name, str) else None
    if declared is None:
        known = (*check_names(installed=True), *COMBINING)
        allowed = suggest(name, known, f"be one of {', '.join(known)}")
        raise InvalidArgument("postcondition", name, allowed)
    return declared.build(declared.collect(argument))


def _combine(name: str, argument: object, depth: int) -> Check:
    from trialwise.checks import combine

    if name == "not":
        return combine.not_(_build(argument, depth))
    if name == "named":
        if not isinstance(argument, Mapping) or set(argument) != {"name", "check"}:
            raise InvalidArgument("named", argument, "be an object of name and check")
        arguments = {"name": argument["name"], "check": _build(argument["check"], depth)}
        return CheckDeclaration(name, combine.named).build(arguments)
    if not isinstance(argument, (list, tuple)) or not argument:
        raise InvalidArgument(name, argument, "be a list of at least one postcondition")
    parts = [_build(part, depth) for part in argument]
    return combine.all_of(*parts) if name == "all_of" else combine.any_of(*parts)
