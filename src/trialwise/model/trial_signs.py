"""What is told of a trial without a text: how its criteria came out, and how its call went."""

from __future__ import annotations

from typing import NamedTuple

from trialwise.model.trial import ErrorClass, FailReason


class Sign(NamedTuple):
    """How one criterion came out in one trial, without a text."""

    reason: FailReason | None
    """None where it passed."""
    error_class: ErrorClass
    has_others: bool
    """Whether the trial keeps results of further checks."""

    @property
    def passed(self) -> bool:
        """Whether every postcondition of the criterion held."""
        return self.reason is None


#: Every sign there is, by the number that stands for it; 0 is a criterion that simply passed.
SIGNS = tuple(
    Sign(reason, error_class, has_others)
    for has_others in (False, True)
    for reason in (None, *FailReason)
    for error_class in ErrorClass
)
SIGN_NUMBERS = {tuple(sign): number for number, sign in enumerate(SIGNS)}
#: By the number of a sign: 1 where the criterion passed, else 0.
PASSES = bytes(sign.passed for sign in SIGNS).ljust(256, b"\0")


class Course(NamedTuple):
    """How the call of one trial went, without a text."""

    error_class: ErrorClass
    attempts: int
    has_error: bool
    """Whether a text says what went wrong."""


PLAIN = Course(ErrorClass.NONE, 1, False)
