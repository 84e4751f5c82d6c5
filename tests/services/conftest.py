"""Shared set-up: asyncio as the backend, and a real server on this machine to talk to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """What a run uses."""
    return "asyncio"


class Conversation(BaseHTTPRequestHandler):
    """One request, as a test's handler sees it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    handler: Callable[[Any], None]

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.received = self.rfile.read(length)
        type(self).handler(self)

    def do_GET(self) -> None:
        self.do_POST()

    def respond(self, status: int, body: bytes | str = b"", **headers: str) -> None:
        content = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """A server that does not mind a client who leaves."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[Any], None]], str]]:
    """Start a server around a handler of one request and return its URL."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[Server] = []

    def start(handler: Callable[[Any], None]) -> str:
        kind = type("Handler", (Conversation,), {"handler": staticmethod(handler)})
        server = Server(("127.0.0.1", 0), kind)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def echo(serve: Callable[[Callable[[Any], None]], str]) -> str:
    """A server whose error page repeats the Authorization header across the 200th character."""

    def repeat_header(request: Conversation) -> None:
        request.respond(500, f"<pre>{'.' * 149}{request.headers['Authorization']}</pre>")

    return serve(repeat_header) + "/"
