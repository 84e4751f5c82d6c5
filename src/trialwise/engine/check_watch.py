"""Tells a check that is broken from one that raises on a bad reply, in the order of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from trialwise.errors import BrokenCheck
from trialwise.model.kept_texts import RunTexts
from trialwise.model.trial import CheckResult, ErrorClass, FailReason, Trial

#: A check that raises on each of so many first replies is broken.
_FIRST_REPLIES = 3


class BrokenBy(NamedTuple):
    """The trial that shows that a check is broken."""

    check: str
    problem: str
    """What the check did, as the rest of a sentence."""
    traceback: str
    """The hash of where it raised."""

    def to_error(self, texts: RunTexts) -> BrokenCheck:
        """Return the error that ends the run."""
        told = texts.tracebacks.get(self.traceback, "")
        return BrokenCheck(self.check, self.problem, traceback=told)


class CheckWatch:
    """Watches the checks of one experiment until each of them has answered once.

    Trials count in the order of inputs, whichever comes back first, so that concurrency does not
    change what is found.

    Args:
        names: The names of every criterion's checks, in the order in which they are asked.
        done: Trials from before a restart.
    """

    def __init__(self, names: Sequence[Sequence[str]], done: Iterable[Trial] = ()) -> None:
        # How often each check has raised that has not answered yet.
        self._raised = [dict.fromkeys(mine, 0) for mine in names]
        self._names = names
        self._next = 0
        self._waiting: dict[int, Trial] = {}
        self.broken: BrokenBy | None = None
        self.is_over = False
        """Whether every check has answered, so that none can turn out to be broken this way."""
        self.is_doubtful = False
        """Whether a check has raised on every reply that it saw, and saw too few to tell."""
        for trial in done:
            if not self.is_over:
                self.add(trial, is_alone=True)

    def add(self, trial: Trial, *, is_alone: bool) -> None:
        """Look at a completed trial.

        Args:
            trial: It has ended.
            is_alone: Whether no other trial is under way, so that none before it is missing.
        """
        self._waiting[trial.index] = trial
        while self._waiting and self.broken is None:
            index = min(self._waiting) if is_alone else self._next
            if index not in self._waiting:
                break
            self._next = index + 1
            self._look_at(self._waiting.pop(index))
        counts = [count for mine in self._raised for count in mine.values()]
        self.is_over = not counts or self.broken is not None
        self.is_doubtful = any(counts) and self.broken is None

    def _look_at(self, trial: Trial) -> None:
        if trial.latency_s is None or trial.error_class is not ErrorClass.NONE:
            return  # no check has seen a reply
        for outcome, names, left in zip(trial.outcomes, self._names, self._raised, strict=True):
            last = outcome.postcondition
            for name in names:
                if name == last and outcome.result.reason is FailReason.RAISED:
                    if name in left:
                        left[name] += 1
                        if left[name] == _FIRST_REPLIES:
                            self.broken = _explain_raises(trial, name, outcome.result)
                    break
                left.pop(name, None)
                if name == last:
                    break


def _explain_raises(trial: Trial, name: str, last: CheckResult) -> BrokenBy:
    said = ": ".join(filter(None, (last.explanation, last.evidence)))
    problem = f"raised on each of the first {_FIRST_REPLIES} replies that it saw"
    where = f"trial {trial.index}, input {trial.input_id}"
    return BrokenBy(name, f"{problem} ({where}: {said})", trial.traceback)


def find_mistake(trial: Trial) -> BrokenBy | None:
    """Find a check that is broken whatever the reply says; None where there is none.

    Args:
        trial: It has ended.
    """
    for one in trial.outcomes:
        if one.result.reason is FailReason.BROKEN:
            problem = f"{one.result.explanation} (trial {trial.index}, input {trial.input_id})"
            return BrokenBy(one.postcondition or one.criterion, problem, trial.traceback)
    return None
