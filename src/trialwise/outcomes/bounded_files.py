"""Read files that somebody else wrote, within bounds on their size, and single values of them.

What is wrong with a file is one error that lists every problem with its place.
"""

from __future__ import annotations

import json
import math
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trialwise.errors import TrialwiseError

#: Limit on the size of a file, and on what one member of an archive unpacks to.
MOST_BYTES = 256_000_000

#: A file that is wrong in one line is usually wrong in all of them.
_MOST_PROBLEMS = 10

#: A larger number is not a count of tokens.
_MOST_TOKENS = 10**15


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


class OutcomesUnreadable(TrialwiseError):
    """A result file cannot be read, or lacks what the question needs.

    Args:
        path: The file.
        problems: Each with its place.
        more: Whether reading stopped there, so that there may be others.
    """

    def __init__(self, path: str, problems: tuple[str, ...], *, more: bool = False) -> None:
        count = f"at least {len(problems)}" if more else str(len(problems))
        number = "problem" if problems[1:] == () else "problems"
        head = f"{path}: {count} {number}; nothing was scored"
        super().__init__("\n".join((head, *(f"  {problem}" for problem in problems))))
        self.path = path
        self.problems = problems
        self.more = more


class Problems:
    """Collects the problems of one file, and gives up after ten.

    Args:
        path: The file, as messages name it.

    >>> problems = Problems("runs.jsonl")
    >>> problems.add("line 3", "`passed` must be true or false, got 'maybe'")
    >>> try:
    ...     problems.check()
    ... except OutcomesUnreadable as error:
    ...     print(error)
    runs.jsonl: 1 problem; nothing was scored
      line 3: `passed` must be true or false, got 'maybe'
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._found: list[str] = []

    def add(self, where: str, message: str) -> None:
        """Note a problem, and raise the error once there are too many."""
        self._found.append(f"{where}: {message}" if where else message)
        if len(self._found) >= _MOST_PROBLEMS:
            raise OutcomesUnreadable(self.path, tuple(self._found), more=True)

    def refuse(self, where: str, message: str) -> OutcomesUnreadable:
        """Return the error for a problem that ends the reading."""
        self._found.append(f"{where}: {message}" if where else message)
        return OutcomesUnreadable(self.path, tuple(self._found))

    def check(self) -> None:
        """Raise the error if there are problems."""
        if self._found:
            raise OutcomesUnreadable(self.path, tuple(self._found))


def number(value: Any) -> float | None:
    """Read a finite number, also from text.

    >>> number(7), number("0.5"), number("soon"), number(True)
    (7.0, 0.5, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def amount(value: Any) -> float | None:
    """Read a number of at least 0, such as seconds or dollars."""
    found = number(value)
    return None if found is None or found < 0 else found


def count(value: Any) -> int | None:
    """Read a whole number of at least 0."""
    found = amount(value)
    return None if found is None or found % 1 or found > _MOST_TOKENS else int(found)


def moment(value: Any) -> float | None:
    """Read a time, or any number that grows, as a number; a time without a zone is UTC.

    >>> moment("1970-01-02T00:00:00Z"), moment(7), moment("soon")
    (86400.0, 7.0, None)
    """
    found = number(value)
    if found is not None or not isinstance(value, str):
        return found
    try:
        read = datetime.fromisoformat(value.strip())
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def text_of(value: Any) -> str:
    """Return a single value as text; an empty text for a list or an object."""
    return "" if value is None or isinstance(value, dict | list) else str(value)
