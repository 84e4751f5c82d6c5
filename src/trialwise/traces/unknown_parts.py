"""What a reader must know of a message before it may say that no tool was called.

A reader takes from a message what it knows. Whatever else the message holds may be a call: a role,
a part of the content or a structured field that nobody here has read. Then the trace says that its
calls are unknown, and a check about calls is not measured. Text and numbers hold no call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trialwise.traces._building import Building
from trialwise.traces.trace_documents import TraceFields

#: Who speaks in a conversation; tools have roles of their own.
ROLES = frozenset({"assistant", "developer", "system", "user"})

#: Parts of a message that hold no call: what was said, thought or shown.
PLAIN_PARTS = frozenset(
    {
        "audio",
        "audio_url",
        "blob",
        "data",
        "document",
        "file",
        "image",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "input_text",
        "output_text",
        "reasoning",
        "redacted_thinking",
        "refusal",
        "text",
        "thinking",
        "uri",
        "video",
        "video_url",
    }
)

#: Structured fields of a message that hold no call.
PLAIN_FIELDS = frozenset(
    {
        "annotations",
        "audio",
        "cache_control",
        "content",
        "images",
        "internal",
        "logprobs",
        "metadata",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "thinking",
        "usage",
    }
)


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
    for name, value in message.values.items():
        if name not in PLAIN_FIELDS and name not in fields and _holds_something(value):
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
        if isinstance(kind, str) and (kind in PLAIN_PARTS or kind in parts):
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


def _holds_something(value: object) -> bool:
    """Return whether a field has a structure with anything in it, which a call would need."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list | tuple):
        return False
    return any(one is not None and one not in ("", [], {}) for one in value)
