"""Tells a check that is broken from one that raises on a bad reply, in the order of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

from trialwise import model
from trialwise.checks.check_base import broken_by, close_coroutine
from trialwise.engine.attempt import own_failure
from trialwise.engine.error_classes import classify_error, innermost_error
from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import ServiceError
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.criterion import Check
from trialwise.model.run import RunTexts
from trialwise.model.trial import (
    NOT_MEASURED,
    Appraisal,
    AskingPostcondition,
    Postcondition,
    reaches,
)

# One postcondition and one reply: the result, or why there is none.

_OK = model.CheckResult.ok()
PASSED = Appraisal(result=_OK)
"""What is said of a reply by a check that holds."""


class ReadyCheck(NamedTuple):
    """A postcondition with its name looked up."""

    name: str
    check: Callable[[model.Reply], object]
    asking: AskingPostcondition | None = None


def make_ready(check: Check, pass_at: float | None = None) -> ReadyCheck:
    """Look up the name of a postcondition, and whether it asks somebody.

    Args:
        check: A postcondition, or a function.
        pass_at: The score from which a reply passes, where functions may return scores.
    """
    if not isinstance(check, Postcondition):
        from trialwise.checks.predicates import predicate

        check = predicate(check, pass_at=pass_at)
    elif pass_at is not None:
        check = _let_grade(check, pass_at)
    return ReadyCheck(check.name, check.check, _find_asking(check))


def _let_grade(check: Postcondition, pass_at: float) -> Postcondition:
    """Return a check whose function may return a score; any other check as it is."""
    match getattr(check, "spelling", None):
        case "python" if getattr(check, "pass_at", None) is None:
            return cast("Postcondition", replace(cast("Any", check), pass_at=pass_at))
        case "named":
            inner = cast("Any", check)
            graded = _let_grade(inner.condition, pass_at)
            return check if graded is inner.condition else replace(inner, condition=graded)
    return check


def _find_asking(check: object) -> AskingPostcondition | None:
    """Return the asking postcondition that a check is, or only renames.

    A verdict turned round or mixed with others is not the one whose errors were measured.
    """
    if hasattr(check, "acheck"):
        return cast("AskingPostcondition", check)
    match getattr(check, "spelling", None):
        case "named" | "not" as spelling:
            parts: tuple[object, ...] = (getattr(check, "condition", None),)
        case "all_of" | "any_of" as spelling:
            parts = getattr(check, "checks", ())
        case _:
            return None
    for part in parts:
        found = _find_asking(part)
        if found is not None and spelling != "named":
            allowed = "stand by itself among a criterion's postconditions, not inside another"
            raise InvalidArgument(f"the postcondition {found.name!r}", check, allowed)
        if found is not None:
            return found
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised(Appraisal):
    """What is said of a reply on which a check raised, or whose check is broken."""

    broken: BrokenCheck


def _blame(broken: BrokenCheck) -> Raised:
    """Return the failure of a reply on which a check raised."""
    said = broken.problem.partition(": ")[2] if broken.raised else ""
    result = model.CheckResult.fail(
        f"check raised {broken.raised}" if broken.raised else broken.problem,
        evidence=said,
        reason=model.FailReason.RAISED if broken.raised else model.FailReason.BROKEN,
    )
    return Raised(result=result, broken=broken)


async def ask_check(asking: AskingPostcondition, reply: model.Reply, seed: int) -> Appraisal:
    """Return the result of a postcondition that asks a judge or another service."""
    try:
        answer: object = await asking.acheck(reply, seed=seed)
    except ServiceError as error:
        if error.stops_run:
            raise
        return _no_answer(error)
    except BaseException as error:
        return _not_measured(own_failure(error), asking.name)
    if isinstance(answer, Appraisal):
        return answer
    if isinstance(answer, model.CheckResult):
        return Appraisal(result=answer)
    problem = f"returned {type(answer).__name__}, expected an Appraisal"
    return _blame(BrokenCheck(asking.name, problem))


def appraise_check(
    name: str, check: Callable[[model.Reply], object], reply: model.Reply
) -> Appraisal:
    """Return the result of a postcondition."""
    try:
        result = check(reply)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _not_measured(error, name)
    if result is _OK:
        return PASSED
    if isinstance(result, model.CheckResult):
        return Appraisal(result=result)
    close_coroutine(result)
    return _blame(BrokenCheck(name, f"returned {type(result).__name__}, expected a CheckResult"))


def _not_measured(error: BaseException, name: str) -> Appraisal:
    """Return the outcome of a check whose judge could not be reached, or that raised."""
    trouble = classify_error(error)
    if trouble.error_class in NOT_MEASURED:
        return _no_answer(innermost_error(error.__cause__ or error))
    return _blame(error if isinstance(error, BrokenCheck) else broken_by(error, name))


def _no_answer(error: BaseException) -> Appraisal:
    error_class = classify_error(error).error_class
    text = f"nobody answered: {error_text(error)}"
    return Appraisal(
        result=model.CheckResult.fail(text, reason=model.FailReason.TRANSFORM),
        error_class=error_class if error_class in NOT_MEASURED else model.ErrorClass.INFRASTRUCTURE,
    )


#: A check that raises on each of this many first replies is broken.
# One reply may be unlike all others, and so may two. With three in a row from the first on, a check
# that answers on at least half of the replies is taken for broken in at most 1/8 of runs.
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

    def __init__(self, names: Sequence[Sequence[str]], done: Iterable[model.Trial] = ()) -> None:
        # How often each check has raised that has not answered yet.
        self._raised = [dict.fromkeys(mine, 0) for mine in names]
        self._names = names
        self._next = 0
        self._waiting: dict[int, model.Trial] = {}
        self.broken: BrokenBy | None = None
        self.is_over = False
        """Whether every check has answered, so that none can turn out to be broken this way."""
        self.is_doubtful = False
        """Whether a check has raised on every reply that it saw, and saw too few to tell."""
        for trial in done:
            if not self.is_over:
                self.add(trial, is_alone=True)

    def add(self, trial: model.Trial, *, is_alone: bool) -> None:
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

    def _look_at(self, trial: model.Trial) -> None:
        if trial.latency_s is None or trial.error_class is not model.ErrorClass.NONE:
            return  # no check has seen a reply
        for outcome, names, left in zip(trial.outcomes, self._names, self._raised, strict=True):
            last = outcome.postcondition
            for name in names:
                if name == last and outcome.result.reason is model.FailReason.RAISED:
                    if name in left:
                        left[name] += 1
                        if left[name] == _FIRST_REPLIES:
                            self.broken = _explain_raises(trial, name, outcome.result)
                    break
                left.pop(name, None)
                if name == last:
                    break


def _explain_raises(trial: model.Trial, name: str, last: model.CheckResult) -> BrokenBy:
    said = ": ".join(filter(None, (last.explanation, last.evidence)))
    problem = f"raised on each of the first {_FIRST_REPLIES} replies that it saw"
    where = f"trial {trial.index}, input {trial.input_id}"
    return BrokenBy(name, f"{problem} ({where}: {said})", trial.traceback)


def find_mistake(trial: model.Trial) -> BrokenBy | None:
    """Find a check that is broken whatever the reply says; None where there is none.

    Args:
        trial: It has ended.
    """
    for one in trial.outcomes:
        if one.result.reason is model.FailReason.BROKEN:
            problem = f"{one.result.explanation} (trial {trial.index}, input {trial.input_id})"
            return BrokenBy(one.postcondition or one.criterion, problem, trial.traceback)
    return None


# --- The score of one reply: what several graders say of it, each with its weight -----------------

#: Graders whose scores a failure names; the others are in the record.
_NAMED = 6


class Panel(NamedTuple):
    """The checks of a criterion that grades, and the score at which a reply passes."""

    criterion: str
    graders: tuple[tuple[str, float], ...]
    """The name and the weight of each."""
    pass_at: float

    @classmethod
    def of(cls, criterion: model.Criterion) -> Panel | None:
        """Return the panel of a criterion; None where its checks only pass or fail."""
        pass_at = criterion.lowest_pass
        return None if pass_at is None else cls(criterion.name, criterion.graders, pass_at)

    def grade(self, answers: Sequence[Appraisal]) -> model.Outcome:
        """Return the outcome of a reply: Σ weight · score / Σ weight, which passes or does not.

        A reply that a grader could not read gets 0 from it. Where a grader has no answer, or what
        was recorded does not tell, the reply is not measured.

        Args:
            answers: What each grader says, in their order.
        """
        for (name, _), one in zip(self.graders, answers, strict=True):
            outcome = partial(model.Outcome.of_failure, self.criterion, one.result, name)
            if one.error_class is not model.ErrorClass.NONE:
                return replace(outcome(), error_class=one.error_class)
            if one.result.reason is model.FailReason.UNKNOWN:
                return outcome()
        marks = tuple(one.result.mark for one in answers)
        weights = [weight for _, weight in self.graders]
        total = math.fsum(w * mark for w, mark in zip(weights, marks, strict=True))
        # `fsum` twice: 0.1 + 0.2 must not pass a limit of 0.3 that the marks meet only by rounding,
        # and equal marks must give just that mark.
        score = min(1.0, total / math.fsum(weights))
        if reaches(score, self.pass_at):
            result = model.CheckResult(passed=True, score=score)
            return model.Outcome(criterion=self.criterion, result=result, marks=marks)
        # The first of the worst, as the criterion lists them: the same reply is explained the same
        # way.
        worst = min(range(len(marks)), key=lambda place: marks[place])
        said, name = answers[worst].result, self.graders[worst][0]
        result = model.CheckResult.fail(
            self._explain(score, marks, said),
            evidence=said.evidence,
            reason=said.reason or model.FailReason.CONDITION,
            score=score,
        )
        return model.Outcome(
            criterion=self.criterion, result=result, postcondition=name, marks=marks
        )

    def _explain(self, score: float, marks: Sequence[float], worst: model.CheckResult) -> str:
        limit = f"the score is {score:.6g}, and {self.pass_at:g} passes"
        if len(marks) == 1:
            is_told = not worst.explanation or worst.explanation.startswith("the score is ")
            return worst.explanation or limit if is_told else f"{limit}: {worst.explanation}"
        shown = zip(self.graders[:_NAMED], marks, strict=False)
        named = [f"{name} {mark:.6g}" for (name, _), mark in shown]
        if len(marks) > _NAMED:
            named.append(f"{len(marks) - _NAMED} more")
        return f"{limit}: {', '.join(named)}"
