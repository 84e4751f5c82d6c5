"""The inputs of a contract: scalars, lists of them, and parts that are read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.contrib.importers.mavai.check_forms import Check, read_check
from trialwise.contrib.importers.mavai.file_roots import Roots
from trialwise.contrib.importers.yaml_mappings import Keys
from trialwise.declarations.written import Node
from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import Problems
from trialwise.suite.yaml_reading import plain

__all__ = ["Given", "Media", "read_inputs"]

MEDIA = ("image", "document", "audio", "file")
_PARTS = ("text", *MEDIA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A file that is handed over as it is."""

    kind: str
    path: str
    """As the contract names it."""
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One input, and what is expected of it alone."""

    parts: tuple[Any, ...]
    """One value; or several parts of a message, each a text or a file."""
    is_message: bool
    """Whether it is made of parts."""
    expected: tuple[Check, ...]
    node: Node

    @property
    def media(self) -> list[Media]:
        """The files among the parts."""
        return [part for part in self.parts if isinstance(part, Media)]


def read_inputs(
    keys: Keys, views: Mapping[str, str], roots: Roots, problems: Problems
) -> list[Given]:
    """The inputs that are sound.

    Args:
        keys: The contract's.
        views: Its views, by name.
        roots: Where its files are.
        problems: Where to say what is wrong.
    """
    nodes = keys.items("inputs", "a list of at least one input")
    found = [_read(node, views, roots, problems) for node in nodes]
    return [one for one in found if one is not None]


def _read(node: Node, views: Mapping[str, str], roots: Roots, problems: Problems) -> Given | None:
    if not node.is_mapping or not {"input", "expected"} & set(node.entries):
        return _value(node, roots, problems, expected=(), at=node)
    names = ("input", "expected")
    keys = Keys(node, problems, what="an input", known=names, required=names)
    if "input" not in keys or "expected" not in keys:
        return None
    expected = _read_expected(keys.at("expected"), views, problems)
    return _value(keys.at("input"), roots, problems, expected=expected, at=node)


def _read_expected(node: Node, views: Mapping[str, str], problems: Problems) -> tuple[Check, ...]:
    several = list(node.items()) if node.is_list else [node]
    if not several:
        problems.add(node, "`expected` must be a check, or a list of at least one")
    what = "what an input expects"
    read = [
        read_check(one, problems, views=views, what=what, without=("parses",)) for one in several
    ]
    return tuple(one for one in read if one is not None)


def _value(
    node: Node, roots: Roots, problems: Problems, *, expected: tuple[Check, ...], at: Node
) -> Given | None:
    items = list(node.items()) if node.is_list else [node]
    if not items or any(item.is_scalar and item.value is None for item in items):
        problems.add(node, f"an input must hold something, got {shown(node)}")
        return None
    if all(item.is_scalar for item in items):
        return Given(parts=(plain(node),), is_message=False, expected=expected, node=at)
    if not all(item.is_mapping for item in items):
        problems.add(node, "an input is a list of scalars, or a list of parts, not of both")
        return None
    parts = [_part(item, roots, problems) for item in items]
    if any(part is None for part in parts):
        return None
    return Given(parts=tuple(parts), is_message=True, expected=expected, node=at)


def _part(node: Node, roots: Roots, problems: Problems) -> str | Media | None:
    keys = Keys(node, problems, what="a part of an input", known=_PARTS)
    if len(node.entries) != 1:
        problems.add(node, f"a part of an input has one key, this has {len(node.entries)}")
    if len(node.entries) != 1 or not keys.entries:
        return None
    (kind,) = keys.entries
    value = keys.at(kind)
    if kind == "text":
        return _text(keys, value, roots)
    content = roots.bytes(value)
    return None if content is None else Media(kind=kind, path=str(value.value), content=content)


def _text(keys: Keys, value: Node, roots: Roots) -> str | None:
    if value.is_mapping:
        inner = Keys(value, keys.problems, what="`text`", known=("file",), required=("file",))
        return roots.text(inner.at("file")) if "file" in inner else None
    if isinstance(value.value, str):
        return value.value
    keys.refuse("text", f"`text` must be text or `{{file: path}}`, got {shown(value)}")
    return None
