"""A limit on the processor time that a pattern of a suite may take on one reply.

A pattern such as `(a+)+$` takes longer than a human life on some replies of 40 characters. Python's
`re` offers no limit of its own, but it lets signals in. So a timer of the process interrupts it.
The timer counts processor time: a machine that sleeps, or a run that was stopped, uses none.

Signals reach the main thread only. From any other thread, such as that of a notebook's event loop
or a Dask worker, the call goes to a process of its own, which makes it in its main thread. Another
engine for patterns would not do: those with a limit find other matches than `re`, for instance for
`\\w` in Hindi.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from trialwise.errors import BrokenCheck

#: Processor time that one check may take on one reply, in seconds.
LONGEST_CHECK_S = 1.0

T = TypeVar("T")


class TimeIsUp(BaseException):
    """A call took too long. Not an `Exception`, so that no library takes it for its own."""


class ProcessLost(Exception):
    """The process that makes limited calls ended, or cannot be started."""


def call_limited(function: Callable[..., T], *arguments: Any, check: str, subject: str) -> T:
    """Call a function, and end the call where it takes too long.

    Args:
        function: A function of a module, found there by its name.
        arguments: Plain values, which another process can be given.
        check: Names what is applied, such as a pattern.
        subject: Describes what it is applied to.

    Raises:
        BrokenCheck: It took longer than `LONGEST_CHECK_S`, or the process was lost that limits it.
    """
    try:
        if can_interrupt():
            return call_with_timer(function, *arguments, limit_s=LONGEST_CHECK_S)
        from trialwise.checks.limit_process import call_in_process

        return call_in_process(function, *arguments, limit_s=LONGEST_CHECK_S)
    except ProcessLost as error:
        raise BrokenCheck(check, f"could not be made within a limit on its time: {error}") from None
    except TimeIsUp:
        problem = (
            f"took longer than {LONGEST_CHECK_S:g} s of processor time on {subject}: "
            "write a pattern without nested repetition, or an `expression`"
        )
        raise BrokenCheck(check, problem) from None


def call_with_timer(function: Callable[..., T], *arguments: Any, limit_s: float) -> T:
    """Call a function in the main thread, and interrupt it where it takes too long.

    Args:
        function: What is called.
        arguments: What it is called with.
        limit_s: The processor time that it may take.
    """
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
        try:
            return function(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def can_interrupt() -> bool:
    """Return whether a timer can interrupt this thread and nobody else uses it."""
    return (
        threading.current_thread() is threading.main_thread()
        # Another program's timer, or a limit around this one, stays as it is.
        and signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
        # A handler that Python did not install cannot be put back.
        and signal.getsignal(signal.SIGVTALRM) is not None
    )


def _interrupt(_number: int, _frame: object) -> None:
    raise TimeIsUp
