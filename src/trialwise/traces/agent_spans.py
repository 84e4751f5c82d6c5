"""Spans of agents: their attributes read and translated, and one span for each reply.

Spans come as OTLP JSON, or as the OpenTelemetry SDK for Python prints them (`span.to_json()`). Two
spans of one reply, by their `gen_ai.response.id` or one within the other, are one reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trialwise.model.foreign_fields import read_amount
from trialwise.traces.span_messages import translate_span
from trialwise.traces.trace_documents import TraceFields
from trialwise.traces.unknown_spans import REPLIES

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
    return _make_span(
        attributes=_attributes(span),
        events=[
            TraceFields({"name": str(one.get("name")), "attributes": _attributes(one)})
            for one in span.objects("events")
        ],
        identity=span.text("spanId") or "",
        parent=span.text("parentSpanId") or "",
        began=_seconds(span.get("startTimeUnixNano")),
        ended=_seconds(span.get("endTimeUnixNano")),
        is_server=span.get("kind") in _SERVER_KINDS,
        has_error=status.get("code") in _ERRORS,
        message=status.text("message"),
    )


def _printed_span(span: TraceFields) -> AgentSpan:
    status = span.inner("status")
    return _make_span(
        attributes=dict(span.inner("attributes").values),
        events=span.objects("events"),
        identity=span.inner("context").text("span_id") or "",
        parent=span.text("parent_id") or "",
        began=span.moment("start_time"),
        ended=span.moment("end_time"),
        is_server=span.get("kind") == "SpanKind.SERVER",
        has_error=status.get("status_code") == "ERROR",
        message=status.text("description"),
    )


def _make_span(
    *,
    attributes: dict[str, Any],
    events: Sequence[TraceFields],
    identity: str,
    parent: str,
    began: float | None,
    ended: float | None,
    is_server: bool,
    has_error: bool,
    message: str | None,
) -> AgentSpan:
    for event in events:
        name = event.text("name") or ""
        if name == _DETAILS:
            attributes = {**event.inner("attributes").values, **attributes}
    failed = attributes.get("error.type") or (has_error and "error")
    told, unread = translate_span(attributes, events)
    return AgentSpan(
        identity=identity,
        parent=parent,
        began=began,
        ended=ended,
        is_server=is_server,
        failed=(message or str(failed)) if failed else None,
        attributes=TraceFields(told),
        unread_events=unread,
    )


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
