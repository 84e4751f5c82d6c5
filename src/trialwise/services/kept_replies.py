"""Replies that a run has kept are given again; the service is asked only for the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trial import Trial


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
