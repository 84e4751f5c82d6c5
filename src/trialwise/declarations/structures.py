"""Kinds made of other kinds: lists, mappings with known keys, and either of several shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

from trialwise.declarations.scalars import MISSING, Kind, Schema
from trialwise.declarations.written import INVALID, Invalid, Node, Reader, find_nearest
from trialwise.errors import TrialwiseError

_INCLUDE: Schema = {"$ref": "#/$defs/includes"}
_INCLUDES: Schema = {
    "description": "YAML files whose keys are taken in; those written here go before them.",
    "anyOf": [
        {"type": "string", "pattern": r"\S"},
        {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
    ],
}
_INCLUDE_ALONE: Schema = {
    "type": "object",
    "properties": {"include": _INCLUDE},
    "required": ["include"],
    "additionalProperties": False,
}
_MANY = 14
#: In a group of keys it stands for the keys that other distributions declare.
OTHERS = "*"


class Definitions(dict[str, Schema]):
    """The definitions of a JSON Schema being made.

    Args:
        installed: Whether to describe what other distributions declare, too.
    """

    def __init__(self, *, installed: bool = False) -> None:
        super().__init__()
        self.installed = installed


@dataclass(slots=True, eq=False)
class Fields:
    """What a mapping of the suite says: values by key, with the nodes they come from."""

    node: Any
    values: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    nodes: dict[str, Any] = field(default_factory=dict)
    """The nodes of every key that is given, sound or not."""
    sound: bool = True
    """Whether nothing in it was reported."""

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default where it is not given."""
        return self.values.get(name, default)

    def at(self, name: str) -> Any:
        """Return where a value stands; the whole mapping where it is not given."""
        return self.nodes.get(name, self.node)

    def given(self, *names: str) -> dict[str, Any]:
        """Return the values of some keys, of those that are given."""
        return {name: self.values[name] for name in names if name in self.values}

    def put(self, name: str, key: Any, node: Any, value: Any) -> None:
        """Add a key; an invalid value has a place only."""
        self.keys[name], self.nodes[name] = key, node
        if value is not INVALID:
            self.values[name] = value

    def take(self, other: Fields, names: Iterable[str]) -> None:
        """Take over some keys of another mapping, in place of its own."""
        for name in names:
            self.put(name, other.keys[name], other.nodes[name], other.get(name, INVALID))

    def copy(self, node: Any = None) -> Fields:
        """Return a copy that can be changed, which may stand at another place."""
        values, keys, nodes = dict(self.values), dict(self.keys), dict(self.nodes)
        return Fields(node or self.node, values, keys, nodes, self.sound)


@dataclass(slots=True, eq=False)
class Key:
    """A key of a record.

    Args:
        name: As it is written.
        kind: What it holds.
        said: What it means, as a sentence; what its kind says of itself without it.
        default: What holds without it, as the reference shows it.
        aliases: Other ways to write it.
        elsewhere: What other tools call it, in words: understood, and not accepted.
        field: What the constructor calls the argument.
        is_required: Whether the constructor has no default for it.
        is_positional: Whether the constructor takes it by its place.
        fallback: The constructor's own default.
        otherwise: What the constructor is given where the key is left out.
    """

    name: str
    kind: Kind
    said: str = ""
    _: KW_ONLY
    default: str = ""
    aliases: tuple[str, ...] = ()
    elsewhere: str = ""
    field: str = ""
    is_required: bool = False
    is_positional: bool = False
    fallback: Any = MISSING
    otherwise: Any = MISSING

    def __post_init__(self) -> None:
        self.field = self.field or self.name

    @property
    def doc(self) -> str:
        """What it means."""
        return self.said or self.kind.doc


class More(NamedTuple):
    """Keys that other distributions declare: found by name, and listed for a schema."""

    find: Callable[[str], Key | None]
    """Returns the key of a name, or None where nobody declares it."""
    names: Callable[[], Sequence[str]]
    """Lists the names that are declared."""

    def list_keys(self, defs: dict[str, Schema]) -> list[Key]:
        """Return the keys that a schema describes."""
        if not getattr(defs, "installed", False):
            return []
        found = [self.find(name) for name in self.names()]
        return [key for key in found if key is not None]


class Listing(Kind):
    """A list of one kind of item."""

    def __init__(
        self, item: Kind, expected: str, *, minimum: int = 1, maximum: int | None = None
    ) -> None:
        self.item = item
        self.expected = expected
        self._minimum = minimum
        self._maximum = maximum

    def read(self, node: Node, label: str, reader: Reader) -> list[Any] | Invalid:
        """Read the items that are sound."""
        if not node.is_list:
            hint = "each begins with `- `" if node.is_mapping else ""
            return self.refuse(node, label, reader, hint)
        read = [self._item(item, label, reader) for item in reader.items(node)]
        if not self._minimum <= len(read) <= (self._maximum or len(read)):
            return reader.refuse(node, f"{label} must be {self.expected}, it has {len(read)}")
        # The sound items are built all the same, so that what is wrong with them is said in the
        # same run.
        return [item for item in read if item is not INVALID]

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return an array."""
        item = self.item.schema(defs)
        # A record has a key of that name already.
        if not isinstance(self.item, Record):
            defs["includes"] = _INCLUDES
            defs["include"] = _INCLUDE_ALONE
            item = {"anyOf": [item, {"$ref": "#/$defs/include"}]}
        # An include may bring in further items, so that only emptiness is sure to be wrong.
        limits = {"minItems": self._minimum} if self._minimum == 1 else {}
        return {"type": "array", "items": item, **limits}

    def _item(self, node: Node, label: str, reader: Reader) -> Any:
        if node.value is None and not self.item.takes_null:
            message = f"an item of {label} is empty: it must be {self.item.expected}"
            return reader.refuse(node, message)
        return self.item.read(node, f"an item of {label}", reader)


class Either(Kind):
    """One of several kinds, told apart by shape: a scalar, a list or a mapping."""

    def __init__(
        self,
        expected: str,
        *,
        scalar: Kind | None = None,
        listing: Kind | None = None,
        mapping: Kind | None = None,
    ) -> None:
        self.expected = expected
        self._kinds = (scalar, listing, mapping)
        self.takes_null = scalar is not None and scalar.takes_null

    @property
    def kinds(self) -> list[Kind]:
        """The kinds there are."""
        return [kind for kind in self._kinds if kind is not None]

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:
        """Return what the kind of its shape makes of a value."""
        place = 2 if isinstance(value, Fields | dict) else 1 if isinstance(value, list) else 0
        kind = self._kinds[place]
        return value if kind is None else kind.finish(value, node, label, reader)

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the value by the kind of its shape."""
        kind = self._kinds[1 if node.is_list else 2 if node.is_mapping else 0]
        if kind is None:
            return self.refuse(node, label, reader)
        return kind.read(node, label, reader)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Any of them."""
        forms: list[Schema] = []
        for kind in self.kinds:
            if (form := kind.schema(defs)) not in forms:
                forms.append(form)
        return {"anyOf": forms}


class MapOf(Kind):
    """A mapping from names of the user's own to one kind of value."""

    def __init__(self, kind: Kind, expected: str) -> None:
        self.kind = kind
        self.expected = expected

    def read(self, node: Node, label: str, reader: Reader) -> Fields | Invalid:
        """Read the values by name."""
        if not node.is_mapping:
            return self.refuse(node, label, reader)
        # Counted, and not asked of the result: a record with one bad key still has its other
        # values.
        before = reader.problem_count
        fields = Fields(node)
        for name, (key, value) in reader.entries(node).items():
            if not name.strip():
                reader.refuse(key, f"a name in {label} is blank")
            fields.put(name, key, value, _value(self.kind, f"`{name}`", value, reader))
        # An empty mapping says nothing; the author probably forgot to indent what follows.
        if not fields.nodes:
            return reader.refuse(node, f"{label} must be {self.expected}, it is empty")
        fields.sound = reader.problem_count == before
        return fields

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """Return a plain mapping of the values."""
        if not isinstance(value, Fields):
            return value
        made = {
            name: self.kind.finish(one, value.at(name), f"`{name}`", reader)
            for name, one in value.values.items()
        }
        return INVALID if INVALID in made.values() else made

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return an object without fixed keys."""
        defs["includes"] = _INCLUDES
        return {
            "type": "object",
            "properties": {"include": _INCLUDE},
            "additionalProperties": self.kind.schema(defs),
            "minProperties": 1,
        }


@dataclass(eq=False, repr=False)
class Record(Kind):
    """A mapping with known keys.

    Args:
        name: What it is, such as "criterion".
        keys: The keys it may have.
        required: Those it must have, where the keys do not say so themselves.
        one_of: Of each of these, exactly one must be given.
        some_of: Of each of these, at least one must be given.
        unless: A key with which none of `one_of` need be given.
        doc: What the reference says of it.
        more: Keys of other distributions, which are looked for where no key has a name; `*` in a
            group stands for them.
        notes: What to say of keys that belong elsewhere, instead of guessing at one.
    """

    name: str
    keys: tuple[Key, ...]
    _: KW_ONLY
    required: tuple[str, ...] = ()
    one_of: tuple[tuple[str, ...], ...] = ()
    some_of: tuple[tuple[str, ...], ...] = ()
    unless: str = ""
    doc: str = ""
    more: More | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        asked = tuple(key.name for key in self.keys if key.is_required)
        self.required = self.required or asked
        self.expected = f"a mapping ({self.name})"
        self._by_name = {word: key for key in self.keys for word in (key.name, *key.aliases)}
        self._elsewhere = {word: key.name for key in self.keys for word in key.elsewhere.split()}

    def read(self, node: Node, label: str, reader: Reader) -> Fields | Invalid:
        """Read every key that is sound; what is not is reported."""
        if not node.is_mapping:
            names = tuple(key.name for key in self.keys)
            return self.refuse(node, label, reader, f"its keys are {_list_names(names)}")
        before = reader.problem_count
        fields = Fields(node)
        meant: set[str] = set()
        for name, (key_node, value) in reader.entries(node).items():
            try:
                key = self._by_name.get(name) or (self.more.find(name) if self.more else None)
            except TrialwiseError as error:  # another distribution declares it, and is broken
                reader.refuse(key_node, str(error))
                meant.add(OTHERS)
                continue
            if key is None:
                if note := self.notes.get(name.casefold().replace("-", "_")):
                    reader.refuse(key_node, f"unknown key `{name}`: {note}")
                    # What seems to be missing was written in another way, and that is said.
                    meant.add(OTHERS)
                    continue
                # What another tool calls it is sure; a similar spelling is a guess.
                close = self._elsewhere.get(name) or find_nearest(name, list(self._by_name))
                reader.refuse(key_node, self._refuse_name(name, close, reader))
                meant |= {self._by_name[close].name} if close else set()
            elif key.name in fields.keys:
                reader.refuse(key_node, f"`{name}` and `{key.name}` are the same: keep one")
            else:
                fields.put(key.name, key_node, value, _value(key.kind, f"`{name}`", value, reader))
        self._check_present(fields, meant, label, reader)
        fields.sound = reader.problem_count == before
        return fields

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return a reference to the definition of its name."""
        if self.name not in defs:
            defs[self.name] = {}  # it may refer to itself
            defs[self.name] = self.definition(defs)
        return {"$ref": f"#/$defs/{self.name}"}

    def definition(self, defs: dict[str, Schema]) -> Schema:
        """Return the object itself."""
        defs["includes"] = _INCLUDES
        properties: dict[str, Schema] = {}
        keys = (*self.keys, *(self.more.list_keys(defs) if self.more else ()))
        others = [key.name for key in keys[len(self.keys) :]]
        for key in keys:
            described = {"description": key.doc, **key.kind.schema(defs)}
            properties |= dict.fromkeys((key.name, *key.aliases), described)
        present: list[Schema] = [{"required": [name]} for name in self.required]
        present += [
            {"oneOf": [*self._list_alternatives(_expand(group, others))]} for group in self.one_of
        ]
        present += [
            {"anyOf": [{"required": [one]} for one in _expand(group, others)]}
            for group in self.some_of
        ]
        definition: Schema = {
            "type": "object",
            "properties": {**properties, "include": _INCLUDE},
            "additionalProperties": False,
        }
        if self.doc:
            definition = {"description": self.doc, **definition}
        if present:
            # What is included may hold what is not written here.
            definition["if"] = {"not": {"required": ["include"]}}
            definition["then"] = {"allOf": present}
        return definition

    def _list_alternatives(self, group: list[str]) -> Iterator[Schema]:
        """List the ways to give one key of a group, and the way to give none of them."""
        yield from map(_require_key, group)
        if self.unless:
            none = {"not": {"anyOf": [_require_key(one) for one in group]}}
            yield {"allOf": [_require_key(self.unless), none]}

    def _check_present(self, fields: Fields, meant: set[str], label: str, reader: Reader) -> None:
        """What must be given is; a key that was probably meant is not asked for a second time."""
        present = meant | {name for name in fields.nodes if _counts(fields, name)}
        for name in self.required:
            if name not in present and OTHERS not in meant:
                reader.refuse(fields.node, f"{label} lacks `{name}`")
        others = [name for name in fields.nodes if name not in self._by_name]
        for group in self.one_of:
            found = [one for one in _expand(group, others) if one in present]
            # A misspelled key was reported already, and may be the one that was meant instead.
            if len(found) > 1 and not meant:
                both = " and ".join(f"`{one}`" for one in found)
                reader.refuse(fields.keys[found[1]], f"{both} exclude one another: keep one")
            elif not found and OTHERS not in meant and self.unless not in present:
                reader.refuse(fields.node, f"{label} lacks one of {_list_names(group)}")
        for group in self.some_of:
            given = {*fields.nodes, *meant}
            if not given & {*_expand(group, others), OTHERS}:
                reader.refuse(fields.node, f"{label} lacks one of {_list_names(group)}")

    def _refuse_name(self, name: str, close: str | None, reader: Reader) -> str:
        if close is not None:
            return f"unknown key `{name}`; did you mean `{close}`?"
        homes = [home for home in reader.homes(name) if home != self.name]
        if homes:
            return f"unknown key `{name}` in {_a(self.name)}; it belongs in {_a(homes[0])}"
        known = _list_names(tuple(self._by_name))
        return f"unknown key `{name}` in {_a(self.name)}; known are {known}"


class Short(Kind):
    """A record that may also be written as its first key's value alone."""

    def __init__(self, record: Record, *, expected: str = "") -> None:
        self.record = record
        self.first = record.keys[0]
        self.expected = expected or f"{self.first.kind.expected}, or a mapping ({record.name})"

    def read(self, node: Node, label: str, reader: Reader) -> Fields | Invalid:
        """Read the record, however it is written."""
        if node.is_mapping:
            return self.record.read(node, label, reader)
        value = self.first.kind.read(node, label, reader)
        if isinstance(value, Invalid):
            return value
        fields = Fields(node)
        fields.put(self.first.name, node, node, value)
        return fields

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Either form."""
        return {"anyOf": [self.first.kind.schema(defs), self.record.schema(defs)]}


def _value(kind: Kind, label: str, node: Node, reader: Reader) -> Any:
    if node.value is None and not kind.takes_null:
        return reader.refuse(node, f"{label} has no value: it must be {kind.expected}")
    return kind.read(node, label, reader)


def _a(noun: str) -> str:
    if noun.endswith("s"):
        return f"`{noun}`"  # no singular: metrics, prices
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _counts(fields: Fields, name: str) -> bool:
    # `never_fails: false` asks nothing.
    return fields.nodes[name].value is not False


def _require_key(name: str) -> Schema:
    return {"required": [name], "properties": {name: {"not": {"const": False}}}}


def _expand(group: tuple[str, ...], others: Sequence[str]) -> list[str]:
    """Return a group with the names that `*` stands for."""
    return [name for one in group for name in (others if one == OTHERS else (one,))]


def _list_names(names: tuple[str, ...]) -> str:
    names = tuple(name for name in names if name != OTHERS)
    shown = [f"`{name}`" for name in names[:_MANY]]
    return ", ".join(shown) + (", …" if len(names) > _MANY else "")
