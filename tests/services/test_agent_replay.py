"""A recording of an agent is judged where neither its SDK nor its key is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace
from trialwise.services import CallableService, RecordingService

SUITE = """
name: refunds
service:
  agent:
    model: small-1
    servers: {shop: {url: "http://127.0.0.1:9/mcp"}}
inputs: [Refund order 1.]
criteria:
  - {name: refunds, tool_called: refund, at_least: 50%}
  - {name: says-so, as_expected: contains, at_least: 50%}
trials: 4
intent: smoke
"""

#: What an environment without the extra is like: neither module is to be found.
WITHOUT_SDK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import importlib.util
found = importlib.util.find_spec
def find_spec(name, package=None):
    try:
        return found(name, package)
    except ModuleNotFoundError:
        return None
importlib.util.find_spec = find_spec
from trialwise.cli.main import main
main()
"""


def recorded(file: Path) -> None:
    """Four replies of an agent, as its service would have given them."""

    def answer(question: str) -> Reply:
        trace = Trace(
            tool_calls=(ToolCall(name="refund", server="shop", result="done"),),
            answer=f"Done: {question}",
            ended="answer",
        )
        return trace.to_reply()

    async def record() -> None:
        service = RecordingService(CallableService(answer), file)
        for index in range(4):
            await service.call(TrialContext(index=index, input="Refund order 1.", seed=index))
        await service.aclose()

    anyio.run(record)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite with an agent, and a recording beside it."""
    recorded(tmp_path / "replies.jsonl")
    inputs = "inputs: [{value: Refund order 1., expected: Done}]"
    suite = SUITE.replace("inputs: [Refund order 1.]", inputs)
    (tmp_path / "trialwise.yaml").write_text(suite)
    return tmp_path


def typed(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SDK, *arguments],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_replayed_agent_needs_neither_its_sdk_nor_its_key(folder: Path) -> None:
    """Nothing of it is called."""
    done = typed(folder, "run", "--replay", "replies.jsonl", "--json", "--quiet")

    assert 0 == done.returncode, done.stderr
    verdict = json.loads(done.stdout)
    assert "refunds" in json.dumps(verdict)


def test_without_a_recording_both_are_asked_for_before_the_first_trial(folder: Path) -> None:
    """With the name of the variable, the key that names another, and the way to the SDK."""
    keyless = typed(folder, "run", "--quiet")
    without = typed(folder, "run", "--quiet", OPENAI_API_KEY="k")

    assert (2, 2) == (keyless.returncode, without.returncode)
    assert "OPENAI_API_KEY is not" in keyless.stderr
    assert "`api_key_env`" in keyless.stderr
    assert "pip install 'trialwise[mcp]'" in without.stderr
    assert not (folder / ".trialwise").exists()


def test_what_is_wrong_with_the_description_is_refused_all_the_same(folder: Path) -> None:
    """A recording stands for the service, not for the suite."""
    suite = folder / "trialwise.yaml"
    suite.write_text(suite.read_text().replace("model:", "modell:"))

    done = typed(folder, "run", "--replay", "replies.jsonl", "--quiet")

    assert 2 == done.returncode
    assert "unknown key `modell`" in done.stderr
