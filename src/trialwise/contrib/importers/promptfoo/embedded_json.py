"""The check that a reply contains a JSON object, as promptfoo's `contains-json` asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trialwise.checks.whole_reply import check_schema, find_problem

__all__ = ["contains_json"]

#: promptfoo looks at this many characters of one object.
_LONGEST = 100_000
#: Objects that are tried in one reply; a reply of braces alone would take for ever.
_MOST = 1_000


def contains_json(schema: Mapping[str, Any] | None = None) -> Callable[[str], bool]:
    """Return a check that passes a text with a JSON object in it, valid under a schema if given.

    >>> contains_json({"required": ["a"]})('Here: {"a": 1}. Done.')
    True
    """
    source = None if schema is None else check_schema("schema", dict(schema))

    def check_text(text: str) -> bool:
        objects = _find_objects(text)
        if source is None:
            return next(objects, None) is not None
        return any(find_problem(source, one) == ("", "") for one in objects)

    check_text.__name__ = "contains_json"
    return check_text


def _find_objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects in a text, from left to right, none within another."""
    decoder = json.JSONDecoder()
    place, tried = text.find("{"), 0
    while place >= 0 and tried < _MOST:
        tried += 1
        try:
            found, end = decoder.raw_decode(text[place : place + _LONGEST])
        except (ValueError, RecursionError):
            place = text.find("{", place + 1)
            continue
        yield found
        place = text.find("{", place + end)
