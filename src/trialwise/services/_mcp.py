"""MCP servers for the length of one trial: started, asked for their tools, called, and ended.

The one place that knows the SDK, which is loaded with the first trial. What a tool says is for the
model to read, its failures included; a server that cannot be reached is no reply of the agent's.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from trialwise.declarations.resources import CommandLine, Folder, Url
from trialwise.declarations.scalars import Text
from trialwise.declarations.signatures import Arg
from trialwise.declarations.structures import Listing
from trialwise.engine.ports import ServiceError, TrialContext
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.services._process import PipedServer
from trialwise.services._tool_loop import Returned, Toolbox
from trialwise.services.http_endpoint import check_url
from trialwise.services.model_apis import to_json
from trialwise.services.service_factors import Headers, Variables, check_headers, resolve

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp_types import Tool


#: Tools that a server may offer, and pages that it may list them on.
_MOST_TOOLS, _MOST_PAGES = 1_000, 100
#: Statuses that say that the server is set up wrongly, for this and for every other trial.
_MISCONFIGURED = frozenset({401, 403, 404, 405})
_TOO_MANY = 429
_ERROR_STATUS, _SERVER_ERROR = 400, 500
_TOOLS = Listing(Text(), "a list of tools")


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
    env: Variables = field(default_factory=dict, hash=False)
    inherit_env: bool = False
    cwd: Annotated[str | None, Arg(kind=Folder(), default="the suite's folder")] = None
    headers: Headers = field(default_factory=dict, hash=False)
    tools: Annotated[Sequence[str], Arg(kind=_TOOLS, default="all")] = ()

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
        object.__setattr__(self, "headers", check_headers(self.headers))


@asynccontextmanager
async def open_toolbox(
    servers: Mapping[str, McpServer],
    *,
    trial: TrialContext,
    environment: Mapping[str, str],
    start_timeout_s: float,
) -> AsyncIterator[Toolbox]:
    """The tools of servers that live as long as the block.

    Nothing but a cancellation may be raised within: a task group would wrap it.

    Args:
        servers: By name.
        trial: Whose seed and index the commands see.
        environment: Where the headers' secrets come from.
        start_timeout_s: Until each has told its tools.

    Raises:
        ServiceError: A server cannot be started or reached, or was lost on the way.
    """
    async with AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(
                _connect_server(
                    _Server(name, server, trial, environment), start_timeout_s=start_timeout_s
                )
            )
            for name, server in servers.items()
        ]
        yield Toolbox(connections)


class _Server:
    """One server in one trial, and what is known of how it fares."""

    def __init__(
        self, name: str, server: McpServer, trial: TrialContext, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self.server = server
        self._trial = trial
        self._environment = environment
        self._status = 0
        self._piped: PipedServer | None = None

    def transport(self) -> Any:
        """Return what the SDK's client speaks through."""
        if self.server.url is not None:
            return self._http(self.server.url)
        self._piped = PipedServer(self.server.command, env=self._variables(), cwd=self.server.cwd)
        return self._piped.streams()

    @asynccontextmanager
    async def _http(self, url: str) -> AsyncIterator[Any]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        headers = {
            name: resolve(value, self._environment) for name, value in self.server.headers.items()
        }
        address = resolve(url, self._environment)
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

    def _variables(self) -> dict[str, str]:
        import os

        from mcp.client.stdio import get_default_environment

        # Tool servers are often programs of others, which have no need of our keys.
        variables = {**os.environ} if self.server.inherit_env else get_default_environment()
        trial = self._trial
        numbers = {"TRIALWISE_INDEX": str(trial.index), "TRIALWISE_SEED": str(trial.seed)}
        return {**variables, **self.server.env, **numbers}

    def is_lost(self, code: int) -> bool:
        """Return whether an error means that the server is gone, and not that a tool failed."""
        from mcp_types import CONNECTION_CLOSED

        if self._piped is not None:
            # A server may send any code; whether it is still there is known without one.
            return self._piped.has_ended
        # The status tells it more surely than the code, which a server chooses.
        gone = self._status in _MISCONFIGURED or self._status >= _SERVER_ERROR
        return gone or code == CONNECTION_CLOSED or self._status == _TOO_MANY

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


class _Connection:
    """A server that answers."""

    def __init__(self, server: _Server, session: ClientSession, tools: Sequence[Tool]) -> None:
        self.name = server.name
        self.tools = tools
        self._server = server
        self._session = session

    async def call(self, tool: str, args: Any, timeout_s: float) -> Returned:
        """Return what a tool returns."""
        from anyio import move_on_after
        from mcp import MCPError

        with move_on_after(timeout_s):
            try:
                result = await self._session.call_tool(tool, args)
            except MCPError as error:
                if self._server.is_lost(error.code):
                    lost = f"was lost while {tool!r} ran"
                    raise await self._server.failure(lost, in_session=True) from None
                return Returned(error.message, failed=True)
            except (RuntimeError, ValueError) as error:
                # Not in the form that the tool promised: it is no result to rely on.
                return Returned(_first_words(error), failed=True)
            return Returned(_text(result), failed=result.is_error)
        return Returned(f"no result within {timeout_s:g} s", failed=True)


@asynccontextmanager
async def _connect_server(server: _Server, *, start_timeout_s: float) -> AsyncIterator[_Connection]:
    from anyio import move_on_after
    from mcp import ClientSession

    _hush()
    try:
        async with (
            server.transport() as (from_server, to_server),
            ClientSession(from_server, to_server) as session,
        ):
            tools = None
            with move_on_after(start_timeout_s):
                await _greet(session)
                tools = await _list_tools(server, session)
            if tools is None:
                raise await server.failure(f"did not answer within {start_timeout_s:g} s")
            yield _Connection(server, session, tools)
    except Exception as error:
        raise await _translate_failure(server, error) from None


def _hush() -> None:
    """Keep the SDK's log off the terminal if no logging is set up: our errors say the same."""
    import logging

    log = logging.getLogger("mcp")
    if not log.handlers:
        log.addHandler(logging.NullHandler())


async def _greet(session: ClientSession) -> None:
    """The handshake that nearly every server knows, or else the one that came after it."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    try:
        await session.initialize()
    except MCPError as error:
        # Nobody is left to ask in another way.
        if error.code == CONNECTION_CLOSED:
            raise
        try:
            await session.discover()
        except MCPError:
            # A server that knows neither said with the first what is wrong with it.
            raise error from None


async def _translate_failure(server: _Server, error: BaseException) -> BaseException:
    """Return what the SDK and the system say, as one error of ours."""
    import httpx2
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp import MCPError

    leaves = list(_leaves(error))
    ours = next((one for one in leaves if isinstance(one, ServiceError)), None)
    if ours is not None:
        return ours
    foreign = (
        MCPError,
        httpx2.HTTPError,
        httpx2.InvalidURL,
        OSError,
        BrokenResourceError,
        ClosedResourceError,
        RuntimeError,
        ValueError,
    )
    first = leaves[0]
    if not isinstance(first, foreign):
        return error
    if isinstance(first, MCPError) and server.is_lost(first.code):
        return await server.failure("cannot be used")
    return await server.failure(f"cannot be used: {_first_words(first)}")


def _first_words(error: BaseException) -> str:
    """Return an error in one line; of an invalid message, the first invalid place."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
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


async def _list_tools(server: _Server, session: ClientSession) -> list[Tool]:
    """List the tools that a server offers, or those of them that are asked for."""
    from mcp_types import PaginatedRequestParams

    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
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
