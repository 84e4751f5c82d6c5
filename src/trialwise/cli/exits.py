"""One exit code, one meaning."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit status of the process."""

    PASS = 0
    FAIL = 1
    REFUSED = 2
    """Usage, configuration, or a design that cannot support its claim."""
    INCONCLUSIVE = 3
    ERROR = 4
    """Something broke while running; never a verdict."""
    INTERRUPTED = 130
