"""What a check is called, which arguments it takes and where it lives.

A check is declared by its constructor: the signature says which arguments there are and the
docstring what they mean. The catalogue says where the constructors of the built-in checks live, so
that a suite loads those it uses and no others; the entry points of other distributions are asked
only for a name that the catalogue does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from trialwise.catalogue import CHECKS as BUILT_IN
from trialwise.checks.check_base import Check, write_spec
from trialwise.checks.quoting import printable
from trialwise.declarations.signatures import Declaration
from trialwise.declarations.structures import Key
from trialwise.errors import InvalidArgument
from trialwise.extensions import CHECKS, extension_names, find_extension

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
    from trialwise.declarations.nearest_names import suggest_name

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
