"""Runs a command that calls a service in a child process, so that the exit code is always right.

A service runs in the process of the command and can end it: with `os._exit`, `os.execv`, an exit in
a task, a hook at exit. The status of such a process says nothing about a verdict. So the command
runs in a forked child, which reports its exit code through a pipe when it has one. The parent
returns the reported code, and no other: a child that ends without a report ends the command with 4.

Only the parent is what a shell or a CI server sees. It passes signals on to the child, and the
child does not outlive it. Without `os.fork` (Windows) the command runs in one process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from trialwise.cli.exits import ExitCode

#: They call services or import functions that a suite names.
SUPERVISED = frozenset(
    {"run", "rerun", "measure", "check", "compare", "choose", "explore", "judge", "doctor"}
)
#: How long threads and hooks at exit may take after the verdict.
_ENDING_S = 5.0

Report = Callable[[int], None]


def calls_service(arguments: Sequence[str]) -> bool:
    """Return whether a command line can call code that is not ours.

    >>> calls_service(["run", "-q"]), calls_service(["run", "--help"]), calls_service(["show"])
    (True, False, False)
    """
    # A watch starts a process for each run.
    if not {"-h", "--help", "--watch"}.isdisjoint(arguments):
        return False
    return next((one for one in arguments if not one.startswith("-")), "") in SUPERVISED


def fork_supervised() -> Report | None:
    """Continue in a child process; the parent waits for it and never returns from here.

    Returns:
        In the child, the function that reports the exit code; None where processes cannot fork.
    """
    if not hasattr(os, "fork"):
        return None
    import signal

    passed_on = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    code_in, code_out = os.pipe()
    life_in, life_out = os.pipe()
    # A signal that comes before both processes know how to handle it waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, passed_on)
    try:
        child = os.fork()
    except OSError:  # no further process is allowed: one is better than none
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
        return None
    if child:
        os.close(code_out)
        os.close(life_in)
        for one in passed_on:
            # What is ignored (nohup, a job in the background) stays ignored, here and in the child.
            if signal.getsignal(one) is not signal.SIG_IGN:
                signal.signal(one, lambda number, _frame: os.kill(child, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
        _, status = os.waitpid(child, 0)
        _end_parent(_read_code(code_in), status)
    os.close(code_in)
    os.close(life_out)
    _die_with_parent(life_in)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _InterruptOnce())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, passed_on)
    own = os.getpid()

    def report(code: int) -> None:
        if os.getpid() != own:
            # A service forked, and this copy of the command came to its end as well.
            os._exit(ExitCode.ERROR)
        try:
            os.write(code_out, b"%d\n" % code)
        except OSError:  # a service closed it: the parent then says that it heard nothing
            return

    return report


class _InterruptOnce:
    """Raise KeyboardInterrupt, but once for one Ctrl-C.

    A terminal sends it to both processes, and the parent passes its own on.
    """

    def __init__(self) -> None:
        self._last_s = float("-inf")

    def __call__(self, _number: int, _frame: Any) -> None:
        from time import monotonic

        from trialwise.runtime.looping import INTERRUPT_TWIN_S

        now, before = monotonic(), self._last_s
        self._last_s = now
        if now - before > INTERRUPT_TWIN_S:
            raise KeyboardInterrupt


def _die_with_parent(life_in: int) -> None:
    """Let the operating system end this process when the other end of a pipe closes.

    Otherwise a parent that is killed would leave a run behind that goes on spending money.
    """
    import fcntl
    import signal

    try:
        fcntl.fcntl(life_in, fcntl.F_SETOWN, os.getpid())
        if hasattr(fcntl, "F_SETSIG"):
            # A signal that no service can catch or block.
            fcntl.fcntl(life_in, fcntl.F_SETSIG, signal.SIGKILL)
        else:
            signal.signal(signal.SIGIO, lambda _number, _frame: os.kill(os.getpid(), 9))
        flags = fcntl.fcntl(life_in, fcntl.F_GETFL)
        fcntl.fcntl(life_in, fcntl.F_SETFL, flags | os.O_ASYNC)
    except OSError:  # a system without it: the run then ends by itself
        return


def _read_code(code_in: int) -> int | None:
    # A process that the service started may hold the other end, so there may be no end of file.
    os.set_blocking(code_in, False)
    try:
        said = os.read(code_in, 16)
    except BlockingIOError:
        return None
    return int(said) if said.strip().isdigit() else None


def _end_parent(code: int | None, status: int) -> NoReturn:
    if code is not None:
        os._exit(code)
    import signal

    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            # Somebody ended it; a shell is to see by which signal.
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        how = f"the signal {signal.Signals(number).name} ended the process"
    else:
        how = f"the service ended the process with status {os.WEXITSTATUS(status)}"
    try:
        os.write(
            2,
            f"trialwise: {how} before the command was done, so there is no result. Complete "
            "trials are kept: `--resume` continues. Keep the service from exiting, for example "
            "by running it as a `command`.\n".encode(),
        )
    finally:
        os._exit(ExitCode.ERROR)


def end_process(code: int, report: Report | None) -> NoReturn:
    """End this process with a code, whatever the service left running or registered.

    Args:
        code: What happened.
        report: Tells the parent; None where there is none.
    """
    if report is None:
        # Nobody watches: a hook at exit or a thread must get no chance to change the code.
        _flush()
        os._exit(code)
    report(code)
    _limit_ending(code)
    sys.exit(code)


def _flush() -> None:
    from trialwise.cli.standard_streams import own_output

    for stream in (own_output(), sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, full or none
            continue


def _limit_ending(code: int) -> None:
    """Wait some seconds for threads and exit hooks, then name the threads and exit."""
    import threading
    import time

    def leave() -> None:
        time.sleep(_ENDING_S)
        alive = [
            one.name
            for one in threading.enumerate()
            if not one.daemon and one is not threading.main_thread()
        ]
        left = f"threads still run ({', '.join(alive)})" if alive else "something at exit hangs"
        _flush()
        try:
            os.write(2, f"trialwise: {left} {_ENDING_S:g} s after the result: ended\n".encode())
        finally:
            os._exit(code)

    try:
        threading.Thread(target=leave, name="trialwise-ending", daemon=True).start()
    except RuntimeError:  # no further thread is allowed
        _flush()
        os._exit(code)
