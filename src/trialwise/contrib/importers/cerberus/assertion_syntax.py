"""Read the JavaScript of an assertion: comparisons of member chains, joined by `&&`.

This is the part of the language that assertions use in practice, and not a parser of JavaScript.
Everything else is refused with its place.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

__all__ = [
    "UNDEFINED",
    "Chain",
    "Comparison",
    "Link",
    "Literal",
    "NotCarried",
    "Operand",
    "Pattern",
    "TypeOf",
    "parse_assertion",
]

#: The longest assertion that cerberus reads.
_MAX_LENGTH = 10_000
#: Parentheses inside parentheses.
_MAX_DEPTH = 20

_TOKEN = re.compile(
    r"""(?:[\s\ufeff])*(?:
    (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.)*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?(?![\w$]))
    |(?P<word>[A-Za-z_$][\w$]*)
    |(?P<sign>===|!==|==|!=|<=|>=|&&|\?\.(?!\d)|[-!<>.,()\[\]])
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_PATTERN = re.compile(r"[\s]*/((?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([A-Za-z]*)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_OPERATORS = ("===", "!==", "==", "!=", "<", "<=", ">", ">=")


class NotCarried(Exception):
    """A part of an assertion that is not converted.

    Args:
        reason: What it is.
        at: Where it stands in the assertion, from 0.
    """

    def __init__(self, reason: str, at: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class Undefined:
    """The type of `UNDEFINED`, JavaScript's value of what is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()
_VALUES = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a number, true, false, null, undefined, or a list of them."""

    at: int
    value: Any


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression."""

    at: int
    source: str
    flags: str


@dataclass(frozen=True, slots=True)
class Link:
    """One `.key`, `?.key`, `[key]` or call behind a name."""

    at: int
    key: str | int
    is_optional: bool = False
    arguments: tuple[Operand, ...] | None = None
    """The arguments of a call of this member, or None where it is not called."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A name, literal or pattern with its links, such as `output.meta.raw.includes("ok")`."""

    at: int
    of: str | Literal | Pattern
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class TypeOf:
    """`typeof chain`."""

    at: int
    chain: Operand


Operand: TypeAlias = Literal | Chain | TypeOf


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, or one operand alone, perhaps with `!` before it."""

    at: int
    """Where the operator stands, or else the operand."""
    left: Operand
    operator: str = ""
    right: Operand | None = None
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    value: Any = None


def parse_assertion(text: str) -> list[Comparison]:
    """Parse an assertion into the comparisons that all have to hold.

    Raises:
        NotCarried: It holds something else.

    >>> parse_assertion("output.meta.exitCode === 0")[0].operator
    '==='
    """
    if len(text) > _MAX_LENGTH:
        raise NotCarried(f"an assertion has at most {_MAX_LENGTH:,} characters", 0)
    parser = _Parser(_split(text))
    found = parser.conjunction()
    parser.expect_end()
    return found


def _split(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        last = tokens[-1] if tokens else None
        starts_operand = last is None or (last.kind == "sign" and last.text not in (")", "]"))
        match = (_PATTERN.match(text, at) if starts_operand else None) or _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            raise NotCarried(f"{text[place]!r} is not carried over", place)
        if match.re is _PATTERN:
            token = _Token("pattern", match[0], match.start(1) - 1, (match[1], match[2]))
        else:
            kind = match.lastgroup or ""
            token = _Token(kind, match[kind], match.start(kind))
        tokens.append(token)
        at = match.end()
    return [*tokens, _Token("end", "", len(text))]


class _Parser:
    """The tokens of an assertion, taken one by one."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        self._next += token.kind != "end"
        return token

    def _is(self, *signs: str) -> bool:
        return self._token.kind == "sign" and self._token.text in signs

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            self._refuse(f"{sign!r} is expected")
        self._next += 1

    def _refuse(self, expected: str) -> NoReturn:
        token = self._token
        found = f", and {token.text!r} is not carried over" if token.text else ""
        raise NotCarried(f"{expected} here{found}", token.at)

    def expect_end(self) -> None:
        """Refuse what follows the assertion."""
        if self._token.kind != "end":
            self._refuse("`&&` or the end is expected")

    def conjunction(self) -> list[Comparison]:
        """Comparisons that are joined by `&&`."""
        found = self._conjunct()
        while self._is("&&"):
            self._next += 1
            found += self._conjunct()
        return found

    def _conjunct(self) -> list[Comparison]:
        if self._is("("):
            self._open()
            inside = self.conjunction()
            self._close()
            return inside
        at = self._token.at
        is_negated = self._is("!")
        self._next += is_negated
        left = self._operand()
        if not is_negated and self._is(*_OPERATORS):
            sign = self._take()
            return [Comparison(sign.at, left, sign.text, self._operand())]
        return [Comparison(at, left, is_negated=is_negated)]

    def _operand(self) -> Operand:
        token = self._token
        if token.kind == "word" and token.text == "typeof":
            self._next += 1
            if self._token.text == "typeof":
                self._refuse("a value is expected")
            return TypeOf(token.at, self._operand())
        of = self._primary()
        links = self._links()
        if isinstance(of, Literal) and not links:
            return of
        return Chain(token.at, of, links)

    def _primary(self) -> str | Literal | Pattern:
        token = self._token
        if token.kind == "word" and token.text not in _VALUES:
            self._next += 1
            return token.text
        if token.kind == "pattern":
            self._next += 1
            return Pattern(token.at, *token.value)
        if self._is("["):
            return self._list()
        return self._literal()

    def _literal(self) -> Literal:
        token = self._token
        if self._is("-") and self._tokens[self._next + 1].kind == "number":
            self._next += 1
            return Literal(token.at, -self._literal().value)
        if token.kind == "number":
            number = float(token.text)
            if not math.isfinite(number):
                self._refuse("a number beyond a double is not carried over")
            # JavaScript has one kind of number; a whole one is shown without its point.
            is_whole = number == int(number) and abs(number) < 2**53
            value: Any = int(number) if is_whole else number
        elif token.kind == "text":
            value = _unescape(token)
        elif token.kind == "word" and token.text in _VALUES:
            value = _VALUES[token.text]
        else:
            self._refuse("a value is expected")
        self._next += 1
        return Literal(token.at, value)

    def _list(self) -> Literal:
        at = self._take().at
        items: list[Any] = []
        while not self._is("]"):
            if items:
                self._expect(",")
            items.append(self._literal().value)
        self._next += 1
        return Literal(at, items)

    def _links(self) -> tuple[Link, ...]:
        links: list[Link] = []
        while self._is(".", "?.", "["):
            sign = self._take()
            key: Any
            if sign.text == "[":
                key = self._literal().value
                if type(key) not in (str, int):
                    raise NotCarried("a key is a text or a whole number", sign.at)
                self._expect("]")
            elif self._token.kind == "word":
                key = self._take().text
            else:
                self._refuse("the name of a member is expected")
            arguments = self._arguments() if self._is("(") else None
            links.append(Link(sign.at, key, sign.text == "?.", arguments))
        if self._is("("):
            self._refuse("a value is expected")
        return tuple(links)

    def _arguments(self) -> tuple[Operand, ...]:
        self._open()
        arguments: list[Operand] = []
        while not self._is(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._operand())
        self._close()
        return tuple(arguments)

    def _open(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotCarried(f"parentheses nest at most {_MAX_DEPTH} deep", self._token.at)
        self._expect("(")

    def _close(self) -> None:
        self._depth -= 1
        self._expect(")")


def _unescape(token: _Token) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "ux" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code.isdigit() or code in "ux":
            raise NotCarried("this escape is not carried over", token.at)
        return _ESCAPES.get(code, code)

    text = _ESCAPE.sub(replace, token.text[1:-1])
    if any("\ud800" <= one <= "\udfff" for one in text):
        raise NotCarried("a character beyond 16 bits is written itself, not escaped", token.at)
    return text
