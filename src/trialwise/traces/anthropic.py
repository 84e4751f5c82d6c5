"""Traces as Anthropic messages: a list of them, a request, or replies as the API returns them.

    [{"role": "user", "content": "…"},
     {"role": "assistant", "content": [{"type": "text", "text": "…"},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                                   "content": "…"}]}]

Calls that the API makes itself (`server_tool_use`, `mcp_tool_use` with its `server_name`) are calls
like any other. Input tokens include those read from and written to the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import Building, doubt_beginning, doubt_beside, doubt_unknown
from trialwise.traces.trace_documents import TraceError, TraceFields, list_conversations

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_PLAIN = ("container_upload", "search_result")


def is_anthropic(message: TraceFields) -> bool:
    """Return whether a message holds blocks that only this format has."""
    blocks = message.objects("content")
    return message.get("type") == "message" or any(_is_block(one.get("type")) for one in blocks)


def read(document: Any) -> list[Trace]:
    """Read the traces of a document: one conversation, or a list of several."""
    return [_conversation(*one) for one in enumerate(list_conversations(document))]


def _conversation(place: int, fields: TraceFields) -> Trace:
    messages = fields.objects("messages")
    is_reply = "role" in fields  # maybe with the request that it answers taken in
    building = Building()
    doubt_beginning(building, [one.get("role") for one in messages])
    if is_reply:
        messages.append(fields)
    else:
        doubt_beside(building, fields)
    if not messages:
        raise TraceError(f"conversation {place + 1} has no `messages`")
    if spoken := fields.content("system"):
        building.say("system", spoken)
    read_messages(building, messages)
    if len(fields.objects("messages")) < len(fields.items("messages")):
        building.doubt("one of the messages is not an object")
    # The usage of a reply is its own, which the message tells already.
    usage = None if is_reply else read_tokens(fields.get("usage"))
    return building.finish(usage=usage, ended=messages[-1].text("stop_reason"))


def read_messages(building: Building, messages: Sequence[TraceFields]) -> None:
    """Take messages in, in their order."""
    for message in messages:
        _read_message(building, message)


def _read_message(building: Building, message: TraceFields) -> None:
    role = message.text("role") or ""
    blocks = message.objects("content")
    kinds = [one.text("type") or "" for one in blocks]
    known = [kind for kind in kinds if _is_block(kind) or kind in _PLAIN]
    calls = any(kind in _CALLS for kind in kinds)
    # Some write the calls of their blocks down a second time.
    twice = ("tool_calls",) if calls else ()
    doubt_unknown(building, message, fields=(*twice, "messages", "container"), parts=known)
    if message.get("stop_reason") == "tool_use" and not calls:
        building.doubt("a reply ended with 'tool_use' and shows no call")
    spoken = message.content("content")
    if spoken or role == "assistant" or not any(_is_result(one.get("type")) for one in blocks):
        building.say(role, spoken)
    if role == "assistant":
        building.spend(read_tokens(message.get("usage")))
    for block in blocks:
        if block.get("type") in _CALLS:
            building.call(
                block.text("name"),
                key=block.text("id"),
                server=block.text("server_name"),
                args=block.get("input"),
            )
        elif _is_result(block.get("type")):
            _read_result(building, block)
    # A reply may call tools and speak after them.
    if role == "assistant" and spoken and _speaks_last(blocks):
        building.answer(spoken)


def _read_result(building: Building, block: TraceFields) -> None:
    inside = block.inner("content")
    returned = block.result("content") or ""
    failed = block.get("is_error") is True or str(inside.get("type")).endswith("_error")
    building.result(
        key=block.text("tool_use_id"),
        result=None if failed else returned,
        error=(inside.text("error_code") or returned) if failed else None,
    )


def _is_block(kind: object) -> bool:
    return kind in _CALLS or _is_result(kind)


def _is_result(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("tool_result")


def _speaks_last(blocks: Sequence[TraceFields]) -> bool:
    kinds = [block.get("type") for block in blocks]
    calls = [place for place, kind in enumerate(kinds) if _is_block(kind)]
    return bool(calls) and "text" in kinds[calls[-1] :]
