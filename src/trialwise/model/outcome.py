"""Per trial and criterion: passed, or failed with a reason (companion §1.4.5a).

Every trial counts. A trial without a testable value is a failure like any other; its reason says
that it was not the condition that failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trialwise.errors import InvalidArgument

__all__ = ["CheckResult", "ErrorClass", "FailReason", "Outcome"]


class FailReason(StrEnum):
    """Why a trial failed a criterion: diagnostic only, the arithmetic is the same."""

    CONDITION = "condition"
    """The postcondition was evaluated and did not hold."""
    TRANSFORM = "transform"
    """The reply could not be turned into what the postcondition looks at."""
    NO_VALUE = "no-value"
    """There was no reply to look at."""


class ErrorClass(StrEnum):
    """What went wrong with a trial, if anything did."""

    NONE = "none"
    TIMEOUT = "timeout"
    """Ran out of time while working: a failure of the service."""
    INFRASTRUCTURE = "infrastructure"
    PRE_VALIDATION = "pre-validation"
    """The trial was broken before the service touched it."""
    EMPTY_RUN = "empty-run"
    """The service returned at once without any sign of activity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one postcondition says of one reply.

    >>> CheckResult.ok().passed
    True
    >>> CheckResult.fail("expected 555", evidence="554").reason
    <FailReason.CONDITION: 'condition'>
    """

    passed: bool
    reason: FailReason | None = None
    explanation: str = ""
    """One line: what was expected and what was found."""
    evidence: str = ""
    """The smallest piece of the reply that shows it."""

    def __post_init__(self) -> None:
        if self.passed is not (self.reason is None):
            raise InvalidArgument("reason", self.reason, "be given exactly for a failure")

    @classmethod
    def ok(cls) -> CheckResult:
        """The postcondition holds; there is nothing to tell one such result from another."""
        return _OK

    @classmethod
    def fail(
        cls,
        explanation: str,
        *,
        evidence: str = "",
        reason: FailReason = FailReason.CONDITION,
    ) -> CheckResult:
        """The postcondition does not hold, and why."""
        return cls(passed=False, reason=reason, explanation=explanation, evidence=evidence)


_OK = CheckResult(passed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One trial's result for one criterion: every postcondition held, or the first that did not."""

    criterion: str
    result: CheckResult
    postcondition: str | None = None
    """The postcondition that failed."""
    error_class: ErrorClass = ErrorClass.NONE

    @property
    def passed(self) -> bool:
        """Whether the criterion's every postcondition held."""
        return self.result.passed
