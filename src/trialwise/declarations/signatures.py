"""Keys from a constructor: its signature says which values it takes, its docstring what they mean.

    class MaxLatency(Check, spelling="max_latency"):
        '''The reply took at most so long.

        Args:
            seconds: The longest time that is allowed.
        '''

        seconds: Seconds

declares one required key `seconds` that holds a time with its unit. What a type cannot say is
added with `Annotated[..., Arg(...)]`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, is_dataclass
from enum import Enum, StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from trialwise.declarations import scalars
from trialwise.declarations.scalars import MISSING, Kind, Mode, Scalar
from trialwise.declarations.structures import Either, Fields, Key, Listing, MapOf, Record, Short
from trialwise.declarations.written import INVALID, Node, Reader
from trialwise.errors import InvalidArgument

#: Shorter words that stand for an argument wherever it occurs.
_ALIASES = {"minimum": ("min",), "maximum": ("max",)}
#: Arguments that the program passes in, and nobody writes.
_PROGRAM = frozenset({"self", "clock", "contract", "environment"})
_LISTS = (Sequence, Collection, list, tuple)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arg:
    """What the type of an argument does not say.

    Args:
        kind: The kind of value, where the type alone does not tell.
        key: What it is called, where the argument has another name.
        aliases: Other ways to write the key.
        default: What holds without it, in words.
        otherwise: What the constructor is given where a suite leaves the key out; the key is then
            not required.
        elsewhere: What other tools call it, in words: understood, and not accepted.
    """

    kind: Kind | None = None
    key: str = ""
    aliases: tuple[str, ...] = ()
    default: str | None = None
    otherwise: Any = MISSING
    elsewhere: str = ""


Natural = Annotated[int, Arg(kind=scalars.Count(0))]
"""A whole number from 0 on."""
Positive = Annotated[int, Arg(kind=scalars.Count())]
"""A whole number from 1 on."""
Seconds = Annotated[float, Arg(kind=scalars.Duration())]
"""A time, which a suite writes with its unit."""
Dollars = Annotated[float, Arg(kind=scalars.Money())]
"""An amount of US dollars."""
Share = Annotated[float, Arg(kind=scalars.Rate())]
"""A share of one, such as 0.9 or 90%."""


@cache
def derive_keys(constructor: Callable[..., Any], *, texts: Mode = "kept") -> tuple[Key, ...]:
    """Return a key for each argument of a constructor, in the order of its docstring.

    Args:
        constructor: A function or a class.
        texts: What `${NAME}` means in its texts.
    """
    function: Any = constructor
    # The fields of a dataclass may come from other modules, where their types have other names.
    if isinstance(constructor, type) and not is_dataclass(constructor):
        function = getattr(constructor, "__init__")  # noqa: B009
    # With the extras: `Annotated` is where a declaration says what a type cannot.
    hints = get_type_hints(function, include_extras=True)
    described = read_arguments(constructor)
    parameters = inspect.signature(constructor).parameters
    return tuple(
        _derive_key(parameters[name], hints.get(name, Any), described.get(name, ""), texts)
        for name in dict.fromkeys([*described, *parameters])
        if name in parameters and name not in _PROGRAM
    )


def summarise(constructor: Callable[..., Any]) -> str:
    """Return the first paragraph of a docstring on one line."""
    text = inspect.getdoc(constructor) or ""
    return " ".join(text.partition("\n\n")[0].split())


def read_arguments(constructor: Callable[..., Any]) -> dict[str, str]:
    """Return what a docstring says of each argument under `Args:`, each on one line.

    >>> read_arguments(derive_keys)["texts"]
    'What `${NAME}` means in its texts.'
    """
    text = inspect.getdoc(constructor) or ""
    _, found, section = text.partition("\nArgs:\n")
    if not found:
        return {}
    section = re.split(r"\n(?=\S)", section, maxsplit=1)[0]
    parts = re.split(r"^ {4}\*{0,2}(\w+): ", section, flags=re.MULTILINE)
    return {
        name: " ".join(said.split()) for name, said in zip(parts[1::2], parts[2::2], strict=True)
    }


def _derive_key(parameter: inspect.Parameter, annotation: Any, described: str, texts: Mode) -> Key:
    kind, arg = _kind_of(annotation, texts)
    name = arg.key or parameter.name
    if not arg.key and isinstance(kind, scalars.Duration | scalars.Money):
        # A suite writes the unit beside the number.
        name = name.removesuffix("_s").removesuffix("_usd")
    # What the reader supplies is not asked of the author of a suite.
    required = parameter.default is inspect.Parameter.empty and arg.otherwise is MISSING
    default = arg.default if arg.default is not None else show_default(parameter.default, kind)
    return Key(
        name,
        kind,
        described,
        default="" if required else default,
        aliases=(*arg.aliases, *_ALIASES.get(name, ())),
        field=parameter.name,
        is_required=required,
        # In Python the first argument may be given by its place alone.
        is_positional=parameter.kind is not inspect.Parameter.KEYWORD_ONLY,
        fallback=parameter.default,
        otherwise=arg.otherwise,
        elsewhere=arg.elsewhere,
    )


def _kind_of(annotation: Any, texts: Mode) -> tuple[Kind, Arg]:
    """Return the kind that an annotation asks for, and what it says beside."""
    arg = Arg()
    if isinstance(annotation, InitVar):
        annotation = annotation.type
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        arg = next((one for one in more if isinstance(one, Arg)), arg)
    if arg.kind is not None:
        return arg.kind, arg
    if get_origin(annotation) in (Union, UnionType):
        return _either(annotation, texts, arg)
    return _plain_kind(annotation, texts), arg


def _either(annotation: Any, texts: Mode, arg: Arg) -> tuple[Kind, Arg]:
    """Return the kind of a union: None only says that it may be left out."""
    members = [one for one in get_args(annotation) if one is not NoneType]
    kinds = [_kind_of(one, texts) for one in members]
    if len(kinds) == 1:
        kind, inner = kinds[0]
        return kind, inner if arg == Arg() else arg
    one, several = kinds[0][0], kinds[1][0]
    if len(kinds) == 2 and isinstance(several, Listing):
        return Either(f"{one.expected} or {several.expected}", scalar=one, listing=several), arg
    raise TypeError(f"{annotation} is not a kind of value: say which with Arg(kind=...)")


def _plain_kind(annotation: Any, texts: Mode) -> Kind:
    origin, members = get_origin(annotation), get_args(annotation)
    simple: dict[Any, Kind] = {
        str: scalars.Text(environment=texts),
        bool: scalars.Flag(),
        int: scalars.Whole(),
        float: scalars.Number(),
        Any: scalars.Data("read" if texts == "read" else "kept"),
    }
    if annotation in simple:
        return simple[annotation]
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        origin, members = Literal, tuple(annotation)
    if origin is Literal:
        return scalars.Choice(*members)
    if origin is Mapping:
        values = _kind_of(members[1], texts)[0]
        if isinstance(values, scalars.Data):
            return scalars.Object(values.environment)
        return MapOf(values, f"{values.plural} by name")
    if origin in _LISTS:
        item = _kind_of(members[0], texts)[0]
        # A tuple of a fixed length is a fixed number of values, such as both ends of a range.
        if origin is tuple and members[-1] is not Ellipsis:
            size = len(members)
            number = {2: "two", 3: "three"}.get(size, str(size))
            return Listing(item, f"{number} {item.plural}", minimum=size, maximum=size)
        return Listing(item, f"a list of {item.plural}")
    raise TypeError(f"{annotation} is not a kind of value: say which with Arg(kind=...)")


def build_declared(
    constructor: Callable[..., Any], keys: Sequence[Key], given: Fields, reader: Reader
) -> Any:
    """Return what a constructor makes of some fields, or `INVALID` once a problem is reported.

    Args:
        constructor: What is declared.
        keys: Its keys.
        given: What was read.
        reader: Takes problems; it also gives the environment to a constructor that asks for one.

    Raises:
        InvalidArgument: The constructor refuses an argument; `find_refused` says where it stands.
    """
    arguments: dict[str, Any] = {}
    for key in keys:
        if key.name in given:
            value = key.kind.finish(given[key.name], given.at(key.name), f"`{key.name}`", reader)
        else:
            value = key.otherwise if key.otherwise is not MISSING else key.kind.supply(reader)
        if value is not MISSING:
            arguments[key.field] = value
    # Its problem is reported; a constructor would report the same value again, without a place.
    if INVALID in arguments.values():
        return INVALID
    # Only a service that resolves secrets by itself asks for it; no value passes through here.
    if "environment" in inspect.signature(constructor).parameters:
        arguments["environment"] = reader.variables
    return constructor(**arguments)


def find_refused(
    error: InvalidArgument, keys: Sequence[Key], given: Fields, name: str
) -> tuple[Any, str]:
    """Return where the value stands that a constructor refused, and what it is called there."""
    # `headers['Authorization']` is about a header, and `any_of: text` about the text within.
    argument = error.argument.partition("[")[0].rpartition(": ")[2]
    key = next((key.name for key in keys if key.field == argument), argument)
    node = given.at(key)
    return node, key if node is not given.node else name


@dataclass(frozen=True, slots=True)
class Declaration:
    """A check or a service as it is declared: its name and its constructor."""

    texts: ClassVar[Mode] = "kept"
    """What `${NAME}` means in its texts."""

    name: str
    constructor: Callable[..., Any]

    @property
    def doc(self) -> str:
        """What it is, in a sentence."""
        return summarise(self.constructor)

    @property
    def keys(self) -> tuple[Key, ...]:
        """What a suite may say of it."""
        return derive_keys(self.constructor, texts=self.texts)


D = TypeVar("D", bound=Declaration)


class DeclaredKind(Kind, Generic[D]):
    """The keys of what a constructor declares; it is loaded when something of it is needed.

    Args:
        name: What a suite calls it.
        find: Returns the declaration of a name.
    """

    def __init__(self, name: str, find: Callable[[str], D | None]) -> None:
        self.name = name
        self._find = find

    @property
    def declared(self) -> D:
        """The declaration."""
        declared = self._find(self.name)
        assert declared is not None, self.name
        return declared

    @property
    def doc(self) -> str:  # type: ignore[override]
        """What it is."""
        return self.declared.doc

    @property
    def keys(self) -> tuple[Key, ...]:
        """Its arguments."""
        return self.declared.keys

    @property
    def kind(self) -> Record | Short:
        """How it is written."""
        raise NotImplementedError

    @property
    def expected(self) -> str:  # type: ignore[override]
        """What it is, as the rest of a sentence that starts with "must be"."""
        return self.kind.expected

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read what is said of it."""
        return self.kind.read(node, label, reader)

    def schema(self, defs: dict[str, scalars.Schema]) -> scalars.Schema:
        """Return how it is written."""
        return self.kind.schema(defs)


def declare_record(name: str, section: type, *more: Key, **rules: Any) -> Record:
    """Return the record that a class declares: a key for each of its fields, and further ones.

    Args:
        name: What it is, such as "covariate".
        section: The class; its docstring says what the record and the keys mean.
        more: Keys that are declared elsewhere.
        rules: Further arguments of `Record`.
    """
    # A section is declared and never made: its fields are all that is asked of it.
    made: Callable[..., Any] = dataclass(kw_only=True)(section)
    keys = (*derive_keys(made, texts="refused"), *more)
    return Record(name, keys, doc=summarise(section), **rules)


class Made(Record):
    """A record that becomes an object of the model's when what holds it is built."""

    def __init__(
        self, name: str, constructor: Callable[..., Any], keys: tuple[Key, ...], **more: Any
    ) -> None:
        super().__init__(name, keys, **more)
        self.constructor = constructor

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """Return the object."""
        try:
            return build_declared(self.constructor, self.keys, value, reader)
        except InvalidArgument as error:
            at, what = find_refused(error, self.keys, value, self.name)
            return reader.refuse(at, f"`{what}` must {error.allowed}", hide=what == "headers")


# --- Settings that are declared once, on the field of the dataclass that holds them ---------------
#
#     retries: int = setting(Count(0), default=0)
#
# The docstring of the dataclass says under `Args:` what each means, as that of a check does. The
# suite's key, the JSON Schema, the reference, the options of the command line and of pytest,
# the arguments of the marker and the keyword arguments of `tw.run` are derived from the field.

_METADATA = "trialwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting(Arg):
    """What a field says of itself.

    Args:
        option: The name of the option where it is not that of the key; empty for no option.
        in_pytest: Whether the pytest plugin knows it.
    """

    kind: Kind
    option: str = "*"
    in_pytest: bool = True


def setting(kind: Kind, *, default: Any = None, words: str | None = None, **more: Any) -> Any:
    """Return a field of a dataclass that declares a setting.

    Args:
        kind: The kind of value that it holds.
        default: What holds without it.
        words: The same as the reference says it, where the default does not.
        more: Other fields of `Setting`.
    """
    said = Setting(kind=kind, default=words, **more)
    return field(default=default, metadata={_METADATA: said})


def settings_of(owner: type) -> dict[str, Setting]:
    """Return the settings of a dataclass, by field."""
    return {one.name: one.metadata[_METADATA] for one in fields(owner) if _METADATA in one.metadata}


def describe_settings(owner: type) -> dict[str, str]:
    """Return what the docstrings of a dataclass and of its bases say of each setting."""
    return {
        name: said
        for base in reversed(owner.__mro__)
        for name, said in read_arguments(base).items()
    }


@cache
def setting_keys(owner: type) -> tuple[Key, ...]:
    """Return the settings of a dataclass as keys of a suite."""
    described, parameters = describe_settings(owner), inspect.signature(owner).parameters
    return tuple(
        _derive_key(parameters[name], Annotated[Any, said], described[name], "kept")
        for name, said in settings_of(owner).items()
    )


def show_default(value: object, kind: Kind) -> str:
    """Return a default as the reference shows it; None says that there is nothing to show."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enum):
        return str(value.value).lower()
    if not isinstance(value, str | int | float):
        return ""  # nothing, or an object that the declaration puts into words
    if isinstance(kind, scalars.Duration):
        return f"{value:g}s"
    if kind.spelled == "rate" and isinstance(value, float):
        return f"{value * 100:g}%"
    return f"{value:g}" if isinstance(value, float) else str(value)


def convert_python(kind: Kind, value: Any) -> Any:
    """Return what a text such as "90%" means; every other value is left for the model to check."""
    if not isinstance(value, str) or not isinstance(kind, Scalar):
        return value
    converted = kind.convert(value)
    return value if converted is None else converted


class Names(Either):
    """One name or several."""

    def __init__(self) -> None:
        listing = Listing(scalars.Text(), "a list of texts")
        super().__init__("a name or a list of names", scalar=scalars.Text(), listing=listing)

    def finish(self, value: Any, node: Any, label: str, reader: Any) -> tuple[str, ...]:  # noqa: ARG002
        """Return the names."""
        return self.join(value)

    @staticmethod
    def join(value: str | Sequence[str]) -> tuple[str, ...]:
        """Return one name or several, as several."""
        return (value,) if isinstance(value, str) else tuple(value)
