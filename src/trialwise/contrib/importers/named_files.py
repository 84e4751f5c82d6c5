"""Files that a foreign suite names: only those below its own folder are read.

An import writes what it reads into the new suite, which somebody may publish. So a suite that
somebody else wrote must not name a file such as `/etc/passwd` or `../../.ssh/id_rsa`.
"""

from __future__ import annotations

from pathlib import Path

from trialwise.regular_files import FileUnreadable, read_text
from trialwise.suite.input_files import TooManyEntries, find_files
from trialwise.suite.yaml_reading import MAX_BYTES


def is_below(path: Path, folder: Path) -> bool:
    """Return whether a path, with all links followed, leads to a place below a folder.

    >>> is_below(Path("suite/a/../b"), Path("suite")), is_below(Path("suite/../a"), Path("suite"))
    (True, False)
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a NUL in the name, or links in a circle
        return False


class NamedFile:
    """A file that a foreign suite names, read only if it lies below the suite's folder.

    Args:
        folder: The folder of the suite.
        name: The path as the suite writes it, without `file://`.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.path = folder / name
        self._folder = folder

    def read(self) -> str:
        """Read the file.

        Raises:
            FileUnreadable: The file is elsewhere, is missing or cannot be read.
        """
        if not is_below(self.path, self._folder):
            raise FileUnreadable("is not below the folder of the suite")
        return read_text(self.path, limit=MAX_BYTES)


def find_named_files(folder: Path, pattern: str) -> list[str]:
    """Return the files below a folder that a pattern finds, or the one file that it names.

    Raises:
        FileUnreadable: The pattern leads elsewhere, finds nothing, or looks at too many entries.
    """
    if not any(one in pattern for one in "*?["):
        return [pattern]
    if not is_below(folder / pattern, folder):
        raise FileUnreadable("is not below the folder of the suite")
    try:
        found = find_files(pattern, folder)
    except TooManyEntries as error:
        raise FileUnreadable(str(error)) from None
    if not found:
        raise FileUnreadable("finds no file")
    return found
