"""How single values, lists and mappings are spelled in JSON: the ground that `codec` builds on.

A form checks in both directions, so that what cannot be read back is never written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import repeat
from math import isfinite
from operator import index
from reprlib import Repr
from types import NoneType
from typing import Any, NamedTuple, SupportsIndex

from trialwise.errors import InvalidArgument
from trialwise.model.lines import LARGEST, unplain
from trialwise.stats.result_types import Undefined

#: The key under which an undefined quantity gives its reason.
UNDEFINED = "undefined"


class Misfit(Exception):
    """A part that does not fit its type; the place is put together on the way out."""

    def __init__(self, value: object, allowed: str, at: str = "") -> None:
        super().__init__(allowed)
        self.value = value
        self.allowed = allowed
        self.steps = [at]

    def refusal(self, cls: type) -> InvalidArgument:
        """Return the error for whoever asked for a value of this class."""
        root = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        place = root + "".join(reversed(self.steps))
        return InvalidArgument(place, excerpt(self.value), self.allowed)


class _Excerpt(str):
    """A text that is shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def excerpt(value: object) -> str:
    """Return a value's `repr`, cut: a message does not hold a whole record."""
    return _Excerpt(_SHORT.repr(value))


class Form(NamedTuple):
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
        whole = value
    elif isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise Misfit(value, "be a whole number")
    else:
        whole = index(value)
    if not -LARGEST < whole < LARGEST:
        raise Misfit("a number of thousands of digits", "be a whole number that Python reads back")
    return whole


def _number(value: Any) -> float:
    if type(value) is float and isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        # It stays whole: 1 and 1.0 are equal, and the text says which was given.
        return _whole(value)
    if not isinstance(value, float) or not isfinite(value):
        raise Misfit(value, "be a finite number")
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misfit(value, "be true or false")
    return value


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    if not isinstance(value, str):
        raise Misfit(value, "be a text")
    return str(value)


def _nothing(value: Any) -> None:
    if value is not None:
        raise Misfit(value, "be null")


def _anything(value: Any) -> Any:
    found = unplain(value)
    if found is not None:
        raise Misfit(value, f"be plain JSON: this is {found[1]}", found[0])
    return value


def _moment_out(value: Any) -> str:
    if not isinstance(value, datetime):
        raise Misfit(value, "be a date and time")
    return value.isoformat()


def _moment_in(plain: Any) -> datetime:
    try:
        return datetime.fromisoformat(plain)
    except (TypeError, ValueError):
        raise Misfit(plain, "be a date and time such as 2026-11-15T06:25:24+00:00") from None


def _undefined_out(value: Any) -> dict[str, str]:
    if not isinstance(value, Undefined):
        raise Misfit(value, "be undefined")
    return {UNDEFINED: value.reason}


def _undefined_in(plain: Any) -> Undefined:
    if not isinstance(plain, dict) or list(plain) != [UNDEFINED]:
        raise Misfit(plain, f"be undefined: {{{UNDEFINED!r}: reason}}")
    return Undefined(_text(plain[UNDEFINED]))


def _single(kinds: set[type], kind: type, both: Callable[[Any], Any]) -> Form:
    return Form(frozenset(kinds), lambda cls: issubclass(cls, kind), both, both)


SINGLE: dict[Any, Form] = {
    bool: _single({bool}, bool, _truth),
    int: _single({int}, int, _whole),
    SupportsIndex: _single({int}, SupportsIndex, _whole),
    float: Form(
        frozenset({int, float}),
        lambda cls: issubclass(cls, int | float) and not issubclass(cls, bool),
        _number,
        _number,
    ),
    str: _single({str}, str, _text),
    NoneType: _single({NoneType}, NoneType, _nothing),
    datetime: Form(
        frozenset({str}), lambda cls: issubclass(cls, datetime), _moment_out, _moment_in
    ),
    Undefined: Form(frozenset({dict}), lambda cls: cls is Undefined, _undefined_out, _undefined_in),
    Any: _single({NoneType, bool, int, float, str, list, dict}, object, _anything),
}


def choice(choices: Mapping[Any, Any]) -> Form:
    """Return a closed set; `choices` gives the plain value of each member."""
    allowed = f"be one of {', '.join(map(repr, choices.values()))}"
    meant = {plain: value for value, plain in choices.items()}

    def chosen(one: Any, among: Mapping[Any, Any]) -> Any:
        try:
            return among[one]
        except (KeyError, TypeError):
            raise Misfit(one, allowed) from None

    types = frozenset(map(type, (*choices, *meant)))
    return Form(
        kinds=frozenset(map(type, meant)),
        holds=types.__contains__,
        encode=lambda value: chosen(value, choices),
        decode=lambda plain: chosen(plain, meant),
    )


# --- Several values ---------------------------------------------------------------------------


def _items(values: Iterable[Any], converters: Iterable[Callable[[Any], Any]]) -> list[Any]:
    done: list[Any] = []
    try:
        for value, convert in zip(values, converters, strict=False):
            done.append(convert(value))
    except Misfit as misfit:
        misfit.steps.append(f"[{len(done)}]")
        raise
    return done


def list_of(item: Form, made: type[tuple[Any, ...]] | type[frozenset[Any]]) -> Form:
    """Any number of one kind."""

    def encode(value: Any) -> list[Any]:
        if not isinstance(value, made):
            raise Misfit(value, f"be a {made.__name__}")
        plain = _items(value, repeat(item.encode))
        # A set has no order of its own, and the same set must give the same text.
        return plain if made is tuple else sorted(plain)

    def decode(plain: Any) -> Any:
        if not isinstance(plain, list):
            raise Misfit(plain, "be a list")
        return made(_items(plain, repeat(item.decode)))

    return Form(frozenset({list}), lambda cls: issubclass(cls, made), encode, decode)


def fixed_list(items: tuple[Form, ...]) -> Form:
    """So many, each of its own kind."""

    def encode(value: Any) -> list[Any]:
        if not isinstance(value, tuple) or len(value) != len(items):
            raise Misfit(value, f"be a tuple of {len(items)}")
        return _items(value, [form.encode for form in items])

    def decode(plain: Any) -> tuple[Any, ...]:
        if not isinstance(plain, list) or len(plain) != len(items):
            raise Misfit(plain, f"be a list of {len(items)}")
        return tuple(_items(plain, [form.decode for form in items]))

    return Form(frozenset({list}), lambda cls: issubclass(cls, tuple), encode, decode)


def mapping(item: Form) -> Form:
    """One kind under text keys."""

    def each(values: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            raise Misfit(values, "be a mapping")
        done: dict[str, Any] = {}
        name: Any = None
        try:
            for name, value in values.items():
                done[_text(name)] = convert(value)
        except Misfit as misfit:
            misfit.steps.append(f"[{name!r}]")
            raise
        return done

    return Form(
        frozenset({dict}),
        lambda cls: issubclass(cls, Mapping),
        lambda value: each(value, item.encode),
        lambda plain: each(plain, item.decode),
    )
