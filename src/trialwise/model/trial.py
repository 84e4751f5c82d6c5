"""One call with one input and one seed: what came back, and what each criterion says of it.

Every trial counts. A trial without a testable value is a failure like any other; its reason says
that it was not the condition that failed (companion §1.4.5a).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from trialwise import stats
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply, Usage, read_reply
from trialwise.validation import require_rate

# What the criteria say of one reply: it passed, failed or could not be measured, and its score.


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
        # A failure without a reason could not be told from a reply that nobody checked (§1.4.5a).
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


# A trial is known with what is said of it: whoever imports the one imports the others from here.


#: The role of the model's own messages.
MODEL = "assistant"

#: Classes that say nothing about the service: such a trial is asked again.
NOT_MEASURED = frozenset(
    {ErrorClass.INFRASTRUCTURE, ErrorClass.PRE_VALIDATION, ErrorClass.CONFIGURATION}
)
#: Classes of trials that the per-protocol rate leaves out, because they say nothing about replies.
EXCUSED = NOT_MEASURED | {ErrorClass.EMPTY_RUN, ErrorClass.NO_EVIDENCE}
#: Why a criterion fails without having reached its condition.
UNTESTABLE = frozenset(FailReason) - {FailReason.CONDITION}


# The names are those of clinical trials (ICH E9, section 5.2): who was assigned to a treatment is
# counted, or only who received it.
class Analysis(StrEnum):
    """Whose trials decide."""

    MEASURED = "measured"
    """Those that say something about the service: what never reached it is asked again."""
    INTENT_TO_TREAT = "intent-to-treat"
    """All of them: how reliable is the whole pipeline?"""
    PER_PROTOCOL = "per-protocol"
    """Only the trials that were measured; empty runs are left out as well."""

    def leaves_out(self, error_class: ErrorClass) -> bool:
        """Return whether a trial of this class takes no part in the decision.

        >>> Analysis.MEASURED.leaves_out(ErrorClass.INFRASTRUCTURE)
        True
        >>> Analysis.MEASURED.leaves_out(ErrorClass.EMPTY_RUN)
        False
        """
        return error_class in _LEFT_OUT[self]

    @property
    def counts_silence(self) -> bool:
        """Whether a trial counts as failed that a judge gave no verdict on.

        A judge may be silent on just the replies that are bad, so that leaving them out is a
        choice that somebody has to make.
        """
        return self is not Analysis.PER_PROTOCOL


_LEFT_OUT: Mapping[Analysis, frozenset[ErrorClass]] = {
    Analysis.MEASURED: NOT_MEASURED,
    Analysis.INTENT_TO_TREAT: frozenset(),
    Analysis.PER_PROTOCOL: EXCUSED,
}


# Not frozen, only without anything that sets a field: there may be a million, and freezing would
# triple what making one takes.
@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Trial:
    """A completed trial, in the form that is journalled and decided."""

    experiment: str
    index: int
    """Its place in the order of inputs of its experiment, from 0."""
    input_id: str
    seed: int
    outcomes: tuple[Outcome, ...]
    """One per criterion of the experiment, in the contract's order."""
    error_class: ErrorClass = ErrorClass.NONE
    error: str = ""
    """What went wrong with the call, for a person."""
    latency_s: float | None = None
    """None where there was no reply."""
    usage: Usage | None = None
    cost_usd: float | None = None
    setup_s: float | None = None
    """Preparation the service reports, kept apart from the trial itself."""
    setup_usage: Usage | None = None
    setup_cost_usd: float | None = None
    judging_usage: Usage | None = None
    """What its judges took, kept apart from what the service took."""
    judging_cost_usd: float | None = None
    attempts: int = 1
    """Transport tries; more than one means a retry after an infrastructure error."""
    attempt_errors: tuple[str, ...] = ()
    """What the failed attempts before the last one said."""
    started_s: float = 0.0
    """Since the run began, by the monotonic clock."""
    reply: str | None = None
    """The reply as text, shortened and redacted, for people to read."""
    whole: Mapping[str, Any] | None = field(default=None, hash=False)
    """The reply in plain values, where its text does not say all; empty where it is not kept."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    """The messages of the session in order, each with its role, shortened and redacted."""
    shape: stats.TraceShape | None = None
    """The counts of the session that stability is computed from; None where none was told."""
    ended: str | None = None
    """How the session ended, where its trace tells, such as `answer` or `max-turns`."""
    exit_code: int | None = None
    traceback: str = ""
    """The hash of where the service or a check raised, by which the run's texts are asked."""
    is_plain: bool = field(default=False, init=False, repr=False, compare=False)
    """Whether it is known to have passed at the first attempt, and to tell of its reply only."""

    def __repr__(self) -> str:
        failed = [one for one in self.outcomes if not one.passed]
        why = "".join(f"; {one.criterion}: {one.result.explanation[:80]}" for one in failed)
        what = f"{'failed' if failed else 'passed'}, input {self.input_id!r}, seed {self.seed}"
        return f"<Trial {self.index} {what}{why}>"

    def rebuild_reply(self) -> Reply | None:
        """Return the reply as the checks saw it; None where there was none, or it is not kept.

        Secrets that the run takes out of its texts are not in it.
        """
        is_kept = self.reply is not None if self.whole is None else bool(self.whole)
        if self.latency_s is None or not is_kept:
            return None
        text = {"value": self.reply, "latency_s": self.latency_s}
        return read_reply(text | dict(self.whole or {}))

    @property
    def passed(self) -> bool:
        """Whether every criterion passed: the success that latency is conditional on."""
        return all(outcome.result.passed for outcome in self.outcomes)

    @property
    def is_excused(self) -> bool:
        """Whether the per-protocol analysis leaves it out."""
        return self.error_class in EXCUSED

    def is_unjudged(self, outcome: Outcome) -> bool:
        """Return whether the service replied, and one criterion could not be measured.

        A judge gave no verdict, or what was recorded of the reply does not tell.
        """
        return outcome.error_class in EXCUSED and self.error_class not in EXCUSED

    def is_unheard(self, outcome: Outcome) -> bool:
        """Return whether a criterion failed without anything that a judge could judge."""
        untestable = outcome.result.reason in UNTESTABLE and not self.is_unjudged(outcome)
        return self.error_class is not ErrorClass.NONE or untestable

    def outcome(self, criterion: str) -> Outcome:
        """Return what one criterion says of it."""
        return next(one for one in self.outcomes if one.criterion == criterion)

    @property
    def has_expenses(self) -> bool:
        """Whether anything says what it took; asked first, since most trials do not."""
        told = ("usage", "cost_usd", "setup_s", "judging_usage", "judging_cost_usd")
        return any(getattr(self, name) is not None for name in told)


def grade_outcome(outcome: Outcome, score: float, marks: tuple[float, ...] = ()) -> Outcome:
    """Return an outcome with its score, and with the one that each grader gave."""
    return replace(outcome, result=replace(outcome.result, score=score), marks=marks)


# --- A named predicate on one reply (companion §1.4.2) --------------------------------------------
#
# Most are decided on the spot. One that has to ask somebody, such as a judge model, also has
# `acheck` to wait in; whoever it asks may fail, which is neither the service's failure nor a pass.


@runtime_checkable
class Postcondition(Protocol):
    """Decides pass or fail for one observable property of one reply.

    It carries no threshold: that belongs to the criterion that hosts it. Checking never raises for
    a reply it dislikes; a reply it cannot read is a failure whose reason says so.
    """

    @property
    def name(self) -> str:
        """The name in reports."""

    def check(self, reply: Reply) -> CheckResult:
        """Return what it says of a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Appraisal:
    """What a postcondition that asked somebody says of a reply, and what asking took.

    >>> Appraisal(result=CheckResult.ok()).error_class
    <ErrorClass.NONE: 'none'>
    """

    result: CheckResult
    error_class: ErrorClass = ErrorClass.NONE
    """Why nobody answered the question of a check; NONE if somebody did."""
    usage: Usage | None = None
    """Tokens that asking took, apart from the reply's own."""
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        if self.result.passed and self.error_class is not ErrorClass.NONE:
            allowed = f"be none for a pass: no answer is never one, got {self.error_class}"
            raise InvalidArgument("error_class", str(self.error_class), allowed)


@runtime_checkable
class AskingPostcondition(Postcondition, Protocol):
    """A postcondition that has to wait for an answer; the engine awaits it beside other trials."""

    async def acheck(self, reply: Reply, *, seed: int) -> Appraisal:
        """Return what it says of a reply.

        Args:
            reply: What came back; its details hold the trial's input.
            seed: The trial's own, for whatever is to be drawn by chance.
        """

    async def aclose(self) -> None:
        """Release what asking holds; closing twice is harmless, and a later call opens it again."""


def advisory_reasons(postconditions: Iterable[object]) -> tuple[str, ...]:
    """Return why a verdict that rests on these can only advise; nothing where it may decide.

    A postcondition whose own error is unknown says so in a property `advisory`, a tuple of reasons.

    >>> class Guess:
    ...     advisory = ("nobody has measured its errors",)
    >>> advisory_reasons([Guess(), len])
    ('nobody has measured its errors',)
    """
    several = list(postconditions)
    reasons = [reason for one in several for reason in getattr(one, "advisory", None) or ()]
    if len(several) > 1 and any(getattr(one, "errors", None) is not None for one in several):
        reasons.append(
            "the judge stands beside other postconditions, and what was measured is its own error, "
            "not that of all of them; give it a criterion of its own"
        )
    return tuple(reasons)


def measured_errors(postconditions: Sequence[object]) -> stats.Confusion | None:
    """Return how often a criterion's one postcondition is wrong, where that was measured.

    Beside others it is not the criterion's outcome that was measured, and there is no saying.

    >>> measured_errors([len]) is None
    True
    """
    # Of several only the conjunction decides, and its errors are no function of those of one.
    if len(postconditions) != 1:
        return None
    found: stats.Confusion | None = getattr(postconditions[0], "errors", None)
    return found


def counts_labels(postconditions: Sequence[object]) -> bool:
    """Return whether the labels of a criterion's judge count as trials of the service.

    >>> counts_labels([len])
    False
    """
    return any(getattr(one, "labels_count_as_trials", False) for one in postconditions)
