"""How a check reads a reply: as text, as JSON, or as one number.

A reply that cannot be read so raises `Unreadable`, which the check turns into its failure.

The trace that a reply carries is read strictly where its calls are concerned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.checks.check_base import Unreadable
from trialwise.checks.quoting import label, preview, shown
from trialwise.checks.strict_parsing import MAX_DEPTH, MAX_NODES, parse_json, parse_number
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trace import MAX_CALLS, ToolCall, Trace
from trialwise.model.trial import FailReason

#: How many names of a trace a failure shows.
_SHOWN = 8


def text_of(reply: Reply) -> str:
    """Return the reply's text; a reply of None has none."""
    value = reply.value
    if type(value) is str:
        return value
    if value is None:
        raise Unreadable("there is no reply", reason=FailReason.NO_VALUE)
    try:
        return reply.text
    except Exception as error:  # the value's own __str__ may raise anything
        raise Unreadable(
            f"the reply, of type {type(value).__name__}, has no text: {type(error).__name__}"
        ) from None


def json_of(reply: Reply) -> Any:
    """Return the reply as JSON: text is parsed, another value must be made of JSON's types."""
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
    """Return what the trial's input expects; an input without it cannot be compared."""
    expected = reply.details.get("expected")
    if expected is None:
        raise Unreadable("the input has no expected answer", reason=FailReason.NO_VALUE)
    return expected


def number_of(reply: Reply) -> float:
    """Return the reply as one finite number."""
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
    """Return a copy of an argument made of JSON's types, or `InvalidArgument`."""
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
        """Return the value, its tuples as lists and its mappings as dicts."""
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


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    name: str
    server: str | None
    given: Any
    ending: Mapping[str, Any]
    """Its `result` or its `error`, where the trace tells one."""

    @property
    def failed(self) -> bool | None:
        """Whether it ended in an error; None where the trace does not tell."""
        return ToolCall.from_dict(self.ending).failed

    @property
    def error(self) -> str:
        """What went wrong."""
        return ToolCall.from_dict(self.ending).error or ""

    def is_of(self, tool: str, server: str | None) -> bool:
        """Return whether it is a call of that tool, on that server if one is named.

        A namespace before the name is left aside: `functions.delete` and `mcp__files__delete` are
        calls of `delete`.
        """
        marks = (".", "/", ":", "__") if self.name.startswith("mcp__") else (".", "/", ":")
        is_named = self.name == tool or self.name.endswith(tuple(mark + tool for mark in marks))
        return is_named and (server is None or self.server == server)

    def arguments(self) -> Any:
        """Return the arguments as JSON; a call that shows none had none."""
        if self.given is None:
            return {}
        try:
            arguments = json_of(Reply(value=self.given))
        except Unreadable as error:
            problem = f"the arguments of {label(self.name)} cannot be read"
            raise Unreadable(problem, error.explanation) from None
        if not isinstance(arguments, dict):
            raise Unreadable(f"the arguments of {label(self.name)} are no object", shown(arguments))
        return arguments


def calls_of(reply: Reply, *, seen: bool = False) -> list[Call]:
    """Return the calls in order.

    Args:
        reply: What came back.
        seen: Return those that the trace shows, also where it may not show all.
    """
    carried = reply.details.get("trace")
    whole = carried.to_dict() if isinstance(carried, Trace) else carried
    envelope = whole if isinstance(whole, Mapping) else {}
    calls = reply.details.get("tool_calls", envelope.get("tool_calls"))
    if calls is None:
        raise Unreadable("the reply has no trace of tool calls", reason=FailReason.NO_VALUE)
    if not isinstance(calls, (list, tuple)):
        raise Unreadable("the trace of tool calls is no list", shown(calls))
    omitted = envelope.get("omitted")
    unknown = envelope.get("calls_unknown")
    if unknown is None and isinstance(omitted, Mapping) and omitted.get("calls"):
        left = shown(omitted.get("calls"))
        unknown = f"it keeps {MAX_CALLS:,} calls, and {left} more were left out"
    if unknown is not None and not seen:
        told = f"the trace does not tell which tools were called: {unknown}"
        raise Unreadable(told, reason=FailReason.UNKNOWN)
    return [_call(index, call) for index, call in enumerate(calls)]


def trace_of(reply: Reply) -> Trace:
    """Return the whole trace, turns and answer included."""
    trace = Trace.of(reply) if "trace" in reply.details else None
    if trace is None:
        raise Unreadable("the reply has no trace", reason=FailReason.NO_VALUE)
    return trace


def _call(index: int, call: object) -> Call:
    if isinstance(call, Mapping):
        name, server = call.get("name"), call.get("server")
        if isinstance(name, str) and (server is None or isinstance(server, str)):
            ending = {key: call[key] for key in ("result", "error") if key in call}
            return Call(name, server, call.get("args", call.get("arguments")), ending)
    raise Unreadable(f"tool call {index + 1} has no name or is no object", shown(call))


def names(calls: list[Call]) -> str:
    """Return the names of the calls as evidence."""
    if not calls:
        return "no tool was called"
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    return f"called: {', '.join(call.name for call in calls[:_SHOWN])}{more}"
