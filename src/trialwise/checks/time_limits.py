"""A limit on the processor time that a pattern of a suite may take on one reply.

A pattern such as `(a+)+$` takes longer than a human life on some replies of 40 characters. Python's
`re` offers no limit of its own, but it lets signals in. So a timer of the process interrupts it.
The timer counts processor time: a machine that sleeps, or a run that was stopped, uses none.

Signals reach the main thread only. In any other thread, such as that of a notebook's event loop or
a Dask worker, there is no limit.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from trialwise.errors import BrokenCheck

#: Processor time that one check may take on one reply, in seconds.
LONGEST_CHECK_S = 1.0


class _TooLong(BaseException):
    """The time is up. Not an `Exception`, so that no library takes it for its own."""


@contextmanager
def limit_time(check: str, subject: str) -> Iterator[None]:
    """Interrupt what takes too long in the block.

    Args:
        check: Names what is applied, such as a pattern.
        subject: Describes what it is applied to.

    Raises:
        BrokenCheck: It took longer than `LONGEST_CHECK_S`.
    """
    if not _can_interrupt():
        yield
        return
    try:
        before = signal.signal(signal.SIGVTALRM, _interrupt)
        signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CHECK_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)
    except _TooLong:
        problem = (
            f"took longer than {LONGEST_CHECK_S:g} s of processor time on {subject}: "
            "write a pattern without nested repetition, or an `expression`"
        )
        raise BrokenCheck(check, problem) from None


def _can_interrupt() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        # Another program's timer, or a limit around this one, stays as it is.
        and signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
        # A handler that Python did not install cannot be put back.
        and signal.getsignal(signal.SIGVTALRM) is not None
    )


def _interrupt(_number: int, _frame: object) -> None:
    raise _TooLong
