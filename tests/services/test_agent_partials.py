"""Sessions of an agent that come to nothing: what they did and took is not lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from trialwise.engine.attempt import Caller, Response
from trialwise.engine.excerpts import Excerpts
from trialwise.engine.ports import Service, SystemClock, TrialContext
from trialwise.model.reply import Reply, Usage
from trialwise.model.trace import Trace
from trialwise.model.trial import ErrorClass
from trialwise.services import AgentService, McpServer, Prices, RecordingService, ReplayService

pytest.importorskip("mcp")
pytestmark = pytest.mark.anyio

Serve = Callable[[Callable[[Any], None]], str]
TOOLS = McpServer(command=[sys.executable, str(Path(__file__).parent / "mcp_tools.py")])
#: A hundred tokens in and ten out a turn, at 1 and 10 dollars a million: 0.0002 dollars.
PRICES, TURN_USD = Prices(input_usd=1.0, output_usd=10.0), 0.0002


def calls(name: str, **args: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    call = {"id": "c", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class Model:
    """A model that says one thing after the other: a message, a status, or nothing at all."""

    def __init__(self, *turns: Any) -> None:
        self.turns = turns
        self.asked = 0

    def __call__(self, request: Any) -> None:
        self.asked += 1
        asked = json.loads(request.received)["messages"]
        turn = self.turns[sum(one["role"] == "assistant" for one in asked)]
        if turn is None:
            request.rfile.read(1)  # until whoever asked has gone
            return
        if isinstance(turn, int):
            request.respond(turn, json.dumps({"error": {"message": "no"}}))
            return
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        request.respond(200, json.dumps({"choices": [{"message": turn}], "usage": usage}))


def agent(serve: Serve, model: Model, **options: Any) -> AgentService:
    given: dict[str, Any] = {"api_key_env": None, "prices": PRICES, "servers": {"tools": TOOLS}}
    return AgentService(serve(model) + "/v1", "small", **(given | options))


async def respond_once(service: Service, index: int = 0) -> Response:
    """One trial, as the engine makes it."""
    caller = Caller(
        service,
        timeout_s=None,
        retries=0,
        clock=SystemClock(),
        excerpts=Excerpts(reply_limit=4000, redact=None),
    )
    with anyio.fail_after(60):
        return await caller.respond(index, "Please.", 1)


async def respond(service: Service) -> Response:
    """One trial, and the end of its service."""
    try:
        return await respond_once(service)
    finally:
        await service.aclose()


def session_of(response: Response) -> tuple[Reply, Trace]:
    assert response.reply is None
    assert response.partial is not None
    trace = Trace.of(response.partial)
    assert trace is not None
    assert ("cut-off", None) == (trace.ended, trace.answer)
    return response.partial, trace


ADD = calls("add", a=1, b=2)


@pytest.mark.slow
async def test_an_endpoint_that_fails_in_a_late_turn_leaves_the_turns_before(serve: Serve) -> None:
    """Three turns of four were paid for, and three tools were called."""
    response = await respond(agent(serve, Model(ADD, ADD, ADD, 503)))

    partial, trace = session_of(response)
    assert ErrorClass.INFRASTRUCTURE is response.error_class
    assert Usage(input_tokens=300, output_tokens=30) == partial.usage
    assert pytest.approx(3 * TURN_USD) == partial.cost_usd
    assert ["3", "3", "3"] == [one.result for one in trace.tool_calls]
    assert 3 == trace.assistant_turns
    assert partial.setup is not None
    assert partial.setup.seconds > 0


@pytest.mark.slow
async def test_an_answer_of_no_use_was_paid_for(serve: Serve) -> None:
    """Whether the message cannot be read, or asks for a tool without a name."""
    for odd in ({"content": 5}, calls("")):
        response = await respond(agent(serve, Model(ADD, odd)))

        partial, trace = session_of(response)
        assert ErrorClass.NONE is response.error_class
        assert Usage(input_tokens=200, output_tokens=20) == partial.usage
        assert 1 == len(trace.tool_calls)


@pytest.mark.slow
async def test_a_server_that_dies_leaves_its_last_call_without_an_end(serve: Serve) -> None:
    """It was made, and nobody knows what came of it."""
    response = await respond(agent(serve, Model(ADD, calls("die", code=3))))

    partial, trace = session_of(response)
    assert ErrorClass.INFRASTRUCTURE is response.error_class
    assert [("add", "tools", False), ("die", "tools", None)] == [
        (one.name, one.server, one.failed) for one in trace.tool_calls
    ]
    assert {"code": 3} == trace.tool_calls[1].args
    assert pytest.approx(2 * TURN_USD) == partial.cost_usd


async def cut(
    service: Service, model: Model, *, names: list[str], asked: int, index: int = 0
) -> TrialContext:
    """A trial that is cancelled once so much is under way."""
    trial = TrialContext(index=index, input="Please.", seed=1)

    def is_there() -> bool:
        so_far = trial.partial
        calls = [] if so_far is None else so_far.details["tool_calls"]
        return names == [one["name"] for one in calls] and asked == model.asked

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.call, trial)
            while not is_there():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
    await service.aclose()
    return trial


@pytest.mark.slow("in the model")
@pytest.mark.parametrize(
    ("turns", "names", "asked", "paid"),
    [
        ([calls("wait", seconds=60)], ["wait"], 1, 1),
        ([ADD, None], ["add"], 2, 1),
        ([None], [], 1, 0),
    ],
    ids=["in a tool", "in the model", "before anything"],
)
async def test_a_cancelled_session_tells_how_far_it_came(
    serve: Serve, turns: list[Any], names: list[str], asked: int, paid: int
) -> None:
    """A call that is under way is work; a model that never spoke did none."""
    model = Model(*turns)

    trial = await cut(agent(serve, model), model, names=names, asked=asked)

    assert trial.partial is not None
    trace = Trace.of(trial.partial)
    assert trace is not None
    assert (names, paid) == ([one.name for one in trace.tool_calls], trace.assistant_turns)
    assert (None if not paid else Usage(input_tokens=100, output_tokens=10)) == trace.usage
    if names == ["wait"]:
        assert trace.tool_calls[0].failed is None


async def test_time_spent_on_starting_servers_is_setup(serve: Serve) -> None:
    """Also where it is all that there was; no turn of a model is charged."""
    silent = McpServer(command=["sleep", "600"])

    response = await respond(
        agent(serve, Model(ADD), servers={"tools": silent}, start_timeout_s=0.3)
    )

    partial, trace = session_of(response)
    assert partial.setup is not None
    assert partial.setup.seconds >= 0.3
    assert (None, None, ()) == (partial.usage, partial.cost_usd, trace.tool_calls)


@pytest.mark.slow
async def test_a_recording_plays_back_what_came_to_nothing(serve: Serve, tmp_path: Path) -> None:
    """An error and a timeout, each with what was done before it."""
    file = tmp_path / "replies.jsonl"
    lived = await respond(RecordingService(agent(serve, Model(ADD, 500)), file))
    model = Model(ADD, None)
    await cut(RecordingService(agent(serve, model), file), model, names=["add"], asked=2, index=1)
    replay = ReplayService(file)

    error, late = [await respond_once(replay, index) for index in range(2)]
    await replay.aclose()

    assert (lived.error_class, lived.error) == (error.error_class, error.error)
    before, after = session_of(lived)[1], session_of(error)[1]
    assert (before.tool_calls, before.turns, before.usage) == (
        after.tool_calls,
        after.turns,
        after.usage,
    )
    assert ErrorClass.TIMEOUT is late.error_class
    partial, trace = session_of(late)
    assert Usage(input_tokens=100, output_tokens=10) == partial.usage
    assert ["add"] == [one.name for one in trace.tool_calls]
    # One that was asked outside of a run still tells whoever has the trial.
    trial = TrialContext(index=0, input="Please.", seed=1)
    with pytest.raises(Exception, match="500"):
        await replay.call(trial)
    assert trial.partial == error.partial
