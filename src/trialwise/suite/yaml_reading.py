"""YAML 1.2 as nodes with places, bounded before it is built.

The library parses; the tree, the scalar types and the limits are ours. It would read dates, build
what aliases repeat without end, and forget where things stood.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from trialwise.declarations.written import Node
from trialwise.suite.suite_problems import Problems, Source

#: What a suite may be: inputs by the thousand belong into a file of their own.
MAX_BYTES = 1_000_000
#: Values, counted as if each alias were a copy.
MAX_NODES = 100_000
#: Levels, counted likewise.
MAX_DEPTH = 60
#: Nobody means a longer number, and Python refuses to read one of 4,300 digits.
_MAX_DIGITS = 100
_INTEGER = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_FLOAT = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
_NOT_FINITE = r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_TAGS = "tag:yaml.org,2002:"
#: What the library's messages mean for somebody who writes a suite.
_ADVICE = (
    ("'\\t'", "indent with spaces: YAML allows no tabs there"),
    ("mapping values are not allowed", "a text that holds `: ` needs quotes; or the indent is off"),
    ("cannot start any token", "a text that begins so needs quotes"),
    ("expected <block end>", "the indent is off, or quotes are missing"),
    ("expected ',' or", "a bracket or a comma is missing, or a text needs quotes"),
    ("could not find expected ':'", "a key needs `: ` after it"),
    ("unexpected end of stream", "a quote is not closed"),
)


def scalar_of(text: str) -> Any:
    """Return the value of a plain scalar by YAML 1.2's core schema: `no` is a text, `.5` a number.

    Raises:
        ValueError: A number that is not finite, or too long.

    >>> [scalar_of(text) for text in ("no", "~", "true", "0x1F", ".5", "2001-01-01")]
    ['no', None, True, 31, 0.5, '2001-01-01']
    """
    # Only these words of the core schema (YAML 1.2, 10.3.2): in YAML 1.1 the country code `no` is
    # false.
    if text in _WORDS:
        return _WORDS[text]
    # Most scalars are words, and need none of the expressions below.
    if text[0] not in "+-.0123456789":
        return text
    if re.fullmatch(_INTEGER, text):
        if len(text) > _MAX_DIGITS:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if re.fullmatch(_FLOAT, text):
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("a number too large for a double")
        return number
    if re.fullmatch(_NOT_FINITE, text):
        raise ValueError("no finite number")
    return text


def parse_yaml(source: Source, problems: Problems, *, room: int) -> tuple[Node | None, int]:
    """Parse the root of a file's one document, None where a problem prevents it, and its size.

    Args:
        source: The file.
        problems: Where to say what is wrong.
        room: The most values it may hold.
    """
    from ruamel.yaml import YAML

    tree = _Tree(source, problems, room)
    before = len(problems)
    try:
        for event in YAML(typ="safe", pure=True).parse(source.text):
            tree.take(event)
    except _Stop:
        return None, tree.values
    except Exception as error:  # the parser raises more than its own errors on odd bytes
        _add_parser_error(source, problems, error)
        return None, tree.values
    if tree.root is None and len(problems) == before:
        problems.add_at(source, 0, 0, "the file is empty")
    return tree.root, tree.values


class _Stop(Exception):
    """There is no use in reading on."""


class _Frame:
    """A list or mapping that is being read."""

    __slots__ = ("anchor", "before", "height", "is_mapping", "key", "merged", "node")

    def __init__(self, node: Node, *, is_mapping: bool, anchor: str | None, before: int) -> None:
        self.node = node
        self.is_mapping = is_mapping
        self.anchor = anchor
        self.before = before
        self.key: Node | None = None
        self.merged: list[Node] = []
        self.height = 1


class _Tree:
    """The document as far as it is read."""

    def __init__(self, source: Source, problems: Problems, room: int) -> None:
        self.root: Node | None = None
        self.values = 0
        self._source = source
        self._problems = problems
        self._room = room
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int, int]] = {}
        self._documents = 0

    def take(self, event: Any) -> None:
        """Grow by one event of the parser's."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._count(event, 1)
            self._add(self._scalar(event), event.anchor)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, is_mapping=kind == "MappingStartEvent")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)
        elif kind == "AliasEvent":
            self._alias(event)
        elif kind == "DocumentStartEvent":
            self._document(event)

    def _document(self, event: Any) -> None:
        self._documents += 1
        # Which of two documents is the suite nobody could say.
        if self._documents > 1:
            self._stop(event, "a second YAML document begins here: one file holds one suite")
        if event.version not in (None, (1, 2)):
            self._stop(event, "the file asks for another YAML: 1.2 is read")

    def _scalar(self, event: Any) -> Node:
        if not event.value.isascii():
            # JSON escapes a character such as an emoji as two halves.
            halves = event.value.encode("utf-16-le", "surrogatepass")
            event.value = halves.decode("utf-16-le", "surrogatepass")
        node = self._node(event, event.value)
        if not event.value.isascii() and re.search("[\ud800-\udfff]", event.value):
            self._problems.add(node, "a text cannot hold half a surrogate pair")
            return node
        tag = None if event.tag is None else str(event.tag)
        if tag is None:
            is_text = event.style not in (None, "")
        else:
            is_text = tag in ("!", _TAGS + "str")
            if not is_text and tag not in [_TAGS + one for one in ("int", "float", "bool", "null")]:
                self._problems.add(node, f"the tag {tag} is unknown: values need no tags here")
        if not is_text:
            try:
                node.value = scalar_of(event.value)
            except ValueError as error:
                self._problems.add(node, f"this is {error}; quote it if it is meant as text")
        return node

    def _open(self, event: Any, *, is_mapping: bool) -> None:
        if event.tag is not None and str(event.tag) not in (_TAGS + "map", _TAGS + "seq", "!"):
            self._stop(event, f"the tag {event.tag} is unknown: values need no tags here")
        # Everything that reads the tree walks it by recursion.
        if len(self._frames) >= MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} deep")
        # An alias to this node later costs as many values as are read until it is closed.
        before = self.values
        self._count(event, 1)
        node = self._node(event, {} if is_mapping else [])
        frame = _Frame(node, is_mapping=is_mapping, anchor=event.anchor, before=before)
        self._frames.append(frame)

    def _close(self, event: Any) -> None:
        frame = self._frames.pop()
        frame.node.end_line, frame.node.end_column = event.end_mark.line, event.end_mark.column
        # What stands in the mapping itself prevails over what `<<` brings in, as the merge key
        # says.
        for other in frame.merged:
            for name, entry in other.entries.items():
                frame.node.entries.setdefault(name, entry)
        self._add(frame.node, frame.anchor, self.values - frame.before, frame.height)

    def _alias(self, event: Any) -> None:
        name = event.anchor
        if any(frame.anchor == name for frame in self._frames):
            self._stop(event, f"`*{name}` stands within what it repeats")
        if name not in self._anchors:
            self._stop(event, f"`*{name}` repeats nothing: there is no `&{name}` before it")
        node, size, height = self._anchors[name]
        if len(self._frames) + height > MAX_DEPTH:
            self._stop(event, f"nested more than {MAX_DEPTH} deep once aliases are followed")
        # As if it were a copy: ten aliases of ten aliases are how a small file fills the memory.
        self._count(event, size)
        self._add(node, None, size, height)

    def _count(self, event: Any, size: int) -> None:
        self.values += size
        if self.values > self._room:
            self._stop(event, f"more than {MAX_NODES:,} values, once aliases are followed")

    def _add(self, node: Node, anchor: str | None, size: int = 1, height: int = 0) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, size, height)
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        frame.height = max(frame.height, height + 1)
        if not frame.is_mapping:
            frame.node.value.append(node)
        elif frame.key is None:
            frame.key = node
        else:
            self._entry(frame, frame.key, node)
            frame.key = None

    def _entry(self, frame: _Frame, key: Node, value: Node) -> None:
        if value.value is None and value.line != key.line:
            # Nothing has no place of its own; the parser would point at the next line.
            value = Node(None, key.source, (key.line, key.column), (key.end_line, key.end_column))
        name = key.value
        # `1: …` would be another key than `"1": …`, and JSON has none but text.
        if not isinstance(name, str):
            self._problems.add(key, "a key must be text: put quotes around it")
        elif name == "<<":
            self._merge(frame, value)
        # Most readers let the last one win, and one line of a suite would not count.
        elif name in frame.node.entries:
            first = frame.node.entries[name][0]
            self._problems.add(key, f"`{name}` is given twice, first on line {first.line + 1}")
        else:
            frame.node.entries[name] = (key, value)

    def _merge(self, frame: _Frame, value: Node) -> None:
        others = list(value.items()) if value.is_list else [value]
        for other in others:
            if other.is_mapping:
                frame.merged.append(other)
            else:
                self._problems.add(other, "`<<` takes in mappings, as in `<<: *defaults`")

    def _node(self, event: Any, value: Any) -> Node:
        start, end = event.start_mark, event.end_mark
        return Node(value, self._source, (start.line, start.column), (end.line, end.column))

    def _stop(self, event: Any, message: str) -> NoReturn:
        self._problems.add(self._node(event, None), message)
        raise _Stop


def _add_parser_error(source: Source, problems: Problems, error: Exception) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = str(getattr(error, "problem", None) or getattr(error, "context", None) or error)
    if mark is not None:
        line, column = mark.line, mark.column
    else:
        position = getattr(error, "position", 0)
        before = source.text[: position if isinstance(position, int) else 0]
        line, column = before.count("\n"), len(before) - before.rfind("\n") - 1
    # The messages of the library run over several lines.
    said = " ".join(said.split())[:200]
    advice = next((advice for words, advice in _ADVICE if words in said), "")
    message = f"this is not YAML: {said}"
    problems.add_at(source, line, column, f"{message} ({advice})" if advice else message)


def plain(node: Node) -> Any:
    """Return what a node says as JSON would, without its places."""
    if node.is_mapping:
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if node.is_list:
        return [plain(item) for item in node.items()]
    return node.value
