"""A journal that is not as written is never used in silence."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.faults.command_runs import DIES, YES, call, decisions, journal, write


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A run that was killed after 10 of 20 trials; every further call is an error."""
    write(tmp_path, DIES)
    assert call(tmp_path, "run", "-q")[0] == -9
    (tmp_path / "agent.py").write_text(
        YES.replace("'yes'", "open('calls', 'a').write('.') and 'yes'")
    )
    return tmp_path


def count_calls(folder: Path) -> int:
    calls = folder / "calls"
    return len(calls.read_text()) if calls.exists() else 0


def test_a_journal_without_line_ends_is_refused(killed: Path) -> None:
    """Its only line has its end, so that it was not cut short: 10 paid trials stay."""
    lines = journal(killed).read_bytes()
    damaged = lines.replace(b"\n", b"") + b"\n"
    journal(killed).write_bytes(damaged)
    code, _, errors = call(killed, "run", "-q", "--resume")

    assert (code, count_calls(killed), decisions(killed)) == (2, 0, [])
    assert "line 1" in errors
    assert journal(killed).read_bytes() == damaged


def test_a_last_line_that_was_cut_short_is_named(killed: Path) -> None:
    """Its trial is asked again, and the run says so."""
    journal(killed).write_bytes(journal(killed).read_bytes()[:-20])
    code, _, errors = call(killed, "run", "-q", "--resume")

    assert (code, count_calls(killed), decisions(killed)) == (0, 11, ["PASS"])
    assert "the last line of the journal was cut short" in errors


def test_a_run_that_a_later_one_has_replaced_is_named(killed: Path) -> None:
    """`--resume` follows the newest run only; the older one is not forgotten."""
    (older,) = (one.name for one in killed.glob(".trialwise/runs/*"))
    assert call(killed, "run", "-q")[0] == 0
    code, _, errors = call(killed, "run", "-q", "--resume")

    assert code == 2
    assert older in errors
    assert call(killed, "run", "-q", "--resume", older)[0] == 0
    assert count_calls(killed) == 20 + 10


def flip(data: bytes, random: Random) -> bytes:
    """Return the content with one bit changed."""
    changed = bytearray(data)
    changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def test_no_flipped_bit_loses_a_trial_in_silence(killed: Path) -> None:
    """The journal is refused, or its last newline is lost and the last line is torn."""
    from trialwise.errors import JournalDamaged
    from trialwise.stores.journal import count_torn_bytes, read_journal

    data, random = journal(killed).read_bytes(), Random(7)
    whole = read_journal(journal(killed))
    refused = 0
    for _ in range(2000):
        journal(killed).write_bytes(flip(data, random))
        try:
            found = read_journal(journal(killed))
        except JournalDamaged:
            refused += 1
            continue
        assert found == whole[:-1]
        assert count_torn_bytes(journal(killed)) > 0
    assert refused > 1980
