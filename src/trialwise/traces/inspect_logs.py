"""Traces as Inspect AI logs: a `.json` log, one of its samples, or a list of samples.

A sample's `messages` hold what was said; its `events` hold every call of a tool with its times,
also those of agents within the agent. Long texts are `attachment://` references into the sample's
`attachments`. Tokens and money are those of all models together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace
from trialwise.traces._building import Building
from trialwise.traces.trace_documents import (
    TraceError,
    amount,
    calls,
    content,
    count,
    mapping,
    mappings,
    moment,
    said,
    text,
)

__all__ = ["is_inspect", "read"]

_ATTACHMENT = "attachment://"
_DEEPEST = 50


def is_inspect(document: object) -> bool:
    """Whether a document is a log or a sample of Inspect AI."""
    fields = mapping(document)
    if isinstance(fields.get("eval"), Mapping):
        return True
    return "messages" in fields and ("epoch" in fields or "model_usage" in fields)


def read(document: Any) -> list[Trace]:
    """The traces of all samples."""
    if isinstance(document, Mapping) and "eval" in document:
        if not isinstance(document.get("samples"), list):
            raise TraceError("the log holds no samples; it may be a header only")
        document = document["samples"]
    samples = document if isinstance(document, list) else [document]
    return [_sample(place, mapping(sample)) for place, sample in enumerate(samples)]


def _sample(place: int, sample: Mapping[str, Any]) -> Trace:
    messages = mappings(sample.get("messages"))
    events = [one for one in mappings(sample.get("events")) if one.get("event") == "tool"]
    if not messages and not events:
        raise TraceError(f"sample {place + 1} has neither messages nor tool events")
    attached = mapping(sample.get("attachments"))
    building = Building()
    executed = {text(event.get("id")) for event in events}
    for event in events:
        _read_event(building, event, attached)
    for message in messages:
        _read_message(building, message, executed, attached)
    usage, cost = _read_spending(sample.get("model_usage"))
    # The completion of a session that a limit ended is what stood beside its last calls.
    completion = None if messages else mapping(sample.get("output")).get("completion")
    return building.finish(
        usage=usage,
        cost_usd=cost,
        duration_s=amount(sample.get("total_time")),
        answer=text(_insert_attachments(completion, attached, _DEEPEST)),
        ended=_limit(sample.get("limit")),
    )


def _read_event(building: Building, event: Mapping[str, Any], attached: Mapping[str, Any]) -> None:
    key, began = text(event.get("id")), moment(event.get("timestamp"))
    args = _insert_attachments(event.get("arguments"), attached, _DEEPEST)
    building.call(text(event.get("function")), key=key, args=args, at=began)
    if event.get("pending") is True:
        return
    error = _error(event.get("error"))
    if error is None and event.get("failed") is True:
        error = "the tool failed"
    returned = said(_insert_attachments(event.get("result"), attached, _DEEPEST)) or ""
    building.result(
        key=key,
        name=text(event.get("function")),
        result=None if error is not None else returned,
        error=error,
        at=moment(event.get("completed")),
    )


def _read_message(
    building: Building,
    message: Mapping[str, Any],
    executed: set[str | None],
    attached: Mapping[str, Any],
) -> None:
    role = text(message.get("role")) or ""
    spoken = _insert_attachments(message.get("content"), attached, _DEEPEST)
    if role == "tool":
        key = text(message.get("tool_call_id"))
        if key not in executed or key is None:
            error = _error(message.get("error"))
            building.result(
                key=key,
                name=text(message.get("function")),
                result=None if error is not None else said(spoken) or "",
                error=error,
            )
        return
    building.say(role, content(spoken))
    told = calls(message.get("tool_calls"))
    for call in told:
        key = text(call.get("id"))
        if key not in executed or key is None:
            args = _insert_attachments(call.get("arguments"), attached, _DEEPEST)
            building.call(text(call.get("function")), key=key, args=args)
    if told:
        building.answer("")


def _insert_attachments(value: Any, attached: Mapping[str, Any], room: int) -> Any:
    """A value with its references replaced by what they refer to."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attached.get(value.removeprefix(_ATTACHMENT), value)
    if not attached or not room:
        return value
    if isinstance(value, list):
        return [_insert_attachments(one, attached, room - 1) for one in value]
    if isinstance(value, Mapping):
        return {key: _insert_attachments(one, attached, room - 1) for key, one in value.items()}
    return value


def _error(error: object) -> str | None:
    if isinstance(error, Mapping):
        return text(error.get("message")) or text(error.get("type")) or "the tool failed"
    return text(error)


def _limit(limit: object) -> str | None:
    kind = text(mapping(limit).get("type")) or text(limit)
    return None if kind is None else f"{kind} limit"


def _read_spending(given: object) -> tuple[Usage | None, float | None]:
    models = [mapping(one) for one in mapping(given).values()]
    if not models:
        return None, None

    def total(name: str) -> int:
        return sum(count(one.get(name)) or 0 for one in models)

    cached = total("input_tokens_cache_read") + total("input_tokens_cache_write")
    usage = Usage(input_tokens=total("input_tokens") + cached, output_tokens=total("output_tokens"))
    costs = [amount(one.get("total_cost")) for one in models]
    known = [cost for cost in costs if cost is not None]
    return usage, math.fsum(known) if len(known) == len(costs) else None
