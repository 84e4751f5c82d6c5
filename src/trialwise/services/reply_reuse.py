"""Replies that an earlier run of a watch got are used again; what is missing is asked for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from trialwise.engine.ports import Service, TrialContext
from trialwise.model.reply import Reply, read_reply
from trialwise.services.failures import RecordingError
from trialwise.services.replay import RecordedReplies, RecordingFile, encode_reply, input_hash


class ReusingService:
    """A service that is asked only where no reply to the same input is left of earlier runs.

    Only replies are kept: an error or a timeout may be gone by the next run. A value that JSON
    cannot hold is not kept, and the service is asked again.

    Args:
        service: What is under test.
        file: Holds the replies; new ones are appended.
    """

    def __init__(self, service: Service, file: Path) -> None:
        self._service = service
        self._left = RecordedReplies.read(file)
        self._file = RecordingFile(file)
        self.reused = 0
        self.asked = 0

    async def call(self, trial: TrialContext) -> Reply:
        """Return a reply that is left, or the service's."""
        try:
            name = input_hash(trial.input)
        except RecordingError:
            return await self._ask(trial)
        record = self._left.take(name, trial.index)
        if record is not None:
            from anyio.lowlevel import checkpoint

            await checkpoint()
            self.reused += 1
            return read_reply(record["reply"])
        reply = await self._ask(trial)
        asked: dict[str, Any] = {"index": trial.index, "input": name, "seed": trial.seed}
        with suppress(RecordingError):
            self._file.append(asked | {"reply": encode_reply(reply)})
        return reply

    async def _ask(self, trial: TrialContext) -> Reply:
        self.asked += 1
        return await self._service.call(trial)

    async def aclose(self) -> None:
        """Close the service; every reply is already written."""
        await self._service.aclose()
