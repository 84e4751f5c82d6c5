"""Traces as messages of LangChain and LangGraph, as their dumps write them.

    [{"type": "human", "content": "…"},
     {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": "c1"}],
      "usage_metadata": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15}},
     {"type": "tool", "content": "…", "tool_call_id": "c1", "status": "success"},
     {"type": "ai", "content": "…"}]

A message is written by `model_dump()`, by `messages_to_dict` (its fields stand under `data`) or by
`dumpd` (under `kwargs`, with its class in `id`). A state of LangGraph holds them under `messages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import Building, names_call
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
}
_CLASSES = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "FunctionMessage": "function",
}
#: Fields that are read, or that hold no call.
_FIELDS = (
    *("tool_calls", "invalid_tool_calls", "tool_call_chunks", "additional_kwargs"),
    *("response_metadata", "usage_metadata", "artifact"),
)
#: Parts of a message that repeat its `tool_calls`.
_CALL_PARTS = ("tool_use", "tool_call", "function_call", "invalid_tool_call")
#: What `additional_kwargs` may hold beside calls.
_KNOWN_EXTRAS = ("refusal", "reasoning", "reasoning_content", "parsed", "tool_calls")


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds messages of LangChain, or states with such messages."""
    messages = [message for one in members for message in (one, *one.objects("messages"))]
    return any(map(_is_langchain, messages))


def _is_langchain(message: TraceFields) -> bool:
    """Return whether an object is a message of LangChain, and not one with a role."""
    if message.get("lc") == 1 and "kwargs" in message:
        return _class_of(message) in _CLASSES
    kind = message.text("type")
    return kind in _ROLES and "role" not in message and ("content" in message or "data" in message)


def read(document: Any) -> list[Trace]:
    """Read the traces of a document: one list of messages, or states that hold one each."""
    members = list_members(document)
    if isinstance(document, list) and not any("messages" in one for one in members):
        return [_read_messages(TraceFields({"messages": document}))]
    if not all(isinstance(one.get("messages"), list) for one in members):
        raise TraceError("a list of messages is expected, or an object that holds one")
    return [_read_messages(one) for one in members]


def _read_messages(state: TraceFields) -> Trace:
    building = Building()
    messages = [_flatten(TraceFields(one)) for one in state.items("messages")]
    building.doubt_beginning([_role_of(one) for one in messages])
    building.doubt_beside(state)
    for message in messages:
        if not message:
            building.doubt("one of the messages is not an object")
        _read_message(building, message)
    return building.finish()


def _role_of(message: TraceFields) -> str | None:
    return _ROLES.get(message.text("type") or "", message.text("role"))


def _class_of(message: TraceFields) -> str:
    names = message.items("id")
    return str(names[-1]).removesuffix("Chunk") if names else ""


def _flatten(message: TraceFields) -> TraceFields:
    """Return the fields of a message, however deep its dump put them."""
    if message.get("lc") == 1:
        kind = _CLASSES.get(_class_of(message))
        return TraceFields({"type": kind, **message.inner("kwargs").values})
    if isinstance(message.get("data"), dict):
        return TraceFields({**message.inner("data").values, "type": message.get("type")})
    return message


def _read_message(building: Building, message: TraceFields) -> None:
    role = _role_of(message)
    spoken = TraceFields({**message.values, "role": role})
    calls = message.calls("tool_calls")
    parts = _CALL_PARTS if calls or message.calls("invalid_tool_calls") else ()
    building.doubt_unknown(spoken, roles={*_ROLES.values()}, fields=_FIELDS, parts=parts)
    if role == "tool":
        failed = message.get("status") == "error"
        returned = message.result("content") or ""
        building.result(
            key=message.text("tool_call_id"),
            name=message.text("name"),
            result=None if failed else returned,
            error=returned or "the tool failed" if failed else None,
        )
        return
    building.say(role or "", message.content("content"))
    if role != "assistant":
        return
    building.spend(read_tokens(message.get("usage_metadata")))
    for call in calls:
        building.call(call.text("name"), key=call.text("id"), args=call.arguments("args"))
    for call in message.calls("invalid_tool_calls"):
        building.call(call.text("name"), key=call.text("id"), args=call.get("args"))
    _read_extras(building, message, bool(calls))


def _read_extras(building: Building, message: TraceFields, has_calls: bool) -> None:
    """Take in a call as old integrations write it, and doubt what else stands there."""
    extras = message.inner("additional_kwargs")
    old = extras.inner("function_call")
    if old and not has_calls:
        building.call(old.text("name"), args=old.arguments("arguments"))
    if extras.get("tool_calls") and not (has_calls or message.calls("invalid_tool_calls")):
        building.doubt("a message has `tool_calls` among its `additional_kwargs` only")
    for name, value in extras.values.items():
        is_known = name in _KNOWN_EXTRAS or name == "function_call" or name.startswith("__")
        is_structure = isinstance(value, list | dict) and bool(value)
        if not is_known and (is_structure or names_call(name, value)):
            building.doubt(f"a message has the unknown field 'additional_kwargs.{name}'")
