"""The trace that a reply carries, read strictly where its calls are concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trialwise.checks.check_base import Unreadable
from trialwise.checks.quoting import label, shown
from trialwise.checks.reply_reading import json_of
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace
from trialwise.model.trial import FailReason

__all__ = ["Call", "calls_of", "names", "trace_of"]

#: How many names of a trace a failure shows.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    name: str
    server: str | None
    given: Any
    ending: Mapping[str, Any]
    """Its `result` or its `error`, where the trace tells one."""

    @property
    def failed(self) -> bool | None:
        """Whether it ended in an error; None where the trace does not tell."""
        return ToolCall.from_dict(self.ending).failed

    @property
    def error(self) -> str:
        """What went wrong."""
        return ToolCall.from_dict(self.ending).error or ""

    def is_of(self, tool: str, server: str | None) -> bool:
        """Whether it is a call of that tool, on that server if one is named."""
        return self.name == tool and (server is None or self.server == server)

    def arguments(self) -> Any:
        """The arguments as JSON; a call that shows none had none."""
        if self.given is None:
            return {}
        try:
            arguments = json_of(Reply(value=self.given))
        except Unreadable as error:
            problem = f"the arguments of {label(self.name)} cannot be read"
            raise Unreadable(problem, error.explanation) from None
        if not isinstance(arguments, dict):
            raise Unreadable(f"the arguments of {label(self.name)} are no object", shown(arguments))
        return arguments


def calls_of(reply: Reply) -> list[Call]:
    """The calls in order."""
    carried = reply.details.get("trace")
    whole = carried.to_dict() if isinstance(carried, Trace) else carried
    envelope = whole if isinstance(whole, Mapping) else {}
    calls = reply.details.get("tool_calls", envelope.get("tool_calls"))
    if calls is None:
        raise Unreadable("the reply has no trace of tool calls", reason=FailReason.NO_VALUE)
    if not isinstance(calls, (list, tuple)):
        raise Unreadable("the trace of tool calls is no list", shown(calls))
    omitted = envelope.get("omitted")
    if isinstance(omitted, Mapping) and omitted.get("calls"):
        # Whatever is asked, the answer may lie in what was left out.
        left = f"{shown(omitted.get('calls'))} tool calls were left out of the trace"
        raise Unreadable(left, reason=FailReason.NO_VALUE)
    return [_call(index, call) for index, call in enumerate(calls)]


def trace_of(reply: Reply) -> Trace:
    """The whole trace, turns and answer included."""
    trace = Trace.of(reply) if "trace" in reply.details else None
    if trace is None:
        raise Unreadable("the reply has no trace", reason=FailReason.NO_VALUE)
    return trace


def _call(index: int, call: object) -> Call:
    if isinstance(call, Mapping):
        name, server = call.get("name"), call.get("server")
        if isinstance(name, str) and (server is None or isinstance(server, str)):
            ending = {key: call[key] for key in ("result", "error") if key in call}
            return Call(name, server, call.get("args", call.get("arguments")), ending)
    raise Unreadable(f"tool call {index + 1} has no name or is no object", shown(call))


def names(calls: list[Call]) -> str:
    """The names of the calls as evidence."""
    if not calls:
        return "no tool was called"
    more = f" and {len(calls) - _SHOWN} more" if len(calls) > _SHOWN else ""
    return f"called: {', '.join(call.name for call in calls[:_SHOWN])}{more}"
