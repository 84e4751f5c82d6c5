"""Read files that somebody else wrote, within bounds on their size."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from trialwise.outcomes.outcome_problems import OutcomesUnreadable

__all__ = [
    "MOST_BYTES",
    "decode_text",
    "parse_json",
    "read_content",
    "read_head",
    "read_whole",
    "refuse_file",
]

#: Limit on the size of a file, and on what one member of an archive unpacks to.
MOST_BYTES = 256_000_000


def read_whole(path: Path, *, limit: int = MOST_BYTES) -> bytes:
    """Read a regular file, if it is not too large."""
    try:
        status = os.stat(path)
        # A pipe would wait for a writer for ever.
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise refuse_file(path, f"this is {kind}, and a file of outcomes is expected")
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise refuse_file(path, f"the file cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # a name with a NUL in it
        raise refuse_file(path, f"this cannot be a file's name ({error})") from None
    if len(content) > limit:
        raise refuse_file(
            path, f"the file has more than {limit:,} bytes; split it, or leave out texts"
        )
    return content


def read_content(path: Path) -> bytes:
    """Read a regular file that holds something."""
    content = read_whole(path)
    if not content.strip():
        raise refuse_file(path, "the file is empty")
    return content


def read_head(path: Path, size: int = 4) -> bytes:
    """Read the first bytes of a file; nothing where it cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(size)
    except (OSError, ValueError):
        return b""


def decode_text(content: bytes, path: str) -> str:
    """Decode UTF-8, and drop a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        byte = f"byte 0x{content[error.start]:02x}"
        raise OutcomesUnreadable(path, (f"line {line}: UTF-8 is expected, found {byte}",)) from None


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON document; NaN and the infinities are accepted, as Python and others write them.

    Raises:
        ValueError: It is not JSON; the message says where.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None


def refuse_file(path: Path, message: str) -> OutcomesUnreadable:
    """Return the error for a file that cannot be read at all."""
    return OutcomesUnreadable(str(path), (message,))
