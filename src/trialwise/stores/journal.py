"""An append-only journal: what was written before a kill is there after it, whole and once.

One record is one line: a checksum, a sequence number and JSON. A line is handed to the operating
system in a single write, so that killing the process at any instant leaves every earlier line
whole and at most the last one torn; `sync` makes the lines safe from a power cut as well. A torn
last line is dropped when the journal is opened again; damage anywhere else is an error, because
silently losing a paid trial in the middle is worse than stopping.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from trialwise.errors import JournalDamaged, JournalInUse

__all__ = ["Journal", "read_journal"]


class Journal:
    """A journal open for appending; only one process may hold it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "journal.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.append({"trial": 0, "passed": True})
    >>> [record["trial"] for record in read_journal(path)]
    [0]
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise JournalInUse(path) from None
        try:
            records, self._size = _scan(path)
        except BaseException:
            os.close(self._file)
            raise
        self._next = len(records)
        os.ftruncate(self._file, self._size)
        if new:
            _sync_folder(path.parent)

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record to the operating system: it survives the death of this process."""
        line = _line(self._next, record)
        try:
            written = os.write(self._file, line)
            while written < len(line):  # a full disk or a signal may cut a write short
                written += os.write(self._file, line[written:])
        except OSError:
            # Half a line must not stand in front of the next one.
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(line)
        self._next += 1

    def sync(self) -> None:
        """Wait until everything appended survives a power cut."""
        os.fsync(self._file)

    def close(self) -> None:
        """Sync and let go; closing twice is harmless."""
        if self._file >= 0:
            try:
                self.sync()
            finally:
                os.close(self._file)
                self._file = -1

    def __len__(self) -> int:
        return self._next

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Every whole record in order; a torn last line is passed over.

    Raises:
        JournalDamaged: A line that is not the last is not what was written.
    """
    yield from _scan(path)[0]


def _line(number: int, record: Mapping[str, Any]) -> bytes:
    body = f"{number} {json.dumps(record, separators=(',', ':'), allow_nan=False)}".encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _scan(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The records of a journal, and how many bytes of it are whole lines."""
    data = path.read_bytes()
    records: list[dict[str, Any]] = []
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        record = _record(data[start:end], len(records)) if end >= 0 else None
        if record is None:
            # Only the last line may be torn: whatever follows a bad one was written after it.
            if end >= 0 and end + 1 < len(data):
                raise JournalDamaged(path, line=len(records) + 1)
            break
        records.append(record)
        start = end + 1
    return records, start


def _record(line: bytes, number: int) -> dict[str, Any] | None:
    """The record of one line, or None where it is not what was written."""
    checksum, _, body = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    written, _, text = body.partition(b" ")
    if written != b"%d" % number:
        return None
    record = json.loads(text)
    return record if isinstance(record, dict) else None


def _sync_folder(folder: Path) -> None:
    """Make the new file's name survive a power cut too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
