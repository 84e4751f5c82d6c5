"""A real MCP server for the tests, written with the SDK: `mcp_tools.py`, or `mcp_tools.py http`."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("test-tools", log_level="CRITICAL")
counted = 0


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def count() -> int:
    """How often this was called in this session."""
    global counted  # noqa: PLW0603
    counted += 1
    return counted


@server.tool()
def fail(reason: str) -> str:
    """Fail, and say why."""
    raise ToolError(reason)


@server.tool()
def wait(seconds: float) -> str:
    """Take some time."""
    time.sleep(seconds)
    return "waited"


@server.tool()
def die(code: int) -> str:
    """End the server in the middle of a call."""
    sys.stderr.write("something terrible happened\n")
    sys.stderr.flush()
    os._exit(code)


@server.tool()
def variables() -> dict[str, str]:
    """The environment that this server sees."""
    return dict(os.environ)


@server.tool()
def leave_child() -> int:
    """Start a process that outlives its parent, and return its id."""
    return subprocess.Popen(["sleep", "600"]).pid


@server.tool()
def long(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool(structured_output=False)
def picture() -> Image:
    """Something that is not a text."""
    return Image(data=b"\x89PNG", format="png")


def main() -> None:
    if sys.argv[1:] == ["http"]:
        import socket

        import anyio
        import uvicorn

        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)  # noqa: T201
        config = uvicorn.Config(server.streamable_http_app(), log_level="critical")
        anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listening]))
    else:
        server.run()


if __name__ == "__main__":
    main()
