"""Traces as messages of Pydantic AI, as `all_messages_json()` writes them.

    [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "…"}]},
     {"kind": "response", "usage": {"input_tokens": 12, "output_tokens": 3}, "parts": [
        {"part_kind": "tool-call", "tool_name": "f", "args": {}, "tool_call_id": "c1"}]},
     {"kind": "request", "parts": [
        {"part_kind": "tool-return", "tool_name": "f", "tool_call_id": "c1", "content": "…"}]},
     {"kind": "response", "parts": [{"part_kind": "text", "content": "…"}]}]

A `retry-prompt` that names a tool is the failure of its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace, read_tokens, read_usage
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceFields, list_members

_SPOKEN = {"system-prompt": "system", "user-prompt": "user"}
_CALLS = ("tool-call", "builtin-tool-call")
_RETURNS = ("tool-return", "builtin-tool-return")
#: Parts that hold no call.
_PLAIN = ("text", "thinking", "file")


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds messages of Pydantic AI."""
    return any(map(_is_pydantic_ai, members))


def _is_pydantic_ai(message: TraceFields) -> bool:
    """Return whether an object is a message of Pydantic AI."""
    parts = message.objects("parts")
    return message.get("kind") in ("request", "response") and all("part_kind" in p for p in parts)


def read(document: Any) -> list[Trace]:
    """Read the one trace of a list of messages."""
    building = Building()
    messages = list_members(document)
    roles = ["user" if one.get("kind") == "request" else "assistant" for one in messages]
    building.doubt_beginning(roles)
    for message in messages:
        _read_message(building, message)
    return [building.finish()]


def _read_message(building: Building, message: TraceFields) -> None:
    parts = message.objects("parts")
    if not _is_pydantic_ai(message) or len(parts) < len(message.items("parts")):
        building.doubt("one of the messages, or one of its parts, is not of Pydantic AI")
    if message.get("kind") == "response":
        texts = [_text(one) for one in parts if one.get("part_kind") == "text"]
        building.say("assistant", "".join(texts))
        building.spend(_usage(message.inner("usage")))
    last = None
    for part in parts:
        last = part.text("part_kind") or last
        _read_part(building, part, message.get("kind"))
    if message.get("kind") == "response" and last == "text":
        # A reply may call the provider's own tools and speak after them.
        building.answer("".join(_text(one) for one in parts if one.get("part_kind") == "text"))


def _read_part(building: Building, part: TraceFields, message_kind: object) -> None:
    kind = part.text("part_kind") or ""
    name, key = part.text("tool_name"), part.text("tool_call_id")
    if kind in _SPOKEN and message_kind == "request":
        building.say(_SPOKEN[kind], _text(part))
    elif kind in _CALLS:
        building.call(name, key=key, args=part.arguments("args") or {})
    elif kind in _RETURNS:
        failed = part.get("outcome") == "failed"
        returned = part.result("content") or ""
        building.result(
            key=key,
            name=name,
            result=None if failed else returned,
            error=returned or "the tool failed" if failed else None,
        )
    elif kind == "retry-prompt" and name is not None:
        building.result(key=key, name=name, error=part.result("content") or "asked to try again")
    elif kind == "retry-prompt":
        building.say("user", part.result("content") or "")
    elif kind not in _PLAIN:
        building.doubt(f"a message has a part of the unknown kind {kind!r}")


def _text(part: TraceFields) -> str:
    content = part.get("content")
    if isinstance(content, list):
        return "".join(one for one in content if isinstance(one, str))
    return content if isinstance(content, str) else part.result("content") or ""


def _usage(told: TraceFields) -> Usage | None:
    older = read_usage(told.count("request_tokens"), told.count("response_tokens"))
    return older or read_tokens(told.values or None)
