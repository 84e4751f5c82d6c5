"""Read YAML of other tools with its places, and mappings key by key.

Apart from the suite file's own reader, whose keys may hold includes and references to the
environment: the text of another tool means what its characters say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trialwise.declarations.written import Node, suggest_name
from trialwise.declarations.written import show_value as shown
from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite.suite_problems import Problems, Source
from trialwise.suite.yaml_reading import MAX_BYTES, MAX_NODES, parse_yaml

__all__ = ["Keys", "is_number", "read_yaml", "read_yaml_text"]

_NONE: Mapping[str, str] = MappingProxyType({})


def read_yaml(path: Path, problems: Problems) -> Node | None:
    """Read the root of a file; None after a problem was reported."""
    try:
        text = read_text(path, limit=MAX_BYTES)
    except FileUnreadable as error:
        source = Source(path, error.text)
        problems.add_at(source, error.line, error.column, f"the file {error.reason}")
        return None
    return read_yaml_text(path, text, problems)


def read_yaml_text(path: Path, text: str, problems: Problems) -> Node | None:
    """Read the root of a text that stands in a file; None after a problem was reported."""
    root, _ = parse_yaml(Source(path, text), problems, room=MAX_NODES)
    return root


class Keys:
    """A mapping whose keys are all known; a wrong value is reported when it is read.

    A value that is missing or wrong is None.

    Args:
        node: The mapping.
        problems: Where to say what is wrong.
        what: How a message calls it, such as "a study".
        known: The keys it may have.
        required: Those it must have.
        gone: Keys with a reason of their own to refuse them.
    """

    def __init__(
        self,
        node: Node,
        problems: Problems,
        *,
        what: str,
        known: Sequence[str],
        required: Sequence[str] = (),
        gone: Mapping[str, str] = _NONE,
    ) -> None:
        self.node = node
        self.problems = problems
        self.what = what
        self.is_mapping = node.is_mapping
        entries = node.entries if self.is_mapping else {}
        if not self.is_mapping:
            problems.add(node, f"{what} must be a mapping, got {shown(node)}")
        for name, (key, _) in entries.items():
            if name in gone:
                problems.add(key, f"`{name}` {gone[name]}")
            elif name not in known:
                problems.add(key, f"unknown key `{name}` in {what}; {_hint(name, known)}")
        for name in required if self.is_mapping else ():
            if name not in entries:
                problems.add(node, f"{what} needs `{name}`")
        self.entries = {name: one for name, one in entries.items() if name in known}

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def at(self, key: str) -> Node:
        """The value of a key, or else the mapping."""
        return self.entries[key][1] if key in self.entries else self.node

    def line(self, key: str = "") -> int:
        """The line of a key, or else of the mapping, from 1."""
        return (self.entries[key][0].line if key in self.entries else self.node.line) + 1

    def refuse(self, key: str, message: str) -> None:
        """Say what is wrong with a key's value."""
        self.problems.add(self.at(key), message)

    def text(self, key: str, expected: str = "text", *, blank: bool = False) -> str | None:
        """Text; not empty unless it may be."""
        found: str | None = self._one(
            key, expected, lambda v: isinstance(v, str) and (blank or v != "")
        )
        return found

    def flag(self, key: str) -> bool | None:
        """True or false."""
        found: bool | None = self._one(key, "true or false", lambda v: isinstance(v, bool))
        return found

    def choice(self, key: str, *words: str) -> str | None:
        """One of some words."""
        expected = f"one of {', '.join(words)}"
        found: str | None = self._one(key, expected, lambda v: isinstance(v, str) and v in words)
        return found

    def whole(self, key: str, least: int, most: int | None = None) -> int | None:
        """A whole number within limits."""
        upper = f" and at most {most:,}" if most is not None else ""
        expected = f"a whole number of at least {least}{upper}"
        limit = math.inf if most is None else most
        found: int | None = self._one(
            key, expected, lambda v: type(v) is int and least <= v <= limit
        )
        return found

    def number(
        self, key: str, least: float, most: float, *, open_ends: bool = False
    ) -> float | None:
        """A number within limits."""
        if open_ends:
            expected = f"a number strictly between {least:g} and {most:g}"
            found = self._one(key, expected, lambda v: is_number(v) and least < v < most)
        else:
            expected = f"a number from {least:g} to {most:g}"
            found = self._one(key, expected, lambda v: is_number(v) and least <= v <= most)
        return None if found is None else float(found)

    def real(self, key: str) -> float | None:
        """Any number."""
        found = self._one(key, "a number", is_number)
        return None if found is None else float(found)

    def items(self, key: str, expected: str, *, least: int = 1) -> list[Node]:
        """The items of a list."""
        if key not in self.entries:
            return []
        node = self.at(key)
        if not node.is_list or len(node.value) < least:
            empty = "an empty list" if node.is_list else shown(node)
            self.refuse(key, f"`{key}` must be {expected}, got {empty}")
            return []
        return list(node.items())

    def _one(self, key: str, expected: str, fits: Any) -> Any:
        if key not in self.entries:
            return None
        node = self.at(key)
        if node.is_scalar and fits(node.value):
            return node.value
        if node.is_scalar and node.value is None:
            self.refuse(key, f"`{key}` has no value: it must be {expected}")
        else:
            self.refuse(key, f"`{key}` must be {expected}, got {shown(node)}")
        return None


def is_number(value: object) -> bool:
    """Whether a YAML value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hint(name: str, known: Sequence[str]) -> str:
    return suggest_name(name, known, f"known are {', '.join(known)}")
