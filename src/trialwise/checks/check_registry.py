"""How suite files spell the built-in postconditions.

    {contains: "555"}                                one argument, the short form
    {contains: {text: "555", ignore_case: true}}     several, by name
    {any_of: [{contains: a}, {not: {parses: json}}]} nested

A function of Python's is not in the table: only the reader of a suite can decide to import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from trialwise.checks.quoting import printable
from trialwise.errors import InvalidArgument
from trialwise.model.postcondition import Postcondition

__all__ = ["from_spec", "spellings", "to_spec"]


class _Entry(NamedTuple):
    """Where a constructor lives and what its short form may hold."""

    module: str
    function: str
    first: str | None = None
    """The parameter that the short form gives; None where every argument is named."""
    holds_objects: bool = False
    """Whether an object in the short form may be the value itself."""


_ENTRIES = {
    "equals": _Entry("equality", "equals", "expected", holds_objects=True),
    "contains": _Entry("texts", "contains", "text"),
    "not_contains": _Entry("texts", "not_contains", "text"),
    "starts_with": _Entry("texts", "starts_with", "text"),
    "ends_with": _Entry("texts", "ends_with", "text"),
    "as_expected": _Entry("expected_answers", "as_expected", "how"),
    "length": _Entry("texts", "length"),
    "matches": _Entry("patterns", "matches", "pattern"),
    "parses": _Entry("parsable", "parses", "format"),
    "numeric_range": _Entry("parsable", "numeric_range"),
    "json_schema": _Entry("json_schemas", "json_schema", "schema", holds_objects=True),
    "json_path": _Entry("json_paths", "json_path", "path"),
    "expression": _Entry("expressions", "expression", "source"),
    "tool_called": _Entry("tools", "tool_called", "tool"),
    "tool_not_called": _Entry("tools", "tool_not_called", "tool"),
    "tool_called_with": _Entry("tools", "tool_called_with", "tool"),
    "tools_in_order": _Entry("tools", "tools_in_order", "tools"),
    "tool_call_count": _Entry("tools", "tool_call_count"),
    "final_answer": _Entry("agents", "final_answer"),
    "max_turns": _Entry("agents", "max_turns", "turns"),
    "max_repeated_failures": _Entry("agents", "max_repeated_failures", "repeats"),
    "exit_code": _Entry("exit_codes", "exit_code", "code"),
    "max_tokens": _Entry("resources", "max_tokens", "tokens"),
    "max_cost": _Entry("resources", "max_cost", "usd"),
    "max_latency": _Entry("resources", "max_latency", "seconds"),
}
#: Those that hold other postconditions.
_COMBINED = ("all_of", "any_of", "not", "named")
#: Shorter words for the same arguments.
_ALIASES = {"min": "minimum", "max": "maximum", "name": "tool", "names": "tools"}
_MAX_NESTING = 50


def spellings() -> tuple[str, ...]:
    """Every name that a suite file may use for a built-in postcondition.

    >>> "json_schema" in spellings()
    True
    """
    return (*_ENTRIES, *_COMBINED)


def from_spec(spec: Mapping[str, Any]) -> Postcondition:
    """The postcondition that a suite file spells.

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


def to_spec(check: Postcondition) -> dict[str, Any]:
    """How a suite file spells a built-in postcondition; the opposite of `from_spec`.

    >>> from trialwise.checks.texts import length
    >>> to_spec(length(maximum=200))
    {'length': {'maximum': 200}}
    """
    from trialwise.checks.check_base import spelled

    return spelled(check)


def _build(spec: object, depth: int) -> Postcondition:
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InvalidArgument("postcondition", spec, "be an object of one name")
    if depth > _MAX_NESTING:
        raise InvalidArgument("postcondition", depth, f"nest at most {_MAX_NESTING} deep")
    ((name, argument),) = spec.items()
    if name in _COMBINED:
        return _combined(name, argument, depth + 1)
    if name == "python":
        allowed = "be built in; a Python function is imported by what reads the suite"
        raise InvalidArgument("postcondition", name, allowed)
    if not isinstance(name, str) or name not in _ENTRIES:
        raise InvalidArgument("postcondition", name, _unknown(name, spellings(), "a known name"))
    entry = _ENTRIES[name]
    function = getattr(import_module(f"trialwise.checks.{entry.module}"), entry.function)
    return _within(name, function, _arguments(name, entry, function, argument))


def _arguments(
    name: str, entry: _Entry, function: Callable[..., Any], argument: object
) -> dict[str, Any]:
    """The constructor's arguments, from the short form or the long one."""
    import inspect

    known = tuple(inspect.signature(function).parameters)
    if isinstance(argument, Mapping):
        given = {_alias(key, known): value for key, value in argument.items()}
        if not entry.holds_objects or (entry.first in given and set(given) <= set(known)):
            for key in argument:
                if _alias(key, known) not in known:
                    allowed = _unknown(key, known, f"one of {', '.join(known)}")
                    raise InvalidArgument(f"{name}: argument", key, allowed)
            if len(given) != len(argument):
                raise InvalidArgument(f"{name}: argument", list(argument), "be given once each")
            return given
    if entry.first is None:
        allowed = f"be an object of {', '.join(known)}"
        raise InvalidArgument(name, argument, allowed)
    return {entry.first: argument}


def _alias(key: object, known: tuple[str, ...]) -> str:
    word = str(key)
    return _ALIASES[word] if word not in known and _ALIASES.get(word) in known else word


def _within(name: str, function: Callable[..., Any], arguments: dict[str, Any]) -> Postcondition:
    """Call a constructor; its refusal names the postcondition, too."""
    try:
        check: Postcondition = function(**arguments)
    except InvalidArgument as error:
        where = f"{name}: {error.argument}"
        raise InvalidArgument(where, error.value, error.allowed) from None
    except TypeError as error:
        # An argument is missing, or of a type that not even a comparison takes.
        problem = printable(str(error))
        raise InvalidArgument(name, arguments, f"have fitting arguments ({problem})") from None
    return check


def _combined(name: str, argument: object, depth: int) -> Postcondition:
    from trialwise.checks import combine

    if name == "not":
        return combine.not_(_build(argument, depth))
    if name == "named":
        if not isinstance(argument, Mapping) or set(argument) != {"name", "check"}:
            raise InvalidArgument("named", argument, "be an object of name and check")
        arguments = {"name": argument["name"], "check": _build(argument["check"], depth)}
        return _within(name, combine.named, arguments)
    if not isinstance(argument, (list, tuple)) or not argument:
        raise InvalidArgument(name, argument, "be a list of at least one postcondition")
    parts = [_build(part, depth) for part in argument]
    return combine.all_of(*parts) if name == "all_of" else combine.any_of(*parts)


def _unknown(name: object, known: tuple[str, ...], otherwise: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(str(name), known, n=1)
    if not close:
        return f"be {otherwise}" if otherwise != "a known name" else f"be one of {', '.join(known)}"
    return f"be a known name (did you mean {close[0]!r}?)"
