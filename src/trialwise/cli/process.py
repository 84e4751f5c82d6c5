"""The process of a command: its exit code, its streams, and the parent that sees how it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

if TYPE_CHECKING:
    from trialwise.documents.blocks import Document
    from trialwise.renderers.capabilities import Capabilities
    from trialwise.reports.formats import Reported


class ExitCode(IntEnum):
    """The exit status of the process."""

    PASS = 0
    FAIL = 1
    REFUSED = 2
    """Usage, configuration, or a design that cannot support its claim."""
    INCONCLUSIVE = 3
    ERROR = 4
    """Something broke while running; never a verdict."""
    INTERRUPTED = 130


# --- The standard streams -------------------------------------------------------------------------
#
# A verdict is on disk before it is printed. A reader that has gone must not turn it into an error.

#: Standard output as the command's caller reads it, once prints of a service go elsewhere.
_OWN: list[TextIO] = []


def own_output() -> TextIO:
    """Standard output for what the command itself has to say."""
    return _OWN[-1] if _OWN else sys.stdout


def divert_prints() -> None:
    """Send to standard error what a service or a program that it starts prints.

    The service runs in the process of the command, and what it prints must not stand between the
    lines of a result or of JSON.
    """
    sys.stdout.flush()
    own = os.dup(1)
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    _OWN.append(open(own, "w", encoding=encoding, errors=errors))  # noqa: SIM115
    # The file descriptor and not only `sys.stdout`: a program that a service starts inherits it.
    os.dup2(2, 1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)


def open_closed_streams() -> None:
    """Open the null device for a stream that the shell closed, so that no file gets its number."""
    while True:
        handle = os.open(os.devnull, os.O_RDWR)
        if handle > 2:
            os.close(handle)
            break
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = _Tolerant(sys.stderr)


class _Tolerant:
    """A stream for messages that drops what cannot be written, so that the command continues."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text, if that is possible."""
        try:
            self._stream.write(text)
        except OSError:
            mute(2)
        return len(text)

    def flush(self) -> None:
        """Write what waits, if that is possible."""
        try:
            self._stream.flush()
        except OSError:
            mute(2)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def mute(handle: int) -> None:
    """Send the remaining output to the null device, so that writing fails only once."""
    # Python flushes at exit; a second error there would replace the exit code by 120.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, handle)
    os.close(null)


# --- Standard output as it is: what it cannot show is spelled out, and JSON stays JSON ------------
#
# What a service prints goes to standard error (`divert_prints`), so a command that
# calls one writes its own output with `say` and `say_json` only.

#: Columns of a page whose lines are not broken.
_ENDLESS = 100_000


def output_of(*, ascii_only: bool = False) -> Capabilities:
    """Return what standard output can do, or less where somebody asks for less."""
    from trialwise.renderers.capabilities import read_capabilities

    able = read_capabilities(own_output())
    return replace(able, unicode=False) if ascii_only else able


def say(text: str) -> None:
    """Print a text without failing on a character or a closed pipe."""
    out = own_output()
    encoding = out.encoding or "ascii"
    shown = text.encode(encoding, "backslashreplace").decode(encoding).removesuffix("\n")
    try:
        with ignore_gone_reader():
            click.echo(shown, file=out)
    except OSError as error:
        mute(out.fileno())
        click.echo(f"trialwise: standard output takes no more: {error.strerror}", err=True)


def say_page(page: Document, *, ascii_only: bool = False, wide: bool = False) -> None:
    """Print a page as text.

    Args:
        page: What to print.
        ascii_only: Whether somebody asks for less than the stream can show.
        wide: Whether lines are as long as what they say, such as the names of runs.
    """
    from trialwise.renderers.document_text import render_document_text

    able = output_of(ascii_only=ascii_only)
    say(render_document_text(page, replace(able, width=_ENDLESS) if wide else able).rstrip("\n"))


def say_facts(facts: Any, build_page: Callable[[Any], Document], *, as_json: bool) -> None:
    """Print facts as JSON, or as the page that they make.

    Args:
        facts: Plain values.
        build_page: Makes the page of them.
        as_json: Which of the two somebody asked for.
    """
    if as_json:
        say_json(facts)
    else:
        say_page(build_page(facts))


def say_json(data: Any) -> None:
    """Print plain values, or JSON text, as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False)
    try:
        text.encode(own_output().encoding or "ascii")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text) if isinstance(data, str) else data, indent=2)
    with ignore_gone_reader():
        click.echo(text.removesuffix("\n"), file=own_output())


@contextmanager
def ignore_gone_reader() -> Iterator[None]:
    """Print to standard output as long as somebody reads it.

    A reader such as `head` that has read enough changes no exit code.
    """
    out = own_output()
    try:
        yield
        out.flush()
    except BrokenPipeError:
        mute(out.fileno())


def write_file(path: Path, text: str) -> None:
    """Write a file that somebody asked for, and say so."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or str(error)) from None
    click.echo(f"wrote {path}", err=True)


def give_answer(answer: Reported, given: Mapping[str, Any]) -> bool:
    """Print an answer about several arms and write its files; return whether all are there.

    It is printed first: no file that cannot be written may hide it.

    Args:
        answer: What was concluded, or planned.
        given: The options `as_json`, `markdown` and `outputs`.
    """
    from trialwise.reports import formats

    if given["as_json"]:
        say_json(answer.to_dict())
    elif given.get("markdown"):
        say(formats.render_answer(answer, "markdown"))
    else:
        say_page(answer.build_summary())
    complete = True
    for path in given.get("outputs", ()):
        try:
            text = formats.render_answer(answer, formats.match_answer_format(path))
            click.echo(f"wrote {formats.write_whole(path, text)}", err=True)
        except formats.ReportNotWritten as error:
            click.echo(f"trialwise: {error}", err=True)
            complete = False
    return complete


# --- Supervision ----------------------------------------------------------------------------------
#
# A service runs in the process of the command and can end it: with `os._exit`, `os.execv`, an exit
# in a task, a hook at exit. The status of such a process says nothing about a verdict. So the
# command runs in a forked child, which reports its exit code through a pipe when it has one. The
# parent returns the reported code, and no other: a child that ends without a report ends the
# command with 4.
#
# Only the parent is what a shell or a CI server sees. It passes signals on to the child, and the
# child does not outlive it. Without `os.fork` (Windows) the command runs in one process.

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
        from trialwise.runtime.looping import INTERRUPT_TWIN_S

        now, before = time.monotonic(), self._last_s
        self._last_s = now
        if now - before > INTERRUPT_TWIN_S:
            raise KeyboardInterrupt


def _die_with_parent(life_in: int) -> None:
    """Let the operating system end this process when the other end of a pipe closes.

    Otherwise a parent that is killed would leave a run behind that goes on spending money.
    """
    import fcntl  # not on Windows, which does not fork either

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

    for stream in (own_output(), sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, full or none
            continue


def _limit_ending(code: int) -> None:
    """Wait some seconds for threads and exit hooks, then name the threads and exit."""

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
