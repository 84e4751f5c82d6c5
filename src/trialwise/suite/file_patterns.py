"""The files that a pattern of a suite finds, with a limit on how many it looks at.

`glob` of the standard library has no limit: `/**/*` would walk through the whole file system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache
from glob import has_magic
from pathlib import Path

#: Entries of folders that one pattern may look at.
MOST_ENTRIES = 100_000


class TooManyEntries(Exception):
    """A pattern looks through more of the file system than it may."""


def find_files(pattern: str, folder: Path) -> list[str]:
    """Find the regular files of a pattern in the order of their names, as `glob` names them.

    `**` stands for any number of folders. A name that begins with a dot is found only by a pattern
    that begins with one.

    Args:
        pattern: Relative to the folder, or absolute.
        folder: Where it starts.

    Raises:
        TooManyEntries: It looks at more than `MOST_ENTRIES` entries.
    """
    search = _Search(folder)
    root, parts = ("/", pattern.strip("/")) if pattern.startswith("/") else ("", pattern)
    names = set(search.expand(root, [part for part in parts.split("/") if part]))
    return sorted(name for name in names if name and os.path.isfile(folder / name))


class _Search:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left = MOST_ENTRIES

    def expand(self, place: str, parts: list[str]) -> Iterator[str]:
        """Yield the paths below a place that the parts of a pattern stand for."""
        if not parts:
            yield place
            return
        first, *rest = parts
        if first == "**":
            yield from self.expand(place, rest)
            for name, is_folder in self._list(place, "*"):
                path = os.path.join(place, name)
                if is_folder:
                    yield from self.expand(path, parts)
                elif not rest:
                    yield path
        elif has_magic(first):
            for name, is_folder in self._list(place, first):
                if is_folder or not rest:
                    yield from self.expand(os.path.join(place, name), rest)
        else:
            yield from self.expand(os.path.join(place, first), rest)

    def _list(self, place: str, pattern: str) -> Iterator[tuple[str, bool]]:
        """Yield the entries of a folder that match, and whether each is a folder."""
        matches = _compile(pattern).match
        try:
            with os.scandir(self._folder / place) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        raise TooManyEntries
                    if matches(entry.name) and (pattern[0] == "." or entry.name[0] != "."):
                        yield entry.name, entry.is_dir()
        except OSError:  # no folder, or not ours to read
            return


@lru_cache(maxsize=64)
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
