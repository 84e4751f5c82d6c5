"""Opens files that somebody else may have put there.

A pipe would wait for a writer for ever, and a device such as `/dev/zero` never ends.
"""

from __future__ import annotations

import errno
import os
import stat
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
