"""What a span must tell before a reader may say that no tool was called in it.

Instrumentations write what a model said under many names. Those that are not read here may hold
calls, so that a span with one of them leaves the calls of its trace unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from trialwise.traces.span_messages import SPAN_DIALECTS
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceFields

REPLIES = ("chat", "generate_content", "text_completion")
#: Operations that are no reply of a model.
_OTHERS = ("create_agent", "embeddings", "execute_tool", "invoke_agent", "invoke_workflow")
#: Signs of a reply of a model, whatever its operation is called.
_SIGNS = ("gen_ai.request.", "gen_ai.response.", "gen_ai.usage.", "gen_ai.output.")
_READ_EVENTS = (
    "gen_ai.client.inference.operation.details",
    "gen_ai.evaluation.result",
)
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
