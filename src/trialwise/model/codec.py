"""The nouns as plain JSON values and back, led by their type hints alone.

One module, so that no class has to spell itself and nothing is left out when one gains a field.
Every field is written, defaults too: a record is read by people and compared line by line. Reading
is strict about what is there and lenient about what is not: an unknown field is refused, a missing
one takes its default, so that a class may grow without making earlier records unreadable.
"""

from __future__ import annotations

import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property
from inspect import get_annotations
from types import CodeType, NoneType, UnionType
from typing import Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from trialwise import model, stats
from trialwise.errors import InvalidArgument
from trialwise.model.evidence import FLAT
from trialwise.model.plain_json import (
    SINGLE,
    UNDEFINED,
    Form,
    Misfit,
    choice,
    mapping_of,
    sequence_of,
)
from trialwise.model.plan import Plan
from trialwise.stats import sequential
from trialwise.stats.result_types import Undefined

T = TypeVar("T")

#: The key that tells the classes of a union apart.
TAG = "type"


def to_plain(value: object) -> Any:
    """Return a value of the model as JSON holds it: numbers, text, lists and dicts.

    >>> from trialwise.model.evidence import Tally
    >>> to_plain(Tally(trials=50, passed=48))
    {'trials': 50, 'passed': 48, 'evaluable': None}

    Raises:
        InvalidArgument: A part is not what its class declares, or JSON cannot hold it, such as a
            number that is not finite.
    """
    cls: Any = type(value)
    try:
        return _form(cls).encode(value)
    except Misfit as misfit:
        raise misfit.refusal(cls) from None


def from_plain(cls: type[T], data: Any) -> T:
    """Return the value that `to_plain` wrote, equal in every field.

    >>> from trialwise.model.evidence import Tally
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
    hint: Any = cls
    try:
        value: T = _form(hint).decode(data)
    except Misfit as misfit:
        raise misfit.refusal(cls) from None
    return value


# --- Classes ----------------------------------------------------------------------------------


class _Record:
    """A dataclass, field by field; its hints are read at the first use, as a class may hold its
    own kind."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    @cached_property
    def _groups(self) -> dict[str, _Record]:
        """The fields that group others, which are written and read beside the rest."""
        hints = read_hints(self._cls)
        marked = [one.name for one in fields(self._cls) if one.metadata == FLAT]
        return {name: _record(hints[name]) for name in marked}

    @cached_property
    def _forms(self) -> dict[str, tuple[Form, str]]:
        """The form of each field, with the group that it belongs to."""
        hints = read_hints(self._cls)
        # What a class derives from its other fields is not written.
        own = [one.name for one in fields(self._cls) if one.init and one.name not in self._groups]
        found = {name: (_form(hints[name]), "") for name in own}
        for group, record in self._groups.items():
            found |= {name: (form, group) for name, (form, _) in record._forms.items()}
        return found

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(
            one.name
            for one in fields(self._cls)
            if one.init and one.default is MISSING and one.default_factory is MISSING
        )

    def encode(self, value: Any, *, without: str = "") -> dict[str, Any]:
        if type(value) is not self._cls:
            raise Misfit(value, f"be a {self._cls.__name__}")
        plain: dict[str, Any] = {}
        name = ""
        try:
            for name, (form, group) in self._forms.items():
                if name != without:
                    owner = getattr(value, group) if group else value
                    plain[name] = form.encode(getattr(owner, name))
        except Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        return plain

    def decode(self, plain: Any, **known: Any) -> Any:
        """Return the object; `known` are fields that were read already."""
        if type(plain) is not dict:
            raise Misfit(plain, f"be a mapping of the fields of {self._cls.__name__}")
        given = known
        grouped: dict[str, dict[str, Any]] = {}
        name = ""
        try:
            for name, part in plain.items():
                if name not in self._forms:
                    raise Misfit(part, f"not be there: {self._cls.__name__} has no such field")
                form, group = self._forms[name]
                target = grouped.setdefault(group, {}) if group else given
                target[name] = form.decode(part)
        except Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        for group, parts in grouped.items():
            given[group] = self._groups[group].make(parts)
        return self.make(given)

    def make(self, given: dict[str, Any]) -> Any:
        """Return the object of some fields, or say what is wrong with them and where."""
        if missing := self._required - given.keys():
            raise Misfit(given, f"hold {', '.join(map(repr, sorted(missing)))}")
        try:
            return self._cls(**given)
        except InvalidArgument as error:
            argument = error.argument
            at = f".{argument}" if argument in given else f": {argument}"
            raise Misfit(error.value, error.allowed, at) from None


class _VerdictRecord(_Record):
    """A verdict holds its plan once; findings refer to their part of it by the criterion's name."""

    def encode(self, value: Any, *, without: str = "") -> dict[str, Any]:
        with _referring(value.plan):
            return super().encode(value, without=without)

    def decode(self, plain: Any, **known: Any) -> Any:
        if type(plain) is dict and plain.get("plan") is not None:
            try:
                known["plan"] = _form(Plan).decode(plain["plan"])
            except Misfit as misfit:
                misfit.steps.append(".plan")
                raise
            plain = {key: part for key, part in plain.items() if key != "plan"}
        with _referring(known.get("plan")):
            return super().decode(plain, **known)


class _FindingRecord(_Record):
    """A finding of a verdict names its criterion; one on its own is written with its plan."""

    def encode(self, value: Any, *, without: str = "") -> dict[str, Any]:
        # A finding may differ from the run's plan where somebody put it there by hand.
        if _PLANS and _PLANS[-1].get(value.plan.criterion) == value.plan:
            plain = super().encode(value, without="plan")
            return {"criterion": value.plan.criterion, **plain}
        return super().encode(value, without=without)

    def decode(self, plain: Any, **known: Any) -> Any:
        if type(plain) is not dict or "criterion" not in plain:
            return super().decode(plain, **known)
        name = plain["criterion"]
        found = _PLANS[-1].get(name) if _PLANS and isinstance(name, str) else None
        if found is None:
            raise Misfit(name, "name a criterion of the plan", ".criterion")
        rest = {key: part for key, part in plain.items() if key != "criterion"}
        return super().decode(rest, plan=found)


#: The criteria of the verdict that is written or read, by name; none outside of verdicts.
_PLANS: list[dict[str, Any]] = []


@contextmanager
def _referring(plan: Plan | None) -> Iterator[None]:
    _PLANS.append({} if plan is None else {one.criterion: one for one in plan.criteria})
    try:
        yield
    finally:
        _PLANS.pop()


@cache
def _record(cls: type) -> _Record:
    special = {"Finding": _FindingRecord, "Verdict": _VerdictRecord}
    return special.get(cls.__name__, _Record)(cls)


def _design_form(cls: Any) -> Form:
    """Return the form of a sequential design, whose own reader checks its boundaries, too."""

    def decode(plain: Any) -> Any:
        try:
            return cls.from_dict(plain)
        except InvalidArgument as error:
            at = "" if error.argument == "values" else f".{error.argument}"
            raise Misfit(error.value, error.allowed, at) from None
        except (TypeError, ValueError) as error:
            raise Misfit(plain, f"be a sequential design ({error})") from None

    return Form(frozenset({dict}), lambda kind: kind is cls, cls.to_dict, decode)


# --- Unions -----------------------------------------------------------------------------------


def _tagged(classes: Sequence[Any]) -> Form:
    """Return the form of one of several classes, which JSON tells apart by name.

    An open class has subclasses in other distributions, which keep adding to its `kinds`.
    """
    opened = [one for one in classes if _is_open(one)]
    closed = {_name(one): _form(one) for one in classes if one not in opened}

    def find(tag: object, given: object, at: str = "") -> Any:
        # Asked each time: a distribution that is loaded later adds kinds.
        added = {name: _record(kind) for one in opened for name, kind in one.kinds.items()}
        forms = {**closed, **added}
        if not isinstance(tag, str) or tag not in forms:
            raise Misfit(given, f"be one of {', '.join(forms)}", at)
        return forms[tag]

    def encode(value: Any) -> dict[str, Any]:
        kind: Any = type(value)
        # A value has the form of its own class, also where a distribution that was loaded again
        # has brought another class of that name.
        form = _record(kind) if isinstance(value, (*opened,)) else find(kind.__name__, value)
        return {TAG: kind.__name__, **form.encode(value)}

    def decode(plain: Any) -> Any:
        tag = plain.get(TAG) if type(plain) is dict else None
        rest = find(tag, tag, f".{TAG}")
        return rest.decode({key: part for key, part in plain.items() if key != TAG})

    def holds(kind: type) -> bool:
        return issubclass(kind, (*opened,)) or any(one.holds(kind) for one in closed.values())

    return Form(frozenset({dict}), holds, encode, decode)


def _union(members: tuple[Any, ...]) -> Form:
    classes = [one for one in members if _is_class(one)]
    forms = [_form(one) for one in members if one not in classes]
    if classes:
        forms.append(_tagged(classes) if len(classes) > 1 else _form(classes[0]))
    # An undefined quantity is a mapping, too, and known by its key.
    told = [form for form in forms if form is not SINGLE[Undefined]]
    decoders = {kind: form.decode for form in told for kind in form.kinds}
    if len(decoders) < sum(len(form.kinds) for form in told):
        raise TypeError(f"JSON cannot tell {' | '.join(map(str, members))} apart")
    may_be_undefined = len(told) < len(forms)

    @cache
    def encoder(cls: Any) -> Callable[[Any], Any] | None:
        return next((form.encode for form in forms if form.holds(cls)), None)

    def encode(value: Any) -> Any:
        kind: Any = type(value)
        found = encoder(kind)
        if found is None:
            raise Misfit(value, f"be one of {', '.join(map(_name, members))}")
        return found(value)

    def decode(plain: Any) -> Any:
        found = decoders.get(type(plain))
        if may_be_undefined and type(plain) is dict and (found is None or UNDEFINED in plain):
            found = SINGLE[Undefined].decode
        if found is None:
            kinds = {*decoders, dict} if may_be_undefined else decoders
            raise Misfit(plain, f"be {' or '.join(sorted(map(_KINDS.__getitem__, kinds)))}")
        return found(plain)

    kinds = frozenset({*decoders, dict} if may_be_undefined else decoders)
    return Form(kinds, lambda cls: encoder(cls) is not None, encode, decode)


def _is_class(member: Any) -> bool:
    if isinstance(member, ForwardRef) or _is_open(member):
        return True
    return is_dataclass(member) and member is not Undefined


def _is_open(member: Any) -> bool:
    """Return whether other distributions may subclass it; it keeps its kinds itself."""
    return isinstance(member, type) and "kinds" in vars(member)


def _name(member: Any) -> str:
    if isinstance(member, ForwardRef):
        return member.__forward_arg__.rpartition(".")[2]
    return member.__name__ if isinstance(member, type) else str(member)


_KINDS: dict[type, str] = {
    NoneType: "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


# --- From hints to forms ----------------------------------------------------------------------


@cache
def _form(hint: Any) -> Form:
    if hint in SINGLE:
        return SINGLE[hint]
    if isinstance(hint, ForwardRef | type) and get_origin(hint) is None:
        return _class_form(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return choice({one: one for one in arguments})
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin in (tuple, frozenset):
        is_fixed = origin is tuple and arguments[-1] is not Ellipsis
        items = arguments if is_fixed else arguments[:1]
        return sequence_of(origin, *map(_form, items), is_fixed=is_fixed)
    if origin is Mapping and arguments[0] is str:
        return mapping_of(_form(arguments[1]))
    raise TypeError(f"{hint!r} has no plain form")


def _class_form(cls: Any) -> Form:
    if isinstance(cls, ForwardRef):
        return _later(cls.__forward_arg__)
    if issubclass(cls, Enum):
        return choice({one: one.value for one in cls})
    if cls.__name__ == "SequentialDesign":
        return _design_form(cls)
    if _is_open(cls):
        return _tagged([cls])
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__name__} has no plain form")
    hashable: Any = cls
    record = _record(hashable)
    return Form(frozenset({dict}), lambda kind: kind is cls, record.encode, record.decode)


def _later(path: str) -> Form:
    """Return the form of a dataclass whose module is loaded by the first value of it.

    Args:
        path: The class as hints name it, such as `stats.Confusion`.
    """
    package, _, name = path.rpartition(".")
    module = _LAZY[package]

    @cache
    def form() -> Form:
        return _form(getattr(module, name))

    return Form(
        kinds=frozenset({dict}),
        holds=lambda cls: cls.__name__ == name and cls.__module__.startswith(module.__name__),
        encode=lambda value: form().encode(value),
        decode=lambda plain: form().decode(plain),
    )


#: Packages that load a module with its first name. A run by one method must not load the results of
#: all others.
_LAZY = {"model": model, "stats": stats, "sequential": sequential}


def read_hints(cls: type) -> dict[str, Any]:
    """Read the types of a class's fields."""
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        # A text is read in the module that declares the field, which may be another's.
        names = _Names(vars(sys.modules[base.__module__]))
        for name, hint in get_annotations(base).items():
            found = eval(_compile(hint), vars(typing), names) if isinstance(hint, str) else hint
            # What a field says beside its type is for suites, and no matter of records.
            annotated = get_origin(found) is typing.Annotated
            hints[name] = get_args(found)[0] if annotated else found
    return hints


@cache
def _compile(hint: str) -> CodeType:
    # Kept, since most hints stand in many classes and compiling one takes long.
    return compile(hint, "<hint>", "eval")


class _Names(dict[str, Any]):
    """What the hints of a module may name; what is in a lazy package stays a name until needed."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        super().__init__()
        self._module = module

    def __missing__(self, name: str) -> Any:
        if name in _LAZY:
            return _LazyNames(name)
        found = self._module[name]
        # An alias may be a text at run time, so that its module need not import `typing`.
        return eval(found, vars(typing), self) if isinstance(found, str) else found


class _LazyNames:
    """The names of a lazy package, as references to what is not loaded yet."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> ForwardRef:
        return ForwardRef(f"{self._package}.{name}")
