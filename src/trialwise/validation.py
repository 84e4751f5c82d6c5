"""What a statistical function accepts: each check returns the value it let through.

One home for the wording of a refusal: every message names the argument, its value and what is
allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import index

from trialwise.errors import InvalidArgument

# `typing` costs half an interpreter's start, and nothing here needs it to run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import Enum
    from typing import SupportsIndex, TypeVar

    T = TypeVar("T")
    E = TypeVar("E", bound=Enum)

#: The order of this many trials fits into memory.
_MOST_TRIALS = 10_000_000
#: Beyond this the square of a count overflows a double, and nobody has run as many trials.
_LARGEST_COUNT = 10**150


def require_count(argument: str, value: SupportsIndex, *, minimum: int = 0) -> int:
    """Return a whole number of at least `minimum`; a bool or a float is not a count."""
    allowed = f"be a whole number of at least {minimum}"
    try:
        count = require_integer(argument, value)
    except InvalidArgument:
        raise InvalidArgument(argument, value, allowed) from None
    if count < minimum:
        raise InvalidArgument(argument, value, allowed)
    if count > _LARGEST_COUNT:
        raise InvalidArgument(argument, value, "be at most 10**150")
    return count


def require_trials(argument: str, value: SupportsIndex) -> int:
    """Return a number of trials: at least one, and few enough to keep their order in memory."""
    # Refused here and not when the order is drawn: by then the caller would have waited for it.
    if require_count(argument, value, minimum=1) > _MOST_TRIALS:
        raise InvalidArgument(argument, value, f"be at most {_MOST_TRIALS:,}")
    return index(value)


def require_integer(argument: str, value: SupportsIndex) -> int:
    """Return a whole number of either sign."""
    # Python counts True as 1, and nobody means a flag by a count: `trials=True` is a mistake.
    if isinstance(value, bool):
        raise InvalidArgument(argument, value, "be a whole number")
    try:
        return index(value)
    except TypeError:
        raise InvalidArgument(argument, value, "be a whole number") from None


def require_successes(
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    names: tuple[str, str] = ("successes", "trials"),
) -> tuple[int, int]:
    """Successes among at least one trial: 0 ≤ successes ≤ trials."""
    # The number of trials first: "at most trials" says nothing where that is itself wrong.
    n = require_count(names[1], trials, minimum=1)
    k = require_count(names[0], successes)
    if k > n:
        raise InvalidArgument(names[0], successes, f"be at most {names[1]} ({n})")
    return k, n


def require_real(argument: str, value: float) -> float:
    """Return a finite number."""
    # float() would read the text "0.5" and count True as 1.
    if not isinstance(value, (bool, str, bytes)):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise InvalidArgument(argument, value, "be a finite number")


def require_amount(argument: str, value: float) -> float:
    """Return a finite number of at least 0, such as seconds or dollars."""
    if (number := require_real(argument, value)) < 0:
        raise InvalidArgument(argument, value, "be at least 0")
    return number


def require_rate(argument: str, value: float) -> float:
    """Return a probability, 0 and 1 included."""
    return require_number(argument, value, "lie between 0 and 1", lambda number: 0 <= number <= 1)


def require_open_rate(argument: str, value: float) -> float:
    """Return a probability strictly between 0 and 1, as every level and threshold is."""
    return require_number(
        argument, value, "lie strictly between 0 and 1", lambda number: 0 < number < 1
    )


def require_positive(argument: str, value: float) -> float:
    """Return a finite number above zero."""
    return require_number(argument, value, "be a finite number above 0", lambda number: number > 0)


def require_outcomes(argument: str, outcomes: Sequence[bool]) -> tuple[bool, ...]:
    """At least one bool; a 0 or a "passed" is not an outcome."""
    allowed = "be a sequence of at least one bool"
    try:
        # Read once: a generator would be empty at the second look.
        checked = tuple(outcomes)
    except TypeError:
        raise InvalidArgument(argument, outcomes, allowed) from None
    if not checked or not all(isinstance(outcome, bool) for outcome in checked):
        raise InvalidArgument(argument, outcomes, allowed)
    return checked


def require_choice(argument: str, value: T, choices: tuple[T, ...]) -> T:
    """One of a closed set of values."""
    if value not in choices:
        raise InvalidArgument(argument, value, f"be one of {', '.join(map(repr, choices))}")
    return value


def require_member(argument: str, value: object, kind: type[E]) -> E:
    """The member of an enumeration that a word names."""
    return kind(require_choice(argument, str(value), tuple(map(str, kind))))


def require_given(
    value: object, names: str, check: Callable[..., object], **limits: object
) -> None:
    """Check those fields of a value that are given, each by the same rule.

    Args:
        value: Whose fields they are.
        names: The names of the fields, with spaces between them; a field that is None is not given.
        check: Such as `require_count`.
        limits: What else the check takes.
    """
    for name in names.split():
        if (given := getattr(value, name)) is not None:
            check(name, given, **limits)


def require_number(
    argument: str, value: float, allowed: str, accepts: Callable[[float], bool]
) -> float:
    """Return a finite number that is accepted; a refusal says what would have been."""
    try:
        number = require_real(argument, value)
    except InvalidArgument:
        raise InvalidArgument(argument, value, allowed) from None
    if not accepts(number):
        raise InvalidArgument(argument, value, allowed)
    return number


def require_text(argument: str, value: object, allowed: str) -> str:
    """Return a text with something in it."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidArgument(argument, value, allowed)
    return value
