"""What the criteria say of one reply: it passed, failed or could not be measured, and its score."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trialwise.errors import InvalidArgument
from trialwise.validation import require_rate


class FailReason(StrEnum):
    """Why a trial failed a criterion: diagnostic only, the arithmetic is the same."""

    CONDITION = "condition"
    """The postcondition was evaluated and did not hold."""
    TRANSFORM = "transform"
    """The reply could not be turned into what the postcondition looks at."""
    NO_VALUE = "no-value"
    """There was no reply to look at."""
    UNKNOWN = "unknown"
    """What the postcondition asks about cannot be told from what was recorded: not measured."""
    RAISED = "raised"
    """The postcondition raised an exception on this reply."""
    BROKEN = "broken"
    """The postcondition is broken, whatever the reply says: the run stops without a verdict."""


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
    NO_EVIDENCE = "no-evidence"
    """The service replied, and what was recorded of it does not tell what a criterion asks."""
    CONFIGURATION = "configuration"
    """The service refused the request as it is set up, and had answered none before."""


def reaches(score: float, limit: float) -> bool:
    """Return whether a score is at least a limit, both read as decimals.

    >>> reaches(0.1 + 0.2, 0.3), reaches(0.29999, 0.3)
    (True, False)
    """
    if abs(score - limit) > 1e-9:
        return score > limit
    # A weighted mean of decimals may be an ulp below the decimal that it stands for.
    return round(score, 12) >= round(limit, 12)


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
    score: float | None = None
    """How good the reply is, from 0 to 1; None where it was not graded."""

    def __post_init__(self) -> None:
        if self.passed is not (self.reason is None):
            raise InvalidArgument("reason", self.reason, "be given exactly for a failure")
        if self.score is not None:
            require_rate("score", self.score)

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
        score: float | None = None,
    ) -> CheckResult:
        """The postcondition does not hold, and why."""
        return cls(
            passed=False, reason=reason, explanation=explanation, evidence=evidence, score=score
        )

    @classmethod
    def grade(
        cls, score: float, *, pass_at: float, explanation: str = "", evidence: str = ""
    ) -> CheckResult:
        """Grade the reply with a score from 0 to 1, which passes from `pass_at` on.

        >>> CheckResult.grade(0.4, pass_at=0.7).explanation
        'the score is 0.4, and 0.7 passes'
        """
        if reaches(score, pass_at):
            return cls(passed=True, explanation=explanation, evidence=evidence, score=score)
        said = f": {explanation}" if explanation else ""
        why = f"the score is {score:.6g}, and {pass_at:g} passes{said}"
        return cls.fail(why, evidence=evidence, score=score)

    @property
    def mark(self) -> float:
        """The score; without one, 1 for a pass and 0 for a failure."""
        return float(self.passed) if self.score is None else self.score


_OK = CheckResult(passed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCheck:
    """A postcondition after the first that failed, and did not hold either or was not asked."""

    postcondition: str
    result: CheckResult | None
    """None where it was not asked, or could not say anything of a reply that had failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One trial's result for one criterion: every postcondition held, or the first that did not."""

    criterion: str
    result: CheckResult
    postcondition: str | None = None
    """The postcondition that failed."""
    error_class: ErrorClass = ErrorClass.NONE
    others: tuple[OtherCheck, ...] = ()
    """Postconditions after it that did not hold either, or were not asked; all others held."""
    marks: tuple[float, ...] = ()
    """The score that each grader gave, in their order; empty where the reply was not graded."""

    @property
    def failed_checks(self) -> tuple[tuple[str, CheckResult], ...]:
        """Every postcondition that failed, the first one first."""
        if self.passed or self.postcondition is None:
            return ()
        others = ((one.postcondition, one.result) for one in self.others)
        return (self.postcondition, self.result), *(
            (name, result) for name, result in others if result is not None
        )

    @property
    def passed(self) -> bool:
        """Whether the criterion's every postcondition held."""
        return self.result.passed

    @classmethod
    def of_failure(cls, criterion: str, result: CheckResult, postcondition: str | None) -> Outcome:
        """Make the outcome of a postcondition that failed or could not be measured."""
        unknown = result.reason is FailReason.UNKNOWN
        return cls(
            criterion=criterion,
            result=result,
            postcondition=postcondition,
            error_class=ErrorClass.NO_EVIDENCE if unknown else ErrorClass.NONE,
        )
