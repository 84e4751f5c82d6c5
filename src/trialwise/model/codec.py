"""The nouns as plain JSON values and back, led by their type hints alone.

One module, so that no class has to spell itself and nothing is left out when one gains a field.
Every field is written, defaults too: a record is read by people and compared line by line. Reading
is strict about what is there and lenient about what is not: an unknown field is refused, a missing
one takes its default, so that a class may grow without making earlier records unreadable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, cached_property, partial
from importlib import import_module
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ForwardRef,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from trialwise.errors import InvalidArgument
from trialwise.model._forms import (
    SINGLE,
    UNDEFINED,
    Form,
    Misfit,
    choice,
    fixed_list,
    list_of,
    mapping,
)
from trialwise.model._hints import LATER, read_hints
from trialwise.model.evidence import FLAT
from trialwise.model.plan import Plan
from trialwise.stats.result_types import Undefined

if TYPE_CHECKING:
    from trialwise.model.verdict import Verdict

T = TypeVar("T")

#: The key that tells the classes of a union apart.
TAG = "type"


def to_plain(value: object) -> Any:
    """Return a value of the model as JSON holds it: numbers, text, lists and dicts.

    >>> from trialwise.model.tally import Tally
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


def verdict_to_plain(verdict: Verdict, plan: dict[str, Any]) -> Any:
    """Return a verdict as `to_plain` does, with its plan as that was encoded before.

    Args:
        verdict: It holds its plan.
        plan: The same plan as plain values, which are taken over.
    """
    cls: Any = type(verdict)
    record = _record(cls)
    assert isinstance(record, _VerdictRecord)
    try:
        return record.encode_with(verdict, plan)
    except Misfit as misfit:
        raise misfit.refusal(cls) from None


def from_plain(cls: type[T], data: Any) -> T:
    """Return the value that `to_plain` wrote, equal in every field.

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
    hint: Any = cls
    try:
        value: T = _form(hint).decode(data)
    except Misfit as misfit:
        raise misfit.refusal(cls) from None
    return value


# --- Classes and unions -----------------------------------------------------------------------


class _Record:
    """A dataclass, field by field; its hints are read at the first use, as a class may hold its
    own kind."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    @cached_property
    def _fields(self) -> list[tuple[str, Form]]:
        hints = read_hints(self._cls)
        # What a class derives from its other fields is not written.
        return [
            (one.name, _form(hints[one.name]))
            for one in fields(self._cls)
            if one.init and one.name not in self._groups
        ]

    @cached_property
    def _groups(self) -> dict[str, _Record]:
        """The fields that group others, which are written and read beside the rest."""
        marked = (one for one in fields(self._cls) if one.metadata == FLAT)
        return {one.name: _record(read_hints(self._cls)[one.name]) for one in marked}

    @cached_property
    def _owners(self) -> dict[str, str]:
        """The group of each field that belongs to one."""
        return {name: group for group, one in self._groups.items() for name, _ in one._fields}

    @cached_property
    def _encoders(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(name, form.encode) for name, form in self._fields]

    @cached_property
    def _decoders(self) -> dict[str, Callable[[Any], Any]]:
        return {name: form.decode for name, form in self._fields}

    @cached_property
    def _required_fields(self) -> frozenset[str]:
        return frozenset(
            one.name
            for one in fields(self._cls)
            if one.init and one.default is MISSING and one.default_factory is MISSING
        )

    def encode(self, value: Any) -> dict[str, Any]:
        return self._encode_fields(value, self._encoders)

    def _encode_fields(
        self, value: Any, encoders: list[tuple[str, Callable[[Any], Any]]]
    ) -> dict[str, Any]:
        if type(value) is not self._cls:
            raise Misfit(value, f"be a {self._cls.__name__}")
        plain: dict[str, Any] = {}
        name = ""
        try:
            for name, encode in encoders:
                plain[name] = encode(getattr(value, name))
        except Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        for group, record in self._groups.items():
            plain |= record.encode(getattr(value, group))
        return plain

    def decode(self, plain: Any) -> Any:
        if type(plain) is self._cls:  # a part of a plan that was read already
            return plain
        if type(plain) is not dict:
            raise Misfit(plain, f"be a mapping of the fields of {self._cls.__name__}")
        given: dict[str, Any] = {}
        decoders = self._decoders
        grouped: dict[str, dict[str, Any]] = {}
        name = ""
        try:
            for name, part in plain.items():
                if name in self._owners:
                    grouped.setdefault(self._owners[name], {})[name] = part
                    continue
                if name not in decoders:
                    raise Misfit(part, f"not be there: {self._cls.__name__} has no such field")
                given[name] = decoders[name](part)
        except Misfit as misfit:
            misfit.steps.append(f".{name}")
            raise
        for group, part in grouped.items():
            given[group] = self._groups[group].decode(part)
        if missing := self._required_fields - given.keys():
            raise Misfit(plain, f"hold {', '.join(map(repr, sorted(missing)))}")
        return self._make(given)

    def _make(self, given: dict[str, Any]) -> Any:
        try:
            return self._cls(**given)
        except InvalidArgument as error:
            argument = error.argument
            at = f".{argument}" if argument in given else f": {argument}"
            raise Misfit(error.value, error.allowed, at) from None


class _VerdictRecord(_Record):
    """A verdict holds its plan once; findings refer to their part of it by the criterion's name."""

    def encode(self, value: Any) -> dict[str, Any]:
        if value.plan is None:
            return super().encode(value)
        with _referring(value.plan):
            return super().encode(value)

    def encode_with(self, value: Any, plan: dict[str, Any]) -> dict[str, Any]:
        """Encode a verdict whose plan is encoded already."""
        encoders = [(n, (lambda _: plan) if n == "plan" else one) for n, one in self._encoders]
        with _referring(value.plan):
            return self._encode_fields(value, encoders)

    def decode(self, plain: Any) -> Any:
        if type(plain) is not dict or plain.get("plan") is None:
            return super().decode(plain)
        try:
            plan = _form(Plan).decode(plain["plan"])
        except Misfit as misfit:
            misfit.steps.append(".plan")
            raise
        with _referring(plan):
            return super().decode(plain)


class _FindingRecord(_Record):
    """A finding of a verdict names its criterion; one on its own is written with its plan."""

    @cached_property
    def _encoders_beside_plan(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(name, one) for name, one in self._encoders if name != "plan"]

    def encode(self, value: Any) -> dict[str, Any]:
        # A finding may differ from the run's plan where somebody put it there by hand.
        if _PLANS and _PLANS[-1].get(value.plan.criterion) == value.plan:
            plain = self._encode_fields(value, self._encoders_beside_plan)
            return {"criterion": value.plan.criterion, **plain}
        return super().encode(value)

    def decode(self, plain: Any) -> Any:
        if type(plain) is not dict or "criterion" not in plain:
            return super().decode(plain)
        name = plain["criterion"]
        found = _PLANS[-1].get(name) if _PLANS and isinstance(name, str) else None
        if found is None:
            raise Misfit(name, "name a criterion of the plan", ".criterion")
        rest = {key: part for key, part in plain.items() if key != "criterion"}
        return super().decode({"plan": found, **rest})


#: The criteria of the verdict that is written or read, by name; none outside of verdicts.
_PLANS: list[dict[str, Any]] = []


@contextmanager
def _referring(plan: Plan) -> Iterator[None]:
    _PLANS.append({one.criterion: one for one in plan.criteria})
    try:
        yield
    finally:
        _PLANS.pop()


def _open_class(base: Any) -> Form:
    """Return the form of a class that other distributions may subclass."""

    def encode(value: Any) -> dict[str, Any]:
        return {TAG: type(value).__name__, **_record(value.__class__).encode(value)}

    def decode(plain: Any) -> Any:
        tag = plain.get(TAG) if type(plain) is dict else None
        found = base.kinds.get(tag) if isinstance(tag, str) else None
        if found is None:
            raise Misfit(tag, f"be one of {', '.join(base.kinds)}", f".{TAG}")
        return _record(found).decode({key: part for key, part in plain.items() if key != TAG})

    return Form(frozenset({dict}), lambda kind: issubclass(kind, base), encode, decode)


@cache
def _record(cls: type) -> _Record:
    special = {"Finding": _FindingRecord, "Verdict": _VerdictRecord}
    return special.get(cls.__name__, _Record)(cls)


def _design_out(cls: Any, value: Any) -> Any:
    if not isinstance(value, cls):
        raise Misfit(value, "be a SequentialDesign")
    return value.to_dict()


def _design_in(cls: Any, plain: Any) -> Any:
    """Its own reader checks the boundaries, which are more than types."""
    try:
        return cls.from_dict(plain)
    except InvalidArgument as error:
        at = "" if error.argument == "values" else f".{error.argument}"
        raise Misfit(error.value, error.allowed, at) from None
    except (TypeError, ValueError) as error:
        raise Misfit(plain, f"be a sequential design ({error})") from None


def _union(members: tuple[Any, ...]) -> Form:
    forms = {member: _form(member) for member in members}
    classes: list[Any] = [one for one in members if _is_class(one)]
    if len(classes) > 1:
        forms |= {one: _add_tag(_name(one), forms[one]) for one in classes}
    decoders = _decoders(forms, classes)

    @cache
    def encoder(cls: Any) -> Callable[[Any], Any] | None:
        return next((form.encode for form in forms.values() if form.holds(cls)), None)

    def encode(value: Any) -> Any:
        kind: Any = type(value)
        found = encoder(kind)
        if found is None:
            raise Misfit(value, f"be one of {', '.join(map(_name, members))}")
        return found(value)

    def decode(plain: Any) -> Any:
        found = decoders.get(type(plain))
        if found is None:
            raise Misfit(plain, f"be {' or '.join(sorted(map(_KINDS.__getitem__, decoders)))}")
        return found(plain)

    return Form(
        kinds=frozenset(decoders),
        holds=lambda cls: encoder(cls) is not None,
        encode=encode,
        decode=decode,
    )


def _is_class(member: Any) -> bool:
    return isinstance(member, ForwardRef) or (is_dataclass(member) and member is not Undefined)


def _is_open(member: Any) -> bool:
    """Return whether other distributions may subclass it; it keeps its kinds itself."""
    return isinstance(member, type) and "kinds" in vars(member)


def _name(member: Any) -> str:
    if isinstance(member, ForwardRef):
        return member.__forward_arg__
    return member.__name__ if isinstance(member, type) else str(member)


def _add_tag(name: str, form: Form) -> Form:
    return Form(
        kinds=form.kinds,
        holds=form.holds,
        encode=lambda value: {TAG: name, **form.encode(value)},
        decode=lambda plain: form.decode({k: v for k, v in plain.items() if k != TAG}),
    )


def _decoders(forms: Mapping[Any, Form], classes: list[Any]) -> dict[type, Callable[[Any], Any]]:
    """Return the readers of a union's members, by the JSON type that tells which one is meant."""
    decoders: dict[type, Callable[[Any], Any]] = {}
    for member, form in forms.items():
        if member is Undefined or _is_open(member) or (len(classes) > 1 and member in classes):
            continue
        if not decoders.keys().isdisjoint(form.kinds):
            raise TypeError(f"JSON cannot tell {' | '.join(map(str, forms))} apart")
        decoders |= dict.fromkeys(form.kinds, form.decode)
    if len(classes) > 1:
        if dict in decoders:
            raise TypeError(f"JSON cannot tell {' | '.join(map(str, forms))} apart")
        by_name = {_name(one): forms[one].decode for one in classes}
        opened = [one for one in forms if _is_open(one)]

        def decode_tagged(plain: dict[str, Any]) -> Any:
            tag = plain.get(TAG)
            found = by_name.get(tag) if isinstance(tag, str) else None
            for one in opened:  # other distributions add to these while records are read
                if isinstance(tag, str) and tag in one.kinds:
                    found = forms[one].decode
            if found is None:
                raise Misfit(tag, f"be one of {', '.join(by_name)}", f".{TAG}")
            return found(plain)

        decoders[dict] = decode_tagged
    if Undefined in forms:
        undefined, other = forms[Undefined].decode, decoders.get(dict)
        decoders[dict] = lambda plain: (
            other(plain) if other and UNDEFINED not in plain else undefined(plain)
        )
    return decoders


_KINDS: dict[type, str] = {
    NoneType: "null",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


@cache
def _form(hint: Any) -> Form:
    if hint in SINGLE:
        return SINGLE[hint]
    if isinstance(hint, type | ForwardRef) and get_origin(hint) is None:
        return _class(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return choice({one: one for one in arguments})
    if origin in (Union, UnionType):
        return _union(arguments)
    if origin in (tuple, frozenset):
        return _sequence(origin, arguments)
    if origin is Mapping and arguments[0] is str:
        return mapping(_form(arguments[1]))
    raise TypeError(f"{hint!r} has no plain form")


def _sequence(origin: Any, arguments: tuple[Any, ...]) -> Form:
    if origin is tuple and arguments[-1] is not Ellipsis:
        return fixed_list(tuple(map(_form, arguments)))
    return list_of(_form(arguments[0]), origin)


def _class(cls: type | ForwardRef) -> Form:
    if isinstance(cls, ForwardRef):
        return _later(cls.__forward_arg__)
    if issubclass(cls, Enum):
        return choice({one: one.value for one in cls})
    if cls.__name__ == "SequentialDesign":
        out, back = partial(_design_out, cls), partial(_design_in, cls)
        return Form(frozenset({dict}), lambda kind: kind is cls, out, back)
    if _is_open(cls):
        return _open_class(cls)
    if is_dataclass(cls):
        record = _record(cls)
        return Form(frozenset({dict}), lambda kind: kind is cls, record.encode, record.decode)
    raise TypeError(f"{cls.__name__} has no plain form")


def _later(name: str) -> Form:
    """Return the form of a dataclass whose module is loaded by the first value of it."""

    @cache
    def form() -> Form:
        return _form(getattr(import_module(LATER[name]), name))

    return Form(
        kinds=frozenset({dict}),
        holds=lambda cls: cls.__name__ == name and cls.__module__.startswith(LATER[name]),
        encode=lambda value: form().encode(value),
        decode=lambda plain: form().decode(plain),
    )
