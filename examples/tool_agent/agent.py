"""A simulated agent that books tables: it looks for a free table, books it and confirms.

The reply contains its `tool_calls` in order, each with its name and arguments.
"""

from __future__ import annotations

from random import Random
from typing import Any

import trialwise as tw


def book(request: dict[str, Any], seed: int) -> tw.Reply:
    """Book a table for some guests at an hour."""
    chance = Random(seed)
    calls: list[dict[str, Any]] = []

    def call(tool: str, **arguments: Any) -> None:
        calls.append({"name": tool, "args": arguments})

    guests, hour = request["guests"], request["hour"]
    call("find_table", guests=guests, hour=hour)
    while chance.random() < 0.15:  # looks again
        call("find_table", guests=guests, hour=hour)
    if chance.random() < 0.01:
        return tw.Reply(value="There is no table left.", details={"tool_calls": calls})
    if chance.random() < 0.01:  # forgets a guest
        guests -= 1
    call("book_table", guests=guests, hour=hour)
    return tw.Reply(
        value=f"Confirmed: a table for {guests} at {hour}.", details={"tool_calls": calls}
    )


def books_for_everybody(reply: tw.Reply, input: dict[str, Any]) -> None:  # noqa: A002
    """Check that the table is for the requested number of guests."""
    booked = [one["args"] for one in reply.details["tool_calls"] if one["name"] == "book_table"]
    assert booked, "no table was booked"
    assert booked[0]["guests"] == input["guests"], f"booked for {booked[0]['guests']}"
