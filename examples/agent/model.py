"""A pretend model that speaks the chat protocol, and a command to run while it and the shop are up.

    python model.py trialwise run

It refunds orders: it looks one up, pays back what was paid, and says so. Now and then it gets a
number wrong and notices, forgets what it was doing, or calls the same thing again and again, as
models do. By what chance is decided by the seed that comes with every request.
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
    """What the model says next."""
    chance = Random(f"order {seed}").random()
    asked = next(one["content"] for one in messages if one["role"] == "user")
    order = int(re.findall(r"\d+", asked)[0])
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if not results:
        # Takes one digit for another, now and then.
        return _call("find_order", order=order + 90 if chance < 0.2 else order, said="I will look.")
    if results[-1].startswith("Error"):
        return _after_error(order, chance, tries=len(results))
    if results[-1].startswith("refunded"):
        return _answer(f"Done: {results[-1]} for order {order}.")
    paid = json.loads(results[-1])["paid"]
    if chance > 0.97:  # forgets to pay it back
        return _answer(f"Order {order} was for {paid:.2f}.")
    return _call("refund", order=order, amount=float(int(paid)) if chance > 0.93 else paid)


def _after_error(order: int, chance: float, tries: int) -> dict[str, Any]:
    """Notices the mistake, or tries the same again."""
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
        """One turn of a conversation."""
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
        """Say nothing: a run makes many requests."""


def main() -> int:
    """Start both, run the command, and pass on how it ended."""
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
