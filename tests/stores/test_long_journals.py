"""Of a long journal the trials are read back one by one; they are those that were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trialwise as tw
from trialwise.errors import JournalDamaged
from trialwise.model import trial_table
from trialwise.model.plain_json import seal, spell_record
from trialwise.model.plan import Plan
from trialwise.stores.journal import read_journal
from trialwise.stores.run_journals import read_trials
from trialwise.stores.runs import RunStore, StoreUnusable


def encode_line(record: dict[str, Any], *, number: int = 0) -> bytes:
    """Spell and seal a record, as a journal does."""
    return seal(spell_record(record).encode("ascii"), number)


def answer(_question: str) -> str:
    """Another reply each time, some of them wrong, and now and then none at all."""
    answer.calls += 1  # type: ignore[attr-defined]
    number = answer.calls  # type: ignore[attr-defined]
    if number % 11 == 0:
        raise ValueError(f"no reply to call {number}")
    return f"{'5' if number % 7 else '4'}, call {number}"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Plan, tw.Result]:
    """A run of 60 trials none of which is held whole."""
    monkeypatch.setattr(trial_table, "WHOLE_BYTES", 0)
    answer.calls = 0  # type: ignore[attr-defined]
    criteria = [tw.Criterion("five", tw.contains("5"), at_least=0.5)]
    contract = tw.Contract("long", answer, criteria, sampling=["a", "b", "c"])
    result = tw.run(contract, trials=60, curtail=False, seed=3, store=tmp_path)
    assert result.path is not None
    return result.path / "journal.jsonl", result.record.plan, result


def test_what_is_read_back_is_what_was_written(
    kept: tuple[Path, Plan, tw.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the run, afterwards, and as when all trials are held whole."""
    path, plan, result = kept
    read = read_trials(path, plan)
    monkeypatch.setattr(trial_table, "WHOLE_BYTES", 1 << 30)
    whole = read_trials(path, plan)

    assert type(read[0]) is not type(whole[0]) is tw.model.Trial
    assert read == whole == result.trials
    assert [one.reply for one in read] == [one.reply for one in whole]
    assert sum(not one.passed for one in whole) == len(result.failures) == read.failures > 10
    (finding,) = result.verdict.findings
    assert sum(one.passed for one in whole) == finding.tally.passed


def test_a_journal_that_is_cut_after_it_was_read_is_named_with_its_line(
    kept: tuple[Path, Plan, tw.Result],
) -> None:
    """What the columns hold is there; a text that is gone is no empty text."""
    path, plan, _ = kept
    trials = read_trials(path, plan)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:40]) + lines[40][:9])

    assert trials[39].reply is not None or trials[39].error
    assert trials[40].index == 40
    with pytest.raises(JournalDamaged, match="line 41"):
        _ = trials[40].reply
    with pytest.raises(JournalDamaged, match="line 41"):  # there are no others
        _ = trials[50].reply


def test_a_journal_that_is_gone_is_named(kept: tuple[Path, Plan, tw.Result]) -> None:
    """Its path and what the system says of it."""
    path, plan, _ = kept
    trials = read_trials(path, plan)
    path.unlink()

    assert trials[5].input_id in "123"
    with pytest.raises(StoreUnusable, match=r"journal\.jsonl: cannot read the journal"):
        _ = trials[5].reply


STRANGE: dict[str, list[Any]] = {
    "latency_s": ["0.5", -1.0, float("inf"), [], True],
    "at": ["0.5", float("inf"), None],
    "seed": ["7", 7.5, None, 2**64],
    "reply": [5, None, ["5"]],
    "in": ["elsewhere", 5, None],
    "i": ["70", 70.0, True, -5],
    "ok": ["", "11", 1, None],
    "x": ["elsewhere"],
}


@pytest.mark.parametrize(
    "change", [{key: value} for key, values in STRANGE.items() for value in values], ids=str
)
def test_a_line_of_another_kind_is_refused_wherever_it_stands(
    kept: tuple[Path, Plan, tw.Result], change: dict[str, Any]
) -> None:
    """Also where trials that passed are held without being made."""
    path, plan, _ = kept
    records = read_journal(path)
    passed = next(one for one in records if one["ok"] == "1")
    try:
        line = encode_line({**passed, "i": 60, **change}, number=len(records))
    except ValueError:  # JSON has no infinity; a foreign writer may have
        body = encode_line({**passed, "i": 60, **dict.fromkeys(change, 7e77)})
        text = body[: body.index(b',"checksum"')] + b"}"
        line = seal(text.replace(b"7e+77", b"Infinity"), number=len(records))
    path.write_bytes(path.read_bytes() + line)

    with pytest.raises(JournalDamaged, match="line 61"):
        read_trials(path, plan)


def test_a_run_is_resumed_from_a_journal_none_of_which_is_held_whole(
    kept: tuple[Path, Plan, tw.Result], tmp_path: Path
) -> None:
    """What a kill leaves, cut at every line: the trials go on as if there had been none."""
    path, _, result = kept
    lines = path.read_bytes().splitlines(keepends=True)
    (path.parent / "record.json").unlink()
    for count in (0, 1, 30, 59, 60):
        path.write_bytes(b"".join(lines[:count]) + b'{"torn')
        trials = RunStore(tmp_path).open(result.record.run_id).trials()
        assert trials == result.trials[:count]
