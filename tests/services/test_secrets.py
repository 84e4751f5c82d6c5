"""Secrets are taken out before a text is cut, in journal, record, reports, messages and tapes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.services.test_canaries import write_record

import trialwise as tw
from trialwise.redaction import cut_text, redact_with

KEY = "sk-" + "abcdefgh" * 6
#: So much of a key, anywhere, is too much.
PART = KEY[:12]


def run(folder: Path, suite: str, *arguments: str) -> str:
    """All that a run prints and writes."""
    (folder / "trialwise.yaml").write_text(suite, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trialwise.cli.main", "run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"API_KEY": KEY, "PYTHONUTF8": "1"},
        check=False,
        timeout=60,
    )
    files = [one for one in folder.rglob("*") if one.is_file() and "agent" not in one.name]
    texts = [one.read_bytes().decode("utf-8", "replace") for one in files]
    return "\n".join([done.stdout, done.stderr, *texts])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["http", "chat"])
def test_an_error_page_that_repeats_the_key_leaves_no_part_of_it(
    tmp_path: Path, echo: str, kind: str
) -> None:
    """0.1.0 cut the page at 200 bytes and kept 46 of the 51 characters."""
    services = {
        "http": f'{{http: {{url: "{echo}", headers: {{Authorization: "Bearer ${{API_KEY}}"}}}}}}',
        "chat": f'{{chat: {{base_url: "{echo}v1", model: m, api_key_env: API_KEY}}}}',
    }
    suite = (
        f"name: s\nservice: {services[kind]}\ninputs: [a, b]\ntrials: 12\n"
        "criteria: [{name: c, contains: x, at_least: 50%}]\n"
    )
    left = run(tmp_path, suite, "--record", "tape.jsonl", "-o", "report.html", "-o", "r.json")

    assert (tmp_path / "tape.jsonl").exists()
    assert "500" in left
    assert PART not in left


def test_a_tape_holds_no_more_than_the_journal(tmp_path: Path) -> None:
    """`redact` and the values of `${NAME}` act on recordings, in replies, details and errors."""
    (tmp_path / "agent.py").write_text(
        "import trialwise as tw\n"
        f"KEY = {KEY!r}\n"
        "def f(q, index):\n"
        "    if index % 3 == 2: raise RuntimeError('bad key ' + KEY)\n"
        "    return tw.Reply(value={'said': KEY, KEY: 1}, details={'stderr': [KEY]})\n",
        encoding="utf-8",
    )
    suite = (
        'name: s\nservice: {python: "agent:f"}\ninputs: [a, b]\ntrials: 12\ncurtail: false\n'
        'redact: ["sk-[A-Za-z0-9]+"]\n'
        "criteria: [{name: c, contains: x, at_least: 50%}]\n"
    )
    left = run(tmp_path, suite, "--record", "tape.jsonl")

    tape = (tmp_path / "tape.jsonl").read_text()
    assert len(tape.splitlines()) == 12
    assert "[redacted]" in tape
    assert PART not in left


def test_a_python_service_without_a_suite_scrubs_before_it_cuts(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service knows its own key, whether or not a suite does."""
    monkeypatch.setenv("API_KEY", KEY)
    service = tw.services.HttpService(echo, headers={"Authorization": "Bearer ${API_KEY}"})
    contract = tw.Contract(
        "s", service, [tw.Criterion("c", tw.contains("x"), at_least=0.5)], sampling=["q"]
    )
    result = tw.run(contract, trials=12, store=None, progress=False)

    left = write_record(result)

    assert "500" in left
    assert PART not in left


@pytest.mark.parametrize("place", range(150, 205, 6))
@pytest.mark.parametrize(
    "check",
    [tw.contains("nothing"), tw.starts_with("n" * 170), tw.ends_with("n" * 170), tw.equals("x")],
    ids=["contains", "starts_with", "ends_with", "equals"],
)
def test_evidence_that_cuts_a_reply_shows_no_half_of_a_secret(check: Any, place: int) -> None:
    """Wherever the secret stands in the reply."""
    text = "." * place + KEY + "." * (240 - place)
    contract = tw.Contract(
        "s", lambda _: text, [tw.Criterion("c", check, at_least=0.5)], sampling=["q"]
    )

    def redact(said: str) -> str:
        return said.replace(KEY, "[redacted]")

    result = tw.run(contract, trials=12, store=None, progress=False, redact=redact)

    left = write_record(result)

    assert "....." in left
    assert "sk-abcd" not in left


def test_a_text_is_redacted_before_it_is_cut() -> None:
    """At every limit: either the mark is whole or cut, and nothing of the secret is left."""
    text = f"before {KEY} after" * 3
    with redact_with(lambda said: said.replace(KEY, "[redacted]")):
        for limit in range(1, len(text)):
            assert "sk-" not in cut_text(text, limit)
            assert len(cut_text(text, limit)) <= limit
