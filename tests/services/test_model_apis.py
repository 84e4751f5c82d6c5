"""Chat models and agents behind Anthropic's API and OpenAI's Responses API, over real HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trace import Trace
from trialwise.services import AgentService, ChatService, McpServer
from trialwise.suite import load_suite

pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
TOOLS = Path(__file__).parent / "mcp_tools.py"
ENVIRONMENT = {"ANTHROPIC_API_KEY": "sk-ant-0123456789", "OPENAI_API_KEY": "sk-0123456789"}


class Endpoint:
    """An endpoint that answers one after the other, and remembers what it was asked."""

    def __init__(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers, self.status = list(answers), status
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []

    def __call__(self, request: Any) -> None:
        self.bodies.append(json.loads(request.received))
        self.paths.append(request.path)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        request.respond(self.status, json.dumps(self.answers[len(self.bodies) - 1]))


def anthropic(*blocks: dict[str, Any], ended: str = "end_turn") -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(blocks),
        "stop_reason": ended,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
    }


def response(*items: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": None if status == "completed" else {"reason": "max_output_tokens"},
        "model": "gpt-test",
        "output": list(items),
        "usage": {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107},
    }


def text_item(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m", "role": "assistant", "content": content}


ANSWERS = {
    "anthropic": anthropic({"type": "text", "text": "It is "}, {"type": "text", "text": "555."}),
    "responses": response({"type": "reasoning", "summary": []}, text_item("It is 555.")),
}


async def ask(serve: Serve, endpoint: Endpoint, given: Any = "15 * 37?", **options: Any) -> Reply:
    service = ChatService(serve(endpoint) + "/v1", "m", environment=ENVIRONMENT, **options)
    try:
        with anyio.fail_after(20):
            return await service.call(TrialContext(index=3, input=given, seed=11))
    finally:
        await service.aclose()


@pytest.mark.parametrize("api", ANSWERS)
async def test_an_answer_is_read_with_its_tokens(serve: Serve, api: Any) -> None:
    reply = await ask(serve, Endpoint(ANSWERS[api]), api=api)
    assert reply.value == "It is 555."
    assert reply.usage == Usage(input_tokens=100, output_tokens=7)
    assert reply.details["tool_calls"] == []


async def test_anthropic_is_asked_as_its_api_wants(serve: Serve) -> None:
    endpoint = Endpoint(ANSWERS["anthropic"], ANSWERS["anthropic"])
    await ask(serve, endpoint, api="anthropic", system="Be brief.", temperature=0.5)
    assert endpoint.paths == ["/v1/messages"]
    assert endpoint.headers[0]["x-api-key"] == ENVIRONMENT["ANTHROPIC_API_KEY"]
    assert endpoint.headers[0]["anthropic-version"] == "2023-06-01"
    assert "authorization" not in endpoint.headers[0]
    assert endpoint.bodies == [
        {
            "model": "m",
            "max_tokens": 4096,
            "temperature": 0.5,
            "system": "Be brief.",
            "messages": [{"role": "user", "content": "15 * 37?"}],
        }
    ]


async def test_the_responses_api_is_asked_as_it_wants(serve: Serve) -> None:
    endpoint = Endpoint(ANSWERS["responses"])
    given = [
        {"role": "user", "content": "15 * 37?"},
        {"role": "assistant", "content": "One moment."},
        {"role": "user", "content": "Well?"},
    ]
    await ask(serve, endpoint, given, api="responses", system="Be brief.", max_tokens=50)
    assert endpoint.paths == ["/v1/responses"]
    assert endpoint.headers[0]["authorization"] == f"Bearer {ENVIRONMENT['OPENAI_API_KEY']}"
    assert endpoint.bodies == [
        {
            "model": "m",
            "max_output_tokens": 50,
            "input": [{"role": "system", "content": "Be brief."}, *given],
        }
    ]


async def test_calls_are_listed_also_those_that_the_api_made(serve: Serve) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "find", "input": {"q": 1}}
    hosted = {"type": "mcp_tool_use", "id": "t2", "name": "delete", "server_name": "files"}
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"q": 1}'}
    mcp = {"type": "mcp_call", "name": "delete", "server_label": "files", "arguments": "{}"}
    new = {"type": "hologram_call", "id": "h"}
    for api, answer in (
        ("anthropic", anthropic(use, {**hosted, "input": "{}"}, ended="tool_use")),
        ("responses", response(call, mcp)),
    ):
        reply = await ask(serve, Endpoint(answer), api=api)
        assert reply.details["tool_calls"] == [
            {"name": "find", "args": {"q": 1}},
            {"name": "delete", "args": "{}", "server": "files"},
        ]
    reply = await ask(serve, Endpoint(response(new)), api="responses")
    assert [one["name"] for one in reply.details["tool_calls"]] == ["hologram"]


@pytest.mark.parametrize(
    ("api", "body", "status", "error_class"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, 529, "infra"),
        ("anthropic", {"type": "error", "error": {"message": "no such model"}}, 404, "config"),
        ("responses", {"error": {"message": "slow down", "code": "rate_limit"}}, 429, "infra"),
    ],
)
async def test_errors_have_their_class(
    serve: Serve, api: Any, body: dict[str, Any], status: int, error_class: str
) -> None:
    with pytest.raises(ServiceError) as caught:
        await ask(serve, Endpoint(body, status=status), api=api)
    assert caught.value.error_class.startswith(error_class)
    assert "sk-" not in str(caught.value)


async def test_a_document_without_an_answer_is_a_failure(serve: Serve) -> None:
    for api in ANSWERS:
        with pytest.raises(Exception, match="sent no message"):
            await ask(serve, Endpoint({"unexpected": True}), api=api)


def test_what_an_api_does_not_take_is_refused() -> None:
    for api in ("anthropic", "responses"):
        with pytest.raises(InvalidArgument, match="takes no seed"):
            ChatService("https://a.example", "m", api=api, send_seed=True, api_key_env=None)
    with pytest.raises(InvalidArgument, match="be one of chat-completions, responses, anthropic"):
        ChatService("https://a.example", "m", api="soap", api_key_env=None)  # type: ignore[arg-type]


SESSIONS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        anthropic(
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "Adding."},
            {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1, "b": 2}},
            {"type": "tool_use", "id": "t2", "name": "fail", "input": {"reason": "no number"}},
            ended="tool_use",
        ),
        anthropic({"type": "text", "text": "It is 3."}),
    ],
    "responses": [
        response(
            {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
            text_item("Adding."),
            {
                "type": "function_call",
                "call_id": "t1",
                "name": "add",
                "arguments": '{"a": 1, "b": 2}',
            },
            {
                "type": "function_call",
                "call_id": "t2",
                "name": "fail",
                "arguments": '{"reason": "no number"}',
            },
            {"type": "web_search_call", "id": "w", "action": {"query": "sums"}},
        ),
        response(text_item("It is 3.")),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("api", SESSIONS)
async def test_an_agent_works_with_real_tools(serve: Serve, api: Any) -> None:
    """What the model said is sent back as it was, with the results of its calls."""
    pytest.importorskip("mcp")
    endpoint = Endpoint(*SESSIONS[api])
    service = AgentService(
        serve(endpoint) + "/v1",
        "m",
        api=api,
        servers={"tools": McpServer(command=[sys.executable, str(TOOLS)])},
        environment=ENVIRONMENT,
    )
    try:
        with anyio.fail_after(60):
            reply = await service.call(TrialContext(index=0, input="1 + 2?", seed=1))
    finally:
        await service.aclose()
    trace = Trace.of(reply)
    assert trace is not None
    assert (reply.value, trace.total_tokens) == ("It is 3.", 214)
    called = [(one.name, one.failed) for one in trace.tool_calls if one.server == "tools"]
    assert called == [("add", False), ("fail", True)]
    second = endpoint.bodies[1]
    names = {one["name"] for one in second["tools"]}
    assert {"add", "fail"} <= names
    if api == "anthropic":
        asked, said, returned = second["messages"]
        assert asked == {"role": "user", "content": "1 + 2?"}
        assert said == {"role": "assistant", "content": SESSIONS[api][0]["content"]}
        results = returned["content"]
        assert [one["tool_use_id"] for one in results] == ["t1", "t2"]
        assert [one.get("is_error") for one in results] == [None, True]
        assert "input_schema" in second["tools"][0]
    else:
        assert second["input"][1:-2] == SESSIONS[api][0]["output"]
        assert [one["call_id"] for one in second["input"][-2:]] == ["t1", "t2"]
        assert second["tools"][0]["type"] == "function"
        assert [one.name for one in trace.tool_calls if one.server is None] == ["web_search"]


def test_a_suite_names_the_api(tmp_path: Path) -> None:
    """The address and the key are those of the API."""
    (tmp_path / "trialwise.yaml").write_text(
        "service: {chat: {model: m, api: anthropic}}\ninputs: [a]\n"
        "criteria: [{name: c, contains: a, at_least: 50%}]\n",
        encoding="utf-8",
    )
    suite = load_suite(tmp_path / "trialwise.yaml", environment=ENVIRONMENT)
    service = suite.contracts[0].contract.service
    assert repr(service) == "ChatService('https://api.anthropic.com/v1', 'm')"
    assert service.factors["endpoint"] == "https://api.anthropic.com/v1/messages"
    secret = ENVIRONMENT["ANTHROPIC_API_KEY"]
    assert secret not in suite.redaction(f"key {secret}")
