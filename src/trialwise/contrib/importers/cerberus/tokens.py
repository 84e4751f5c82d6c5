"""The words of JavaScript expressions: names, values, patterns and operators, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["UNDEFINED", "WORD", "NotCarried", "Token", "tokens_of"]


class NotCarried(Exception):
    """A part of an expression that has no counterpart here.

    Args:
        reason: What it is, and what to write instead, if anything.
        at: Where in the expression, from 0.
    """

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class Undefined:
    """The type of `UNDEFINED`, JavaScript's value of what is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


@dataclass(frozen=True, slots=True)
class Token:
    """A word and where it begins."""

    kind: str
    text: str
    at: int
    value: Any = None


_SPACE = re.compile(r"(?:[\s\ufeff]|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(
    r"0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
)
WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_OPERATOR = re.compile(
    r"=>|\?\.(?!\d)|\?\?=?|===|!==|==|!=|<=|>=|&&=?|\|\|=?|\*\*|<<|>>>?|\+\+|--|\.\.\.|[-+*/%]=|"
    r"[-+*/%!<>?:,.()\[\]{}=&|^~;]"
)
_PATTERN = re.compile(r"/((?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([A-Za-z]*)")
_HEX = re.compile(r"u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_WORDS = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}


def tokens_of(text: str) -> list[Token]:
    """The words of a text, and one for its end."""
    tokens: list[Token] = []
    at = _skipped(text, 0)
    while at < len(text):
        token, end = _token(text, at, tokens[-1] if tokens else None)
        tokens.append(token)
        at = _skipped(text, end)
    return [*tokens, Token("end", "", len(text))]


def _skipped(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _token(text: str, at: int, last: Token | None) -> tuple[Token, int]:
    first = text[at]
    if first in "\"'`":
        value, end = _quoted(text, at)
        return Token("value", text[at:end], at, value), end
    if first == "/" and _may_begin(last) and (match := _PATTERN.match(text, at)):
        return Token("pattern", match[0], at, (match[1], match[2])), match.end()
    if match := _NUMBER.match(text, at):
        if WORD.match(text, match.end()):
            raise NotCarried(f"{text[at : match.end() + 1]!r} is no number that is read", at)
        return Token("value", match[0], at, _number(match[0])), match.end()
    if match := WORD.match(text, at):
        word = match[0]
        if word in _WORDS:
            return Token("value", word, at, _WORDS[word]), match.end()
        kind = "operator" if word in ("in", "typeof") else "word"
        return Token(kind, word, at), match.end()
    if match := _OPERATOR.match(text, at):
        return Token("operator", match[0], at), match.end()
    raise NotCarried(f"{first!r} is not read", at)


def _may_begin(last: Token | None) -> bool:
    return last is None or (last.kind == "operator" and last.text not in (")", "]", "}"))


def _number(text: str) -> float:
    if len(text) > 100:
        return float(text) if "x" not in text.lower() else float(int(text, 0))
    number: float = int(text, 0) if text[:2].lower() in ("0x", "0b", "0o") else float(text)
    # A whole number is shown without its point; JavaScript has one kind only.
    exact = number == int(number) and abs(number) < 2**53 if abs(number) < 1e300 else False
    return int(number) if exact else float(number)


def _quoted(text: str, at: int) -> tuple[str, int]:
    quote, end, parts = text[at], at + 1, []
    while end < len(text) and text[end] != quote:
        if text[end] == "\n" and quote != "`":
            break
        if text[end] == "$" and quote == "`" and text[end + 1 : end + 2] == "{":
            raise NotCarried("a text with `${…}` in it is not carried over", end)
        if text[end] == "\\":
            part, end = _escape(text, end + 1)
            parts.append(part)
        else:
            parts.append(text[end])
            end += 1
    if end >= len(text) or text[end] != quote:
        raise NotCarried("a text is not closed", at)
    value = "".join(parts)
    try:
        # Two halves of a pair, each escaped, are one character.
        value = value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotCarried("a text holds half a surrogate pair", at) from None
    return value, end + 1


def _escape(text: str, at: int) -> tuple[str, int]:
    if match := _HEX.match(text, at):
        code = int(match[1] or match[2] or match[3], 16)
        if code > 0x10FFFF:
            raise NotCarried("an escape names no character", at)
        return chr(code), match.end()
    letter = text[at : at + 1]
    is_nul = letter == "0" and not text[at + 1 : at + 2].isdigit()
    if letter in ("u", "x") or (letter.isdigit() and not is_nul):
        raise NotCarried("an escape is not read", at)
    return "" if letter == "\n" else _ESCAPES.get(letter, letter), at + 1
