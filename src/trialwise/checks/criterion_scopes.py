"""What makes a criterion the same criterion: the fingerprint of its postconditions (§1.5.2).

A baseline speaks of a criterion as it was defined when it was measured. A postcondition that was
changed under the same name is another one, and a comment that was changed is not; the threshold,
the confidence and their origin belong to the test and are no part of it.

Of a function counts what it says: its source, its defaults, what it closed over, the constants it
reads and the functions of its own module that it calls. What other modules do does not count.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from trialwise.checks.check_base import Check
from trialwise.checks.check_registry import to_spec
from trialwise.checks.function_source import global_names, rebound_names, source_of, source_of_class
from trialwise.model.contract import Contract
from trialwise.model.criterion import Criterion, CriterionScope
from trialwise.model.fingerprint import canonical, fingerprint, sampling_fingerprint

__all__ = ["criterion_structure", "describe_postconditions", "scopes_of"]

#: Globals of these types are constants; a date would change the criterion from day to day.
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, re.Pattern, Enum)
_CONTAINERS = (list, dict, set)
_FUNCTIONS = FunctionType | MethodType | BuiltinFunctionType


def scopes_of(contract: Contract) -> dict[str, CriterionScope]:
    """What each criterion of a contract is about: recorded by a baseline, compared by a test.

    >>> from trialwise.checks.texts import contains
    >>> contract = Contract(
    ...     "sums", lambda question: "555", [Criterion("answers", contains("555"), at_least=0.9)],
    ...     sampling=["What is 15 * 37?"],
    ... )
    >>> scopes_of(contract)["answers"].postconditions
    ('{"contains":"555"}',)
    """
    contents = {name: sampling_fingerprint(one) for name, one in contract.samplings.items()}
    scopes: dict[str, CriterionScope] = {}
    for criterion in contract.criteria:
        experiment = contract.experiment_of(criterion)
        scopes[criterion.name] = CriterionScope(
            structure=criterion_structure(criterion, sampling=experiment),
            postconditions=describe_postconditions(criterion),
            sampling=contract.samplings[experiment].label,
            sampling_fingerprint=contents[experiment],
        )
    return scopes


def criterion_structure(criterion: Criterion, *, sampling: str | None = None) -> str:
    """The fingerprint of what a criterion asks of a reply, and of the sampling's name.

    All postconditions must hold, so that their order does not count.

    Args:
        criterion: Its threshold, confidence and origin do not count.
        sampling: The name of its sampling, where the criterion leaves it to the contract.
    """
    scope = criterion.sampling if sampling is None else sampling
    return fingerprint([sorted(describe_postconditions(criterion)), scope or ""])


def describe_postconditions(criterion: Criterion) -> tuple[str, ...]:
    """Each postcondition as a text that differs where its meaning does.

    Built-in ones as a suite file spells them, functions by name and a fingerprint of their source.
    A name of one's own for reports is left out.
    """
    described = [_Described().check(one) for one in criterion.checks]
    return tuple(
        one["python"] if isinstance(one, dict) and list(one) == ["python"] else canonical(one)
        for one in described
    )


class _Described:
    """The description of one postcondition; functions may call each other in a circle."""

    def __init__(self) -> None:
        self._under_way: set[int] = set()
        self._known: dict[FunctionType, str] = {}

    def check(self, check: object) -> Any:
        """A postcondition or plain function, as values that JSON holds."""
        if isinstance(check, Check) and type(check).__module__.startswith("trialwise."):
            return self._built_in(check)
        return {"python": self.function(check)}

    def _built_in(self, check: Any) -> Any:
        # By its spelling and not by its class: a suite of plain checks loads no others.
        match check.spelling:
            case "python":
                return self.check(check.function)
            case "named":
                return self.check(check.condition)
            case "not":
                return {"not": self.check(check.condition)}
            case "all_of" | "any_of":
                return {check.spelling: sorted(map(self.check, check.checks), key=canonical)}
        return to_spec(check)

    def function(self, function: object) -> str:
        """A callable by name and fingerprint, such as `my_agent:grounded#5f3a…`."""
        if isinstance(function, FunctionType) and function in self._known:
            return self._known[function]
        name = _name(function)
        contents = self._contents(function)
        text = name if contents is None else f"{name}#{fingerprint(contents)}"
        if isinstance(function, FunctionType):
            self._known[function] = text
        return text

    def _contents(self, function: object) -> object:
        """What a callable says, or None where its name says it all."""
        match function:
            case functools.partial():
                held = [
                    self._describe_value(function.args),
                    self._describe_value(function.keywords),
                ]
                contents: object = [self.function(function.func), *held]
            case MethodType():
                contents = [self.function(function.__func__), self._state(function.__self__)]
            case FunctionType():
                contents = self._function(function)
            case type():
                contents = source_of_class(function)
            case _:
                contents = self._other(function)
        return contents

    def _other(self, function: object) -> object:
        if hasattr(function, "__wrapped__"):  # such as one that `functools.cache` made
            return self._contents(function.__wrapped__)
        if type(function).__module__ != "builtins":
            return self._state(function)
        # Written in C: `str.isdigit` is its name, `{"yes", "no"}.__contains__` what it belongs to.
        owner = getattr(function, "__self__", None)
        return (
            None if owner is None or isinstance(owner, ModuleType) else self._describe_value(owner)
        )

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        if id(code) in self._under_way:
            return None
        self._under_way.add(id(code))
        try:
            changed = set(rebound_names(code))
            cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
            return {
                "source": source_of(code),
                "defaults": [
                    self._describe_value(function.__defaults__),
                    self._describe_value(function.__kwdefaults__),
                ],
                "closure": {n: self._cell(cell) for n, cell in cells if n not in changed},
                "globals": self._globals(function, changed),
            }
        finally:
            self._under_way.discard(id(code))

    def _globals(self, function: FunctionType, changed: set[str]) -> dict[str, object]:
        """The constants that a function reads, and the functions of its own module."""
        found: dict[str, object] = {}
        for name in sorted(set(global_names(function.__code__)) - changed):
            value = function.__globals__.get(name)
            if name in function.__globals__ and self._is_constant(name, value, function):
                found[name] = self._describe_value(value)
        return found

    @staticmethod
    def _is_constant(name: str, value: object, reader: FunctionType) -> bool:
        if isinstance(value, FunctionType):
            return value.__globals__ is reader.__globals__
        # A list in lower case is more likely to be written to than to be a constant.
        return isinstance(value, _CONSTANTS) or (isinstance(value, _CONTAINERS) and name.isupper())

    def _cell(self, cell: Any) -> object:
        try:
            return self._describe_value(cell.cell_contents)
        except ValueError:  # not filled yet
            return None

    def _describe_value(self, value: object) -> object:
        """A value that a function holds: as it is, or its kind where that may change by itself."""
        return canonical(value, describe=self._describe)

    def _describe(self, value: object) -> object:
        if isinstance(value, re.Pattern):  # its `repr` is cut short
            return {"pattern": value.pattern, "flags": value.flags}
        if isinstance(value, type):
            return {"type": _name(value)}
        if isinstance(value, Check | functools.partial | _FUNCTIONS):
            return self.check(value)
        if isinstance(value, (*_CONTAINERS, Mapping, Enum)) or is_dataclass(value):
            return None
        return None if _is_value(value) else {"type": _name(type(value))}

    def _state(self, value: object) -> object:
        """An object of the user's: its class, its bases of the same module, and its fields."""
        if isinstance(value, type):
            return source_of_class(value)
        if id(value) in self._under_way:
            return None
        self._under_way.add(id(value))
        module = type(value).__module__
        try:
            kinds = [kind for kind in type(value).__mro__ if kind.__module__ == module]
            slots = [name for kind in kinds for name in _slots(kind) if hasattr(value, name)]
            held = {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})
            return {
                "source": [source_of_class(kind) for kind in kinds],
                "fields": {name: self._describe_value(part) for name, part in held.items()},
            }
        finally:
            self._under_way.discard(id(value))


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _is_value(thing: object) -> bool:
    """Whether it is equal by what it holds, and cannot change: a date, a path, a decimal."""
    kind = type(thing)
    return kind.__eq__ is not object.__eq__ and kind.__hash__ not in (None, object.__hash__)


def _name(thing: object) -> str:
    """File and name: a file run as a script, or imported from another folder, stays what it is."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if not hasattr(thing, "__qualname__"):
        thing = type(thing)
    owner = getattr(thing, "__objclass__", thing)
    module = str(getattr(owner, "__module__", None) or "builtins").rpartition(".")[2]
    return f"{_script() if module == '__main__' else module}:{getattr(thing, '__qualname__', '')}"


def _script() -> str:
    """The name of the file that runs as a script."""
    import sys
    from pathlib import Path

    return Path(getattr(sys.modules["__main__"], "__file__", None) or "__main__").stem
