"""Replies that a run has kept are given again; the service is asked only for the others."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply, read_reply
from trialwise.model.trial import Trial
from trialwise.services.failures import RecordingError
from trialwise.services.replay import RecordedReplies, RecordingFile, encode_reply, input_hash


class KeptAnswer(NamedTuple):
    """What came back in a trial that is kept."""

    reply: Reply | None
    """The reply, or what a failure took, where that is known."""
    error: ServiceError | None = None
    """Why there was no reply."""


def read_answer(trial: Trial) -> KeptAnswer | None:
    """Return what came back in a trial of a stored run; None where that is not kept."""
    if trial.latency_s is not None:
        reply = trial.rebuild_reply()
        return None if reply is None else KeptAnswer(reply)
    spent = Reply(value="", usage=trial.usage, cost_usd=trial.cost_usd)
    error = ServiceError(trial.error, trial.error_class)
    return KeptAnswer(spent if trial.has_expenses else None, error)


class KeptReplies:
    """A service that is asked only where no answer is kept; failures come back as they were.

    Args:
        service: What is under test; None where every trial has an answer.
        answers: By the index and the seed of their trials.
    """

    tells_cost = True

    def __init__(
        self, service: Service | None, answers: Mapping[tuple[int, int], KeptAnswer]
    ) -> None:
        self._service = service
        # The seed tells apart trials of one index in several samplings.
        self._left = dict(answers)

    async def call(self, trial: TrialContext) -> Reply:
        """Return the reply that was kept, or the service's."""
        reply, error = self._left.pop((trial.index, trial.seed), (None, None))
        if error is not None:
            if reply is not None:
                trial.keep(lambda: reply)
            raise error
        if reply is not None:
            return reply
        assert self._service is not None
        return await self._service.call(trial)

    async def aclose(self) -> None:
        """Close the service."""
        if self._service is not None:
            await self._service.aclose()


# Replies that an earlier run of a watch got are used again; what is missing is asked for.


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
