"""One process from start to finish, with everything it started.

Apart from the service because this is the part that must hold when the process does not: it
floods, hangs, forks, ignores SIGTERM or leaves children behind.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import ByteReceiveStream, ByteSendStream, Process


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


class _Guard:
    """The shell process of this process."""

    def __init__(self) -> None:
        # In a session of its own: a Ctrl-C in the terminal is not meant for it.
        self._shell = Popen(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=PIPE,
            stdout=DEVNULL,
            stderr=DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    def tell(self, line: str) -> None:
        assert self._shell.stdin is not None
        os.write(self._shell.stdin.fileno(), line.encode("ascii"))

    def close(self) -> None:
        """Let the shell end, and with it what is still running."""
        self._shell.communicate()


#: By process: a fork has commands of its own.
_GUARDS: dict[int, _Guard] = {}


def guard_process(leader: int) -> None:
    """Have a process and its group ended if this process is killed before it.

    Args:
        leader: Its number, which is also that of its group.
    """
    if os.name != "posix":
        return
    with suppress(OSError):  # without a guard, commands of a killed run go on
        if os.getpid() not in _GUARDS:
            _GUARDS[os.getpid()] = _Guard()
            atexit.register(_close_guard)
        _GUARDS[os.getpid()].tell(f"+ {leader}\n")


def release_process(leader: int) -> None:
    """Forget a process that has ended."""
    if guard := _GUARDS.get(os.getpid()):
        with suppress(OSError):
            guard.tell(f"- {leader}\n")


def _close_guard() -> None:
    if guard := _GUARDS.pop(os.getpid(), None):
        guard.close()


#: What a killed process still has in its pipes is read for at most this long: a process that
#: left the session may hold the other end open for ever.
_DRAIN_S = 1.0
#: SIGKILL cannot be ignored, but a process in uninterruptible sleep dies only when it wakes.
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


async def start_process(
    argv: Sequence[str], *, has_stdin: bool, env: Mapping[str, str], cwd: str | None
) -> Process:
    """Return a process in a session of its own.

    Raises:
        OSError: It cannot be started.
        ValueError: An argument cannot be passed to a process.
    """
    from subprocess import DEVNULL, PIPE

    from anyio import CancelScope, open_process

    # Cancelled half-way, a start could leave a process that nobody knows of.
    with CancelScope(shield=True):
        process = await open_process(
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
    process: Process, stdin: bytes, *, limits: Limits, clock: Callable[[], float]
) -> Finished:
    """Wait for the end, or the output limit, or cancellation; nothing keeps running after it."""
    from anyio import CancelScope

    try:
        return await _attend(process, stdin, limits, clock)
    finally:
        with CancelScope(shield=True):
            if process.returncode is None or _group_exists(process.pid):
                await _end_all(process, limits.grace_s)
            release_process(process.pid)
            await process.aclose()


async def _attend(
    process: Process, stdin: bytes, limits: Limits, clock: Callable[[], float]
) -> Finished:
    from anyio import CancelScope, create_task_group

    assert process.stdout is not None
    assert process.stderr is not None
    running = CancelScope()
    stdout = _Head(limits.output_bytes, running)
    stderr = _Tail(limits.stderr_bytes)
    left_children = False
    async with create_task_group() as tasks:
        if process.stdin is not None:
            tasks.start_soon(_feed, process.stdin, stdin)
        async with create_task_group() as readers:
            readers.start_soon(_read, process.stdout, stdout.take)
            readers.start_soon(_read, process.stderr, stderr.take)
            with running:
                await process.wait()
            ended = clock()
            if not stdout.full:
                left_children = _group_exists(process.pid)
                if left_children:
                    await _end_all(process, limits.grace_s)
            readers.cancel_scope.deadline = _deadline(0.0 if stdout.full else _DRAIN_S)
        tasks.cancel_scope.cancel()
    return Finished(
        exit_code=None if stdout.full else process.returncode,
        stdout=bytes(stdout.kept),
        stderr=bytes(stderr.kept),
        stderr_truncated=stderr.truncated,
        left_children=left_children,
        ended=ended,
    )


def _deadline(seconds: float) -> float:
    from anyio import current_time

    return current_time() + seconds


class _Head:
    """Keeps the first bytes of an output; a longer output ends the process."""

    def __init__(self, limit: int, running: CancelScope) -> None:
        self.kept = bytearray()
        self.full = False
        self._limit = limit
        self._running = running

    def take(self, chunk: bytes) -> bool:
        self.kept += chunk
        if len(self.kept) > self._limit:
            del self.kept[self._limit :]
            self.full = True
            self._running.cancel()
        return not self.full


class _Tail:
    """Keeps the last bytes of an output and drops those before."""

    def __init__(self, limit: int) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._limit = limit

    def take(self, chunk: bytes) -> bool:
        self.kept += chunk
        if len(self.kept) > self._limit:
            del self.kept[: len(self.kept) - self._limit]
            self.truncated = True
        return True


async def _read(stream: ByteReceiveStream, take: Callable[[bytes], bool]) -> None:
    async for chunk in stream:
        if not take(chunk):
            return


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    from anyio import BrokenResourceError, ClosedResourceError

    # A process need not read what it is given.
    with suppress(BrokenResourceError, ClosedResourceError, ConnectionError):
        await stream.send(data)
        await stream.aclose()


async def _end_all(process: Process, grace_s: float) -> None:
    """SIGTERM to the process and all it started, then SIGKILL to what is left of them."""
    from anyio import move_on_after, sleep

    if not hasattr(os, "killpg"):
        process.kill()
        await process.wait()
        return
    _signal(process.pid, signal.SIGTERM)
    with move_on_after(grace_s):
        while _is_alive(process.pid):
            await sleep(_POLL_S)
    with move_on_after(_KILL_WAIT_S):
        while _is_alive(process.pid):
            # Again each time: one of them may have forked in between.
            _signal(process.pid, signal.SIGKILL)
            await sleep(_POLL_S)


def _signal(leader: int, number: signal.Signals) -> None:
    # A process that has gone, or that has changed its user, cannot be signalled.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
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
