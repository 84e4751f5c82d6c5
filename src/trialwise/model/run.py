"""A run as it is kept: its plan, its trials and its verdict; anybody can decide it again."""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.model.plan import Plan
from trialwise.model.trial import Trial
from trialwise.model.verdict import Verdict

__all__ = ["RunRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Everything a report needs, and everything a stranger needs to check it."""

    run_id: str
    plan: Plan
    trials: tuple[Trial, ...]
    """In issue order, experiment by experiment."""
    verdict: Verdict
