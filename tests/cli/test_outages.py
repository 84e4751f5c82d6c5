"""The same outage by suite, Python and pytest, with exceptions of real clients: never a FAIL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import trialwise as tw

#: Nobody listens on the port for discarded packets.
AGENT = """
import httpx2
import requests

NOBODY = "http://127.0.0.1:9/ask"

class Busy(Exception):
    status_code = 429

def by_requests(question):
    return requests.post(NOBODY, timeout=5).text

def by_httpx(question):
    return httpx2.post(NOBODY).text

def by_status(question):
    raise Busy("slow down")
"""
SUITE = """
service: {{python: "agent:{name}"}}
inputs: [a, b]
retries: 0
criteria: [{{name: safe, not_contains: "4111", at_least: 90%}}]
"""
TEST = """
import agent
import pytest

@pytest.mark.trials(at_least=0.9)
@pytest.mark.parametrize("name", ["by_requests", "by_httpx", "by_status"])
def test_safe(name):
    assert "4111" not in getattr(agent, name)("a")
"""
CLIENTS = ["by_requests", "by_httpx", "by_status"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.slow("by_httpx")
@pytest.mark.parametrize("name", CLIENTS)
def test_an_outage_in_a_suite_is_inconclusive(folder: Path, name: str) -> None:
    (folder / "trialwise.yaml").write_text(SUITE.format(name=name))

    done = run(folder, "trialwise.cli.main", "run", "-q")

    assert done.returncode in (3, 4), done.stderr
    assert "INCONCLUSIVE" in done.stdout
    assert "FAIL " not in done.stdout


@pytest.mark.parametrize("name", CLIENTS)
def test_an_outage_in_python_is_inconclusive(folder: Path, name: str) -> None:
    scope: dict[str, object] = {}
    exec((folder / "agent.py").read_text(), scope)
    criterion = tw.Criterion("safe", tw.not_contains("4111"), at_least=0.9)
    contract = tw.Contract("x", scope[name], [criterion])

    result = tw.run(contract, inputs=["a", "b"], store=None, progress=False, retries=0)

    assert result.decision is tw.Decision.INCONCLUSIVE


@pytest.mark.slow
def test_an_outage_in_pytest_is_inconclusive(folder: Path) -> None:
    """A test that is INCONCLUSIVE fails the session, and no verdict is FAIL."""
    (folder / "test_agent.py").write_text(TEST)

    done = run(folder, "pytest", "-q", "-p", "no:cacheprovider")

    assert done.returncode == 1
    assert "3 verdicts: 3 INCONCLUSIVE" in done.stdout, done.stdout


#: The first calls are refused, as many as the second argument says.
REFUSED = """
calls = 0

def answer(question):
    global calls
    calls += 1
    if calls <= {refused}:
        raise ConnectionRefusedError("nobody there")
    return "fine"
"""
REFUSED_SUITE = """
service: {{python: "agent:answer"}}
inputs: [a, b]
retries: {retries}
criteria: [{{name: fine, contains: fine, at_least: 90%}}]
"""


@pytest.mark.parametrize(("refused", "retries", "code"), [(999, 0, 3), (1, 0, 0), (1, 1, 0)])
def test_an_outage_that_was_recorded_is_played_back_as_one(
    tmp_path: Path, refused: int, retries: int, code: int
) -> None:
    """An outage is INCONCLUSIVE and one refused call is asked again, from a recording as well."""
    (tmp_path / "agent.py").write_text(REFUSED.format(refused=refused))
    (tmp_path / "trialwise.yaml").write_text(REFUSED_SUITE.format(retries=retries))

    recorded = run(tmp_path, "trialwise", "run", "-q", "--seed", "1", "--record", "r.jsonl")
    replayed = run(tmp_path, "trialwise", "run", "-q", "--seed", "1", "--replay", "r.jsonl")

    assert (code, code) == (recorded.returncode, replayed.returncode), replayed.stdout
    rows = [
        [line for line in one.stdout.splitlines() if line.startswith("  fine")]
        for one in (recorded, replayed)
    ]
    assert rows[0] == rows[1]
