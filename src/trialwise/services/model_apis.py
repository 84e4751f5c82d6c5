"""The APIs that a chat model may be behind: how each is asked, and how its answers are read.

Everything else speaks of messages as chat completions have them. An API turns such messages into
its own request, and its response into the document of a chat completion with two more fields in its
message: `native`, what the model said in the API's own form, which is sent back as it is, and
`hosted_calls`, the calls of tools that the API ran itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, NoReturn

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.trace import Fields
from trialwise.model.trial import ErrorClass

# What goes into a request and what comes out of a response: placeholders, JSON and JSON Pointer.
#
# `{input}`, `{index}` and `{seed}` are replaced in one pass, so that an input that happens to
# contain `{seed}` stays as it is. Anything else in braces is left alone: JSON survives.

#: A step of a JSONPath that names one place: `.name`, `[0]` or `['name']`.
_PATH_STEP = re.compile(r"""(\.([^\W\d][\w-]*)|\[(\d+)\]|\['([^'\\]*)'\])""")
_PLACEHOLDER = re.compile(r"\{(input|index|seed|scenario_file)\}")


def input_text(value: Any) -> str:
    """Return an input as text: text as it is, anything else as JSON.

    >>> input_text({"city": "Zürich"})
    '{"city":"Zürich"}'
    """
    return value if isinstance(value, str) else to_json(value)


def to_json(value: Any) -> str:
    """Compact JSON; what JSON cannot carry makes the trial one that never began."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ServiceError(
            f"the input cannot be written as JSON: {error}", ErrorClass.PRE_VALIDATION
        ) from None


def encode(text: str) -> bytes:
    """UTF-8; half a surrogate pair has none, and makes the trial one that never began."""
    try:
        return text.encode()
    except UnicodeError as error:
        message = f"the input cannot be written as UTF-8: {error}"
        raise ServiceError(message, ErrorClass.PRE_VALIDATION) from None


def quote_url(text: str) -> str:
    """Text as it may stand anywhere in a URL.

    >>> quote_url("a b/ü")
    'a%20b%2F%C3%BC'
    """
    from urllib.parse import quote

    return quote(encode(text), safe="")


def placeholders(texts: Sequence[str]) -> set[str]:
    """Return the names of the placeholders that occur."""
    return {name for text in texts for name in _PLACEHOLDER.findall(text)}


def fill_text(
    template: str,
    trial: TrialContext,
    *,
    quote: Callable[[str], str] = str,
    more: Mapping[str, str] | None = None,
) -> str:
    """Fill a text with its placeholders replaced.

    >>> trial = TrialContext(index=3, input="15 {seed} 37", seed=11)
    >>> fill_text('{"n": {index}, "q": "{input}"}', trial)
    '{"n": 3, "q": "15 {seed} 37"}'

    Args:
        template: The text.
        trial: Where the values come from.
        quote: Applied to each value, as a URL needs.
        more: Further values by name.
    """

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if more and name in more:
            return quote(more[name])
        return match[0] if name == "scenario_file" else quote(input_text(getattr(trial, name)))

    return _PLACEHOLDER.sub(value, template)


def fill_json(template: Any, trial: TrialContext) -> Any:
    """Fill a JSON structure with the placeholders in its texts replaced.

    A text that is one placeholder and nothing else becomes the value itself, whatever its type.

    >>> trial = TrialContext(index=0, input={"a": 1}, seed=7)
    >>> fill_json({"data": "{input}", "note": "seed {seed}", "seed": "{seed}"}, trial)
    {'data': {'a': 1}, 'note': 'seed 7', 'seed': 7}
    """
    if isinstance(template, str):
        whole = _PLACEHOLDER.fullmatch(template)
        # A number stays a number: `"seed": "{seed}"` is sent as `"seed": 7`.
        if whole and whole[1] != "scenario_file":
            return getattr(trial, whole[1])
        return fill_text(template, trial)
    if isinstance(template, Mapping):
        return {key: fill_json(value, trial) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [fill_json(value, trial) for value in template]
    return template


def parse_json(text: str | bytes, *, allows_nan: bool = False) -> Any:
    """Parse the value of a JSON text; `ValueError` for whatever is not one.

    Args:
        text: The text.
        allows_nan: Whether NaN and infinity are read, as null; JSON has no such numbers.

    >>> parse_json('{"a": [1, null]}')
    {'a': [1, None]}
    """
    try:
        return json.loads(text, parse_constant=_read_null if allows_nan else _refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_pointer(argument: str, pointer: object) -> tuple[str, ...]:
    """Return the steps of a JSON Pointer, or of a JSONPath that names one place.

    >>> check_pointer("extract", "/choices/0/a~1b"), check_pointer("extract", "$.choices[0].text")
    (('choices', '0', 'a/b'), ('choices', '0', 'text'))
    """
    allowed = "name one place: '/data/0/text', '$.data[0].text', or '$' for all of it"
    if not isinstance(pointer, str) or (pointer and pointer[0] not in "/$"):
        raise InvalidArgument(argument, pointer, allowed)
    if pointer.startswith("$"):
        steps = _PATH_STEP.findall(pointer)
        if "$" + "".join(text for text, *_ in steps) != pointer:
            raise InvalidArgument(argument, pointer, allowed)
        return tuple(name or number or quoted for _, name, number, quoted in steps)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def find(document: Any, steps: tuple[str, ...]) -> Any:
    """Return what stands at the end of the steps; `LookupError` says which step is missing.

    >>> find({"a": [10, 20]}, ("a", "1"))
    20
    """
    value = document
    for depth, step in enumerate(steps):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise LookupError("nothing at /" + "/".join(steps[: depth + 1]))
    return value


def _read_null(_name: str) -> None:
    """Read a number that JSON does not have as unknown."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


ApiName = Literal["chat-completions", "responses", "anthropic"]
OPENAI_URL, OPENAI_KEY = "https://api.openai.com/v1", "OPENAI_API_KEY"
#: The version of Anthropic's API that requests are written for.
_ANTHROPIC_VERSION = "2023-06-01"
#: Anthropic's API requires a limit on tokens. A request without one gets this.
_ANTHROPIC_TOKENS = 4096


class ModelApi:
    """Chat completions, as OpenAI and most others offer them."""

    path: ClassVar[str] = "/chat/completions"
    takes_seed: ClassVar[bool] = True
    usual_url: ClassVar[str] = OPENAI_URL
    usual_key: ClassVar[str] = OPENAI_KEY

    def make_headers(self, key: str) -> dict[str, str]:
        """Return the headers that a key is sent in."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def make_body(self, fields: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
        """Return the body of a request.

        Args:
            fields: What is the same in every trial, with the names of chat completions.
            messages: The conversation.
        """
        return {**fields, "messages": list(messages)}

    def make_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return definitions of tools in the API's own form."""
        return list(tools)

    def read(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a response as the document of a chat completion."""
        return document


class ResponsesApi(ModelApi):
    """OpenAI's Responses API."""

    path: ClassVar[str] = "/responses"
    takes_seed: ClassVar[bool] = False

    def make_body(self, fields: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
        """Return the body of a request: messages become items."""
        body = dict(fields)
        if "max_tokens" in body:
            body["max_output_tokens"] = body.pop("max_tokens")
        body["input"] = [item for message in messages for item in _make_items(message)]
        return body

    def make_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return definitions whose fields stand beside their type."""
        return [{"type": "function", **one["function"]} for one in tools]

    def read(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a response as the document of a chat completion."""
        if not isinstance(document.get("output"), list):
            return document
        message = _read_parts(document, "output", _read_item)
        why = Fields(document).inner("incomplete_details").text("reason")
        return _completion(document, message, why or Fields(document).text("status"))


class AnthropicApi(ModelApi):
    """Anthropic's Messages API."""

    path: ClassVar[str] = "/messages"
    takes_seed: ClassVar[bool] = False
    usual_url: ClassVar[str] = "https://api.anthropic.com/v1"
    usual_key: ClassVar[str] = "ANTHROPIC_API_KEY"

    def make_headers(self, key: str) -> dict[str, str]:
        """Return the headers with the key and with the version of the API."""
        return {"anthropic-version": _ANTHROPIC_VERSION, **({"x-api-key": key} if key else {})}

    def make_body(self, fields: Mapping[str, Any], messages: Sequence[Any]) -> dict[str, Any]:
        """Return the body of a request, with the system messages in a field of their own."""
        systems = [one["content"] for one in messages if one.get("role") in _SYSTEM]
        body = {"max_tokens": _ANTHROPIC_TOKENS, **fields}
        if systems:
            body["system"] = "\n\n".join(map(input_text, systems))
        body["messages"] = _make_turns(one for one in messages if one.get("role") not in _SYSTEM)
        return body

    def make_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return definitions with the schema of their input."""
        made = []
        for one in tools:
            function = dict(one["function"])
            made.append({"input_schema": function.pop("parameters"), **function})
        return made

    def read(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a response as the document of a chat completion."""
        if not isinstance(document.get("content"), list):
            return document
        message = _read_parts(document, "content", _read_block)
        ended = Fields(document).text("stop_reason")
        if ended == "refusal":
            message["refusal"] = message["content"] or ended
        return _completion(document, message, ended)


_APIS: dict[str, ModelApi] = {
    "chat-completions": ModelApi(),
    "responses": ResponsesApi(),
    "anthropic": AnthropicApi(),
}
_SYSTEM = ("system", "developer")


def find_api(name: str) -> ModelApi:
    """Return the API of a name."""
    if name not in _APIS:
        raise InvalidArgument("api", name, f"be one of {', '.join(_APIS)}")
    return _APIS[name]


def _read_parts(
    document: Mapping[str, Any],
    name: str,
    read: Callable[[Fields, dict[str, Any], list[dict[str, Any]]], None],
) -> dict[str, Any]:
    """Return the message that the parts of a response make, with what they were."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": []}
    hosted: list[dict[str, Any]] = []
    for one in Fields(document).objects(name):
        read(one, message, hosted)
    # Native, since the API wants back what only it understands, such as signed reasoning.
    return message | {"native": document[name], "hosted_calls": hosted}


def _completion(
    document: Mapping[str, Any], message: dict[str, Any], ended: str | None
) -> dict[str, Any]:
    kept = {name: document[name] for name in ("model", "error", "usage") if name in document}
    return {**kept, "choices": [{"message": message, "finish_reason": ended}]}


def _call(key: str | None, told: Fields, args: Any) -> dict[str, Any]:
    arguments = args if isinstance(args, str) else to_json(args)
    function = {"name": told.text("name"), "arguments": arguments}
    return {"id": key, "type": "function", "function": function}


def _hosted(name: str | None, args: Any, told: Fields) -> dict[str, Any]:
    """Describe a call that the API made itself, as a trace does."""
    server = told.text("server_label", "server_name")
    return {"name": name, "args": args, **({} if server is None else {"server": server})}


# --- The Responses API ------------------------------------------------------------------------

#: Items that are no call, whatever their name.
_NO_CALLS = ("mcp_list_tools", "mcp_approval_request", "reasoning", "compaction")


def _make_items(message: Mapping[str, Any]) -> list[Any]:
    if isinstance(message.get("native"), list):
        return list(message["native"])
    if message.get("role") == "tool":
        output = {"call_id": message.get("tool_call_id"), "output": message.get("content")}
        return [{"type": "function_call_output", **output}]
    items: list[Any] = []
    if message.get("content"):
        items.append({name: message[name] for name in ("role", "content")})
    for call in Fields(message).objects("tool_calls"):
        function = call.inner("function").values
        items.append({"type": "function_call", "call_id": call.get("id"), **function})
    # What is not a message of a chat is an item already.
    return items or [dict(message)]


def _read_item(item: Fields, message: dict[str, Any], hosted: list[dict[str, Any]]) -> None:
    kind = item.text("type") or ""
    if kind == "message":
        for part in item.objects("content"):
            message["content"] += part.text("text") or ""
            if part.get("type") == "refusal":
                message["refusal"] = part.text("refusal") or "refused"
    elif kind == "function_call":
        message["tool_calls"].append(_call(item.text("call_id"), item, item.get("arguments")))
    elif kind not in _NO_CALLS:
        # A tool that the API ran, or something newer that may be one.
        name = item.text("name") or kind.removesuffix("_call") or None
        hosted.append(_hosted(name, item.get("arguments", "action", "queries", "code"), item))


# --- Anthropic's API --------------------------------------------------------------------------


def _read_block(block: Fields, message: dict[str, Any], hosted: list[dict[str, Any]]) -> None:
    kind = block.text("type") or ""
    if kind == "text":
        message["content"] += block.text("text") or ""
    elif kind == "tool_use":
        message["tool_calls"].append(_call(block.text("id"), block, block.get("input")))
    elif kind.endswith("tool_use"):
        hosted.append(_hosted(block.text("name"), block.get("input"), block))


def _make_turns(messages: Any) -> list[dict[str, Any]]:
    """Return turns: results of tools that follow each other are one turn of the user."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") != "tool":
            turns.append(_make_turn(message))
            continue
        content = message.get("content")
        result = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
        block = {**result, "content": content}
        if isinstance(content, str) and content.startswith("Error"):
            block["is_error"] = True
        last = turns[-1] if turns else {}
        if last.get("role") == "user" and isinstance(last.get("content"), list):
            # All results of one turn belong into one message, right after the calls.
            last["content"].append(block)
        else:
            turns.append({"role": "user", "content": [block]})
    return turns


def _make_turn(message: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(message.get("native"), list):
        return {"role": "assistant", "content": list(message["native"])}
    blocks: list[Any] = []
    for call in Fields(message).objects("tool_calls"):
        function = call.inner("function")
        given: Any = {}
        with suppress(ValueError):
            given = parse_json(function.text("arguments") or "{}")
        named = {"id": call.get("id"), "name": function.get("name"), "input": given}
        blocks.append({"type": "tool_use", **named})
    content = message.get("content")
    if blocks:
        text = [{"type": "text", "text": content}] if content else []
        content = [*text, *blocks]
    elif isinstance(content, list):
        content = list(content)
    return {"role": message.get("role"), "content": content}
