"""The texts of a run on disk: inputs and tracebacks, each once, in a journal of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trialwise.errors import JournalDamaged
from trialwise.model.kept_texts import RunTexts
from trialwise.stores.journal import Journal, read_journal

TEXTS = "texts.jsonl"
_WORDS = ("hash", "x", "in", "value", "traceback")


class TextLog:
    """A journal of texts, whose file is made with the first of them at the latest.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._journal: Journal | None = None

    def make_file(self) -> None:
        """Make the file before the first text; the caller makes its name safe from a power cut."""
        self._journal = Journal(self._path, syncs_folder=False)

    def append(self, record: Mapping[str, Any]) -> None:
        """Hand one record to the operating system: it survives the death of this process."""
        if self._journal is None:
            self._journal = Journal(self._path)
        self._journal.append(record)

    def sync(self) -> None:
        """Wait until everything appended survives a power cut; nothing new takes no time."""
        if self._journal is not None:
            self._journal.sync()

    def close(self) -> None:
        """Sync and let go; closing twice is harmless."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None


def read_texts(path: Path) -> RunTexts:
    """Read the texts of a file; none where there is no file, as in runs of 0.1.0.

    Raises:
        JournalDamaged: A line is not as written.
    """
    if not path.exists():
        return RunTexts()
    lines = read_journal(path)
    for number, line in enumerate(lines, start=1):
        if not _is_text_line(line):
            raise JournalDamaged(path, line=number)
    try:
        return RunTexts.from_lines(lines)
    except (LookupError, TypeError):
        raise JournalDamaged(path, line=len(lines)) from None


def _is_text_line(line: Mapping[str, Any]) -> bool:
    """Return whether the values of a line have the types that a text has; see `trial_lines`."""
    expected = line.get("expected")
    return all(type(line[name]) is str for name in _WORDS if name in line) and (
        expected is None or type(expected) is str
    )
