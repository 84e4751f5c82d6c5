"""An agent: a chat model behind an endpoint, with the tools of MCP servers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from trialwise.declarations import signatures
from trialwise.declarations.structures import MapOf
from trialwise.engine.ports import TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.services._mcp import McpServer, open_toolbox
from trialwise.services._tool_loop import Bounds, Model, Session
from trialwise.services.model_apis import OPENAI_KEY, ApiName
from trialwise.services.openai_chat import BaseUrl, KeyName, PricesArgument
from trialwise.services.service_factors import check_set, describe_server, describe_value
from trialwise.validation import require_count, require_positive, require_text

__all__ = ["AgentService", "McpServer"]

#: As many as a trace keeps.
_MOST = 1_000
_SERVER = signatures.Made(
    "server",
    McpServer,
    signatures.derive_keys(McpServer, texts="read"),
    one_of=(("command", "url"),),
    doc=signatures.summarise(McpServer),
)

Servers = Annotated[
    Mapping[str, McpServer], signatures.Arg(kind=MapOf(_SERVER, "MCP servers by name"))
]
"""MCP servers by the names that traces show."""


class AgentService:
    """A chat model that may call the tools of MCP servers until it answers (extra `mcp`).

    Each trial is a session of its own: servers with a command are started for it and ended after
    it with everything they started, servers with a URL get a new session. The model is sent the
    input as `ChatService` sends it, with the tools of all servers; what it calls is called, one
    call after the other, and what the tools say is sent back, until it answers without a call or a
    limit is reached. The value is that answer, empty where there is none; the details hold the
    `trace`, its `tool_calls`, the `finish_reason` and the `model`. Tokens are those of all turns.
    The latency is that of the session, starting the servers left aside (`Reply.setup`).

    A tool that fails, is unknown, takes too long or is called with arguments that are no object is
    told so to the model, and is in the trace. A server that cannot be started or is lost is an
    infrastructure error, and so are 429 and 5xx of the endpoint; what the endpoint refuses is a
    failure of the agent's own, as for `ChatService`. A call beyond a limit is not made, and is in
    the trace as a failed one. A session that fails or runs out of time leaves its trace, its tokens
    and its cost so far in `TrialContext.partial`, its last call without an end where it was cut off
    in one.

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

    def __init__(
        self,
        base_url: BaseUrl,
        model: str,
        *,
        servers: Servers,
        api: ApiName = "chat-completions",
        api_key_env: KeyName = OPENAI_KEY,
        system: str | None = None,
        temperature: float | None = None,
        max_tokens: signatures.Positive | None = None,
        extra: Mapping[str, Any] | None = None,
        send_seed: bool = False,
        prices: PricesArgument | None = None,
        max_turns: signatures.Positive = 20,
        max_tool_calls: signatures.Natural = 50,
        tool_timeout_s: signatures.Seconds = 30.0,
        start_timeout_s: signatures.Seconds = 30.0,
        result_limit: signatures.Positive = 50_000,
        timeout_s: signatures.Seconds | None = None,
        connect_timeout_s: signatures.Seconds = 10.0,
        response_limit: signatures.Positive = 2**22,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._environment = os.environ if environment is None else environment
        self._servers = _check_servers(servers, self._environment)
        if extra and "tools" in extra:
            raise InvalidArgument("extra", "tools", "leave the tools to the servers")
        self._model = Model(
            base_url,
            model,
            api=api,
            api_key_env=api_key_env,
            system=system,
            temperature=temperature,
            max_tokens=max_tokens,
            extra=extra,
            send_seed=send_seed,
            prices=prices,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            response_limit=response_limit,
            environment=environment,
            clock=clock,
        )
        self._start_timeout_s = require_positive("start_timeout_s", start_timeout_s)
        self._bounds = Bounds(
            max_turns=_limit("max_turns", max_turns, minimum=1),
            max_tool_calls=_limit("max_tool_calls", max_tool_calls, minimum=0),
            tool_timeout_s=require_positive("tool_timeout_s", tool_timeout_s),
            result_limit=require_count("result_limit", result_limit, minimum=1),
        )
        self._clock = clock
        _check_installed()

    async def call(self, trial: TrialContext) -> Reply:
        """Return the agent's answer to one trial, with its trace."""
        session = Session(self._model, bounds=self._bounds, clock=self._clock)
        # Whatever becomes of it, what it took is paid for, and what it did was done.
        trial.keep(session.so_far)
        outcome: Reply | Exception | None = None
        async with open_toolbox(
            self._servers,
            trial=trial,
            environment=self._environment,
            start_timeout_s=self._start_timeout_s,
        ) as toolbox:
            try:
                outcome = await session.run(trial, toolbox)
            except Exception as error:
                outcome = error
        # Raised out here: a task group of the servers' would wrap it.
        if isinstance(outcome, Reply):
            return outcome
        assert outcome is not None
        raise outcome

    @property
    def tells_cost(self) -> bool:
        """Whether replies have a cost, so that a limit on money can be kept."""
        return self._model.tells_cost

    @property
    def factors(self) -> dict[str, str]:
        """What it is made of, for the record: its tools are its servers."""
        servers = [describe_server(name, one) for name, one in self._servers.items()]
        return {**self._model.factors, "tools": describe_value(servers)}

    async def aclose(self) -> None:
        """Close the connections to the endpoint; servers never outlive their trial."""
        await self._model.aclose()

    def __repr__(self) -> str:
        return f"AgentService({self._model.endpoint}, servers={list(self._servers)!r})"


def _check_servers(
    servers: Mapping[str, McpServer], environment: Mapping[str, str]
) -> dict[str, McpServer]:
    if not servers:
        raise InvalidArgument("servers", servers, "hold at least one server; a chat needs none")
    for name, server in servers.items():
        require_text("servers", name, "map names to servers")
        templates = [*server.headers.values(), server.url or ""]
        check_set(f"servers[{name!r}]", templates, environment)
    return dict(servers)


def _limit(argument: str, value: int, *, minimum: int) -> int:
    if require_count(argument, value, minimum=minimum) > _MOST:
        raise InvalidArgument(argument, value, f"be at most {_MOST}")
    return value


def _check_installed() -> None:
    """The SDK is an extra; better missed now than in every trial."""
    from importlib.util import find_spec

    if find_spec("mcp") is None or find_spec("mcp_types") is None:
        raise InvalidArgument(
            "servers", "no MCP SDK", "have the SDK to speak with: pip install 'trialwise[mcp]'"
        )
