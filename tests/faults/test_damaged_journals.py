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


@pytest.mark.slow
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


@pytest.mark.slow
def test_no_flipped_bit_loses_a_trial_in_silence(killed: Path) -> None:
    """The journal is refused, or its last newline is lost and the last line is torn."""
    from trialwise.errors import JournalDamaged
    from trialwise.stores.journal import read_journal, scan_journal

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
        assert scan_journal(journal(killed)).torn > 0
    assert refused > 1980


@pytest.mark.slow
@pytest.mark.parametrize("name", ["journal.jsonl", "texts.jsonl"])
def test_damage_is_refused_set_aside_and_the_rest_is_used(killed: Path, name: str) -> None:
    """A flipped bit in line 2: nothing is lost but that line, and every trial is there once."""
    path = journal(killed).with_name(name)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = b"".join([lines[0], lines[1].replace(b'"', b"!", 1), *lines[2:]])
    path.write_bytes(damaged)
    run = path.parent.name
    refused = call(killed, "run", "-q", "--resume")
    assert refused[0] == 2
    assert f"trialwise runs --repair {run}" in refused[2]
    assert "DAMAGED" in call(killed, "runs")[1] or name == "texts.jsonl"

    code, output, errors = call(killed, "runs", "--repair", run)
    assert code == 0, errors
    assert "1 damaged line left out" in output
    assert path.with_name(f"{path.stem}.damaged-1.jsonl").read_bytes() == damaged

    assert call(killed, "run", "-q", "--resume")[0] == 0
    asked_again = 1 if name == "journal.jsonl" else 0
    assert count_calls(killed) == 10 + asked_again
    assert decisions(killed) == ["PASS"]
    assert call(killed, "show", "--verify")[0] == 0
    assert call(killed, "runs", "--repair", run)[0] == 2


@pytest.mark.slow
def test_no_damage_loses_more_than_the_damaged_lines(killed: Path) -> None:
    """Every prefix, flipped bits, lost, doubled and swapped lines: the rest is what was written."""
    from trialwise.stores.journal import read_journal
    from trialwise.stores.runs import RunStore

    path, random = journal(killed), Random(3)
    stored = RunStore(killed / ".trialwise").open(path.parent.name)
    data, written = path.read_bytes(), read_journal(path)
    lines = data.splitlines(keepends=True)
    cases = [
        (data[:end], len(data[:end].splitlines(keepends=True))) for end in range(0, len(data), 97)
    ]
    cases += [(flip(data, random), len(written) + 1) for _ in range(60)]
    cases += [
        (b"".join(lines[:3] + lines[4:]), len(written)),
        (b"".join(lines[:3] + lines[2:]), len(written) + 1),
        (b"".join([lines[1], lines[0], *lines[2:]]), len(written)),
        (data.replace(b"\n", b"", 1), len(written)),
    ]
    for content, pieces in cases:
        path.write_bytes(content)
        repair = stored.repair()["journal.jsonl"]
        found = read_journal(path)

        assert [one for one in written if one in found] == found
        assert len(found) == repair.kept >= min(pieces, len(written)) - 2
        if repair.aside is not None:
            assert repair.aside.read_bytes() == content
            repair.aside.unlink()
