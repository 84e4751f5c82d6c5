"""What other plugins do to a test, and what that means for one that is run many times."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest


def reseeding_of(config: pytest.Config) -> Callable[[int], None] | None:
    """How to seed the random numbers of a trial, where pytest-randomly seeds those of a test.

    It sets the same seed before every phase of a test. Trials of one test would all draw the same
    numbers, and their outcomes would be one outcome, many times.
    """
    if not config.pluginmanager.has_plugin("randomly"):
        return None
    if not config.getoption("randomly_reset_seed", False):
        return None
    from pytest_randomly import _reseed

    def reseed(seed: int) -> None:
        _reseed(config, seed % 2**32)

    return reseed


def stop_timer(item: pytest.Item) -> None:
    """A limit of pytest-timeout is for one run of a body, not for all of them together."""
    cancel = getattr(item.config.hook, "pytest_timeout_cancel_timer", None)
    if cancel is not None:
        cancel(item=item)


def timeout_of(item: pytest.Item) -> float | None:
    """The seconds that pytest-timeout allows a test, where it does."""
    plugin = sys.modules.get("pytest_timeout")
    if plugin is None or not item.config.pluginmanager.has_plugin("timeout"):
        return None
    with contextlib.suppress(AttributeError):  # another version of it
        settings: Any = plugin._get_item_settings(item)
        return float(settings.timeout) if settings.timeout else None
    return None


def reruns_of(config: pytest.Config) -> int:
    """How often pytest-rerunfailures would run every failed test again."""
    if not config.pluginmanager.has_plugin("rerunfailures"):
        return 0
    for name in ("force_reruns", "reruns"):
        given = config.getoption(name, None)
        if given:
            return int(given)
    with contextlib.suppress(ValueError, TypeError):
        return int(config.getini("reruns") or 0)
    return 0


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
