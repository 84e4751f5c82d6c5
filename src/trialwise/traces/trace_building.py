"""A trace put together from events in the order they happened.

One home for the rules that every format needs: a result belongs to the call of its id, a result
that nobody asked for is a call all the same, tokens are known only if every reply of the model
tells them, and the answer is the last thing said if nothing was done after it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

from trialwise.errors import TrialwiseError
from trialwise.model.reply import Usage, sum_usages
from trialwise.model.trace import MAX_CALLS, MAX_TURNS, ToolCall, Trace, Turn
from trialwise.traces.trace_documents import TraceFields, read_trace


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
        self._spoken = self._omitted_turns = self._omitted_calls = 0
        self._usages: list[Usage | None] = []
        self._costs: list[float | None] = []
        self._answer: str | None = None
        self._first, self._last = math.inf, -math.inf
        self._unknown: str | None = None

    def doubt(self, why: str) -> None:
        """Something was met that this reader does not know, so that a call may hide in it."""
        if self._unknown is None:
            self._unknown = why

    def say(self, role: str, said: str, *, at: float | None = None) -> None:
        """Somebody spoke."""
        self._see(at)
        if role == "assistant":
            self._spoken += 1
            self._answer = said or None
        if len(self._turns) == MAX_TURNS:
            self._omitted_turns += 1
        else:
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
        if len(self._calls) == MAX_CALLS:
            self._omitted_calls += 1
            return
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
            found = next((one for one in reversed(self._calls) if _awaits(one.told, name)), None)
        if found is None:
            # Somebody must have made this call, and a call that is not seen could be any.
            self.call(name, at=at)
            if self._omitted_calls:
                return
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
        return Trace(
            turns=tuple(self._turns),
            tool_calls=tuple(map(self._place, self._calls)),
            usage=usage or sum_usages(self._usages),
            total_tokens=total_tokens,
            cost_usd=self._cost() if cost_usd is None else cost_usd,
            duration_s=duration_s,
            answer=answer or self._answer,
            ended=ended,
            omitted_turns=self._omitted_turns,
            omitted_calls=self._omitted_calls,
            calls_unknown=self._unknown,
        )

    def _place(self, call: _Call) -> ToolCall:
        """Return a call with the time from the beginning of the trace, known once it has ended."""
        began = call.began
        return call.told if began is None else replace(call.told, started_s=began - self._first)

    def _see(self, at: float | None) -> None:
        if at is not None:
            self._first, self._last = min(self._first, at), max(self._last, at)

    def _cost(self) -> float | None:
        known = [one for one in self._costs if one is not None]
        return math.fsum(known) if known and len(known) == len(self._costs) else None


def _awaits(call: ToolCall, name: str | None) -> bool:
    return call.failed is None and name in (None, call.name)


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
