"""One door to every format: which one a document is in is told by its shape, unless it is said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from trialwise.errors import InvalidArgument
from trialwise.model.trace import Trace
from trialwise.traces.trace_documents import TraceError, mapping, mappings, parse

__all__ = ["TraceError", "TraceFormat", "read_trace", "read_traces"]


class TraceFormat(StrEnum):
    """The forms that traces are kept in."""

    ENVELOPE = "envelope"
    """Ours, and that of the stability report."""
    OPENAI = "openai"
    """Chat messages as OpenAI has them."""
    ANTHROPIC = "anthropic"
    """Messages as Anthropic has them."""
    OTLP = "otlp"
    """OpenTelemetry GenAI spans, as JSON."""
    INSPECT = "inspect"
    """Inspect AI logs, as JSON."""
    JSONL = "jsonl"
    """Plain events, one a line."""


_MODULES = {
    TraceFormat.OPENAI: "openai",
    TraceFormat.ANTHROPIC: "anthropic",
    TraceFormat.OTLP: "otlp",
    TraceFormat.INSPECT: "inspect_logs",
    TraceFormat.JSONL: "event_logs",
}


def read_trace(data: Any, format: str | None = None) -> Trace:  # noqa: A002
    """The one trace of a document.

    Args:
        data: JSON or JSON lines as text or bytes, a `Path` to them, or the values that they hold.
        format: One of `TraceFormat`; without it the document's shape tells.

    Raises:
        TraceError: The document is not of that format, or holds several traces.

    >>> trace = read_trace([
    ...     {"role": "user", "content": "What is 15 * 37?"},
    ...     {"role": "assistant", "content": None, "tool_calls": [
    ...         {"id": "c1", "function": {"name": "multiply", "arguments": '{"a": 15, "b": 37}'}}]},
    ...     {"role": "tool", "tool_call_id": "c1", "content": "555"},
    ...     {"role": "assistant", "content": "It is 555."},
    ... ])
    >>> trace.tool_calls[0].args, trace.tool_calls[0].result, trace.answer
    ({'a': 15, 'b': 37}, '555', 'It is 555.')
    """
    found = read_traces(data, format)
    if len(found) != 1:
        raise TraceError(f"one trace is expected, the document holds {len(found)}: use read_traces")
    return found[0]


def read_traces(data: Any, format: str | None = None) -> tuple[Trace, ...]:  # noqa: A002
    """The traces of a document that may hold several, in order.

    Args:
        data: As for `read_trace`.
        format: As for `read_trace`.

    >>> lines = '{"tool_calls": [{"name": "a"}]}\\n{"tool_calls": []}'
    >>> [len(trace.tool_calls) for trace in read_traces(lines)]
    [1, 0]
    """
    if isinstance(data, Path):
        data = _content(data)
    document = parse(data) if isinstance(data, str | bytes | bytearray) else data
    if format is None:
        kind = _detect_format(document)
    elif format in set(TraceFormat):
        kind = TraceFormat(format)
    else:
        raise InvalidArgument("format", format, f"be one of {', '.join(TraceFormat)}")
    if kind is TraceFormat.ENVELOPE:
        return tuple(_envelopes(document))
    read: Callable[[Any], list[Trace]] = import_module(f"trialwise.traces.{_MODULES[kind]}").read
    return tuple(read(document))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TraceError(f"the trace cannot be read: {error}") from error


def _detect_format(document: Any) -> TraceFormat:
    """The format that a document's shape tells."""
    from trialwise.traces.anthropic import is_anthropic
    from trialwise.traces.event_logs import KINDS
    from trialwise.traces.inspect_logs import is_inspect

    members = mappings(document) if isinstance(document, list) else [mapping(document)]
    first = members[0] if members else {}
    if "resourceSpans" in first:
        return TraceFormat.OTLP
    if is_inspect(first):
        return TraceFormat.INSPECT
    if all("role" in one for one in members) or "messages" in first or "choices" in first:
        messages = [message for one in members for message in [one, *mappings(one.get("messages"))]]
        blocks = any(is_anthropic(message) for message in messages)
        return TraceFormat.ANTHROPIC if blocks else TraceFormat.OPENAI
    if "conversation" in first or ("tool_calls" in first and "role" not in first):
        return TraceFormat.ENVELOPE
    if "events" in first or any(one.get("type") in KINDS for one in members):
        return TraceFormat.JSONL
    raise TraceError(
        f"the format of the trace cannot be told; name it, as one of {', '.join(TraceFormat)}"
    )


def _envelopes(document: Any) -> list[Trace]:
    members = document if isinstance(document, list) else [document]
    if not members or not all(isinstance(one, Mapping) for one in members):
        raise TraceError("an envelope is an object with `tool_calls` and `conversation`")
    return [Trace.from_dict(one) for one in members]
