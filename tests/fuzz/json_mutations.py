"""Changes to JSON inside of any bytes: one value is replaced, removed, repeated or moved.

Flipped bytes rarely leave a document that is still JSON, so that they seldom get beyond the parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

#: What stands in for a value, whatever its type was.
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 5, 0.5, 1e300, 10**400, "", "x", "\ud800", "\x1b[2J\u202e", "NaN",
    [], {}, [[]], [None], {"a": None}, "2026-01-01T00:00:00", "9" * 5000, [1] * 50,
)  # fmt: skip


def mutate_json(data: bytes, random: Random) -> bytes | None:
    """Return the bytes with one value of their JSON changed; None where there is no JSON.

    Args:
        data: A document, a document after one byte that chooses its format, or JSON lines.
        random: Chooses what is changed, and how.
    """
    for before, text, after in _find_documents(data, random):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict | list) and document:
            _change(document, random)
            try:
                # Python writes no number of more than 4,300 digits as text.
                return before + json.dumps(document).encode() + after
            except (ValueError, RecursionError):
                return None
    return None


def _find_documents(data: bytes, random: Random) -> Iterator[tuple[bytes, bytes, bytes]]:
    yield b"", data, b""
    yield data[:1], data[1:], b""
    lines = data.split(b"\n")
    place = random.randrange(len(lines))
    before = b"".join(line + b"\n" for line in lines[:place])
    after = b"".join(b"\n" + line for line in lines[place + 1 :])
    yield before, lines[place], after
    first, mark, rest = data.partition(b"\0")  # a check and its reply
    yield b"", first, mark + rest


def _change(document: Any, random: Random) -> None:
    places = list(_list_places(document))
    part, key = random.choice(places)
    kind = random.randrange(6)
    if kind == 0:
        del part[key]
    elif kind == 1 and isinstance(part, list):
        part.append(part[key])
    elif kind == 2:
        other, name = random.choice(places)
        part[key] = json.loads(json.dumps(other[name]))
    elif kind == 3 and isinstance(part, dict):
        part[f"{key}x"] = part.pop(key)
    elif kind == 4 and type(part[key]) is int:
        part[key] = part[key] * random.choice((-1, 2, 1000)) + 1
    else:
        part[key] = random.choice(ODD)


def _list_places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each value as what holds it and its key or place there."""
    for key, one in list(part.items() if isinstance(part, dict) else enumerate(part)):
        yield part, key
        if isinstance(one, dict | list):
            yield from _list_places(one)
