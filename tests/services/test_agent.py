"""An agent: a scripted model behind the real wire protocol, and tools of a real MCP server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage
from trialwise.model.trace import Trace
from trialwise.model.trial import ErrorClass
from trialwise.services import (
    AgentService,
    HttpFailure,
    MalformedReply,
    McpServer,
    Prices,
    RecordingService,
    ReplayService,
    RequestRefused,
)

pytest.importorskip("mcp")
pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
TOOLS = Path(__file__).parent / "mcp_tools.py"
NO_NUMBER = "Error executing tool fail: no such number"
STDIO = McpServer(command=[sys.executable, str(TOOLS)])


@pytest.fixture(scope="module")
def tools_url() -> Iterator[str]:
    """One server over HTTP for all tests; every trial has a session of its own."""
    with subprocess.Popen(
        [sys.executable, str(TOOLS), "http"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        # It names its port before it listens there.
        for _ in range(300):
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


def calls(*wanted: tuple[str, Any], said: str | None = None) -> dict[str, Any]:
    """A message that calls tools; arguments that are text are sent as they are."""
    return {
        "role": "assistant",
        "content": said,
        "tool_calls": [
            {
                "id": f"call_{name}_{place}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": args if isinstance(args, str) else json.dumps(args),
                },
            }
            for place, (name, args) in enumerate(wanted)
        ],
    }


def says(text: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


class Script:
    """A model that says one thing after the other, and remembers what it was asked."""

    def __init__(self, *turns: Any) -> None:
        self.turns = turns
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: Any) -> None:
        asked = json.loads(request.received)
        self.requests.append(asked)
        turn = self.turns[sum(one["role"] == "assistant" for one in asked["messages"])]
        if isinstance(turn, int):
            request.respond(turn, json.dumps({"error": {"message": "no"}}))
            return
        reply = {
            "model": "small-1",
            "choices": [{"message": turn, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }
        request.respond(200, json.dumps(reply))


async def ask(
    serve: Serve,
    script: Callable[[Any], None],
    server: McpServer | str,
    given: Any = "Please.",
    **options: Any,
) -> Reply:
    """One trial with one server, called `tools`."""
    options = {"api_key_env": None, "tool_timeout_s": 20.0} | options
    one = McpServer(url=server) if isinstance(server, str) else server
    service = AgentService(serve(script) + "/v1", "small", servers={"tools": one}, **options)
    try:
        with anyio.fail_after(60):
            return await service.call(TrialContext(index=3, input=given, seed=11))
    finally:
        await service.aclose()


def trace_of(reply: Reply) -> Trace:
    trace = Trace.of(reply)
    assert trace is not None
    return trace


# --- the loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_tools_are_called_until_the_model_answers(
    serve: Serve, tools_url: str, transport: str
) -> None:
    """What they return is sent back, and the whole session is in the reply."""
    script = Script(
        calls(("add", {"a": 1, "b": 2}), ("fail", {"reason": "no such number"}), said="Adding."),
        calls(("add", {"a": 3, "b": 4})),
        says("It is 7."),
    )
    server = STDIO if transport == "stdio" else tools_url

    reply = await ask(
        serve, script, server, system="Be brief.", prices=Prices(input_usd=1.0, output_usd=10.0)
    )

    assert "It is 7." == reply.value
    first, second, third = (request["messages"] for request in script.requests)
    assert [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Please."},
    ] == first
    assert [*first, script.turns[0]] == second[:3]
    assert [
        {"role": "tool", "tool_call_id": "call_add_0", "content": "3"},
        {"role": "tool", "tool_call_id": "call_fail_1", "content": NO_NUMBER},
    ] == second[3:]
    assert "7" == third[-1]["content"]
    offered = {one["function"]["name"]: one["function"] for one in script.requests[0]["tools"]}
    assert "Add two numbers." == offered["add"]["description"]
    assert {"a", "b"} == set(offered["add"]["parameters"]["properties"])

    trace = trace_of(reply)
    assert [1, 1, 2] == [call.turn for call in trace.tool_calls]
    assert [
        ("add", "tools", {"a": 1, "b": 2}, "3", None),
        ("fail", "tools", {"reason": "no such number"}, None, NO_NUMBER),
        ("add", "tools", {"a": 3, "b": 4}, "7", None),
    ] == [(one.name, one.server, one.args, one.result, one.error) for one in trace.tool_calls]
    assert ["system", "user", "assistant", "assistant", "assistant"] == [
        turn.role for turn in trace.turns
    ]
    assert ("It is 7.", "answer") == (trace.answer, trace.ended)
    times = [(one.started_s or 0.0, one.duration_s or 0.0) for one in trace.tool_calls]
    assert all(begun + took <= reply.latency_s for begun, took in times)
    assert times == sorted(times)
    # Three turns of 100 tokens at 1 and 10 at 10 dollars a million.
    assert Usage(input_tokens=300, output_tokens=30) == reply.usage == trace.usage
    assert pytest.approx(0.0003 + 0.0003) == reply.cost_usd == trace.cost_usd
    assert reply.setup is not None
    assert reply.setup.seconds > 0
    assert ("stop", "small-1") == (reply.details["finish_reason"], reply.details["model"])
    assert reply.details["tool_calls"] == reply.details["trace"]["tool_calls"]


async def test_what_the_model_does_wrong_is_told_to_it(serve: Serve, tools_url: str) -> None:
    """Tools that do not exist, arguments that are not an object, too few, or not to be written."""
    wrong = calls(
        ("subtract", {"a": 1}),
        ("add", '{"a": 1,'),
        ("add", "[1, 2]"),
        ("add", {"a": 1}),
        ("add", '{"a": "\\ud800", "b": 1}'),
        ("picture", ""),
    )
    script = Script(wrong, says("Sorry."))

    reply = await ask(serve, script, tools_url)

    told = [one["content"] for one in script.requests[1]["messages"][2:] if one["role"] == "tool"]
    assert told[0].startswith("Error: there is no tool 'subtract'; there are: add, count,")
    assert ["Error: the arguments are not a JSON object"] * 2 == told[1:3]
    assert told[3].startswith("Error")
    assert "Field required" in told[3]
    assert "Error: the arguments cannot be written as JSON in UTF-8" == told[4]
    assert "[image, image/png]" == told[5]
    found = trace_of(reply).tool_calls
    assert [True] * 5 + [False] == [one.failed for one in found]
    assert (None, '{"a": 1,', [1, 2], {}) == (
        found[0].server,
        found[1].args,
        found[2].args,
        found[5].args,
    )


async def test_a_tool_that_takes_too_long_is_a_failure_of_the_tool(
    serve: Serve, tools_url: str
) -> None:
    """The session goes on, and so does the server."""
    script = Script(
        calls(("wait", {"seconds": 1.5})), calls(("add", {"a": 1, "b": 1})), says("Done.")
    )

    reply = await ask(serve, script, tools_url, tool_timeout_s=0.2)

    slow, quick = trace_of(reply).tool_calls
    assert ("no result within 0.2 s", "2") == (slow.error, quick.result)
    assert "Done." == reply.value


async def test_the_loop_ends_at_its_limits(serve: Serve, tools_url: str) -> None:
    """Calls beyond them are not made, are in the trace as such, and there is no answer."""
    again = calls(("count", {}), ("count", {}), said="Once more.")
    script = Script(*[again] * 10)

    by_turns = trace_of(await ask(serve, script, tools_url, max_turns=2))
    assert ("max-turns", None, 2) == (by_turns.ended, by_turns.answer, by_turns.assistant_turns)
    assert [None, None] + ["not made: out of turns"] * 2 == [
        one.error for one in by_turns.tool_calls
    ]
    reply = await ask(serve, script, tools_url, max_tool_calls=3)
    by_calls = trace_of(reply)
    assert ("max-tool-calls", None, "") == (by_calls.ended, by_calls.answer, reply.value)
    assert "not made: out of tool calls" == by_calls.tool_calls[3].error
    assert [False, False, False, True] == [one.failed for one in by_calls.tool_calls]
    assert Usage(input_tokens=200, output_tokens=20) == reply.usage


async def test_long_results_are_cut_for_the_model_and_for_the_trace(
    serve: Serve, tools_url: str
) -> None:
    """It is told how much is missing."""
    script = Script(calls(("long", {"characters": 30_000})), says("Long."))

    reply = await ask(serve, script, tools_url, result_limit=1_000)

    told = script.requests[1]["messages"][-1]["content"]
    assert "x" * 1_000 + "\n[29,000 further characters were left out]" == told
    assert len(trace_of(reply).tool_calls[0].result or "") < 5_000


async def test_an_input_may_be_a_conversation(serve: Serve, tools_url: str) -> None:
    """The session goes on from there, with seed and further fields as a chat sends them."""
    talk = [
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
    ]
    script = Script(says("c"))

    reply = await ask(
        serve, script, tools_url, talk, send_seed=True, temperature=0.5, extra={"top_p": 0.9}
    )

    asked = script.requests[0]
    assert (talk, 11, 0.5, 0.9) == (
        asked["messages"],
        asked["seed"],
        asked["temperature"],
        asked["top_p"],
    )
    assert ["user", "user", "assistant"] == [turn.role for turn in trace_of(reply).turns]


async def test_what_the_endpoint_wants_back_it_gets_back(serve: Serve, tools_url: str) -> None:
    """Fields that only it understands are kept, those it left empty are not; ids are made up."""
    turn = calls(("add", {"a": 1, "b": 1})) | {"thought": {"signature": "x"}, "annotations": []}
    del turn["tool_calls"][0]["id"]
    script = Script(turn, says("2"))

    await ask(serve, script, tools_url)

    echoed, result = script.requests[1]["messages"][1:]
    assert ({"signature": "x"}, None) == (echoed["thought"], echoed["content"])
    assert "annotations" not in echoed
    assert echoed["tool_calls"][0]["id"] == result["tool_call_id"]


async def test_a_refusal_is_no_answer(serve: Serve, tools_url: str) -> None:
    """It is the agent's own, and a reply like any other."""
    reply = await ask(serve, Script(says(None, refusal="I cannot do that.")), tools_url)

    assert ("", "I cannot do that.") == (reply.value, reply.details["refusal"])
    assert ("refusal", None) == (trace_of(reply).ended, trace_of(reply).answer)
    silent = trace_of(await ask(serve, Script(says(" ")), tools_url))
    assert ("no-answer", None) == (silent.ended, silent.answer)


async def test_tokens_are_unknown_if_one_turn_does_not_tell_them(
    serve: Serve, tools_url: str
) -> None:
    """A part of the sum is no sum."""

    def handler(request: Any) -> None:
        asked = json.loads(request.received)["messages"]
        first = len(asked) == 1
        turn = calls(("add", {"a": 1, "b": 1})) if first else says("2")
        usage = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}} if first else {}
        request.respond(200, json.dumps({"choices": [{"message": turn}], **usage}))

    reply = await ask(serve, handler, tools_url, prices=Prices(input_usd=1, output_usd=1))
    assert (None, None) == (reply.usage, reply.cost_usd)


@pytest.mark.parametrize(
    ("turn", "kind", "error_class"),
    [
        (400, HttpFailure, ErrorClass.CONFIGURATION),
        (413, RequestRefused, None),
        (503, HttpFailure, ErrorClass.INFRASTRUCTURE),
        (401, HttpFailure, ErrorClass.CONFIGURATION),
        ({"content": "no role", "tool_calls": [{}]}, MalformedReply, None),
        (calls(("", {})), MalformedReply, None),
    ],
)
async def test_the_endpoints_failures_are_those_of_a_chat(
    serve: Serve, tools_url: str, turn: Any, kind: type, error_class: ErrorClass | None
) -> None:
    """In the first turn and in a later one; no task group wraps them."""
    for script in (Script(turn), Script(calls(("count", {})), turn)):
        with pytest.raises(kind) as caught:
            await ask(serve, script, tools_url)
        assert error_class is getattr(caught.value, "error_class", None)


# --- the servers --------------------------------------------------------------------------------


@pytest.mark.slow
async def test_every_trial_has_a_process_of_its_own(serve: Serve) -> None:
    """With its seed and index, without our secrets, and nothing is left of it afterwards."""
    script = Script(
        calls(("count", {}), ("count", {}), ("variables", {}), ("leave_child", {})), says("ok")
    )
    os.environ["AGENT_TEST_SECRET"] = "sk-very-secret"
    server = McpServer(command=STDIO.command, env={"SHOP": "north"})
    try:
        replies = [await ask(serve, script, server) for _ in range(2)]
    finally:
        del os.environ["AGENT_TEST_SECRET"]

    for reply in replies:
        first, second, variables, child = trace_of(reply).tool_calls
        assert ("1", "2") == (first.result, second.result)
        seen = variables.result or ""
        assert '"TRIALWISE_SEED": "11"' in seen
        assert '"TRIALWISE_INDEX": "3"' in seen
        assert '"SHOP": "north"' in seen
        assert "sk-very-secret" not in seen
        assert not _is_alive(int(child.result or 0))


@pytest.mark.slow
async def test_a_server_that_dies_is_infrastructure(serve: Serve) -> None:
    """The message says how it ended and what it said last."""
    script = Script(calls(("die", {"code": 3})), says("never"))

    with pytest.raises(ServiceError) as caught:
        await ask(serve, script, STDIO)

    assert ErrorClass.INFRASTRUCTURE is caught.value.error_class
    assert (
        "the tool server 'tools' was lost while 'die' ran: it ended with exit code 3; it said: "
        "something terrible happened"
    ) == str(caught.value)


@pytest.mark.slow
async def test_a_cancelled_trial_leaves_nothing_running(serve: Serve, tmp_path: Path) -> None:
    """Neither the server nor what it started, whatever it was doing."""
    note = tmp_path / "pids"
    command = f"sleep 600 & echo $$ $! > {note}; exec {sys.executable} {TOOLS}"
    server = McpServer(command=["sh", "-c", command])
    script = Script(calls(("wait", {"seconds": 60})), says("never"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(ask, serve, script, server, tool_timeout_s=60))
        with anyio.fail_after(30):
            while not script.requests:
                await anyio.sleep(0.02)
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()

    assert [False, False] == [_is_alive(int(pid)) for pid in note.read_text().split()]


def _is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody collected does not."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.02)
    return True


#: A server of the older protocol in a few lines, so that it can misbehave.
OLD = r"""
import json, sys
def answer(asked, **result):
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}), flush=True)
print("Starting up!", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    match asked["method"]:
        case "initialize":
            answer(asked, GREETING)
        case "tools/list":
            page = (asked.get("params") or {}).get("cursor")
            names = TOOLS.get(page, [])
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            more = {"nextCursor": NEXT[page]} if page in NEXT else {}
            answer(asked, result={"tools": tools, **more})
        case "tools/call":
            CALL
        case _ if "id" in asked:
            answer(asked, error={"code": -32601, "message": "Method not found"})
"""
WELCOME = (
    "result={'protocolVersion': '2025-06-18', 'capabilities': {'tools': {}}, "
    "'serverInfo': {'name': 'old', 'version': '1'}}"
)


def old_server(
    call: str = "answer(asked, result={'content': []})",
    tools: str = "{None: ['go']}",
    pages: str = "{}",
    greeting: str = WELCOME,
) -> McpServer:
    """A server that lists such tools and answers a call like that."""
    program = OLD.replace("CALL", call.replace("\n", "\n" + " " * 12)).replace("GREETING", greeting)
    heading = f"TOOLS = {tools}\nNEXT = {pages}\n"
    return McpServer(command=[sys.executable, "-c", heading + program])


async def test_servers_of_the_older_protocol_are_understood(serve: Serve) -> None:
    """With a handshake, several pages of tools, and a greeting that is not a message."""
    call = "answer(asked, result={'structuredContent': {'n': 1}, 'content': []})"
    server = old_server(call, "{None: ['go'], 'b': ['stop']}", "{None: 'b'}")
    script = Script(calls(("go", {}), ("stop", {})), says("ok"))

    reply = await ask(serve, script, server)

    assert ['{"n":1}'] * 2 == [one.result for one in trace_of(reply).tool_calls]


async def test_a_tool_that_is_listed_twice_is_one_tool(serve: Serve) -> None:
    """Under its own name; a call could not say which of the two is meant."""
    script = Script(calls(("go", {})), says("ok"))

    reply = await ask(serve, script, old_server(tools="{None: ['go', 'stop', 'go']}"))

    offered = [tool["function"]["name"] for tool in script.requests[0]["tools"]]
    assert ["go", "stop"] == offered
    assert trace_of(reply).tool_calls[0].failed is False


async def test_a_model_that_is_offered_nothing_is_told_so(serve: Serve) -> None:
    """A call of its own invention fails in words that make sense."""
    script = Script(calls(("go", {})), says("ok"))

    reply = await ask(serve, script, old_server(tools="{}"))

    error = "there is no tool 'go'; there is none at all"
    assert error == trace_of(reply).tool_calls[0].error


async def test_an_error_of_the_protocol_is_the_tools(serve: Serve) -> None:
    """Whatever its code: the server is there, so that the model may try something else."""
    call = "answer(asked, error={'code': -32000, 'message': 'not today'})"
    script = Script(calls(("go", {})), says("ok"))

    reply = await ask(serve, script, old_server(call))

    assert "not today" == trace_of(reply).tool_calls[0].error


async def test_a_message_without_end_is_the_end_of_the_server(serve: Serve) -> None:
    """It does not fill the memory."""
    call = "while True: sys.stdout.write('x' * 2**20)"
    script = Script(calls(("go", {})), says("never"))

    with pytest.raises(ServiceError, match="it sent a message of more than 16,777,216 bytes"):
        await ask(serve, script, old_server(call))


@pytest.mark.parametrize(
    ("server", "error_class", "message"),
    [
        (
            McpServer(command=["no-such-program-here"]),
            ErrorClass.INFRASTRUCTURE,
            "the tool server 'tools' cannot be used: .*No such file",
        ),
        (
            McpServer(command=[sys.executable, "-c", "import sys; sys.exit('bad config')"]),
            ErrorClass.INFRASTRUCTURE,
            "cannot be used: it ended with exit code 1; it said: bad config",
        ),
        (
            McpServer(command=["sleep", "600"]),
            ErrorClass.INFRASTRUCTURE,
            "the tool server 'tools' did not answer within 0.5 s",
        ),
        (
            McpServer(command=["sh", "-c", "echo Hello!; echo no licence >&2; sleep 600"]),
            ErrorClass.INFRASTRUCTURE,
            "within 0.5 s; it said: no licence; it printed what is not a message: 'Hello!'",
        ),
        (
            old_server(greeting="error={'code': -32603, 'message': 'no licence'}"),
            ErrorClass.INFRASTRUCTURE,
            "cannot be used: no licence",
        ),
        (
            old_server(tools="{None: [5]}"),
            ErrorClass.INFRASTRUCTURE,
            "its ListToolsResult is malformed at tools.0.name: Input should be a valid string",
        ),
        (
            McpServer(url="http://127.0.0.1:9/mcp"),
            ErrorClass.INFRASTRUCTURE,
            "cannot be used: .*onnect",
        ),
        (
            old_server(tools="{None: ['go', 'stop']}"),
            ErrorClass.PRE_VALIDATION,
            "has no tool 'book'; it has: go, stop",
        ),
    ],
    ids=[
        "missing",
        "fails",
        "silent",
        "talks-but-not-mcp",
        "refuses",
        "malformed",
        "refused",
        "other-tools",
    ],
)
async def test_a_server_that_cannot_be_used_is_named(
    serve: Serve, server: McpServer, error_class: ErrorClass, message: str
) -> None:
    """Before the model is asked anything."""
    if error_class is ErrorClass.PRE_VALIDATION:
        server = McpServer(command=server.command, tools=["go", "book"])
    script = Script(says("never"))

    with pytest.raises(ServiceError, match=message) as caught:
        await ask(serve, script, server, start_timeout_s=0.5)

    assert error_class is caught.value.error_class
    assert [] == script.requests


@pytest.mark.parametrize(
    ("status", "error_class"),
    [(404, ErrorClass.PRE_VALIDATION), (401, ErrorClass.PRE_VALIDATION), (500, "infrastructure")],
)
async def test_statuses_of_a_server_tell_what_is_wrong(
    serve: Serve, status: int, error_class: str
) -> None:
    """A wrong address and a missing key are wrong for every trial."""
    url = serve(lambda request: request.respond(status, "no"))

    with pytest.raises(ServiceError, match=rf"HTTP status {status}") as caught:
        await ask(serve, Script(says("never")), f"{url}/mcp")

    assert error_class == caught.value.error_class


async def test_a_url_that_answers_something_else_is_told_in_a_line(serve: Serve) -> None:
    """What the SDK's parser had to say is for nobody to read."""
    url = serve(lambda request: request.respond(200, "{}", Content_Type="application/json"))

    with pytest.raises(ServiceError, match=r"cannot be used: .*: no message of the protocol$"):
        await ask(serve, Script(says("never")), f"{url}/mcp")


async def test_a_plain_server_over_http_is_understood(serve: Serve) -> None:
    """One that answers in JSON, has no stream of news, and says its errors with a status."""
    results = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]},
    }

    def handler(request: Any) -> None:
        if request.command == "GET":
            request.respond(405)
            return
        asked = json.loads(request.received)
        if "id" not in asked:
            request.respond(202)
            return
        known = results.get(asked["method"])
        told = {"result": known} if known else {"error": {"code": -32602, "message": "bad seats"}}
        answer = {"jsonrpc": "2.0", "id": asked["id"], **told}
        status = 200 if known else 400
        request.respond(status, json.dumps(answer), Content_Type="application/json")

    script = Script(calls(("go", {})), says("ok"))
    reply = await ask(serve, script, serve(handler) + "/mcp")

    assert "bad seats" == trace_of(reply).tool_calls[0].error
    assert "ok" == reply.value


@pytest.mark.slow
async def test_a_server_that_vanishes_is_infrastructure(serve: Serve) -> None:
    """Over HTTP, in the middle of a session."""
    process = subprocess.Popen(
        [sys.executable, str(TOOLS), "http"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    script = Script(calls(("die", {"code": 1})), says("never"))
    try:
        with pytest.raises(ServiceError, match="the tool server 'tools'") as caught:
            await ask(serve, script, url)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

    assert ErrorClass.INFRASTRUCTURE is caught.value.error_class


async def test_headers_carry_secrets_by_name(serve: Serve) -> None:
    """They are sent, and they are in no message."""
    seen: list[str | None] = []

    def handler(request: Any) -> None:
        seen.append(request.headers.get("Authorization"))
        request.respond(403, "no")

    server = McpServer(url=serve(handler) + "/mcp", headers={"Authorization": "Bearer ${KEY}"})
    with pytest.raises(ServiceError) as caught:
        await ask(serve, Script(says("never")), server, environment={"KEY": "abc123"})

    assert {"Bearer abc123"} == set(seen)
    assert "abc123" not in str(caught.value)


async def test_tools_of_two_servers_are_told_apart(serve: Serve, tools_url: str) -> None:
    """By the server's name where they are called the same; a name no endpoint takes is spelled."""
    go = "answer(asked, result={'content': [{'type': 'text', 'text': 'gone'}]})"
    odd = old_server(go, "{None: ['add', 'files/read it', 'x' * 70]}")
    script = Script(
        calls(("shop__add", {"a": 1, "b": 2}), ("odd__add", {}), ("odd__files_read_it", {})),
        says("ok"),
    )
    service = AgentService(
        serve(script) + "/v1",
        "small",
        api_key_env=None,
        servers={"shop": McpServer(url=tools_url, tools=["add", "count"]), "odd": odd},
    )
    with anyio.fail_after(30):
        reply = await service.call(TrialContext(index=0, input="x", seed=1))
    await service.aclose()

    offered = [one["function"]["name"] for one in script.requests[0]["tools"]]
    assert ["shop__add", "count", "odd__add", "odd__files_read_it"] == offered[:4]
    assert 64 == len(offered[4])
    assert [("add", "shop", "3"), ("add", "odd", "gone"), ("files/read it", "odd", "gone")] == [
        (one.name, one.server, one.result) for one in trace_of(reply).tool_calls
    ]


@pytest.mark.slow
async def test_sessions_side_by_side_do_not_meet(serve: Serve, tools_url: str) -> None:
    """Ten trials at once, each with the answers to its own calls."""

    def handler(request: Any) -> None:
        asked = json.loads(request.received)["messages"]
        number = int(asked[0]["content"])
        turn = (
            calls(("add", {"a": number, "b": 1000}))
            if len(asked) == 1
            else says(asked[-1]["content"])
        )
        request.respond(200, json.dumps({"choices": [{"message": turn}]}))

    service = AgentService(
        serve(handler) + "/v1",
        "small",
        api_key_env=None,
        servers={"tools": McpServer(url=tools_url)},
    )
    found: dict[int, str] = {}

    async def one(number: int) -> None:
        reply = await service.call(TrialContext(index=number, input=str(number), seed=1))
        found[number] = reply.value

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(one, number)
    await service.aclose()

    assert {number: str(number + 1000) for number in range(10)} == found


# --- recordings, and what is refused --------------------------------------------------------------


async def test_a_recording_plays_back_without_a_model_and_without_a_server(
    serve: Serve, tools_url: str, tmp_path: Path
) -> None:
    """The same reply with the same trace, offline."""
    script = Script(calls(("add", {"a": 1, "b": 2})), says("3"))
    service = AgentService(
        serve(script) + "/v1",
        "small",
        api_key_env=None,
        servers={"tools": McpServer(url=tools_url)},
    )
    recording = RecordingService(service, tmp_path / "replies.jsonl")
    trial = TrialContext(index=0, input="1 + 2?", seed=1)
    with anyio.fail_after(30):
        said = await recording.call(trial)
        await recording.aclose()

    replayed = await ReplayService(tmp_path / "replies.jsonl").call(trial)
    assert said == replayed
    assert trace_of(said) == trace_of(replayed)


BUILD: Any = AgentService
MCP: Any = McpServer
ONE = {"a": McpServer(url="http://h/")}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (MCP, "command must be given, or url, and not both"),
        (lambda: MCP(command=["a"], url="http://h/"), "command must be given, or url"),
        (lambda: MCP(command="python tools.py"), "command must be a list of texts"),
        (lambda: MCP(command=["a"], tools="find"), "tools must be a list of texts"),
        (lambda: MCP(url="ftp://h/"), "url must be an http"),
        (lambda: MCP(url="http://h/", headers={"Cookie": "x"}), "take a secret from the env"),
        (lambda: BUILD("http://h/", "m", api_key_env=None, servers={}), "hold at least one server"),
        (
            lambda: BUILD(
                "http://h/",
                "m",
                api_key_env=None,
                environment={},
                servers={"a": MCP(url="http://h/", headers={"X": "${NO}"})},
            ),
            "refer to a variable that is set",
        ),
        (
            lambda: BUILD("http://h/", "m", api_key_env=None, servers=ONE, extra={"tools": []}),
            "leave the tools to the servers",
        ),
        (lambda: BUILD("http://h/", "m", api_key_env=None, servers=ONE, max_turns=0), "max_turns"),
        (
            lambda: BUILD("http://h/", "m", api_key_env=None, servers=ONE, max_tool_calls=5000),
            "max_tool_calls must be at most 1000",
        ),
        (
            lambda: BUILD("http://h/", "m", environment={}, servers=ONE),
            r"api_key_env must refer to a variable that is set, and OPENAI_API_KEY is not",
        ),
    ],
)
async def test_an_agent_built_wrong_is_refused(build: Any, message: str) -> None:
    """The refusal names the argument."""
    with pytest.raises(InvalidArgument, match=message):
        build()


async def test_without_the_sdk_an_agent_is_refused_when_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the way to get it; nothing else of the package needs it."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(InvalidArgument, match=r"pip install 'trialwise\[mcp\]'"):
        BUILD("http://h/", "m", api_key_env=None, servers=ONE)


async def test_making_an_agent_loads_neither_the_sdk_nor_an_event_loop() -> None:
    """They are loaded by the first trial."""
    code = """
import sys
from trialwise.services import AgentService, McpServer
AgentService("http://h/v1", "m", api_key_env=None, servers={"a": McpServer(command=["x"])})
heavy = {"asyncio", "httpx2", "mcp", "mcp_types", "pydantic"}
print(sorted(heavy & set(sys.modules)))
"""
    said = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )

    assert "[]\n" == said.stdout, said.stdout
