"""An agent: a chat model behind an endpoint, with the tools of MCP servers.

It speaks, its tools are called, and it reads what they say: bounded in turns, calls, time and text,
so that a trial comes to an end whatever the model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from trialwise.declarations import signatures
from trialwise.declarations.resources import CommandLine, Folder, Url
from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg, Natural, Positive, Seconds
from trialwise.declarations.structures import Listing, MapOf
from trialwise.engine.ports import TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Setup, Usage, sum_usages
from trialwise.model.trace import ToolCall
from trialwise.redaction import redact_text
from trialwise.services import service_factors
from trialwise.services.http_endpoint import check_url
from trialwise.services.model_apis import input_text
from trialwise.services.openai_chat import ChatModel
from trialwise.traces.trace_building import Building
from trialwise.validation import require_count, require_given, require_positive, require_text

if TYPE_CHECKING:
    from trialwise.services._mcp import Toolbox

__all__ = ["AgentService", "McpServer"]

_TOOL_NAMES = Listing(Text(), "a list of tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server of tools: a command that is started for each trial, or the URL of a running server.

    A command sees `TRIALWISE_INDEX` and `TRIALWISE_SEED`, what `env` adds, and of our own
    environment only what every program needs, such as PATH and HOME.

    Args:
        command: The program and its arguments, started for each trial. No shell is used.
        url: The streamable HTTP endpoint of a running server.
        env: Environment variables to add.
        inherit_env: Whether a command inherits the whole environment of trialwise.
        cwd: The working directory of a command.
        headers: Headers for the URL. Refer to secrets by name, as in `Bearer ${API_KEY}`.
        tools: The tools to offer to the model.

    >>> McpServer(command=["python", "tools.py"], tools=["find", "book"]).command
    ('python', 'tools.py')
    """

    command: Annotated[Sequence[str], Arg(kind=CommandLine())] = ()
    url: Annotated[str | None, Arg(kind=Url())] = None
    env: service_factors.Variables = field(default_factory=dict, hash=False)
    inherit_env: bool = False
    cwd: Annotated[str | None, Arg(kind=Folder(), default="the suite's folder")] = None
    headers: service_factors.Headers = field(default_factory=dict, hash=False)
    tools: Annotated[Sequence[str], Arg(kind=_TOOL_NAMES, default="all")] = ()

    def __post_init__(self) -> None:
        if bool(self.command) is (self.url is not None):
            raise InvalidArgument("command", self.command, "be given, or url, and not both")
        for name in ("command", "tools"):
            given = getattr(self, name)
            if isinstance(given, str) or not all(isinstance(one, str) and one for one in given):
                raise InvalidArgument(name, given, "be a list of texts")
            object.__setattr__(self, name, tuple(given))
        if self.url is not None:
            check_url("url", self.url)
        object.__setattr__(self, "headers", service_factors.check_headers(self.headers))


#: As many turns and calls as a trace keeps.
_MOST = 1_000
_SERVER = signatures.Made(
    "server",
    McpServer,
    signatures.derive_keys(McpServer, texts="read"),
    one_of=(("command", "url"),),
    doc=signatures.summarise(McpServer),
)

Servers = Annotated[Mapping[str, McpServer], Arg(kind=MapOf(_SERVER, "MCP servers by name"))]
"""MCP servers by the names that traces show."""


@dataclass(kw_only=True, eq=False, repr=False)
class AgentService(ChatModel):
    """A chat model that may call the tools of MCP servers until it answers (extra `mcp`).

    Each trial is a session of its own: servers with a command are started for it and ended after
    it with everything they started, servers with a URL get a new session. The model is sent the
    input as `ChatService` sends it, with the tools of all servers; what it calls is called, one
    call after the other, and what the tools say is sent back, until it answers without a call or a
    limit is reached. The value is that answer, empty where there is none; the details hold the
    `trace`, its `tool_calls`, the `finish_reason` and the `model`. Tokens are those of all turns.
    The latency is that of the session, starting the servers left aside (`Reply.setup`).

    A tool that fails, is unknown, takes too long or is called with arguments that are not an
    object is reported so to the model, and is in the trace. A server that cannot be started or is
    lost is an infrastructure error, and so are 429 and 5xx of the endpoint; what the endpoint
    refuses is a failure of the agent's own, as for `ChatService`. A call beyond a limit is not
    made, and is in the trace as a failed one. A session that fails or runs out of time leaves its
    trace, its tokens and its cost so far in `TrialContext.partial`, its last call without an end
    where it was cut off in one.

    >>> AgentService(
    ...     "https://api.example.com/v1", "small", api_key_env=None,
    ...     servers={"shop": McpServer(url="https://tools.example.com/mcp")},
    ... )
    AgentService('https://api.example.com/v1', 'small', servers=['shop'])

    Args:
        base_url: The URL without the last part, such as `/chat/completions`.
        model: The name of the model.
        servers: The MCP servers, by the names that traces show.
        api: The API that the endpoint offers: `chat-completions`, which most offer, OpenAI's
            `responses`, or Anthropic's own.
        api_key_env: The environment variable with the key; null or None for no key.
        system: The system message, before every conversation.
        temperature: The temperature, as the endpoint defines it.
        max_tokens: Maximum number of tokens in one answer.
        extra: Additional fields of the request.
        send_seed: Whether to send the seed of each trial, for endpoints that accept one.
        prices: The price of tokens. Without prices, the cost is unknown, not zero.
        max_turns: Maximum number of turns of the model.
        max_tool_calls: Maximum number of tool calls.
        tool_timeout_s: Time limit for one tool call.
        start_timeout_s: Time limit for a server to start and list its tools.
        result_limit: How many characters of a tool result the model receives.
        timeout_s: Time limit for one turn of the model, in addition to the limit of the trial.
        connect_timeout_s: Time limit for the connection to the endpoint.
        response_limit: Maximum size of a response of the endpoint in bytes.
        environment: Read instead of the process's own.
        clock: Seconds from any origin, for the times.
    """

    spelling: ClassVar[str] = "agent"

    # Nobody has to make hosted calls any more, and the session counts them.
    _takes_turns = True

    servers: Servers
    max_turns: Positive = 20
    max_tool_calls: Natural = 50
    tool_timeout_s: Seconds = 30.0
    start_timeout_s: Seconds = 30.0
    result_limit: Positive = 50_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, minimum in (("max_turns", 1), ("max_tool_calls", 0)):
            if require_count(name, given := getattr(self, name), minimum=minimum) > _MOST:
                raise InvalidArgument(name, given, f"be at most {_MOST}")
        require_count("result_limit", self.result_limit, minimum=1)
        require_given(self, "tool_timeout_s start_timeout_s", require_positive)
        self.servers = _check_servers(self.servers, self.environment)
        if self.extra and "tools" in self.extra:
            raise InvalidArgument("extra", "tools", "leave the tools to the servers")
        _check_installed()

    async def call(self, trial: TrialContext) -> Reply:
        """Return the agent's answer to one trial, with its trace."""
        # The SDK behind them is an extra.
        from trialwise.services._mcp import open_toolbox

        session = Session(self)
        # Whatever becomes of it, what it took is paid for, and what it did was done.
        trial.keep(session.so_far)
        outcome: Reply | Exception | None = None
        async with open_toolbox(self, trial) as toolbox:
            try:
                outcome = await session.run(trial, toolbox)
            except Exception as error:
                outcome = error
        # Raised out here: a task group of the servers' would wrap it.
        if isinstance(outcome, Reply):
            return outcome
        assert outcome is not None
        raise outcome

    def offer_tools(self, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the fields of a request that offer tools to the model."""
        return {"tools": self._api.make_tools(tools)} if tools else {}

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record: its tools are its servers."""
        servers = [
            [
                name,
                list(one.command) or service_factors.name_endpoint(redact_text(one.url or "")),
                list(one.tools),
            ]
            for name, one in self.servers.items()
        ]
        return {**super().factors, "tools": service_factors.describe_value(servers)}

    def __repr__(self) -> str:
        return f"AgentService({self.base_url!r}, {self.model!r}, servers={list(self.servers)!r})"


def _check_servers(
    servers: Mapping[str, McpServer], environment: Mapping[str, str]
) -> dict[str, McpServer]:
    if not servers:
        raise InvalidArgument("servers", servers, "hold at least one server; a chat needs none")
    for name, server in servers.items():
        require_text("servers", name, "map names to servers")
        templates = [*server.headers.values(), server.url or ""]
        service_factors.check_set(f"servers[{name!r}]", templates, environment)
    return dict(servers)


def _check_installed() -> None:
    """The SDK is an extra; better missed now than in every trial."""
    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise InvalidArgument(
            "servers", "no MCP SDK", "have the SDK to speak with: pip install 'trialwise[mcp]'"
        )


# --- One session: ask the model, make the calls that it wants, and ask again ----------------------


class Returned(NamedTuple):
    """What came of one call of a tool."""

    text: str
    failed: bool
    """Whether the text tells of a failure."""


class Session:
    """One conversation between a model and its tools, from the starting of their servers on.

    Args:
        model: Which is asked.
    """

    def __init__(self, model: AgentService) -> None:
        self._model = model
        self._clock = model.clock
        self._prepared = self._clock()
        self._began: float | None = None
        self._building = Building()
        self._calls = 0
        self._usages: list[Usage | None] = []
        self._last: Reply | None = None
        # What is waited for.
        self._asked: TrialContext | None = None

    async def run(self, trial: TrialContext, toolbox: Toolbox) -> Reply:
        """Return what the agent answers with tools, and how it came to it."""
        self._began = self._clock()
        tools = self._model.offer_tools(toolbox.definitions)
        messages = self._model.open_conversation(trial.input)
        for message in messages:
            said = input_text(message.get("content") or "")
            self._building.say(str(message["role"]), said, at=self._began)
        ended = "max-turns"
        for turn in range(self._model.max_turns):
            self._asked = replace(trial)
            reply = await self._model.ask(self._asked, messages, **tools)
            self._asked = None
            calls = self._take(reply)
            if not calls:
                spoken = "answer" if reply.value.strip() else "no-answer"
                ended = "refusal" if reply.details.get("refusal") else spoken
                break
            is_last = turn + 1 == self._model.max_turns
            returned = await self._work(calls, toolbox, is_last=is_last)
            if returned is None:
                ended = "max-turns" if is_last else "max-tool-calls"
                break
            messages = [*messages, _echo(reply.details["message"]), *returned]
        return self._reply(ended)

    def so_far(self) -> Reply:
        """Return what was said and done until the session was cut short."""
        # An answer that was of no use cost what it cost.
        unread = None if self._asked is None else self._asked.partial
        return self._reply("cut-off", () if unread is None else (unread.usage,))

    def _take(self, reply: Reply) -> list[_Call]:
        """Return what the model said, and the calls that it asks for."""
        self._last = reply
        self._usages.append(reply.usage)
        self._building.say("assistant", reply.value)
        message = reply.details["message"]
        for hosted in message.get("hosted_calls") or ():
            self._calls += 1
            self._building.call(hosted["name"], server=hosted.get("server"), args=hosted["args"])
        wanted = zip(message.get("tool_calls") or (), reply.details["tool_calls"], strict=True)
        return [_Call.of(place, raw, call) for place, (raw, call) in enumerate(wanted)]

    async def _work(
        self, calls: list[_Call], toolbox: Toolbox, *, is_last: bool
    ) -> list[Any] | None:
        """Make the calls, and return the messages with their results; None if one was not made."""
        answers: list[Any] = []
        for call in calls:
            tool, server = toolbox.whose(call.name)
            began = ended = None
            # In its last turn the model cannot read a result any more, and a call changes the world
            # all the same.
            is_made = not is_last and self._calls < self._model.max_tool_calls
            self._calls += 1
            if is_made:
                began = self._clock()
            # Told before it is made: a session that is cut off in a call shows it without an end.
            self._building.call(tool, key=call.key, server=server, args=call.args, at=began)
            if is_made:
                limit_s = self._model.tool_timeout_s
                returned = await toolbox.call(call.name, call.args, timeout_s=limit_s)
                ended = self._clock()
                answers.append(self._answer(call, returned))
            else:
                # Written down as failed: a check on calls must see that the model wanted it.
                limit = "turns" if is_last else "tool calls"
                returned = Returned(f"not made: out of {limit}", failed=True)
            self._building.result(
                key=call.key,
                result=None if returned.failed else returned.text,
                error=returned.text if returned.failed else None,
                at=ended,
            )
        return answers if len(answers) == len(calls) else None

    def _answer(self, call: _Call, returned: Returned) -> dict[str, Any]:
        """Return the message that tells the model what came of a call."""
        content, limit = returned.text, self._model.result_limit
        if len(content) > limit:
            left = len(content) - limit
            content = f"{content[:limit]}\n[{left:,} further characters were left out]"
        # Chat completions have no field for a failed call; other APIs find the word again.
        if returned.failed and not content.startswith("Error"):
            content = f"Error: {content}"
        return {"role": "tool", "tool_call_id": call.key, "content": content}

    def _reply(self, ended: str, unread: Sequence[Usage | None] = ()) -> Reply:
        now = self._clock()
        began = now if self._began is None else self._began
        usage = sum_usages([*self._usages, *unread])
        trace = self._building.finish(
            usage=usage,
            cost_usd=self._model.find_cost(usage),
            duration_s=round(max(0.0, now - began), 6),
            ended=ended,
        )
        # A refusal, or what was said before the session was cut off, is not an answer.
        answer = trace.answer if ended == "answer" else None
        trace = replace(trace, answer=answer, tool_calls=tuple(map(_round_times, trace.tool_calls)))
        last = {} if self._last is None else self._last.details
        kept = {name: last[name] for name in ("finish_reason", "model", "refusal") if name in last}
        return Reply(
            value=trace.answer or "",
            latency_s=max(0.0, now - began),
            usage=usage,
            cost_usd=trace.cost_usd,
            details={**kept, **trace.details},
            setup=Setup(seconds=max(0.0, began - self._prepared)),
        )


class _Call(NamedTuple):
    """A call as the model asks for it."""

    name: str
    args: Any
    key: str

    @classmethod
    def of(cls, place: int, raw: Mapping[str, Any], call: Mapping[str, Any]) -> _Call:
        """One of the calls of a message; some endpoints leave its id out."""
        name, args = call["name"], call["args"]
        if not isinstance(name, str) or not name:
            raise service_factors.MalformedReply(
                f"the model asked for a tool without a name: {name!r}"
            )
        key = raw.get("id")
        return cls(name, {} if args is None else args, key if isinstance(key, str) else str(place))


def _echo(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the model's as it is sent back: what it left empty is left out."""
    told = {name: value for name, value in message.items() if value not in (None, [], "")}
    calls = [
        call if isinstance(call.get("id"), str) else {**call, "id": str(place)}
        for place, call in enumerate(message["tool_calls"])
    ]
    return {"content": None, **told, "role": "assistant", "tool_calls": calls}


def _round_times(call: ToolCall) -> ToolCall:
    times = {name: getattr(call, name) for name in ("started_s", "duration_s")}
    return replace(call, **{name: round(one, 6) for name, one in times.items() if one is not None})
