"""Read an object that somebody else wrote field by field: what is not of its kind is absent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from trialwise.model.reply import Usage

#: How APIs and SDKs name tokens.
_INPUT = (
    *("input_tokens", "prompt_tokens", "inputTokens", "promptTokens"),
    *("promptTokenCount", "prompt_token_count", "input", "prompt"),
)
_OUTPUT = (
    *("output_tokens", "completion_tokens", "outputTokens", "completionTokens"),
    *("candidatesTokenCount", "candidates_token_count", "output", "completion"),
)
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total")
#: Input tokens that Anthropic counts beside the others.
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
#: A larger number is not a count of tokens.
_MOST_TOKENS = 10**15


class Fields:
    """The fields of an object; those of anything else are none.

    Every method takes several names where a field has several, and reads the first that is there.

    >>> fields = Fields({"name": "find", "tokens": {"input": "12"}})
    >>> fields.text("tool", "name"), fields.inner("tokens").count("input"), fields.amount("cost")
    ('find', 12, None)
    """

    __slots__ = ("values",)

    def __init__(self, given: object) -> None:
        self.values: Mapping[str, Any] = given if isinstance(given, Mapping) else {}

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __bool__(self) -> bool:
        return bool(self.values)

    def get(self, *names: str) -> Any:
        """Return the value under the first of some names that is there; None without one."""
        return next((self.values[name] for name in names if name in self.values), None)

    def text(self, *names: str) -> str | None:
        """Return a text."""
        value = self.get(*names)
        return value if isinstance(value, str) else None

    def count(self, *names: str) -> int | None:
        """Return a count of tokens, also where it is written as text as OTLP does."""
        return read_count(self.get(*names))

    def amount(self, *names: str) -> float | None:
        """Return a finite number of at least 0."""
        return read_amount(self.get(*names))

    def items(self, *names: str) -> list[Any]:
        """Return what a list holds."""
        value = self.get(*names)
        return list(value) if isinstance(value, list | tuple) else []

    def inner(self, *names: str) -> Self:
        """Return the fields of an object within."""
        return type(self)(self.get(*names))

    def objects(self, *names: str) -> list[Self]:
        """Return the objects that a list holds; what else it holds is passed over."""
        return [type(self)(one) for one in self.items(*names) if isinstance(one, Mapping)]


def read_count(value: object) -> int | None:
    """Read a count of tokens, also from text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and 0 <= value <= _MOST_TOKENS:
        value = math.ceil(value)  # part of a token was paid for: unknown would look free
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def read_amount(value: object) -> float | None:
    """Read a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if 0 <= value < math.inf else None
    except OverflowError:
        return None


def read_usage(asked: int | None, answered: int | None) -> Usage | None:
    """Tokens in both directions, where both are known."""
    if asked is None or answered is None:
        return None
    return Usage(input_tokens=asked, output_tokens=answered)


def read_tokens(value: object) -> Usage | None:
    """Read tokens as one of the usual APIs reports them; a number alone is their sum.

    Tokens whose direction is unknown count as output.

    >>> read_tokens({"prompt_tokens": 12, "completion_tokens": 3})
    Usage(input_tokens=12, output_tokens=3)
    >>> read_tokens({"total": 3000}), read_tokens({"input": 5}) is None
    (Usage(input_tokens=0, output_tokens=3000), True)
    """
    fields = Fields(value)
    asked, answered = fields.count(*_INPUT), fields.count(*_OUTPUT)
    total = fields.count(*_TOTAL) if fields else read_count(value)
    if asked is not None:
        asked += sum(fields.count(name) or 0 for name in _CACHED)
    if total is not None and (asked is None or answered is None or total > asked + answered):
        return Usage(
            input_tokens=min(asked or 0, total), output_tokens=max(0, total - (asked or 0))
        )
    return read_usage(asked, answered)
