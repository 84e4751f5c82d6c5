"""The checks that a criterion may hold, as keys: read with their places, built for each contract.

What a check is called and which arguments it takes is declared where the check is. A check is
loaded when a suite names it, so that a suite pays for the checks it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias
from warnings import catch_warnings, simplefilter

from trialwise.checks import combine
from trialwise.checks.combine import CheckDeclaration, check_names, find_check
from trialwise.checks.predicates import predicate
from trialwise.declarations import written
from trialwise.declarations.scalars import Data, Kind, PythonPath, Schema, Text
from trialwise.declarations.signatures import (
    Arg,
    DeclaredKind,
    Share,
    declare_record,
    find_refused,
    summarise,
)
from trialwise.declarations.structures import Fields, Key, Listing, More, Record, Short
from trialwise.declarations.written import INVALID, Invalid, Node, Reader
from trialwise.errors import InvalidArgument, TrialwiseError
from trialwise.extensions import CHECKS, extension_names
from trialwise.suite.reading_context import Context
from trialwise.suite.suite_services import JUDGE_KEYS, JudgeSection, build_judge

_ALONE = "turned round or mixed it is not the one whose errors were measured; put it beside it"


Make: TypeAlias = Callable[[Any, Node, Context], Any]
"""Makes a check of what was read at a node, or reports there why not."""


class CheckSpec(NamedTuple):
    """A check as it is written, and how it is built.

    It is built once for each contract: what a judge spends belongs to one of them.
    """

    name: str
    node: Any
    build: Callable[[Context], Any]
    """Returns the check, or `INVALID` once its problem is reported."""
    parts: tuple[CheckSpec, ...] = ()
    """The checks that it is made of."""


class DeclaredCheck(DeclaredKind[CheckDeclaration]):
    """The arguments of a declared check: the first alone, or several by name."""

    def __init__(self, name: str) -> None:
        super().__init__(name, find_check)

    @property
    def spelled(self) -> str:  # type: ignore[override]
        """What the reference calls it."""
        first = self.declared.first
        return "mapping" if first is None else first.kind.spelled or first.kind.expected

    @property
    def takes_null(self) -> bool:  # type: ignore[override]
        """Whether nothing is a value."""
        first = self.declared.first
        return first is not None and first.kind.takes_null

    def read(self, node: Node, label: str, reader: Reader) -> CheckSpec | Invalid:
        """Read the spec, if its arguments are sound."""
        fields: Fields | Invalid
        first = self.declared.first
        if first is not None and node.is_mapping and self._is_value(node):
            fields = Fields(node)
            fields.put(first.name, node, node, Data().read(node, label, reader))
        else:
            fields = super().read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        sound: Fields = fields
        # Built later and for each contract: two contracts that share a judge must not share its
        # costs.
        return CheckSpec(self.name, node, lambda context: self._build(sound, context))

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Either form."""
        # Any JSON may stand here, so that a schema could only refuse what the loader takes.
        if self.declared.holds_mapping:
            return {}
        name = f"postcondition-{self.name}"
        if name not in defs:
            kind = self.kind
            if isinstance(kind, Record):
                defs[name] = kind.definition(defs)
            else:
                forms = [kind.first.kind.schema(defs), kind.record.definition(defs)]
                defs[name] = {"anyOf": forms}
        return {"$ref": f"#/$defs/{name}"}

    @property
    def kind(self) -> Record | Short:
        """How it is written."""
        record, first = Record(self.name, self.keys), self.declared.first
        record.expected = f"a mapping of {', '.join(f'`{key.name}`' for key in self.keys)}"
        if first is None:
            return record
        return Short(record, expected=f"{first.kind.expected}, or {record.expected}")

    def _is_value(self, node: Node) -> bool:
        """Return whether a mapping is the first argument itself, where that may be one."""
        names = {key.name for key in self.keys}
        holds = self.declared.holds_mapping
        return holds and not (self.keys[0].name in node.entries and set(node.entries) <= names)

    def _build(self, fields: Fields, context: Context) -> Any:
        given = {key.field: fields[key.name] for key in self.keys if key.name in fields}
        try:
            with catch_warnings():
                # Python warns of regular expressions that may mean something else one day.
                simplefilter("ignore", FutureWarning)
                return self.declared.build(given)
        except InvalidArgument as error:
            node, what = find_refused(error, self.keys, fields, self.name)
            shown = written.show_value(node)
            return context.refuse(node, f"`{what}` must {error.allowed}, got {shown}")


class _Built(Kind):
    """A check that is made of others, or of a function of the user's.

    Args:
        name: What a suite calls it.
        kind: What it holds.
        doc: What it means.
        make: Makes it of what was read, or reports at the node why not.
        mixes: Whether it changes what the checks within say.
    """

    def __init__(self, name: str, kind: Kind, doc: str, make: Make, *, mixes: bool = False) -> None:
        self.name, self.doc = name, doc
        self.expected, self.spelled = kind.expected, kind.spelled or kind.expected
        self._kind, self._make, self._mixes = kind, make, mixes

    def read(self, node: Node, label: str, reader: Reader) -> CheckSpec | Invalid:
        """Read the spec."""
        read = self._kind.read(node, label, reader)
        if isinstance(read, Invalid) or (isinstance(read, Fields) and not read.sound):
            return INVALID
        parts = _list_parts(read)
        for part in parts if self._mixes else ():
            # The errors of a judge were measured for its own answers; those of a mixture nobody
            # knows.
            if any(one.name == "judge" for one in (part, *part.parts)):
                return reader.refuse(part.node, f"a judge cannot stand in `{self.name}`: {_ALONE}")
        # An item that was refused is missing; without any, nothing is left to build.
        if self._mixes and not parts:
            return INVALID
        return CheckSpec(self.name, node, lambda context: self._make(read, node, context), parts)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return what it holds."""
        return self._kind.schema(defs)


def _list_parts(read: Any) -> tuple[CheckSpec, ...]:
    """List the checks that another one holds."""
    held = read["check"] if isinstance(read, Fields) else read
    several = held if isinstance(held, list) else [held]
    return tuple(one for one in several if isinstance(one, CheckSpec))


def _combine(
    name: str, kind: Kind, doc: str, function: Callable[..., Any], *, mixes: bool = True
) -> _Built:
    def make(read: Any, _node: Node, context: Context) -> Any:
        built = [part.build(context) for part in _list_parts(read)]
        names = [read["name"]] if isinstance(read, Fields) else []
        return INVALID if INVALID in built else function(*names, *built)

    return _Built(name, kind, doc, make, mixes=mixes)


def _import_check(text: str, node: Node, context: Context) -> Any:
    """Return a function of the user's as a check."""
    function = context.import_function(node, text)
    if isinstance(function, Invalid):
        return function
    try:
        return predicate(function)
    except InvalidArgument as error:
        shown = written.show_value(node)
        return context.refuse(node, f"`python` must {error.allowed}, got {shown}")


class _Judge(Record):
    """A rubric that is put to models."""

    spelled = "[judge](#judge)"

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the spec with its jurors."""
        fields = super().read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        return CheckSpec(self.name, node, partial(build_judge, fields))


class _Postcondition(Kind):
    """A mapping of exactly one check."""

    expected = "a postcondition such as `contains: text`"

    def read(self, node: Node, label: str, reader: Reader) -> CheckSpec | Invalid:
        """Read its spec."""
        if not node.is_mapping:
            return self.refuse(node, label, reader)
        entries = reader.entries(node)
        # Two checks under one item would be joined by "and" here and by "or" in `any_of`.
        if len(entries) != 1:
            message = f"{label} must be one postcondition, this holds {len(entries)}"
            return reader.refuse(node, message)
        ((name, (key, value)),) = entries.items()
        try:
            # Built-in names first: an installed package must not change what a suite means.
            found = None if name in CHECK_KINDS else _find_key(name)
        except TrialwiseError as error:
            return reader.refuse(key, str(error))
        if found is None and name not in CHECK_KINDS:
            known = (*CHECK_KINDS, *extension_names(CHECKS))
            hint = written.suggest_name(name, known, f"known are {', '.join(known)}")
            return reader.refuse(key, f"unknown postcondition `{name}`; {hint}")
        kind = CHECK_KINDS[name] if found is None else found.kind
        if value.value is None and not kind.takes_null:
            return reader.refuse(value, f"`{name}` has no value: it must be {kind.expected}")
        spec: CheckSpec | Invalid = kind.read(value, f"`{name}`", reader)
        return spec

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return an object of one key."""
        if "postcondition" not in defs:
            defs["postcondition"] = {}  # it refers to itself
            record = Record("postcondition", tuple(check_keys()), more=MORE_CHECKS)
            one = {"minProperties": 1, "maxProperties": 1}
            defs["postcondition"] = {**record.definition(defs), **one}
        return {"$ref": "#/$defs/postcondition"}


class GraderSpec(NamedTuple):
    """A check with its weight."""

    check: CheckSpec
    weight: float
    name: str | None
    fields: Fields

    def build(self, context: Context) -> Any:
        """Return the check under its name, or `INVALID` once its problem is reported."""
        built = self.check.build(context)
        return built if built is INVALID or self.name is None else combine.named(self.name, built)


class _Grader(Kind):
    """A mapping of one check, and how much it counts."""

    expected = "a check such as `contains: text`, with a `name` and a `weight`"

    def __init__(self, record: Record) -> None:
        self._record = record
        self.spelled = f"[{record.name}](#{record.name})"

    def read(self, node: Node, label: str, reader: Reader) -> GraderSpec | Invalid:
        """Read the check, its weight and its name."""
        if not node.is_mapping:
            return self.refuse(node, label, reader)
        fields = self._record.read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        weight = fields.get("weight", 1.0)
        # A weight of 0 would hide that the check is not part of the score.
        if weight <= 0:
            at = fields.at("weight")
            return reader.refuse(at, f"the weight must be above 0, got {written.show_value(at)}")
        spec = next(one for one in fields.values.values() if isinstance(one, CheckSpec))
        return GraderSpec(spec, float(weight), fields.get("name"), fields)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return the object."""
        return self._record.schema(defs)


POSTCONDITION = _Postcondition()
POSTCONDITIONS = Listing(POSTCONDITION, "a list of checks")

_NAMED = Record(
    "named",
    (
        Key("name", Text(), "The name in reports."),
        Key("check", POSTCONDITION, "The postcondition."),
    ),
    required=("name", "check"),
)
_NAMED.expected = _NAMED.spelled = "a mapping of `name` and `check`"
_JUDGE = _Judge("judge", JUDGE_KEYS, doc=summarise(JudgeSection))
#: Every check that a suite may name without another distribution, by name.
CHECK_KINDS: dict[str, Any] = {
    **{name: DeclaredCheck(name) for name in check_names()},
    "judge": _JUDGE,
    "all_of": _combine("all_of", POSTCONDITIONS, "All of the checks hold.", combine.all_of),
    "any_of": _combine(
        "any_of", POSTCONDITIONS, "At least one of the checks holds.", combine.any_of
    ),
    "not": _combine(
        "not", POSTCONDITION, "The check is evaluated and does not hold.", combine.not_
    ),
    # A name changes nothing that a check says, so that a judge may have one.
    "named": _combine(
        "named",
        _NAMED,
        "Another check under a different name in reports.",
        combine.named,
        mixes=False,
    ),
    "python": _Built(
        "python",
        PythonPath(),
        "A function of yours, imported from the suite's folder: returns a bool, or asserts. With "
        "`pass_at` or `mean_at_least` it may return a score from 0 to 1.",
        _import_check,
    ),
}


def check_keys() -> Iterator[Key]:
    """Yield the checks as keys, such as a criterion may hold directly."""
    for name, kind in CHECK_KINDS.items():
        yield Key(name, kind)


def _find_key(name: str) -> Key | None:
    return None if find_check(name) is None else Key(name, DeclaredCheck(name))


#: The checks of other distributions, which are looked for by name.
MORE_CHECKS = More(_find_key, lambda: extension_names(CHECKS))


class GraderSection:
    """A check that gives a reply a score from 0 to 1; a check that only passes or fails gives
    1 or 0.

    Args:
        weight: How much it counts in the score of a reply.
        name: The name in reports.
    """

    weight: float = 1.0
    name: Annotated[str | None, Arg(default="that of the check")] = None


class RunGraderSection:
    """A check that grades each run for the gates `metrics` and `reliability`. It is reported, and
    promises nothing.

    Args:
        name: The name in reports.
        weight: How much it counts in the score of a run.
        pass_at: The lowest score at which a reply passes, where it grades.
        sampling: The sampling whose runs it grades.
    """

    name: str
    weight: float = 1.0
    pass_at: Share | None = None
    sampling: Annotated[str | None, Arg(default="the only one")] = None


_ONE_CHECK: Any = {"one_of": ((*CHECK_KINDS, "*"),), "more": MORE_CHECKS}
GRADER = declare_record("grader", GraderSection, *check_keys(), **_ONE_CHECK)
#: Those of a contract grade its runs, and promise nothing.
RUN_GRADER = declare_record("run-grader", RunGraderSection, *check_keys(), **_ONE_CHECK)
GRADERS = Listing(_Grader(GRADER), "a list of graders")
RUN_GRADERS = Listing(_Grader(RUN_GRADER), "a list of graders")
