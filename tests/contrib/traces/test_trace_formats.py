"""One session in the forms that APIs, frameworks and instrumentations write it down.

In each, the user asks to delete a file, the model calls `delete` once, and answers "Done.".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.traces import TraceFormat, read_trace, read_traces

ARGS = {"path": "a.txt"}
ARGS_TEXT = '{"path": "a.txt"}'


def otlp(*told: dict[str, Any]) -> dict[str, Any]:
    """An export with one span for each set of attributes, in the order of their times."""
    made = []
    for number, attributes in enumerate(told):
        plain = {name: value for name, value in attributes.items() if name != "events"}
        made.append(
            {
                "traceId": "t",
                "spanId": f"s{number}",
                "parentSpanId": "",
                "startTimeUnixNano": str(number * 10**9),
                "endTimeUnixNano": str((number + 1) * 10**9),
                "attributes": _attributes(plain),
                "events": [
                    {"name": name, "attributes": _attributes(fields)}
                    for name, fields in attributes.get("events", ())
                ],
            }
        )
    return {"resourceSpans": [{"scopeSpans": [{"spans": made}]}]}


def _attributes(plain: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in plain.items()]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(one) for one in value]}}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


RESPONSES = [
    {"role": "user", "content": "Delete it."},
    {"type": "reasoning", "id": "r", "summary": []},
    {
        "type": "function_call",
        "id": "fc",
        "call_id": "c1",
        "name": "delete",
        "arguments": ARGS_TEXT,
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    },
]
LANGCHAIN: list[dict[str, Any]] = [
    {"type": "human", "content": "Delete it.", "additional_kwargs": {}, "id": None},
    {
        "type": "ai",
        "content": "",
        "additional_kwargs": {"refusal": None},
        "response_metadata": {"token_usage": {"total_tokens": 25}, "model_name": "m"},
        "tool_calls": [{"name": "delete", "args": ARGS, "id": "c1", "type": "tool_call"}],
        "invalid_tool_calls": [],
        "usage_metadata": {"input_tokens": 20, "output_tokens": 5, "total_tokens": 25},
    },
    {"type": "tool", "content": "ok", "name": "delete", "tool_call_id": "c1", "status": "success"},
    {
        "type": "ai",
        "content": "Done.",
        "usage_metadata": {"input_tokens": 30, "output_tokens": 2, "total_tokens": 32},
    },
]
_LC_CLASSES = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
PYDANTIC_AI: list[dict[str, Any]] = [
    {
        "kind": "request",
        "instructions": None,
        "parts": [
            {"part_kind": "system-prompt", "content": "Be brief."},
            {"part_kind": "user-prompt", "content": "Delete it.", "timestamp": "2026-01-01"},
        ],
    },
    {
        "kind": "response",
        "model_name": "m",
        "usage": {"input_tokens": 20, "output_tokens": 5, "details": {}},
        "parts": [
            {
                "part_kind": "tool-call",
                "tool_name": "delete",
                "args": ARGS_TEXT,
                "tool_call_id": "c1",
            }
        ],
    },
    {
        "kind": "request",
        "parts": [
            {
                "part_kind": "tool-return",
                "tool_name": "delete",
                "tool_call_id": "c1",
                "content": "ok",
            }
        ],
    },
    {
        "kind": "response",
        "usage": {"input_tokens": 30, "output_tokens": 2},
        "parts": [{"part_kind": "text", "content": "Done."}],
    },
]
CLAUDE_CODE = [
    {"type": "system", "subtype": "init", "session_id": "s", "tools": ["Bash"]},
    {"type": "user", "message": {"role": "user", "content": "Delete it."}},
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm", "signature": "x"}],
            "usage": {"input_tokens": 20, "output_tokens": 5},
        },
    },
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "delete", "input": ARGS}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 20, "output_tokens": 5},
        },
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
        },
    },
    {
        "type": "assistant",
        "message": {
            "id": "m2",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": "Done."}],
            "usage": {"input_tokens": 30, "output_tokens": 2},
        },
    },
]
CODEX = [
    {"type": "thread.started", "thread_id": "t"},
    {"type": "turn.started"},
    {"type": "item.started", "item": {"id": "i0", "type": "mcp_tool_call"}},
    {
        "type": "item.completed",
        "item": {
            "id": "i0",
            "type": "mcp_tool_call",
            "server": "files",
            "tool": "delete",
            "arguments": ARGS,
            "result": {"content": [{"type": "text", "text": "ok"}]},
            "status": "completed",
        },
    },
    {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 50, "output_tokens": 7}},
]
OPENINFERENCE = otlp(
    {"openinference.span.kind": "AGENT", "input.value": "Delete it.", "output.value": "Done."},
    {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.provider": "openai",
        "llm.invocation_parameters": "{}",
        "llm.tools.0.tool.json_schema": "{}",
        "input.value": "{}",
        "output.value": "{}",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Delete it.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "delete",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": ARGS_TEXT,
        "llm.token_count.prompt": 20,
        "llm.token_count.completion": 5,
        "llm.token_count.total": 25,
    },
    {
        "openinference.span.kind": "TOOL",
        "tool.name": "delete",
        "tool.description": "Deletes a file.",
        "input.value": ARGS_TEXT,
        "input.mime_type": "application/json",
        "output.value": "ok",
    },
    {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "text",
        "llm.output_messages.0.message.contents.0.message_content.text": "Done.",
        "llm.token_count.prompt": 30,
        "llm.token_count.completion": 2,
    },
)
OPENLLMETRY = otlp(
    {
        "gen_ai.system": "OpenAI",
        "llm.request.type": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Delete it.",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.finish_reason": "tool_calls",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "delete",
        "gen_ai.completion.0.tool_calls.0.arguments": ARGS_TEXT,
        "gen_ai.usage.prompt_tokens": 20,
        "gen_ai.usage.completion_tokens": 5,
        "llm.usage.total_tokens": 25,
    },
    {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "delete",
        "traceloop.entity.input": ARGS_TEXT,
        "traceloop.entity.output": "ok",
    },
    {
        "gen_ai.system": "OpenAI",
        "llm.request.type": "chat",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Done.",
        "gen_ai.completion.0.finish_reason": "stop",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 2,
    },
)
CHOICE_EVENTS = otlp(
    {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 20,
        "gen_ai.usage.output_tokens": 5,
        "events": [
            ("gen_ai.user.message", {"content": "Delete it."}),
            (
                "gen_ai.choice",
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": json.dumps(
                        {
                            "tool_calls": [
                                {"id": "c1", "function": {"name": "delete", "arguments": ARGS_TEXT}}
                            ]
                        }
                    ),
                },
            ),
        ],
    },
    {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "delete",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.result": "ok",
    },
    {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 2,
        "events": [("gen_ai.choice", {"finish_reason": "stop", "message": '{"content": "Done."}'})],
    },
)
VERCEL = otlp(
    {
        "ai.operationId": "ai.generateText",
        "ai.response.text": "Done.",
        "ai.usage.promptTokens": 50,
        "ai.usage.completionTokens": 7,
    },
    {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.response.finishReason": "tool-calls",
        "ai.response.toolCalls": json.dumps(
            [{"toolCallId": "c1", "toolName": "delete", "args": ARGS}]
        ),
        "ai.usage.inputTokens": 20,
        "ai.usage.outputTokens": 5,
        "gen_ai.system": "openai.chat",
    },
    {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "delete",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": ARGS_TEXT,
        "ai.toolCall.result": "ok",
    },
    {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.response.finishReason": "stop",
        "ai.response.text": "Done.",
        "ai.usage.promptTokens": 30,
        "ai.usage.completionTokens": 2,
    },
)

GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Delete it."}]},
    {
        "role": "model",
        "parts": [{"thoughtSignature": "s", "functionCall": {"name": "delete", "args": ARGS}}],
    },
    {
        "role": "user",
        "parts": [{"functionResponse": {"name": "delete", "response": {"result": "ok"}}}],
    },
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Done."}]},
]
BEDROCK: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": "Delete it."}]},
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "t1", "name": "delete", "input": ARGS}}],
    },
    {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "ok"}]}}]},
    {"role": "assistant", "content": [{"text": "Done."}]},
]

FORMATS: dict[str, Any] = {
    "gemini contents": GEMINI,
    "a request to gemini": {"contents": GEMINI},
    "gemini in the names of its sdk": [
        {"role": "user", "parts": [{"text": "Delete it.", "function_call": None}]},
        {"role": "model", "parts": [{"function_call": {"name": "delete", "args": ARGS}}]},
        {
            "role": "user",
            "parts": [{"function_response": {"name": "delete", "response": {"result": "ok"}}}],
        },
        {"role": "model", "parts": [{"text": "Done.", "thought": None}]},
    ],
    "gemini with its response": {
        "contents": GEMINI[:3],
        "candidates": [{"content": GEMINI[3], "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 50, "candidatesTokenCount": 7},
    },
    "bedrock converse": BEDROCK,
    "bedrock with its response": {
        "messages": BEDROCK[:3],
        "output": {"message": BEDROCK[3]},
        "usage": {"inputTokens": 50, "outputTokens": 7, "totalTokens": 57},
    },
    "responses items": RESPONSES,
    "a response": {
        "object": "response",
        "status": "completed",
        "input": RESPONSES[:1],
        "output": RESPONSES[1:],
        "usage": {"input_tokens": 50, "output_tokens": 7, "total_tokens": 57},
    },
    "langchain dumps": LANGCHAIN,
    "a state of langgraph": {"messages": LANGCHAIN},
    "langchain messages_to_dict": [{"type": m["type"], "data": m} for m in LANGCHAIN],
    "langchain dumpd": [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", _LC_CLASSES[message["type"]]],
            "kwargs": message,
        }
        for message in LANGCHAIN
    ],
    "pydantic-ai": PYDANTIC_AI,
    "claude code": CLAUDE_CODE,
    "claude code with its result": [
        *CLAUDE_CODE,
        {
            "type": "result",
            "subtype": "success",
            "session_id": "s",
            "is_error": False,
            "result": "Done.",
            "total_cost_usd": 0.5,
            "duration_ms": 1500,
            "usage": {"input_tokens": 50, "output_tokens": 7},
        },
    ],
    "codex": CODEX,
    "openinference": OPENINFERENCE,
    "openllmetry before 0.50": OPENLLMETRY,
    "gen_ai.choice events": CHOICE_EVENTS,
    "vercel's ai sdk": VERCEL,
}
#: Those that do not tell the tokens of every reply.
WITHOUT_TOKENS = ("responses items", "gemini", "bedrock", "a request to gemini")


@pytest.mark.parametrize("name", FORMATS)
def test_the_session_is_read_whole(name: str) -> None:
    trace = read_trace(FORMATS[name])
    assert trace.calls_unknown is None
    assert [(call.name, call.args) for call in trace.tool_calls] == [("delete", ARGS)]
    assert "ok" in (trace.tool_calls[0].result or "")
    assert trace.answer == "Done."
    if not name.startswith(WITHOUT_TOKENS):
        assert trace.usage == tw.Usage(input_tokens=50, output_tokens=7)


@pytest.mark.parametrize("name", FORMATS)
def test_text_and_a_named_format_read_the_same(name: str, tmp_path: Path) -> None:
    document = FORMATS[name]
    whole = read_trace(document)
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert read_trace(file) == whole
    assert sum(_reads_same(document, format_, whole) for format_ in TraceFormat) >= 1


def _reads_same(document: Any, format_: str, whole: Any) -> bool:
    try:
        return bool(read_trace(document, format_) == whole)
    except tw.TrialwiseError:
        return False


def test_the_models_turns_are_those_of_chat_messages() -> None:
    """A turn that only calls a tool has no text, as in a chat."""
    for name in ("responses items", "langchain dumps", "pydantic-ai", "claude code"):
        trace = read_trace(FORMATS[name])
        spoken = [turn.content for turn in trace.turns if turn.role == "assistant"]
        assert spoken == ["", "Done."], name
        assert trace.tool_calls[0].turn == 1


def test_costs_and_times_of_claude_code_are_those_of_its_result() -> None:
    trace = read_trace(FORMATS["claude code with its result"])
    assert (trace.cost_usd, trace.duration_s, trace.ended) == (0.5, 1.5, "success")


def test_failures_of_tools_are_failures() -> None:
    langchain = [*LANGCHAIN[:2], {**LANGCHAIN[2], "status": "error", "content": "no such file"}]
    retried = {
        "kind": "request",
        "parts": [
            {
                "part_kind": "retry-prompt",
                "tool_name": "delete",
                "tool_call_id": "c1",
                "content": "no such file",
            }
        ],
    }
    for document in (langchain, [*PYDANTIC_AI[:2], retried]):
        assert read_trace(document).tool_calls[0].error == "no such file"


def test_several_traces_of_one_export_are_told_apart() -> None:
    two = json.loads(json.dumps(OPENINFERENCE).replace('"t"', '"u"'))
    assert len(read_traces([OPENINFERENCE, two])) == 2


#: What a place of a document may hold instead.
OTHERS: tuple[Any, ...] = (None, "other", [], {"type": "new"})


def _places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner: Any = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        inner = enumerate(document)
    for key, value in inner:
        yield from _places(value, (*place, key))


def _replace(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = dict(document) if isinstance(document, dict) else list(document)
    changed[place[0]] = _replace(document[place[0]], place[1:], value)
    return changed


@pytest.mark.slow("openinference", "vercel's ai sdk")
@pytest.mark.parametrize("name", FORMATS)
def test_no_change_in_one_place_hides_the_call(name: str) -> None:
    """The document is refused, the call is seen, or the calls are unknown."""
    document = FORMATS[name]
    for place in _places(document):
        for other in OTHERS:
            if (place, other) == (("output",), []):
                continue  # a response that did nothing says so
            try:
                trace = read_trace(_replace(document, place, other))
            except tw.TrialwiseError:
                continue
            assert trace.tool_calls or trace.calls_unknown, (place, other)
            assert tw.Trace.from_dict(trace.to_dict()) == trace
