"""What fuzzing found, each as the input that showed it. The page of reliability lists the texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import JournalDamaged
from trialwise.judges.gold import GoldSetError, read_gold
from trialwise.judges.votes import read_vote
from trialwise.model.plain_json import seal
from trialwise.runtime.verifying import verify
from trialwise.services.replay import PREFIX, ReplayService
from trialwise.services.service_factors import RecordingError
from trialwise.stores.runs import RunStore, StoredRun, StoreUnusable


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
    """A line of a journal whose checksum fits and that is not a JSON object gave a traceback."""
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


def test_a_number_of_thousands_of_digits_in_a_gold_set(tmp_path: Path) -> None:
    """A number of more than 4,300 digits in a gold set gave a traceback."""
    path = tmp_path / "gold.jsonl"
    path.write_text("9" * 5000 + "\n", encoding="utf-8")

    with pytest.raises(GoldSetError, match="line 1 is not JSON"):
        read_gold(path)


def test_a_pattern_of_many_thousand_characters() -> None:
    """A pattern of 250,000 characters took seconds to compile; the longest has 10,000 now."""
    with pytest.raises(tw.InvalidArgument, match="at most 10,000 characters"):
        tw.matches('{"a":' * 50_000)
    assert tw.matches("a" * 10_000).pattern == "a" * 10_000


@pytest.mark.parametrize("name", ["plan.json", "record.json"])
def test_a_file_that_nests_without_end(run: StoredRun, name: str) -> None:
    """A stored file that nests thousands of levels deep gave a traceback."""
    (run.path / name).write_text("[" * 50_000, encoding="utf-8")

    with pytest.raises(StoreUnusable, match="it is not as it was written"):
        StoredRun(run.path).record()


def test_a_confidence_of_hundreds_of_digits() -> None:
    """A judge that answered with a confidence of 400 digits ended the run with a traceback."""
    with pytest.raises(ValueError, match="`confidence` that is not between 0 and 1"):
        read_vote('{"pass": true, "confidence": ' + "9" * 400 + "}")


@pytest.mark.parametrize(
    ("old", "new"), [('"1"', '"9"'), ('"criterion": "right"', '"criterion": "x"')]
)
def test_a_record_of_another_plan(run: StoredRun, old: str, new: str) -> None:
    """A record whose inputs are not those of plan.json broke the reports."""
    path = run.path / "record.json"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(StoreUnusable, match=r"are not those of plan\.json"):
        StoredRun(run.path).record()


def test_a_plan_without_an_order_of_inputs(run: StoredRun) -> None:
    """A record whose plan repeats more inputs than it has broke `show --verify`."""
    record = run.record()
    (experiment,) = record.plan.experiments
    broken = replace(experiment, repetitions=(1, 1, 1, 1, 1))
    plan = replace(record.plan, experiments=(broken,))

    assert not verify(replace(record, plan=plan)).matches
