"""The nouns as plain JSON values and back, led by their type hints alone.

One module, so that no class has to spell itself and nothing is left out when one gains a field.
Every field is written, defaults too: a record is read by people and compared line by line. Reading
is strict about what is there and lenient about what is not: an unknown field is refused, a missing
one takes its default, so that a class may grow without making earlier records unreadable.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, cached_property
from math import isfinite
from operator import index
from reprlib import Repr
from types import NoneType, UnionType
from typing import Any, Literal, SupportsIndex, TypeVar, Union, get_args, get_origin, get_type_hints

from trialwise.errors import InvalidArgument
from trialwise.model.lines import unplain
from trialwise.stats.sequential.design import SequentialDesign
from trialwise.stats.values import Undefined

__all__ = ["from_plain", "to_plain"]

T = TypeVar("T")

#: The key that tells the members of a union of classes apart.
TAG = "type"
UNDEFINED = "undefined"


def to_plain(value: object) -> Any:
    """A value of the model as JSON holds it: numbers, text, lists and dicts.

    >>> from trialwise.model.tally import Tally
    >>> to_plain(Tally(trials=50, passed=48))
    {'trials': 50, 'passed': 48, 'evaluable': None}

    Raises:
        InvalidArgument: A part is not what its class declares, or JSON cannot hold it, such as a
            number that is not finite.
    """
    try:
        return _form(type(value)).encode(value)
    except _Misfit as misfit:
        raise misfit.refusal(type(value)) from None


def from_plain(cls: type[T], data: Any) -> T:
    """The value that `to_plain` wrote, equal in every field.

    >>> from trialwise.model.tally import Tally
    >>> from_plain(Tally, {"trials": 50, "passed": 48})
    Tally(trials=50, passed=48, evaluable=None)
    >>> from_plain(Tally, {"trials": 50, "passed": "48"})
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: tally.passed must be a whole number, got '48'

    Raises:
        InvalidArgument: Names the place, such as `verdict.findings[2].tally.passed`, and what
            was expected there.
    """
    try:
        value: T = _form(cls).decode(data)
    except _Misfit as misfit:
        raise misfit.refusal(cls) from None
    return value


class _Misfit(Exception):
    """A part that does not fit its type; the place is put together on the way out."""

    def __init__(self, value: object, allowed: str, at: str = "") -> None:
        super().__init__(allowed)
        self.value = value
        self.allowed = allowed
        self.steps = [at]

    def refusal(self, cls: type) -> InvalidArgument:
        root = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        whole = isinstance(self.value, int | float) or self.value is None
        shown = self.value if whole else _Excerpt(_SHORT.repr(self.value))
        return InvalidArgument(root + "".join(reversed(self.steps)), shown, self.allowed)


class _Excerpt(str):
    """A value's `repr`, cut: a message does not hold a whole record."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


@dataclass(frozen=True, slots=True)
class _Form:
    """How one declared type is spelled."""

    kinds: frozenset[type]
    """The JSON types it is spelled by."""
    holds: Callable[[type], bool]
    """Whether a value of this class is one of it."""
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


# --- Single values ----------------------------------------------------------------------------


def _whole(value: Any) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise _Misfit(value, "be a whole number")
    return index(value)


def _number(value: Any) -> float:
    # A whole number stays one: 1 and 1.0 are equal, and the text says which was given.
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return value if type(value) in (int, float) else value.real
    raise _Misfit(value, "be a finite number")


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Misfit(value, "be true or false")
    return value


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise _Misfit(value, "be a text")
    return str(value)


def _nothing(value: Any) -> None:
    if value is not None:
        raise _Misfit(value, "be null")


def _anything(value: Any) -> Any:
    found = unplain(value)
    if found is not None:
        raise _Misfit(value, f"be plain JSON: this is {found[1]}", found[0])
    return value


def _moment_out(value: Any) -> str:
    if not isinstance(value, datetime):
        raise _Misfit(value, "be a date and time")
    return value.isoformat()


def _moment_in(plain: Any) -> datetime:
    try:
        return datetime.fromisoformat(plain)
    except (TypeError, ValueError):
        raise _Misfit(plain, "be a date and time such as 2026-11-15T06:25:24+00:00") from None


def _undefined_out(value: Any) -> dict[str, str]:
    if not isinstance(value, Undefined):
        raise _Misfit(value, "be undefined")
    return {UNDEFINED: value.reason}


def _undefined_in(plain: Any) -> Undefined:
    if not isinstance(plain, dict) or list(plain) != [UNDEFINED]:
        raise _Misfit(plain, f"be undefined: {{{UNDEFINED!r}: reason}}")
    return Undefined(_text(plain[UNDEFINED]))


def _single(kinds: set[type], kind: type, both: Callable[[Any], Any]) -> _Form:
    return _Form(frozenset(kinds), lambda cls: issubclass(cls, kind), both, both)


_SINGLE: dict[Any, _Form] = {
    bool: _single({bool}, bool, _truth),
    int: _single({int}, int, _whole),
    SupportsIndex: _single({int}, SupportsIndex, _whole),
    float: _Form(
        frozenset({int, float}),
        lambda cls: issubclass(cls, int | float) and not issubclass(cls, bool),
        _number,
        _number,
    ),
    str: _single({str}, str, _text),
    NoneType: _single({NoneType}, NoneType, _nothing),
    datetime: _Form(
        frozenset({str}), lambda cls: issubclass(cls, datetime), _moment_out, _moment_in
    ),
    Undefined: _Form(frozenset({dict}), lambda cls: cls is Undefined, _undefined_out, _undefined_in),
    Any: _single({NoneType, bool, int, float, str, list, dict}, object, _anything),
}


def _choice(choices: Mapping[Any, Any], cls: type | None = None) -> _Form:
    """A closed set; `choices` are the plain values by what they stand for."""
    allowed = f"be one of {', '.join(map(repr, choices.values()))}"
    meant = {plain: value for value, plain in choices.items()}

    def encode(value: Any) -> Any:
        try:
            return choices[value]
        except (KeyError, TypeError):
            raise _Misfit(value, allowed) from None

    def decode(plain: Any) -> Any:
        try:
            return meant[plain]
        except (KeyError, TypeError):
            raise _Misfit(plain, allowed) from None

    kinds = frozenset(map(type, meant))
    holds = (lambda kind: issubclass(kind, tuple(kinds))) if cls is None else cls.__eq__
    return _Form(kinds, holds, encode, decode)


# --- Several values ---------------------------------------------------------------------------


def _items(values: Any, convert: Callable[[Any], Any]) -> list[Any]:
    done: list[Any] = []
    try:
        for value in values:
            done.append(convert(value))  # noqa: PERF401  the place of a misfit is counted
    except _Misfit as misfit:
        misfit.steps.append(f"[{len(done)}]")
        raise
    return done


def _list_of(item: _Form, made: type[tuple[Any, ...]] | type[frozenset[Any]]) -> _Form:
    def encode(value: Any) -> list[Any]:
        if not isinstance(value, made):
            raise _Misfit(value, f"be a {made.__name__}")
        plain = _items(value, item.encode)
        # A set has no order of its own, and the same set must give the same text.
        return plain if made is tuple else sorted(plain)

    def decode(plain: Any) -> Any:
        if not isinstance(plain, list):
            raise _Misfit(plain, "be a list")
        return made(_items(plain, item.decode))

    return _Form(frozenset({list}), lambda cls: issubclass(cls, made), encode, decode)


def _fixed_list(items: tuple[_Form, ...]) -> _Form:
    def each(values: Any, kind: type, convert: str) -> list[Any]:
        if not isinstance(values, kind) or len(values) != len(items):  # type: ignore[arg-type]
            raise _Misfit(values, f"be a list of {len(items)}")
        turns = iter(items)
        return _items(values, lambda value: getattr(next(turns), convert)(value))

    return _Form(
        frozenset({list}),
        lambda cls: issubclass(cls, tuple),
        lambda value: each(value, tuple, "encode"),
        lambda plain: tuple(each(plain, list, "decode")),
    )


def _mapping(item: _Form) -> _Form:
    def each(values: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            raise _Misfit(values, "be a mapping")
        done: dict[str, Any] = {}
        name: Any = None
        try:
            for name, value in values.items():
                done[_text(name)] = convert(value)
        except _Misfit as misfit:
            misfit.steps.append(f"[{name!r}]")
            raise
        return done

    return _Form(
        frozenset({dict}),
        lambda cls: issubclass(cls, Mapping),
        lambda value: each(value, item.encode),
        lambda plain: each(plain, item.decode),
    )


# --- Classes and unions -----------------------------------------------------------------------


class _Record:
    """A dataclass, field by field; its hints are read at the first use, as a class may hold its
    own kind."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    @cached_property
    def _fields(self) -> list[tuple[str, _Form]]:
        hints = _hints(self._cls)
        # What a class derives from its other fields is not written.
        return [(one.name, _form(hints[one.name])) for one in fields(self._cls) if one.init]

    @cached_property
    def _encoders(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(name, form.encode) for name, form in self._fields]

    @cached_property
    def _decoders(self) -> dict[str, Callable[[Any], Any]]:
        return {name: form.decode for name, form in self._fields}

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(
            one.name
            for one in fields(self._cls)
            if one.init and one.default is MISSING and one.default_factory is MISSING
        )

    def encode(self, value: Any) -> dict[str, Any]:
        if type(value) is not self._cls:
            raise _Misfit(value, f"be a {self._cls.__name__}")
        plain: dict[str, Any] = {}
        name = ""
        try:
            for name, encode in self._encoders:
                plain[name] = encode(getattr(value, name))
        except _Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        return plain

    def decode(self, plain: Any) -> Any:
        if type(plain) is not dict:
            raise _Misfit(plain, f"be a mapping of the fields of {self._cls.__name__}")
        given: dict[str, Any] = {}
        decoders = self._decoders
        name = ""
        try:
            for name, part in plain.items():
                if name not in decoders:
                    raise _Misfit(part, f"not be there: {self._cls.__name__} has no such field")
                given[name] = decoders[name](part)
        except _Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        if missing := self._required - given.keys():
            raise _Misfit(plain, f"hold {', '.join(map(repr, sorted(missing)))}")
        return self._made(given)

    def _made(self, given: dict[str, Any]) -> Any:
        try:
            return self._cls(**given)
        except InvalidArgument as error:
            argument = error.argument
            at = f".{argument}" if argument in given else f": {argument}"
            raise _Misfit(error.value, error.allowed, at) from None


def _design_out(value: Any) -> dict[str, Any]:
    if not isinstance(value, SequentialDesign):
        raise _Misfit(value, "be a SequentialDesign")
    return value.to_dict()


def _design_in(plain: Any) -> SequentialDesign:
    """Its own reader checks the boundaries, which are more than types."""
    try:
        return SequentialDesign.from_dict(plain)
    except InvalidArgument as error:
        at = "" if error.argument == "values" else f".{error.argument}"
        raise _Misfit(error.value, error.allowed, at) from None
    except (TypeError, ValueError) as error:
        raise _Misfit(plain, f"be a sequential design ({error})") from None


def _union(members: tuple[Any, ...]) -> _Form:
    classes = {m.__name__: m for m in members if is_dataclass(m) and m is not Undefined}
    forms = {member: _form(member) for member in members}
    tagged: dict[str, _Form] = {}
    if len(classes) > 1:
        tagged = {name: forms.pop(cls) for name, cls in classes.items()}
    by_kind = {kind: form for m, form in forms.items() if m is not Undefined for kind in form.kinds}
    if sum(len(form.kinds) for form in forms.values()) != len(by_kind) + (Undefined in forms) or (
        tagged and dict in by_kind
    ):
        raise TypeError(f"JSON cannot tell {' | '.join(map(str, members))} apart")
    names = ", ".join(sorted(_KINDS[kind] for kind in by_kind)) or "a mapping"

    @cache
    def encoder(cls: type) -> Callable[[Any], Any] | None:
        for name, form in tagged.items():
            if form.holds(cls):
                return lambda value: {TAG: name, **form.encode(value)}
        return next((form.encode for form in forms.values() if form.holds(cls)), None)

    def encode(value: Any) -> Any:
        found = encoder(type(value))
        if found is None:
            raise _Misfit(value, f"be one of {', '.join(map(_named, members))}")
        return found(value)

    def decode(plain: Any) -> Any:
        kind = type(plain)
        if kind is dict:
            if Undefined in forms and UNDEFINED in plain:
                return forms[Undefined].decode(plain)
            if tagged:
                return decode_tagged(plain)
        form = by_kind.get(kind)
        if form is None:
            raise _Misfit(plain, f"be {names}" + (", or a mapping" if tagged else ""))
        return form.decode(plain)

    def decode_tagged(plain: dict[str, Any]) -> Any:
        form = tagged.get(plain.get(TAG, ""))
        if form is None:
            raise _Misfit(plain.get(TAG), f"be one of {', '.join(tagged)}", f".{TAG}")
        return form.decode({name: part for name, part in plain.items() if name != TAG})

    kinds = frozenset(by_kind) | ({dict} if tagged or Undefined in forms else set())
    holds = [form.holds for form in (*forms.values(), *tagged.values())]
    return _Form(kinds, lambda cls: any(one(cls) for one in holds), encode, decode)


_KINDS: dict[type, str] = {
    NoneType: "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


def _named(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)


@cache
def _form(hint: Any) -> _Form:
    if hint in _SINGLE:
        return _SINGLE[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choice({one: one for one in arguments})
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin is tuple:
        open_ended = arguments[-1] is Ellipsis
        item_forms = tuple(map(_form, arguments[: 1 if open_ended else None]))
        return _list_of(item_forms[0], tuple) if open_ended else _fixed_list(item_forms)
    if origin is frozenset:
        return _list_of(_form(arguments[0]), frozenset)
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return _mapping(_form(arguments[1]))
    if isinstance(hint, type):
        return _class(hint)
    raise TypeError(f"{hint!r} has no plain form")


def _class(cls: type) -> _Form:
    if issubclass(cls, Enum):
        return _choice({one: one.value for one in cls}, cls)
    if cls is SequentialDesign:
        return _Form(frozenset({dict}), cls.__eq__, _design_out, _design_in)
    if is_dataclass(cls):
        record = _Record(cls)
        return _Form(frozenset({dict}), cls.__eq__, record.encode, record.decode)
    raise TypeError(f"{cls.__name__} has no plain form")


def _hints(cls: type) -> dict[str, Any]:
    """The types of a class's fields.

    A name that is imported for the type checker alone, such as `Literal` in an alias that is a
    text at run time, is looked up in `typing`.
    """
    module = vars(sys.modules[cls.__module__])
    named = {name for one in fields(cls) for name in re.findall(r"\w+", str(one.type))}
    texts = {name: module[name] for name in named if isinstance(module.get(name), str)}
    aliases = {name: eval(text, vars(typing)) for name, text in texts.items()}
    return get_type_hints(cls, localns=aliases)
