"""A simulated model with the chat protocol. It runs a command while it and the shop are up.

    python model.py trialwise run

It refunds orders: it looks an order up, refunds what was paid, and says so. Like real models, it
sometimes gets a number wrong and notices, forgets a step, or repeats the same call. The seed of
each request determines when that happens.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any


def next_message(messages: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Return the next message of the model."""
    chance = Random(f"order {seed}").random()
    asked = next(one["content"] for one in messages if one["role"] == "user")
    order = int(re.findall(r"\d+", asked)[0])
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if not results:
        # Sometimes it confuses two digits.
        return _call("find_order", order=order + 90 if chance < 0.2 else order, said="I will look.")
    if results[-1].startswith("Error"):
        return _after_error(order, chance, tries=len(results))
    if results[-1].startswith("refunded"):
        return _answer(f"Done: {results[-1]} for order {order}.")
    paid = json.loads(results[-1])["paid"]
    if chance > 0.97:  # forgets the refund
        return _answer(f"Order {order} was for {paid:.2f}.")
    return _call("refund", order=order, amount=float(int(paid)) if chance > 0.93 else paid)


def _after_error(order: int, chance: float, tries: int) -> dict[str, Any]:
    """Correct the mistake, or repeat the same call."""
    if chance >= 0.05:
        return _call("find_order", order=order)
    if tries < 3:
        return _call("find_order", order=order + 90)
    return _answer(f"Sorry, I cannot find order {order}.")


def _answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _call(tool: str, said: str | None = None, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{tool}", "type": "function", "function": function}
    return {"role": "assistant", "content": said, "tool_calls": [call]}


class Handler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions."""

    def do_POST(self) -> None:
        """Answer one turn of a conversation."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = next_message(asked["messages"], asked["seed"])
        document = {
            "model": asked["model"],
            "choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": len(json.dumps(asked["messages"])) // 4,
                "completion_tokens": len(json.dumps(message)) // 4,
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
    """Start the model and the shop, run the command and return its exit code."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    program = [sys.executable, str(Path(__file__).with_name("shop.py")), "http"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as shop:
        try:
            assert shop.stdout is not None
            found = {
                "MODEL_URL": f"http://127.0.0.1:{model.server_port}",
                "SHOP_URL": shop.stdout.readline().strip(),
            }
            done = subprocess.run(sys.argv[1:], env={**os.environ, **found}, check=False)
        finally:
            shop.terminate()
    model.shutdown()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
