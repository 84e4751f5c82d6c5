"""One postcondition and one reply: the result, or why there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from trialwise.checks.check_base import broken_by
from trialwise.engine.attempt import own_failure
from trialwise.engine.error_classes import classify_error, innermost_error
from trialwise.engine.excerpts import error_text
from trialwise.engine.ports import ServiceError
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.criterion import Check
from trialwise.model.postcondition import Appraisal, AskingPostcondition, Postcondition
from trialwise.model.reply import Reply
from trialwise.model.trial import NOT_MEASURED, CheckResult, ErrorClass, FailReason

_OK = CheckResult.ok()
PASSED = Appraisal(result=_OK)
"""What is said of a reply by a check that holds."""


class ReadyCheck(NamedTuple):
    """A postcondition with its name looked up."""

    name: str
    check: Callable[[Reply], object]
    asking: AskingPostcondition | None = None


def make_ready(check: Check, pass_at: float | None = None) -> ReadyCheck:
    """Look up the name of a postcondition, and whether it asks somebody.

    Args:
        check: A postcondition, or a function.
        pass_at: The score from which a reply passes, where functions may return scores.
    """
    if isinstance(check, Postcondition):
        if pass_at is not None:
            check = _let_grade(check, pass_at)
        return ReadyCheck(check.name, check.check, _asking(check) or _within(check))
    from trialwise.checks.predicates import predicate

    postcondition = predicate(check, pass_at=pass_at)
    return ReadyCheck(postcondition.name, postcondition.check, _asking(postcondition))


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


def _asking(check: object) -> AskingPostcondition | None:
    return cast("AskingPostcondition", check) if hasattr(check, "acheck") else None


def _within(check: object) -> AskingPostcondition | None:
    """Return the asking postcondition that another one only renames.

    A verdict turned round or mixed with others is not the one whose errors were measured.
    """
    match getattr(check, "spelling", None):
        case "named" | "not" as spelling:
            parts: tuple[object, ...] = (getattr(check, "condition", None),)
        case "all_of" | "any_of" as spelling:
            parts = getattr(check, "checks", ())
        case _:
            return None
    for part in parts:
        found = _asking(part) or _within(part)
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
    result = CheckResult.fail(
        f"check raised {broken.raised}" if broken.raised else broken.problem,
        evidence=said,
        reason=FailReason.RAISED if broken.raised else FailReason.BROKEN,
    )
    return Raised(result=result, broken=broken)


async def ask_check(asking: AskingPostcondition, reply: Reply, seed: int) -> Appraisal:
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
    if isinstance(answer, CheckResult):
        return Appraisal(result=answer)
    problem = f"returned {type(answer).__name__}, expected an Appraisal"
    return _blame(BrokenCheck(asking.name, problem))


def appraise_check(name: str, check: Callable[[Reply], object], reply: Reply) -> Appraisal:
    """Return the result of a postcondition."""
    try:
        result = check(reply)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _not_measured(error, name)
    if result is _OK:
        return PASSED
    if isinstance(result, CheckResult):
        return Appraisal(result=result)
    close = getattr(result, "close", None)
    if hasattr(result, "__await__") and callable(close):
        close()  # a coroutine nobody will await
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
        result=CheckResult.fail(text, reason=FailReason.TRANSFORM),
        error_class=error_class if error_class in NOT_MEASURED else ErrorClass.INFRASTRUCTURE,
    )
