"""A simulated model with the chat protocol. It runs a command while it is up.

    python model.py trialwise compare

It sends support tickets to a team. How well depends on its prompt, as with real models: examples
help with unclear tickets, and a word such as "only" keeps it from talking. The seed of a request
determines when it is wrong, so both prompts meet the same luck.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

TEAMS = {
    "billing": ("invoice", "charged", "refund", "card"),
    "shipping": ("parcel", "delivery", "address", "arrived"),
    "technical": ("crash", "password", "error", "login"),
}


def answer(system: str, ticket: str, seed: int) -> str:
    """Return the reply to a ticket under a prompt."""
    words = ticket.lower()
    named = [team for team, marks in TEAMS.items() if any(mark in words for mark in marks)]
    chance = Random(f"{ticket} {seed}")
    right, talks = chance.random(), chance.random()
    # A ticket that names two teams is unclear, and examples are what helps.
    limit = (0.9 if "Examples" in system else 0.72) if len(named) > 1 else 0.97
    wrong = next(team for team in TEAMS if team not in named[:1])
    team = named[0] if right < limit else wrong
    return team if "only" in system or talks < 0.97 else f"This is for {team}."


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    def do_POST(self) -> None:
        """Answer one request."""
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # the caller has left
        asked = json.loads(body)
        by_role = {one["role"]: one["content"] for one in asked["messages"]}
        said = answer(by_role["system"], by_role["user"], asked["seed"])
        self._send(
            {
                "model": asked["model"],
                "choices": [
                    {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
                ],
                "usage": {
                    "prompt_tokens": len(by_role["system"] + by_role["user"]) // 4,
                    "completion_tokens": len(said) // 4,
                },
            }
        )

    def _send(self, document: dict[str, Any]) -> None:
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, because a comparison makes many requests."""


class Server(ThreadingHTTPServer):
    """Stays quiet where a caller leaves: a comparison that is decided ends what is in flight."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report everything else."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main() -> int:
    """Start the model, run the command and return its exit code."""
    model = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    found = {"MODEL_URL": f"http://127.0.0.1:{model.server_port}"}
    done = subprocess.run(sys.argv[1:], env={**os.environ, **found}, check=False)
    model.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
