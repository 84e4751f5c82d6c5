"""An append-only journal: what was written before a kill is there after it, whole and once.

One record is one line of JSON under a checksum that covers its place in the file. A line is handed
to the operating system in a single write, so that killing the process at any instant leaves every
earlier line whole and at most the last one torn; `sync` makes the lines safe from a power cut as
well. A torn last line has no newline. It is dropped when the journal is opened again. Everything
else that is not as written is an error, because losing a paid trial is worse than stopping.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

from trialwise.errors import JournalDamaged, JournalInUse
from trialwise.model.plain_json import LineScan, parse_lines, seal, spell_record
from trialwise.regular_files import open_regular, require_regular
from trialwise.stores._files import StoreUnusable, disk_trouble, sync_folder

#: So many bytes of a journal are read at once.
_PIECE = 1 << 18

#: The journals that this process holds.
_OPEN: WeakSet[Journal] = WeakSet()


class Journal:
    """A journal open for appending; only one process may hold it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    >>> with Journal(path) as journal:
    ...     _ = journal.append({"trial": 0, "passed": True})
    >>> [record["trial"] for record in read_journal(path)]
    [0]

    Args:
        path: The file; it is made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Whether what is there is safe from a power cut is not known yet.
        self._synced: int | None = None
        self._next = self._size = 0
        with disk_trouble(path, "open the journal"):
            self._file = _open_journal(path)
        try:
            with disk_trouble(path, "open the journal"):
                if os.fstat(self._file).st_size:
                    found = scan_journal(path)
                    self._next, self._size = found.count, found.size
                    os.ftruncate(self._file, self._size)
                if not self._size:
                    sync_folder(path.parent)
        except BaseException:
            os.close(self._file)
            raise
        _OPEN.add(self)

    def append(self, record: Mapping[str, Any]) -> int:
        """Hand one record to the operating system: it survives the death of this process.

        Returns:
            Where its line begins, in bytes.
        """
        return self.append_text(spell_record(record))

    def append_text(self, text: str) -> int:
        """Do the same with a record that is spelled as a JSON object in ASCII already."""
        line = seal(text.encode("ascii"), self._next)
        size = len(line)
        try:
            written = os.write(self._file, line)
            while written < size:  # a full disk or a signal may cut a write short
                written += os.write(self._file, line[written:])
        except OSError as error:
            if self._file >= 0:  # otherwise this is a copy of the process, which wrote nothing
                # Half a line must not stand in front of the next one.
                os.ftruncate(self._file, self._size)
            raise StoreUnusable(self._path, "append to the journal", error) from error
        begins = self._size
        self._size += size
        self._next += 1
        return begins

    def sync(self) -> None:
        """Wait until everything appended survives a power cut; nothing new takes no time."""
        size = self._size  # what another thread appends meanwhile is for the next sync
        # A driver asks after every batch, also where nothing came.
        if size == self._synced:
            return
        with disk_trouble(self._path, "sync the journal"):
            os.fsync(self._file)
        self._synced = size

    def close(self) -> None:
        """Sync and let go; closing twice is harmless."""
        if self._file >= 0:
            try:
                self.sync()
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Let go of the file without a word: what a copy of the process does.

        A service may fork. The copy shares the file and its lock, so that it could write between
        the lines of the run, and hold the lock after the run has ended.
        """
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __len__(self) -> int:
        return self._next

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _abandon_all() -> None:
    for journal in list(_OPEN):
        journal.abandon()


os.register_at_fork(after_in_child=_abandon_all)


def read_journal(path: Path) -> list[dict[str, Any]]:
    """Read every whole record in order; a torn last line is passed over.

    Raises:
        JournalDamaged: A line is not what was written.
    """
    return [record for _, record in stream_places(path)]


def stream_places(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield every whole record with the byte at which its line begins; none is held.

    Raises:
        JournalDamaged: A line is not what was written. That is found when the lines before it
            have been read.
    """
    found = LineScan(_read_pieces(path))
    begins = 0
    for lines in found:
        try:
            records = parse_lines(lines)
        except ValueError:
            # Somebody wrote a line with the right checksum, and no record.
            first = found.count - len(lines) + 1
            raise JournalDamaged(path, line=first + _find_broken(lines)) from None
        for line, record in zip(lines, records, strict=True):
            yield begins, record
            begins += len(line) + 1
    _refuse_damage(path, found)


def _find_broken(lines: Sequence[bytes]) -> int:
    """Return the place of the first line that holds no record."""
    for place, line in enumerate(lines):
        try:
            parse_lines([line])
        except ValueError:
            return place
    return 0


class JournalReader:
    """Reads single lines of a journal back; their checksums were looked at when it was opened.

    Args:
        path: The journal.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begins = 0
        self._held = b""

    def read(self, at: int) -> dict[str, Any]:
        """Return the record whose line begins at a byte.

        Raises:
            JournalDamaged: There is none.
        """
        end = self._held.find(b"\n", at - self._begins) if at >= self._begins else -1
        if end < 0:
            self._hold(at)
            end = self._held.find(b"\n")
        try:
            (record,) = parse_lines([self._held[at - self._begins : end]])
        except (ValueError, LookupError, TypeError):
            raise JournalDamaged(self._path, line=self._count_lines(at)) from None
        return record

    def _hold(self, at: int) -> None:
        """Read what follows a byte, at least to the end of its line."""
        # Trials are mostly asked for one after the other, so that few pieces are read twice.
        with disk_trouble(self._path, "read the journal"), self._path.open("rb") as file:
            file.seek(at)
            self._begins, self._held = at, file.read(_PIECE)
            while self._held and b"\n" not in self._held:
                piece = file.read(_PIECE)
                self._held += piece or b"\n"

    def _count_lines(self, at: int) -> int:
        """Return the number of the line that begins at a byte."""
        with disk_trouble(self._path, "read the journal"), self._path.open("rb") as file:
            return file.read(at).count(b"\n") + 1


def _open_journal(path: Path) -> int:
    """Return the file, held against every other process."""
    # To append: not even a second writer could then write over a line.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        file = os.open(path, flags, 0o644)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, flags, 0o644)
    try:
        require_regular(file)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise JournalInUse(path) from None
    except OSError:
        os.close(file)
        raise
    return file


def scan_journal(path: Path) -> LineScan:
    """Count whole records and the bytes of a torn one, without reading what they say."""
    found = LineScan(_read_pieces(path))
    for _ in found:  # every line is looked at, and none is kept
        pass
    _refuse_damage(path, found)
    return found


def _refuse_damage(path: Path, found: LineScan) -> None:
    if found.damaged is not None:
        raise JournalDamaged(path, line=found.damaged)


def _read_pieces(path: Path) -> Iterator[bytes]:
    with disk_trouble(path, "read the journal"), open_regular(path) as file:
        while piece := file.read(_PIECE):
            yield piece
