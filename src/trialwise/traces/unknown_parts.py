"""What a reader must know of a message before it may say that no tool was called.

A reader takes from a message what it knows. Whatever else the message holds may be a call: a role,
a part of the content, a structured field that nobody here has read, or a text under a name such as
`action`. The same holds for what stands beside the messages, and for what may have come before
them. Then the trace says that its calls are unknown, and a check about calls is not measured.
Numbers, and texts under other names, hold no call.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from trialwise.model.trace import Fields
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceFields

#: Who speaks in a conversation; tools have roles of their own.
ROLES = frozenset({"assistant", "developer", "system", "user"})

#: Parts of a message that hold no call: what was said, thought or shown.
PLAIN_PARTS = frozenset(
    {
        *("text", "input_text", "output_text", "reasoning", "thinking", "redacted_thinking"),
        *("refusal", "image", "image_url", "input_image", "audio", "audio_url", "input_audio"),
        *("video", "video_url", "blob", "document", "file", "input_file", "uri"),
    }
)

#: Structured fields of a message that hold no call.
PLAIN_FIELDS = frozenset(
    {
        *("content", "annotations", "audio", "images", "logprobs", "metadata", "usage"),
        *("reasoning", "reasoning_content", "reasoning_details", "thinking"),
        *("cache_control", "internal"),
    }
)

#: Structured fields beside the messages that hold no call: what was asked for, and what it took.
PLAIN_BESIDE = PLAIN_FIELDS | {
    *("messages", "contents", "choices", "candidates", "model", "system", "prompt", "stop"),
    *("tools", "functions", "tool_choice", "toolChoice", "tool_config", "toolConfig"),
    *("function_call", "response_format", "logit_bias", "stop_sequences", "stream_options"),
    *("modalities", "prediction", "system_instruction", "systemInstruction", "generationConfig"),
    *("inferenceConfig", "safetySettings", "promptFeedback", "prompt_feedback", "metrics"),
    *("usageMetadata", "usage_metadata", "prompt_filter_results", "ResponseMetadata", "container"),
    *("sdk_http_response", "web_search_options", "mcp_servers", "betas"),
}

#: Who speaks before a model does.
_ASKING = frozenset({"developer", "system", "user"})
#: Words in the name of a field that holds what was called, and ends of such names that only refer.
_CALLING = frozenset(
    {"action", "actions", "call", "calls", "command", "function", "invocation", "tool", "tools"}
)
_REFERRING = frozenset({"choice", "count", "id", "ids"})


def doubt_beginning(building: Building, roles: Sequence[object]) -> None:
    """Doubt the calls of messages that begin with a reply: nobody knows what came before it.

    A model may greet before anybody has asked, so that the first two messages count.

    Args:
        building: The trace that the messages belong to.
        roles: Who speaks in each of the messages.
    """
    if roles and not _ASKING.intersection(map(str, roles[:2])):
        building.doubt(
            "the messages begin with a reply, and what came before it is not told; a whole session "
            "begins with what was asked"
        )


def doubt_beside(building: Building, document: TraceFields) -> None:
    """Doubt the calls of messages that have something unknown beside them in their document."""
    for name, value in document.values.items():
        if name not in PLAIN_BESIDE and (_holds_something(value) or names_call(name, value)):
            building.doubt(f"{name!r} stands beside the messages and may hold calls")


def doubt_unknown(
    building: Building,
    message: TraceFields,
    *,
    roles: Collection[str] = ROLES,
    fields: Collection[str] = (),
    parts: Collection[str] = (),
) -> None:
    """Doubt a message's calls where it holds something that its reader does not read.

    Args:
        building: The trace that the message belongs to.
        message: The message.
        roles: The roles that the reader knows.
        fields: Structured fields that the reader reads, beside those that hold no call.
        parts: Kinds of parts that the reader reads, beside those that hold no call.
    """
    role = message.get("role")
    if not isinstance(role, str) or role not in roles:
        building.doubt(f"a message has the role {role!r}" if role else "a message has no role")
    # What a tool returned may name the tool.
    speaks = isinstance(role, str) and role in ROLES
    for name, value in message.values.items():
        if name in PLAIN_FIELDS or name in fields:
            continue
        if _holds_something(value) or (speaks and names_call(name, value)):
            building.doubt(f"a message has the unknown field {name!r}")
    doubt_unknown_parts(building, message.get("content"), parts)


def doubt_unknown_parts(building: Building, content: Any, parts: Collection[str] = ()) -> None:
    """Doubt the calls of a message whose content is neither text nor parts that are known."""
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        building.doubt("the content of a message is neither text nor a list of parts")
        return
    for part in content:
        if isinstance(part, str):
            continue
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and kind in parts:
            continue
        named = [name for name in Fields(part).values if names_call(name, part[name])]
        if named:
            building.doubt(f"a part of a message has the unknown field {named[0]!r}")
        if isinstance(kind, str) and kind in PLAIN_PARTS:
            continue
        if isinstance(part, Mapping) and kind is None and not _structured(part):
            continue  # `{"text": "…"}`
        building.doubt(
            f"a message has a part of the unknown type {kind!r}"
            if kind is not None
            else "a message has a part that does not tell its type"
        )


def _structured(part: Mapping[str, Any]) -> bool:
    return "text" not in part or any(_holds_something(value) for value in part.values())


def names_call(name: object, value: object) -> bool:
    """Return whether a field holds what was called, to judge by its name."""
    words = re.findall(r"[A-Z]?[a-z]+", str(name)) or [""]
    is_named = _CALLING.intersection(map(str.lower, words)) and words[-1].lower() not in _REFERRING
    if isinstance(value, str):
        return bool(is_named and value.strip())
    return bool(is_named) and _holds_something(value)


def _holds_something(value: object) -> bool:
    """Return whether a field has a structure with anything in it, which a call would need."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return False
    return any(one is not None and one not in ("", [], {}) for one in value)
