"""The example agent: a scripted model, tools over MCP, and criteria on what it did, offline."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import pytest

from trialwise.engine.ports import TrialContext
from trialwise.model.trace import Trace
from trialwise.services import AgentService, McpServer

pytest.importorskip("mcp")

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent"
RUN = (sys.executable, "-m", "trialwise.cli.main", "run", "--quiet", "--json", "--seed", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example."""
    made = shutil.ignore_patterns(".trialwise", "__pycache__")
    return shutil.copytree(EXAMPLE, tmp_path / "agent", ignore=made)


def typed(folder: Path, *command: str, **environment: str) -> str:
    """What a command prints; it has to end well."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(report: str) -> dict[str, Any]:
    """Passed of all, by criterion."""
    results = json.loads(report)["runs"][0]["results"]
    criteria = [one for one in results if one["kind"] == "criterion"]
    return {one["name"]: (one["facts"]["passed"], one["facts"]["trials"]) for one in criteria}


@pytest.mark.slow
def test_the_example_is_run_recorded_reported_and_replayed(folder: Path) -> None:
    """With the model and the shop up; then again with neither, from the recording alone."""
    first = counts(typed(folder, sys.executable, "model.py", *RUN, "--record", "replies.jsonl"))

    assert 45 == len((folder / "replies.jsonl").read_text().splitlines())
    # The seed makes one session loop on a wrong number, and another forget the refund.
    assert {
        "refunds": (43, 45),
        "right-amount": (43, 45),
        "says-so": (43, 45),
        "no-loops": (44, 45),
        "few-turns": (45, 45),
        "cheap": (45, 45),
        "keeps-accounts": (45, 45),
    } == first
    report = (*RUN[:3], "report", "-o", "report.html")
    typed(folder, *report)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "failed 3 times with the same arguments" in page
    assert page.count('class="calls"') >= 2
    assert "there is no order" in page

    nowhere = "http://127.0.0.1:9"
    replay = (*RUN, "--replay", "replies.jsonl")
    assert first == counts(typed(folder, *replay, MODEL_URL=nowhere, SHOP_URL=nowhere))


@pytest.fixture
def model() -> Iterator[ModuleType]:
    """The example's model, as a module."""
    spec = importlib.util.spec_from_file_location("agent_example_model", EXAMPLE / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_shop_may_be_a_process_of_each_trial(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tools over standard input and output."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    endpoint = ThreadingHTTPServer(("127.0.0.1", 0), model.Handler)
    threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True).start()
    service = AgentService(
        f"http://127.0.0.1:{endpoint.server_port}/v1",
        "scripted-1",
        api_key_env=None,
        send_seed=True,
        servers={"shop": McpServer(command=[sys.executable, "shop.py"], cwd=str(EXAMPLE))},
    )

    async def one() -> Trace | None:
        reply = await service.call(TrialContext(index=0, input="Please refund order 1001.", seed=3))
        await service.aclose()
        return Trace.of(reply)

    trace = anyio.run(one)
    endpoint.shutdown()
    endpoint.server_close()
    assert trace is not None
    assert ["find_order", "refund"] == [call.name for call in trace.tool_calls]
    assert "Done: refunded 24.50 for order 1001." == trace.answer
