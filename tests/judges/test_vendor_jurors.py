"""Jurors behind the endpoints of several vendors, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from tests.cli.suite_folders import enter_folder
from tests.cli.suite_folders import type_command as do
from tests.judges.conftest import completion, vote

SERVICE = """
def ask(input):
    return "Thank you."
"""
SUITE = """
name: x
service: {{python: "svc:ask"}}
inputs: [a]
trials: 6
criteria:
  - {{name: answers, contains: Thank, at_least: 10%}}
  - name: polite
    at_least: 50%
    judge:
      rubric: The reply is polite.
      jurors:
        - chat: {{api: anthropic, model: claude-x, base_url: "{url}/v1"}}
        - chat: {{model: gemini-x, base_url: "{url}/v1beta/openai", api_key_env: GEMINI_API_KEY}}
"""


class Vendors(BaseHTTPRequestHandler):
    """Answers as Anthropic's Messages API and as Google's compatible endpoint."""

    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_anthropic = self.path == "/v1/messages"
        key = self.headers["x-api-key" if is_anthropic else "Authorization"]
        self.asked.append((self.path, key))
        body: dict[str, Any] = completion(vote(passed=True))
        if is_anthropic:
            body = {
                "type": "message",
                "role": "assistant",
                "model": "claude-x",
                "content": [{"type": "text", "text": vote(passed=True)}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 20, "output_tokens": 5},
            }
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def vendors() -> Iterator[str]:
    Vendors.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Vendors)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.requirement(
    "statistical-ci judges",
    "Models of Anthropic and Google are jurors, each with the key of its vendor.",
    "`chat: {api: anthropic}`; Google's endpoint with the protocol of OpenAI as `base_url`",
)
def test_jurors_of_two_vendors_vote(
    vendors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is called by its own protocol and with its own key, and both votes count."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-anthropic")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-google")
    enter_folder(tmp_path, monkeypatch, SERVICE)

    done = do(SUITE.format(url=vendors), "run", "--seed", "1", "--quiet")

    assert done.exit_code == 0
    assert set(Vendors.asked) == {
        ("/v1/messages", "key-of-anthropic"),
        ("/v1beta/openai/chat/completions", "Bearer key-of-google"),
    }
    row = next(one for one in done.output.splitlines() if one.lstrip().startswith("polite "))
    assert "100.0 %" in row
