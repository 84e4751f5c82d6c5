"""The tools of several servers in one box, under names that an endpoint takes.

Apart from the connections because none of it is about MCP: two servers may offer tools of one name,
and a model may ask for any tool with any arguments.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from trialwise.engine.ports import ServiceError
from trialwise.services._templates import to_json

__all__ = ["Connection", "Returned", "Tool", "Toolbox"]

#: What an endpoint takes for the name of a tool.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_NAME = 64


class Tool(Protocol):
    """What a server tells of a tool."""

    @property
    def name(self) -> str:
        """As the server calls it."""

    @property
    def description(self) -> str | None:
        """For the model."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """A JSON Schema of its arguments."""


class Connection(Protocol):
    """A server that answers."""

    @property
    def name(self) -> str:
        """What traces call it."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that are offered."""

    async def call(self, tool: str, args: Any, timeout_s: float) -> tuple[str, bool]:
        """The text that a tool returns, and whether it tells of a failure."""
        ...


class Returned(NamedTuple):
    """What came of one call of a tool."""

    tool: str
    server: str | None
    """None for a tool that nobody offers."""
    text: str
    failed: bool


class _Offer(NamedTuple):
    """A tool, and the name under which the model knows it."""

    name: str
    tool: Tool
    connection: Connection


class Toolbox:
    """The tools of all servers."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._offers = {offer.name: offer for offer in _offers(connections)}

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as an endpoint takes them."""
        return [_definition(offer) for offer in self._offers.values()]

    def whose(self, name: str) -> tuple[str, str | None]:
        """A tool as its server calls it, and the server; None for one that nobody offers.

        Args:
            name: As the model knows it.
        """
        offer = self._offers.get(name)
        return (name, None) if offer is None else (offer.tool.name, offer.connection.name)

    async def call(self, name: str, args: Any, *, timeout_s: float) -> Returned:
        """What a tool returns, or why it does not.

        Args:
            name: As the model knows it.
            args: As the model gave them.
            timeout_s: How long it may take.

        Raises:
            ServiceError: Its server is gone.
        """
        offer = self._offers.get(name)
        if offer is None:
            known = f"are: {', '.join(self._offers)}" if self._offers else "is none at all"
            return Returned(name, None, f"there is no tool {name!r}; there {known}", True)
        tool, connection = offer.tool.name, offer.connection
        problem = _unusable(args)
        if problem:
            return Returned(tool, connection.name, problem, True)
        return Returned(tool, connection.name, *await connection.call(tool, args, timeout_s))


def _offers(connections: Sequence[Connection]) -> Iterator[_Offer]:
    """Every tool under a name that an endpoint takes and that no other has."""
    # A tool that a server lists twice is one tool: a call names nothing else.
    found = {(one.name, tool.name): (one, tool) for one in connections for tool in one.tools}
    names = Counter(name for _, name in found)
    taken: set[str] = set()
    for connection, tool in found.values():
        name = tool.name
        if names[name] > 1 or not _NAME.fullmatch(name):
            whole = f"{connection.name}__{name}"
            name = re.sub(r"[^a-zA-Z0-9_-]", "_", whole)[:_LONGEST_NAME]
        for number in range(2, len(found) + 2):
            if name not in taken:
                break
            end = f"_{number}"
            name = name[: _LONGEST_NAME - len(end)] + end
        taken.add(name)
        yield _Offer(name, tool, connection)


def _definition(offer: _Offer) -> dict[str, Any]:
    told = {"description": offer.tool.description} if offer.tool.description else {}
    function = {"name": offer.name, **told, "parameters": offer.tool.input_schema}
    return {"type": "function", "function": function}


def _unusable(args: Any) -> str:
    """Why arguments cannot be passed on, or nothing."""
    if not isinstance(args, dict):
        return "the arguments are no JSON object"
    try:
        to_json(args).encode()
    except (UnicodeError, ServiceError):
        return "the arguments cannot be written as JSON in UTF-8"
    return ""
