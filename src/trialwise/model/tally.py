"""Counts: the sufficient statistics of one criterion's stream."""

from __future__ import annotations

from dataclasses import dataclass

from trialwise.errors import InvalidArgument
from trialwise.validation import require_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many trials there were, how many passed, and how many could be evaluated at all.

    Every trial counts: one that yielded nothing to test is a failure with a reason, never left
    out of `trials` (companion §1.4.5a).
    """

    trials: int
    passed: int
    evaluable: int | None = None
    """Trials that produced a testable value; None means all of them."""

    def __post_init__(self) -> None:
        if require_count("passed", self.passed) > require_count("trials", self.trials):
            raise InvalidArgument("passed", self.passed, f"lie between 0 and {self.trials}")
        if self.evaluable is None:
            return
        if not self.passed <= require_count("evaluable", self.evaluable) <= self.trials:
            allowed = f"lie between passed ({self.passed}) and trials ({self.trials})"
            raise InvalidArgument("evaluable", self.evaluable, allowed)

    @property
    def failed(self) -> int:
        """Trials that did not pass, whatever the reason."""
        return self.trials - self.passed

    @property
    def rate(self) -> float | None:
        """The observed rate, or None without trials."""
        return self.passed / self.trials if self.trials else None
