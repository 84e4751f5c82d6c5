"""What every built-in postcondition shares: it never raises on a reply, and it can be written down.

The guard stands here once, so that a check's own file holds nothing but its condition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from typing import Any, ClassVar

from trialwise.declarations.scalars import Choice, Count, Duration, Flag, Kind, Money, Text
from trialwise.declarations.signatures import derive_keys
from trialwise.declarations.structures import Either, Key
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.extensions import blame_extension
from trialwise.model import CheckResult, FailReason, Reply
from trialwise.redaction import LOOKED_AT, redact_text, redact_values
from trialwise.validation import require_choice, require_count, require_real


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

    def to_result(self) -> CheckResult:
        """Return the failure of a check that could not be evaluated."""
        return failed(self.explanation, self.evidence, reason=self.reason)


class Check(ABC):
    """A built-in postcondition: a frozen dataclass whose fields are its constructor's arguments."""

    __slots__ = ()

    spelling: ClassVar[str]
    """How suite files spell it: `class Contains(Check, spelling="contains")`."""

    def __init_subclass__(cls, *, spelling: str = "") -> None:
        # A dataclass with slots is made a second time, and then has it already.
        if spelling:
            cls.spelling = spelling

    def __post_init__(self) -> None:
        """Refuse arguments that are not of the kinds that their types declare."""
        for key in _declared_keys(type(self)):
            value = getattr(self, key.field, None)
            # A default needs no check, and None stands for nothing given.
            if value is not key.fallback:
                self._keep(**{key.field: _check_argument(key.field, value, key.kind)})

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in reports."""

    def check(self, reply: Reply) -> CheckResult:
        """Return the result for a reply; raise only if what somebody else wrote is broken."""
        try:
            return self._examine(reply)
        except BrokenCheck:
            raise
        except Unreadable as unreadable:
            return unreadable.to_result()
        except Exception as error:  # an object of the user's may raise anything from any method
            if not type(self).__module__.startswith("trialwise."):
                # A mistake in somebody else's check must not read as a failure of the service.
                raise broken_by(error, self.name) from error
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
        # The short form, as people write it: it is what a fingerprint of the criterion is made of.
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


@cache
def _declared_keys(kind: type[Check]) -> tuple[Key, ...]:
    try:
        return derive_keys(kind)
    except (TypeError, NameError):
        return ()  # no suite can spell such arguments; the check itself looks at them


def _check_argument(argument: str, value: Any, kind: Kind) -> Any:
    """Return an argument as a check keeps it; of other kinds the check itself knows what it may be.

    A suite's reader asks the same of what a suite says.
    """
    match kind:
        case Flag() if not isinstance(value, bool):
            # Text such as "no" would count as true.
            raise InvalidArgument(argument, value, "be true or false")
        case Count(form=form):
            require_count(argument, value, minimum=form["minimum"])
        case Choice(words=words):
            require_choice(argument, value, words)
        case Duration() | Money() if require_real(argument, value) < 0:
            raise InvalidArgument(argument, value, "be at least 0")
        case Either(kinds=[Text(), _]):
            return check_texts(argument, value)
    return value


def check_texts(argument: str, texts: object) -> tuple[str, ...]:
    """One text or several, none of them empty, as a tuple."""
    # A tuple, so that a check can be hashed and nobody can change it after the run began.
    several = tuple(texts) if isinstance(texts, (list, tuple)) else (texts,)
    if not several:
        raise InvalidArgument(argument, [], "hold at least one text")
    for text in several:
        if not isinstance(text, str) or not text:
            raise InvalidArgument(argument, text, "be text of at least one character")
    return several


def to_spec(check: object) -> dict[str, Any]:
    """Return how a suite file spells a check, if it is one that a suite file can hold.

    >>> from trialwise.checks.texts import length
    >>> to_spec(length(maximum=200))
    {'length': {'maximum': 200}}
    """
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
    extension = blame_extension(error)
    head = f"In the extension {extension}, which is not part of trialwise:\n" if extension else ""
    lines = [head, "Traceback (most recent call last):\n", *traceback.format_list(own), said]
    # An error of any other kind may be due to the reply; on each of the first replies it is not.
    raised = "" if isinstance(error, _MISTAKES) else type(error).__name__
    return BrokenCheck(name, f"raised {said}", traceback="".join(lines), raised=raised)


def close_coroutine(result: object) -> None:
    """Close a coroutine that nobody will await: it would warn long after the message about it."""
    close = getattr(result, "close", None)
    if hasattr(result, "__await__") and callable(close):
        close()


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
        # Written so that NaN, of which no comparison is true, lies outside of every limit.
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


class CountLimits(Check):
    """A check whose count lies within limits, which are arguments of its own."""

    __slots__ = ()

    minimum: int | None
    maximum: int | None

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        self.limits.check(require_count)

    @property
    def limits(self) -> Limits:
        """The limits."""
        return Limits(self.minimum, self.maximum)


# --- What a failure shows: bounded, on one line, and safe to print --------------------------------
#
# One home for the bounds, so that no check can put a whole reply, a line break or a terminal's
# control codes into a report.

#: The longest evidence and explanation, in characters.
EVIDENCE_LIMIT = 200
EXPLANATION_LIMIT = 300
_PREVIEW = 80
_LABEL = 60


def printable(text: str, limit: int = EVIDENCE_LIMIT) -> str:
    """Text on one line, what cannot be printed as an escape, cut to `limit` characters."""
    if len(text) <= limit and text.isprintable():
        return text  # whole and as it was, so that the record recognises a secret in it
    # An escape only lengthens, so more of the text can never be needed.
    head = redact_text(text[:LOOKED_AT])[: limit + 1]
    line = head if head.isprintable() else "".join(map(_escape, head))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def preview(text: str) -> str:
    """Return the beginning of a text, and how much there is if that is not all of it."""
    if len(text) <= _PREVIEW:
        return printable(text)
    head = redact_text(text[:LOOKED_AT])[:_PREVIEW]
    return f"{printable(head)}… ({len(text)} characters)"


def around(text: str, start: int, length: int = 0, *, margin: int = 30) -> str:
    """Return the piece of a text that matters, with a little on either side."""
    if len(text) > margin and redact_text(text) != text:
        # A secret may stand across the edge of the piece, and its half would be shown.
        return preview(text)
    end = start + min(length, EVIDENCE_LIMIT - 4 * margin)
    left, right = max(0, start - margin), end + margin
    piece = printable(text[left:right])
    return ("…" if left else "") + piece + ("…" if right < len(text) else "")


def shown(value: object, limit: int = _PREVIEW) -> str:
    """Return a value as JSON where it is JSON, else as Python shows it, bounded."""
    import json

    try:
        # JSON escapes quotes and line ends, and the record would not recognise a secret with one.
        return printable(json.dumps(redact_values(value), ensure_ascii=False), limit)
    except (TypeError, ValueError, RecursionError):
        return printable(_safe_repr(value), limit)


def label(value: object) -> str:
    """Return a value inside a check's name: text in quotes, anything else as JSON."""
    if isinstance(value, str):
        return "'" + printable(value, _LABEL) + "'"
    return shown(value, _LABEL)


def failed(
    explanation: str,
    evidence: str = "",
    *,
    reason: FailReason = FailReason.CONDITION,
    score: float | None = None,
) -> CheckResult:
    """Return a failure whose explanation and evidence keep the bounds."""
    return CheckResult.fail(
        printable(explanation, EXPLANATION_LIMIT),
        evidence=printable(evidence),
        reason=reason,
        score=score,
    )


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # a reply's own __repr__ may raise anything
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"
