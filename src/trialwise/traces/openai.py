"""Traces as OpenAI chat messages: a list of them, a request, or a request with its response.

    [{"role": "user", "content": "…"},
     {"role": "assistant", "content": null, "tool_calls":
        [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
     {"role": "tool", "tool_call_id": "c1", "content": "…"},
     {"role": "assistant", "content": "…"}]

The format has no place for a tool's failure, so that a call with a result counts as one that came
to its end. `usage` counts where it stands beside the messages or in every reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace
from trialwise.traces._building import Building, usage_of
from trialwise.traces.trace_documents import (
    TraceError,
    arguments,
    calls,
    content,
    count,
    mapping,
    mappings,
    said,
    text,
)

__all__ = ["read"]


def read(document: Any) -> list[Trace]:
    """The traces of a document: one conversation, or a list of several."""
    if isinstance(document, list) and document and all("role" in mapping(one) for one in document):
        return [_trace(document, None)]
    conversations = document if isinstance(document, list) else [document]
    return [_conversation(place, one) for place, one in enumerate(conversations)]


def _conversation(place: int, document: Any) -> Trace:
    fields = mapping(document)
    messages = mappings(fields.get("messages"))
    # The usage of a response is that of its own reply, not of those before it.
    replies = [
        {**mapping(one.get("message")), "usage": fields.get("usage")}
        for one in mappings(fields.get("choices"))[:1]
    ]
    if not messages and not replies:
        raise TraceError(f"conversation {place + 1} has no `messages` and no `choices`")
    return _trace([*messages, *replies], None if replies else _usage(fields.get("usage")))


def _trace(messages: Sequence[Mapping[str, Any]], usage: Usage | None) -> Trace:
    building = Building()
    for message in messages:
        _read_message(building, message)
    return building.finish(usage=usage)


def _read_message(building: Building, message: Mapping[str, Any]) -> None:
    role = text(message.get("role")) or ""
    if role in {"tool", "function"}:
        building.result(
            key=text(message.get("tool_call_id")),
            name=text(message.get("name")),
            result=said(message.get("content")) or "",
        )
        return
    building.say(role, content(message.get("content")))
    if role != "assistant":
        return
    building.spend(_usage(message.get("usage")))
    for call in calls(message.get("tool_calls")):
        function = mapping(call.get("function", call.get("custom")))
        given = function.get("arguments", function.get("input"))
        building.call(text(function.get("name")), key=text(call.get("id")), args=arguments(given))
    # How calls were written before there could be several.
    if isinstance(old := message.get("function_call"), Mapping):
        building.call(text(old.get("name")), args=arguments(old.get("arguments")))


def _usage(given: Any) -> Usage | None:
    fields = mapping(given)
    return usage_of(count(fields.get("prompt_tokens")), count(fields.get("completion_tokens")))
