"""Traces as OpenAI chat messages: a list of them, a request, or a request with its response.

    [{"role": "user", "content": "…"},
     {"role": "assistant", "content": null, "tool_calls":
        [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
     {"role": "tool", "tool_call_id": "c1", "content": "…"},
     {"role": "assistant", "content": "…"}]

The format has no place for a tool's failure, so that a call with a result counts as one that came
to its end. `usage` counts where it stands beside the messages or in every reply. Of several choices
the calls of all count, and the answer is that of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import (
    ROLES,
    Building,
    doubt_beginning,
    doubt_beside,
    doubt_unknown,
)
from trialwise.traces.trace_documents import TraceError, TraceFields, list_conversations

_ROLES = ROLES | {"tool", "function"}
#: The fields that hold calls, and the reasons to end a reply that speak of them.
_READ = ("tool_calls", "function_call")


def read(document: Any) -> list[Trace]:
    """Read the traces of a document: one conversation, or a list of several."""
    return [_conversation(*one) for one in enumerate(list_conversations(document))]


def _conversation(place: int, fields: TraceFields) -> Trace:
    messages, choices = fields.objects("messages"), fields.objects("choices")
    replies = [one.inner("message") for one in choices]
    if not messages and not replies:
        raise TraceError(f"conversation {place + 1} has no `messages` and no `choices`")
    building = Building()
    doubt_beginning(building, [one.get("role") for one in messages])
    doubt_beside(building, fields)
    for message in messages:
        _read_message(building, message)
    for reply in replies[1:]:
        doubt_unknown(building, reply, roles=_ROLES, fields=_READ)
        _read_calls(building, reply)
    for reply in replies[:1]:
        # The usage of a response is that of its own reply, not of those before it.
        _read_message(building, TraceFields({**reply.values, "usage": fields.get("usage")}))
    if len(messages) + len(choices) < len(fields.items("messages") + fields.items("choices")):
        building.doubt("one of the messages is not an object")
    for choice, reply in zip(choices, replies, strict=True):
        ended = choice.get("finish_reason")
        if ended in _READ and not reply.get(*_READ):
            building.doubt(f"the reply ended with {ended!r} and shows no call")
    return building.finish(usage=None if replies else read_tokens(fields.get("usage")))


def _read_message(building: Building, message: TraceFields) -> None:
    doubt_unknown(building, message, roles=_ROLES, fields=_READ)
    role = message.text("role") or ""
    if role in {"tool", "function"}:
        building.result(
            key=message.text("tool_call_id"),
            name=message.text("name"),
            result=message.result("content") or "",
        )
        return
    building.say(role, message.content("content"))
    if role != "assistant":
        return
    building.spend(read_tokens(message.get("usage")))
    _read_calls(building, message)


def _read_calls(building: Building, message: TraceFields) -> None:
    for call in message.calls("tool_calls"):
        function = call.inner("function", "custom")
        args = function.arguments("arguments", "input")
        building.call(function.text("name"), key=call.text("id"), args=args)
    # How calls were written before there could be several.
    if isinstance(message.get("function_call"), Mapping):
        old = message.inner("function_call")
        building.call(old.text("name"), args=old.arguments("arguments"))
