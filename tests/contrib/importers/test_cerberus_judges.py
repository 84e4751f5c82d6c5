"""A judge contract of cerberus becomes a judge here: the same panel, threshold and decisions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from trialwise.contrib.importers import ImportRefused, import_cerberus
from trialwise.judges import Judge
from trialwise.model.verdict import Decision
from trialwise.suite import Suite

Write = Callable[[str, str], Path]
Load = Callable[..., Suite]

KEYS = {"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b", "GOOGLE_API_KEY": "c"}


def judged(
    write: Write, contract: str, judges: str = "[{model: gpt-4o}, {model: claude-x}]"
) -> Path:
    """Write a study with one judge contract."""
    write("task.yaml", "input: Say hello.\n")
    return write(
        "cerberus.yaml",
        f"adapter: {{command: 'echo --scenario {{{{scenario}}}}'}}\njudges: {judges}\n"
        f"studies:\n  - name: s\n    scenario: task.yaml\n    contracts:\n"
        f"      - {{name: kind, type: judge, rubric: Be kind., {contract}}}\n",
    )


@pytest.mark.requirement(
    "statistical-ci import",
    "Judge contracts of cerberus are carried over with their rubric, panel and threshold.",
    "`trialwise import cerberus.yaml` writes `judge:` with its jurors and votes",
)
@pytest.mark.parametrize(
    ("judges", "votes"),
    [
        (["gpt-4o"], 1),
        (["gpt-4o"], 3),
        (["gpt-4o", "claude-x"], 1),
        (["gpt-4o", "claude-x"], 3),
        (["gpt-4o", "claude-x", "gemini-y"], 3),
        (["gpt-4o", "claude-x", "gemini-y"], 7),
        (["o1", "o3-mini", "o4-mini"], 2),
    ],
)
def test_the_panel_asks_every_model_as_often_as_cerberus_does(
    write: Write, load: Load, judges: list[str], votes: int
) -> None:
    """cerberus asks `judges[i % len(judges)]` for vote i, and a tie fails."""
    listed = "[" + ", ".join(f"{{model: {one}}}" for one in judges) + "]"
    imported = import_cerberus(judged(write, f"judge_panel: {votes}, threshold: 0.8", listed))
    (contract,) = load(imported, KEYS).contracts
    (check,) = contract.contract.criteria[0].checks

    assert isinstance(check, Judge)
    theirs = Counter(judges[vote % len(judges)] for vote in range(votes))
    ours = Counter(
        check.jurors[vote % len(check.jurors)].name.split()[-1] for vote in range(check.votes)
    )
    assert sorted(theirs.values()) == sorted(ours.values())
    assert votes == check.votes
    assert check.quorum is None  # more than half: a tie fails
    assert "Be kind." == check.rubric


def test_every_vendor_is_called_at_its_own_endpoint_with_its_own_key(write: Write) -> None:
    """OpenAI, Anthropic by its own API, and Google by the protocol of OpenAI."""
    listed = "[{model: gpt-4o}, {model: claude-x}, {model: gemini-y}]"
    imported = import_cerberus(judged(write, "judge_panel: 3", listed))
    jurors = imported.suite["criteria"][0]["judge"]["jurors"]

    assert [
        {"chat": {"model": "gpt-4o"}},
        {"chat": {"model": "claude-x", "api": "anthropic"}},
        {
            "chat": {
                "model": "gemini-y",
                "base_url": "https://generativelanguage.googleapis.com/v1beta/openai",
                "api_key_env": "GOOGLE_API_KEY",
            }
        },
    ] == jurors


def test_what_cannot_be_carried_over_is_listed_with_its_line(write: Write) -> None:
    """A gold set of scenarios, the split of its errors, and the place of a reference."""
    write("gold.yaml", "provenance: by hand\nentries: [{scenario: task.yaml, label: pass}]\n")
    split = "alpha_split: {alpha_c: 0.5, alpha_a: 0.5}"
    imported = import_cerberus(judged(write, f"gold_set: gold.yaml, {split}, source: The text."))
    notes = "\n".join(imported.notes)

    assert "Line 7: `gold_set` is not carried over" in notes
    assert "Line 7: `alpha_split` is not carried over" in notes
    assert "Line 7: `source` stands at the end of the rubric" in notes
    assert imported.suite["criteria"][0]["judge"]["rubric"].endswith(
        "Reference source:\nThe text.\n"
    )


@pytest.mark.parametrize(
    ("contract", "judges", "message"),
    [
        ("threshold: 0.9", "[]", "need at least one model in `judges`"),
        ("threshold: 0.9", "[{model: llama3}]", "cerberus knows no vendor of `llama3`"),
        ("judge_panel: 0", "[{model: gpt-4o}]", "`judge_panel` must be a whole number"),
        (
            "judge_panel: 4",
            "[{model: gpt-4o}, {model: gpt-4o}, {model: o1}]",
            "list each model once in `judges`",
        ),
        ("gold_set: none.yaml", "[{model: gpt-4o}]", "none.yaml cannot be read"),
        ("gold_set: ../up.yaml", "[{model: gpt-4o}]", "not below the folder"),
        ("alpha_split: {alpha_c: 1}", "[{model: gpt-4o}]", "`alpha_split` needs `alpha_a`"),
    ],
)
def test_what_cerberus_refuses_is_refused_with_its_place(
    write: Write, contract: str, judges: str, message: str
) -> None:
    """Never a traceback, and never a judge that asks others than cerberus does."""
    with pytest.raises(ImportRefused, match=re.escape(message)) as caught:
        import_cerberus(judged(write, contract, judges))

    assert all(one.line >= 1 for one in caught.value.problems)


class Answers(BaseHTTPRequestHandler):
    """A juror that finds every third reply unkind."""

    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        verdict = json.dumps({"pass": type(self).asked % 3 != 0, "reasoning": "so"})
        body = json.dumps({"choices": [{"message": {"content": verdict}}]}).encode()
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - inherited
        """Say nothing."""


def test_a_judged_contract_is_decided_at_the_trial_where_cerberus_decides_it(
    write: Write, load: Load
) -> None:
    """One reply in three fails at 0.9: +ln(9/8) twice and −ln 2 once, FAIL at −ln 16."""
    from trialwise.runtime.running import run

    imported = import_cerberus(judged(write, "threshold: 0.9", "[{model: gpt-4o}]"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    (juror,) = imported.suite["criteria"][0]["judge"]["jurors"]
    juror["chat"]["base_url"] = f"http://127.0.0.1:{server.server_port}/v1"
    (contract,) = load(replace(imported), KEYS).contracts
    try:
        result = run(contract.contract, options=contract.options, store=None, progress=False)
    finally:
        server.shutdown()
        server.server_close()
    (finding,) = result.verdict.findings

    # By hand, in whole numbers: 16 · (9/8)^passes ≤ 2^failures ends with FAIL.
    trials = next(
        n for n in range(1, 51) if 16 * 9 ** (n - n // 3) <= 8 ** (n - n // 3) * 2 ** (n // 3)
    )
    assert (Decision.FAIL, trials) == (finding.decision, finding.tally.trials)
    # It advises, as a judge without a gold set does in cerberus.
    assert finding.advisory
    assert Decision.INCONCLUSIVE is result.verdict.decision
