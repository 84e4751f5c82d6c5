"""Traces of coding agents on the command line, as they print or keep them line by line.

Claude Code (`claude -p --output-format stream-json --verbose`, and its transcripts) wraps messages
of Anthropic's API:

    {"type": "user", "message": {"role": "user", "content": "…"}}
    {"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": [...]}}
    {"type": "result", "subtype": "success", "result": "…", "total_cost_usd": 0.02, "usage": {...}}

Codex (`codex exec --json`) prints items:

    {"type": "item.completed", "item": {"type": "command_execution", "command": "ls", …}}
    {"type": "item.completed", "item": {"type": "agent_message", "text": "…"}}
    {"type": "turn.completed", "usage": {"input_tokens": 12, "output_tokens": 3}}

Lines of Claude Code with the same message belong to one reply, whose tokens count once. What a
helper of the agent does inside a call (`isSidechain`, `parent_tool_use_id`) are calls as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.model_messages import read_messages
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

#: Lines of Claude Code that hold no call.
_PLAIN_LINES = (
    *("system", "summary", "queue-operation", "file-history-snapshot", "stream_event"),
    *("rate_limit_event", "tool_progress", "progress", "last-prompt", "custom-title", "ai-title"),
    *("permission-mode", "attachment", "agent-name", "auth_status"),
)
#: Lines and items of Codex that hold no call.
_PLAIN_EVENTS = ("thread.started", "turn.started", "item.started", "item.updated", "error")
_PLAIN_ITEMS = ("reasoning", "todo_list", "error")


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds lines of Claude Code or of Codex."""
    return any(_is_claude_code(one) or _is_codex(one) for one in members)


def _is_claude_code(line: TraceFields) -> bool:
    """Return whether an object is a line of Claude Code that tells its format."""
    if line.get("type") in ("assistant", "user"):
        return "role" in line.inner("message")
    return line.get("type") == "result" and "session_id" in line and "subtype" in line


def _is_codex(line: TraceFields) -> bool:
    """Return whether an object is an event of Codex."""
    kind = line.text("type") or ""
    return kind in ("thread.started", "turn.completed") or (
        kind.startswith("item.") and "type" in line.inner("item")
    )


def read(document: Any) -> list[Trace]:
    """Read the one trace of the lines of a session."""
    lines = list_members(document)
    if any(map(_is_codex, lines)):
        return [_read_codex(lines)]
    if any(map(_is_claude_code, lines)):
        return [_read_claude(lines)]
    raise TraceError("no line is of a session of Claude Code or Codex")


def _read_claude(lines: Sequence[TraceFields]) -> Trace:
    building = Building()
    messages: list[TraceFields] = []
    last = TraceFields({})
    for line in lines:
        kind = line.get("type")
        if "compact" in str(line.get("subtype")) or line.get("isCompactSummary"):
            building.doubt("the session was compacted: a summary stands for what was done before")
        if kind in ("assistant", "user"):
            _add_message(messages, line.inner("message"))
        elif kind == "result":
            last = line
        elif kind not in _PLAIN_LINES:
            building.doubt(f"a line has the unknown type {kind!r}")
    if not messages:
        # `--output-format json` prints the end of the session and none of its steps.
        building.doubt("only the result of the session is told, not its steps")
    read_messages(building, messages)
    took_ms = last.amount("duration_ms")
    return building.finish(
        usage=read_tokens(last.get("usage")),
        cost_usd=last.amount("total_cost_usd"),
        duration_s=None if took_ms is None else took_ms / 1000,
        answer=None if last.get("is_error") is True else last.text("result"),
        ended=last.text("subtype"),
    )


def _add_message(messages: list[TraceFields], message: TraceFields) -> None:
    """Add a message, or what follows of the last one: each of its blocks may have a line."""
    key = message.text("id")
    before = messages[-1] if messages else TraceFields({})
    if key is None or before.text("id") != key or not isinstance(message.get("content"), list):
        messages.append(message)
        return
    known = before.items("content")
    more = [one for one in message.items("content") if one not in known]
    messages[-1] = TraceFields({**message.values, "content": [*known, *more]})


def _read_codex(lines: Sequence[TraceFields]) -> Trace:
    building = Building()
    ended = None
    for line in lines:
        kind = line.text("type")
        if kind == "item.completed":
            _read_item(building, line.inner("item"))
        elif kind == "turn.completed":
            building.spend(read_tokens(line.get("usage")))
            ended = kind
        elif kind == "turn.failed":
            ended = line.inner("error").text("message") or kind
        elif kind not in _PLAIN_EVENTS:
            building.doubt(f"a line has the unknown type {kind!r}")
    return building.finish(ended=ended)


def _read_item(building: Building, item: TraceFields) -> None:
    kind, key = item.text("type"), item.text("id")
    failed = item.get("status") in ("failed", "declined")
    match kind:
        case "agent_message":
            building.say("assistant", item.text("text") or "")
            return
        case "command_execution":
            building.call("command_execution", key=key, args={"command": item.get("command")})
            failed = failed or item.get("exit_code") not in (0, None)
            said = item.text("aggregated_output") or ""
        case "file_change":
            building.call("file_change", key=key, args={"changes": item.get("changes")})
            said = ""
        case "mcp_tool_call":
            args = item.arguments("arguments")
            building.call(item.text("tool"), key=key, server=item.text("server"), args=args)
            failed = failed or item.get("error") is not None
            said = item.inner("error").text("message") or item.result("result") or ""
        case "web_search":
            building.call("web_search", key=key, args={"query": item.get("query")})
            said = ""
        case _:
            if kind not in _PLAIN_ITEMS:
                building.doubt(f"an item has the unknown type {kind!r}")
            return
    building.result(
        key=key,
        result=None if failed else said,
        error=said or "the call failed" if failed else None,
    )
