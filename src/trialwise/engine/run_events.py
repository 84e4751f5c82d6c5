"""What listeners hear of a run while it goes on.

Imported only when an event is sent: a run without a listener loads nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from trialwise.model.evidence import Spending, StopReason
from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.model.verdict import Decision, Verdict


# Not frozen, like `TrialDone`: one is made of every criterion after every trial.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class CriterionStanding:
    """Counts of one criterion in the order of inputs, and its decision once that is certain."""

    criterion: str
    trials: int
    passed: int
    planned: int
    """N, or the cap; over all inputs with `each_input`."""
    decision: Decision | None = None
    has_rate: bool = True
    """Whether its passes are what it is decided by; a mean score is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The plan is admitted and the first trial is about to start."""

    run_id: str
    plan: Plan
    resumed: int = 0
    """Trials already in the journal."""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class TrialDone:
    """A trial is durable and counted."""

    trial: Trial
    standings: tuple[CriterionStanding, ...]
    """The standings of every criterion of the run."""
    spending: Spending
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDecided:
    """A criterion's verdict can no longer change."""

    standing: CriterionStanding
    stop: StopReason


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    """No further trial will be run."""

    stop: StopReason
    spending: Spending
    message: str = ""
    """Why, where the run ended before its plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReached:
    """The run was decided and its record written."""

    verdict: Verdict
    record: str = ""
    """Where the record is kept."""


Event: TypeAlias = RunStarted | TrialDone | CriterionDecided | RunEnded | VerdictReached


class Listener(Protocol):
    """Hears of a run; must be quick, and must not raise.

    One that has a method `wants_trial(trials: int) -> bool` hears of a completed trial only where
    that method says so, given how many trials are complete: an event for every trial takes as long
    as the trial of a quick function. A trial that settles a criterion is told in any case.
    """

    def on_event(self, event: Event) -> None:
        """Take note of one event."""
        ...
