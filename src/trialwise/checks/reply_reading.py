"""How a check reads a reply: as text, as JSON, or as one number.

A reply that cannot be read so raises `Unreadable`, which the check turns into its failure.

The trace that a reply carries is read strictly where its calls are concerned.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, ValuesView
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from trialwise.checks.check_base import Unreadable, label, preview, shown
from trialwise.errors import InvalidArgument
from trialwise.model import FailReason, Reply, ToolCall, Trace
from trialwise.model.trace import MAX_CALLS

# Strict parsers with bounds: what a service wrote is hostile until it is read.
#
# The standard parsers accept more than their formats allow (NaN and repeated keys in JSON,
# underscores in numbers) and may be made to work for very long (nesting, aliases, entities). Here
# each refusal is a `ValueError` whose text ends the sentence "the reply is not …".

#: How deep a document may nest: far beyond what is written on purpose, far from the stack's end.
MAX_DEPTH = 200
#: How many values a document may hold once every alias is followed.
MAX_NODES = 1_000_000
#: The longest document of each kind, in characters.
MAX_LENGTH = {"json": 10_000_000, "xml": 10_000_000, "yaml": 100_000, "number": 1_000}
#: The parser takes about 60 µs for each value.
_MAX_YAML_NODES = 10_000

_BRACKETS = re.compile(r"[\[\]{}]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def parse_json(text: str) -> Any:
    """JSON by RFC 8259: no NaN, no repeated key, every number finite."""
    import json

    _check_length("json", text)
    try:
        # The hooks see every number and every object; the parser alone would take NaN and repeated
        # keys.
        value = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise ValueError(f"JSON nested at most {MAX_DEPTH} deep") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"JSON: {error.msg} at {where}{_fence(text)}") from None
    check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Refuse a structure that nests deeper or holds more than the bounds."""
    level: list[Any] = [value]
    nodes = 0
    for depth in range(MAX_DEPTH + 1):
        if depth == MAX_DEPTH and any(isinstance(node, (dict, list)) for node in level):
            break
        nodes += len(level)
        if nodes > MAX_NODES:
            raise ValueError(f"a document of at most {MAX_NODES} values")
        inner = [node.values() if isinstance(node, dict) else node for node in level]
        level = [one for each in inner if isinstance(each, (list, ValuesView)) for one in each]
        if not level:
            return
    raise ValueError(f"a document nested at most {MAX_DEPTH} deep")


def parse_yaml(text: str) -> Any:
    """One YAML 1.2 document of standard types, bounded once its aliases are followed."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    _check_length("yaml", text)
    try:
        if deep := _deep_beginning(text):
            with suppress(MarkedYAMLError):  # it may be cut in the middle of a text in quotes
                _check_events(YAML(typ="safe", pure=True).parse(deep))
        _check_events(YAML(typ="safe", pure=True).parse(text))
        # An anchor that is used twice is allowed, and the warning would quote the reply.
        with warnings.catch_warnings(action="ignore"):
            return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1} column {mark.column + 1}" if mark is not None else ""
        raise ValueError(f"YAML: {error.problem or error.context}{where}") from None
    except YAMLError as error:
        raise ValueError(f"YAML: {error}") from None
    except RecursionError:
        raise ValueError(f"YAML nested at most {MAX_DEPTH} deep") from None
    except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        # A scalar of a standard type that has no such value, such as the date 2001-99-99.
        if isinstance(error, _Bound):
            raise
        raise ValueError(f"YAML: {error}") from None


def parse_xml(text: str) -> None:
    """Well-formed XML with its namespaces, without entities of its own.

    Declared entities are refused outright: they are the only way to make a small document large
    (or to name a file), and then the answer does not depend on the limits of the expat at hand.
    """
    from xml.parsers.expat import ExpatError, ParserCreate

    _check_length("xml", text)
    parser = ParserCreate(namespace_separator=" ")
    # See "billion laughs": ten entities of ten entities are gigabytes.
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(text, True)
    except ExpatError as error:
        raise ValueError(f"XML: {error}{_fence(text)}") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"XML: half a surrogate pair at position {error.start}") from None


def parse_number(text: str) -> float:
    """One finite decimal number and nothing else but surrounding white space."""
    _check_length("number", text)
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        raise ValueError("a number")
    return _finite(stripped)


def _deep_beginning(text: str) -> str:
    """Return a text up to where its brackets nest too deeply, if they ever seem to.

    The parser reads all brackets that follow each other before it tells of the first one.
    """
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += 1 if found[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return text[: found.end()]
    return ""


class _Bound(ValueError):
    """A bound of ours, as opposed to a `ValueError` of a library."""


def _check_length(kind: str, text: str) -> None:
    if len(text) > MAX_LENGTH[kind]:
        raise _Bound(f"at most {MAX_LENGTH[kind]} characters long, it has {len(text)}")


def _fence(text: str) -> str:
    return " (it starts with a Markdown code fence)" if text.lstrip()[:3] == "```" else ""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"JSON with unique keys: {label(key)} is repeated")
        found[key] = value
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON: it has no {name}")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"a document of finite numbers: {label(digits)} is too large")
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"readable: it has a number of {len(digits)} digits") from None


def _refuse_entity(name: str, *_: object) -> None:
    raise ValueError(f"XML without entities of its own: it declares {label(name)}")


def _check_events(events: Iterable[Any]) -> None:
    """Follow nesting and aliases before anything is built: sizes as if each alias were a copy."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    total = documents = 0
    for event in events:
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            documents += 1
            if documents > 1:
                raise _Bound("one YAML document, it holds several")
        elif kind in ("SequenceStartEvent", "MappingStartEvent"):
            total += 1
            open_nodes.append((event.anchor, total))
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before + 1
        elif kind == "ScalarEvent":
            total += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif kind == "AliasEvent":
            if any(event.anchor == anchor for anchor, _ in open_nodes):
                raise _Bound(f"YAML that ends: {label(event.anchor)} contains itself")
            total += sizes.get(event.anchor, 1)
        if len(open_nodes) > MAX_DEPTH:
            raise _Bound(f"YAML nested at most {MAX_DEPTH} deep")
        if total > _MAX_YAML_NODES:
            raise _Bound(f"YAML of at most {_MAX_YAML_NODES} values once aliases are followed")


T = TypeVar("T")

#: How many names of a trace a failure shows.
_SHOWN = 8


def require_known(value: T | None, problem: str) -> T:
    """Return what a reply tells; what it does not tell, no check may pass on."""
    if value is None:
        # Unknown is not free: a service that tells nothing would pass every limit.
        raise Unreadable(problem, reason=FailReason.NO_VALUE)
    return value


def text_of(reply: Reply) -> str:
    """Return the reply's text; a reply of None has none."""
    value = reply.value
    if type(value) is str:
        return value
    require_known(value, "there is no reply")
    try:
        return reply.text
    except Exception as error:  # the value's own __str__ may raise anything
        problem = f"the reply, of type {type(value).__name__}, has no text"
        raise Unreadable(f"{problem}: {type(error).__name__}") from None


def json_of(reply: Reply) -> Any:
    """Return the reply as JSON: text is parsed, another value must be made of JSON's types."""
    if isinstance(reply.value, str):
        try:
            return parse_json(reply.value)
        except ValueError as error:
            raise Unreadable(f"the reply is not {error}", preview(reply.value)) from None
    try:
        return _copy(reply.value, MAX_DEPTH, count(1))
    except _NotJson as error:
        raise Unreadable(f"the reply is not JSON: {error}") from None


def expected_of(reply: Reply) -> Any:
    """Return what the trial's input expects; an input without it cannot be compared."""
    return require_known(reply.details.get("expected"), "the input has no expected answer")


def input_of(reply: Reply) -> Any:
    """Return the trial's input, which may be None."""
    if "input" not in reply.details:
        raise Unreadable("the trial's input is not known", reason=FailReason.NO_VALUE)
    return reply.details["input"]


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
        return _copy(value, MAX_DEPTH, count(1))
    except _NotJson as error:
        raise InvalidArgument(argument, value, f"be JSON ({error})") from None


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0 but not true, and the order of keys does not count."""
    # Python says that True == 1; JSON does not.
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


class _NotJson(Exception):
    """A Python value that JSON cannot hold."""


def _copy(value: object, depth: int, nodes: Iterator[int]) -> Any:
    """Return a Python value in JSON's types: its tuples as lists, and its mappings as dicts."""
    if next(nodes) > MAX_NODES:
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
    if not isinstance(value, Mapping):
        return [_copy(item, depth - 1, nodes) for item in value]
    if wrong := [key for key in value if not isinstance(key, str)]:
        raise _NotJson(f"a key of type {type(wrong[0]).__name__}")
    return {key: _copy(item, depth - 1, nodes) for key, item in value.items()}


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
        # `__` separates a server only behind the prefix of MCP; elsewhere it may be part of a name.
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
            raise Unreadable(
                f"the arguments of {label(self.name)} are not an object", shown(arguments)
            )
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
    require_known(calls, "the reply has no trace of tool calls")
    if not isinstance(calls, (list, tuple)):
        raise Unreadable("the trace of tool calls is not a list", shown(calls))
    omitted = envelope.get("omitted")
    unknown = envelope.get("calls_unknown")
    if unknown is None and isinstance(omitted, Mapping) and omitted.get("calls"):
        left = shown(omitted.get("calls"))
        unknown = f"it keeps {MAX_CALLS:,} calls, and {left} more were left out"
    # What is not shown may be just the call that is asked for: no evidence is no pass.
    if unknown is not None and not seen:
        told = f"the trace does not tell which tools were called: {unknown}"
        raise Unreadable(told, reason=FailReason.UNKNOWN)
    return [_call(index, call) for index, call in enumerate(calls)]


def trace_of(reply: Reply) -> Trace:
    """Return the whole trace, turns and answer included."""
    trace = Trace.of(reply) if "trace" in reply.details else None
    return require_known(trace, "the reply has no trace")


def _call(index: int, call: object) -> Call:
    if isinstance(call, Mapping):
        name, server = call.get("name"), call.get("server")
        if isinstance(name, str) and (server is None or isinstance(server, str)):
            ending = {key: call[key] for key in ("result", "error") if key in call}
            return Call(name, server, call.get("args", call.get("arguments")), ending)
    raise Unreadable(f"tool call {index + 1} has no name or is not an object", shown(call))


def names(calls: list[Call]) -> str:
    """Return the names of the calls as evidence."""
    if not calls:
        return "no tool was called"
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    return f"called: {', '.join(call.name for call in calls[:_SHOWN])}{more}"
