"""Call a constructor with what was read for its keys."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from trialwise.declarations.scalars import MISSING
from trialwise.declarations.structures import Fields, Key, Record
from trialwise.declarations.written import INVALID, Reader, Written
from trialwise.errors import InvalidArgument

__all__ = ["Made", "build_declared", "find_refused"]


def build_declared(
    constructor: Callable[..., Any], keys: Sequence[Key], given: Fields, reader: Reader
) -> Any:
    """Return what a constructor makes of some fields, or `INVALID` once a problem is reported.

    Args:
        constructor: What is declared.
        keys: Its keys.
        given: What was read.
        reader: Takes problems; it also gives the environment to a constructor that asks for one.

    Raises:
        InvalidArgument: The constructor refuses an argument; `find_refused` says where it stands.
    """
    arguments: dict[str, Any] = {}
    for key in keys:
        if key.name in given:
            value = key.kind.finish(given[key.name], given.at(key.name), f"`{key.name}`", reader)
        else:
            value = key.otherwise if key.otherwise is not MISSING else key.kind.supply(reader)
        if value is not MISSING:
            arguments[key.field] = value
    if INVALID in arguments.values():
        return INVALID
    if "environment" in inspect.signature(constructor).parameters:
        arguments["environment"] = reader.variables
    return constructor(**arguments)


def find_refused(
    error: InvalidArgument, keys: Sequence[Key], given: Fields, name: str
) -> tuple[Any, str]:
    """Return where the value stands that a constructor refused, and what it is called there."""
    # `headers['Authorization']` is about a header.
    argument = error.argument.partition("[")[0]
    key = next((key.name for key in keys if key.field == argument), argument)
    node = given.at(key)
    return node, key if node is not given.node else name


class Made(Record):
    """A record that becomes an object of the model's when what holds it is built."""

    def __init__(
        self,
        name: str,
        constructor: Callable[..., Any],
        keys: tuple[Key, ...],
        *,
        one_of: tuple[tuple[str, ...], ...] = (),
        doc: str,
    ) -> None:
        required = tuple(key.name for key in keys if key.is_required)
        super().__init__(name, keys, required=required, one_of=one_of, doc=doc)
        self.constructor = constructor

    def finish(self, value: Any, node: Written, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """The object."""
        try:
            return build_declared(self.constructor, self.keys, value, reader)
        except InvalidArgument as error:
            at, what = find_refused(error, self.keys, value, self.name)
            return reader.refuse(at, f"`{what}` must {error.allowed}", hide=what == "headers")
