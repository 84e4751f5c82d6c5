"""The model's nouns from the fields of a suite; what the model refuses is put where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from trialwise.declarations.structures import Fields
from trialwise.declarations.written import Invalid, Reader, show_value
from trialwise.errors import InvalidArgument

__all__ = ["make_model", "make_part"]

T = TypeVar("T")

#: What the model calls a field, where the suite's key is another word.
_KEYS = {
    "contract_ref": "ref",
    "category": "class",
    "rate_per_s": "rate",
    "timeout_s": "timeout",
    "population_name": "name",
    "seconds": "time",
    "usd": "money",
    "to_fail": "to",
    "window_hours": "window",
}

#: Where a field stands that is none of the contract's own.
_WITHIN = {"expected": ("inputs", "samplings")}


def make_model(build: Callable[[], T], fields: Fields, context: Reader) -> T | Invalid:
    """What the model makes of some fields, or `INVALID` once its refusal is reported."""
    try:
        return build()
    except InvalidArgument as error:
        key = _KEYS.get(error.argument, error.argument)
        node = fields.at(key)
        for outer in _WITHIN.get(key, ()):
            if outer in fields.nodes:
                return context.refuse(fields.at(outer), f"`{key}` must {error.allowed}")
        if node is fields.node:
            return context.refuse(node, f"{error.argument} must {error.allowed}")
        return context.refuse(node, f"`{key}` must {error.allowed}, got {show_value(node)}")


def make_part(
    fields: Fields, name: str, build: Callable[[Fields], T], default: T, context: Reader
) -> T | Invalid:
    """What the model makes of a mapping within others; the default where there is none.

    One that is not sound was reported when it was read; the default stands in for it.
    """
    given = fields.get(name)
    if not isinstance(given, Fields) or not given.sound:
        return default
    return make_model(lambda: build(given), given, context)
