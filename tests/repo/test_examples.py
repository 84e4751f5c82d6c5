"""The examples: each runs offline, in seconds, from its suite file; some from Python as well."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path.parent.name for path in EXAMPLES.glob("*/trialwise.yaml"))
#: What each comes to. The extractor has a weakness on purpose.
CODES = {"json_extraction": 1}
#: Started by the example itself, on a port that is free.
BEHIND = {
    "http_service": ["server.py"],
    **{name: ["model.py"] for name in ("agent", "judge", "model_matrix", "prompt_ab")},
}
NO_NETWORK = """
import socket, sys

def refuse(event, arguments):
    if event == "socket.connect" and arguments[1][0] not in ("127.0.0.1", "::1"):
        raise RuntimeError(f"an example reached out to {arguments[1]}")
    if event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost", None):
        raise RuntimeError(f"an example looked up {arguments[0]}")

sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which every process refuses to leave this machine."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRIALWISE_CACHE": str(folder / "cache"),
        "NO_COLOR": "1",
    }


@pytest.fixture
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A fresh copy of an example."""
    folder = tmp_path / str(request.param)
    made = shutil.ignore_patterns(".trialwise", "__pycache__")
    shutil.copytree(EXAMPLES / folder.name, folder, ignore=made)
    return folder


def run(
    folder: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    before = [sys.executable, *BEHIND[folder.name]] if folder.name in BEHIND else []
    return subprocess.run(
        [*before, sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.slow(
    "guardrail", "http_service", "judge", "model_matrix", "prompt_ab", "rag_answer", "tool_agent"
)
@pytest.mark.parametrize(
    "copied",
    # Another test runs the agent once, with its recording.
    [pytest.param(one, marks=[pytest.mark.slow] if one == "agent" else []) for one in FOLDERS],
    indirect=True,
)
def test_an_example_comes_to_its_verdict(copied: Path, outside: dict[str, str]) -> None:
    """With a seed it comes to the same one again, with another it need not; a stranger agrees."""
    arguments = ("-m", "trialwise.cli.main", "run", "--quiet", "--json", "--seed")
    runs = [run(copied, outside, *arguments, seed) for seed in ("1", "1", "2", "4")]
    verdicts = [_criteria(one.stdout) for one in runs]

    assert CODES.get(copied.name, 0) == runs[0].returncode, runs[0].stderr
    assert verdicts[0] == verdicts[1]
    assert any(verdicts[0] != other for other in verdicts[2:])
    verified = run(copied, outside, "-m", "trialwise.cli.main", "show", "--verify")
    assert 0 == verified.returncode, verified.stdout
    assert "VERIFIED" in verified.stdout


@pytest.mark.parametrize(
    "copied",
    [pytest.param(one, marks=[pytest.mark.slow] if one == "agent" else []) for one in FOLDERS],
    indirect=True,
)
def test_an_example_has_its_page(copied: Path, outside: dict[str, str]) -> None:
    """The verdict is printed before the HTML page is written, and the page is whole."""
    arguments = ("-m", "trialwise.cli.main", "run", "--quiet", "--seed", "1", "-o", "page.html")
    done = run(copied, outside, *arguments)

    assert CODES.get(copied.name, 0) == done.returncode, done.stderr
    shown = done.stdout.splitlines()
    assert "report: page.html" in shown
    assert any(
        line.startswith(("PASS", "FAIL")) for line in shown[: shown.index("report: page.html")]
    )
    assert (copied / "page.html").read_text().rstrip().endswith("</html>")


@pytest.mark.slow("model_matrix")
@pytest.mark.parametrize("copied", ["prompt_ab", "model_matrix"], indirect=True)
def test_an_example_compares_its_arms(copied: Path, outside: dict[str, str]) -> None:
    """The prompt with examples is better; the medium model is not worse, and the small one is."""
    arguments = ("-m", "trialwise.cli.main", "compare", "--quiet", "--json", "--seed", "1")
    done = run(copied, outside, *arguments)
    verdict = json.loads(done.stdout)
    decisions = {(one["arm"], one["criterion"]): one["decision"] for one in verdict["findings"]}

    if copied.name == "prompt_ab":
        expected = {("with-examples", "right-team"): "PASS", ("with-examples", "one-word"): "PASS"}
        assert (done.returncode, decisions) == (0, expected), done.stderr
        return
    expected = {("medium", "right"): "PASS", ("small", "right"): "FAIL"}
    assert (done.returncode, decisions) == (1, expected), done.stderr
    costs = {one["arm"]: one for one in verdict["amounts"] if one["name"] == "cost_usd"}
    # By their prices, six and 25 times cheaper for as many tokens.
    assert costs["medium"]["candidate_mean"] < costs["medium"]["control_mean"] / 5
    assert costs["small"]["candidate_mean"] < costs["small"]["control_mean"] / 20


def _criteria(text: str) -> list[tuple[str, ...]]:
    """What a JSON report says of every criterion."""
    return [
        (one["name"], *(one["facts"].get(name) for name in ("decision", "trials", "passed")))
        for part in json.loads(text)["runs"]
        for one in part["results"]
        if one["kind"] == "criterion"
    ]


@pytest.mark.slow("quickstart-agent.py")
@pytest.mark.parametrize(
    ("copied", "script"),
    [("quickstart", "agent.py"), ("guardrail", "guardrail.py")],
    indirect=["copied"],
)
def test_an_example_runs_from_python_as_well(
    copied: Path, script: str, outside: dict[str, str]
) -> None:
    """And comes to what its suite file comes to with the same seed."""
    seed = {"quickstart": "2", "guardrail": "1"}[copied.name]
    by_python = run(copied, outside, script)
    by_suite = run(copied, outside, "-m", "trialwise.cli.main", "run", "--quiet", "--seed", seed)

    assert 0 == by_python.returncode, by_python.stderr
    assert _lines(by_suite.stdout) == _lines(by_python.stdout)


def _lines(summary: str) -> list[str]:
    """The lines of the criteria."""
    return [line for line in summary.splitlines() if line.startswith("  ") and " trials" in line]


def test_every_example_is_documented() -> None:
    """Each folder has a row on the page of examples, which links to where it is explained."""
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")

    assert [] == [name for name in FOLDERS if f"\n| [{name}](" not in page]


def test_the_baseline_of_the_example_is_the_one_that_its_suite_measures(
    tmp_path: Path, outside: dict[str, str]
) -> None:
    """The counts in the repository are what `trialwise measure` counts with its seed."""
    shutil.copytree(EXAMPLES / "rag_answer", tmp_path / "rag", dirs_exist_ok=True)
    arguments = ("measure", "--trials", "500", "--seed", "1", "--identifier", "again", "--quiet")
    run(tmp_path / "rag", outside, "-m", "trialwise.cli.main", *arguments)
    folder = tmp_path / "rag" / "baselines" / "rag-answer"
    kept, again = (json.loads((folder / f"{one}.json").read_text()) for one in ("2026-11", "again"))

    assert kept["criteria"] == again["criteria"]
    assert kept["latencies_s"] == again["latencies_s"]
