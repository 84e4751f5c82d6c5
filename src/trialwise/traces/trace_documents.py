"""Read documents that somebody else wrote: the shape of one tells its format, unless it is named.

What is not of the expected kind is absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.model.trace import Fields, Trace, read_amount
from trialwise.regular_files import read_regular

#: Bytes of a document; a longer one is refused before it is read.
MAX_BYTES = 2**26
#: How zip files begin.
_ARCHIVE = b"PK\x03\x04"
_BLANKS = re.compile(r"\s*")
# A tuple: what is looked for may be a list, which no set takes.
_TEXT_PARTS = ("text", "input_text", "output_text")


class TraceError(TrialwiseError):
    """A document is not a trace, or not one of the format it was said to be."""


def parse(data: str | bytes | bytearray) -> Any:
    """Parse the value of a JSON text, or the list of values of a text of JSON lines."""
    if len(data) > MAX_BYTES:
        raise TraceError(f"the trace has more than {MAX_BYTES:,} bytes; read its parts one by one")
    if not isinstance(data, str) and data.startswith(_ARCHIVE):
        raise TraceError(
            "the trace is an archive, such as an Inspect AI log (.eval): `trialwise score` reads "
            "it as it is, and `inspect log convert --to json` makes a log that is read here"
        )
    try:
        text = data.removeprefix("\ufeff") if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"the trace is not UTF-8 text ({error.reason})") from None
    if not text.strip():
        raise TraceError("the trace is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        is_line = "\n" not in text.strip()
        is_path = text.strip().endswith((".json", ".jsonl", ".eval"))
        hint = "; a file is given as a pathlib.Path" if is_line and is_path else ""
        problem = TraceError(f"the trace is not JSON: {error}{hint}")
    return _split_documents(text, problem)


def _split_documents(text: str, problem: TraceError) -> list[Any]:
    """Return documents that stand one after the other: JSON lines, or over several lines each.

    The console exporter of OpenTelemetry writes spans like that.
    """
    found: list[Any] = []
    decoder, place = json.JSONDecoder(), _skip_blanks(text, 0)
    try:
        while place < len(text):
            one, end = decoder.raw_decode(text, place)
            found.append(one)
            place = _skip_blanks(text, end)
    except (ValueError, RecursionError) as error:
        if "\n" not in text.strip():
            raise problem from None
        number = text.count("\n", 0, place) + 1
        raise TraceError(f"line {number} of the trace is not JSON: {error}") from None
    return found


def _skip_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


class TraceFields(Fields):
    """The fields of an object in a trace, with what only traces hold."""

    __slots__ = ()

    def content(self, *names: str) -> str:
        """Return the text of a message; see `read_content`."""
        return read_content(self.get(*names))

    def result(self, *names: str) -> str | None:
        """Return what a tool returned, as text: its texts, or else JSON.

        >>> fields = TraceFields({"a": [{"type": "text", "text": "sunny"}], "b": {"high": 75}})
        >>> fields.result("a"), fields.result("b"), fields.result("c")
        ('sunny', '{"high": 75}', None)
        """
        value = self.get(*names)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list) and value and all("type" in Fields(one) for one in value):
            return read_content(value)
        try:
            return json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            return str(type(value).__name__)

    def arguments(self, *names: str) -> Any:
        """Return a value that may be JSON text; other text stays as it was sent.

        >>> fields = TraceFields({"whole": '{"q": 1}', "cut": '{"q": ', "empty": ""})
        >>> [fields.arguments(name) for name in ("whole", "cut", "empty")]
        [{'q': 1}, '{"q": ', {}]
        """
        value = self.get(*names)
        if not isinstance(value, str):
            return value
        if not value.strip():
            return {}
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value

    def calls(self, name: str) -> list[Self]:
        """Return the calls that a message asks for; something else among them may be any call.

        >>> [call.values for call in TraceFields({"calls": [{"name": "find"}, 5]}).calls("calls")]
        [{'name': 'find'}, {}]
        """
        value = self.get(name)
        if value is None:
            return []
        return [type(self)(one) for one in (value if isinstance(value, list) else [{}])]

    def moment(self, *names: str) -> float | None:
        """Return a point in time, in seconds: a number, or a date as ISO 8601 writes it.

        >>> fields = TraceFields({"at": "1970-01-01T00:01:00Z", "at_s": 2.5, "when": "soon"})
        >>> fields.moment("at"), fields.moment("at_s"), fields.moment("when")
        (60.0, 2.5, None)
        """
        from datetime import UTC, datetime

        value = self.get(*names)
        if not isinstance(value, str):
            return read_amount(value)
        try:
            date = datetime.fromisoformat(value)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError, OSError):
            return None


def read_content(value: object) -> str:
    """Read the text of a message: a text, or the texts among its parts.

    >>> read_content([{"type": "text", "text": "a"}, {"type": "image"}, {"text": "b"}])
    'ab'
    """
    if isinstance(value, str):
        return value
    parts = TraceFields({"parts": value}).objects("parts")
    told = (part for part in parts if part.values.get("type", "text") in _TEXT_PARTS)
    return "".join(part.text("text", "content") or "" for part in told)


def list_members(document: Any) -> list[TraceFields]:
    """List the objects of a document that is one, or a list of several."""
    return [TraceFields(one) for one in (document if isinstance(document, list) else [document])]


def list_conversations(document: Any) -> list[TraceFields]:
    """List the conversations of a document: a list of messages is one of them."""
    members = list_members(document)
    if isinstance(document, list) and document and all("role" in one for one in members):
        return [TraceFields({"messages": document})]
    return members


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
    RESPONSES = "responses"
    """Items of OpenAI's Responses API, and of its Agents SDK."""
    LANGCHAIN = "langchain"
    """Messages of LangChain and LangGraph."""
    PYDANTIC_AI = "pydantic-ai"
    """Messages of Pydantic AI."""
    CLOUD = "cloud"
    """Messages of Google's Gemini API, or of Amazon's Bedrock."""
    CODING_AGENT = "coding-agent"
    """Lines of Claude Code or Codex."""


#: Where the reader of each format is; behind a colon how its functions end.
_MODULES = {
    TraceFormat.OPENAI: "trialwise.traces.model_messages:openai",
    TraceFormat.ANTHROPIC: "trialwise.traces.model_messages:anthropic",
    TraceFormat.OTLP: "trialwise.traces.otlp",
    TraceFormat.INSPECT: "trialwise.contrib.traces.inspect_logs",
    TraceFormat.JSONL: "trialwise.contrib.traces.event_logs",
    TraceFormat.RESPONSES: "trialwise.traces.model_messages:responses",
    TraceFormat.LANGCHAIN: "trialwise.contrib.traces.langchain",
    TraceFormat.PYDANTIC_AI: "trialwise.contrib.traces.pydantic_ai",
    TraceFormat.CODING_AGENT: "trialwise.contrib.traces.coding_agents",
    TraceFormat.CLOUD: "trialwise.contrib.traces.cloud_messages",
}
#: Formats whose modules recognise what only they hold, in the order they are asked.
_RECOGNISED = (
    *(TraceFormat.INSPECT, TraceFormat.CODING_AGENT, TraceFormat.PYDANTIC_AI),
    *(TraceFormat.LANGCHAIN, TraceFormat.CLOUD, TraceFormat.RESPONSES),
)


def read_trace(data: Any, format: str | None = None) -> Trace:  # noqa: A002
    """Read the one trace of a document.

    Args:
        data: JSON or JSON lines as text or bytes, a `Path` to them, the values that they hold, or
            objects of a framework: messages, or spans of OpenTelemetry's SDK.
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
    """Read the traces of a document that may hold several, in order.

    Args:
        data: As for `read_trace`.
        format: As for `read_trace`.

    >>> lines = '{"tool_calls": [{"name": "a"}]}\\n{"tool_calls": []}'
    >>> [len(trace.tool_calls) for trace in read_traces(lines)]
    [1, 0]
    """
    from trialwise.traces.trace_building import to_plain

    try:
        given = read_regular(data) if isinstance(data, Path) else data
    except OSError as error:
        raise TraceError(f"the trace cannot be read: {error}") from error
    document = parse(given) if isinstance(given, str | bytes | bytearray) else to_plain(given)
    if format is None:
        kind = _detect_format(document)
    elif format in set(TraceFormat):
        kind = TraceFormat(format)
    else:
        raise InvalidArgument("format", format, f"be one of {', '.join(TraceFormat)}")
    if kind is not TraceFormat.ENVELOPE:
        return tuple(_find_function(kind, "read")(document))
    members = document if isinstance(document, list) else [document]
    if not members or not all(isinstance(one, Mapping) for one in members):
        raise TraceError("an envelope is an object with `tool_calls` and `conversation`")
    return tuple(_add_answer(Trace.from_dict(one)) for one in members)


def _find_function(kind: TraceFormat, name: str) -> Callable[[Any], Any]:
    """Return a function of a reader, which is loaded when a trace needs it."""
    module, _, suffix = _MODULES[kind].partition(":")
    function: Callable[[Any], Any] = getattr(
        import_module(module), f"{name}_{suffix}" if suffix else name
    )
    return function


def _detect_format(document: Any) -> TraceFormat:
    """Return the format that a document's shape tells."""
    from trialwise.traces.agent_spans import is_printed_span
    from trialwise.traces.model_messages import is_anthropic

    members = list_members(document)
    if isinstance(document, list):
        members = TraceFields({"members": document}).objects("members")
    first = members[0] if members else TraceFields({})
    if "resourceSpans" in first or is_printed_span(first):
        return TraceFormat.OTLP
    for kind in _RECOGNISED:
        if _find_function(kind, "recognises")(members):
            return kind
    if all("role" in one for one in members) or "messages" in first or "choices" in first:
        messages = [message for one in members for message in [one, *one.objects("messages")]]
        blocks = any(is_anthropic(message) for message in messages)
        return TraceFormat.ANTHROPIC if blocks else TraceFormat.OPENAI
    if "conversation" in first or ("tool_calls" in first and "role" not in first):
        return TraceFormat.ENVELOPE
    # Last, since the types of plain events are words that other formats use, too.
    if members and _find_function(TraceFormat.JSONL, "recognises")(members):
        return TraceFormat.JSONL
    raise TraceError(
        f"the format of the trace is not recognised; name it, as one of {', '.join(TraceFormat)}"
    )


def _add_answer(trace: Trace) -> Trace:
    """Return a trace with its last turn as the answer, where it does not say how it ended.

    The envelope of the stability report has no field for the answer. A turn that is known to have
    asked for a call is none.
    """
    last = trace.turns[-1] if trace.turns and not trace.omitted_turns else None
    if trace.answer is not None or trace.ended is not None or last is None:
        return trace
    if last.role != "assistant" or any(c.turn == trace.assistant_turns for c in trace.tool_calls):
        return trace
    return replace(trace, answer=last.content or None)
