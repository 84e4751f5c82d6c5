"""Traces as messages of Google's Gemini API and of Amazon's Bedrock Converse API.

Gemini has `contents`, and Bedrock has messages whose blocks name their kind by their key:

    [{"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
     {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}]

    [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]},
     {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "…"}]}}]}]

A document is a list of messages, an object that holds one as `contents` or `messages`, or one with
the response beside it (`candidates` of Gemini, `output` of Bedrock), whose usage is that of its own
reply. Both spellings of names are read, `functionCall` and `function_call`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from trialwise.model.reply import Usage
from trialwise.model.trace import Trace, read_tokens
from trialwise.traces.trace_building import Building
from trialwise.traces.trace_documents import TraceError, TraceFields, list_members

_ROLES = {"model": "assistant", "assistant": "assistant", "user": "user", "system": "system"}
_CALLS = ("functionCall", "toolUse")
_RESULTS = ("functionResponse", "toolResult")
#: Code that Gemini runs itself.
_CODE, _CODE_RESULT = "executableCode", "codeExecutionResult"
#: Blocks, and fields beside a block, that hold no call.
_PLAIN = frozenset(
    {
        *("text", "thought", "thoughtSignature", "inlineData", "fileData", "videoMetadata"),
        *("reasoningContent", "image", "document", "video", "cachePoint", "guardContent"),
        *("citationsContent", "mediaResolution", "partMetadata"),
    }
)
_FAILED = ("error", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")


def recognises(members: Sequence[TraceFields]) -> bool:
    """Return whether a document holds messages of Gemini or Bedrock, or their responses."""
    return any(_is_cloud(one) or _holds_cloud(one) for one in members)


def _is_cloud(message: TraceFields) -> bool:
    """Return whether a message has parts of Gemini's, or blocks of Bedrock's."""
    parts = message.objects("parts")
    if parts and "part_kind" not in parts[0] and not any("type" in one for one in parts):
        return message.text("role") in ("model", "user") or "role" not in message
    blocks = message.objects("content")
    return any(_kinds(one) & {"toolUse", "toolResult"} for one in blocks)


def _holds_cloud(document: TraceFields) -> bool:
    """Return whether an object holds such messages, or is a response."""
    inner = [*document.objects("contents"), *document.objects("messages")]
    if any(map(_is_cloud, inner)):
        return True
    said = [one.inner("content") for one in document.objects("candidates")]
    return any(map(_is_cloud, said)) or _is_cloud(document.inner("output").inner("message"))


def read(document: Any) -> list[Trace]:
    """Read the one trace of a list of messages, or those of objects that hold one each."""
    members = list_members(document)
    if isinstance(document, list) and not any(map(_holds_cloud, members)):
        building = Building()
        building.doubt_beginning([_role_of(one) for one in members])
        return [_read_messages(building, document, None)]
    return [_read_whole(one) for one in members]


def _read_whole(whole: TraceFields) -> Trace:
    # The answer is that of the first candidate, and the last that is read.
    replies = [one.inner("content").values for one in reversed(whole.objects("candidates"))]
    replies += [one.values for one in [whole.inner("output").inner("message")] if one]
    asked = whole.items("contents", "messages")
    messages = [*asked, *replies]
    if not messages:
        raise TraceError("an object with `contents`, `messages` or a response is expected")
    usage = read_tokens(whole.get("usageMetadata", "usage_metadata", "usage"))
    building = Building()
    building.doubt_beginning([_role_of(TraceFields(one)) for one in asked])
    building.doubt_beside(TraceFields({**whole.values, "output": None}))
    if any(name in whole and not whole.items(name) for name in ("contents", "messages")):
        building.doubt("what was asked before the response is not told")
    return _read_messages(
        building, messages, usage if replies else None, total=None if replies else usage
    )


def _read_messages(
    building: Building, messages: Sequence[Any], of_last: Usage | None, total: Usage | None = None
) -> Trace:
    for place, one in enumerate(messages, start=1):
        is_last = place == len(messages)
        _read_message(building, TraceFields(one), of_last if is_last else None)
    return building.finish(usage=total)


def _read_message(building: Building, message: TraceFields, usage: Usage | None) -> None:
    role = _role_of(message)
    parts = [TraceFields(_camel(one)) for one in message.items("parts", "content")]
    if not role or (not parts and not isinstance(message.get("content"), str)):
        building.doubt("one of the messages has an unknown role, or no parts")
    for part in parts:
        if unknown := _kinds(part) - _PLAIN - {*_CALLS, *_RESULTS, _CODE, _CODE_RESULT}:
            building.doubt(f"a message has a part of the unknown kind {sorted(unknown)[0]!r}")
        elif not part:
            building.doubt("a message has a part that is not an object")
    spoken = message.text("content") or "".join(
        one.text("text") or "" for one in parts if one.get("thought") is not True
    )
    if spoken or role == "assistant" or not any(_kinds(one) & {*_RESULTS} for one in parts):
        building.say(role, spoken)
    if role == "assistant":
        building.spend(usage)
    for part in parts:
        _read_part(building, part)
    if role == "assistant" and spoken and parts and "text" in parts[-1]:
        building.answer(spoken)


def _role_of(message: TraceFields) -> str:
    return _ROLES.get(message.text("role") or "model", "")


def _read_part(building: Building, part: TraceFields) -> None:
    call, result = part.inner(*_CALLS), part.inner(*_RESULTS)
    if _kinds(part) & {*_CALLS}:
        key = call.text("id", "toolUseId")
        building.call(call.text("name"), key=key, args=call.arguments("args", "input"))
    elif _kinds(part) & {*_RESULTS}:
        returned = result.inner("response")
        failed = result.get("status") in _FAILED or (bool(returned) and "error" in returned)
        told = result.result("response", "content") or ""
        key = result.text("id", "toolUseId")
        # A result whose call has no id is known by the name of the tool.
        building.result(
            key=key if building.knows(key) else None,
            name=result.text("name"),
            result=None if failed else told,
            error=told if failed else None,
        )
    elif _CODE in part:
        building.call("code_execution", args=part.get(_CODE))
    elif _CODE_RESULT in part:
        outcome = part.inner(_CODE_RESULT)
        failed = outcome.get("outcome") in _FAILED
        told = outcome.text("output") or ""
        building.result(
            name="code_execution",
            result=None if failed else told,
            error=told or "the code failed" if failed else None,
        )


def _kinds(part: TraceFields) -> set[str]:
    """Return what a part says that it is: its keys that hold something."""
    return {_to_camel(name) for name, value in part.values.items() if value is not None}


def _camel(part: Any) -> Any:
    return {_to_camel(k): v for k, v in part.items()} if isinstance(part, dict) else part


def _to_camel(name: object) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), str(name))
