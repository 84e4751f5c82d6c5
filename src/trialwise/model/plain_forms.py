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
        """Return the error for the caller who asked for a value of this class."""
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


def _anything(value: Any) -> Any:
    found = unplain(value)
    if found is not None:
        raise Misfit(value, f"be plain JSON: this is {found[1]}", found[0])
    return value


def _read_moment(plain: Any) -> datetime:
    try:
        return datetime.fromisoformat(plain)
    except (TypeError, ValueError):
        raise Misfit(plain, "be a date and time such as 2026-11-15T06:25:24+00:00") from None


def _read_undefined(plain: Any) -> Undefined:
    if not isinstance(plain, dict) or list(plain) != [UNDEFINED]:
        raise Misfit(plain, f"be undefined: {{{UNDEFINED!r}: reason}}")
    return Undefined(SINGLE[str].decode(plain[UNDEFINED]))


def _check(kind: Any, allowed: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what converts a value of one class, and refuses every other."""

    def checked(value: Any) -> Any:
        if not isinstance(value, kind):
            raise Misfit(value, allowed)
        return convert(value)

    return checked


def _plain(kind: Any, allowed: str) -> Form:
    """Return the form of what JSON has, too; the text of an enumeration becomes a plain one."""

    def convert(value: Any) -> Any:
        if type(value) is kind:  # nearly always, and a record has a million parts
            return value
        if not isinstance(value, kind):
            raise Misfit(value, allowed)
        return kind(value)

    return _single(kind, convert)


def _single(
    kind: type,
    encode: Callable[[Any], Any],
    *plain: type,
    decode: Callable[[Any], Any] | None = None,
) -> Form:
    return Form(
        frozenset(plain or {kind}), lambda cls: issubclass(cls, kind), encode, decode or encode
    )


SINGLE: dict[Any, Form] = {
    bool: _plain(bool, "be true or false"),
    int: _single(int, _whole),
    SupportsIndex: _single(SupportsIndex, _whole, int),
    float: Form(
        frozenset({int, float}),
        lambda cls: issubclass(cls, int | float) and not issubclass(cls, bool),
        _number,
        _number,
    ),
    str: _plain(str, "be a text"),
    NoneType: _plain(NoneType, "be null"),
    datetime: _single(
        datetime,
        _check(datetime, "be a date and time", datetime.isoformat),
        str,
        decode=_read_moment,
    ),
    Undefined: _single(
        Undefined,
        _check(Undefined, "be undefined", lambda value: {UNDEFINED: value.reason}),
        dict,
        decode=_read_undefined,
    ),
    Any: _single(object, _anything, NoneType, bool, int, float, str, list, dict),
}


def choice(choices: Mapping[Any, Any]) -> Form:
    """Return a closed set; `choices` gives the plain value of each member."""
    allowed = f"be one of {', '.join(map(repr, choices.values()))}"
    meant = {plain: value for value, plain in choices.items()}

    def choose(one: Any, among: Mapping[Any, Any]) -> Any:
        try:
            return among[one]
        except (KeyError, TypeError):
            raise Misfit(one, allowed) from None

    types = frozenset(map(type, (*choices, *meant)))
    return Form(
        kinds=frozenset(map(type, meant)),
        holds=types.__contains__,
        encode=lambda value: choose(value, choices),
        decode=lambda plain: choose(plain, meant),
    )


# --- Several values ---------------------------------------------------------------------------


def sequence_of(made: type[Any], *items: Form, is_fixed: bool = False) -> Form:
    """Return the form of a tuple or a frozenset, which JSON spells as a list.

    Args:
        made: The class.
        items: The form of its items, or of each item where their number is fixed.
        is_fixed: Whether there are as many values as forms.
    """
    size = f" of {len(items)}" if is_fixed else ""

    def convert(values: Any, kind: Any, converters: Iterable[Callable[[Any], Any]]) -> list[Any]:
        if not isinstance(values, kind) or (is_fixed and len(values) != len(items)):
            raise Misfit(values, f"be a {kind.__name__}{size}")
        done: list[Any] = []
        try:
            for value, one in zip(values, converters, strict=False):
                done.append(one(value))
        except Misfit as misfit:
            misfit.steps.append(f"[{len(done)}]")
            raise
        return done

    encoders, decoders = [one.encode for one in items], [one.decode for one in items]

    def encode(value: Any) -> list[Any]:
        plain = convert(value, made, encoders if is_fixed else repeat(encoders[0]))
        # A set has no order of its own, and the same set must give the same text.
        return plain if made is tuple else sorted(plain)

    def decode(plain: Any) -> Any:
        return made(convert(plain, list, decoders if is_fixed else repeat(decoders[0])))

    return Form(frozenset({list}), lambda cls: issubclass(cls, made), encode, decode)


def mapping_of(item: Form) -> Form:
    """Return the form of one kind of value under text keys."""

    def convert(values: Any, each: Callable[[Any], Any]) -> dict[str, Any]:
        if not isinstance(values, Mapping):
            raise Misfit(values, "be a mapping")
        done: dict[str, Any] = {}
        name: Any = None
        try:
            for name, value in values.items():
                done[SINGLE[str].encode(name)] = each(value)
        except Misfit as misfit:
            misfit.steps.append(f"[{name!r}]")
            raise
        return done

    return Form(
        frozenset({dict}),
        lambda cls: issubclass(cls, Mapping),
        lambda value: convert(value, item.encode),
        lambda plain: convert(plain, item.decode),
    )
