"""Traces as Inspect AI logs: a `.json` log, one of its samples, or a list of samples.

A sample's `messages` hold what was said; its `events` hold every call of a tool with its times,
also those of agents within the agent. Long texts are `attachment://` references into the sample's
`attachments`. Tokens and money are those of all models together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace
from trialwise.traces.trace_building import ROLES, Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

_ATTACHMENT = "attachment://"
#: How deep references are looked for: arguments may be nested, and a sample holds them.
_DEEPEST = 60


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document begins with a log or a sample of Inspect AI."""
    return any(map(_is_inspect, members[:1]))


def _is_inspect(document: TraceFields) -> bool:
    if isinstance(document.get("eval"), Mapping):
        return True
    return "messages" in document and ("epoch" in document or "model_usage" in document)


def read(document: Any) -> list[Trace]:
    """Read the traces of all samples."""
    if isinstance(document, Mapping) and "eval" in document:
        if not isinstance(document.get("samples"), list):
            raise TraceError("the log holds no samples; it may be a header only")
        document = document["samples"]
    return [_read_sample(*one) for one in enumerate(list_members(document))]


def _read_sample(place: int, sample: TraceFields) -> Trace:
    events = [one for one in sample.objects("events") if one.get("event") == "tool"]
    told = {
        "messages": sample.get("messages"),
        "events": [one.values for one in events],
        "output": sample.get("output"),
    }
    fields = TraceFields(_insert_attachments(told, sample.inner("attachments").values, _DEEPEST))
    messages, events = fields.objects("messages"), fields.objects("events")
    if not messages and not events:
        raise TraceError(f"sample {place + 1} has neither messages nor tool events")
    building = Building()
    executed = {event.text("id") for event in events} - {None}
    for event in events:
        _read_event(building, event)
    for message in messages:
        _read_message(building, message, executed)
    usage, cost = _read_spending(sample.inner("model_usage"))
    # The completion of a session that a limit ended is what stood beside its last calls.
    completion = None if messages else fields.inner("output").text("completion")
    limit = sample.inner("limit").text("type") or sample.text("limit")
    return building.finish(
        usage=usage,
        cost_usd=cost,
        duration_s=sample.amount("total_time"),
        answer=completion,
        ended=None if limit is None else f"{limit} limit",
    )


def _read_event(building: Building, event: TraceFields) -> None:
    name, key = event.text("function"), event.text("id")
    building.call(name, key=key, args=event.get("arguments"), at=event.moment("timestamp"))
    if event.get("pending") is True:
        return
    error = _error(event)
    if error is None and event.get("failed") is True:
        error = "the tool failed"
    building.result(
        key=key,
        name=name,
        result=None if error is not None else event.result("result") or "",
        error=error,
        at=event.moment("completed"),
    )


def _read_message(building: Building, message: TraceFields, executed: set[str | None]) -> None:
    building.doubt_unknown(message, roles=ROLES | {"tool"}, fields=("tool_calls", "error"))
    role = message.text("role") or ""
    if role == "tool":
        key = message.text("tool_call_id")
        if key not in executed:
            error = _error(message)
            building.result(
                key=key,
                name=message.text("function"),
                result=None if error is not None else message.result("content") or "",
                error=error,
            )
        return
    building.say(role, message.content("content"))
    calls = message.calls("tool_calls")
    for call in calls:
        key = call.text("id")
        if key not in executed:
            building.call(call.text("function"), key=key, args=call.get("arguments"))
    if calls:
        building.answer("")


def _insert_attachments(value: Any, attached: Mapping[str, Any], room: int) -> Any:
    """Return a value with its references replaced by what they refer to."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if not attached or not room:
        return value
    if isinstance(value, list):
        return [_insert_attachments(one, attached, room - 1) for one in value]
    if isinstance(value, Mapping):
        return {key: _insert_attachments(one, attached, room - 1) for key, one in value.items()}
    return value


def _error(fields: TraceFields) -> str | None:
    if isinstance(fields.get("error"), Mapping):
        error = fields.inner("error")
        return error.text("message") or error.text("type") or "the tool failed"
    return fields.text("error")


def _read_spending(by_model: TraceFields) -> tuple[Usage | None, float | None]:
    models = [TraceFields(one) for one in by_model.values.values()]
    if not models:
        return None, None

    def total(*names: str) -> int:
        return sum(one.count(name) or 0 for one in models for name in names)

    asked = total("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    usage = Usage(input_tokens=asked, output_tokens=total("output_tokens"))
    costs = [one.amount("total_cost") for one in models]
    known = [cost for cost in costs if cost is not None]
    return usage, math.fsum(known) if len(known) == len(costs) else None
