"""`trialwise score`: verdicts from files, as a shell sees them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trialwise.cli.score_command import command
from trialwise.errors import DesignRefused, TrialwiseError


def do(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], standalone_mode=False)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Two inputs of fifty trials each: 98 of 100 right."""
    lines = [{"input": f"q{number % 2}", "passed": number not in (10, 20)} for number in range(100)]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


@pytest.mark.parametrize(
    ("question", "code"),
    [
        (("--at-least", "90%"), 0),
        (("--at-least", "0.97"), 3),
        (("--at-least", "99.9%"), 1),
        (("--never-fails",), 1),
    ],
)
def test_a_question_gives_a_verdict_and_its_code(
    rows: Path, question: tuple[str, ...], code: int
) -> None:
    """98 of 100 shows 90 %, not 97 %, less than 99.9 %, and is not without a failure."""
    done = do(rows, *question, *(("--intent", "smoke") if "99.9%" in question else ()))
    assert done.return_value == code, done.output
    assert {0: "PASS", 1: "FAIL", 3: "INCONCLUSIVE"}[code] in done.stdout
    assert "98 of 100 trials passed" in done.stdout


def test_without_a_question_there_are_only_metrics(rows: Path) -> None:
    """pass@k and pass^k, and what to ask."""
    done = do(rows)
    assert done.return_value == 0
    assert "k = 1: pass@k 0.980 (naive 0.980), pass^k 0.980 (plug-in 0.980)" in done.stdout
    assert "--at-least" in done.stderr
    assert "PASS" not in done.stdout


def test_json_holds_verdict_and_metrics(rows: Path, tmp_path: Path) -> None:
    """Alone on standard output, with reports beside."""
    done = do(rows, "--at-least", "90%", "--json", "-o", tmp_path / "r.html")
    data = json.loads(done.stdout)
    assert data["verdict"]["decision"] == "PASS"
    assert data["metrics"]["criteria"][0]["trials"] == 100
    assert "<html" in (tmp_path / "r.html").read_text()


def test_mistakes_are_said_in_words(rows: Path, tmp_path: Path) -> None:
    """No rate, two questions, an unreadable file, too few trials."""
    assert "not a rate" in str(do(rows, "--at-least", "ninety").exception)
    both = do(rows, "--at-least", "90%", "--never-fails")
    assert "ask one thing" in str(both.exception)
    (tmp_path / "odd.jsonl").write_text("{not json}\n")
    assert isinstance(do(tmp_path / "odd.jsonl", "--at-least", "90%").exception, TrialwiseError)
    assert isinstance(do(rows, "--at-least", "0.999").exception, DesignRefused)
