"""Opens files that somebody else may have put there.

A pipe would wait for a writer for ever, and a device such as `/dev/zero` never ends.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO


def open_regular(path: str | Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It cannot be read, or it is a folder, a pipe or a device.
    """
    # Without waiting; it makes no difference for a regular file.
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        require_regular(file)
        return open(file, "rb")
    except BaseException:
        os.close(file)
        raise


def require_regular(file: int) -> None:
    """Refuse an open file that is not a regular one."""
    mode = os.fstat(file).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def read_regular(path: str | Path) -> bytes:
    """Read the whole content of a file.

    Raises:
        OSError: It cannot be read, or it is a folder, a pipe or a device.
    """
    with open_regular(path) as file:
        return file.read()


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
    """Read a file's bytes, if it is a regular file and no larger than a limit.

    Raises:
        FileUnreadable: It is not there, no file, or too large.
    """
    # `run --watch` also waits for files that are not there yet.
    sys.audit("trialwise.read", os.fspath(path))
    try:
        with open_regular(path) as file:
            # Asked of the open file and not of its path, which may have become another file
            # meanwhile.
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise FileUnreadable(f"has {size:,} bytes, at most {limit:,} are read: split it")
            content = file.read(limit + 1)  # it may still grow
    except IsADirectoryError:
        raise FileUnreadable("is a folder, not a file") from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # as `require_regular` says it
            raise FileUnreadable("is not a regular file") from None
        raise FileUnreadable(f"cannot be read ({error.strerror or error})") from None
    except ValueError as error:
        # A name with a NUL in it, or half a surrogate pair.
        raise FileUnreadable(f"cannot be a file's name ({error})") from None
    if len(content) > limit:
        raise FileUnreadable(f"has more than {limit:,} bytes: split it")
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
