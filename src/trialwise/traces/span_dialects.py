"""Attributes of spans that other conventions write, in the terms of OpenTelemetry's GenAI ones.

| convention               | a reply of the model           | a call of a tool                |
|--------------------------|--------------------------------|---------------------------------|
| OpenInference            | `openinference.span.kind: LLM` | `openinference.span.kind: TOOL` |
| OpenLLMetry before 0.50  | `gen_ai.completion.0.content`  | `traceloop.span.kind: tool`     |
| GenAI before 1.37        | events such as `gen_ai.choice` | `gen_ai.tool.name`              |
| Vercel's AI SDK          | `ai.response.toolCalls`        | `ai.toolCall.name`              |

What is translated is left out of the result. What remains of another convention was not read, and
`unknown_spans` doubts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trialwise.model.foreign_fields import Fields
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
_STEP = re.compile(r"\.(\d+)(?=\.|$)")

Attributes = dict[str, Any]


def translate_span(
    given: Mapping[str, Any], events: Iterable[TraceFields] = ()
) -> tuple[Attributes, tuple[str, ...]]:
    """Return the attributes of a span in these terms, and the names of events that were not read.

    >>> told, _ = translate_span({"openinference.span.kind": "TOOL", "tool.name": "find"})
    >>> told["gen_ai.operation.name"], told["gen_ai.tool.name"]
    ('execute_tool', 'find')

    Args:
        given: The attributes.
        events: The events of the span that hold messages, as `{"name", "attributes"}`.
    """
    told = dict(given)
    translate: tuple[Callable[[Attributes], None], ...] = (
        _translate_openinference,
        _translate_openllmetry,
        _translate_vercel,
    )
    for one in translate:
        one(told)
    return told, _translate_events(told, events)


def _put(told: Attributes, name: str, value: Any) -> None:
    """Set an attribute that is not there yet."""
    if value is not None:
        told.setdefault(name, value)


def _put_messages(told: Attributes, name: str, messages: list[dict[str, Any]]) -> None:
    """Set messages; one of which nothing was kept does not tell that it called nothing."""
    if messages and all(one["parts"] for one in messages):
        _put(told, name, messages)


def _part(name: object, key: object, arguments: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": key, "name": name, "arguments": arguments}


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
        _put(told, _OPERATION, "chat")
        _translate_llm(told)
    elif kind == "TOOL":
        told.pop("openinference.span.kind")
        _put(told, _OPERATION, "execute_tool")
        _put(told, _TOOL, told.get("tool.name", told.get("tool_call.function.name")))
        _put(told, _KEY, told.get("tool_call.id", told.get("tool.id")))
        arguments = told.get("tool_call.function.arguments", told.get("input.value"))
        _put(told, _ARGUMENTS, arguments)
        _put(told, _RESULT, told.get("output.value"))
    elif kind in _OTHER_KINDS:
        told.pop("openinference.span.kind")
        # No reply of the model, whatever it repeats of those within it.
        _put(told, _OPERATION, "invoke_agent" if kind == "AGENT" else "invoke_workflow")
        _drop_plain(told)


def _translate_llm(told: Attributes) -> None:
    for which, name in (("input", _INPUT), ("output", _OUTPUT)):
        messages = _take_tree(told, f"llm.{which}_messages")
        if messages:
            _put_messages(told, name, [_read_inference_message(one) for one in messages])
    for which, name in (("prompt", _USAGE_IN), ("completion", _USAGE_OUT)):
        _put(told, name, told.get(f"llm.token_count.{which}"))
    _put(told, "gen_ai.usage.cost", told.get("llm.cost.total"))
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
        parts.append(_part(name, call.get("id"), arguments))
    if fields.get("function_call_name") is not None:
        arguments = fields.get("function_call_arguments_json")
        parts.append(_part(fields["function_call_name"], None, arguments))
    return _make_message(fields.get("role"), parts, fields.get("tool_call_id"))


def _make_message(role: Any, parts: list[dict[str, Any]], key: Any) -> dict[str, Any]:
    if role == "tool" and key is not None:
        said = "".join(str(one.get("content") or "") for one in parts)
        parts = [{"type": "tool_call_response", "id": key, "response": said}]
    return {"role": role, "parts": parts}


# --- OpenLLMetry ------------------------------------------------------------------------------


def _translate_openllmetry(told: Attributes) -> None:
    completions = _take_tree(told, "gen_ai.completion")
    prompts = _take_tree(told, "gen_ai.prompt")
    if completions:
        _put(told, _OPERATION, "chat")
        _put_messages(told, _OUTPUT, [_read_flat_message(one, "assistant") for one in completions])
        reasons = [one["finish_reason"] for one in completions if one.get("finish_reason")]
        _put(told, _REASONS, reasons or None)
    if prompts:
        _put_messages(told, _INPUT, [_read_flat_message(one, None) for one in prompts])
    if told.get("llm.request.type") in ("chat", "completion"):
        _put(told, _OPERATION, "chat")
    _put(told, _USAGE_IN, told.get("gen_ai.usage.prompt_tokens"))
    _put(told, _USAGE_OUT, told.get("gen_ai.usage.completion_tokens"))
    if told.get("traceloop.span.kind") == "tool":
        _put(told, _OPERATION, "execute_tool")
        _put(told, _TOOL, told.get("traceloop.entity.name"))
        _put(told, _ARGUMENTS, told.get("traceloop.entity.input"))
        _put(told, _RESULT, told.get("traceloop.entity.output"))


def _read_flat_message(given: dict[str, Any], role: str | None) -> dict[str, Any]:
    fields = dict(given)
    parts: list[dict[str, Any]] = []
    if fields.get("content") is not None:
        parts.append({"type": "text", "content": str(fields["content"])})
    parts += [
        _part(call.get("name"), call.get("id"), call.get("arguments"))
        for call in _take_tree(fields, "tool_calls")
    ]
    if fields.get("function_call.name") is not None:
        arguments = fields.get("function_call.arguments")
        parts.append(_part(fields["function_call.name"], None, arguments))
    return _make_message(fields.get("role") or role, parts, fields.get("tool_call_id"))


# --- Vercel's AI SDK --------------------------------------------------------------------------

#: Its outer spans repeat what the inner ones say, one for each step.
_OUTER = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


def _translate_vercel(told: Attributes) -> None:
    operation = told.get("ai.operationId")
    if operation is None:
        return
    if operation == "ai.toolCall":
        _put(told, _OPERATION, "execute_tool")
        _put(told, _TOOL, told.get("ai.toolCall.name"))
        _put(told, _KEY, told.get("ai.toolCall.id"))
        _put(told, _ARGUMENTS, told.get("ai.toolCall.args"))
        _put(told, _RESULT, told.get("ai.toolCall.result"))
        _drop(told, "ai.toolCall.")
    elif operation in _OUTER:
        told[_OPERATION] = "invoke_agent"
        _drop(told, "ai.response.", "ai.prompt")
    elif isinstance(operation, str) and operation.endswith((".doGenerate", ".doStream")):
        parts: list[dict[str, Any]] = []
        text = told.get("ai.response.text", told.get("ai.response.object"))
        if text is not None:
            parts.append({"type": "text", "content": str(text)})
        calls = TraceFields({"calls": _parse(told.get("ai.response.toolCalls"))}).calls("calls")
        parts += [
            _part(call.text("toolName"), call.text("toolCallId"), call.get("input", "args"))
            for call in calls
        ]
        reason = told.get("ai.response.finishReason")
        told[_OPERATION] = "chat"
        if reason is not None:
            told[_REASONS] = [str(reason).replace("-", "_")]
        _put_messages(told, _OUTPUT, [{"role": "assistant", "parts": parts}])
        _drop(told, "ai.response.")
        _put(told, _USAGE_IN, told.get("ai.usage.inputTokens", told.get("ai.usage.promptTokens")))
        answered = told.get("ai.usage.outputTokens", told.get("ai.usage.completionTokens"))
        _put(told, _USAGE_OUT, answered)
        _drop(told, "ai.prompt")


def _drop(told: Attributes, *prefixes: str) -> None:
    for name in [one for one in told if one.startswith(prefixes)]:
        del told[name]


def _parse(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return [{}]  # what cannot be read may be any call


# --- GenAI conventions before 1.37 ------------------------------------------------------------

_MESSAGE_EVENT = re.compile(r"gen_ai\.(assistant|system|tool|user)\.message")


def _translate_events(told: Attributes, events: Iterable[TraceFields]) -> tuple[str, ...]:
    """Put messages that stand on events where later conventions have them."""
    given: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    unread: list[str] = []
    for event in events:
        name, fields = str(event.get("name")), event.inner("attributes")
        if name == "gen_ai.choice":
            inner = _parse(fields.get("message")) if "message" in fields else fields.values
            message = _read_event_message(Fields(inner).values, "assistant")
            said.append(message)
            reason = fields.get("finish_reason")
            _put(told, _REASONS, None if reason is None else [reason])
            if not message["parts"] and reason is None:
                unread.append(name)
        elif found := _MESSAGE_EVENT.fullmatch(name):
            given.append(_read_event_message(fields.values, found[1]))
        elif name.startswith("gen_ai."):
            unread.append(name)
    _put_messages(told, _OUTPUT, said)
    _put_messages(told, _INPUT, given)
    return tuple(unread)


def _read_event_message(given: Mapping[str, Any], role: str) -> dict[str, Any]:
    fields = TraceFields({**given, "tool_calls": _parse(given.get("tool_calls"))})
    content = fields.get("content")
    parts: list[dict[str, Any]] = []
    if content is not None:
        text = content if isinstance(content, str) else json.dumps(content, default=str)
        parts.append({"type": "text", "content": text})
    for call in fields.calls("tool_calls"):
        function = call.inner("function") or call
        arguments = function.get("arguments", "args")
        parts.append(_part(function.text("name"), call.text("id"), arguments))
    return _make_message(fields.text("role") or role, parts, fields.text("id", "tool_call_id"))
