"""JavaScript expressions as a tree: the part of the language that assertions are written in.

Parsed and never run. Statements, assignments and anything that makes objects is refused here, by
name and position; what an expression means is up to `conditions`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from trialwise.contrib.importers.cerberus.tokens import WORD, NotCarried, Token, tokens_of

__all__ = [
    "Array",
    "Arrow",
    "Binary",
    "Call",
    "Choice",
    "Group",
    "Literal",
    "Member",
    "Name",
    "Node",
    "Pattern",
    "Unary",
    "parse_expression",
]

#: The longest assertion that cerberus reads, and how deep one may nest here.
MAX_LENGTH = 10_000
MAX_DEPTH = 40
#: Operands of one operator; each is one level deeper for whoever walks the tree.
MAX_ROW = 60


@dataclass(frozen=True, slots=True)
class Node:
    """An expression and where it begins."""

    at: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A text, a number, true, false, null or undefined."""

    value: Any


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """A regular expression."""

    source: str
    flags: str


@dataclass(frozen=True, slots=True)
class Array(Node):
    """A list of expressions."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Member(Node):
    """`of.key`, `of?.key` or `of[key]`."""

    of: Node
    key: str | Node
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function with its arguments."""

    function: Node
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """An operator before its operand."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An operator between two operands, `&&`, `||` and `??` among them."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Choice(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Group(Node):
    """A chain with `?.` in parentheses, which end its short cut."""

    inside: Node


@dataclass(frozen=True, slots=True)
class Arrow(Node):
    """`parameter => body`."""

    parameter: str
    body: Node


_LEVELS = (
    ("??",),
    ("||",),
    ("&&",),
    ("===", "!==", "==", "!="),
    ("<", "<=", ">", ">=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_NOT_CARRIED = {
    "=": "an assignment",
    "{": "an object",
    "++": "an assignment",
    "--": "an assignment",
    ";": "a statement",
    "...": "a spread",
    "function": "a function",
    "new": "a constructor",
    "this": "`this`",
    "await": "`await`",
    "delete": "`delete`",
    "void": "`void`",
    "instanceof": "`instanceof`",
    "class": "a class",
    "&": "a bitwise operator",
    "|": "a bitwise operator",
    "^": "a bitwise operator",
    "~": "a bitwise operator",
    "<<": "a bitwise operator",
    ">>": "a bitwise operator",
    ">>>": "a bitwise operator",
    "**": "a power",
}


def parse_expression(text: str) -> Node:
    """The tree of an expression.

    Raises:
        NotCarried: It is no expression, or one of the parts that are not read.

    >>> parse_expression("output.meta.exitCode === 0")
    Binary(at=21, operator='===', left=Member(...), right=Literal(at=25, value=0))
    """
    if len(text) > MAX_LENGTH:
        raise NotCarried(f"an assertion has at most {MAX_LENGTH:,} characters", 0)
    parser = _Parser(tokens_of(text))
    tree = parser.expression()
    parser.end()
    return tree


class _Parser:
    """The tokens of an expression, taken one by one."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def end(self) -> None:
        """Nothing is left."""
        if self._token.kind != "end":
            raise self._refusal()

    def expression(self) -> Node:
        """A whole expression, commas excluded."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotCarried(f"an expression nests at most {MAX_DEPTH} deep", self._token.at)
        tree = self._arrow() if self._is_arrow() else self._choice(self._binary(0))
        self._depth -= 1
        return tree

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    def _peek(self, ahead: int) -> str:
        place = self._next + ahead
        return self._tokens[place].text if place < len(self._tokens) else ""

    def _take(self) -> Token:
        token = self._token
        self._next += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._token.kind == "operator" and self._token.text in texts

    def _expect(self, text: str) -> None:
        if not self._is(text):
            self._refuse(f"{text!r} is expected here")
        self._next += 1

    def _is_arrow(self) -> bool:
        if self._token.kind == "word":
            return self._peek(1) == "=>"
        return self._is("(") and self._peek(2) == ")" and self._peek(3) == "=>"

    def _arrow(self) -> Node:
        at = self._token.at
        has_parentheses = self._is("(")
        self._next += has_parentheses
        if self._token.kind != "word":
            self._refuse("a function of one parameter is expected here")
        parameter = self._take().text
        self._next += has_parentheses
        self._expect("=>")
        if self._is("{"):
            raise NotCarried("a function with a body in braces is not carried over", self._token.at)
        return Arrow(at, parameter, self.expression())

    def _choice(self, condition: Node) -> Node:
        if not self._is("?"):
            return condition
        at = self._take().at
        then = self.expression()
        self._expect(":")
        return Choice(at, condition, then, self.expression())

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        count = 0
        while self._is(*_LEVELS[level]):
            token = self._take()
            count += 1
            if count > MAX_ROW:
                raise NotCarried(f"more than {MAX_ROW} operators in a row", token.at)
            left = Binary(token.at, token.text, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        operators: list[Token] = []
        while self._is("!", "-", "+", "typeof"):
            operators.append(self._take())
            if len(operators) > MAX_DEPTH:
                raise NotCarried("too many operators in a row", operators[-1].at)
        tree = self._postfix(self._primary())
        for token in reversed(operators):
            tree = Unary(token.at, token.text, tree)
        return tree

    def _postfix(self, tree: Node) -> Node:
        links = 0
        while self._is(".", "?.", "[", "("):
            links += 1
            if links > MAX_DEPTH:
                raise NotCarried("too many members in a row", self._token.at)
            token = self._take()
            if token.text == "(":
                tree = Call(token.at, tree, self._arguments())
            elif token.text == "[":
                tree = Member(token.at, tree, self._key(), is_optional=False)
            elif token.text == "?." and self._is("["):
                self._next += 1
                tree = Member(token.at, tree, self._key(), is_optional=True)
            else:
                tree = Member(token.at, tree, self._name(), is_optional=token.text == "?.")
        return tree

    def _name(self) -> str:
        token = self._take()
        if not WORD.fullmatch(token.text):
            raise NotCarried("the name of a member is expected here", token.at)
        return token.text

    def _key(self) -> Node:
        key = self.expression()
        self._expect("]")
        return key

    def _arguments(self) -> tuple[Node, ...]:
        return self._list(")")

    def _list(self, closing: str) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._is(closing):
            if items:
                self._expect(",")
                if self._is(closing):
                    break
            items.append(self.expression())
        self._next += 1
        return tuple(items)

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "value":
            self._next += 1
            return Literal(token.at, token.value)
        if token.kind == "pattern":
            self._next += 1
            return Pattern(token.at, *token.value)
        if token.kind == "word" and token.text not in _NOT_CARRIED:
            self._next += 1
            return Name(token.at, token.text)
        if self._is("("):
            self._next += 1
            tree = self.expression()
            self._expect(")")
            return Group(token.at, tree) if _has_short_cut(tree) else tree
        if self._is("["):
            self._next += 1
            return Array(token.at, self._list("]"))
        raise self._refusal()

    def _refuse(self, expected: str) -> NoReturn:
        raise self._refusal(expected)

    def _refusal(self, expected: str = "an expression is expected here") -> NotCarried:
        token = self._token
        if token.text in _NOT_CARRIED and token.kind != "value":
            return NotCarried(f"{_NOT_CARRIED[token.text]} is not carried over", token.at)
        found = f", not {token.text!r}" if token.text else ""
        return NotCarried(f"{expected}{found}", token.at)


def _has_short_cut(tree: Node) -> bool:
    while isinstance(tree, Member | Call):
        if isinstance(tree, Member) and tree.is_optional:
            return True
        tree = tree.of if isinstance(tree, Member) else tree.function
    return False
