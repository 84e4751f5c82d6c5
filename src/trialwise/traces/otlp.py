"""Traces as OpenTelemetry GenAI spans, in the JSON of OTLP.

A span is a reply of the model (`gen_ai.operation.name` is `chat`, `generate_content` or
`text_completion`) or the execution of a tool (`execute_tool`, or an MCP client's `tools/call`).
What was said stands in `gen_ai.input.messages` and `gen_ai.output.messages`, which instrumentations
write only when they are asked to, as attributes or on an event of the span. Calls that the messages
name and no span executes are calls all the same. The conventions are still in development; this
reads 1.37 and later, and the spans of earlier ones without their contents. One trace an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.model.foreign_fields import read_amount, read_usage
from trialwise.model.reply import Usage
from trialwise.model.trace import Trace
from trialwise.traces._building import Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members, read_content
from trialwise.traces.unknown_parts import doubt_unknown_parts
from trialwise.traces.unknown_spans import REPLIES, calls_tool, doubt_silent_reply, doubt_span

#: Parts of a message that are read, or that hold no call.
_PARTS = ("tool_call", "tool_call_response")
_ARGUMENTS = "gen_ai.tool.call.arguments"
_SERVER_KINDS = (2, "SPAN_KIND_SERVER")
_ERRORS = (2, "STATUS_CODE_ERROR")
#: How deep a value of an attribute may be nested.
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class _Span:
    """A span with its attributes read."""

    identity: str
    parent: str
    began: float | None
    ended: float | None
    is_server: bool
    failed: str | None
    attributes: TraceFields
    events: tuple[str, ...]

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

    def is_inner_half_of(self, outer: _Span | None) -> bool:
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


def read(document: Any) -> list[Trace]:
    """Read the traces of an export, in the order in which they began."""
    by_trace: dict[str, list[_Span]] = {}
    for part in list_members(document):
        for trace, span in _spans(part):
            by_trace.setdefault(trace, []).append(span)
    if not by_trace:
        raise TraceError("no spans are found: `resourceSpans` with `scopeSpans` are expected")
    # An export holds whatever else was traced, which is no evidence of what an agent did not do.
    found = [_in_order(spans) for spans in by_trace.values() if any(map(_tells, spans))]
    if not found:
        raise TraceError("no span is of an agent: none has an attribute `gen_ai.…` or `mcp.…`")
    return [_trace(spans) for spans in sorted(found, key=lambda spans: spans[0].began or 0.0)]


def _spans(document: TraceFields) -> Iterator[tuple[str, _Span]]:
    for resource in document.objects("resourceSpans"):
        for scope in resource.objects("scopeSpans"):
            for span in scope.objects("spans"):
                yield span.text("traceId") or "", _span(span)


def _span(span: TraceFields) -> _Span:
    attributes = _attributes(span)
    events = tuple(str(event.get("name")) for event in span.objects("events"))
    for name, event in zip(events, span.objects("events"), strict=True):
        if name.startswith("gen_ai."):
            attributes = {**_attributes(event), **attributes}
    status = span.inner("status")
    failed = attributes.get("error.type") or (status.get("code") in _ERRORS and "error")
    return _Span(
        identity=span.text("spanId") or "",
        parent=span.text("parentSpanId") or "",
        began=_seconds(span.get("startTimeUnixNano")),
        ended=_seconds(span.get("endTimeUnixNano")),
        is_server=span.get("kind") in _SERVER_KINDS,
        failed=(status.text("message") or str(failed)) if failed else None,
        attributes=TraceFields(attributes),
        events=events,
    )


def _tells(span: _Span) -> bool:
    return any(name.startswith(("gen_ai.", "mcp.")) for name in span.attributes.values)


def _in_order(spans: list[_Span]) -> list[_Span]:
    return sorted(spans, key=lambda span: (span.began or 0.0, span.ended or 0.0))


def _trace(spans: list[_Span]) -> Trace:
    building = Building()
    calls = _Calls(spans)
    spoken = False
    if not calls and not any(span.is_reply for span in spans):
        building.doubt("no span shows a reply of the model or the execution of a tool")
    for span in spans:
        doubt_span(building, span.attributes, span.events)
        if span.is_reply:
            if not spoken:
                _read_opening(building, span)
            spoken = True
            _read_reply(building, span, calls)
        elif span in calls:
            _read_call(building, span, calls.describe(span))
    return building.finish(**_whole(spans, spoken=spoken))


class _Calls:
    """The spans that are calls, once each, and which calls that a message names they stand for."""

    def __init__(self, spans: list[_Span]) -> None:
        by_identity = {span.identity: span for span in spans if span.identity}
        self._inner: dict[str, Mapping[str, Any]] = {}
        made: list[_Span] = []
        for span in (one for one in spans if one.is_call):
            if span.is_inner_half_of(by_identity.get(span.parent)):
                self._inner[span.parent] = {
                    **span.attributes.values,
                    **self._inner.get(span.parent, {}),
                }
            else:
                made.append(span)
        self._made = {id(span) for span in made}
        self._keys = {span.key for span in made} - {None}
        self._without_key = Counter(span.tool for span in made if span.key is None)
        self._asked: dict[tuple[str, str | None], list[Any]] = {}

    def __contains__(self, span: _Span) -> bool:
        return id(span) in self._made

    def __bool__(self) -> bool:
        return bool(self._made)

    def take(self, name: str | None, key: str | None, args: Any) -> bool:
        """Return whether a span stands for a call that a message names."""
        if key in self._keys:
            self._asked.setdefault(("key", key), []).append(args)
            return True
        if not self._without_key[name]:
            return False
        self._without_key[name] -= 1
        self._asked.setdefault(("name", name), []).append(args)
        return True

    def describe(self, span: _Span) -> TraceFields:
        """Describe a call by its span, the span within it and the message that asked for it."""
        asked = self._asked.get(("name", span.tool) if span.key is None else ("key", span.key))
        known = {_ARGUMENTS: asked.pop(0)} if asked else {}
        inner = self._inner.get(span.identity, {})
        return TraceFields({**known, **inner, **span.attributes.values})


def _read_opening(building: Building, span: _Span) -> None:
    """What was said before the model spoke for the first time."""
    if system := read_content(span.attributes.arguments("gen_ai.system_instructions")):
        building.say("system", system)
    for message in _messages(span.attributes, "gen_ai.input.messages"):
        role = message.text("role") or ""
        if role != "tool":
            building.say(role, message.content("parts"), at=span.began)


def _read_reply(building: Building, span: _Span, calls: _Calls) -> None:
    told = span.attributes
    building.spend(_usage(told), told.amount("gen_ai.usage.cost"))
    messages = _messages(told, "gen_ai.output.messages")[:1]
    if not messages:
        building.say("assistant", "", at=span.ended)
        doubt_silent_reply(building, told)
        reasons = told.items("gen_ai.response.finish_reasons")
        # Without contents and without a span of its own, a call may have been any.
        if any(map(calls_tool, reasons)) and not calls:
            building.call(None, at=span.ended)
    for message in messages:
        doubt_unknown_parts(building, message.get("parts"), _PARTS)
        building.say("assistant", message.content("parts"), at=span.ended)
        for part in message.objects("parts"):
            if part.get("type") != "tool_call":
                continue
            name, key = part.text("name"), part.text("id")
            given = part.arguments("arguments")
            if not calls.take(name, key, given):
                building.call(name, key=key, args=given, at=span.ended)
    _read_responses(building, told)


def _read_responses(building: Building, told: TraceFields) -> None:
    """Results that only a message tells, of calls that no span executes."""
    for message in _messages(told, "gen_ai.input.messages"):
        for part in message.objects("parts"):
            key = part.text("id")
            if part.get("type") == "tool_call_response" and building.knows(key):
                building.result(key=key, result=part.result("response", "result") or "")


def _messages(told: TraceFields, name: str) -> list[TraceFields]:
    """Messages in structure, or as the JSON text that most exporters write."""
    return TraceFields({name: told.arguments(name)}).objects(name)


def _read_call(building: Building, span: _Span, told: TraceFields) -> None:
    building.call(
        span.tool,
        key=span.identity,
        server=told.text("mcp.server.name", "server.address"),
        args=told.arguments(_ARGUMENTS),
        at=span.began,
    )
    building.result(
        key=span.identity,
        result=None if span.failed else told.result("gen_ai.tool.call.result") or "",
        error=span.failed,
        at=span.ended,
    )


def _whole(spans: list[_Span], *, spoken: bool) -> dict[str, Any]:
    """Return what the outermost span tells, if no reply of the model says it."""
    began = [span.began for span in spans if span.began is not None]
    ended = [span.ended for span in spans if span.ended is not None]
    told: dict[str, Any] = {}
    if began and ended:
        told["duration_s"] = max(0.0, max(ended) - min(began))
    if not spoken:
        agents = [s for s in spans if s.attributes.get("gen_ai.operation.name") == "invoke_agent"]
        if len(agents) == 1:
            told["usage"] = _usage(agents[0].attributes)
    return told


def _usage(told: TraceFields) -> Usage | None:
    asked, answered = (told.count(f"gen_ai.usage.{which}_tokens") for which in ("input", "output"))
    return read_usage(asked, answered)


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
