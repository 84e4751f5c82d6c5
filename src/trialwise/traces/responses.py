"""Traces as items of OpenAI's Responses API: a list of them, or a response with its `output`.

    [{"role": "user", "content": "…"},
     {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
     {"type": "function_call_output", "call_id": "c1", "output": "…"},
     {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "…"}]}]

`to_input_list()` of the OpenAI Agents SDK returns such a list. Tools that the API runs itself are
calls like any other: `mcp_call` with its server, and `web_search_call` and its like under the name
of the tool. Items between two results are one turn of the model. `usage` counts where it stands in
the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import Building, doubt_beginning, doubt_unknown
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

#: Calls of tools that belong to the caller, and what they return.
_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
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
_PLAIN = ("mcp_approval_request", "mcp_approval_response", "mcp_list_tools", "reasoning")
_ITEMS = frozenset({*_CALLS, *_OUTPUTS, *_HOSTED, *_HOSTED_OUTPUTS, "mcp_call", "mcp_list_tools"})


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds items or responses of this API."""
    return any(
        one.get("object") == "response"
        or one.text("type") in _ITEMS
        or any(item.text("type") in _ITEMS for item in one.objects("output"))
        for one in members
    )


def read(document: Any) -> list[Trace]:
    """Read the one trace of a list of items, or those of responses."""
    members = list_members(document)
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
        doubt_beginning(building, [TraceFields(one).get("role") for one in items])
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
        doubt_unknown(building, item)
        role = item.text("role") or ""
        building.say(role, item.content("content"))
        return role == "assistant"
    if kind in _OUTPUTS or kind in _HOSTED_OUTPUTS:
        building.result(key=item.text("call_id"), result=item.result("output") or "")
        return False
    if kind in _PLAIN:
        return speaks
    if kind not in (*_CALLS, *_HOSTED, "mcp_call"):
        building.doubt(
            "an item has no type" if kind is None else f"an item has the unknown type {kind!r}"
        )
        return speaks
    if not speaks:
        # A turn of the model that says nothing, as chat messages have it.
        building.say("assistant", "")
    if kind in _CALLS:
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
