"""Strict parsers with bounds: what a service wrote is hostile until it is read.

The standard parsers accept more than their formats allow (NaN and repeated keys in JSON,
underscores in numbers) and may be made to work for very long (nesting, aliases, entities). Here
each refusal is a `ValueError` whose text ends the sentence "the reply is not …".
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from trialwise.checks.quoting import label

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
        level = [child for node in level for child in _children(node)]
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
        with warnings.catch_warnings():
            # An anchor that is used twice is allowed, and the warning would quote the reply.
            warnings.simplefilter("ignore")
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
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"JSON with unique keys: {label(key)} is repeated")
            seen.add(key)
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


def _children(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


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
