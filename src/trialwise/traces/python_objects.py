"""Sessions as Python objects: lists of messages, answers of model SDKs, and frameworks' results.

An object counts as a session only if it has what the result of its library has; everything else
that a function returns stays the value that it is. None of these libraries is imported.
`trialwise.contrib.traces.framework_objects` knows those of agent frameworks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

from trialwise.errors import TrialwiseError
from trialwise.model.trace import Trace
from trialwise.traces.trace_documents import TraceFields, read_trace

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
    if isinstance(value, list) and all(map(_is_message, value)) and any(map(_speaks, value)):
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


def _speaks(message: Mapping[str, Any]) -> bool:
    return message["role"] in ("assistant", "model")


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
