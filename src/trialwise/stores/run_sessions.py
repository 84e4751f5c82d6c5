"""Which runs belong together: those of one process, and of the processes that continue it.

A suite or a pytest session that was stopped leaves finished runs and an unfinished one. Resuming
keeps those finished runs, and no older ones: they belong to another session.
"""

from __future__ import annotations

import secrets

#: The name of this process's session, once there is one; the last one joined counts.
_JOINED: list[str] = []


def name_session() -> str:
    """Name the session of this process."""
    if not _JOINED:
        _JOINED.append(secrets.token_hex(6))
    return _JOINED[-1]


def join_session(name: str) -> None:
    """Belong to a session from here on: that of a run that is resumed, or of other workers."""
    if name:
        _JOINED.append(name)
