"""Calls a chat model and counts its tokens and its cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Annotated, Any, ClassVar

from trialwise.declarations.resources import SecretName
from trialwise.declarations.scalars import Data, Text
from trialwise.declarations.signatures import Arg, Dollars, Made, Positive, derive_keys
from trialwise.declarations.structures import Either, Listing
from trialwise.engine.error_classes import classify_status
from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model import ErrorClass, Reply, Usage
from trialwise.model.fingerprint import fingerprint
from trialwise.model.trace import Fields, read_tokens
from trialwise.redaction import redact_text, redact_values
from trialwise.services import http_endpoint, model_apis, service_factors
from trialwise.services.service_factors import HttpFailure, MalformedReply, RequestRefused
from trialwise.validation import require_real

_SLOT = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_NAME = r"input(\.[^.\s]+)*"


def read_prompt(prompt: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a prompt as the messages of a conversation, with slots such as `{{ input.text }}`."""
    given = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
    if not given:
        raise InvalidArgument("prompt", prompt, "hold at least one message")
    for one in given:
        _check_message(one)
    return [dict(one) for one in given]


def fill_prompt(messages: Sequence[Mapping[str, Any]], given: Any) -> list[dict[str, Any]]:
    """Fill the messages of a prompt with one input.

    >>> messages = read_prompt("Translate to {{ input.to }}: {{ input.text }}")
    >>> fill_prompt(messages, {"to": "German", "text": "good day"})
    [{'role': 'user', 'content': 'Translate to German: good day'}]

    Raises:
        ServiceError: The input lacks a field.
    """

    def fill(template: str) -> str:
        return _SLOT.sub(lambda match: _find(match[1], given), template)

    return [{**one, "content": fill(one["content"])} for one in messages]


def _check_message(message: object) -> None:
    fields = Fields(message)
    if fields.text("role") is None or fields.text("content") is None:
        allowed = "be a text, or a list of messages with `role` and `content`"
        raise InvalidArgument("prompt", message, allowed)
    for slot in _SLOT.findall(fields.values["content"]):
        if not re.fullmatch(_NAME, slot):
            allowed = f"name the input or a field of it, not {{{{ {slot} }}}}"
            raise InvalidArgument("prompt", slot, allowed)


def _find(slot: str, given: Any) -> str:
    value = given
    for name in slot.split(".")[1:]:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            has = isinstance(value, Mapping)
            known = f"it has {', '.join(map(str, value))}" if has else "it has no fields"
            message = f"the prompt names {{{{ {slot} }}}}, which an input lacks; {known}"
            raise ServiceError(message, ErrorClass.PRE_VALIDATION, stops_run=True)
    return model_apis.input_text(value)


__all__ = ["ChatService", "Prices"]

#: Endpoints differ in how large a seed they take; all take 31 bits.
_SEED_BITS = 31
_OWN_FIELDS = ("messages", "input", "model", "stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in US dollars.

    Args:
        input_usd: The price of a million input tokens.
        output_usd: The price of a million output tokens.

    >>> Prices(input_usd=2.5, output_usd=10.0).cost(Usage(input_tokens=1000, output_tokens=200))
    0.0045
    """

    input_usd: Dollars
    output_usd: Dollars

    def __post_init__(self) -> None:
        for name in ("input_usd", "output_usd"):
            if require_real(name, getattr(self, name)) < 0:
                raise InvalidArgument(name, getattr(self, name), "be at least 0")

    def cost(self, usage: Usage) -> float:
        """Return what a reply cost."""
        dollars = usage.input_tokens * self.input_usd + usage.output_tokens * self.output_usd
        return dollars / 1_000_000


BaseUrl = Annotated[
    str, Arg(otherwise=model_apis.OPENAI_URL, default="that of OpenAI, or of Anthropic")
]
"""The beginning of the addresses of an endpoint."""
KeyName = Annotated[
    str | None, Arg(kind=SecretName(), default="OPENAI_API_KEY, or ANTHROPIC_API_KEY")
]
"""The environment variable that holds a key."""
Tools = Annotated[Sequence[Mapping[str, Any]], Arg(kind=Listing(Data("read"), "a list of tools"))]
"""Definitions of tools."""
PromptArgument = Annotated[
    str | Sequence[Mapping[str, Any]],
    Arg(
        kind=Either(
            "a text, or a list of messages",
            scalar=Text(environment="read"),
            listing=Listing(Data("read"), "a list of messages"),
        )
    ),
]
"""A prompt, which a suite writes as a text or as messages."""
PricesArgument = Annotated[
    Prices, Arg(kind=Made("prices", Prices, derive_keys(Prices), doc="The price of tokens."))
]
"""Prices, which a suite writes as a mapping."""


@dataclass(kw_only=True, eq=False, repr=False)
class ChatModel(http_endpoint.EndpointService):
    """A chat model behind an endpoint, which is asked with a conversation."""

    #: Whether somebody goes on with the conversation after each answer.
    _takes_turns: ClassVar[bool] = False

    base_url: BaseUrl = field(kw_only=False)
    model: str = field(kw_only=False)
    api: model_apis.ApiName = "chat-completions"
    api_key_env: KeyName = model_apis.OPENAI_KEY
    system: str | None = None
    temperature: float | None = None
    max_tokens: Positive | None = None
    extra: Mapping[str, Any] | None = None
    send_seed: bool = False
    prices: PricesArgument | None = None
    response_limit: Positive = 2**22
    _prompt: list[dict[str, Any]] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._prepare()

    def _prepare(self, **own: Any) -> None:
        """Check the arguments, and put the fields of requests together with some of its own."""
        super().__post_init__()
        self._api = model_apis.find_api(self.api)
        if self.base_url == model_apis.OPENAI_URL:
            self.base_url = self._api.usual_url
        self.base_url = http_endpoint.check_url("base_url", self.base_url).rstrip("/")
        if self.send_seed and not self._api.takes_seed:
            allowed = f"be false: the API {self.api} takes no seed"
            raise InvalidArgument("send_seed", self.send_seed, allowed)
        key = self.api_key_env
        key = self._api.usual_key if key == model_apis.OPENAI_KEY else key
        # Refused before the first trial; each would fail with 401.
        if key is not None and not self.environment.get(key):
            allowed = (
                f"refer to a variable that is set, and {key} is not: set it to the endpoint's key, "
                "name another one with `api_key_env`, or make that null (None) where no key is "
                "needed"
            )
            raise InvalidArgument("api_key_env", key, allowed)
        # By name and not by value: the key is looked up for each call and never kept.
        self._key = "" if key is None else f"${{{key}}}"
        own |= {name: getattr(self, name) for name in ("model", "temperature", "max_tokens")}
        given = {name: value for name, value in own.items() if value is not None}
        for name in self.extra or {}:
            if name in given or name in _OWN_FIELDS:
                raise InvalidArgument("extra", name, "not repeat a field that is set elsewhere")
        # The part of a request that is the same in every trial.
        self._fields: dict[str, Any] = {**given, **(self.extra or {})}

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record."""
        # Left out where it is the usual one, as it was before there were others.
        path = "" if self._api.path == model_apis.ModelApi.path else self._api.path
        prompt = self.system if self._prompt is None else [self.system, *self._prompt]
        fields = dict(self._fields)
        model, tools = fields.pop("model"), fields.pop("tools", None)
        return {
            "model": str(model),
            "endpoint": service_factors.name_endpoint(redact_text(self.base_url + path)),
            "prompt": "none" if prompt is None else fingerprint(redact_values(prompt)),
            "parameters": service_factors.describe_value(fields),
            "tools": service_factors.describe_value(tools) if tools else "none",
        }

    @property
    def tells_cost(self) -> bool:
        """Whether replies have a cost, so that a limit on money can be kept."""
        return self.prices is not None

    @property
    def where(self) -> str:
        """The endpoint as messages show it."""
        return f"POST {self.base_url}{self._api.path}"

    @property
    def templates(self) -> list[str]:
        """The texts that refer to secrets."""
        return [self._key]

    async def ask(self, trial: TrialContext, messages: Sequence[Any], **more: Any) -> Reply:
        """Return what the model answers to a conversation.

        Args:
            trial: The trial, which keeps what an answer took that cannot be read.
            messages: The conversation.
            more: Further fields of the request.
        """
        answer = await self.send(self._request(trial, messages, more))
        document = self._api.read(_document(answer))
        if not 200 <= answer.status < 300 or document.get("error"):
            raise self._failure(answer, document)
        usage = read_tokens(document.get("usage"))
        reply = Reply(
            value="", latency_s=answer.latency_s, usage=usage, cost_usd=self.find_cost(usage)
        )
        try:
            return self._read_message(reply, document)
        except (LookupError, TypeError, AttributeError, ValueError):
            # What cannot be read was paid for all the same.
            trial.keep(lambda: reply)
            message = f"{self.where} sent no message: {self.scrub(answer.head)!r}"
            raise MalformedReply(message) from None

    def open_conversation(self, given: Any) -> list[Any]:
        """Return the messages that a conversation about an input begins with."""
        system = {"role": "system", "content": self.system}
        before: list[Any] = [] if self.system is None else [system]
        if self._prompt is not None:
            return before + fill_prompt(self._prompt, given)
        conversation: Any = given.get("messages") if isinstance(given, Mapping) else given
        if _is_conversation(conversation):
            return before + list(conversation)
        return [*before, {"role": "user", "content": model_apis.input_text(given)}]

    def find_cost(self, usage: Usage | None) -> float | None:
        """Return what some tokens cost; None where they or their prices are not known."""
        return self.prices.cost(usage) if usage and self.prices else None

    def _request(
        self, trial: TrialContext, messages: Sequence[Any], more: Mapping[str, Any]
    ) -> http_endpoint.Request:
        body = self._api.make_body({**self._fields, **more}, messages)
        if self.send_seed:
            # The low bits: seeds are hashes, so that every bit of them is as random as the others.
            body["seed"] = trial.seed % 2**_SEED_BITS
        key = service_factors.resolve(self._key, self.environment)
        headers = {"Content-Type": "application/json", **self._api.make_headers(key)}
        url, content = f"{self.base_url}{self._api.path}", model_apis.to_json(body)
        return http_endpoint.Request("POST", url, headers, model_apis.encode(content))

    def _read_message(self, reply: Reply, document: Mapping[str, Any]) -> Reply:
        choices = document["choices"][: 1 if self._takes_turns else None]
        message = choices[0]["message"]
        # Of several choices the reply is the first one's, and every call counts.
        calls: list[Any] = []
        for one in choices:
            calls += one["message"].get("tool_calls") or ()
            # How calls were written before there could be several.
            if old := one["message"].get("function_call"):
                calls.append({"function": old})
        details = {
            "finish_reason": choices[0].get("finish_reason"),
            "model": document.get("model", self.model),
            "tool_calls": [_tool_call(call) for call in calls],
        }
        if self._takes_turns:
            # As it was said: endpoints want back what only they understand.
            details["message"] = message
        else:
            details["tool_calls"] += message.get("hosted_calls") or ()
        if message.get("refusal"):
            details["refusal"] = message["refusal"]
        return replace(reply, value=_content(message.get("content")), details=details)

    def _failure(self, answer: http_endpoint.Answer, document: Mapping[str, Any]) -> Exception:
        error = document.get("error")
        fields = error if isinstance(error, Mapping) else {"message": error or answer.head}
        # Some gateways answer 200 and put the status of what is behind them into the error.
        code = fields.get("code")
        status = code if answer.status < 300 and isinstance(code, int) else answer.status
        said = self.scrub(str(fields.get("message")))
        described = http_endpoint.describe_answer(replace(answer, status=status), said)
        message = f"{self.where} (model {self.model}) answered {described}"
        error_class = classify_status(status)
        # The endpoint answered, and what it says is about this input: too long, filtered,
        # malformed.
        if error_class is ErrorClass.NONE and status < 500:
            return RequestRefused(message)
        return HttpFailure(message, error_class, status=status, retry_after_s=answer.retry_after_s)


@dataclass(eq=False, repr=False)
class ChatService(ChatModel):
    """A chat model that receives each input as a conversation and answers with one message.

    A `prompt` is filled with the input: `{{ input }}`, or `{{ input.text }}` for a field of it.
    Without one, an input that is text is the user's message; a list of messages, or a mapping with
    `messages`, is the conversation itself; anything else is sent as JSON text. The value is the
    text of the answer. The details hold `finish_reason`, the `model` that answered, `tool_calls`
    as a list of `{"name", "args"}` and, where given, `refusal`. Without prices or token counts the
    cost is unknown, not zero. Calls of tools that the API ran itself are among the `tool_calls`.

    Connection failures and statuses such as 429 and 503 are infrastructure errors. A redirect, and
    a status such as 400, 401 or 404 before the first answer, mean that the service is set up
    wrongly. Any other refusal (too long, filtered) is a failure of the model's.

    >>> ChatService("https://api.example.com/v1", "small", api_key_env=None, temperature=0.7)
    ChatService('https://api.example.com/v1', 'small')

    Args:
        base_url: The URL without the last part, such as `/chat/completions`.
        model: The name of the model.
        api: The API that the endpoint offers: `chat-completions`, which most offer, OpenAI's
            `responses`, or Anthropic's own.
        api_key_env: The environment variable with the key; null or None for no key.
        system: The system message, before every conversation.
        prompt: The user's message with the input in it, or messages with `role` and `content`.
        temperature: The temperature, as the endpoint defines it.
        max_tokens: Maximum number of tokens in an answer. Anthropic's API wants one: it gets 4,096
            where nothing is said.
        tools: Tool definitions, as the endpoint defines them.
        extra: Additional fields of the request.
        send_seed: Whether to send the seed of each trial, for endpoints that accept one.
        prices: The price of tokens. Without prices, the cost is unknown, not zero.
        timeout_s: Time limit for the whole request, in addition to the limit of the trial.
        connect_timeout_s: Time limit for the connection.
        response_limit: Maximum size of a response in bytes.
        environment: Read instead of the process's own.
        clock: Seconds from any origin, for the latency.
    """

    spelling: ClassVar[str] = "chat"

    _: KW_ONLY
    prompt: PromptArgument | None = None
    tools: Tools | None = None

    def __post_init__(self) -> None:
        self._prepare(tools=None if self.tools is None else list(self.tools))
        self._prompt = None if self.prompt is None else read_prompt(self.prompt)

    async def call(self, trial: TrialContext) -> Reply:
        """Return the model's answer to one trial."""
        return await self.ask(trial, self.open_conversation(trial.input))

    def __repr__(self) -> str:
        return f"ChatService({self.base_url!r}, {self.model!r})"


def _document(answer: http_endpoint.Answer) -> Mapping[str, Any]:
    """Return the response's JSON object; a proxy's error page has none."""
    try:
        # A usage of NaN is unknown; the answer beside it counts all the same.
        document = model_apis.parse_json(answer.body, allows_nan=True)
    except ValueError:
        document = None
    return document if isinstance(document, dict) else {}


def _is_conversation(given: Any) -> bool:
    return (
        isinstance(given, (list, tuple))
        and bool(given)
        and all(isinstance(message, Mapping) and "role" in message for message in given)
    )


def _content(content: Any) -> str:
    """Return the text of a message; none, as beside tool calls, is the empty text."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    if content is None or isinstance(content, str):
        return content or ""
    raise TypeError(content)


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        # What the model wrote instead of JSON is what a postcondition should see.
        with suppress(ValueError):
            arguments = model_apis.parse_json(arguments) if arguments else {}
    return {"name": function["name"], "args": arguments}
