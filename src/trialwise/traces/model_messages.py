"""Conversations as the APIs of models have them: OpenAI's two, and Anthropic's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces import trace_documents
from trialwise.traces.trace_building import ROLES, Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_conversations

# --- Chat completions -----------------------------------------------------------------------------
#
# Traces as OpenAI chat messages: a list of them, a request, or a request with its response.
#
#     [{"role": "user", "content": "…"},
#      {"role": "assistant", "content": null, "tool_calls":
#         [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
#      {"role": "tool", "tool_call_id": "c1", "content": "…"},
#      {"role": "assistant", "content": "…"}]
#
# The format has no place for a tool's failure, so that a call with a result counts as one that came
# to its end. `usage` counts where it stands beside the messages or in every reply. Of several
# choices the calls of all count, and the answer is that of the first.

_CHAT_ROLES = ROLES | {"tool", "function"}
#: The fields that hold calls, and the reasons to end a reply that speak of them.
_CHAT_CALLS = ("tool_calls", "function_call")


def read_openai(document: Any) -> list[Trace]:
    """Read the traces of a document: one conversation, or a list of several."""
    return [_read_chat(*one) for one in enumerate(list_conversations(document))]


def _read_chat(place: int, fields: TraceFields) -> Trace:
    messages, choices = fields.objects("messages"), fields.objects("choices")
    replies = [one.inner("message") for one in choices]
    if not messages and not replies:
        raise TraceError(f"conversation {place + 1} has no `messages` and no `choices`")
    building = Building()
    building.doubt_beginning([one.get("role") for one in messages])
    building.doubt_beside(fields)
    for message in messages:
        _read_chat_message(building, message)
    for reply in replies[1:]:
        building.doubt_unknown(reply, roles=_CHAT_ROLES, fields=_CHAT_CALLS)
        _read_chat_calls(building, reply)
    for reply in replies[:1]:
        # The usage of a response is that of its own reply, not of those before it.
        _read_chat_message(building, TraceFields({**reply.values, "usage": fields.get("usage")}))
    if len(messages) + len(choices) < len(fields.items("messages") + fields.items("choices")):
        building.doubt("one of the messages is not an object")
    for choice, reply in zip(choices, replies, strict=True):
        ended = choice.get("finish_reason")
        if ended in _CHAT_CALLS and not reply.get(*_CHAT_CALLS):
            building.doubt(f"the reply ended with {ended!r} and shows no call")
    return building.finish(usage=None if replies else read_tokens(fields.get("usage")))


def _read_chat_message(building: Building, message: TraceFields) -> None:
    building.doubt_unknown(message, roles=_CHAT_ROLES, fields=_CHAT_CALLS)
    role = message.text("role") or ""
    if role in {"tool", "function"}:
        building.result(
            key=message.text("tool_call_id"),
            name=message.text("name"),
            result=message.result("content") or "",
        )
        return
    building.say(role, message.content("content"))
    if role != "assistant":
        return
    building.spend(read_tokens(message.get("usage")))
    _read_chat_calls(building, message)


def _read_chat_calls(building: Building, message: TraceFields) -> None:
    for call in message.calls("tool_calls"):
        function = call.inner("function", "custom")
        args = function.arguments("arguments", "input")
        building.call(function.text("name"), key=call.text("id"), args=args)
    # How calls were written before there could be several.
    if isinstance(message.get("function_call"), Mapping):
        old = message.inner("function_call")
        building.call(old.text("name"), args=old.arguments("arguments"))


# --- Anthropic's messages -------------------------------------------------------------------------
#
# Traces as Anthropic messages: a list of them, a request, or replies as the API returns them.
#
#     [{"role": "user", "content": "…"},
#      {"role": "assistant", "content": [{"type": "text", "text": "…"},
#         {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
#      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": true,
#                                    "content": "…"}]}]
#
# Calls that the API makes itself (`server_tool_use`, `mcp_tool_use` with its `server_name`) are
# calls like any other. Input tokens include those read from and written to the cache.

_CALL_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use")
_PLAIN_BLOCKS = ("container_upload", "search_result")


def is_anthropic(message: TraceFields) -> bool:
    """Return whether a message holds blocks that only this format has."""
    blocks = message.objects("content")
    return message.get("type") == "message" or any(_is_block(one.get("type")) for one in blocks)


def read_anthropic(document: Any) -> list[Trace]:
    """Read the traces of a document: one conversation, or a list of several."""
    return [_read_conversation(*one) for one in enumerate(list_conversations(document))]


def _read_conversation(place: int, fields: TraceFields) -> Trace:
    messages = fields.objects("messages")
    is_reply = "role" in fields  # maybe with the request that it answers taken in
    building = Building()
    building.doubt_beginning([one.get("role") for one in messages])
    if is_reply:
        messages.append(fields)
    else:
        building.doubt_beside(fields)
    if not messages:
        raise TraceError(f"conversation {place + 1} has no `messages`")
    if spoken := fields.content("system"):
        building.say("system", spoken)
    read_messages(building, messages)
    if len(fields.objects("messages")) < len(fields.items("messages")):
        building.doubt("one of the messages is not an object")
    # The usage of a reply is its own, which the message tells already.
    usage = None if is_reply else read_tokens(fields.get("usage"))
    return building.finish(usage=usage, ended=messages[-1].text("stop_reason"))


def read_messages(building: Building, messages: Sequence[TraceFields]) -> None:
    """Take messages in, in their order."""
    for message in messages:
        _read_blocks(building, message)


def _read_blocks(building: Building, message: TraceFields) -> None:
    role = message.text("role") or ""
    blocks = message.objects("content")
    kinds = [one.text("type") or "" for one in blocks]
    known = [kind for kind in kinds if _is_block(kind) or kind in _PLAIN_BLOCKS]
    calls = any(kind in _CALL_BLOCKS for kind in kinds)
    # Some write the calls of their blocks down a second time.
    twice = ("tool_calls",) if calls else ()
    building.doubt_unknown(message, fields=(*twice, "messages", "container"), parts=known)
    if message.get("stop_reason") == "tool_use" and not calls:
        building.doubt("a reply ended with 'tool_use' and shows no call")
    spoken = message.content("content")
    if spoken or role == "assistant" or not any(_is_result(one.get("type")) for one in blocks):
        building.say(role, spoken)
    if role == "assistant":
        building.spend(read_tokens(message.get("usage")))
    for block in blocks:
        if block.get("type") in _CALL_BLOCKS:
            building.call(
                block.text("name"),
                key=block.text("id"),
                server=block.text("server_name"),
                args=block.get("input"),
            )
        elif _is_result(block.get("type")):
            _read_block_result(building, block)
    # A reply may call tools and speak after them.
    places = [place for place, kind in enumerate(kinds) if _is_block(kind)]
    if role == "assistant" and spoken and places and "text" in kinds[places[-1] :]:
        building.answer(spoken)


def _read_block_result(building: Building, block: TraceFields) -> None:
    inside = block.inner("content")
    returned = block.result("content") or ""
    failed = block.get("is_error") is True or str(inside.get("type")).endswith("_error")
    building.result(
        key=block.text("tool_use_id"),
        result=None if failed else returned,
        error=(inside.text("error_code") or returned) if failed else None,
    )


def _is_block(kind: object) -> bool:
    return kind in _CALL_BLOCKS or _is_result(kind)


def _is_result(kind: object) -> bool:
    return isinstance(kind, str) and kind.endswith("tool_result")


# --- Items of the Responses API -------------------------------------------------------------------
#
# Traces as items of OpenAI's Responses API: a list of them, or a response with its `output`.
#
#     [{"role": "user", "content": "…"},
#      {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
#      {"type": "function_call_output", "call_id": "c1", "output": "…"},
#      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "…"}]}]
#
# `to_input_list()` of the OpenAI Agents SDK returns such a list. Tools that the API runs itself are
# calls like any other: `mcp_call` with its server, and `web_search_call` and its like under the
# name of the tool. Items between two results are one turn of the model. `usage` counts where it
# stands in the response.

#: Calls of tools that belong to the caller, and what they return.
_CALL_ITEMS = ("function_call", "custom_tool_call")
_OUTPUT_ITEMS = ("function_call_output", "custom_tool_call_output")
#: Tools that the API runs, by the item and where it says what was asked.
_HOSTED = {
    "apply_patch_call": "operation",
    "code_interpreter_call": "code",
    "computer_call": "action",
    "file_search_call": "queries",
    "image_generation_call": "prompt",
    "local_shell_call": "action",
    "shell_call": "action",
    "tool_search_call": "arguments",
    "web_search_call": "action",
}
#: What the caller returns of those that it runs itself.
_HOSTED_OUTPUTS = tuple(f"{name}_output" for name in _HOSTED)
#: Items that hold no call.
_PLAIN_ITEMS = ("mcp_approval_request", "mcp_approval_response", "mcp_list_tools", "reasoning")
_ITEMS = frozenset(
    {*_CALL_ITEMS, *_OUTPUT_ITEMS, *_HOSTED, *_HOSTED_OUTPUTS, "mcp_call", "mcp_list_tools"}
)


def recognises_responses(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds items or responses of this API."""
    return any(
        one.get("object") == "response"
        or one.text("type") in _ITEMS
        or any(item.text("type") in _ITEMS for item in one.objects("output"))
        for one in members
    )


def read_responses(document: Any) -> list[Trace]:
    """Read the one trace of a list of items, or those of responses."""
    members = trace_documents.list_members(document)
    if members and all("output" in one or one.get("object") == "response" for one in members):
        return [_read_response(one) for one in members]
    if not isinstance(document, list):
        raise TraceError("a list of items is expected, or a response with its `output`")
    return [_read_items(document, TraceFields({}))]


def _read_response(response: TraceFields) -> Trace:
    given = response.get("input")
    asked = [{"role": "user", "content": given}] if isinstance(given, str) else []
    items = [*asked, *response.items("input"), *response.items("output")]
    return _read_items(items, response)


def _read_items(items: Sequence[Any], response: TraceFields) -> Trace:
    building = Building()
    if not response or "input" in response:
        building.doubt_beginning([TraceFields(one).get("role") for one in items])
    if response and not isinstance(response.get("output"), list):
        building.doubt("the response has no list `output`")
    speaks = False
    for one in items:
        item = TraceFields(one)
        if not item:
            building.doubt("one of the items is not an object")
        speaks = _read_item(building, item, speaks=speaks)
    return building.finish(usage=read_tokens(response.get("usage")), ended=response.text("status"))


def _read_item(building: Building, item: TraceFields, *, speaks: bool) -> bool:
    """Take one item in; return whether the model's turn goes on after it."""
    kind = item.text("type") or ("message" if "role" in item else None)
    if kind == "message":
        building.doubt_unknown(item)
        role = item.text("role") or ""
        building.say(role, item.content("content"))
        return role == "assistant"
    if kind in _OUTPUT_ITEMS or kind in _HOSTED_OUTPUTS:
        building.result(key=item.text("call_id"), result=item.result("output") or "")
        return False
    if kind in _PLAIN_ITEMS:
        return speaks
    if kind not in (*_CALL_ITEMS, *_HOSTED, "mcp_call"):
        building.doubt(
            "an item has no type" if kind is None else f"an item has the unknown type {kind!r}"
        )
        return speaks
    if not speaks:
        # A turn of the model that says nothing, as chat messages have it.
        building.say("assistant", "")
    if kind in _CALL_ITEMS:
        args = item.arguments("arguments", "input")
        building.call(item.text("name"), key=item.text("call_id"), args=args)
        return True
    _read_hosted(building, item, kind)
    return True


def _read_hosted(building: Building, item: TraceFields, kind: str) -> None:
    """Take in a call that the API made itself, with its result."""
    key = item.text("call_id", "id")
    if kind == "mcp_call":
        args = item.arguments("arguments")
        building.call(item.text("name"), key=key, server=item.text("server_label"), args=args)
        error = item.result("error")
        result = None if error is not None else item.result("output")
    else:
        building.call(kind.removesuffix("_call"), key=key, args=item.get(_HOSTED[kind]))
        failed = item.get("status") in ("failed", "incomplete")
        error = f"the call is {item.get('status')}" if failed else None
        result = None if failed or "call_id" in item else item.result("results", "result") or ""
    if error is not None or result is not None:
        building.result(key=key, result=result, error=error)
