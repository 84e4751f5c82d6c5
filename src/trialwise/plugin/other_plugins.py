"""What other plugins do to a test, and what that means for one that is run many times."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any, TypeVar

import pytest
from anyio import move_on_after

T = TypeVar("T")


def reseeding_of(config: pytest.Config) -> Callable[[int], None] | None:
    """Return how to seed a trial where pytest-randomly seeds tests.

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
    """Return the seconds that pytest-timeout allows a test, where it does."""
    plugin = sys.modules.get("pytest_timeout")
    if plugin is None or not item.config.pluginmanager.has_plugin("timeout"):
        return None
    with contextlib.suppress(AttributeError):  # another version of it
        settings: Any = plugin._get_item_settings(item)
        return float(settings.timeout) if settings.timeout else None
    return None


async def limit_body(limit_s: float | None, body: Awaitable[T]) -> T:
    """Return what a body returns within its limit.

    Raises:
        TimeoutError: It takes longer; a thread that it runs in goes on to its end.
    """
    with move_on_after(limit_s):
        return await body
    raise TimeoutError(f"no end within {limit_s:g} s")


#: Options by which other plugins run failed tests again, by the name the plugin is known by.
_RERUNS = {
    "rerunfailures": ("force_reruns", "reruns"),
    "pytest-retry": ("retries",),
    "flaky": ("force_flaky",),
}


def reruns_failures(config: pytest.Config) -> bool:
    """Return whether another plugin was asked to run every failed test again."""
    for plugin, names in _RERUNS.items():
        if not config.pluginmanager.has_plugin(plugin):
            continue
        for name in names:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                if int(config.getoption(name, None) or 0):
                    return True
                if name != "force_flaky" and int(config.getini(name) or 0):
                    return True
    return False


def drop_rerun_marker(item: pytest.Item) -> None:
    """Take away the marker by which pytest-retry runs every failed test again (`--retries`).

    One that the test itself has was refused when it was collected.
    """
    item.own_markers[:] = [one for one in item.own_markers if one.name != "flaky"]


def refuse_second_run(item: pytest.Item) -> None:
    """Fail a marked test that another plugin calls by itself, such as to run it again.

    Its verdict would be replaced by the outcome of one trial.
    """
    pytest.fail(
        f"{item.nodeid} is marked @pytest.mark.trials, and another plugin calls it by itself. "
        "A decided test is not run again: that would hide a FAIL. Switch that plugin off "
        "(-p no:NAME), or keep it away from this test",
        pytrace=False,
    )


class Reporters:
    """Plugins of a session that write reports of tests, such as those of allure and JSON reports.

    They keep what they saw of a test by its name, which its trials share. What belongs to pytest,
    and what a conftest does around tests, is for trials too.

    Args:
        manager: The session's plugins.
    """

    def __init__(self, manager: pytest.PytestPluginManager) -> None:
        self._manager = manager
        self._plugins = [one for one in manager.get_plugins() if self._reports_tests(one)]
        self._callers: dict[tuple[str, frozenset[object]], Any] = {}

    def leave_out(self, name: str, hooks: Any) -> Any:
        """Return a hook without the reporters.

        Args:
            name: The name of the hook.
            hooks: The hooks of a test, perhaps without some conftest files already.
        """
        if not self._plugins:
            return getattr(hooks, name)
        others: set[object] = getattr(hooks, "remove_mods", set())
        key = name, frozenset(others)
        if key not in self._callers:
            caller = self._manager.subset_hook_caller(name, {*others, *self._plugins})
            self._callers[key] = caller
        return self._callers[key]

    def _reports_tests(self, plugin: object) -> bool:
        kind = plugin if isinstance(plugin, ModuleType) else type(plugin)
        module = getattr(kind, "__module__", None) or getattr(kind, "__name__", "")
        if str(module).partition(".")[0] in ("_pytest", "trialwise", "_trialwise_pytest"):
            return False
        if str(self._manager.get_name(plugin)).endswith("conftest.py"):
            return False
        names = ("pytest_runtest_logreport", "pytest_runtest_logfinish")
        return any(hasattr(plugin, name) for name in names)


def interrupts_of(config: pytest.Config) -> tuple[type[BaseException], ...]:
    """Return the exceptions that end a session instead of failing a test."""
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
