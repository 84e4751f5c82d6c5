"""What fuzzing found, each as the input that showed it. The page of reliability lists the texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import JournalDamaged
from trialwise.model.lines import seal
from trialwise.services.failures import RecordingError
from trialwise.services.replay import PREFIX, ReplayService
from trialwise.stores.runs import RunStore, StoredRun


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    """A decided run of four trials."""
    criterion = tw.Criterion("right", tw.contains("one"), at_least=0.1)
    result = tw.run(
        tw.Contract("stored", lambda question: question, [criterion]),
        inputs=["one", "two"],
        trials=4,
        curtail=False,
        intent="smoke",
        store=tmp_path,
        progress=False,
    )
    assert result.path is not None
    return RunStore(tmp_path).open(result.path.name)


def seal_lines(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(seal(line, number=n) for n, line in enumerate(lines)))


def unseal_lines(path: Path) -> list[bytes]:
    lines = path.read_bytes().splitlines()
    return [line[: line.rindex(b',"checksum"')] + b"}" for line in lines]


@pytest.mark.parametrize("name", ["journal.jsonl", "texts.jsonl"])
@pytest.mark.parametrize(
    "line",
    [b"{", b"{}", b'{"i":\xc7}', b'{"i":"\x01"}', b'{"a":' * 5000 + b"{}", b'{"a":1},{"b":1}'],
    ids=["half", "empty", "bytes", "control character", "deep", "two"],
)
def test_a_sealed_line_without_a_record(run: StoredRun, name: str, line: bytes) -> None:
    """A line of a journal whose checksum fits and that is no JSON object gave a traceback."""
    path = run.path / name
    lines = unseal_lines(path)
    seal_lines(path, [lines[0], line, *lines[2:]])

    with pytest.raises(JournalDamaged, match="line 2 is damaged"):
        run.record()


@pytest.mark.parametrize(
    "change",
    [
        {"latency_s": "5"},
        {"latency_s": 10**400},
        {"at": None},
        {"reply": 5},
        {"usage": [1, "2"]},
        {"seed": 0.5},
        {"i": -1},
        {"i": True},
        {"ok": ["1"]},
        {"failed": [[0, "condition", {}, "", ""]]},
        {"tool_calls": [5]},
        {"messages": [["user", None]]},
        {"shape": [1, 1, 1, [None], 0]},
        {"exit": "0"},
        {"class": []},
        {"in": "an input that the plan does not have"},
    ],
    ids=str,
)
def test_a_trial_of_wrong_types(run: StoredRun, change: dict[str, Any]) -> None:
    """A trial with a number where a text belongs, or with an unknown input, broke the reports."""
    path = run.path / "journal.jsonl"
    lines = unseal_lines(path)
    seal_lines(path, [lines[0], json.dumps(json.loads(lines[1]) | change).encode(), *lines[2:]])

    with pytest.raises(JournalDamaged, match="line 2 is damaged"):
        run.record()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"}",
        b'"index":0}',
        b'"index":"0","input":"a","reply":{}}',
        b'"index":0,"input":"a"}',
        b'"index":0,"input":"a","error":{"class":"x","message":"m"}}',
        b'"index":0,"input":"a","cancelled_after_s":null}',
    ],
)
def test_a_recording_without_a_reply(line: bytes) -> None:
    """A line of a recording whose checksum fits and that holds no trial gave a traceback."""
    with pytest.raises(RecordingError, match="line 1 of the lines given"):
        ReplayService([seal(PREFIX.encode() + line)])
