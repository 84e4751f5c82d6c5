"""Three simulated models with the chat protocol. It runs a command while they are up.

    python model.py trialwise compare

They do sums. The larger a model is, the more often it is right and the longer it takes. The seed
of a request determines when it is wrong.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, NamedTuple


class Model(NamedTuple):
    """How good and how slow a model is."""

    right: float
    seconds: float


MODELS = {
    "large-1": Model(0.94, 0.012),
    "medium-1": Model(0.935, 0.006),
    "small-1": Model(0.80, 0.002),
}


def answer(model: Model, question: str, seed: int) -> str:
    """Return the reply of a model."""
    first, second = map(int, re.findall(r"\d+", question))
    luck, own = Random(f"{question} {seed}"), Random(f"{question} {seed} {model}")
    # What is hard for one model is mostly, but not always, hard for another.
    chance = (own if own.random() < 0.1 else luck).random()
    return f"{first} * {second} = {first * second + (0 if chance < model.right else 10)}"


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    def do_POST(self) -> None:
        """Answer one request."""
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:
            return  # the caller has left
        asked = json.loads(body)
        model = MODELS[asked["model"]]
        time.sleep(model.seconds)
        question = asked["messages"][-1]["content"]
        said = answer(model, question, asked["seed"])
        self._send(
            {
                "model": asked["model"],
                "choices": [
                    {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
                ],
                "usage": {"prompt_tokens": len(question), "completion_tokens": len(said)},
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
    """Start the models, run the command and return its exit code."""
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found = {"MODEL_URL": f"http://127.0.0.1:{server.server_port}"}
    done = subprocess.run(sys.argv[1:], env={**os.environ, **found}, check=False)
    server.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
