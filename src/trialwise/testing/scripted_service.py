"""A service that says what a test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trialwise.engine.ports import TrialContext
from trialwise.model.reply import Reply

__all__ = ["ScriptedService"]


class ScriptedService:
    """A service that answers each trial from a script.

    A script is a list, which is played from its beginning again once it ends, or a function of the
    trial. An answer is a value, a whole `Reply`, or an exception that is raised.

    >>> import anyio
    >>> service = ScriptedService(["yes", ConnectionError("down")])
    >>> anyio.run(service.call, TrialContext(index=0, input="really?", seed=1)).value
    'yes'
    >>> [trial.input for trial in service.trials]
    ['really?']

    Args:
        script: The answers in order, by index of the trial, or what gives them.
    """

    def __init__(self, script: Sequence[Any] | Callable[[TrialContext], Any]) -> None:
        self._script = script
        self.trials: list[TrialContext] = []
        """Every trial that was asked, in order."""
        self.closed = 0
        """How often the service was closed."""

    async def call(self, trial: TrialContext) -> Reply:
        """Answer one trial."""
        self.trials.append(trial)
        if callable(self._script):
            answer = self._script(trial)
        else:
            answer = self._script[trial.index % len(self._script)]
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(value=answer)

    async def aclose(self) -> None:
        """Count that it was closed; a later call is answered all the same."""
        self.closed += 1
