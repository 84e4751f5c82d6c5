"""Ends the commands of a run that was killed.

A run that gets SIGKILL cannot end its commands, and they would go on for ever. So a small shell
process knows which commands are running. It reads from a pipe, whose end means that the run is no
more, and then ends what is left.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen

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
