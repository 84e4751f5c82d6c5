"""The tools of a simulated shop, as an MCP server.

python shop.py          uses standard input and output
python shop.py http     listens on a free port and prints its URL
"""

from __future__ import annotations

import socket
import sys

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

ORDERS = {1001: 24.50, 1002: 80.00, 1003: 15.25}

shop = MCPServer("shop", log_level="CRITICAL")


@shop.tool()
def find_order(order: int) -> dict[str, float]:
    """What was paid for an order, by its number."""
    if order not in ORDERS:
        raise ToolError(f"there is no order {order}")
    return {"order": order, "paid": ORDERS[order]}


@shop.tool()
def refund(order: int, amount: float) -> str:
    """Pay an amount back to whoever made an order."""
    if order not in ORDERS or not 0 < amount <= ORDERS[order]:
        raise ToolError(f"{amount} cannot be refunded for order {order}")
    return f"refunded {amount:.2f}"


@shop.tool()
def close_account(order: int) -> str:
    """Close the account of whoever made an order; cannot be undone."""
    return f"the account of order {order} is closed"


def serve_http() -> None:
    """Listen on a free local port until the process ends."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(shop.streamable_http_app(), log_level="critical")
    anyio.run(lambda: uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        shop.run()
