"""MCP servers for the length of one trial: started, asked for their tools, called, and ended.

The one place that knows the SDK; it is imported with the first trial. What a tool says is for the
model to read, its failures included; a server that cannot be reached is no reply of the agent's.
"""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp
import mcp_types
import pydantic
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client

from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.model.trial import ErrorClass
from trialwise.services._process import PipedServer
from trialwise.services.agent import AgentService, McpServer, Returned
from trialwise.services.model_apis import to_json
from trialwise.services.service_factors import resolve

#: Tools that a server may offer, and pages that it may list them on.
_MOST_TOOLS, _MOST_PAGES = 1_000, 100
#: Statuses that say that the server is set up wrongly, for this and for every other trial.
_MISCONFIGURED = frozenset({401, 403, 404, 405})
_TOO_MANY = 429
# The SDK's log stays off the terminal where no logging is set up: our errors say the same.
logging.getLogger("mcp").addHandler(logging.NullHandler())
_ERROR_STATUS, _SERVER_ERROR = 400, 500
#: What the SDK and what is below it raise where a server cannot be used.
_FOREIGN = (
    *(mcp.MCPError, httpx2.HTTPError, httpx2.InvalidURL, OSError, RuntimeError, ValueError),
    *(anyio.BrokenResourceError, anyio.ClosedResourceError),
)


@asynccontextmanager
async def open_toolbox(agent: AgentService, trial: TrialContext) -> AsyncIterator[Toolbox]:
    """The tools of an agent's servers, which live as long as the block.

    Nothing but a cancellation may be raised within: a task group would wrap it.

    Args:
        agent: Whose servers are opened.
        trial: Whose seed and index the commands see.

    Raises:
        ServiceError: A server cannot be started or reached, or was lost on the way.
    """
    async with AsyncExitStack() as stack:
        enter, limit_s = stack.enter_async_context, agent.start_timeout_s
        opened = [_Server(*one, trial, agent.environment) for one in agent.servers.items()]
        yield Toolbox([await enter(_connect_server(one, limit_s)) for one in opened])


@dataclass(slots=True)
class _Server:
    """One server in one trial, and what is known of how it fares."""

    name: str
    server: McpServer
    trial: TrialContext
    environment: Mapping[str, str]
    _status: int = 0
    """The last status of an answer over HTTP."""
    _piped: PipedServer | None = None

    def transport(self) -> Any:
        """Return what the SDK's client speaks through."""
        if self.server.url is not None:
            return self._http(self.server.url)
        # Tool servers are often programs of others, which have no need of our keys.
        variables = {**os.environ} if self.server.inherit_env else get_default_environment()
        trial = self.trial
        numbers = {"TRIALWISE_INDEX": str(trial.index), "TRIALWISE_SEED": str(trial.seed)}
        environment = {**variables, **self.server.env, **numbers}
        self._piped = PipedServer(self.server.command, env=environment, cwd=self.server.cwd)
        return self._piped.streams()

    @asynccontextmanager
    async def _http(self, url: str) -> AsyncIterator[Any]:
        headers = {
            name: resolve(value, self.environment) for name, value in self.server.headers.items()
        }
        address = resolve(url, self.environment)
        async with (
            httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(None, connect=10.0),
                event_hooks={"response": [self._note]},
            ) as client,
            streamable_http_client(address, http_client=client) as streams,
        ):
            yield streams

    async def _note(self, response: Any) -> None:
        # Many servers refuse the stream of news that a GET asks for, which says nothing of calls.
        if response.request.method == "POST":
            self._status = response.status_code

    def is_lost(self, code: int) -> bool:
        """Return whether an error means that the server is gone, and not that a tool failed."""
        if self._piped is not None:
            # A server may send any code; whether it is still there is known without one.
            return self._piped.has_ended
        # The status tells it more surely than the code, which a server chooses.
        # An error of the protocol is an answer of the tool; only where the server is gone does the
        # trial say nothing about the agent.
        gone = self._status in _MISCONFIGURED or self._status >= _SERVER_ERROR
        return gone or code == mcp_types.CONNECTION_CLOSED or self._status == _TOO_MANY

    async def failure(self, said: str, *, in_session: bool = False) -> ServiceError:
        """That the server is of no use, and why.

        Args:
            said: What is wrong with it.
            in_session: Whether it had been of use before, so that it is set up rightly.
        """
        message = f"the tool server {self.name!r} {said}"
        if self._piped is not None:
            message += await self._piped.last_words()
        if self._status >= _ERROR_STATUS:
            message += f" (HTTP status {self._status})"
        if self._status in _MISCONFIGURED and not in_session:
            return ServiceError(message, ErrorClass.PRE_VALIDATION)
        return ServiceError(message, ErrorClass.INFRASTRUCTURE)


@dataclass(frozen=True, slots=True)
class _Connection:
    """A server that answers."""

    server: _Server
    session: mcp.ClientSession
    tools: Sequence[mcp_types.Tool]

    async def call(self, tool: str, args: Any, timeout_s: float) -> Returned:
        """Return what a tool returns."""
        with anyio.move_on_after(timeout_s):
            try:
                result = await self.session.call_tool(tool, args)
            except mcp.MCPError as error:
                if self.server.is_lost(error.code):
                    lost = f"was lost while {tool!r} ran"
                    raise await self.server.failure(lost, in_session=True) from None
                return Returned(error.message, failed=True)
            except (RuntimeError, ValueError) as error:
                # Not in the form that the tool promised: it is no result to rely on.
                return Returned(_first_words(error), failed=True)
            return Returned(_text(result), failed=result.is_error)
        return Returned(f"no result within {timeout_s:g} s", failed=True)


@asynccontextmanager
async def _connect_server(server: _Server, start_timeout_s: float) -> AsyncIterator[_Connection]:
    try:
        async with (
            server.transport() as (from_server, to_server),
            mcp.ClientSession(from_server, to_server) as session,
        ):
            tools = None
            with anyio.move_on_after(start_timeout_s):
                await _greet(session)
                tools = await _list_tools(server, session)
            if tools is None:
                raise await server.failure(f"did not answer within {start_timeout_s:g} s")
            yield _Connection(server, session, tools)
    except Exception as error:
        raise await _translate_failure(server, error) from None


async def _greet(session: mcp.ClientSession) -> None:
    """The handshake that nearly every server knows, or else the one that came after it."""
    try:
        await session.initialize()
    except mcp.MCPError as error:
        # Nobody is left to ask in another way.
        if error.code == mcp_types.CONNECTION_CLOSED:
            raise
        try:
            await session.discover()
        except mcp.MCPError:
            # A server that knows neither said with the first what is wrong with it.
            raise error from None


async def _translate_failure(server: _Server, error: BaseException) -> BaseException:
    """Return what the SDK and the system say, as one error of ours."""
    leaves = list(_leaves(error))
    ours = next((one for one in leaves if isinstance(one, ServiceError)), None)
    if ours is not None:
        return ours
    first = leaves[0]
    if not isinstance(first, _FOREIGN):
        return error
    if isinstance(first, mcp.MCPError) and server.is_lost(first.code):
        return await server.failure("cannot be used")
    return await server.failure(f"cannot be used: {_first_words(first)}")


def _first_words(error: BaseException) -> str:
    """Return an error in one line; of an invalid message, the first invalid place."""
    if isinstance(error, pydantic.ValidationError):
        wrong = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, wrong["loc"]))
        return f"its {error.title} is malformed at {place}: {wrong['msg']}"
    said = str(error).partition("\n")[0] or type(error).__name__
    return re.sub(r"\d+ validation errors? for .*", "no message of the protocol", said)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


async def _list_tools(server: _Server, session: mcp.ClientSession) -> list[mcp_types.Tool]:
    """List the tools that a server offers, or those of them that are asked for."""
    tools: list[mcp_types.Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=mcp_types.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > _MOST_TOOLS:
            break
    wanted = server.server.tools
    names = {tool.name for tool in tools}
    for name in wanted:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            message = f"the tool server {server.name!r} has no tool {name!r}; it has: {known}"
            raise ServiceError(message, ErrorClass.PRE_VALIDATION)
    offered = [tool for tool in tools if not wanted or tool.name in wanted]
    # Their definitions are sent to the model with every turn, and paid for.
    if len(offered) > _MOST_TOOLS:
        message = f"the tool server {server.name!r} has more than {_MOST_TOOLS:,} tools"
        raise ServiceError(f"{message}: name those to offer", ErrorClass.PRE_VALIDATION)
    return offered


def _text(result: Any) -> str:
    """Return what a result says, in the form in which a model reads it."""
    parts = [_block(block) for block in result.content]
    if not parts and result.structured_content is not None:
        return to_json(result.structured_content)
    return "\n".join(parts)


def _block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource":
            text = getattr(block.resource, "text", None)
            return f"[{block.resource.uri}]" if text is None else str(text)
        case "resource_link":
            return f"[{block.uri}]"
        case kind:
            return f"[{kind}, {block.mime_type}]"


# --- The tools of all servers, under names that an endpoint takes ---------------------------------

#: What an endpoint takes for the name of a tool.
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_NAME = 64


class _Offer(NamedTuple):
    """A tool, and the name under which the model knows it."""

    name: str
    tool: mcp_types.Tool
    connection: _Connection


class Toolbox:
    """The tools of all servers."""

    def __init__(self, connections: Sequence[_Connection]) -> None:
        self._offers = {offer.name: offer for offer in _offers(connections)}

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools as an endpoint takes them."""
        functions = [
            {
                "name": name,
                **({"description": told} if (told := offer.tool.description) else {}),
                "parameters": offer.tool.input_schema,
            }
            for name, offer in self._offers.items()
        ]
        return [{"type": "function", "function": one} for one in functions]

    def whose(self, name: str) -> tuple[str, str | None]:
        """Return a tool as its server calls it, and the server; None for one that nobody offers.

        Args:
            name: As the model knows it.
        """
        offer = self._offers.get(name)
        return (name, None) if offer is None else (offer.tool.name, offer.connection.server.name)

    async def call(self, name: str, args: Any, *, timeout_s: float) -> Returned:
        """Return what a tool returns, or why it does not.

        Args:
            name: As the model knows it.
            args: As the model gave them.
            timeout_s: How long it may take.

        Raises:
            ServiceError: Its server is gone.
        """
        offer = self._offers.get(name)
        if offer is None:
            known = f"are: {', '.join(self._offers)}" if self._offers else "is none at all"
            return Returned(f"there is no tool {name!r}; there {known}", failed=True)
        if problem := _unusable(args):
            return Returned(problem, failed=True)
        return await offer.connection.call(offer.tool.name, args, timeout_s)


def _offers(connections: Sequence[_Connection]) -> Iterator[_Offer]:
    """Yield every tool under a name that an endpoint takes and that no other has."""
    # A tool that a server lists twice is one tool: a call names nothing else.
    found = {(one.server.name, tool.name): (one, tool) for one in connections for tool in one.tools}
    names = Counter(name for _, name in found)
    taken: set[str] = set()
    for connection, tool in found.values():
        name = tool.name
        if names[name] > 1 or not _NAME.fullmatch(name):
            whole = f"{connection.server.name}__{name}"
            name = re.sub(r"[^a-zA-Z0-9_-]", "_", whole)[:_LONGEST_NAME]
        # There are as many numbers as tools, so that one is free.
        for number in range(2, len(found) + 2):
            if name not in taken:
                break
            end = f"_{number}"
            name = name[: _LONGEST_NAME - len(end)] + end
        taken.add(name)
        yield _Offer(name, tool, connection)


def _unusable(args: Any) -> str:
    """Return why arguments cannot be passed on, or nothing."""
    if not isinstance(args, dict):
        return "the arguments are not a JSON object"
    try:
        to_json(args).encode()
    except (UnicodeError, ServiceError):
        return "the arguments cannot be written as JSON in UTF-8"
    return ""
