"""Looking into documents that somebody else wrote: what is not of the expected kind is absent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from trialwise.errors import TrialwiseError

#: Bytes of a document; a longer one is refused before it is read.
MAX_BYTES = 2**26
# A tuple: what is looked for may be a list, which no set takes.
_TEXT_PARTS = ("text", "input_text", "output_text")


class TraceError(TrialwiseError):
    """A document is no trace, or not one of the format it was said to be."""


def parse(data: str | bytes | bytearray) -> Any:
    """The value of a JSON text, or the list of values of a text of JSON lines."""
    if len(data) > MAX_BYTES:
        raise TraceError(f"the trace has more than {MAX_BYTES:,} bytes; read its parts one by one")
    try:
        text = data.removeprefix("\ufeff") if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        hint = ""
        if not isinstance(data, str) and data.startswith(b"PK"):
            hint = "; it is an archive: write an Inspect AI log as JSON with `inspect log convert`"
        raise TraceError(f"the trace is not UTF-8 text ({error.reason}){hint}") from None
    if not text.strip():
        raise TraceError("the trace is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            is_path = text.strip().endswith((".json", ".jsonl"))
            hint = "; a file is given as a pathlib.Path" if is_path else ""
            raise TraceError(f"the trace is not JSON: {error}{hint}") from None
    return [_line(number, line) for number, line in lines]


def _line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"line {number} of the trace is not JSON: {error}") from None


def mapping(value: object) -> Mapping[str, Any]:
    """A mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The mappings of a list."""
    return [item for item in items(value) if isinstance(item, Mapping)]


def calls(value: object) -> list[Mapping[str, Any]]:
    """What stands where a message tells its calls: something else there may be any call.

    >>> calls(None), calls([{"name": "find"}, "book"]), calls("book")
    ([], [{'name': 'find'}, {}], [{}])
    """
    if value is None:
        return []
    return [mapping(one) for one in value] if isinstance(value, list) else [{}]


def text(value: object) -> str | None:
    """A text, or None."""
    return value if isinstance(value, str) else None


def content(value: object) -> str:
    """The text of a message: a text, or the texts among its parts.

    >>> content([{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}])
    'ab'
    """
    if isinstance(value, str):
        return value
    parts = (one for one in mappings(value) if one.get("type", "text") in _TEXT_PARTS)
    return "".join(text(one.get("text", one.get("content"))) or "" for one in parts)


def said(value: object) -> str | None:
    """What a tool returned, as text: its texts, or else JSON.

    >>> said([{"type": "text", "text": "sunny"}]), said({"high": 75}), said(None)
    ('sunny', '{"high": 75}', None)
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and value and all("type" in mapping(one) for one in value):
        return content(value)
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(type(value).__name__)


def arguments(value: object) -> Any:
    """Arguments of a call: JSON text is parsed, and what is none stays as it was sent.

    >>> arguments('{"q": 1}'), arguments('{"q": '), arguments("")
    ({'q': 1}, '{"q": ', {})
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def count(value: object) -> int | None:
    """A count of tokens, also where it is written as text as OTLP does."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value < 10**15 else None


def amount(value: object) -> float | None:
    """A finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if 0 <= value < math.inf else None
    except OverflowError:
        return None


def moment(value: object) -> float | None:
    """A point in time, in seconds: a number, or a date as ISO 8601 writes it.

    >>> moment("1970-01-01T00:01:00Z"), moment(2.5), moment("soon")
    (60.0, 2.5, None)
    """
    from datetime import UTC, datetime

    if not isinstance(value, str):
        return amount(value)
    try:
        date = datetime.fromisoformat(value)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
