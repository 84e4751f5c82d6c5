"""Attributes of spans that other conventions write, in the terms of OpenTelemetry's GenAI ones.

| convention               | a reply of the model           | a call of a tool                |
|--------------------------|--------------------------------|---------------------------------|
| OpenInference            | `openinference.span.kind: LLM` | `openinference.span.kind: TOOL` |
| OpenLLMetry before 0.50  | `gen_ai.completion.0.content`  | `traceloop.span.kind: tool`     |
| Vercel's AI SDK          | `ai.response.toolCalls`        | `ai.toolCall.name`              |

What is translated is left out of the attributes. What remains of another convention was not read,
and the calls of its trace are then unknown.
"""

from __future__ import annotations

import re
from typing import Any

from trialwise.traces.agent_spans import (
    Attributes,
    make_call_part,
    make_message,
    parse_value,
    put_attribute,
    put_messages,
)
from trialwise.traces.trace_documents import TraceFields

_OPERATION = "gen_ai.operation.name"
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_USAGE_IN, _USAGE_OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
_REASONS = "gen_ai.response.finish_reasons"
_TOOL, _KEY = "gen_ai.tool.name", "gen_ai.tool.call.id"
_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
#: Spans of OpenInference that neither speak nor call a tool.
_OTHER_KINDS = (
    *("AGENT", "CHAIN", "RETRIEVER", "RERANKER", "EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT"),
)
#: Attributes of OpenInference's LLM spans that hold no call, or repeat the messages.
_PLAIN_LLM = re.compile(
    r"llm\.(model_name|provider|system|invocation_parameters|tools\.|token_count\.|cost\.|"
    r"prompt_template\.|finish_reason|prompts\.|prompts$)"
)
#: Attributes of other conventions that hold what a model said. Those that are translated
#: are gone by then.
_UNREAD = ("ai.", "gen_ai.completion", "llm.", "openinference.")
#: Attributes of those families that hold no call.
_PLAIN = (
    "ai.model.",
    "ai.operationId",
    "ai.request.",
    "ai.settings.",
    "ai.telemetry.",
    "ai.usage.",
    "llm.chat.stop_sequences",
    "llm.frequency_penalty",
    "llm.headers",
    "llm.is_streaming",
    "llm.presence_penalty",
    "llm.request.",
    "llm.response.finish_reason",
    "llm.top_k",
    "llm.usage.",
    "llm.user",
)


def translate_attributes(told: Attributes) -> None:
    """Put the attributes of a span in the terms of OpenTelemetry's conventions, where they are not.

    >>> told = {"openinference.span.kind": "TOOL", "tool.name": "find"}
    >>> translate_attributes(told)
    >>> told["gen_ai.operation.name"], told["gen_ai.tool.name"]
    ('execute_tool', 'find')
    """
    _translate_openinference(told)
    _translate_openllmetry(told)
    _translate_vercel(told)


def is_unread(name: str) -> bool:
    """Return whether an attribute that was not translated may hold what a model said.

    >>> is_unread("llm.output_messages.0"), is_unread("llm.usage.total_tokens")
    (True, False)
    """
    return name.startswith(_UNREAD) and not name.startswith(_PLAIN)


def _take_tree(told: Attributes, prefix: str) -> list[dict[str, Any]]:
    """Take what stands under `prefix.0.…`, `prefix.1.…` as the fields of as many objects.

    >>> told = {"m.0.role": "user", "m.1.calls.0.name": "f", "n": 1}
    >>> _take_tree(told, "m"), told
    ([{'role': 'user'}, {'calls.0.name': 'f'}], {'n': 1})
    """
    found: dict[int, dict[str, Any]] = {}
    for name in [one for one in told if one.startswith(f"{prefix}.")]:
        place, _, rest = name.removeprefix(f"{prefix}.").partition(".")
        if place.isdecimal():
            found.setdefault(int(place), {})[rest] = told.pop(name)
    return [found[place] for place in sorted(found)]


# --- OpenInference ----------------------------------------------------------------------------


def _translate_openinference(told: Attributes) -> None:
    kind = told.get("openinference.span.kind")
    if kind is None:
        return
    kind = str(kind).upper()
    if kind == "LLM":
        told.pop("openinference.span.kind")
        # Instrumentations of both conventions at once keep their own operation.
        put_attribute(told, _OPERATION, "chat")
        _translate_llm(told)
    elif kind == "TOOL":
        told.pop("openinference.span.kind")
        put_attribute(told, _OPERATION, "execute_tool")
        put_attribute(told, _TOOL, told.get("tool.name", told.get("tool_call.function.name")))
        put_attribute(told, _KEY, told.get("tool_call.id", told.get("tool.id")))
        arguments = told.get("tool_call.function.arguments", told.get("input.value"))
        put_attribute(told, _ARGUMENTS, arguments)
        put_attribute(told, _RESULT, told.get("output.value"))
    elif kind in _OTHER_KINDS:
        told.pop("openinference.span.kind")
        # No reply of the model, whatever it repeats of those within it.
        put_attribute(told, _OPERATION, "invoke_agent" if kind == "AGENT" else "invoke_workflow")
        _drop_plain(told)


def _translate_llm(told: Attributes) -> None:
    for which, name in (("input", _INPUT), ("output", _OUTPUT)):
        messages = _take_tree(told, f"llm.{which}_messages")
        if messages:
            put_messages(told, name, [_read_inference_message(one) for one in messages])
    for which, name in (("prompt", _USAGE_IN), ("completion", _USAGE_OUT)):
        put_attribute(told, name, told.get(f"llm.token_count.{which}"))
    put_attribute(told, "gen_ai.usage.cost", told.get("llm.cost.total"))
    _drop_plain(told)


def _drop_plain(told: Attributes) -> None:
    for name in [one for one in told if _PLAIN_LLM.match(one)]:
        del told[name]


def _read_inference_message(given: dict[str, Any]) -> dict[str, Any]:
    fields = {name.removeprefix("message."): value for name, value in given.items()}
    parts: list[dict[str, Any]] = []
    if isinstance(fields.get("content"), str):
        parts.append({"type": "text", "content": fields["content"]})
    for one in _take_tree(fields, "contents"):
        inner = {name.removeprefix("message_content."): value for name, value in one.items()}
        kind = inner.get("type", "text" if "text" in inner else "image")
        parts.append({"type": kind, "content": inner.get("text", "")})
    for one in _take_tree(fields, "tool_calls"):
        call = {name.removeprefix("tool_call."): value for name, value in one.items()}
        name, arguments = call.get("function.name"), call.get("function.arguments")
        parts.append(make_call_part(name, call.get("id"), arguments))
    if fields.get("function_call_name") is not None:
        arguments = fields.get("function_call_arguments_json")
        parts.append(make_call_part(fields["function_call_name"], None, arguments))
    return make_message(fields.get("role"), parts, fields.get("tool_call_id"))


# --- OpenLLMetry ------------------------------------------------------------------------------


def _translate_openllmetry(told: Attributes) -> None:
    completions = _take_tree(told, "gen_ai.completion")
    prompts = _take_tree(told, "gen_ai.prompt")
    if completions:
        put_attribute(told, _OPERATION, "chat")
        put_messages(told, _OUTPUT, [_read_flat_message(one, "assistant") for one in completions])
        reasons = [one["finish_reason"] for one in completions if one.get("finish_reason")]
        put_attribute(told, _REASONS, reasons or None)
    if prompts:
        put_messages(told, _INPUT, [_read_flat_message(one, None) for one in prompts])
    if told.get("llm.request.type") in ("chat", "completion"):
        put_attribute(told, _OPERATION, "chat")
    put_attribute(told, _USAGE_IN, told.get("gen_ai.usage.prompt_tokens"))
    put_attribute(told, _USAGE_OUT, told.get("gen_ai.usage.completion_tokens"))
    if told.get("traceloop.span.kind") == "tool":
        put_attribute(told, _OPERATION, "execute_tool")
        put_attribute(told, _TOOL, told.get("traceloop.entity.name"))
        put_attribute(told, _ARGUMENTS, told.get("traceloop.entity.input"))
        put_attribute(told, _RESULT, told.get("traceloop.entity.output"))


def _read_flat_message(given: dict[str, Any], role: str | None) -> dict[str, Any]:
    fields = dict(given)
    parts: list[dict[str, Any]] = []
    if fields.get("content") is not None:
        parts.append({"type": "text", "content": str(fields["content"])})
    parts += [
        make_call_part(call.get("name"), call.get("id"), call.get("arguments"))
        for call in _take_tree(fields, "tool_calls")
    ]
    if fields.get("function_call.name") is not None:
        arguments = fields.get("function_call.arguments")
        parts.append(make_call_part(fields["function_call.name"], None, arguments))
    return make_message(fields.get("role") or role, parts, fields.get("tool_call_id"))


# --- Vercel's AI SDK --------------------------------------------------------------------------

#: Its outer spans repeat what the inner ones say, one for each step.
_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def _translate_vercel(told: Attributes) -> None:
    operation = told.get("ai.operationId")
    if operation is None:
        return
    if operation == "ai.toolCall":
        put_attribute(told, _OPERATION, "execute_tool")
        put_attribute(told, _TOOL, told.get("ai.toolCall.name"))
        put_attribute(told, _KEY, told.get("ai.toolCall.id"))
        put_attribute(told, _ARGUMENTS, told.get("ai.toolCall.args"))
        put_attribute(told, _RESULT, told.get("ai.toolCall.result"))
        _drop(told, "ai.toolCall.")
    elif operation in _OUTER:
        told[_OPERATION] = "invoke_agent"
        _drop(told, "ai.response.", "ai.prompt")
    elif isinstance(operation, str) and operation.endswith((".doGenerate", ".doStream")):
        parts: list[dict[str, Any]] = []
        text = told.get("ai.response.text", told.get("ai.response.object"))
        if text is not None:
            parts.append({"type": "text", "content": str(text)})
        calls = TraceFields({"calls": parse_value(told.get("ai.response.toolCalls"))}).calls(
            "calls"
        )
        parts += [
            make_call_part(
                call.text("toolName"), call.text("toolCallId"), call.get("input", "args")
            )
            for call in calls
        ]
        reason = told.get("ai.response.finishReason")
        told[_OPERATION] = "chat"
        if reason is not None:
            told[_REASONS] = [str(reason).replace("-", "_")]
        put_messages(told, _OUTPUT, [{"role": "assistant", "parts": parts}])
        _drop(told, "ai.response.")
        put_attribute(
            told, _USAGE_IN, told.get("ai.usage.inputTokens", told.get("ai.usage.promptTokens"))
        )
        answered = told.get("ai.usage.outputTokens", told.get("ai.usage.completionTokens"))
        put_attribute(told, _USAGE_OUT, answered)
        _drop(told, "ai.prompt")


def _drop(told: Attributes, *prefixes: str) -> None:
    for name in [one for one in told if one.startswith(prefixes)]:
        del told[name]
