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

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace
from trialwise.traces._building import Building, usage_of
from trialwise.traces.trace_documents import (
    TraceError,
    content,
    count,
    items,
    mapping,
    mappings,
    said,
    text,
)

__all__ = ["is_anthropic", "read"]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def is_anthropic(message: object) -> bool:
    """Whether a message holds blocks that only this format has."""
    fields = mapping(message)
    kinds = [mapping(block).get("type") for block in items(fields.get("content"))]
    return fields.get("type") == "message" or any(_is_block(kind) for kind in kinds)


def read(document: Any) -> list[Trace]:
    """The traces of a document: one conversation, or a list of several."""
    if isinstance(document, list) and document and all("role" in mapping(one) for one in document):
        return [_trace(document)]
    conversations = document if isinstance(document, list) else [document]
    return [_conversation(place, mapping(one)) for place, one in enumerate(conversations)]


def _conversation(place: int, fields: Mapping[str, Any]) -> Trace:
    messages = mappings(fields.get("messages"))
    if "role" in fields:  # a reply, maybe with the request that it answers taken in
        return _trace([*messages, fields], system=fields.get("system"))
    if not messages:
        raise TraceError(f"conversation {place + 1} has no `messages`")
    return _trace(messages, system=fields.get("system"), usage=_usage(fields.get("usage")))


def _trace(messages: Sequence[Any], *, system: Any = None, usage: Usage | None = None) -> Trace:
    building = Building()
    if spoken := content(system):
        building.say("system", spoken)
    for message in messages:
        _read_message(building, mapping(message))
    return building.finish(usage=usage, ended=text(mapping(messages[-1]).get("stop_reason")))


def _read_message(building: Building, message: Mapping[str, Any]) -> None:
    role = text(message.get("role")) or ""
    blocks = mappings(message.get("content"))
    results = [block for block in blocks if _is_result(block.get("type"))]
    spoken = content(message.get("content"))
    if spoken or role == "assistant" or not results:
        building.say(role, spoken)
    if role == "assistant":
        building.spend(_usage(message.get("usage")))
    for block in blocks:
        if block.get("type") in _CALLS:
            building.call(
                text(block.get("name")),
                key=text(block.get("id")),
                server=text(block.get("server_name")),
                args=block.get("input"),
            )
        elif _is_result(block.get("type")):
            _read_result(building, block)
    # A reply may call tools and speak after them.
    if role == "assistant" and blocks and spoken and _speaks_last(blocks):
        building.answer(spoken)


def _read_result(building: Building, block: Mapping[str, Any]) -> None:
    inside = mapping(block.get("content"))
    returned = said(block.get("content")) or ""
    failed = block.get("is_error") is True or str(inside.get("type", "")).endswith("_error")
    building.result(
        key=text(block.get("tool_use_id")),
        result=None if failed else returned,
        error=(text(inside.get("error_code")) or returned) if failed else None,
    )


def _is_block(kind: object) -> bool:
    return kind in _CALLS or _is_result(kind)


def _is_result(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("tool_result")


def _speaks_last(blocks: list[Mapping[str, Any]]) -> bool:
    kinds = [block.get("type") for block in blocks]
    calls = [place for place, kind in enumerate(kinds) if _is_block(kind)]
    return bool(calls) and "text" in kinds[calls[-1] :]


def _usage(given: Any) -> Usage | None:
    fields = mapping(given)
    asked = count(fields.get("input_tokens"))
    cached = (fields.get("cache_read_input_tokens"), fields.get("cache_creation_input_tokens"))
    if asked is not None:
        asked += sum(count(one) or 0 for one in cached)
    return usage_of(asked, count(fields.get("output_tokens")))
