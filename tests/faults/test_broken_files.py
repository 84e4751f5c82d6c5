"""Stored runs and results of other tools that lack something are refused in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.faults.command_runs import call, write


@pytest.mark.parametrize("key", ["trials", "verdict", "run_id", "plan_hash"])
def test_a_record_without_a_part_is_refused(tmp_path: Path, key: str) -> None:
    """Exit 2 with the file and what is missing, and no traceback."""
    write(tmp_path)
    assert call(tmp_path, "run", "-q")[0] == 0
    (record,) = tmp_path.glob(".trialwise/runs/*/record.json")
    kept = json.loads(record.read_text(encoding="utf-8"))
    del kept[key]
    record.write_text(json.dumps(kept), encoding="utf-8")
    code, _, errors = call(tmp_path, "show", record.parent.name)

    assert code == 2, errors
    assert f"it has no '{key}'" in errors
    assert "Traceback" not in errors


def test_a_usage_that_is_a_number_is_unknown(tmp_path: Path) -> None:
    """A promptfoo result whose `tokenUsage` is 5 is scored without it."""
    result = {
        "success": True,
        "score": 1,
        "vars": {"q": "a"},
        "response": {"output": "x", "tokenUsage": 5},
        "gradingResult": {"pass": True, "score": 1},
        "testIdx": 0,
        "promptIdx": 0,
    }
    content = {"version": 3, "results": {"version": 3, "results": [result] * 30}}
    (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
    code, _, errors = call(tmp_path, "score", "r.json", "--at-least", "50%")

    assert code in (0, 2), errors
    assert "Traceback" not in errors


def test_a_json_suite_may_escape_an_emoji_as_two_halves(tmp_path: Path) -> None:
    """`json.dumps` writes it so; a half alone is still refused."""
    suite = {
        "name": "s",
        "service": {"python": "agent:f"},
        "inputs": ["\U0001f600", "b"],
        "trials": 20,
        "criteria": [{"name": "c", "equals": "yes", "at_least": "50%"}],
    }
    write(tmp_path, suite=json.dumps(suite))
    assert call(tmp_path, "run", "-q")[0] == 0

    write(tmp_path, suite=json.dumps(suite | {"inputs": ["\ud83d", "b"]}))
    assert call(tmp_path, "check")[0] == 2
