"""The journal: nothing lost, nothing twice, killed at any instant."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import JournalDamaged, JournalInUse
from trialwise.stores.journal import Journal, read_journal

WRITER = """
import sys
from pathlib import Path
from trialwise.stores.journal import Journal, read_journal
path = Path(sys.argv[1])
journal = Journal(path)
start = len(journal)
print("ready", start, flush=True)
for trial in range(start, start + 100_000):
    journal.append({"trial": trial, "text": "x" * (trial % 200)})
    print(trial, flush=True)
"""


def write(path: Path, count: int) -> bytes:
    """A journal of some records, as bytes."""
    with Journal(path) as journal:
        for trial in range(count):
            journal.append({"trial": trial})
    return path.read_bytes()


@given(st.lists(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.none())))
def test_what_is_written_is_read(records: list[dict[str, object]]) -> None:
    """Any JSON mapping survives, newlines and surrogates of the text included."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        with Journal(path) as journal:
            for record in records:
                journal.append(record)

        assert records == list(read_journal(path))


def test_a_journal_cut_anywhere_keeps_every_whole_line(tmp_path: Path) -> None:
    """At every byte: the lines before the cut are read, the torn one is dropped, and it goes on."""
    data = write(tmp_path / "whole", 5)
    for cut in range(len(data) + 1):
        path = tmp_path / f"cut-{cut}"
        path.write_bytes(data[:cut])
        whole = data[:cut].count(b"\n")
        with Journal(path) as journal:
            assert whole == len(journal)
            journal.append({"trial": "next"})

        trials = [record["trial"] for record in read_journal(path)]
        assert [*range(whole), "next"] == trials


def test_damage_before_the_last_line_is_an_error(tmp_path: Path) -> None:
    """Every byte of the first line, flipped: named by line, and nothing is overwritten."""
    data = write(tmp_path / "whole", 3)
    first = data.index(b"\n")
    for position in range(first):
        damaged = bytearray(data)
        damaged[position] ^= 1
        path = tmp_path / "damaged"
        path.write_bytes(damaged)

        with pytest.raises(JournalDamaged, match="line 1 "):
            Journal(path)
        assert bytes(damaged) == path.read_bytes()


def test_a_repeated_or_missing_line_is_damage(tmp_path: Path) -> None:
    """A line that stands twice would be counted twice; one left out would be lost."""
    lines = write(tmp_path / "whole", 4).splitlines(keepends=True)
    for parts in ([0, 1, 1, 2, 3], [0, 2, 3], [1, 0, 2, 3]):
        path = tmp_path / "shuffled"
        path.write_bytes(b"".join(lines[i] for i in parts))

        with pytest.raises(JournalDamaged):
            list(read_journal(path))


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """The second is told, and the first is not disturbed."""
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.append({"trial": 0})
        with pytest.raises(JournalInUse, match="another run"):
            Journal(path)
        journal.append({"trial": 1})

    assert [0, 1] == [record["trial"] for record in read_journal(path)]


def test_not_a_number_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """A record that JSON cannot carry leaves the journal as it was."""
    with Journal(tmp_path / "journal") as journal:
        with pytest.raises(ValueError, match="JSON"):
            journal.append({"rate": float("nan")})
        journal.append({"rate": 1.0})

    assert 1 == len(list(read_journal(tmp_path / "journal")))


@pytest.mark.slow
def test_killed_at_random_instants_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """kill -9, twelve times, resuming each time: what the writer saw acknowledged is there."""
    path = tmp_path / "journal"
    chance = random.Random(7)
    acknowledged = -1
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            time.sleep(chance.uniform(0.0, 0.05))
            process.send_signal(signal.SIGKILL)
            seen = [int(line) for line in process.stdout.read().split("\n")[:-1]]
        acknowledged = max([acknowledged, *seen])
        trials = [record["trial"] for record in read_journal(path)]

        assert [*range(len(trials))] == trials
        assert acknowledged < len(trials)


def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    """Appending beyond a file size limit fails, and goes on where there is room again."""
    script = """
import resource, signal, sys
from pathlib import Path
from trialwise.stores.journal import Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 100_000))
journal = Journal(Path(sys.argv[1]))
try:
    for trial in range(1000):
        journal.append({"trial": trial})
        print(trial, flush=True)
except OSError:
    print("full", file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
journal.append({"trial": trial})
print(trial, flush=True)
"""
    path = tmp_path / "journal"
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    acknowledged = [int(line) for line in done.stdout.split()]

    assert "full\n" == done.stderr
    assert acknowledged == [record["trial"] for record in read_journal(path)]


def test_a_sync_without_anything_new_asks_the_disk_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one always does: what an earlier process wrote may not be on the disk yet."""
    synced: list[int] = []
    real = os.fsync
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append({"trial": 0})

    def fsync(file: int) -> None:
        synced.append(file)
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)

    with Journal(path) as journal:
        journal.sync()
        journal.sync()
        assert len(synced) == 1
        journal.append({"trial": 1})
        journal.sync()
        assert len(synced) == 2

    assert len(synced) == 2
