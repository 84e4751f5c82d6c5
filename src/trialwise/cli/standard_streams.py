"""Keeps exit codes right when a standard stream is closed, full or gone.

A verdict is on disk before it is printed. A reader that has gone must not turn it into an error.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Any, TextIO

#: Standard output as the command's caller reads it, once prints of a service go elsewhere.
_OWN: list[TextIO] = []


def own_output() -> TextIO:
    """Standard output for what the command itself has to say."""
    return _OWN[-1] if _OWN else sys.stdout


def divert_prints() -> None:
    """Send to standard error what a service or a program that it starts prints.

    The service runs in the process of the command, and what it prints must not stand between the
    lines of a result or of JSON.
    """
    sys.stdout.flush()
    own = os.dup(1)
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    _OWN.append(open(own, "w", encoding=encoding, errors=errors))  # noqa: SIM115
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def open_closed_streams() -> None:
    """Open the null device for a stream that the shell closed, so that no file gets its number."""
    while True:
        handle = os.open(os.devnull, os.O_RDWR)
        if handle > 2:
            os.close(handle)
            break
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = _Tolerant(sys.stderr)


class _Tolerant:
    """A stream for messages that drops what cannot be written, so that the command continues."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if that is possible."""
        try:
            self._stream.write(text)
        except OSError:
            mute(2)
        return len(text)

    def flush(self) -> None:
        """Write what waits, if that is possible."""
        try:
            self._stream.flush()
        except OSError:
            mute(2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mute(handle: int) -> None:
    """Send the remaining output to the null device, so that writing fails only once."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, handle)
    os.close(null)
