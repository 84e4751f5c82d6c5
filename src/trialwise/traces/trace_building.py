"""A trace put together from events in the order they happened.

One home for the rules that every format needs: a result belongs to the call of its id, a result
that nobody asked for is a call all the same, tokens are known only if every reply of the model
tells them, and the answer is the last thing said if nothing was done after it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

from trialwise.errors import TrialwiseError
from trialwise.model.reply import Usage, sum_usages
from trialwise.model.trace import Fields, ToolCall, Trace, Turn
from trialwise.traces.trace_documents import TraceFields, read_trace

# What a reader must know of a message before it may say that no tool was called.
#
# A reader takes from a message what it knows. Whatever else the message holds may be a call: a
# role, a part of the content, a structured field that nobody here has read, or a text under a name
# such as `action`. The same holds for what stands beside the messages, and for what may have come
# before them. Then the trace says that its calls are unknown, and a check about calls is not
# measured. Numbers, and texts under other names, hold no call.

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


@dataclass(slots=True)
class _Call:
    """A call whose result may still come, and when it began."""

    told: ToolCall
    began: float | None


class Building:
    """A trace under construction; points in time are seconds from any one origin."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._calls: list[_Call] = []
        self._open: dict[str, _Call] = {}
        self._spoken = 0
        self._usages: list[Usage | None] = []
        self._costs: list[float | None] = []
        self._answer: str | None = None
        self._first, self._last = math.inf, -math.inf
        self._unknown: str | None = None

    def doubt(self, why: str) -> None:
        """Something was met that this reader does not know, so that a call may hide in it."""
        if self._unknown is None:
            self._unknown = why

    def doubt_beginning(self, roles: Sequence[object]) -> None:
        """Doubt the calls of messages that begin with a reply: nobody knows what came before it.

        A model may greet before anybody has asked, so that the first two messages count.

        Args:
            roles: Who speaks in each of the messages.
        """
        if roles and not _ASKING.intersection(map(str, roles[:2])):
            self.doubt(
                "the messages begin with a reply, and what came before it is not told; a whole "
                "session begins with what was asked"
            )

    def doubt_beside(self, document: TraceFields) -> None:
        """Doubt the calls of messages that have something unknown beside them in their document."""
        for name, value in document.values.items():
            if name not in PLAIN_BESIDE and (_holds_something(value) or names_call(name, value)):
                self.doubt(f"{name!r} stands beside the messages and may hold calls")

    def doubt_unknown(
        self,
        message: TraceFields,
        *,
        roles: Collection[str] = ROLES,
        fields: Collection[str] = (),
        parts: Collection[str] = (),
    ) -> None:
        """Doubt a message's calls where it holds something that its reader does not read.

        Args:
            message: The message.
            roles: The roles that the reader knows.
            fields: Structured fields that the reader reads, beside those that hold no call.
            parts: Kinds of parts that the reader reads, beside those that hold no call.
        """
        role = message.get("role")
        if not isinstance(role, str) or role not in roles:
            self.doubt(f"a message has the role {role!r}" if role else "a message has no role")
        # What a tool returned may name the tool.
        speaks = isinstance(role, str) and role in ROLES
        for name, value in message.values.items():
            if name in PLAIN_FIELDS or name in fields:
                continue
            if _holds_something(value) or (speaks and names_call(name, value)):
                self.doubt(f"a message has the unknown field {name!r}")
        self.doubt_unknown_parts(message.get("content"), parts)

    def doubt_unknown_parts(self, content: Any, parts: Collection[str] = ()) -> None:
        """Doubt the calls of a message whose content is neither text nor parts that are known."""
        if content is None or isinstance(content, str):
            return
        if not isinstance(content, list | tuple):
            self.doubt("the content of a message is neither text nor a list of parts")
            return
        for part in content:
            if isinstance(part, str):
                continue
            kind = part.get("type") if isinstance(part, Mapping) else None
            if isinstance(kind, str) and kind in parts:
                continue
            named = [name for name in Fields(part).values if names_call(name, part[name])]
            if named:
                self.doubt(f"a part of a message has the unknown field {named[0]!r}")
            if isinstance(kind, str) and kind in PLAIN_PARTS:
                continue
            is_plain = isinstance(part, Mapping) and kind is None and "text" in part
            if is_plain and not any(map(_holds_something, part.values())):
                continue  # `{"text": "…"}`
            self.doubt(
                f"a message has a part of the unknown type {kind!r}"
                if kind is not None
                else "a message has a part that does not tell its type"
            )

    def say(self, role: str, said: str, *, at: float | None = None) -> None:
        """Somebody spoke."""
        self._see(at)
        if role == "assistant":
            self._spoken += 1
            self._answer = said or None
        self._turns.append(Turn(role=role, content=said))

    def call(
        self,
        name: str | None,
        *,
        key: str | None = None,
        server: str | None = None,
        args: Any = None,
        at: float | None = None,
    ) -> None:
        """A tool was called; `key` is what its result will name."""
        self._see(at)
        self._answer = None
        # What was said before a call is not the answer: the model went on.
        told = ToolCall(name=name, server=server, args=args, turn=self._spoken or None)
        made = _Call(told, at)
        self._calls.append(made)
        if key is not None:
            self._open[key] = made

    def result(
        self,
        *,
        key: str | None = None,
        name: str | None = None,
        result: str | None = None,
        error: str | None = None,
        at: float | None = None,
    ) -> None:
        """A tool returned, or failed."""
        self._see(at)
        if key is not None:
            found = self._open.pop(key, None)
        else:
            waiting = (one for one in reversed(self._calls) if one.told.failed is None)
            found = next((one for one in waiting if name in (None, one.told.name)), None)
        if found is None:
            # Somebody must have made this call, and a call that is not seen could be any.
            self.call(name, at=at)
            found = self._calls[-1]
        took = None if found.began is None or at is None else max(0.0, at - found.began)
        found.told = replace(found.told, result=result, error=error, duration_s=took)

    def spend(self, usage: Usage | None, cost_usd: float | None = None) -> None:
        """What one reply of the model took."""
        self._usages.append(usage)
        self._costs.append(cost_usd)

    def answer(self, said: str) -> None:
        """What was said after the last call of the same turn."""
        self._answer = said or None

    def knows(self, key: str | None) -> bool:
        """Return whether a call of that key awaits its result."""
        return key in self._open

    def finish(
        self,
        *,
        usage: Usage | None = None,
        total_tokens: int | None = None,
        cost_usd: float | None = None,
        duration_s: float | None = None,
        answer: str | None = None,
        ended: str | None = None,
    ) -> Trace:
        """Return the trace; totals of the document win over the sums of its parts."""
        if duration_s is None and self._first < self._last:
            duration_s = self._last - self._first
        known = [one for one in self._costs if one is not None]
        total_cost = math.fsum(known) if known and len(known) == len(self._costs) else None
        return Trace(
            turns=tuple(self._turns),
            # Since the trace began, which is known once it has ended.
            tool_calls=tuple(
                one.told
                if one.began is None
                else replace(one.told, started_s=one.began - self._first)
                for one in self._calls
            ),
            usage=usage or sum_usages(self._usages),
            total_tokens=total_tokens,
            cost_usd=total_cost if cost_usd is None else cost_usd,
            duration_s=duration_s,
            answer=answer or self._answer,
            ended=ended,
            calls_unknown=self._unknown,
        )

    def _see(self, at: float | None) -> None:
        if at is not None:
            self._first, self._last = min(self._first, at), max(self._last, at)


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


# Sessions as Python objects: lists of messages, answers of model SDKs, and frameworks' results.
#
# An object counts as a session only if it has what the result of its library has; everything else
# that a function returns stays the value that it is. None of these libraries is imported.
# `trialwise.contrib.traces.framework_objects` knows those of agent frameworks.

#: Objects nested deeper than this are left as they are.
_DEEPEST = 40
_ROLES = ("assistant", "developer", "function", "model", "system", "tool", "user")
#: Packages whose answers are objects with `model_dump`.
_SDKS = ("anthropic", "openai")
#: The module that knows the results of agent frameworks.
_FRAMEWORKS = "trialwise.contrib.traces.framework_objects"


class ReturnedSession(NamedTuple):
    """A session that a function returned, and its answer."""

    trace: Trace
    value: Any


def to_plain(value: Any, room: int = _DEEPEST) -> Any:
    """Return an object of a framework as the JSON values that it stands for.

    >>> class Message:
    ...     def model_dump(self, mode="json"):
    ...         return {"role": "user"}
    >>> to_plain([Message(), 5])
    [{'role': 'user'}, 5]
    """
    if value is None or isinstance(value, str | int | float) or not room:
        return value
    if isinstance(value, Mapping):
        return {name: to_plain(one, room - 1) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one, room - 1) for one in value]
    return _describe(value, room)


def _describe(value: Any, room: int) -> Any:
    """Return what an object says of itself; the object where it says nothing."""
    if offers_methods(value, "to_json", "get_span_context"):
        return json.loads(value.to_json())
    if offers_methods(value, "model_dump"):
        return to_plain(value.model_dump(), room - 1)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_plain(getattr(value, one.name), room - 1) for one in fields(value)}
    return value


def read_session(value: Any) -> ReturnedSession | None:
    """Return the session that an object is; None where it is none.

    >>> session = read_session([{"role": "user", "content": "Hi."},
    ...                         {"role": "assistant", "content": "Hello."}])
    >>> session.value
    'Hello.'
    """
    is_list = isinstance(value, list) and all(map(_is_message, value))
    if is_list and any(one["role"] in ("assistant", "model") for one in value):
        return read_document(value)
    found: ReturnedSession | None = import_module(_FRAMEWORKS).find_session(value)
    return _find_sdk_answer(value) if found is None else found


def to_trace(value: Any) -> Trace:
    """Return the trace that a value is or holds; one that cannot be read leaves its calls unknown.

    >>> to_trace({"tool_calls": [{"name": "find"}]}).tool_calls[0].name
    'find'
    >>> to_trace(5).calls_unknown is None
    False

    Args:
        value: A trace, what `read_trace` reads, or the result of an agent framework.
    """
    if isinstance(value, Trace):
        return value
    found = read_session(value)
    return read_document(value).trace if found is None else found.trace


def _is_message(one: Any) -> bool:
    has_role = isinstance(one, Mapping) and one.get("role") in _ROLES
    return has_role and any(name in one for name in ("content", "tool_calls", "parts"))


def _find_sdk_answer(value: Any) -> ReturnedSession | None:
    package = (type(value).__module__ or "").partition(".")[0]
    if package not in _SDKS or not offers_methods(value, "model_dump"):
        return None
    plain = TraceFields(to_plain(value))
    kinds = (plain.get("object"), plain.get("type"))
    is_answer = "response" in kinds or "message" in kinds or "choices" in plain
    if not is_answer:
        return None
    found = read_document(plain.values)
    # The last response of a loop looks like the only response of a service that asks once.
    unknown = found.trace.calls_unknown or (
        "a response alone does not tell what was called before it; return the messages from the "
        "question on, or `read_trace(response)` where the response is all"
    )
    return found._replace(trace=replace(found.trace, calls_unknown=unknown))


def read_document(document: Any, format_: str | None = None) -> ReturnedSession:
    """Read the session that a document holds; one that cannot be read leaves its calls unknown."""
    try:
        trace = read_trace(to_plain(document), format_)
    except TrialwiseError as error:
        trace = Trace(calls_unknown=f"the trace cannot be read: {error}")
    return ReturnedSession(trace, trace.answer or "")


def offers_methods(value: Any, *names: str) -> bool:
    """Return whether an object has some methods."""
    if isinstance(value, type):
        return False
    found: list[Callable[..., Any] | None] = [getattr(value, name, None) for name in names]
    return all(callable(one) for one in found)
