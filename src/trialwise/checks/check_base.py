"""What every built-in postcondition shares: it never raises on a reply, and it can be written down.

The guard stands here once, so that a check's own file holds nothing but its condition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, ClassVar

from trialwise.checks.quoting import failed
from trialwise.declarations.signatures import Natural
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason
from trialwise.validation import require_count


class Unset:
    """The type of `UNSET`: no comparison asked for, where None would ask for null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET = Unset()


class Unreadable(Exception):
    """A reply is not of the form that a check looks at.

    Args:
        explanation: Why, on one line.
        evidence: The piece of the reply that shows it.
        reason: `transform`, or `no-value` where there is nothing to look at.
    """

    def __init__(
        self, explanation: str, evidence: str = "", *, reason: FailReason = FailReason.TRANSFORM
    ) -> None:
        super().__init__(explanation)
        self.explanation = explanation
        self.evidence = evidence
        self.reason = reason


class Check(ABC):
    """A built-in postcondition: a frozen dataclass whose fields are its constructor's arguments."""

    __slots__ = ()

    spelling: ClassVar[str]
    """How suite files spell it: `class Contains(Check, spelling="contains")`."""

    def __init_subclass__(cls, *, spelling: str = "") -> None:
        # A dataclass with slots is made a second time, and then has it already.
        if spelling:
            cls.spelling = spelling

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in reports."""

    def check(self, reply: Reply) -> CheckResult:
        """Return the result for a reply; raise only if a function of the user is broken."""
        try:
            return self._examine(reply)
        except BrokenCheck:
            raise
        except Unreadable as unreadable:
            return failed(unreadable.explanation, unreadable.evidence, reason=unreadable.reason)
        except Exception as error:  # an object of the user's may raise anything from any method
            return failed(
                f"the reply could not be examined: {type(error).__name__}",
                error_text(error),
                reason=FailReason.TRANSFORM,
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it; `from_spec` reads it back."""
        values = [(field, getattr(self, field.name)) for field in fields(self) if field.init]  # type: ignore[arg-type]
        given = {field.name: plain(value) for field, value in values if value != _default(field)}
        # What has to be named in Python has to be named in a suite, too.
        first = values[0][0].name if values and not values[0][0].kw_only else ""
        if list(given) == [first] and not isinstance(given[first], dict):
            return {self.spelling: given[first]}
        return {self.spelling: given}

    def _keep(self, **values: object) -> None:
        """Put what was read from arguments in their place: the dataclass is frozen."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _examine(self, reply: Reply) -> CheckResult:
        """Return what it says of a reply it can read; it may raise `Unreadable`."""


def check_flags(**flags: object) -> None:
    """Options that are true or false; text such as "no" would count as true."""
    for argument, value in flags.items():
        if not isinstance(value, bool):
            raise InvalidArgument(argument, value, "be true or false")


def check_texts(argument: str, texts: object) -> tuple[str, ...]:
    """One text or several, none of them empty, as a tuple."""
    several = tuple(texts) if isinstance(texts, (list, tuple)) else (texts,)
    if not several:
        raise InvalidArgument(argument, [], "hold at least one text")
    for text in several:
        if not isinstance(text, str) or not text:
            raise InvalidArgument(argument, text, "be text of at least one character")
    return several


def write_spec(check: object) -> dict[str, Any]:
    """Write a postcondition as a suite file spells it, if it is one that a suite file can hold."""
    if not isinstance(check, Check):
        raise InvalidArgument("check", check, "be a built-in postcondition to be written down")
    return check.to_dict()


def plain(value: Any) -> Any:
    """Return a field as JSON: tuples as lists, and checks as a suite spells them."""
    if isinstance(value, tuple):
        items = [plain(item) for item in value]
        return items[0] if len(items) == 1 and not isinstance(items[0], dict) else items
    return value


def _default(field: Field[Any]) -> object:
    return UNSET if field.default is MISSING else field.default


#: What a check raises whatever the reply says: there is a mistake in its code.
_MISTAKES = (NameError, ImportError, SyntaxError, NotImplementedError)


def broken_by(error: BaseException, name: str) -> BrokenCheck:
    """Return the error for a check that raised something other than an AssertionError.

    Args:
        error: What it raised.
        name: The check's.
    """
    import traceback
    from pathlib import Path

    said = ": ".join(filter(None, (type(error).__name__, error_text(error))))
    # The frames of this package only say that it called the check.
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[1]
    own = [one for one in frames if package not in Path(one.filename).parents]
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(own), said]
    raised = "" if isinstance(error, _MISTAKES) else type(error).__name__
    return BrokenCheck(name, f"raised {said}", traceback="".join(lines), raised=raised)


def error_text(error: BaseException) -> str:
    """Return what an error says; its own `__str__` may raise anything."""
    try:
        return str(error)
    except Exception:
        return ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Both ends belong to it."""

    minimum: float | None = None
    maximum: float | None = None

    def __str__(self) -> str:
        if self.minimum is None:
            return f"at most {self.maximum}"
        if self.maximum is None:
            return f"at least {self.minimum}"
        if self.minimum == self.maximum:
            return f"exactly {self.minimum}"
        return f"{self.minimum} to {self.maximum}"

    @property
    def times(self) -> str:
        """The limits on how often something happens.

        >>> Limits(1, 1).times, Limits(2).times, Limits(0, 1).times
        ('exactly 1 time', 'at least 2 times', '0 to 1 time')
        """
        last = self.minimum if self.maximum is None else self.maximum
        return f"{self} {'time' if last == 1 else 'times'}"

    def hold(self, value: float) -> bool:
        """Return whether a value lies within; NaN does not."""
        return (self.minimum is None or value >= self.minimum) and (
            self.maximum is None or value <= self.maximum
        )

    def check(self, require: Callable[[str, Any], object]) -> None:
        """Each as `require` has it, at least one of them, in order."""
        for argument, value in (("minimum", self.minimum), ("maximum", self.maximum)):
            if value is not None:
                require(argument, value)
        if self.minimum is None and self.maximum is None:
            raise InvalidArgument("minimum", None, "be given, or maximum, or both")
        if self.minimum is not None and self.maximum is not None and self.maximum < self.minimum:
            raise InvalidArgument("maximum", self.maximum, f"be at least minimum ({self.minimum})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimits(Check):
    """A check whose count lies within limits."""

    minimum: Natural | None = None
    maximum: Natural | None = None

    def __post_init__(self) -> None:
        self.limits.check(require_count)

    @property
    def limits(self) -> Limits:
        """The limits."""
        return Limits(self.minimum, self.maximum)
