"""One session in every format, the oddities of each, and documents that are none."""

from __future__ import annotations

import ast
import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import traces
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Usage
from trialwise.model.trace import ToolCall, Trace
from trialwise.traces import TraceError, TraceFormat, read_trace, read_traces
from trialwise.traces.trace_documents import MAX_BYTES

# --- one session, kept in six ways --------------------------------------------------------------

OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "You book tables."},
    {"role": "user", "content": [{"type": "text", "text": "A table for two"}]},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "find", "arguments": '{"guests": 2}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "table 4"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "book", "arguments": '{"table": 4}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "full"}]},
    {"role": "assistant", "content": "Sorry, it is full."},
]

ANTHROPIC: dict[str, Any] = {
    "system": "You book tables.",
    "messages": [
        {"role": "user", "content": "A table for two"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "c1", "name": "find", "input": {"guests": 2}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "table 4"}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c2", "name": "book", "input": {"table": 4}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "is_error": True,
                    "content": [{"type": "text", "text": "full"}],
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Sorry, it is full."}]},
    ],
    "usage": {
        "input_tokens": 100,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 0,
        "output_tokens": 30,
    },
}


def attribute(key: str, value: Any) -> dict[str, Any]:
    """An attribute as OTLP writes it."""
    if isinstance(value, int):
        return {"key": key, "value": {"intValue": str(value)}}
    if isinstance(value, dict):
        pairs = [attribute(name, part) for name, part in value.items()]
        return {"key": key, "value": {"kvlistValue": {"values": pairs}}}
    if isinstance(value, list):
        values = [attribute("", part)["value"] for part in value]
        return {"key": key, "value": {"arrayValue": {"values": values}}}
    return {"key": key, "value": {"stringValue": value}}


def span(number: int, began: float, ended: float, **told: Any) -> dict[str, Any]:
    """A span of the one trace; the status, the kind and the parent are told by those names."""
    attributes = {name.replace("__", "."): value for name, value in told.items() if "__" in name}
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": f"{number:016x}",
        "parentSpanId": told.get("parent", "00000000000000ff"),
        "kind": told.get("kind", 3),
        "startTimeUnixNano": str(1_700_000_000_000_000_000 + int(began * 1e9)),
        "endTimeUnixNano": str(1_700_000_000_000_000_000 + int(ended * 1e9)),
        "attributes": [attribute(name, value) for name, value in attributes.items()],
        "status": told.get("status", {}),
    }


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": list(spans)}]}]}


def said(role: str, *parts: dict[str, Any]) -> str:
    return json.dumps([{"role": role, "parts": list(parts), "finish_reason": "stop"}])


def chat(number: int, began: float, ended: float, **told: Any) -> dict[str, Any]:
    told |= {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
    return span(number, began, ended, gen_ai__operation__name="chat", **told)


def call_part(key: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": key, "name": name, "arguments": arguments}


ROOT = span(255, 0, 10, parent="", gen_ai__operation__name="invoke_agent")
FIRST = chat(
    1,
    0,
    2,
    gen_ai__system_instructions=json.dumps([{"type": "text", "content": "You book tables."}]),
    gen_ai__input__messages=said("user", {"type": "text", "content": "A table for two"}),
    gen_ai__output__messages=said(
        "assistant",
        {"type": "text", "content": "Let me look."},
        call_part("c1", "find", {"guests": 2}),
    ),
)
SECOND = chat(
    3,
    3,
    5,
    gen_ai__input__messages=said(
        "tool", {"type": "tool_call_response", "id": "c1", "response": "table 4"}
    ),
    gen_ai__output__messages=said("assistant", call_part("c2", "book", {"table": 4})),
)
THIRD = chat(
    5,
    6,
    9,
    gen_ai__output__messages=said("assistant", {"type": "text", "content": "Sorry, it is full."}),
)
FIND = span(
    2,
    2,
    3,
    gen_ai__operation__name="execute_tool",
    gen_ai__tool__name="find",
    gen_ai__tool__call__id="c1",
    gen_ai__tool__call__arguments='{"guests": 2}',
    gen_ai__tool__call__result="table 4",
)
BOOK = span(
    4,
    5,
    5.5,
    gen_ai__operation__name="execute_tool",
    gen_ai__tool__name="book",
    gen_ai__tool__call__id="c2",
    gen_ai__tool__call__arguments={"table": 4},
    status={"code": 2, "message": "full"},
)
OTLP = export(THIRD, BOOK, SECOND, FIND, FIRST, ROOT)

INSPECT: dict[str, Any] = {
    "id": 1,
    "epoch": 1,
    "messages": [
        {"role": "system", "content": "You book tables."},
        {"role": "user", "content": "A table for two"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Let me look."}],
            "tool_calls": [{"id": "c1", "function": "find", "arguments": {"guests": 2}}],
        },
        {"role": "tool", "tool_call_id": "c1", "function": "find", "content": "table 4"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c2", "function": "book", "arguments": {"table": 4}}],
        },
        {
            "role": "tool",
            "tool_call_id": "c2",
            "function": "book",
            "content": "",
            "error": {"type": "unknown", "message": "full"},
        },
        {"role": "assistant", "content": "Sorry, it is full."},
    ],
    "output": {"completion": "Sorry, it is full."},
    "model_usage": {
        "m/a": {"input_tokens": 100, "input_tokens_cache_read": 200, "output_tokens": 20},
        "m/b": {"input_tokens": 0, "output_tokens": 10},
    },
    "total_time": 9.5,
}

EVENTS = """
{"role": "system", "content": "You book tables."}
{"type": "user_message", "content": "A table for two"}
{"type": "assistant_message", "content": "Let me look."}
{"type": "tool_call", "name": "find", "args": {"guests": 2}, "id": "c1", "at_s": 1.0}
{"type": "tool_result", "id": "c1", "result": "table 4", "at_s": 3.0}
{"type": "assistant_message", "content": ""}
{"type": "tool_call", "name": "book", "args": {"table": 4}, "id": "c2", "at_s": 5.0}
{"type": "tool_result", "id": "c2", "error": "full", "at_s": 5.5}
{"type": "token_usage", "input_tokens": 300, "output_tokens": 30}
{"role": "assistant", "content": "Sorry, it is full."}
"""

SESSIONS: dict[str, Any] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "otlp": OTLP,
    "inspect": INSPECT,
    "jsonl": EVENTS,
}


@pytest.mark.parametrize("kind", SESSIONS)
def test_one_session_reads_the_same_from_every_format(kind: str) -> None:
    """What was said and done, in order; the format is told by the document's shape."""
    document = SESSIONS[kind]
    trace = read_trace(document)

    assert trace == read_trace(document, kind)
    assert [("find", {"guests": 2}), ("book", {"table": 4})] == [
        (call.name, call.args) for call in trace.tool_calls
    ]
    assert [
        ("system", "You book tables."),
        ("user", "A table for two"),
        ("assistant", "Let me look."),
        ("assistant", ""),
        ("assistant", "Sorry, it is full."),
    ] == [(turn.role, turn.content) for turn in trace.turns]
    assert "Sorry, it is full." == trace.answer
    assert "table 4" == trace.tool_calls[0].result
    if kind != "openai":  # it cannot tell a failure from a result
        assert ("full", True) == (trace.tool_calls[1].error, trace.tool_calls[1].failed)
        assert Usage(input_tokens=300, output_tokens=30) == trace.usage


@pytest.mark.parametrize("kind", SESSIONS)
def test_a_document_may_be_text_or_bytes(kind: str) -> None:
    """With or without a byte order mark."""
    document = SESSIONS[kind]
    text = document if isinstance(document, str) else json.dumps(document)

    expected = read_trace(document)
    assert expected == read_trace(text)
    assert expected == read_trace("\ufeff" + text)
    assert expected == read_trace(text.encode("utf-8-sig"))


@pytest.mark.parametrize("kind", SESSIONS)
def test_what_was_read_survives_as_an_envelope(kind: str) -> None:
    """The envelope is a format like any other."""
    trace = read_trace(SESSIONS[kind])

    assert trace == read_trace(trace.to_dict()) == read_trace(json.dumps(trace.to_dict()))


# --- what is particular to each -----------------------------------------------------------------


def test_openai_responses_and_requests() -> None:
    """A response alone, and one beside the messages it answers; its usage is that of one reply."""
    message = {"role": "assistant", "content": "555"}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    response = {"choices": [{"message": message}], "usage": usage}

    alone = read_trace(response)
    assert ("555", 12) == (alone.answer, alone.total_tokens)
    asked = {"messages": [{"role": "user", "content": "15 * 37?"}], **response}
    assert (2, 12) == (len(read_trace(asked).turns), read_trace(asked).total_tokens)
    later = {"messages": [message, {"role": "user", "content": "Sure?"}], **response}
    assert read_trace(later).total_tokens is None
    whole = {"messages": [message], "usage": usage}
    assert 12 == read_trace(whole).total_tokens


def test_openai_arguments_that_are_no_json_stay_as_they_were_sent() -> None:
    """What the model wrote is what a check should see."""
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": '{"q": '}},
        {"id": "b", "function": {"name": "f", "arguments": ""}},
        {"id": "c"},
        {"id": "d", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}},
    ]
    old = {"role": "assistant", "function_call": {"name": "g", "arguments": "{}"}}
    trace = read_trace([{"role": "assistant", "tool_calls": calls}, old], "openai")

    assert [("f", '{"q": '), ("f", {}), (None, None), ("sql", "SELECT 1"), ("g", {})] == [
        (call.name, call.args) for call in trace.tool_calls
    ]
    assert [None] * 5 == [call.failed for call in trace.tool_calls]
    assert trace.answer is None


@pytest.mark.parametrize("told", [5, "book", {"name": "book"}, ["book"]])
def test_what_stands_where_calls_are_told_may_be_any_call(told: Any) -> None:
    """Taken for no call it would be evidence that nothing was called."""
    message = {"role": "assistant", "content": "done", "tool_calls": told}

    for kind in ("openai", "jsonl", "inspect"):
        document = {"messages": [message]} if kind == "inspect" else [message]
        assert [None] == [call.name for call in read_trace(document, kind).tool_calls]


def test_a_document_may_be_a_file(tmp_path: Path) -> None:
    """Named by a path, so that no text is taken for one."""
    (tmp_path / "trace.json").write_text(json.dumps(OPENAI))

    assert read_trace(OPENAI) == read_trace(tmp_path / "trace.json")


def test_a_result_that_nobody_asked_for_is_a_call() -> None:
    """A history that was cut at its beginning hides no call."""
    trace = read_trace([{"role": "tool", "tool_call_id": "lost", "name": "f", "content": "x"}])

    assert (ToolCall(name="f", result="x"),) == trace.tool_calls
    nameless = read_trace([{"role": "tool", "tool_call_id": "lost", "content": "x"}])
    assert (ToolCall(name=None, result="x"),) == nameless.tool_calls


def test_anthropic_calls_that_the_api_makes_itself() -> None:
    """MCP tools with their server, and tools of the server's own; what is said after counts."""
    blocks = [
        {"type": "text", "text": "Looking. "},
        {"type": "mcp_tool_use", "id": "m", "name": "find", "server_name": "shop", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": False, "content": []},
        {"type": "server_tool_use", "id": "w", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "w",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
        },
        {"type": "text", "text": "Nothing."},
    ]
    reply = {
        "type": "message",
        "role": "assistant",
        "content": blocks,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "output_tokens": 6},
    }
    trace = read_trace(reply)

    assert [("find", "shop", None), ("web_search", None, "max_uses_exceeded")] == [
        (call.name, call.server, call.error) for call in trace.tool_calls
    ]
    assert ("Looking. Nothing.", "end_turn", 11) == (trace.answer, trace.ended, trace.total_tokens)
    # A reply alone is what it was declared to be; one in a list of messages has no beginning.
    assert trace == replace(read_trace([reply]), calls_unknown=None)
    assert "begin with a reply" in str(read_trace([reply]).calls_unknown)
    with_request = read_trace({**reply, "messages": [{"role": "user", "content": "hi"}]})
    assert ("user", "assistant") == tuple(turn.role for turn in with_request.turns)


def test_otlp_times_are_those_of_the_spans() -> None:
    """Seconds since the first span began."""
    trace = read_trace(OTLP)

    assert [(2.0, 1.0), (5.0, 0.5)] == [
        (call.started_s, call.duration_s) for call in trace.tool_calls
    ]
    assert 10.0 == trace.duration_s


def test_otlp_calls_without_a_span_are_calls_all_the_same() -> None:
    """An agent whose tools are not instrumented; its results stand in later messages."""
    trace = read_trace(export(FIRST, SECOND, THIRD))

    assert [("find", "table 4"), ("book", None)] == [
        (call.name, call.result) for call in trace.tool_calls
    ]
    half = read_trace(export(FIRST, FIND, SECOND, THIRD))
    assert ["find", "book"] == [call.name for call in half.tool_calls]


def test_otlp_one_call_seen_three_times_is_one_call() -> None:
    """By the agent, by the MCP client within it, and by the server."""
    outer = span(1, 0, 3, gen_ai__operation__name="execute_tool", gen_ai__tool__name="find")
    client = span(
        2,
        1,
        2,
        parent=outer["spanId"],
        mcp__method__name="tools/call",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="find",
        server__address="tools.example.com",
        gen_ai__tool__call__arguments='{"q": 1}',
    )
    server = span(
        3,
        1.2,
        1.8,
        parent=client["spanId"],
        kind="SPAN_KIND_SERVER",
        mcp__method__name="tools/call",
        gen_ai__tool__name="find",
    )

    (call,) = read_trace(export(outer, client, server)).tool_calls
    assert ("find", "tools.example.com", {"q": 1}, 3.0) == (
        call.name,
        call.server,
        call.args,
        call.duration_s,
    )
    (alone,) = read_trace(export(server)).tool_calls
    assert "find" == alone.name


def test_otlp_a_tool_that_calls_itself_makes_two_calls() -> None:
    """Nested spans with ids of their own are calls of their own."""
    common = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "ask"}
    outer = span(1, 0, 3, gen_ai__tool__call__id="a", **common)
    inner = span(2, 1, 2, parent=outer["spanId"], gen_ai__tool__call__id="b", **common)

    assert 2 == len(read_trace(export(outer, inner)).tool_calls)


def test_otlp_arguments_of_the_message_serve_a_span_without_its_own() -> None:
    """Recording them is optional, and some record only the one or the other."""
    bare = span(2, 2, 3, gen_ai__operation__name="execute_tool", gen_ai__tool__name="find")

    (call, _) = read_trace(export(FIRST, bare, SECOND)).tool_calls
    assert ("find", {"guests": 2}, 1.0) == (call.name, call.args, call.duration_s)


def test_otlp_tokens_are_known_if_every_reply_tells_them() -> None:
    """A part of the sum is no sum; without replies the agent's own span tells."""
    silent = span(9, 9, 9.5, gen_ai__operation__name="chat")
    assert read_trace(export(FIRST, silent)).total_tokens is None

    used = {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 1}
    agent = span(1, 0, 1, gen_ai__operation__name="invoke_agent", **used)
    assert 8 == read_trace(export(agent)).total_tokens
    assert 110 == read_trace(export(agent, FIRST)).total_tokens


def test_otlp_traces_are_told_apart_by_their_id() -> None:
    """A file exporter writes one export a line; what began first comes first."""
    other = {**span(1, -5, -4, gen_ai__operation__name="chat"), "traceId": "ff"}
    lines = "\n".join(json.dumps(one) for one in (export(FIRST), export(other), export(THIRD)))

    first, second = read_traces(lines)
    assert (1, 2) == (first.assistant_turns, second.assistant_turns)
    with pytest.raises(TraceError, match="one trace is expected, the document holds 2"):
        read_trace(lines)


def test_otlp_what_else_was_traced_is_no_trace_of_an_agent() -> None:
    """It would be evidence that no tool was called."""
    other = {**span(1, 0, 1, http__route="/health"), "traceId": "ff"}

    assert 1 == len(read_traces(export(FIRST, other)))
    with pytest.raises(TraceError, match="no span is of an agent"):
        read_traces(export(other))


def test_otlp_a_call_of_which_only_the_end_of_the_turn_tells_may_be_any() -> None:
    """Most instrumentations write no contents; a span of the call itself says more."""
    told = {"gen_ai__response__finish_reasons": ["tool_calls"]}
    asking = span(7, 1, 2, gen_ai__operation__name="chat", **told)

    assert [None] == [call.name for call in read_trace(export(asking)).tool_calls]
    assert ["find"] == [call.name for call in read_trace(export(asking, FIND)).tool_calls]


def test_otlp_contents_may_stand_on_an_event() -> None:
    """`gen_ai.client.inference.operation.details`, with the attributes in structure."""
    parts: dict[str, Any] = {"arrayValue": {"values": [{"kvlistValue": {"values": []}}]}}
    parts["arrayValue"]["values"][0]["kvlistValue"]["values"] = [
        {"key": "type", "value": {"stringValue": "text"}},
        {"key": "content", "value": {"stringValue": "Hello"}},
    ]
    message = {"kvlistValue": {"values": [{"key": "parts", "value": parts}]}}
    event = {
        "name": "gen_ai.client.inference.operation.details",
        "attributes": [
            {"key": "gen_ai.output.messages", "value": {"arrayValue": {"values": [message]}}}
        ],
    }
    reply = {**span(1, 0, 1, gen_ai__operation__name="chat"), "events": [event]}

    assert "Hello" == read_trace(export(reply)).answer


def test_inspect_events_tell_times_and_calls_within_calls() -> None:
    """Long texts are looked up among the attachments."""
    events = [
        {
            "event": "tool",
            "id": "c1",
            "function": "find",
            "arguments": {"guests": "attachment://ab"},
            "result": "attachment://cd",
            "timestamp": "2026-01-01T00:00:01+00:00",
            "completed": "2026-01-01T00:00:03Z",
        },
        {"event": "model"},
        {"event": "tool", "id": "sub", "function": "peek", "arguments": {}, "pending": True},
        {
            "event": "tool",
            "id": "c2",
            "function": "book",
            "arguments": {"table": 4},
            "failed": True,
            "timestamp": "2026-01-01T00:00:04Z",
        },
    ]
    trace = read_trace({**INSPECT, "events": events, "attachments": {"ab": "2", "cd": "table 4"}})

    assert [
        ("find", {"guests": "2"}, "table 4", None, 0.0, 2.0),
        ("peek", {}, None, None, None, None),
        ("book", {"table": 4}, None, "the tool failed", 3.0, None),
    ] == [
        (call.name, call.args, call.result, call.error, call.started_s, call.duration_s)
        for call in trace.tool_calls
    ]
    assert (9.5, "Sorry, it is full.") == (trace.duration_s, trace.answer)


def test_inspect_logs_hold_many_samples() -> None:
    """One trace each; a session that a limit ended has no answer."""
    cut = {**INSPECT, "messages": INSPECT["messages"][:5], "limit": {"type": "message"}}
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [INSPECT, cut]}

    whole, ended = read_traces(log)
    assert ("Sorry, it is full.", None) == (whole.answer, whole.ended)
    assert (None, "message limit") == (ended.answer, ended.ended)
    assert (whole, ended) == read_traces([INSPECT, cut])
    with pytest.raises(TraceError, match="holds no samples"):
        read_traces({"eval": {"task": "t"}})


def test_trajectories_of_vally_are_events() -> None:
    """Its own words, its fields in `data`, and the output of the whole."""
    trajectory = {
        "id": "run-1",
        "events": [
            {"type": "turn_start", "timestamp": "2025-01-15T10:30:00.000Z", "data": {}},
            {
                "type": "tool_call",
                "timestamp": "2025-01-15T10:30:00.000Z",
                "data": {"toolName": "write", "toolCallId": "c", "arguments": {"path": "a"}},
            },
            {
                "type": "tool_result",
                "timestamp": "2025-01-15T10:30:01.000Z",
                "data": {"toolName": "write", "toolCallId": "c", "success": False, "result": "ro"},
            },
            {
                "type": "token_usage",
                "timestamp": "2025-01-15T10:30:01.000Z",
                "data": {"inputTokens": 1500, "outputTokens": 350},
            },
        ],
        "metrics": {"wallTimeMs": 2500},
        "output": "Could not write.",
    }
    trace = read_trace(trajectory)

    (call,) = trace.tool_calls
    assert ("write", {"path": "a"}, "ro", 1.0) == (
        call.name,
        call.args,
        call.error,
        call.duration_s,
    )
    assert (1850, 2.5, "Could not write.") == (trace.total_tokens, trace.duration_s, trace.answer)


def test_events_without_ids_are_matched_by_name_and_order() -> None:
    """A result belongs to the last call of its tool that has none yet."""
    lines = [
        {"type": "tool_call", "name": "a", "args": {"n": 1}},
        {"type": "tool_call", "name": "b"},
        {"type": "tool_result", "name": "a", "result": "one"},
        {"type": "tool_result", "result": "two"},
        {"type": "answer", "content": "done"},
    ]
    trace = read_trace(lines)

    assert [("a", "one"), ("b", "two")] == [(one.name, one.result) for one in trace.tool_calls]
    assert "done" == trace.answer


# --- what is not a trace --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        ("", None, "the trace is empty"),
        ("logs/trace.json", None, "a file is given as a pathlib.Path"),
        (Path("no-such-trace.json"), None, "cannot be read: .*no-such-trace.json"),
        ("{", None, "not JSON"),
        ('{"role": "user"}\n{oops\n', None, "line 2 of the trace is not JSON"),
        (b"\xff\xfe", None, "not UTF-8 text"),
        (b"PK\x03\x04\xff", None, "inspect log convert"),
        (b"PK\x03\x04", None, "`trialwise score` reads it as it is"),
        ("log.eval", None, "a file is given as a pathlib.Path"),
        ("5", None, "format of the trace is not recognised"),
        ({"hello": 1}, None, "name it, as one of envelope, openai"),
        ([], None, "one trace is expected, the document holds 0"),
        ([{"type": "zzz"}], "jsonl", "none of the events is known"),
        ('{"type": "tool_call", "name": "a"}\n[1]', None, "event 2 is not an object"),
        ({"events": 5}, "jsonl", "a list of events is expected"),
        ({"a": 1}, "openai", "conversation 1 has no `messages`"),
        ({"a": 1}, "anthropic", "conversation 1 has no `messages`"),
        ({"a": 1}, "otlp", "no spans are found"),
        ({"a": 1}, "inspect", "sample 1 has neither messages nor tool events"),
        ([5], "envelope", "an envelope is an object"),
        ("[" * 100_000, None, "not JSON"),
    ],
)
def test_what_is_no_trace_is_refused(data: Any, kind: str | None, message: str) -> None:
    """With what is wrong and where."""
    with pytest.raises(TraceError, match=message):
        read_trace(data, kind)


def test_a_document_too_large_is_refused_unread() -> None:
    """Before a parser takes many times its size."""
    with pytest.raises(TraceError, match="more than 67,108,864 bytes"):
        read_trace(" " * (MAX_BYTES + 1))


def test_an_unknown_format_is_refused() -> None:
    """Those that are known are named."""
    with pytest.raises(InvalidArgument, match="be one of envelope, openai, anthropic, otlp"):
        read_trace({}, "xml")


def test_many_calls_are_counted_and_left_out() -> None:
    """A session without end costs no memory without end."""
    lines = [{"type": "tool_call", "name": "a"}] * 3000 + [
        {"type": "message", "role": "user"}
    ] * 3000
    trace = read_trace(lines)

    assert (1000, 2000, 1000, 2000) == (
        len(trace.tool_calls),
        trace.omitted_calls,
        len(trace.turns),
        trace.omitted_turns,
    )


VOCABULARY = """role content tool_calls function name arguments id type text tool_use tool_result
message messages choices usage events event tool data resourceSpans scopeSpans spans attributes key
value stringValue kvlistValue values gen_ai.operation.name chat execute_tool eval samples epoch
assistant conversation turns tokens tool_call token_usage gen_ai.output.messages status code
model_usage attachments parts"""
WORDS = st.sampled_from(VOCABULARY.split())
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=25,
)


@given(DOCUMENTS, st.none() | st.sampled_from(list(TraceFormat)))
def test_any_document_is_a_trace_or_refused(document: Any, kind: str | None) -> None:
    """Nothing else is raised, and what is read can be written."""
    try:
        found = read_traces(document, kind)
    except TraceError:
        return
    assert all(one == Trace.from_dict(json.loads(json.dumps(one.to_dict()))) for one in found)


@pytest.mark.parametrize("kind", SESSIONS)
@given(data=st.data())
def test_a_damaged_document_is_a_trace_or_refused(kind: str, data: st.DataObject) -> None:
    """Any one value of a real document replaced by anything."""
    document = SESSIONS[kind]
    if isinstance(document, str):
        document = [json.loads(line) for line in document.split("\n") if line]
    damaged = json.loads(json.dumps(document))
    place = damaged
    while isinstance(place, dict | list) and place:
        key = data.draw(
            st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place)))
        )
        if data.draw(st.booleans()) or not isinstance(place[key], dict | list):
            place[key] = data.draw(DOCUMENTS)
            break
        place = place[key]
    try:
        found = read_traces(damaged, kind)
    except TraceError:
        return
    assert all(one == Trace.from_dict(one.to_dict()) for one in found)


def test_the_package_exports_what_its_module_declares() -> None:
    """The table and the stub agree, and every name is its module's."""
    folder = Path(traces.__file__).parent
    tree = ast.parse((folder / "__init__.pyi").read_text(encoding="utf-8"))
    stub = {
        alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    exports: dict[str, str] = vars(traces)["_EXPORTS"]

    assert set(exports) == stub
    for name, module in exports.items():
        found = importlib.import_module(f"trialwise.traces.{module}")
        assert getattr(traces, name) is getattr(found, name)
