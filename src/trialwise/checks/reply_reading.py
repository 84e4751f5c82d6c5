"""How a check reads a reply: as text, as JSON, or as one number.

A reply that cannot be read so raises `Unreadable`, which the check turns into its failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trialwise.checks.check_base import Unreadable
from trialwise.checks.quoting import preview, shown
from trialwise.checks.strict_parsing import MAX_DEPTH, MAX_NODES, parse_json, parse_number
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason

__all__ = ["check_json", "expected_of", "json_of", "number_of", "same", "text_of"]


def text_of(reply: Reply) -> str:
    """The reply's text; a reply of None has none."""
    if reply.value is None:
        raise Unreadable("there is no reply", reason=FailReason.NO_VALUE)
    try:
        return reply.text
    except Exception as error:  # the value's own __str__ may raise anything
        raise Unreadable(
            f"the reply, of type {type(reply.value).__name__}, has no text: {type(error).__name__}"
        ) from None


def json_of(reply: Reply) -> Any:
    """The reply as JSON: text is parsed, another value must be made of JSON's types."""
    if isinstance(reply.value, str):
        try:
            return parse_json(reply.value)
        except ValueError as error:
            raise Unreadable(f"the reply is not {error}", preview(reply.value)) from None
    try:
        return _Copy().of(reply.value, MAX_DEPTH)
    except _NotJson as error:
        raise Unreadable(f"the reply is not JSON: {error}") from None


def expected_of(reply: Reply) -> Any:
    """What the trial's input expects; an input that expects nothing has nothing to compare with."""
    expected = reply.details.get("expected")
    if expected is None:
        raise Unreadable("the input has no expected answer", reason=FailReason.NO_VALUE)
    return expected


def number_of(reply: Reply) -> float:
    """The reply as one finite number."""
    value = reply.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise Unreadable("the reply is not a finite number", shown(value))
        return value
    text = text_of(reply)
    try:
        return parse_number(text)
    except ValueError as error:
        raise Unreadable(f"the reply is not {error}", preview(text)) from None


def check_json(argument: str, value: object) -> Any:
    """A copy of an argument made of JSON's types, or `InvalidArgument`."""
    try:
        return _Copy().of(value, MAX_DEPTH)
    except _NotJson as error:
        raise InvalidArgument(argument, value, f"be JSON ({error})") from None


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0 but not true, and the order of keys does not count."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


class _NotJson(Exception):
    """A Python value that JSON cannot hold."""


class _Copy:
    """One copy of a Python value in JSON's types, counting what it copied."""

    __slots__ = ("_nodes",)

    def __init__(self) -> None:
        self._nodes = 0

    def of(self, value: object, depth: int) -> Any:
        """The value, its tuples as lists and its mappings as dicts."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _NotJson(f"more than {MAX_NODES} values")
        if value is None or isinstance(value, (str, bool, int)):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _NotJson(f"{value} is not a number of JSON")
            return value
        if not isinstance(value, (Mapping, list, tuple)):
            raise _NotJson(f"a value of type {type(value).__name__}")
        if depth == 0:
            raise _NotJson(f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            return {_key(key): self.of(item, depth - 1) for key, item in value.items()}
        return [self.of(item, depth - 1) for item in value]


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise _NotJson(f"a key of type {type(key).__name__}")
    return key
