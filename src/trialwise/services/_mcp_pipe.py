"""A tool server's process, spoken to over its standard input and output.

In place of the SDK's own transport for three reasons: one message may not fill the memory, what the
server wrote to standard error belongs into the message that says it died, and everything it started
is ended with it, also when it leaves by itself.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from trialwise.redaction import LOOKED_AT, cut_text
from trialwise.services._process import Limits, finish_process, start_process

if TYPE_CHECKING:
    from anyio.abc import Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream


#: Bytes of one message; the largest tool results are a fraction of that.
_MESSAGE_BYTES = 2**24
#: How much of standard error is kept, counted from its end.
_STDERR_BYTES = 2**12
#: How much is shown of a line that is not a message.
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
        self._process: Process | None = None
        self._stderr = bytearray()
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
        from anyio import CancelScope, create_memory_object_stream, create_task_group

        process = await start_process(self._argv, has_stdin=True, env=self._env, cwd=self._cwd)
        self._process = process
        from_server, to_session = _pair(create_memory_object_stream[Any](0))
        from_session, to_server = _pair(create_memory_object_stream[Any](0))
        linger_s = 0.0
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._receive, process, to_session)
                tasks.start_soon(self._send, process, from_session, to_session)
                tasks.start_soon(self._listen, process)
                try:
                    yield from_server, to_server
                    linger_s = _LINGER_S
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            for stream in (from_server, to_session, from_session, to_server):
                stream.close()
            with CancelScope(shield=True):
                await _end(process, linger_s)

    async def last_words(self) -> str:
        """Return how it came to its end and what it said, to end a message with; may be nothing."""
        from anyio import move_on_after

        if self._problem:
            return f": {self._problem}"
        how = ""
        if self.has_ended and self._process is not None:
            with move_on_after(_EXIT_S):
                await self._process.wait()
            code = self._process.returncode
            how = ": it closed its output" if code is None else f": it ended with exit code {code}"
        said = self._stderr.decode(errors="replace").strip()
        how += f"; it said: {said}" if said else ""
        # What was meant for a terminal is the commonest reason why a server is not understood.
        return how + (f"; it printed what is no message: {self._rubbish}" if self._rubbish else "")

    async def _receive(self, process: Process, to_session: MemoryObjectSendStream[Any]) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

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
        except (BrokenResourceError, ClosedResourceError):
            return  # the session is over

    async def _send(
        self,
        process: Process,
        from_session: MemoryObjectReceiveStream[Any],
        to_session: MemoryObjectSendStream[Any],
    ) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        assert process.stdin is not None
        try:
            async for message in from_session:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
        except (BrokenResourceError, ClosedResourceError, OSError):
            # Nobody reads, so the tasks that wait for an answer must not wait for ever.
            self.has_ended = True
            to_session.close()

    async def _listen(self, process: Process) -> None:
        assert process.stderr is not None
        async for chunk in process.stderr:
            self._stderr += chunk
            del self._stderr[:-_STDERR_BYTES]

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


def _pair(streams: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the receiving end first."""
    send, receive = streams
    return receive, send


async def _end(process: Process, linger_s: float) -> None:
    """Close its standard input, let it go, and end what does not go, children included."""
    from anyio import move_on_after

    limits = Limits(output_bytes=_MESSAGE_BYTES, stderr_bytes=_STDERR_BYTES, grace_s=_GRACE_S)
    with move_on_after(linger_s):
        await finish_process(process, b"", limits=limits, clock=time.perf_counter)
