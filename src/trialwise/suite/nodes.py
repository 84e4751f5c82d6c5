"""What a YAML file says, each value with its place: the tree that everything else reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from trialwise.declarations.written import show_value as shown
from trialwise.suite.suite_problems import lines_of

__all__ = ["Entries", "Node", "Source", "plain", "shown", "shown_path"]


class Source:
    """A file that was read, kept for the lines that errors show."""

    __slots__ = ("_lines", "chain", "name", "path", "text")

    def __init__(self, path: Path, text: str, *, chain: tuple[Path, ...] = ()) -> None:
        self.path = path
        self.text = text
        self.name = shown_path(path)
        self.chain = chain
        """The files that include it, the suite first, then itself."""
        self._lines: list[str] | None = None

    def line(self, number: int) -> str:
        """A line, counted from 0; empty where there is none."""
        if self._lines is None:
            self._lines = lines_of(self.text)
        return self._lines[number] if 0 <= number < len(self._lines) else ""


class Node:
    """A value and where it stands; lines and columns count from 0."""

    __slots__ = ("column", "end_column", "end_line", "line", "source", "value")

    def __init__(
        self, value: Any, source: Source, start: tuple[int, int], end: tuple[int, int]
    ) -> None:
        self.value = value
        """A scalar, a list of nodes, or entries by key."""
        self.source = source
        self.line, self.column = start
        self.end_line, self.end_column = end

    @property
    def is_mapping(self) -> bool:
        """Whether it holds keys and values."""
        return type(self.value) is dict

    @property
    def is_list(self) -> bool:
        """Whether it holds items."""
        return type(self.value) is list

    @property
    def is_scalar(self) -> bool:
        """Whether it is one value."""
        return type(self.value) not in (dict, list)

    @property
    def entries(self) -> Entries:
        """The keys and values of a mapping."""
        entries: Entries = self.value
        return entries

    def items(self) -> Iterator[Node]:
        """The items of a list."""
        yield from self.value

    def __repr__(self) -> str:
        return f"Node({self.value!r} at {self.source.name}:{self.line + 1}:{self.column + 1})"


Entries: TypeAlias = dict[str, tuple[Node, Node]]
"""Key and value nodes of a mapping, by key, in order."""


def plain(node: Node) -> Any:
    """What a node says as JSON would, without its places."""
    if node.is_mapping:
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if node.is_list:
        return [plain(item) for item in node.items()]
    return node.value


def shown_path(path: Path) -> str:
    """A path as somebody in the folder at hand would write it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return str(path)
