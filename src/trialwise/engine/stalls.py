"""Finds out whether this process stood still: stopped by a signal, or on a machine that slept.

A time limit that passed meanwhile says nothing about the service. An event loop cannot tell: it is
late as well when a service blocks it. So a thread that does nothing but wake up notes when it last
did. A service that blocks the loop does not block this thread.
"""

from __future__ import annotations

import os
import threading
import time

_EVERY_S = 0.1
#: A thread that wakes up later than this was not merely waiting for its turn.
_LONGEST_WAIT_S = 0.75


class _Heartbeat:
    """Notes the last time that this process stood still."""

    def __init__(self) -> None:
        self._beat_s = time.monotonic()
        self._stalled_until_s = -1.0
        threading.Thread(target=self._beat, name="trialwise-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(_EVERY_S)
            self._note(time.monotonic())

    def _note(self, now_s: float) -> None:
        if now_s - self._beat_s > _LONGEST_WAIT_S:
            self._stalled_until_s = now_s
        self._beat_s = now_s

    def has_stalled_since(self, began_s: float) -> bool:
        # After a stop the event loop may run before the thread does.
        self._note(time.monotonic())
        return self._stalled_until_s >= began_s


#: By process: a fork has no threads of its parent.
_HEARTBEATS: dict[int, _Heartbeat] = {}


def watch_for_stalls() -> None:
    """Start to watch, if this process does not yet."""
    if os.getpid() not in _HEARTBEATS:
        _HEARTBEATS[os.getpid()] = _Heartbeat()


def has_stalled_since(began_s: float) -> bool:
    """Return whether the process stood still at some time since then.

    Args:
        began_s: By the monotonic clock.
    """
    heartbeat = _HEARTBEATS.get(os.getpid())
    return heartbeat is not None and heartbeat.has_stalled_since(began_s)
