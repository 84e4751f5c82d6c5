"""One process from start to finish, with everything it started.

Apart from the service because this is the part that must hold when the process does not: it
floods, hangs, forks, ignores SIGTERM or leaves children behind.
"""

from __future__ import annotations

import atexit
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import anyio
import anyio.abc
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from trialwise.redaction import LOOKED_AT, cut_text

_SCRIPT = """
running=
while read -r sign leader; do
  case $sign in
    +) running="$running $leader" ;;
    -) kept=; for one in $running; do [ "$one" = "$leader" ] || kept="$kept $one"; done
       running=$kept ;;
  esac
done
for one in $running; do kill -s KILL -- "-$one"; done
"""


#: The shell of each process: a fork has commands of its own.
_GUARDS: dict[int, Popen[bytes]] = {}


def guard_process(leader: int) -> None:
    """Have a process and its group ended if this process is killed before it.

    Args:
        leader: Its number, which is also that of its group.
    """
    if os.name != "posix":
        return
    with suppress(OSError):  # without a guard, commands of a killed run go on
        if os.getpid() not in _GUARDS:
            # In a session of its own: a Ctrl-C in the terminal is not meant for it.
            _GUARDS[os.getpid()] = Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
                cwd="/",
            )
            atexit.register(_close_guard)
        _tell_guard(f"+ {leader}\n")


def _tell_guard(line: str) -> None:
    guard = _GUARDS.get(os.getpid())
    if guard is not None and guard.stdin is not None:
        # One write of one line, below the size that pipes keep whole: threads may write at once.
        with suppress(OSError):
            os.write(guard.stdin.fileno(), line.encode("ascii"))


def _close_guard() -> None:
    """Let the shell end, and with it what is still running."""
    if guard := _GUARDS.pop(os.getpid(), None):
        guard.communicate()


#: What a killed process still has in its pipes is read for at most this long: a process that
#: left the session may hold the other end open for ever.
_DRAIN_S = 1.0
#: SIGKILL cannot be ignored, but a process in uninterruptible anyio.sleep dies only when it wakes.
_KILL_WAIT_S = 5.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a process may say and how long it may take to leave."""

    output_bytes: int
    stderr_bytes: int
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended and what it said."""

    exit_code: int | None
    """None for a process that was ended because it said too much."""
    stdout: bytes
    stderr: bytes
    """The end of it: that is where the reason stands."""
    stderr_truncated: bool
    left_children: bool
    """Whether something was still running in its group when it ended."""
    ended: float

    @property
    def head(self) -> str:
        """The beginning of what it said, for a message."""
        return cut_text(self.stdout[:LOOKED_AT].decode(errors="replace"), _SHOWN_LENGTH)


async def start_process(
    argv: Sequence[str],
    *,
    has_stdin: bool,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
) -> anyio.abc.Process:
    """Return a process in a session of its own.

    Raises:
        OSError: It cannot be started.
        ValueError: An argument cannot be passed to a process.
    """
    # Cancelled half-way, a start could leave a process that nobody knows of.
    with anyio.CancelScope(shield=True):
        # In a session of its own: signals reach it and all it starts, and Ctrl-C in the terminal
        # does not.
        process = await anyio.open_process(
            list(argv),
            stdin=PIPE if has_stdin else DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
        guard_process(process.pid)
    return process


async def finish_process(
    process: anyio.abc.Process, stdin: bytes, *, limits: Limits, clock: Callable[[], float]
) -> Finished:
    """Wait for the end, or the output limit, or cancellation; nothing keeps running after it."""
    try:
        return await _attend(process, stdin, limits, clock)
    finally:
        with anyio.CancelScope(shield=True):
            # What it left running would hold ports and files that the next trial needs.
            if process.returncode is None or _group_exists(process.pid):
                await _end_all(process, limits.grace_s)
            _tell_guard(f"- {process.pid}\n")
            await process.aclose()


async def _attend(
    process: anyio.abc.Process, stdin: bytes, limits: Limits, clock: Callable[[], float]
) -> Finished:
    assert process.stdout is not None
    assert process.stderr is not None
    running = anyio.CancelScope()
    stdout = _Output(limits.output_bytes, running)
    stderr = _Output(limits.stderr_bytes)
    left_children = False
    async with anyio.create_task_group() as tasks:
        if process.stdin is not None:
            tasks.start_soon(_feed, process.stdin, stdin)
        async with anyio.create_task_group() as readers:
            readers.start_soon(stdout.read, process.stdout)
            readers.start_soon(stderr.read, process.stderr)
            with running:
                await process.wait()
            ended = clock()
            if not stdout.is_cut:
                left_children = _group_exists(process.pid)
                if left_children:
                    await _end_all(process, limits.grace_s)
            readers.cancel_scope.deadline = anyio.current_time() + (
                0.0 if stdout.is_cut else _DRAIN_S
            )
        tasks.cancel_scope.cancel()
    return Finished(
        exit_code=None if stdout.is_cut else process.returncode,
        stdout=bytes(stdout.kept),
        stderr=bytes(stderr.kept),
        stderr_truncated=stderr.is_cut,
        left_children=left_children,
        ended=ended,
    )


class _Output:
    """What is kept of an output: its first bytes, or its last.

    Args:
        limit: How many bytes are kept.
        running: Cancelled by a longer output; without it the bytes before the last are dropped.
    """

    def __init__(self, limit: int, running: anyio.CancelScope | None = None) -> None:
        self.kept = bytearray()
        self.is_cut = False
        self._limit = limit
        self._running = running

    async def read(self, stream: anyio.abc.ByteReceiveStream) -> None:
        async for chunk in stream:
            self.kept += chunk
            if len(self.kept) <= self._limit:
                continue
            self.is_cut = True
            if self._running is not None:
                del self.kept[self._limit :]
                self._running.cancel()
                return
            # The end is kept, since a traceback has the error in its last line.
            del self.kept[: len(self.kept) - self._limit]


async def _feed(stream: anyio.abc.ByteSendStream, data: bytes) -> None:
    # A process need not read what it is given.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        await stream.send(data)
        await stream.aclose()


async def _end_all(process: anyio.abc.Process, grace_s: float) -> None:
    """SIGTERM to the process and all it started, then SIGKILL to what is left of them."""
    if not hasattr(os, "killpg"):
        process.kill()
        await process.wait()
        return
    _signal(process.pid, signal.SIGTERM)
    with anyio.move_on_after(grace_s):
        while _is_alive(process.pid):
            await anyio.sleep(_POLL_S)
    with anyio.move_on_after(_KILL_WAIT_S):
        while _is_alive(process.pid):
            # Again each time: one of them may have forked in between.
            _signal(process.pid, signal.SIGKILL)
            await anyio.sleep(_POLL_S)


def _signal(leader: int, number: signal.Signals) -> None:
    # A process that has gone, or that has changed its user, cannot be signalled.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    # One by one as well: a child that made a group of its own is still in the session.
    for pid in _session(leader) or ():
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _group_exists(leader: int) -> bool:
    """Return whether anything but zombies is left in a process's group; cheap when nothing is."""
    if not hasattr(os, "killpg"):
        return False
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return _session(leader) != []


def _is_alive(leader: int) -> bool:
    members = _session(leader)
    return _group_exists(leader) if members is None else bool(members)


def _session(leader: int) -> list[int] | None:
    """Return the living processes of a session, or None where the system does not tell.

    A session holds what a shell's job control puts into groups of their own. A zombie that
    nobody collects, as in a container without an init, is not alive.
    """
    try:
        # Not all systems have it; without it only the process group is known.
        names = os.listdir("/proc")
    except OSError:
        return None
    pids = [int(name) for name in names if name.isdecimal()]
    return [pid for pid in pids if _belongs(pid, leader)] if pids else None


def _belongs(pid: int, leader: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, so the fields count from its end.
            state, _, _, session, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return False
    return int(session) == leader and state not in {b"Z", b"X"}


# --- A tool server's process, spoken to over its standard input and output ------------------------
#
# In place of the SDK's own transport for three reasons: one message may not fill the memory, what
# the server wrote to standard error belongs in the message that says it died, and everything it
# started is ended with it, also when it leaves by itself.

#: Bytes of one message; the largest tool results are a fraction of that.
_MESSAGE_BYTES = 2**24
#: How much of standard error is kept, counted from its end.
_STDERR_BYTES = 2**12
#: How much is shown of an output that is of no use.
_SHOWN_LENGTH = 200
#: A server leaves when its standard input ends; one that does not is ended, and one whose trial
#: was cancelled is not waited for.
_LINGER_S, _GRACE_S = 2.0, 1.0
#: How long a server whose output has ended may take to be gone.
_EXIT_S = 1.0


class PipedServer:
    """One process for the length of one session.

    Args:
        argv: The program and its arguments.
        env: Its whole environment.
        cwd: The working directory.
    """

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: str | None) -> None:
        self._argv = argv
        self._env = env
        self._cwd = cwd
        self._process: anyio.abc.Process | None = None
        self._stderr = _Output(_STDERR_BYTES)
        self._problem = ""
        self._rubbish = ""
        self.has_ended = False
        """Whether nothing more will come from it."""

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[Any]:
        """What the SDK reads from and writes to.

        Raises:
            OSError: The process cannot be started.
        """
        process = await start_process(self._argv, has_stdin=True, env=self._env, cwd=self._cwd)
        self._process = process
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_session = anyio.create_memory_object_stream[Any](0)
        linger_s = 0.0
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._receive, process, to_session)
                tasks.start_soon(self._send, process, from_session, to_session)
                assert process.stderr is not None
                tasks.start_soon(self._stderr.read, process.stderr)
                try:
                    yield from_server, to_server
                    linger_s = _LINGER_S
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (from_server, to_session, from_session, to_server):
                stream.close()
            with anyio.CancelScope(shield=True):
                await _end(process, linger_s)

    async def last_words(self) -> str:
        """Return how it came to its end and what it said, to end a message with; may be nothing."""
        if self._problem:
            return f": {self._problem}"
        how = ""
        if self.has_ended and self._process is not None:
            with anyio.move_on_after(_EXIT_S):
                await self._process.wait()
            code = self._process.returncode
            how = ": it closed its output" if code is None else f": it ended with exit code {code}"
        said = self._stderr.kept.decode(errors="replace").strip()
        how += f"; it said: {said}" if said else ""
        # What was meant for a terminal is the commonest reason why a server is not understood.
        return how + (
            f"; it printed what is not a message: {self._rubbish}" if self._rubbish else ""
        )

    async def _receive(
        self, process: anyio.abc.Process, to_session: MemoryObjectSendStream[Any]
    ) -> None:
        assert process.stdout is not None
        pending = bytearray()
        try:
            with to_session:
                async for chunk in process.stdout:
                    pending += chunk
                    if b"\n" in chunk:
                        *lines, rest = bytes(pending).split(b"\n")
                        pending = bytearray(rest)
                        for message in filter(None, map(self._message, lines)):
                            await to_session.send(message)
                    if len(pending) > _MESSAGE_BYTES:
                        self._problem = f"it sent a message of more than {_MESSAGE_BYTES:,} bytes"
                        break
                # Before the tasks that wait for an answer learn that there will be none.
                self.has_ended = True
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the session is over

    async def _send(
        self,
        process: anyio.abc.Process,
        from_session: MemoryObjectReceiveStream[Any],
        to_session: MemoryObjectSendStream[Any],
    ) -> None:
        assert process.stdin is not None
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            # Nobody reads, so the tasks that wait for an answer must not wait for ever.
            self.has_ended = True
            to_session.close()

    def _message(self, line: bytes) -> Any:
        """Return a message of the protocol; the first other output of a server is noted."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            head = line[:LOOKED_AT].decode(errors="replace")
            self._rubbish = self._rubbish or repr(cut_text(head, _SHOWN_LENGTH))
            return None


async def _end(process: anyio.abc.Process, linger_s: float) -> None:
    """Close its standard input, let it go, and end what does not go, children included."""
    limits = Limits(output_bytes=_MESSAGE_BYTES, stderr_bytes=_STDERR_BYTES, grace_s=_GRACE_S)
    with anyio.move_on_after(linger_s):
        await finish_process(process, b"", limits=limits, clock=time.perf_counter)
