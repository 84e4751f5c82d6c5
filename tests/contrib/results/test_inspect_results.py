"""Inspect AI logs: samples and epochs as trials, scorers as criteria, archives within bounds."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trialwise as tw
from trialwise.contrib.results.zip_archives import Archive
from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import read_outcomes
from trialwise.outcomes.outcome_rows import OutcomesUnreadable


def sample(identifier: str | int, epoch: int, value: Any = "C", **more: Any) -> dict[str, Any]:
    """A summary as Inspect writes it; a value of None is a sample without scores."""
    scores = {} if value is None else {"match": {"value": value, "answer": "555", "history": []}}
    return {
        "id": identifier,
        "epoch": epoch,
        "input": "What is 15 * 37?",
        "target": "555",
        "metadata": {},
        "scores": scores,
        "model_usage": {"openai/gpt-4o": {"input_tokens": 8, "output_tokens": 4}},
        "started_at": f"2026-11-15T07:20:{epoch:02d}+00:00",
        "total_time": 2.0,
        "working_time": 1.5,
        "completed": True,
        **more,
    }


def header(samples: int = 2, epochs: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "demo/sums",
            "task_version": 0,
            "model": "openai/gpt-4o",
            "dataset": {"samples": samples},
            "config": {"epochs": epochs},
        },
        "results": {"total_samples": samples * epochs, "completed_samples": samples * epochs},
        **more,
    }


def archive(path: Path, members: dict[str, Any]) -> Path:
    file = path / "log.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            packed.writestr(name, json.dumps(content))
    return file


def log(path: Path, samples: list[dict[str, Any]], **head: Any) -> Path:
    return archive(path, {"header.json": header(**head), "summaries.json": samples})


FOUR = [sample(one, epoch) for epoch in (1, 2) for one in (1, "x y/1")]


def test_samples_are_inputs_and_epochs_trials(tmp_path: Path) -> None:
    """With the tokens, the time at work and the moment of each."""
    outcomes = read_outcomes(log(tmp_path, FOUR))
    assert (("match",), ("1", "x y/1"), 4) == (outcomes.criteria, outcomes.inputs, outcomes.planned)
    assert ("sums", "inspect", ()) == (outcomes.name, outcomes.format, outcomes.notes)
    assert {"model": "openai/gpt-4o", "task": "demo/sums", "task_version": "0"} == outcomes.factors
    row = outcomes.rows[0]
    assert (True, "1", 1.5) == (row.passed, row.trial, row.latency_s)
    assert Usage(input_tokens=8, output_tokens=4) == row.usage
    assert 1 == outcomes.rows[2].order - row.order  # type: ignore[operator]


def test_a_json_log_says_the_same_as_an_archive(tmp_path: Path) -> None:
    """Its samples are whole: an error is an object there."""
    broken = sample(2, 1, None, error="sandbox died", retries=2)
    whole = {**broken, "error": {"message": "sandbox died"}, "error_retries": [{}, {}]}
    del whole["retries"]
    file = tmp_path / "log.json"
    file.write_text(json.dumps({**header(), "samples": [*FOUR, whole]}))
    packed = read_outcomes(log(tmp_path, [*FOUR, broken]))
    plain = read_outcomes(file)
    strip = [(r.input_id, r.trial, r.passed, r.error, r.error_class) for r in packed.rows]
    assert strip == [(r.input_id, r.trial, r.passed, r.error, r.error_class) for r in plain.rows]
    assert 3 == packed.rows[-1].attempts == plain.rows[-1].attempts


@pytest.mark.parametrize(
    ("value", "passed"),
    [("C", True), ("I", False), ("N", False), ("P", False), (1, True), (0.0, False), (True, True)],
)
def test_marks_mean_what_inspect_means_by_them(tmp_path: Path, value: Any, passed: bool) -> None:
    """Half right is not right."""
    assert passed is read_outcomes(log(tmp_path, [sample(1, 1, value)])).rows[0].passed


def test_half_right_passes_where_half_is_enough(tmp_path: Path) -> None:
    """As a number, like every other score."""
    samples = [sample(1, 1, "P"), sample(2, 1, "I"), sample(3, 1, 0.7), sample(4, 1, "C")]
    outcomes = read_outcomes(log(tmp_path, samples), pass_at=0.5)
    assert [True, False, True, True] == [row.passed for row in outcomes.rows]
    plain = read_outcomes(log(tmp_path, samples[:2]))
    assert any('Half right ("P"), counted as failures: 1 score.' in n for n in plain.notes)


def test_a_score_between_right_and_wrong_needs_a_threshold(tmp_path: Path) -> None:
    """It is not rounded for the reader."""
    with pytest.raises(OutcomesUnreadable, match=r"summaries.json\[0\]: match: a score of 0.7"):
        read_outcomes(log(tmp_path, [sample(1, 1, 0.7)]))


def test_what_inspect_leaves_out_counts_as_a_failure(tmp_path: Path) -> None:
    """A score of NaN stands for none; it is written as a constant that JSON does not have."""
    unscored = sample(1, 1, float("nan"))
    unscored["scores"]["match"]["reason"] = "grade not parsed"
    outcomes = read_outcomes(log(tmp_path, [unscored, sample(2, 1)]))
    row = outcomes.rows[0]
    assert (False, FailReason.NO_VALUE) == (row.passed, row.reason)
    assert "not scored: grade not parsed" == row.explanation
    assert "counted as failures without a value" in outcomes.notes[0]


@pytest.mark.parametrize(
    ("more", "error_class"),
    [
        ({"error": "RuntimeError('sandbox died')"}, ErrorClass.INFRASTRUCTURE),
        ({"error": "TimeoutError: timed out"}, ErrorClass.TIMEOUT),
        ({"limit": "time"}, ErrorClass.TIMEOUT),
        ({"limit": "working"}, ErrorClass.TIMEOUT),
        ({"limit": "token"}, ErrorClass.NONE),
        ({}, ErrorClass.NONE),
    ],
)
def test_a_sample_without_scores_fails_by_its_class(
    tmp_path: Path, more: dict[str, Any], error_class: ErrorClass
) -> None:
    """Every criterion of the log, whichever scored the others."""
    outcomes = read_outcomes(log(tmp_path, [sample(1, 1), sample(2, 1, None, **more)]))
    row = outcomes.rows[1]
    assert (False, FailReason.NO_VALUE, error_class) == (row.passed, row.reason, row.error_class)


def test_a_sample_that_was_scored_in_spite_of_an_error_keeps_its_score(tmp_path: Path) -> None:
    """What was judged was judged."""
    outcomes = read_outcomes(log(tmp_path, [sample(1, 1, "C", error="late")]))
    assert (True, ErrorClass.NONE) == (outcomes.rows[0].passed, outcomes.rows[0].error_class)


def test_named_values_of_a_scorer_are_criteria(tmp_path: Path) -> None:
    """Some of them may be asked for."""
    path = log(tmp_path, [sample(1, 1, {"polite": 1, "grounded": 0})])
    outcomes = read_outcomes(path)
    assert ("match/polite", "match/grounded") == outcomes.criteria
    assert ("match/grounded",) == read_outcomes(path, result="match/grounded").criteria
    with pytest.raises(OutcomesUnreadable, match="no scorer is called `match`; there are"):
        read_outcomes(path, result="match")


def test_a_list_of_values_is_no_single_result(tmp_path: Path) -> None:
    """Which of them counts is not guessed."""
    with pytest.raises(OutcomesUnreadable, match="not a single result"):
        read_outcomes(log(tmp_path, [sample(1, 1, [1, 0])]))


def test_a_log_without_scores_says_how_to_get_them(tmp_path: Path) -> None:
    """It may have been run with --no-score."""
    with pytest.raises(OutcomesUnreadable, match="inspect score"):
        read_outcomes(log(tmp_path, [sample(1, 1, None)]))


def test_an_old_log_has_one_score_without_a_name(tmp_path: Path) -> None:
    """The first version of the format."""
    old = {"id": 1, "epoch": 1, "score": {"value": "C"}}
    file = tmp_path / "log.json"
    file.write_text(json.dumps({**header(), "version": 1, "samples": [old]}))
    assert ("score",) == read_outcomes(file).criteria


def test_a_log_that_was_cut_off_is_an_unfinished_run(tmp_path: Path) -> None:
    """Its journal is read in order, a sample run again counts once, and the plan is known."""
    start = header(samples=3, epochs=2, status="started")
    del start["status"], start["results"]
    members = {
        "_journal/start.json": start,
        "_journal/summaries/2.json": [sample(1, 1, "C")],
        "_journal/summaries/10.json": [sample(2, 1, "C")],
        "_journal/summaries/1.json": [sample(1, 1, "I"), sample(3, 1, "I")],
    }
    outcomes = read_outcomes(archive(tmp_path, members))
    assert {"1": True, "3": False, "2": True} == {r.input_id: r.passed for r in outcomes.rows}
    assert 6 == outcomes.planned
    assert "'started', with 3 of 6 samples" in outcomes.notes[0]


@pytest.mark.parametrize(
    ("config", "planned"),
    [
        ({"epochs": 2}, 20),
        ({"epochs": 2, "limit": 4}, 8),
        ({"limit": [3, 7]}, 4),
        ({"limit": "4"}, 4),
        ({"limit": "some"}, None),
        ({"sample_id": [1, 2]}, None),
    ],
)
def test_the_plan_of_a_cancelled_log_is_worked_out(
    tmp_path: Path, config: dict[str, Any], planned: int | None
) -> None:
    """From the data set, the epochs and the limit; where they do not tell, it is unknown."""
    head = header(status="cancelled")
    del head["results"]
    head["eval"] |= {"dataset": {"samples": 10}, "config": config}
    outcomes = read_outcomes(
        archive(tmp_path, {"header.json": head, "summaries.json": [sample(1, 1)]})
    )
    assert planned == outcomes.planned


def test_samples_are_read_whole_where_there_are_no_summaries(tmp_path: Path) -> None:
    """An id may hold a slash."""
    members = {"header.json": header(), "samples/1_epoch_1.json": {**sample(1, 1), "events": [1]}}
    members |= {"samples/x y/1_epoch_1.json": sample("x y/1", 1, "I")}
    outcomes = read_outcomes(archive(tmp_path, members))
    assert {"1": True, "x y/1": False} == {row.input_id: row.passed for row in outcomes.rows}


def test_samples_that_were_marked_invalid_are_disclosed(tmp_path: Path) -> None:
    """Somebody's judgement after the fact removes nothing here."""
    assert "marked invalid" in read_outcomes(log(tmp_path, FOUR, invalidated=True)).notes[0]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"readme.json": 1}, "a header.json or a _journal/start.json is expected"),
        ({"header.json": []}, "header.json: an object with the evaluation"),
        ({"header.json": header(), "summaries.json": {}}, "summaries.json: a list of samples"),
        ({"header.json": header(), "summaries.json": [1]}, r"summaries.json\[0\]: a sample with"),
        ({"header.json": header()}, "the log holds no samples"),
    ],
)
def test_an_archive_that_is_no_log_is_refused_with_the_member(
    tmp_path: Path, members: dict[str, Any], message: str
) -> None:
    """And with what was expected there."""
    with pytest.raises(OutcomesUnreadable, match=message):
        read_outcomes(archive(tmp_path, members))


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    """A few kilobytes of zeros may become gigabytes; only this many are unpacked, in all."""
    file = tmp_path / "bomb.eval"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", b" " * 5_000_000)
        for number in range(5):
            packed.writestr(f"part{number}", b" " * 900_000)
    large = pytest.raises(
        OutcomesUnreadable, match=r"header\.json: it unpacks to more than 1,000,000"
    )
    with Archive(file, limit=1_000_000) as opened, large:
        opened.read("header.json")
    many = pytest.raises(OutcomesUnreadable, match="all that was read to 4,000,000")
    with Archive(file, limit=1_000_000) as opened, many:
        [opened.read(f"part{number}") for number in range(5)]


def zstandard_archive(path: Path, member: str, content: bytes) -> Path:
    """An archive with one member in Zstandard: a frame of one raw block, written by hand."""
    size = len(content)
    block = (size << 3 | 1).to_bytes(3, "little")
    frame = b"\x28\xb5\x2f\xfd" + b"\xa0" + size.to_bytes(4, "little") + block + content
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as packed:
        packed.writestr(member, frame)
    data = bytearray(buffer.getvalue())
    crc, length = zlib.crc32(content).to_bytes(4, "little"), size.to_bytes(4, "little")
    for start, shift in ((0, 0), (data.index(b"PK\x01\x02"), 2)):
        data[start + 8 + shift : start + 10 + shift] = (93).to_bytes(2, "little")
        data[start + 14 + shift : start + 18 + shift] = crc
        data[start + 22 + shift : start + 26 + shift] = length
    file = path / "log.eval"
    file.write_bytes(data)
    return file


def test_zstandard_is_read_or_the_way_out_is_named(tmp_path: Path) -> None:
    """Inspect compresses its logs with it, and Python before 3.14 needs a library for it."""
    content = json.dumps(header()).encode()
    file = zstandard_archive(tmp_path, "header.json", content)
    libraries = ("compression.zstd", "backports.zstd", "zstandard")
    with Archive(file) as opened:
        if any(map(is_installed, libraries)):
            assert content == opened.read("header.json")
            return
        with pytest.raises(OutcomesUnreadable, match="Install `zstandard`, or convert it"):
            opened.read("header.json")


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


@pytest.mark.slow
@settings(max_examples=150)
@given(st.integers(0, 600), st.binary(min_size=1, max_size=6), st.booleans())
def test_a_damaged_archive_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes, cut: bool
) -> None:
    """Never a traceback, wherever the damage is."""
    folder = tmp_path_factory.mktemp("damage")
    data = bytearray(log(folder, FOUR).read_bytes())
    data[at : at + len(junk)] = junk
    file = folder / "damaged.eval"
    file.write_bytes(data[: max(4, at)] if cut else data)
    try:
        outcomes = read_outcomes(file)
    except OutcomesUnreadable:
        return
    assert outcomes.rows


def test_a_failing_sample_is_shown_with_its_input_and_its_target(tmp_path: Path) -> None:
    """As a text, or as messages; what is kept elsewhere in the log is left out."""
    texts = ["15 * 37?", [{"role": "user", "content": "15 * 37?"}], "attachment://abc"]
    samples = [
        {"id": place, "epoch": 1, "input": text, "target": "555", "scores": {"m": {"value": "I"}}}
        for place, text in enumerate(texts, 1)
    ]
    document = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(document))

    scored = tw.score(path, at_least=0.5, intent="smoke")

    asked = scored.result.record.texts.inputs
    found = {name: (one.value, one.expected) for (_, name), one in asked.items()}
    assert found == {"1": ("15 * 37?", "555"), "2": ("user: 15 * 37?", "555")}
    stream = io.StringIO()
    scored.show(stream=stream)
    shown = " ".join(stream.getvalue().split())
    assert "15 * 37?" in shown
    assert "expected 555" in shown
