"""What every built-in postcondition shares: it never raises on a reply, and it can be written down.

The guard stands here once, so that a check's own file holds nothing but its condition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from trialwise.catalogue import CHECKS as BUILT_IN
from trialwise.checks.quoting import failed, printable
from trialwise.declarations.signatures import Declaration, Natural
from trialwise.declarations.structures import Key
from trialwise.errors import BrokenCheck, InvalidArgument
from trialwise.extensions import CHECKS, blame_extension, extension_names, find_extension
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
        """Return the result for a reply; raise only if what somebody else wrote is broken."""
        try:
            return self._examine(reply)
        except BrokenCheck:
            raise
        except Unreadable as unreadable:
            return failed(unreadable.explanation, unreadable.evidence, reason=unreadable.reason)
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
    extension = blame_extension(error)
    head = f"In the extension {extension}, which is not part of trialwise:\n" if extension else ""
    lines = [head, "Traceback (most recent call last):\n", *traceback.format_list(own), said]
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


# What a check is called, which arguments it takes and where it lives.
#
# A check is declared by its constructor: the signature says which arguments there are and the
# docstring what they mean. The catalogue says where the constructors of the built-in checks live,
# so that a suite loads those it uses and no others; the entry points of other distributions are
# asked only for a name that the catalogue does not have.

#: Checks that hold other checks; the reader of a suite builds their parts first.
COMBINING = ("all_of", "any_of", "named", "not")
_MAX_NESTING = 50


class CheckDeclaration(Declaration):
    """A check as it is declared."""

    __slots__ = ()

    @property
    def first(self) -> Key | None:
        """The argument that may be written alone; None where every argument is named."""
        first = next(iter(self.keys), None)
        return first if first is not None and first.is_positional else None

    @property
    def holds_mapping(self) -> bool:
        """Whether a mapping that is written alone may be the first argument itself."""
        return self.first is not None and self.first.kind.holds_mapping

    def find_key(self, word: object) -> Key | None:
        """Return the argument that a word or a shorter word for it names."""
        return next((key for key in self.keys if word in (key.name, *key.aliases)), None)

    def collect(self, argument: object) -> dict[str, Any]:
        """Return the constructor's arguments, from the short form or the long one.

        Raises:
            InvalidArgument: An argument is unknown, or is given twice.
        """
        first = self.first
        known = tuple(key.name for key in self.keys)
        if isinstance(argument, Mapping):
            keys = {word: self.find_key(word) for word in argument}
            unknown = [word for word, key in keys.items() if key is None]
            given = {key.field: argument[word] for word, key in keys.items() if key is not None}
            by_name = first is not None and first.field in given and not unknown
            if by_name or not self.holds_mapping:
                if unknown:
                    allowed = suggest(unknown[0], known, f"be one of {', '.join(known)}")
                    raise InvalidArgument(f"{self.name}: argument", unknown[0], allowed)
                if len(given) != len(argument):
                    where = f"{self.name}: argument"
                    raise InvalidArgument(where, list(argument), "be given once each")
                return given
        if first is None:
            raise InvalidArgument(self.name, argument, f"be an object of {', '.join(known)}")
        return {first.field: argument}

    def build(self, arguments: dict[str, Any]) -> Check:
        """Call the constructor; its refusal names the check, too.

        Raises:
            InvalidArgument: An argument is missing, or is not what it has to be.
        """
        try:
            check = self.constructor(**arguments)
        except InvalidArgument as error:
            where = f"{self.name}: {error.argument}"
            raise InvalidArgument(where, error.value, error.allowed) from None
        except TypeError as error:
            # An argument is missing, or of a type that not even a comparison takes.
            allowed = f"have fitting arguments ({printable(str(error))})"
            raise InvalidArgument(self.name, arguments, allowed) from None
        if not isinstance(check, Check):
            raise InvalidArgument(self.name, check, "be declared by a constructor of a Check")
        return check


def check_names(*, installed: bool = False) -> tuple[str, ...]:
    """Return the names of all checks.

    Args:
        installed: Whether to look for those of other distributions, too.
    """
    return (*BUILT_IN, *(extension_names(CHECKS) if installed else ()))


@cache
def find_check(name: str) -> CheckDeclaration | None:
    """Return the declaration of a check, built in or of another distribution, if there is one.

    Raises:
        ExtensionError: Another distribution declares it, and it cannot be used.
    """
    if name in BUILT_IN:
        module, _, function = BUILT_IN[name].partition(":")
        constructor = getattr(import_module(f"trialwise.{module}"), function)
        return CheckDeclaration(name, constructor)
    return find_extension(CHECKS, name, lambda loaded: _accept(name, loaded))


def _accept(name: str, loaded: object) -> CheckDeclaration | None:
    return CheckDeclaration(name, loaded) if callable(loaded) else None


def suggest(name: object, known: Sequence[str], otherwise: str) -> str:
    """Return what a name must be: the one that was probably meant, or what is said otherwise."""
    from trialwise.declarations.written import suggest_name

    hint = suggest_name(str(name), known, quote="'")
    return f"be a known name ({hint})" if hint else otherwise


def spellings() -> tuple[str, ...]:
    """Return every name that a suite file may use for a built-in check.

    >>> "json_schema" in spellings()
    True
    """
    return (*check_names(), *COMBINING)


def from_spec(spec: Mapping[str, Any]) -> Check:
    """Return the check that a suite file spells.

    Args:
        spec: One name with its argument, or with an object of its arguments. `min` and `max` stand
            for `minimum` and `maximum`.

    Raises:
        InvalidArgument: The name or an argument is unknown, or an argument is wrong.

    >>> from_spec({"contains": "555"}).name
    "contains '555'"
    >>> from_spec({"contians": "555"})
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: postcondition must be a known name (did you mean
    'contains'?), got 'contians'
    """
    return _build(spec, 0)


def to_spec(check: object) -> dict[str, Any]:
    """Return how a suite file spells a check; the opposite of `from_spec`.

    >>> from trialwise.checks.texts import length
    >>> to_spec(length(maximum=200))
    {'length': {'maximum': 200}}
    """
    return write_spec(check)


def _build(spec: object, depth: int) -> Check:
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InvalidArgument("postcondition", spec, "be an object of one name")
    if depth > _MAX_NESTING:
        raise InvalidArgument("postcondition", depth, f"nest at most {_MAX_NESTING} deep")
    ((name, argument),) = spec.items()
    if name in COMBINING:
        return _combine(name, argument, depth + 1)
    if name == "python":
        allowed = "be built in; a Python function is imported by what reads the suite"
        raise InvalidArgument("postcondition", name, allowed)
    declared = find_check(name) if isinstance(name, str) else None
    if declared is None:
        known = (*check_names(installed=True), *COMBINING)
        allowed = suggest(name, known, f"be one of {', '.join(known)}")
        raise InvalidArgument("postcondition", name, allowed)
    return declared.build(declared.collect(argument))


def _combine(name: str, argument: object, depth: int) -> Check:
    from trialwise.checks import combine

    if name == "not":
        return combine.not_(_build(argument, depth))
    if name == "named":
        if not isinstance(argument, Mapping) or set(argument) != {"name", "check"}:
            raise InvalidArgument("named", argument, "be an object of name and check")
        arguments = {"name": argument["name"], "check": _build(argument["check"], depth)}
        return CheckDeclaration(name, combine.named).build(arguments)
    if not isinstance(argument, (list, tuple)) or not argument:
        raise InvalidArgument(name, argument, "be a list of at least one postcondition")
    parts = [_build(part, depth) for part in argument]
    return combine.all_of(*parts) if name == "all_of" else combine.any_of(*parts)
