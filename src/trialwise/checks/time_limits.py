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

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from trialwise.errors import BrokenCheck

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# A process that makes calls with a limit on their time, for threads that no signal reaches.
#
# `re` keeps the interpreter to itself while it searches, so that no other thread could end a
# search either. The process is started with the first call, takes one call at a time and ends with
# the process that started it. It runs functions of this package only.

_PROGRAM = "from trialwise.checks.time_limits import serve; serve(%d)"
_lock = Lock()
#: The process, and our end of what it is spoken to through.
_process: tuple[subprocess.Popen[bytes], Connection] | None = None


def call_in_process(function: Callable[..., T], *arguments: Any, limit_s: float) -> T:
    """Call a function of this package in the process, and end the call where it takes too long.

    Args:
        function: A function of a module, found there by its name.
        arguments: Plain values.
        limit_s: The processor time that it may take.

    Raises:
        TimeIsUp: It took longer.
        ProcessLost: The process is gone.
    """
    global _process  # noqa: PLW0603 - one for all checks of a process
    with _lock:
        try:
            # The operating system may have ended it since, for instance for want of memory.
            if _process is None or _process[0].poll() is not None:
                _end()
                _process = _start()
            _process[1].send((function, arguments, limit_s))
            kind, value = _process[1].recv()
        except (OSError, EOFError) as error:
            _end()
            raise ProcessLost(f"the process for it was lost ({error})") from None
    if kind == "late":
        raise TimeIsUp
    if kind == "error":
        raise value
    result: T = value
    return result


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    from multiprocessing import Pipe

    package = str(Path(__file__).parents[2])
    paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            # -P: files beside the suite must not replace modules of Python.
            [sys.executable, "-P", "-c", _PROGRAM % theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            pass_fds=[theirs.fileno()],
        )
    return process, ours


@atexit.register
def _end() -> None:
    """End the process. The next call starts a new one."""
    global _process
    held, _process = _process, None
    if held is not None:
        held[1].close()
        # Not `terminate`: whoever waits here must not wait for a search to come to its end.
        held[0].kill()
        held[0].wait()


def _forget() -> None:
    """Leave the process to the parent of a copy of this one."""
    global _process, _lock
    # Another thread may have held the lock at the fork, and it does not exist in the copy.
    held, _process, _lock = _process, None, Lock()
    if held is not None:
        held[1].close()
        held[0].returncode = 0  # it is not ours to wait for


os.register_at_fork(after_in_child=_forget)


def serve(file: int) -> None:
    """Make the calls that come in, until nobody can send any.

    Args:
        file: The open file of the connection.
    """
    from multiprocessing.connection import Connection

    # Ctrl-C is for the run, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(file) as caller, suppress(EOFError):
        while True:
            caller.send(_answer(*caller.recv()))


def _answer(function: Callable[..., Any], arguments: Any, limit_s: float) -> tuple[str, Any]:
    try:
        return "value", call_with_timer(function, *arguments, limit_s=limit_s)
    except TimeIsUp:
        return "late", None
    except Exception as error:
        # Some errors can be written and not be read again: their classes take other arguments than
        # they keep. The caller would then lose the process instead of seeing the error.
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return "error", RuntimeError(f"{type(error).__name__}: {error}")
        return "error", error


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
        call = call_with_timer if can_interrupt() else call_in_process
        return call(function, *arguments, limit_s=LONGEST_CHECK_S)
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
    # The virtual timer and not the real one, which counts while the machine sleeps.
    before = signal.signal(signal.SIGVTALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
        try:
            return function(*arguments)
        finally:
            # Stopped before the handler is put back, which may be one that ends the process.
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
