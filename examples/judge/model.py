"""A simulated judge with the chat protocol. It runs a command while it is up.

    python model.py trialwise run

It is fairly good: it notices rude words, and whether the reply is about the question. It mistakes
kind words about the topic for an answer, and a short answer for an unkind one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RUDE = ("seriously", "read the page", "everybody knows")
CURT = 40


def verdict(messages: list[dict[str, str]]) -> dict[str, Any]:
    """Return the answer of the judge to the material in the sections."""
    instruction, material = (one["content"] for one in messages)
    token = re.findall(r"<<NAME ([0-9a-f]+)>>", instruction)[0]
    asked, output = (
        re.findall(rf"<<{name} {token}>>\n(.*?)\n<<END {name} {token}>>", material, re.DOTALL)[0]
        for name in ("INPUT", "OUTPUT")
    )
    said = output.lower()
    if any(word in said for word in RUDE):
        return {"reasoning": "The reply is rude.", "pass": False, "confidence": 0.95}
    thing = asked.rstrip("?").split()[-1]
    if thing not in said:
        return {"reasoning": f"Nothing about the {thing}.", "pass": False, "confidence": 0.8}
    if len(output) < CURT:
        return {"reasoning": "Curt: no word of greeting.", "pass": False, "confidence": 0.6}
    return {"reasoning": f"Polite, and about the {thing}.", "pass": True, "confidence": 0.9}


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    def do_POST(self) -> None:
        """Answer one question."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps(verdict(asked["messages"]))
        document = {
            "model": asked["model"],
            "choices": [
                {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            ],
            "usage": {
                "prompt_tokens": len(json.dumps(asked["messages"])) // 4,
                "completion_tokens": len(said) // 4,
            },
        }
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, because a run makes many requests."""


def main() -> int:
    """Start the judge, run the command and return its exit code."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    found = {"JUDGE_URL": f"http://127.0.0.1:{model.server_port}/v1"}
    done = subprocess.run(sys.argv[1:], env={**os.environ, **found}, check=False)
    model.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
