"""Spans of agents: their attributes read and translated, and one span for each reply.

Spans come as OTLP JSON, or as the OpenTelemetry SDK for Python prints them (`span.to_json()`). Two
spans of one reply, by their `gen_ai.response.id` or one within the other, are one reply.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from trialwise.model.trace import Fields, read_amount
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceFields

# What a span must tell before a reader may say that no tool was called in it.
#
# Instrumentations write what a model said under many names. Those that are not read here may hold
# calls, so that a span with one of them leaves the calls of its trace unknown.

REPLIES = ("chat", "generate_content", "text_completion")
#: Operations that are no reply of a model.
_OTHERS = ("create_agent", "embeddings", "execute_tool", "invoke_agent", "invoke_workflow")
#: Signs of a reply of a model, whatever its operation is called.
_SIGNS = ("gen_ai.request.", "gen_ai.response.", "gen_ai.usage.", "gen_ai.output.")
_READ_EVENTS = ("gen_ai.client.inference.operation.details", "gen_ai.evaluation.result")
#: Reasons to end a reply that exclude a call; Google's models end with STOP after one, too.
_WITHOUT_CALL = frozenset(
    {"stop", "end_turn", "stop_sequence", "length", "max_tokens", "content_filter", "refusal"}
)
_GOOGLE = ("gcp", "gemini", "google", "vertex")


def calls_tool(reason: object) -> bool:
    """Return whether a reason to end a reply is that it calls a tool."""
    return str(reason).lower().startswith(("tool_", "function_call"))


def doubt_span(building: Building, told: TraceFields, events: Iterable[str]) -> None:
    """Doubt the calls of a trace where a span holds what is not read.

    Args:
        building: The trace.
        told: The attributes of the span.
        events: The names of the span's events that were not translated.
    """
    is_unread = import_module(SPAN_DIALECTS).is_unread
    for name in told.values:
        if is_unread(name):
            building.doubt(f"a span has the attribute {name!r}, which is not read")
    for name in events:
        if name.startswith("gen_ai.") and name not in _READ_EVENTS:
            building.doubt(f"a span has the event {name!r}, which is not read")
    operation = told.get("gen_ai.operation.name")
    if operation in (*REPLIES, *_OTHERS) or told.text("mcp.method.name") is not None:
        return
    if operation is not None or any(name.startswith(_SIGNS) for name in told.values):
        building.doubt(f"a span of a model has the operation {operation!r}, which is not read")


def doubt_silent_reply(building: Building, told: TraceFields) -> None:
    """Doubt a reply without its messages, unless its reason to end excludes a call."""
    reasons = told.items("gen_ai.response.finish_reasons")
    provider = str(told.get("gen_ai.provider.name", "gen_ai.system")).lower()
    if not reasons:
        building.doubt("a reply of the model tells neither its messages nor why it ended")
    elif any(name in provider for name in _GOOGLE):
        building.doubt(f"a reply of {provider} without its messages may call tools and end so")
    for one in reasons:
        if str(one).lower() not in _WITHOUT_CALL and not calls_tool(one):
            building.doubt(f"a reply without its messages ended with {str(one)!r}")


# What was said in a span, in the terms of OpenTelemetry's GenAI conventions.
#
# Before 1.37 these conventions put messages on events of a span, such as `gen_ai.choice`. They are
# put where later ones have them, as parts of messages in attributes. Other conventions are
# translated to the same terms by `trialwise.contrib.traces.span_dialects`.

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


#: An event that holds attributes of its span.
_DETAILS = "gen_ai.client.inference.operation.details"
_SERVER_KINDS = (2, "SPAN_KIND_SERVER")
_ERRORS = (2, "STATUS_CODE_ERROR")
#: How deep a value of an attribute may be nested.
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class AgentSpan:
    """A span with its attributes read."""

    identity: str
    parent: str
    began: float | None
    ended: float | None
    is_server: bool
    failed: str | None
    attributes: TraceFields
    unread_events: tuple[str, ...]

    @property
    def is_reply(self) -> bool:
        """Whether the model spoke in it."""
        return self.attributes.get("gen_ai.operation.name") in REPLIES

    @property
    def is_call(self) -> bool:
        """Whether a tool was called in it."""
        told = self.attributes
        executes = told.text("gen_ai.operation.name") == "execute_tool"
        return executes or told.text("mcp.method.name") == "tools/call"

    @property
    def key(self) -> str | None:
        """What the message that asked for the call calls it."""
        return self.attributes.text("gen_ai.tool.call.id")

    def is_inner_half_of(self, outer: AgentSpan | None) -> bool:
        """Return whether it repeats a call: the MCP client's or the server's view of it."""
        if outer is None or not outer.is_call or outer.tool != self.tool:
            return False
        return len({self.key, outer.key} - {None}) < 2 and (
            self.is_server or "mcp.method.name" in self.attributes
        )

    @property
    def tool(self) -> str | None:
        """The tool's name."""
        return self.attributes.text("gen_ai.tool.name")


def is_printed_span(document: TraceFields) -> bool:
    """Return whether an object is a span as the SDK for Python prints it."""
    return "span_id" in document.inner("context") and "attributes" in document


def list_spans(document: TraceFields) -> Iterator[tuple[str, AgentSpan]]:
    """Yield the spans of an export, each with the id of its trace."""
    if is_printed_span(document):
        yield document.inner("context").text("trace_id") or "", _printed_span(document)
    for resource in document.objects("resourceSpans"):
        for scope in resource.objects("scopeSpans"):
            for span in scope.objects("spans"):
                yield span.text("traceId") or "", _span(span)


def _span(span: TraceFields) -> AgentSpan:
    status = span.inner("status")
    events = [
        TraceFields({"name": str(one.get("name")), "attributes": _attributes(one)})
        for one in span.objects("events")
    ]
    has_error = status.get("code") in _ERRORS
    return AgentSpan(
        identity=span.text("spanId") or "",
        parent=span.text("parentSpanId") or "",
        began=_seconds(span.get("startTimeUnixNano")),
        ended=_seconds(span.get("endTimeUnixNano")),
        is_server=span.get("kind") in _SERVER_KINDS,
        **_contents(_attributes(span), events, status.text("message"), has_error=has_error),
    )


def _printed_span(span: TraceFields) -> AgentSpan:
    status, given = span.inner("status"), dict(span.inner("attributes").values)
    message, has_error = status.text("description"), status.get("status_code") == "ERROR"
    return AgentSpan(
        identity=span.inner("context").text("span_id") or "",
        parent=span.text("parent_id") or "",
        began=span.moment("start_time"),
        ended=span.moment("end_time"),
        is_server=span.get("kind") == "SpanKind.SERVER",
        **_contents(given, span.objects("events"), message, has_error=has_error),
    )


def _contents(
    given: Attributes, events: Sequence[TraceFields], message: str | None, *, has_error: bool
) -> dict[str, Any]:
    """Return what a span tells of the agent, however it is written."""
    for event in events:
        if event.text("name") == _DETAILS:
            given = {**event.inner("attributes").values, **given}
    failed = given.get("error.type") or (has_error and "error")
    told, unread = translate_span(given, events)
    return {
        "failed": (message or str(failed)) if failed else None,
        "attributes": TraceFields(told),
        "unread_events": unread,
    }


def merge_replies(spans: list[AgentSpan]) -> list[AgentSpan]:
    """Return the spans with one for each reply of the model.

    An SDK and the instrumentation around it may each write a span of the same reply. A span around
    several replies is none of them.
    """
    by_identity = {span.identity: span for span in spans if span.identity}
    outer = {
        id(span): found
        for span in spans
        if span.is_reply and (found := _find_outer_reply(span, by_identity)) is not None
    }
    inner_count = Counter(id(one) for one in outer.values())
    kept: list[AgentSpan] = []
    places: dict[object, int] = {}
    for span in spans:
        if inner_count[id(span)] > 1:
            continue
        key: object = None
        if span.is_reply:
            around = outer.get(id(span))
            key = span.attributes.text("gen_ai.response.id")
            if around is not None and inner_count[id(around)] == 1:
                key = around.attributes.text("gen_ai.response.id") or id(around)
            elif key is None:
                key = id(span)
        if key is None or key not in places:
            if key is not None:
                places[key] = len(kept)
            kept.append(span)
        else:
            kept[places[key]] = _merge_spans(kept[places[key]], span)
    return kept


def _find_outer_reply(span: AgentSpan, by_identity: Mapping[str, AgentSpan]) -> AgentSpan | None:
    """Return the reply that a span of a reply lies in, if it lies in one."""
    seen = {span.identity}
    found = by_identity.get(span.parent)
    while found is not None and found.identity not in seen and not found.is_call:
        if found.is_reply:
            return found
        seen.add(found.identity)
        found = by_identity.get(found.parent)
    return None


def _merge_spans(one: AgentSpan, other: AgentSpan) -> AgentSpan:
    merged = {**other.attributes.values, **one.attributes.values}
    return replace(
        one, attributes=TraceFields(merged), unread_events=one.unread_events + other.unread_events
    )


def _seconds(nanoseconds: object) -> float | None:
    if isinstance(nanoseconds, str) and nanoseconds.isascii() and nanoseconds.isdigit():
        nanoseconds = int(nanoseconds[:25])
    value = read_amount(nanoseconds)
    return None if value is None else value / 1e9


def _attributes(given: TraceFields) -> dict[str, Any]:
    return {
        key: _value(one.inner("value"), _DEEPEST)
        for one in given.objects("attributes")
        if (key := one.text("key")) is not None
    }


def _value(given: TraceFields, room: int) -> Any:
    """Return the plain value of an `AnyValue`."""
    if not given or not room:
        return None
    kind = next(iter(given.values))
    values = given.inner(kind).objects("values")
    match kind:
        case "intValue":
            return given.count(kind)
        case "arrayValue":
            return [_value(one, room - 1) for one in values]
        case "kvlistValue":
            return {str(one.get("key")): _value(one.inner("value"), room - 1) for one in values}
        case _:
            return given.get(kind)
