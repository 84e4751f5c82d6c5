"""Expressions that choose contracts by name: `-k "support and not slow"`.

A word matches a contract whose name or one of whose tags contains it. Words are combined with
`and`, `or`, `not` and parentheses, as in pytest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

#: Whether the names of a contract match.
Matcher = Callable[[Sequence[str]], bool]
_TOKEN = r"\s*([()]|[^\s()]+)"


class BadExpression(ValueError):
    """A text is not an expression."""


def parse_expression(text: str) -> Matcher:
    """Return the function that says whether a contract's name and tags match.

    Args:
        text: Such as "support and not (slow or paid)".

    Raises:
        BadExpression: With what is missing.

    >>> matches = parse_expression("support and not slow")
    >>> matches(["Support-agent"]), matches(["support-agent", "slow"])
    (True, False)
    """
    tokens = re.findall(_TOKEN, text)
    matcher, rest = _parse_or(tokens)
    if rest:
        raise BadExpression(f"`{rest[0]}` does not belong here: write `and` or `or` before it")
    return matcher


def _parse_or(tokens: list[str]) -> tuple[Matcher, list[str]]:
    parts, rest = _parse_chain(tokens, "or", _parse_and)
    return (lambda names: any(part(names) for part in parts)), rest


def _parse_and(tokens: list[str]) -> tuple[Matcher, list[str]]:
    parts, rest = _parse_chain(tokens, "and", _parse_not)
    return (lambda names: all(part(names) for part in parts)), rest


def _parse_chain(
    tokens: list[str], word: str, parse: Callable[[list[str]], tuple[Matcher, list[str]]]
) -> tuple[list[Matcher], list[str]]:
    """Read parts that one word joins; return them and the tokens after the last one."""
    first, rest = parse(tokens)
    parts = [first]
    while rest and rest[0] == word:
        part, rest = parse(rest[1:])
        parts.append(part)
    return parts, rest


def _parse_not(tokens: list[str]) -> tuple[Matcher, list[str]]:
    if not tokens or tokens[0] in ("and", "or", ")"):
        raise BadExpression("a word is missing" + (f" before `{tokens[0]}`" if tokens else ""))
    first, *rest = tokens
    if first == "not":
        inner, rest = _parse_not(rest)
        return (lambda names: not inner(names)), rest
    if first == "(":
        inner, rest = _parse_or(rest)
        if rest[:1] != [")"]:
            raise BadExpression("a `)` is missing")
        return inner, rest[1:]
    word = first.lower()
    return (lambda names: any(word in name.lower() for name in names)), rest
