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
