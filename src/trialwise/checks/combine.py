"""Postconditions made of others: all, any, not, and a name of one's own; and from a spec.

Only a condition that was evaluated can be turned round: a reply that a check could not read stays
a failure under `not_`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from trialwise.catalogue import CHECKS as BUILT_IN
from trialwise.checks import check_base
from trialwise.declarations.signatures import Declaration
from trialwise.declarations.structures import Key
from trialwise.errors import InvalidArgument
from trialwise.extensions import CHECKS, extension_names, find_extension
from trialwise.model.reply import Reply
from trialwise.model.trial import CheckResult, FailReason, Postcondition

if TYPE_CHECKING:
    from trialwise.stats import Confusion

__all__ = ["AllOf", "AnyOf", "Named", "Not", "all_of", "any_of", "named", "not_"]
__all__ += ["from_spec", "spellings"]


@dataclass(frozen=True, slots=True)
class _Several(check_base.Check):
    """A check made of several."""

    joined: ClassVar[str]
    """The word between the names of its checks."""

    checks: tuple[Postcondition, ...]

    def __post_init__(self) -> None:
        _check_parts(self.checks)

    @property
    def name(self) -> str:
        """The name in reports."""
        names = [f"({one.name})" if isinstance(one, _Several) else one.name for one in self.checks]
        return f" {self.joined} ".join(names)

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        return {self.spelling: [check_base.to_spec(check) for check in self.checks]}


@dataclass(frozen=True, slots=True)
class AllOf(_Several, spelling="all_of"):
    """All of the checks hold."""

    joined: ClassVar[str] = "and"

    def _examine(self, reply: Reply) -> CheckResult:
        # A failure of one check decides, whatever another one could not tell.
        unknown = CheckResult.ok()
        for check in self.checks:
            result = check.check(reply)
            if result.reason is None:
                continue
            explanation = f"{check_base.printable(check.name, 80)}: {result.explanation}"
            found = check_base.failed(explanation, result.evidence, reason=result.reason)
            if result.reason is not FailReason.UNKNOWN:
                return found
            unknown = found if unknown.passed else unknown
        return unknown


def all_of(*checks: Postcondition) -> AllOf:
    """Every postcondition holds; the failure is that of the first that does not.

    >>> from trialwise.checks.texts import contains, length
    >>> all_of(contains("a"), length(maximum=2)).check(Reply(value="abc")).explanation
    'length at most 2: the reply has 3 characters, expected at most 2'
    """
    return AllOf(checks)


@dataclass(frozen=True, slots=True)
class AnyOf(_Several, spelling="any_of"):
    """At least one of the checks holds."""

    joined: ClassVar[str] = "or"

    def _examine(self, reply: Reply) -> CheckResult:
        results: list[CheckResult] = []
        for check in self.checks:
            result = check.check(reply)
            if result.passed:
                return result
            results.append(result)
        # One that was evaluated says more than one that could not be.
        reasons = [result.reason for result in results if result.reason is not None]
        reason = FailReason.CONDITION if FailReason.CONDITION in reasons else reasons[0]
        if FailReason.UNKNOWN in reasons:
            reason = FailReason.UNKNOWN  # the one that cannot be told might hold
        evidence = next((result.evidence for result in results if result.evidence), "")
        # Each check has its part of the 300 characters that an explanation may have.
        share = 260 // len(results)
        parts = [check_base.printable(result.explanation, max(share, 20)) for result in results]
        return check_base.failed(f"none holds: {'; '.join(parts)}", evidence, reason=reason)


def any_of(*checks: Postcondition) -> AnyOf:
    """At least one postcondition holds; they are tried in order until one does.

    >>> from trialwise.checks.texts import contains
    >>> any_of(contains("yes"), contains("no")).check(Reply(value="maybe")).explanation
    "none holds: 'yes' is not in the reply; 'no' is not in the reply"
    """
    return AnyOf(checks)


@dataclass(frozen=True, slots=True)
class Not(check_base.Check, spelling="not"):
    """A postcondition does not hold."""

    condition: Postcondition

    def __post_init__(self) -> None:
        _check_parts((self.condition,))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"not ({self.condition.name})"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        return {self.spelling: check_base.to_spec(self.condition)}

    def _examine(self, reply: Reply) -> CheckResult:
        result = self.condition.check(reply)
        if result.passed:
            return check_base.failed(f"{self.condition.name}, which was not to hold")
        # To be readable is all that `parses` asks: what it cannot read answers the question.
        asks_to_read = getattr(self.condition, "asks_to_read", False)
        answers = (FailReason.CONDITION, None, *((FailReason.TRANSFORM,) if asks_to_read else ()))
        return CheckResult.ok() if result.reason in answers else result


def not_(check: Postcondition) -> Not:
    """The postcondition is evaluated and does not hold.

    A reply that it cannot read is a failure all the same, unless to read it is the question, as of
    `parses`.

    >>> from trialwise.checks.texts import contains
    >>> not_(contains("a")).check(Reply(value="abc")).explanation
    "contains 'a', which was not to hold"
    """
    return Not(check)


@dataclass(frozen=True, slots=True)
class Named(check_base.Check, spelling="named"):
    """A postcondition under a name of one's own."""

    title: str
    condition: Postcondition

    def __post_init__(self) -> None:
        check_base.check_texts("name", (self.title,))
        _check_parts((self.condition,))

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.title

    @property
    def advisory(self) -> tuple[str, ...]:
        """Why it can only advise: a judge by another name is the same judge."""
        return getattr(self.condition, "advisory", ())

    @property
    def errors(self) -> Confusion | None:
        """How often it is wrong, where that was measured."""
        return getattr(self.condition, "errors", None)

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        return {self.spelling: {"name": self.title, "check": check_base.to_spec(self.condition)}}

    def _examine(self, reply: Reply) -> CheckResult:
        return self.condition.check(reply)


def named(name: str, check: Postcondition) -> Named:
    """Return the same postcondition, called by another name in reports.

    >>> from trialwise.checks.texts import matches
    >>> named("no card number", not_(matches(r"\\d{16}"))).name
    'no card number'
    """
    return Named(name, check)


def _check_parts(checks: tuple[object, ...]) -> None:
    if not checks:
        raise InvalidArgument("checks", [], "hold at least one postcondition")
    for check in checks:
        if isinstance(check, type) or not isinstance(check, Postcondition):
            raise InvalidArgument("check", check, "be a postcondition")


# What a check is called, which arguments it takes and where it lives.
#
# A check is declared by its constructor: the signature says which arguments there are and the
# docstring what they mean. The catalogue says where the constructors of the built-in checks live,
# so that a suite loads those it uses and no others; the entry points of other distributions are
# asked only for a name that the catalogue does not have.


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
                # `min` and `minimum` are one argument, and only one of two values could count.
                if len(given) != len(argument):
                    where = f"{self.name}: argument"
                    raise InvalidArgument(where, list(argument), "be given once each")
                return given
        if first is None:
            raise InvalidArgument(self.name, argument, f"be an object of {', '.join(known)}")
        return {first.field: argument}

    def build(self, arguments: dict[str, Any]) -> check_base.Check:
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
            allowed = f"have fitting arguments ({check_base.printable(str(error))})"
            raise InvalidArgument(self.name, arguments, allowed) from None
        if not isinstance(check, check_base.Check):
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
        module = import_module(f"trialwise.{BUILT_IN[name]}")
        return CheckDeclaration(name, getattr(module, name))
    return find_extension(
        CHECKS, name, lambda loaded: CheckDeclaration(name, loaded) if callable(loaded) else None
    )


def suggest(name: object, known: Sequence[str], otherwise: str) -> str:
    """Return what a name must be: the one that was probably meant, or what is said otherwise."""
    from trialwise.declarations.written import suggest_name

    hint = suggest_name(str(name), known, quote="'")
    return f"be a known name ({hint})" if hint else otherwise


# --- Checks from what suite files spell, and back -------------------------------------------------

#: Checks that hold other checks; the reader of a suite builds their parts first.
COMBINING = ("all_of", "any_of", "named", "not")
_MAX_NESTING = 50


def spellings() -> tuple[str, ...]:
    """Return every name that a suite file may use for a built-in check.

    >>> "json_schema" in spellings()
    True
    """
    return (*check_names(), *COMBINING)


def from_spec(spec: Mapping[str, Any]) -> check_base.Check:
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


def _build(spec: object, depth: int) -> check_base.Check:
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise InvalidArgument("postcondition", spec, "be an object of one name")
    # A spec may come from a file of somebody else, and is read by recursion.
    if depth > _MAX_NESTING:
        raise InvalidArgument("postcondition", depth, f"nest at most {_MAX_NESTING} deep")
    ((name, argument),) = spec.items()
    if name == "not":
        return not_(_build(argument, depth + 1))
    if name == "named":
        if not isinstance(argument, Mapping) or set(argument) != {"name", "check"}:
            raise InvalidArgument("named", argument, "be an object of name and check")
        arguments = {"name": argument["name"], "check": _build(argument["check"], depth + 1)}
        return CheckDeclaration(name, named).build(arguments)
    if name in COMBINING:
        if not isinstance(argument, (list, tuple)) or not argument:
            raise InvalidArgument(name, argument, "be a list of at least one postcondition")
        parts = [_build(part, depth + 1) for part in argument]
        return all_of(*parts) if name == "all_of" else any_of(*parts)
    # Importing a module runs it: only who reads the suite decides about that.
    if name == "python":
        allowed = "be built in; a Python function is imported by what reads the suite"
        raise InvalidArgument("postcondition", name, allowed)
    declared = find_check(name) if isinstance(name, str) else None
    if declared is None:
        known = (*check_names(installed=True), *COMBINING)
        allowed = suggest(name, known, f"be one of {', '.join(known)}")
        raise InvalidArgument("postcondition", name, allowed)
    return declared.build(declared.collect(argument))
