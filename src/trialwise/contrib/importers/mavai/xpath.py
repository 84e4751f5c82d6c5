"""Location paths of XPath 1.0 over XML: the part of the language that contracts select with.

Names, `*`, `.`, `..`, `text()`, attributes, `//`, unions, and predicates by position, presence and
equality; `count(…)` and `string(…)` around a path. The standard library's own paths know neither
an absolute path nor an attribute as a result. Whatever else XPath has is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["XPath", "XPathProblem", "parse_xpath"]

_MAX_LENGTH = 1_000
#: Nodes that one path may visit; `//*//*//*` of a large document would not end.
_MAX_VISITED = 1_000_000
_NAME = r"[A-Za-z_][A-Za-z0-9_.-]*"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<text>\"[^\"]*\"|'[^']*')|(?P<name>{_NAME})|"
    r"(?P<sign>//|\.\.|::|!=|<=|>=|[/.@*\[\]()|=<>,+$:-]))"
)


class XPathProblem(ValueError):
    """An expression that is no XPath, or not of the part that is read."""


class _Document:
    """What stands above a document's root."""

    __slots__ = ("root",)

    def __init__(self, root: Element) -> None:
        self.root = root


@dataclass(frozen=True, slots=True)
class _Text:
    """A text node, or an attribute."""

    value: str
    parent: Element
    key: str | int
    """An attribute's name, or a text's place."""


_Node: TypeAlias = "Element | _Document | _Text"
_Step: TypeAlias = "Callable[[_Walk, _Node], Iterator[_Node]]"
_Predicate: TypeAlias = "Callable[[_Walk, _Node, int, int], bool]"


class _Walk:
    """One evaluation: who is whose parent, and how much was visited."""

    def __init__(self, root: Element) -> None:
        self.document = _Document(root)
        self.root = root
        self._parents: dict[int, Element] | None = None
        self._left = _MAX_VISITED

    def visit(self) -> None:
        """Count one node."""
        self._left -= 1
        if self._left < 0:
            raise XPathProblem("the path visits too many nodes")

    def parent(self, node: _Node) -> _Node | None:
        """What a node is in."""
        if isinstance(node, _Text):
            return node.parent
        if node is self.root or isinstance(node, _Document):
            # A document that was read has a root and nothing above it.
            return None
        if self._parents is None:
            self._parents = {id(child): one for one in self.root.iter() for child in one}
        return self._parents.get(id(node))


@dataclass(frozen=True, slots=True)
class XPath:
    """An expression that was read.

    >>> from xml.etree.ElementTree import fromstring
    >>> parse_xpath("/order/item[@id='2']/name").select(
    ...     fromstring("<order><item id='1'/><item id='2'><name>milk</name></item></order>")
    ... )
    ['milk']
    """

    source: str
    function: str
    """`count`, `string` or nothing."""
    paths: tuple[_Path, ...]

    def select(self, root: Element) -> list[str]:
        """The string values of what it selects, in document order."""
        walk = _Walk(root)
        found: dict[int, Element] = {}
        texts: dict[_Text, None] = {}
        for path in self.paths:
            for node in path.nodes(walk, root):
                if isinstance(node, _Text):
                    texts.setdefault(node)
                elif not isinstance(node, _Document):
                    found.setdefault(id(node), node)
        order = {id(one): place for place, one in enumerate(root.iter())}
        nodes = sorted(found.values(), key=lambda node: order.get(id(node), -1))
        values = [*map(_string, nodes), *map(_string, texts)]
        if self.function == "count":
            return [str(len(values))]
        return [values[0] if values else ""] if self.function == "string" else values


@dataclass(frozen=True, slots=True)
class _Path:
    """Steps from the document or from its root element."""

    is_absolute: bool
    steps: tuple[_Step, ...]

    def nodes(self, walk: _Walk, context: _Node) -> Iterator[_Node]:
        """What is selected from a node."""
        level: list[_Node] = [walk.document if self.is_absolute else context]
        for step in self.steps:
            found: dict[object, _Node] = {}
            for node in level:
                for one in step(walk, node):
                    walk.visit()
                    key = one if isinstance(one, _Text) else id(one)
                    found.setdefault(key, one)
            level = list(found.values())
        yield from level


def parse_xpath(source: str) -> XPath:
    """An expression, read.

    Raises:
        XPathProblem: It is not XPath, or not of the part that is read here.
    """
    if len(source) > _MAX_LENGTH:
        raise XPathProblem(f"an XPath has at most {_MAX_LENGTH} characters")
    return _Parser(source).whole()


class _Parser:
    """The tokens of an expression, taken one by one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens: list[tuple[str, str]] = []
        place = 0
        end = len(source.rstrip())
        while place < end:
            match = _TOKEN.match(source, place)
            if match is None:
                raise XPathProblem(f"{source[place : place + 10]!r} is not read")
            kind = match.lastgroup or ""
            self._tokens.append((kind, match[kind]))
            place = match.end()
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "")

    def _is(self, *signs: str) -> bool:
        kind, text = self._token
        return kind == "sign" and text in signs

    def _take(self) -> str:
        text = self._token[1]
        self._next += 1
        return text

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise XPathProblem(f"{sign!r} is expected, not {self._token[1] or 'the end'!r}")
        self._next += 1

    def whole(self) -> XPath:
        """The whole expression."""
        function = ""
        kind, text = self._token
        if kind == "name" and self._peek() == "(" and text not in ("text", "node"):
            if text not in ("count", "string"):
                raise XPathProblem(f"the function {text}() is not carried over")
            function = text
            self._next += 2
        paths = [self._path()]
        while self._is("|"):
            self._next += 1
            paths.append(self._path())
        if function:
            self._expect(")")
        if self._token[0] != "end":
            raise XPathProblem(f"{self._token[1]!r} is not carried over")
        return XPath(self._source, function, tuple(paths))

    def _peek(self) -> str:
        place = self._next + 1
        return self._tokens[place][1] if place < len(self._tokens) else ""

    def _path(self) -> _Path:
        self._depth += 1
        if self._depth > 20:
            raise XPathProblem("predicates nest too deeply")
        steps: list[_Step] = []
        is_absolute = self._is("/", "//")
        if is_absolute:
            if self._take() == "//":
                steps.append(_descendants)
            elif self._token[0] == "end" or self._is("|", ")", "]"):
                raise XPathProblem("the document itself is no value")
        steps += self._step()
        while self._is("/", "//"):
            if self._take() == "//":
                steps.append(_descendants)
            steps += self._step()
        self._depth -= 1
        return _Path(is_absolute, tuple(steps))

    def _step(self) -> list[_Step]:
        if self._is("."):
            self._next += 1
            return [_itself]
        if self._is(".."):
            self._next += 1
            return [_parent]
        is_attribute = self._is("@")
        self._next += is_attribute
        kind, text = self._token
        if kind != "name" and text != "*":
            raise XPathProblem(f"a step is expected, not {text or 'the end'!r}")
        self._next += 1
        if self._is("::", ":"):
            raise XPathProblem(f"{text}{self._token[1]} is not carried over")
        if self._is("("):
            if text not in ("text", "node") or is_attribute:
                raise XPathProblem(f"the function {text}() is not carried over")
            self._next += 1
            self._expect(")")
            step: _Step = _texts if text == "text" else _children
        else:
            step = _attributes(text) if is_attribute else _named(text)
        while self._is("["):
            step = _filtered(step, self._predicate())
        return [step]

    def _predicate(self) -> _Predicate:
        self._expect("[")
        kind, text = self._token
        if kind == "number":
            self._next += 1
            self._expect("]")
            return _at(float(text))
        if kind == "name" and self._peek() == "(" and text not in ("text", "node"):
            return self._position(text)
        path = self._path()
        if self._is("]"):
            self._next += 1
            return lambda walk, node, *_: any(True for _ in path.nodes(walk, node))
        if not self._is("=", "!="):
            raise XPathProblem(
                f"{self._token[1] or 'the end'!r} in a predicate is not carried over"
            )
        is_equal = self._take() == "="
        kind, text = self._token
        if kind != "text":
            # Readers of XPath 1.0 do not agree on what a number does there.
            raise XPathProblem("a predicate compares with a text only")
        self._next += 1
        self._expect("]")
        return _compares(path, text[1:-1], is_equal=is_equal)

    def _position(self, name: str) -> _Predicate:
        if name not in ("last", "position"):
            raise XPathProblem(f"the function {name}() is not carried over")
        self._next += 2
        self._expect(")")
        if name == "last":
            self._expect("]")
            return lambda _walk, _node, place, size: place == size
        self._expect("=")
        kind, text = self._token
        if kind != "number":
            raise XPathProblem("position() is compared with a number only")
        self._next += 1
        self._expect("]")
        return _at(float(text))


def _at(wanted: float) -> _Predicate:
    return lambda _walk, _node, place, _size: place == wanted


def _compares(path: _Path, wanted: str, *, is_equal: bool) -> _Predicate:
    def holds(walk: _Walk, node: _Node, _place: int, _size: int) -> bool:
        return any((_string(one) == wanted) is is_equal for one in path.nodes(walk, node))

    return holds


def _filtered(step: _Step, predicate: _Predicate) -> _Step:
    def kept(walk: _Walk, node: _Node) -> Iterator[_Node]:
        found = list(step(walk, node))
        for place, one in enumerate(found, start=1):
            walk.visit()
            if predicate(walk, one, place, len(found)):
                yield one

    return kept


def _elements(node: _Node) -> Iterator[Element]:
    if isinstance(node, _Document):
        yield node.root
    elif not isinstance(node, _Text):
        yield from node


def _named(name: str) -> _Step:
    def named(_walk: _Walk, node: _Node) -> Iterator[_Node]:
        return (one for one in _elements(node) if name in ("*", one.tag))

    return named


def _attributes(name: str) -> _Step:
    def attributes(_walk: _Walk, node: _Node) -> Iterator[_Node]:
        if isinstance(node, _Document | _Text):
            return
        for key, value in node.attrib.items():
            if name in ("*", key):
                yield _Text(value, node, key)

    return attributes


def _itself(_walk: _Walk, node: _Node) -> Iterator[_Node]:
    yield node


def _parent(walk: _Walk, node: _Node) -> Iterator[_Node]:
    parent = walk.parent(node)
    if parent is not None:
        yield parent


def _children(walk: _Walk, node: _Node) -> Iterator[_Node]:
    yield from _texts(walk, node)
    yield from _elements(node)


def _texts(_walk: _Walk, node: _Node) -> Iterator[_Node]:
    if isinstance(node, _Document | _Text):
        return
    if node.text:
        yield _Text(node.text, node, 0)
    for place, child in enumerate(node, start=1):
        if child.tail:
            yield _Text(child.tail, node, place)


def _descendants(walk: _Walk, node: _Node) -> Iterator[_Node]:
    waiting: list[_Node] = [node]
    while waiting:
        one = waiting.pop()
        walk.visit()
        yield one
        yield from _texts(walk, one)
        waiting += reversed(list(_elements(one)))


def _string(node: _Node) -> str:
    if isinstance(node, _Text):
        return node.value
    element = node.root if isinstance(node, _Document) else node
    return "".join(element.itertext())
