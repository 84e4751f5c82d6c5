"""Chat endpoints by the OpenAI wire format, with a scripted server on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass
from trialwise.services import ChatService, HttpFailure, MalformedReply, Prices, RequestRefused

pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
SECRET = "sk-very-secret-0123456789"
KEYS = {"OPENAI_API_KEY": SECRET}


def completion(**changes: Any) -> dict[str, Any]:
    """A response as the API reference shows one."""
    return {
        "id": "chatcmpl-123",
        "object": "chat.completion",
        "model": "small-2026-01-01",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "555"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 30, "total_tokens": 1230},
    } | changes


def message(**fields: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", **fields}, "finish_reason": "tool_calls"}
    return completion(choices=[choice])


async def ask(
    serve: Serve, body: Any, given: Any = "15 * 37?", *, status: int = 200, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """One reply to one input from a server that sends `body`, and the request it saw."""
    seen: dict[str, Any] = {}

    def handler(request: Any) -> None:
        seen.update(path=request.path, key=request.headers.get("Authorization"))
        seen.update(json.loads(request.received))
        text = body if isinstance(body, str) else json.dumps(body)
        request.respond(status, text, Retry_After="3")

    options = {"environment": KEYS} | options
    service = ChatService(serve(handler) + "/v1/", "small", **options)
    try:
        with anyio.fail_after(20):
            reply = await service.call(TrialContext(index=0, input=given, seed=2**40 + 5))
    finally:
        await service.aclose()
    return reply, seen


async def test_a_question_is_sent_and_answered(serve: Serve) -> None:
    """What was asked for goes along and nothing else does."""
    tools = [{"type": "function", "function": {"name": "add"}}]

    reply, seen = await ask(
        serve,
        completion(),
        system="Be brief.",
        temperature=0.0,
        max_tokens=50,
        tools=tools,
        extra={"top_p": 0.5},
        send_seed=True,
    )

    assert {
        "path": "/v1/chat/completions",
        "key": f"Bearer {SECRET}",
        "model": "small",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "15 * 37?"},
        ],
        "temperature": 0.0,
        "max_tokens": 50,
        "tools": tools,
        "top_p": 0.5,
        "seed": 5,
    } == seen
    assert "555" == reply.value
    assert {"finish_reason": "stop", "model": "small-2026-01-01", "tool_calls": []} == reply.details
    assert reply.latency_s > 0


async def test_what_is_not_set_is_not_sent(serve: Serve) -> None:
    """The endpoint's own defaults hold; without a key none is sent."""
    _, seen = await ask(serve, completion(), api_key_env=None, environment={})

    assert {"path", "key", "model", "messages"} == set(seen)
    assert seen["key"] is None


TALK = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        (TALK, TALK),
        ({"messages": TALK, "id": 4}, TALK),
        ({"city": "Zürich"}, [{"role": "user", "content": '{"city":"Zürich"}'}]),
        ([1, 2], [{"role": "user", "content": "[1,2]"}]),
        ([], [{"role": "user", "content": "[]"}]),
    ],
)
async def test_an_input_may_be_a_conversation(serve: Serve, given: Any, messages: Any) -> None:
    """Messages are sent as they are, anything else as one message."""
    _, seen = await ask(serve, completion(), given)

    assert messages == seen["messages"]


@pytest.mark.parametrize(
    ("prompt", "messages"),
    [
        (
            "Translate {{ input.text }} to {{input.to.language}}",
            [{"role": "user", "content": "Translate {{ input }} to German"}],
        ),
        ("{{ input.to }}", [{"role": "user", "content": '{"language":"German"}'}]),
        (
            [
                {"role": "system", "content": "You speak {{ input.to.language }}."},
                {"role": "user", "content": "{{ input.text }}"},
            ],
            [
                {"role": "system", "content": "You speak German."},
                {"role": "user", "content": "{{ input }}"},
            ],
        ),
    ],
)
async def test_a_prompt_is_filled_with_the_input(serve: Serve, prompt: Any, messages: Any) -> None:
    """Braces in the input are its own."""
    given = {"text": "{{ input }}", "to": {"language": "German"}}

    _, seen = await ask(serve, completion(), given, system="Be brief.", prompt=prompt)

    assert seen["messages"] == [{"role": "system", "content": "Be brief."}, *messages]


async def test_an_input_without_the_field_stops_the_run_and_names_it(serve: Serve) -> None:
    with pytest.raises(ServiceError, match=r"names \{\{ input.txt \}\}.* it has text$") as refused:
        await ask(serve, completion(), {"text": "a"}, prompt="{{ input.txt }}")
    assert refused.value.stops_run
    with pytest.raises(ServiceError, match="it has no fields"):
        await ask(serve, completion(), "a", prompt="{{ input.text }}")


@pytest.mark.parametrize(
    "prompt", ["Say {{ output }}", "{{ input.a b }}", [], [{"role": "user"}], [{"content": "a"}]]
)
def test_a_prompt_that_cannot_be_filled_is_refused(prompt: Any) -> None:
    with pytest.raises(InvalidArgument, match="prompt must"):
        ChatService("https://api.example/v1", "small", api_key_env=None, prompt=prompt)


def test_the_prompt_is_a_factor() -> None:
    made = [
        ChatService("https://api.example/v1", "small", api_key_env=None, prompt=prompt).factors
        for prompt in ("{{ input }}!", "{{ input }}?")
    ]

    assert made[0]["prompt"] != made[1]["prompt"]


async def test_tokens_and_money_are_accounted(serve: Serve) -> None:
    """1,200 tokens at 2.50 and 30 at 10 dollars a million."""
    reply, _ = await ask(serve, completion(), prices=Prices(input_usd=2.5, output_usd=10))

    assert Usage(input_tokens=1200, output_tokens=30) == reply.usage
    assert pytest.approx(0.003 + 0.0003) == reply.cost_usd


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 3}, {"prompt_tokens": -1}, "x"])
async def test_unknown_usage_is_unknown_and_not_zero(serve: Serve, usage: Any) -> None:
    """No count, no cost."""
    prices = Prices(input_usd=1, output_usd=1)
    reply, _ = await ask(serve, completion(usage=usage), prices=prices)

    assert (None, None) == (reply.usage, reply.cost_usd)


async def test_unknown_prices_leave_the_cost_unknown(serve: Serve) -> None:
    """The tokens are known all the same."""
    reply, _ = await ask(serve, completion())

    assert (1230, None) == (reply.usage.total_tokens, reply.cost_usd)


async def test_tool_calls_are_kept_with_their_arguments(serve: Serve) -> None:
    """In order, parsed; what the model wrote instead of JSON is kept as it is."""
    calls = [
        {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": [1]}'}},
        {"id": "2", "type": "function", "function": {"name": "now", "arguments": ""}},
        {"id": "3", "type": "function", "function": {"name": "bad", "arguments": "{a: 1"}},
    ]
    reply, _ = await ask(serve, message(content=None, tool_calls=calls))

    assert "" == reply.value
    assert "tool_calls" == reply.details["finish_reason"]
    assert [
        {"name": "add", "args": {"a": [1]}},
        {"name": "now", "args": {}},
        {"name": "bad", "args": "{a: 1"},
    ] == reply.details["tool_calls"]


async def test_an_error_of_null_is_none(serve: Serve) -> None:
    """As some gateways send with every answer."""
    reply, _ = await ask(serve, completion(error=None))

    assert "555" == reply.value


async def test_parts_of_text_are_one_text_and_a_refusal_is_kept(serve: Serve) -> None:
    """As some endpoints send them."""
    parts = [{"type": "text", "text": "5"}, {"type": "text", "text": "55"}]
    joined, _ = await ask(serve, message(content=parts))
    refused, _ = await ask(serve, message(content=None, refusal="I cannot."))

    assert "555" == joined.value
    assert ("", "I cannot.") == (refused.value, refused.details["refusal"])


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[]",
        {},
        completion(choices=[]),
        completion(choices=None),
        completion(choices=[{}]),
        message(content=5),
        message(content=[5]),
        message(content=None, tool_calls=[{}]),
    ],
)
async def test_a_response_without_a_message_fails(serve: Serve, body: Any) -> None:
    """A failure of the service's own."""
    with pytest.raises(MalformedReply, match="sent no message"):
        await ask(serve, body)


def wire_error(code: object = None) -> dict[str, Any]:
    return {"error": {"message": f"bad key {SECRET}", "type": "error", "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "kind", "error_class"),
    [
        (429, wire_error("rate_limit"), HttpFailure, ErrorClass.INFRASTRUCTURE),
        (503, f"<html>{SECRET}</html>", HttpFailure, ErrorClass.INFRASTRUCTURE),
        (500, f"<html>{SECRET}</html>", HttpFailure, ErrorClass.NONE),
        (200, wire_error(502), HttpFailure, ErrorClass.INFRASTRUCTURE),
        (307, wire_error(), HttpFailure, ErrorClass.CONFIGURATION),
        (401, wire_error(), HttpFailure, ErrorClass.CONFIGURATION),
        (404, {"error": f"no model {SECRET}"}, HttpFailure, ErrorClass.CONFIGURATION),
        (400, wire_error("no such model"), HttpFailure, ErrorClass.CONFIGURATION),
        (413, wire_error("context_length_exceeded"), RequestRefused, None),
        (200, wire_error("content_filter"), RequestRefused, None),
    ],
)
async def test_errors_are_classed_by_whose_fault_they_are(
    serve: Serve, status: int, body: Any, kind: type[Exception], error_class: ErrorClass | None
) -> None:
    """The endpoint's, the set-up's, or the model's; in none of them is the key shown."""
    with pytest.raises(kind) as caught:
        await ask(serve, body, status=status)

    assert error_class is getattr(caught.value, "error_class", None)
    assert SECRET not in str(caught.value)
    assert "${OPENAI_API_KEY}" in str(caught.value)
    if error_class is ErrorClass.INFRASTRUCTURE:
        assert 3.0 == caught.value.retry_after_s  # type: ignore[attr-defined]


async def test_an_answer_that_cannot_be_read_was_paid_for(serve: Serve) -> None:
    """Its tokens and its price are told, and nothing of what it may have meant."""
    body = completion(choices=[], usage={"prompt_tokens": 10, "completion_tokens": 2})
    url = serve(lambda request: request.respond(200, json.dumps(body)))
    service = ChatService(
        url, "small", api_key_env=None, prices=Prices(input_usd=1.0, output_usd=5.0)
    )
    trial = TrialContext(index=0, input="x", seed=1)

    with pytest.raises(MalformedReply):
        await service.call(trial)
    await service.aclose()

    assert trial.partial is not None
    assert (Usage(input_tokens=10, output_tokens=2), "") == (
        trial.partial.usage,
        trial.partial.value,
    )
    # Ten tokens at 1 and two at 5 dollars a million.
    assert pytest.approx(20e-6) == trial.partial.cost_usd


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}])
async def test_a_missing_key_is_named_with_the_way_to_give_it(environment: dict[str, str]) -> None:
    """An empty one is missing: that is how a CI hands over a secret it does not have."""
    with pytest.raises(InvalidArgument) as caught:
        ChatService("http://h/v1", "m", environment=environment)

    assert "api_key_env" == caught.value.argument
    assert "OPENAI_API_KEY is not: set it" in caught.value.allowed
    assert "`api_key_env`" in caught.value.allowed


@pytest.mark.parametrize(
    "options",
    [
        {"environment": {}},
        {"base_url": "localhost:8000"},
        {"extra": {"model": "other"}},
        {"extra": {"stream": True}},
        {"extra": {"temperature": 1}, "temperature": 0.5},
    ],
)
def test_a_service_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """A missing key, a wrong address, a field said twice."""
    options = {"base_url": "http://h/v1", "environment": KEYS} | options

    with pytest.raises(InvalidArgument):
        ChatService(options.pop("base_url"), "small", **options)


@pytest.mark.parametrize("price", [-1, float("nan"), "free"])
def test_a_price_is_a_number_of_at_least_zero(price: Any) -> None:
    """Free is 0."""
    with pytest.raises(InvalidArgument, match="output_usd"):
        Prices(input_usd=0, output_usd=price)


def test_the_key_is_not_shown() -> None:
    """Only where and what."""
    assert "ChatService('http://h/v1', 'm')" == repr(
        ChatService("http://h/v1", "m", environment=KEYS)
    )


async def test_the_calls_of_every_choice_count(serve: Serve) -> None:
    """With `n: 2` the model may call a tool in its second choice only; the first is the reply."""
    called = {"role": "assistant", "tool_calls": [{"function": {"name": "delete"}}]}
    old = {"role": "assistant", "function_call": {"name": "send", "arguments": "{}"}}
    choices = [*completion()["choices"], {"message": called}, {"message": old}]

    reply, seen = await ask(serve, completion(choices=choices), extra={"n": 2})

    assert 2 == seen["n"]
    assert ("555", "stop") == (reply.value, reply.details["finish_reason"])
    assert ["delete", "send"] == [call["name"] for call in reply.details["tool_calls"]]
