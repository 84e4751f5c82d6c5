"""Where the suite is, and text files, read whole or refused with a reason.

The suite is in the folder at hand or the nearest above it, as git finds its root.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from trialwise.suite.suite_problems import SuiteNotFound

SUITE_NAMES = ("trialwise.yaml", "trialwise.yml")


def find_suite(start: Path) -> Path:
    """Find the suite file that a folder belongs to.

    Args:
        start: Where to begin looking: a folder.

    Raises:
        SuiteNotFound: There is none here or above, or one folder has two.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "deep" / "er").mkdir(parents=True)
    >>> _ = (folder / "trialwise.yaml").write_text("service: {}")
    >>> find_suite(folder / "deep" / "er").name
    'trialwise.yaml'
    """
    try:
        here = start.resolve()
        for folder in (here, *here.parents):
            found = [folder / name for name in SUITE_NAMES if (folder / name).is_file()]
            if len(found) > 1:
                names = " and ".join(path.name for path in found)
                raise SuiteNotFound((), f"{folder} has both {names}: remove one")
            if found:
                return found[0]
    except (OSError, ValueError, RuntimeError) as error:
        raise SuiteNotFound((), f"no suite can be looked for from {start}: {error}") from None
    raise SuiteNotFound(
        (),
        f"no {SUITE_NAMES[0]} in {here} or in a folder above it. "
        "Write one with `trialwise init`, or name a suite file.",
    )


class FileUnreadable(Exception):
    """A file cannot be used, and why, as the rest of a sentence that starts with its name.

    Args:
        reason: Such as "is a folder".
        line: Where in the file, from 0, if it is about a place.
        column: Likewise.
        text: As much of the file as can be shown.
    """

    def __init__(self, reason: str, *, line: int = 0, column: int = 0, text: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column
        self.text = text


def read_text(path: Path, *, limit: int) -> str:
    """Read a file's text; a byte order mark is dropped.

    Args:
        path: Which file.
        limit: The most bytes it may have.

    Raises:
        FileUnreadable: It is not there, no file, too large or not UTF-8.
    """
    return decoded(read_bytes(path, limit=limit))


def read_bytes(path: Path, *, limit: int) -> bytes:
    """Read a file's bytes, if it is a regular file and no larger than a limit."""
    # `run --watch` also waits for files that are not there yet.
    sys.audit("trialwise.read", os.fspath(path))
    try:
        # A pipe would wait for a writer for ever.
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise FileUnreadable("is a folder, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise FileUnreadable("is not a regular file")
        if status.st_size > limit:
            raise FileUnreadable(f"has {status.st_size:,} bytes, at most {limit:,} are read")
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise FileUnreadable(f"cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        # A name with a NUL in it, or half a surrogate pair.
        raise FileUnreadable(f"cannot be a file's name ({error})") from None
    if len(content) > limit:
        raise FileUnreadable(f"has more than {limit:,} bytes")
    return content


def decoded(content: bytes) -> str:
    """UTF-8 as text, or where it is not."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", errors="replace")
        raise FileUnreadable(
            f"is not UTF-8 (byte 0x{content[error.start]:02x} at offset {error.start})",
            line=before.count("\n"),
            column=len(before) - before.rfind("\n") - 1,
            text=content.decode("utf-8", errors="replace"),
        ) from None
