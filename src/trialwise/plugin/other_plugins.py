"""What other plugins do to a test, and what that means for one that is run many times."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["reruns_of", "reseeding_of", "stop_timer", "timeout_of"]


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
