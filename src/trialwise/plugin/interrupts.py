"""Ctrl-C: what stops a session, and a better moment for it.

Not between the setup of a fixture and the note to tear it down: what is set up is torn down.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

__all__ = ["held_back", "interrupts_of"]


def interrupts_of(config: pytest.Config) -> tuple[type[BaseException], ...]:
    """What ends a session instead of failing a test; a debugger wants to see Ctrl-C itself."""
    ends: type[BaseException] = pytest.exit.Exception
    return (ends,) if config.getoption("usepdb", False) else (ends, KeyboardInterrupt)


@contextmanager
def held_back() -> Iterator[None]:
    """Let the first Ctrl-C wait for the end of the block; a second one is raised at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal waiting
        waiting = True
        signal.signal(signal.SIGINT, before)

    before = signal.getsignal(signal.SIGINT)
    if not callable(before):  # ignored, or not Python's to handle
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        # A fixture may have put its own in place: that one stays.
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)
