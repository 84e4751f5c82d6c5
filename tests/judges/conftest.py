"""A scripted juror behind the real wire protocol: an OpenAI-compatible server on this machine."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from trialwise.services import ChatService, Prices

_SECTION = re.compile(
    r"^<<(?P<name>[A-Z]+)(?P<note>[^\n>]*) (?P<token>[0-9a-f]{32})>>\n(?P<text>.*?)\n"
    r"<<END (?P=name) (?P=token)>>$",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Asked:
    """One request as the juror got it."""

    body: dict[str, Any]
    key: str | None

    @property
    def messages(self) -> list[dict[str, str]]:
        return list(self.body["messages"])

    @property
    def token(self) -> str:
        """The token as the instruction states it."""
        found = re.search(r"<<NAME ([0-9a-f]{32})>>", self.messages[0]["content"])
        assert found is not None
        return found[1]

    @property
    def sections(self) -> dict[str, str]:
        """What stands between the lines that carry the token, by name and in order."""
        text = self.messages[1]["content"]
        return {
            one["name"]: one["text"]
            for one in _SECTION.finditer(text)
            if one["token"] == self.token
        }

    @property
    def outside(self) -> str:
        """What stands outside of all sections."""
        return _SECTION.sub("", self.messages[1]["content"]).strip()


Script = Callable[[Asked], Any]


@dataclass
class Juror:
    """A server that answers as its script says, and remembers what it was asked."""

    script: Script
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def service(self, model: str = "juror-1", **options: Any) -> ChatService:
        """The juror as a service."""
        defaults: dict[str, Any] = {
            "api_key_env": None,
            "prices": Prices(input_usd=1.0, output_usd=2.0),
        }
        return ChatService(f"{self.url}/v1", model, **(defaults | options))


def completion(content: Any, **usage: int) -> dict[str, Any]:
    """A response as the API reference shows one."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "juror-2026",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 100} | usage,
    }


def vote(passed: bool, confidence: float = 0.9, reasoning: str = "as the rubric says") -> str:
    """An answer in the form that was asked for."""
    return json.dumps({"reasoning": reasoning, "pass": passed, "confidence": confidence})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    juror: Juror

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        asked = Asked(json.loads(self.rfile.read(length)), self.headers.get("Authorization"))
        with self.juror.lock:
            self.juror.asked.append(asked)
        said = self.juror.script(asked)
        if isinstance(said, int):
            self._respond(said, {"error": {"message": "as the script says"}})
        elif isinstance(said, float):
            time.sleep(said)
            self._respond(200, completion(vote(True)))
        else:
            self._respond(200, said if isinstance(said, dict) else completion(said))

    def _respond(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if status in (429, 503):
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that leaves is no trouble."""


@pytest.fixture
def anyio_backend() -> str:
    """What a run uses."""
    return "asyncio"


@pytest.fixture
def juror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], Juror]]:
    """Start a juror that answers by a script: text, a document, a status, or seconds to wait."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[_Server] = []

    def start(script: Script) -> Juror:
        one = Juror(script)
        handler = type("Handler", (_Handler,), {"juror": one})
        server = _Server(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        one.url = f"http://127.0.0.1:{server.server_port}"
        return one

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def says() -> Callable[..., str]:
    """An answer in the form that was asked for."""
    return vote


class NoWaiting:
    """A clock on which waits take no time; how long they were is kept."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return time.perf_counter()

    def now(self) -> Any:
        raise AssertionError("a judge needs no date")

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def no_waiting() -> NoWaiting:
    """Retries at once."""
    return NoWaiting()
