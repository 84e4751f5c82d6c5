"""Traces as plain events, one JSON object a line, or a list of them under `events`.

    {"role": "user", "content": "…"}                       what somebody said
    {"type": "assistant_message", "content": "…"}          the same, as an event
    {"type": "tool_call", "name": "f", "server": "s", "args": {}, "id": "c1"}
    {"type": "tool_result", "id": "c1", "result": "…"}     or "error", or "success": false
    {"type": "token_usage", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.001}
    {"type": "answer", "content": "…"}

Fields may stand in a `data` of their own and be written in camelCase, as vally's trajectories have
it (`toolName`, `toolCallId`, `inputTokens`, with the `output` of the whole beside `events`). An
event has a `timestamp` (ISO 8601) or `at_s`. An event of another type is not read, and since it may
be a call, the calls of the trace are then unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

_KINDS = (
    *("answer", "assistant_message", "message", "system_message", "token_usage", "tool_call"),
    *("tool_result", "user_message"),
)


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds events."""
    return any(one.get("type") in _KINDS for one in members) or "events" in members[0]


def read(document: Any) -> list[Trace]:
    """Read the one trace of a list of events, or those of documents that hold one each."""
    members = list_members(document)
    if isinstance(document, Mapping):
        return [_read_whole(members[0])]
    for place, one in enumerate(document if isinstance(document, list) else [], start=1):
        if not isinstance(one, Mapping):
            raise TraceError(f"event {place} is not an object")
    if members and all("events" in one for one in members):
        return [_read_whole(one) for one in members]
    return [_read_events(members, TraceFields({}))]


def _read_whole(document: TraceFields) -> Trace:
    if not isinstance(document.get("events"), list):
        raise TraceError("a list of events is expected, or an object that holds one as `events`")
    return _read_events(document.objects("events"), document)


def _read_events(events: Sequence[TraceFields], beside: TraceFields) -> Trace:
    building = Building()
    known = [_read_event(building, event) for event in events]
    if not any(known):
        raise TraceError(f"none of the events is known; known are {', '.join(sorted(_KINDS))}")
    took_ms = beside.inner("metrics").amount("wallTimeMs")
    return building.finish(
        answer=beside.text("output"), duration_s=None if took_ms is None else took_ms / 1000
    )


def _read_event(building: Building, event: TraceFields) -> bool:
    """Take one event in, if it is known."""
    kind = event.get("type") or ("message" if "role" in event else None)
    if kind not in _KINDS:
        told = f"has the unknown type {kind!r}" if kind is not None else "has no type"
        building.doubt(f"an event {told}")
        return False
    fields = TraceFields({**event.values, **event.inner("data").values})
    at = event.moment("timestamp", "at_s")
    match kind:
        case "tool_call":
            building.call(
                _name(fields),
                key=_key(fields),
                server=fields.text("server", "mcpServerName"),
                args=fields.arguments("args", "arguments"),
                at=at,
            )
        case "tool_result":
            _read_result(building, fields, at)
        case "token_usage":
            building.spend(read_tokens(fields.values), fields.amount("cost_usd"))
        case "answer":
            building.answer(fields.content("content"))
        case _:
            role = fields.text("role") or str(kind).removesuffix("_message")
            spoken = TraceFields({**fields.values, "role": role})
            building.doubt_unknown(spoken, fields=("tool_calls", "data"))
            building.say(role, fields.content("content"), at=at)
            for call in fields.calls("tool_calls"):
                inner = call.inner("function") or call
                args = inner.arguments("args", "arguments")
                building.call(_name(inner), key=call.text("id"), args=args, at=at)
    return True


def _read_result(building: Building, fields: TraceFields, at: float | None) -> None:
    error = fields.result("error")
    result = fields.result("result", "content")
    if error is None and fields.get("success") is False:
        error = result or "the tool failed"
    building.result(
        key=_key(fields),
        name=_name(fields),
        result=None if error is not None else result or "",
        error=error,
        at=at,
    )


def _name(fields: TraceFields) -> str | None:
    return fields.text("name", "tool", "toolName")


def _key(fields: TraceFields) -> str | None:
    return fields.text("id", "tool_call_id", "toolCallId")
