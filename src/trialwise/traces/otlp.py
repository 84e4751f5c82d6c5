"""Traces as OpenTelemetry GenAI spans, in the JSON of OTLP.

A span is a reply of the model (`gen_ai.operation.name` is `chat`, `generate_content` or
`text_completion`) or the execution of a tool (`execute_tool`, or an MCP client's `tools/call`).
What was said stands in `gen_ai.input.messages` and `gen_ai.output.messages`, which instrumentations
write only when they are asked to, as attributes or on an event of the span. Calls that the messages
name and no span executes are calls all the same. Other conventions, such as OpenInference, are
translated first (`span_dialects`). One trace an id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace, read_usage
from trialwise.traces import agent_spans
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members, read_content

#: Parts of a message that are read, or that hold no call.
_PARTS = ("tool_call", "tool_call_response")
_ARGUMENTS = "gen_ai.tool.call.arguments"
#: How the attributes of a span of an agent begin.
_OF_AGENTS = ("gen_ai.", "mcp.", "openinference.", "llm.", "ai.operationId", "traceloop.")


def read(document: Any) -> list[Trace]:
    """Read the traces of an export, in the order in which they began."""
    by_trace: dict[str, list[agent_spans.AgentSpan]] = {}
    for part in list_members(document):
        for trace, span in agent_spans.list_spans(part):
            by_trace.setdefault(trace, []).append(span)
    if not by_trace:
        raise TraceError(
            "no spans are found: `resourceSpans` with `scopeSpans` are expected, or spans as "
            "`span.to_json()` writes them"
        )
    # An export holds whatever else was traced, which is not evidence of what an agent did not do.
    found = [
        sorted(spans, key=lambda span: (span.began or 0.0, span.ended or 0.0))
        for spans in by_trace.values()
        if any(one.startswith(_OF_AGENTS) for span in spans for one in span.attributes.values)
    ]
    if not found:
        raise TraceError("no span is of an agent: none has an attribute `gen_ai.…` or `mcp.…`")
    found = [agent_spans.merge_replies(spans) for spans in found]
    return [_trace(spans) for spans in sorted(found, key=lambda spans: spans[0].began or 0.0)]


def _trace(spans: list[agent_spans.AgentSpan]) -> Trace:
    building = Building()
    calls = _Calls(spans)
    spoken = False
    if not calls and not any(span.is_reply for span in spans):
        building.doubt("no span shows a reply of the model or the execution of a tool")
    for span in spans:
        agent_spans.doubt_span(building, span.attributes, span.unread_events)
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

    def __init__(self, spans: list[agent_spans.AgentSpan]) -> None:
        by_identity = {span.identity: span for span in spans if span.identity}
        self._inner: dict[str, Mapping[str, Any]] = {}
        made: list[agent_spans.AgentSpan] = []
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

    def __contains__(self, span: agent_spans.AgentSpan) -> bool:
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

    def describe(self, span: agent_spans.AgentSpan) -> TraceFields:
        """Describe a call by its span, the span within it and the message that asked for it."""
        asked = self._asked.get(("name", span.tool) if span.key is None else ("key", span.key))
        known = {_ARGUMENTS: asked.pop(0)} if asked else {}
        inner = self._inner.get(span.identity, {})
        return TraceFields({**known, **inner, **span.attributes.values})


def _read_opening(building: Building, span: agent_spans.AgentSpan) -> None:
    """What was said before the model spoke for the first time."""
    if system := read_content(span.attributes.arguments("gen_ai.system_instructions")):
        building.say("system", system)
    for message in _messages(span.attributes, "gen_ai.input.messages"):
        role = message.text("role") or ""
        if role != "tool":
            building.say(role, message.content("parts"), at=span.began)


def _read_reply(building: Building, span: agent_spans.AgentSpan, calls: _Calls) -> None:
    told = span.attributes
    ended_with_call = any(map(agent_spans.calls_tool, told.items("gen_ai.response.finish_reasons")))
    building.spend(_usage(told), told.amount("gen_ai.usage.cost"))
    messages = _messages(told, "gen_ai.output.messages")[:1]
    if not messages:
        building.say("assistant", "", at=span.ended)
        agent_spans.doubt_silent_reply(building, told)
        # Without contents and without a span of its own, a call may have been any.
        if ended_with_call and not calls:
            building.call(None, at=span.ended)
    for message in messages:
        building.doubt_unknown_parts(message.get("parts"), _PARTS)
        building.say("assistant", message.content("parts"), at=span.ended)
        asked = [part for part in message.objects("parts") if part.get("type") == "tool_call"]
        if ended_with_call and not asked and not calls:
            building.doubt("a reply of the model ended with a call and shows none")
        for part in asked:
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


def _read_call(building: Building, span: agent_spans.AgentSpan, told: TraceFields) -> None:
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


def _whole(spans: list[agent_spans.AgentSpan], *, spoken: bool) -> dict[str, Any]:
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
