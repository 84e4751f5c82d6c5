"""A simulated translation service with HTTP. It runs a command while it is up.

    python server.py trialwise run        starts it on a free port, runs the command and stops it
    python server.py                      keeps it up until Ctrl-C

The command finds its URL in AGENT_URL. Like a real service, it is sometimes overloaded and answers
503. That is an infrastructure error, not a wrong answer, and the second attempt succeeds.
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

WORDS = {"cat": "Katze", "dog": "Hund", "house": "Haus", "river": "Fluss"}
refused: set[int] = set()


def translate(word: str, seed: int) -> tuple[int, dict[str, Any]]:
    """Return a status and a document."""
    chance = Random(seed)
    if chance.random() < 0.03 and seed not in refused:
        refused.add(seed)
        return 503, {"error": "overloaded"}
    return 200, {"translation": word if chance.random() < 0.02 else WORDS[word]}


class Handler(BaseHTTPRequestHandler):
    """POST /translate with {"word": ..., "seed": ...}."""

    def do_POST(self) -> None:
        """Translate one word."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, document = translate(asked["word"], asked["seed"])
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, because a run makes many requests."""


def main() -> int:
    """Serve while the command runs, or until Ctrl-C without a command."""
    command = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0 if command else 8765), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    if not command:
        print(f"listening on {url}, until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            server.server_close()
        return 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = subprocess.run(command, env={**os.environ, "AGENT_URL": url}, check=False)
    server.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
