"""What was said in a span, in the terms of OpenTelemetry's GenAI conventions.

Before 1.37 these conventions put messages on events of a span, such as `gen_ai.choice`. They are
put where later ones have them, as parts of messages in attributes. Other conventions are translated
to the same terms by `trialwise.contrib.traces.span_dialects`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from trialwise.model.foreign_fields import Fields
from trialwise.traces.trace_documents import TraceFields

#: The module that knows other conventions. It is loaded when spans are read.
SPAN_DIALECTS = "trialwise.contrib.traces.span_dialects"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_REASONS = "gen_ai.response.finish_reasons"
_MESSAGE_EVENT = re.compile(r"gen_ai\.(assistant|system|tool|user)\.message")

Attributes = dict[str, Any]


def translate_span(
    given: Mapping[str, Any], events: Iterable[TraceFields] = ()
) -> tuple[Attributes, tuple[str, ...]]:
    """Return the attributes of a span in these terms, and the names of events that were not read.

    >>> told, _ = translate_span({"openinference.span.kind": "TOOL", "tool.name": "find"})
    >>> told["gen_ai.operation.name"], told["gen_ai.tool.name"]
    ('execute_tool', 'find')

    Args:
        given: The attributes.
        events: The events of the span that hold messages, as `{"name", "attributes"}`.
    """
    told = dict(given)
    import_module(SPAN_DIALECTS).translate_attributes(told)
    return told, _translate_events(told, events)


def put_attribute(told: Attributes, name: str, value: Any) -> None:
    """Set an attribute that is not there yet."""
    if value is not None:
        told.setdefault(name, value)


def put_messages(told: Attributes, name: str, messages: list[dict[str, Any]]) -> None:
    """Set messages; one of which nothing was kept does not tell that it called nothing."""
    if messages and all(one["parts"] for one in messages):
        put_attribute(told, name, messages)


def make_call_part(name: object, key: object, arguments: object) -> dict[str, Any]:
    """Make the part of a message that asks for a call."""
    return {"type": "tool_call", "id": key, "name": name, "arguments": arguments}


def make_message(role: Any, parts: list[dict[str, Any]], key: Any) -> dict[str, Any]:
    """Make a message; what a tool says with the key of a call is the response to it."""
    if role == "tool" and key is not None:
        said = "".join(str(one.get("content") or "") for one in parts)
        parts = [{"type": "tool_call_response", "id": key, "response": said}]
    return {"role": role, "parts": parts}


def parse_value(value: Any) -> Any:
    """Return a value that may be written as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return [{}]  # what cannot be read may be any call


def _translate_events(told: Attributes, events: Iterable[TraceFields]) -> tuple[str, ...]:
    """Put messages that stand on events where later conventions have them."""
    given: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    unread: list[str] = []
    for event in events:
        name, fields = str(event.get("name")), event.inner("attributes")
        if name == "gen_ai.choice":
            inner = parse_value(fields.get("message")) if "message" in fields else fields.values
            message = _read_event_message(Fields(inner).values, "assistant")
            said.append(message)
            reason = fields.get("finish_reason")
            put_attribute(told, _REASONS, None if reason is None else [reason])
            if not message["parts"] and reason is None:
                unread.append(name)
        elif found := _MESSAGE_EVENT.fullmatch(name):
            given.append(_read_event_message(fields.values, found[1]))
        elif name.startswith("gen_ai."):
            unread.append(name)
    put_messages(told, _OUTPUT, said)
    put_messages(told, _INPUT, given)
    return tuple(unread)


def _read_event_message(given: Mapping[str, Any], role: str) -> dict[str, Any]:
    fields = TraceFields({**given, "tool_calls": parse_value(given.get("tool_calls"))})
    content = fields.get("content")
    parts: list[dict[str, Any]] = []
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        parts.append({"type": "text", "content": text})
    for call in fields.calls("tool_calls"):
        function = call.inner("function") or call
        arguments = function.get("arguments", "args")
        parts.append(make_call_part(function.text("name"), call.text("id"), arguments))
    return make_message(fields.text("role") or role, parts, fields.text("id", "tool_call_id"))
