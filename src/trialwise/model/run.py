"""A run as it is kept: its plan, its trials and its verdict; anybody can decide it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from trialwise.model.evidence import StopReason
from trialwise.model.kept_texts import RunTexts
from trialwise.model.plan import Plan
from trialwise.model.run_trials import Trials
from trialwise.model.verdict import Decision, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything a report needs, and everything a stranger needs to check it."""

    run_id: str
    plan: Plan
    trials: Trials
    """In the order of inputs, experiment by experiment."""
    verdict: Verdict

    def __repr__(self) -> str:
        decision = self.verdict.decision or "REFUSED"
        return f"<RunRecord {self.run_id!r}: {decision}, {len(self.trials):,} trials>"

    texts: RunTexts = field(default_factory=RunTexts)
    """The inputs and tracebacks that the trials name; records of 0.1.0 have none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trials", Trials.of(self.trials).seal())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a list of runs says of one."""

    run_id: str
    contract: str = ""
    started_at: datetime | None = None
    plan_hash: str = ""
    session: str = ""
    """Runs of one session have it in common; empty for a run of an earlier version."""
    comparison: str = ""
    """The name of the comparison whose arm it is; empty for any other run."""
    scored: str = ""
    """The name of the run whose replies it has checked again; empty for any other run."""
    decision: Decision | None = None
    stop: StopReason | None = None
    """None: there is no verdict, as the run goes on or was killed."""
    trials: int | None = None
    """Journalled when the verdict was reached; None where there is none."""
    damage: str = ""
    """Why nothing else could be read of it."""

    @property
    def is_decided(self) -> bool:
        """Whether there is a verdict to show."""
        return self.stop is not None

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed.

        So can a run that was interrupted or ran out of its budget, unless it was decided all the
        same: a PASS or FAIL is not tried again.
        """
        if self.damage:
            return False
        open_end = self.decision not in (Decision.PASS, Decision.FAIL)
        return self.stop is None or (self.stop.is_premature and open_end)
