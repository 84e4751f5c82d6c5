"""Traces as plain events, one JSON object a line, or a list of them under `events`.

    {"role": "user", "content": "…"}                       what somebody said
    {"type": "assistant_message", "content": "…"}          the same, as an event
    {"type": "tool_call", "name": "f", "server": "s", "args": {}, "id": "c1"}
    {"type": "tool_result", "id": "c1", "result": "…"}     or "error", or "success": false
    {"type": "token_usage", "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.001}
    {"type": "answer", "content": "…"}

Fields may stand in a `data` of their own and be written in camelCase, as vally's trajectories have
it (`toolName`, `toolCallId`, `inputTokens`, with the `output` of the whole beside `events`). An
event has a `timestamp` (ISO 8601) or `at_s`. Unknown events are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trialwise.model.trace import Trace
from trialwise.traces._building import Building, usage_of
from trialwise.traces.trace_documents import (
    TraceError,
    amount,
    arguments,
    calls,
    content,
    count,
    items,
    mapping,
    mappings,
    moment,
    said,
    text,
)

__all__ = ["KINDS", "read"]

KINDS = (
    "answer",
    "assistant_message",
    "message",
    "system_message",
    "token_usage",
    "tool_call",
    "tool_result",
    "user_message",
)


def read(document: Any) -> list[Trace]:
    """The one trace of a list of events, or those of documents that hold one each."""
    if isinstance(document, Mapping):
        return [_whole(document)]
    events = mappings(document)
    if len(events) < len(items(document)):
        place = next(n for n, one in enumerate(document, 1) if not isinstance(one, Mapping))
        raise TraceError(f"event {place} is no object")
    if events and all("events" in one for one in events):
        return [_whole(one) for one in events]
    return [_trace(events, {})]


def _whole(document: Mapping[str, Any]) -> Trace:
    if not isinstance(document.get("events"), list):
        raise TraceError("a list of events is expected, or an object that holds one as `events`")
    return _trace(mappings(document["events"]), document)


def _trace(events: list[Mapping[str, Any]], beside: Mapping[str, Any]) -> Trace:
    building = Building()
    known = [_read_event(building, event) for event in events]
    if not any(known):
        raise TraceError(f"none of the events is known; known are {', '.join(sorted(KINDS))}")
    metrics = mapping(beside.get("metrics"))
    took_ms = amount(metrics.get("wallTimeMs"))
    return building.finish(
        answer=text(beside.get("output")),
        duration_s=None if took_ms is None else took_ms / 1000,
    )


def _read_event(building: Building, event: Mapping[str, Any]) -> bool:
    """Take one event in, if it is known."""
    kind = event.get("type") or ("message" if "role" in event else None)
    if kind not in KINDS:
        return False
    fields = {**event, **mapping(event.get("data"))}
    at = moment(event.get("timestamp", event.get("at_s")))
    match kind:
        case "tool_call":
            building.call(
                _name(fields),
                key=_key(fields),
                server=text(fields.get("server", fields.get("mcpServerName"))),
                args=arguments(fields.get("args", fields.get("arguments"))),
                at=at,
            )
        case "tool_result":
            _read_result(building, fields, at)
        case "token_usage":
            asked = count(fields.get("input_tokens", fields.get("inputTokens")))
            answered = count(fields.get("output_tokens", fields.get("outputTokens")))
            building.spend(usage_of(asked, answered), amount(fields.get("cost_usd")))
        case "answer":
            building.answer(content(fields.get("content")))
        case _:
            role = text(fields.get("role")) or str(kind).removesuffix("_message")
            building.say(role, content(fields.get("content")), at=at)
            for call in calls(fields.get("tool_calls")):
                inner = mapping(call.get("function")) or call
                given = inner.get("args", inner.get("arguments"))
                building.call(_name(inner), key=text(call.get("id")), args=arguments(given), at=at)
    return True


def _read_result(building: Building, fields: Mapping[str, Any], at: float | None) -> None:
    error = said(fields.get("error"))
    result = said(fields.get("result", fields.get("content")))
    if error is None and fields.get("success") is False:
        error = result or "the tool failed"
    building.result(
        key=_key(fields),
        name=_name(fields),
        result=None if error is not None else result or "",
        error=error,
        at=at,
    )


def _name(fields: Mapping[str, Any]) -> str | None:
    return text(fields.get("name", fields.get("tool", fields.get("toolName"))))


def _key(fields: Mapping[str, Any]) -> str | None:
    return text(fields.get("id", fields.get("tool_call_id", fields.get("toolCallId"))))
