"""Replies that a run has kept are given again; the service is asked only for the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trialwise.engine.ports import Service, ServiceError, TrialContext
from trialwise.model.reply import Reply
from trialwise.model.trial import NOT_MEASURED, ErrorClass, Trial


class KeptAnswer(NamedTuple):
    """What came back in a trial that is kept: a reply, or a failure of the service's own."""

    reply: Reply | None
    error_class: ErrorClass = ErrorClass.NONE
    error: str = ""
    spent: Reply | None = None
    """What the failure took."""

    def give(self, trial: TrialContext) -> Reply:
        """Return the reply.

        Raises:
            ServiceError: There was none then.
        """
        if self.reply is not None:
            return self.reply
        if (spent := self.spent) is not None:
            trial.keep(lambda: spent)
        raise ServiceError(self.error, self.error_class)


def read_answers(trials: Iterable[Trial]) -> Iterator[tuple[Trial, KeptAnswer | None]]:
    """Yield each trial with what came back in it; None where that is not kept.

    Args:
        trials: Of a stored run.
    """
    for trial in trials:
        reply = trial.rebuild_reply()
        if reply is not None or trial.latency_s is not None:
            yield trial, None if reply is None else KeptAnswer(reply)
            continue
        spent = None
        if trial.usage is not None or trial.cost_usd is not None:
            spent = Reply(value="", usage=trial.usage, cost_usd=trial.cost_usd)
        yield trial, KeptAnswer(None, trial.error_class, trial.error, spent)


class KeptReplies:
    """A service that is asked only where an earlier part of the run has kept no answer.

    Failures of the service's own come back as they were. A trial that never reached the service
    has no answer, and is asked.

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

    @classmethod
    def of(cls, service: Service, trials: Iterable[Trial]) -> KeptReplies:
        """Return a service with the answers of an earlier part of the same run."""
        answers = {
            (trial.index, trial.seed): answer
            for trial, answer in read_answers(trials)
            if answer is not None and trial.error_class not in NOT_MEASURED
        }
        return cls(service, answers)

    async def call(self, trial: TrialContext) -> Reply:
        """Return the reply that was kept, or the service's."""
        kept = self._left.pop((trial.index, trial.seed), None)
        if kept is None:
            assert self._service is not None
            return await self._service.call(trial)
        from anyio.lowlevel import checkpoint

        await checkpoint()
        return kept.give(trial)

    async def aclose(self) -> None:
        """Close the service."""
        if self._service is not None:
            await self._service.aclose()
