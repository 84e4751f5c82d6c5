"""Files that a foreign suite names: only those below its own folder are read.

An import writes what it reads into the new suite, which somebody may publish. So a suite that
somebody else wrote must not name a file such as `/etc/passwd` or `../../.ssh/id_rsa`.
"""

from __future__ import annotations

from pathlib import Path


def is_below(path: Path, folder: Path) -> bool:
    """Return whether a path, with all links followed, leads to a place below a folder.

    >>> is_below(Path("suite/a/../b"), Path("suite")), is_below(Path("suite/../a"), Path("suite"))
    (True, False)
    """
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a NUL in the name, or links in a circle
        return False
