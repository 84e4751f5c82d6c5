"""Reading an agent's trace: counts from JSON that somebody else wrote.

Nothing here raises: what is missing or malformed is read as absent, except that every entry of
`tool_calls` is a call, so that a loop cannot hide in a malformed one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

#: Parts of one argument bag that are compared; beyond them two bags count as equal. A bound is
#: needed because a value that contains itself has no end.
_MAX_PARTS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceShape:
    """The counts the sub-scores are made of."""

    total_calls: int
    distinct_calls: int
    distinct_tools: int
    assistant_lengths: tuple[int, ...]
    """Unicode code points of each assistant turn."""
    tokens: float


def read_trace(envelope: object) -> TraceShape:
    """Count the calls, answers and tokens in the envelope of a trace."""
    trace = _fields(envelope)
    conversation = _fields(trace.get("conversation"))
    turns = [_fields(turn) for turn in _items(conversation.get("turns"))]
    keys = [_call_key(call) for call in _items(trace.get("tool_calls"))]
    return TraceShape(
        total_calls=len(keys),
        distinct_calls=len(set(keys)),
        distinct_tools=len({tool for tool, _ in keys}),
        assistant_lengths=tuple(
            len(_text(turn.get("content")))
            for turn in turns
            if _text(turn.get("role")) == "assistant"
        ),
        tokens=_tokens(_fields(conversation.get("tokens")).get("total")),
    )


def _call_key(call: object) -> tuple[str, str]:
    """What tells one tool from another, and what else tells one call from another."""
    fields = _fields(call)
    if not fields:
        return _canonical(call), ""
    args = fields.get("args")
    tool = _canonical([fields.get("name"), fields.get("server")])
    return tool, _canonical({} if args is None else args)


# The readers below meet foreign objects, which may fail in any way at all; then they tell nothing.


def _fields(value: object) -> dict[str, object]:
    return {key: member for key, member in _entries(value) or () if type(key) is str}


def _entries(value: object) -> list[tuple[object, object]] | None:
    try:
        return list(dict(value).items()) if isinstance(value, Mapping) else None
    except Exception:
        return None


def _items(value: object) -> list[object]:
    try:
        return list(value) if isinstance(value, list | tuple) else []
    except Exception:
        return []


def _text(value: object) -> str:
    try:
        return str.__str__(value) if isinstance(value, str) else ""
    except Exception:
        return ""


def _tokens(value: object) -> float:
    try:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        return float(number) if number > 0 else 0.0
    except OverflowError:  # too many for a double is still too many, not none
        return math.inf
    except Exception:
        return 0.0


def _canonical(value: object) -> str:
    """One text for equal JSON values and different texts for different ones.

    Every part is marked with its kind and its length or end, so that no two values are spelled
    alike. Without recursion: a trace may be nested deeper than the interpreter's stack.
    """
    parts: list[str] = []
    pending = [value]
    room = _MAX_PARTS
    while pending and room > 0:
        item = pending.pop()
        entries = _entries(item)
        if entries is not None:
            entries.sort(key=lambda entry: _scalar(entry[0]))
            parts.append(f"{{{len(entries)};")
            for key, member in entries:
                pending += (member, key)
            room -= 2 * len(entries)
        elif type(item) in (list, tuple):
            members = _items(item)
            parts.append(f"[{len(members)};")
            pending += reversed(members)
            room -= len(members)
        else:
            parts.append(_scalar(item))
    return "".join(parts)


def _scalar(value: object) -> str:
    try:
        return _spell_value(value)
    except Exception:
        return "o0;"


def _spell_value(value: object) -> str:
    match value:
        case None | bool():
            return f"{value};"
        case float() if not value.is_integer():
            return f"f{value.hex()};"
        case int() | float():
            return f"n{int(value):x};"
        case str():
            return f"s{len(value)};{str.__str__(value)}"
    # What JSON cannot spell, by its own text if its class has one, else by its class.
    kind = type(value)
    text = "" if kind.__repr__ is object.__repr__ else repr(value)
    return f"o{len(text)};{text}{kind.__module__}.{kind.__qualname__};"
