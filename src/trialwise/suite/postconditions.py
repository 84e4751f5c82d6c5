"""How a suite spells postconditions: every argument with its kind, so that a mistake has a place.

The names and arguments are those of `trialwise.checks`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trialwise.declarations.quantities import Duration, Money
from trialwise.declarations.scalars import (
    Choice,
    Count,
    Data,
    Flag,
    Kind,
    Number,
    PythonPath,
    Schema,
    Text,
    Whole,
)
from trialwise.declarations.structures import Either, Fields, Key, Listing, Record, Short
from trialwise.declarations.written import INVALID, Invalid, Reader, Written, find_nearest
from trialwise.suite.judge_keys import JUDGE_KEYS
from trialwise.suite.nodes import plain

__all__ = ["CALLS", "POSTCONDITION", "POSTCONDITIONS", "Spec", "postcondition_keys"]

_TEXT = Text(environment="kept")
_TEXTS = Either("text or a list of texts", scalar=_TEXT, listing=Listing(_TEXT, "a list of texts"))
_WHOLES = Either(
    "a whole number or a list of them",
    scalar=Whole(),
    listing=Listing(Whole(), "a list of whole numbers"),
)
_IGNORE_CASE = Key("ignore_case", Flag(), "Compare case-folded text.", default="false")
_SERVER = Key("server", _TEXT, "The MCP server that offers the tool.")
_NUMBERS = (
    Key("minimum", Number(), "The least number allowed.", aliases=("min",)),
    Key("maximum", Number(), "The greatest number allowed.", aliases=("max",)),
)


def _counts(what: str) -> tuple[Key, Key]:
    return (
        Key("minimum", Count(0), f"The fewest {what}.", aliases=("min",)),
        Key("maximum", Count(0), f"The most {what}.", aliases=("max",)),
    )


class Spec:
    """A postcondition as it is written: its name, its arguments and where they stand."""

    __slots__ = ("arguments", "fields", "name", "node", "parts")

    def __init__(
        self,
        name: str,
        node: Any,
        arguments: dict[str, Any],
        *,
        fields: Fields | None = None,
        parts: tuple[Spec, ...] = (),
    ) -> None:
        self.name = name
        self.node = node
        self.arguments = arguments
        self.fields = fields
        self.parts = parts
        """The postconditions that it is made of."""


class Call(Kind):
    """The arguments of one built-in postcondition: the first alone, or several by name.

    Args:
        name: The postcondition's name.
        doc: What it asks.
        keys: Its arguments.
        short: Whether the first may stand alone; it is required then.
        holds: Whether the first may be a mapping itself.
    """

    def __init__(self, name: str, doc: str, *keys: Key, short: bool = True, holds: bool = False):
        self.name = name
        self.doc = doc
        self.keys = keys
        self._holds = holds
        record = Record(name, keys, required=(keys[0].name,) if short else ())
        self._kind: Record | Short = Short(record) if short else record
        known = ", ".join(f"`{key.name}`" for key in keys)
        first = f"{keys[0].kind.expected}, or " if short else ""
        self.expected = f"{first}a mapping of {known}"
        record.expected = f"a mapping of {known}"
        self.spelled = keys[0].kind.spelled or keys[0].kind.expected if short else "mapping"
        self.takes_null = short and keys[0].kind.takes_null

    def read(self, node: Written, label: str, reader: Reader) -> Spec | Invalid:
        """The spec, if its arguments are sound."""
        fields: Fields | Invalid
        if node.is_mapping and self._is_value(node):
            fields = Fields(node)
            fields.put(self.keys[0].name, node, node, plain(node))  # type: ignore[arg-type]
        else:
            fields = self._kind.read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        return Spec(self.name, node, fields.values, fields=fields)

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Either form."""
        if self._holds:
            return {}
        name = f"postcondition-{self.name}"
        if name not in defs:
            kind = self._kind
            if isinstance(kind, Record):
                defs[name] = kind.definition(defs)
            else:
                forms = [kind.first.kind.schema(defs), kind.record.definition(defs)]
                defs[name] = {"anyOf": forms}
        return {"$ref": f"#/$defs/{name}"}

    def _is_value(self, node: Written) -> bool:
        """Whether a mapping is the argument itself, where that may be one."""
        names = {key.name for key in self.keys}
        return self._holds and not (
            self.keys[0].name in node.entries and set(node.entries) <= names
        )


class _Schema(Kind):
    """A JSON Schema, or the file that holds one."""

    expected = spelled = "a JSON Schema, or the path of a file that holds one"

    def read(self, node: Written, label: str, reader: Reader) -> Any:
        """The schema."""
        if not isinstance(node.value, str):
            return Data().read(node, label, reader)
        text = Text("a path", environment="read").read(node, label, reader)
        return text if isinstance(text, Invalid) else reader.read_json_file(node, reader.file(text))

    def schema(self, defs: dict[str, Schema]) -> Schema:  # noqa: ARG002
        """Anything that may be one."""
        return {"type": ["object", "boolean", "string"]}


class _Combined(Kind):
    """A postcondition made of others."""

    def __init__(self, name: str, doc: str, *, several: bool) -> None:
        self.name = name
        self.doc = doc
        self._several = several
        self.expected = "a list of postconditions" if several else "a postcondition"
        self.spelled = self.expected

    def read(self, node: Written, label: str, reader: Reader) -> Spec | Invalid:
        """The spec of all of them."""
        kind = POSTCONDITIONS if self._several else POSTCONDITION
        read = kind.read(node, label, reader)
        if isinstance(read, Invalid):
            return INVALID
        parts = tuple(read) if isinstance(read, list) else (read,)
        for part in parts:
            if any(one.name == "judge" for one in (part, *part.parts)):
                return reader.refuse(part.node, f"a judge cannot stand in `{self.name}`: {_ALONE}")
        # An item that was refused is missing; without any, nothing is left to build.
        return Spec(self.name, node, {}, parts=parts) if parts else INVALID

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """The same."""
        return (POSTCONDITIONS if self._several else POSTCONDITION).schema(defs)


class _Named(Kind):
    """A postcondition under a name of the user's."""

    name = "named"
    doc = "Another postcondition, called by another name in reports."
    expected = spelled = "a mapping of `name` and `check`"

    def read(self, node: Written, label: str, reader: Reader) -> Spec | Invalid:
        """The spec with its name."""
        fields = self._record().read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        return Spec(
            self.name, node, {"name": fields["name"]}, fields=fields, parts=(fields["check"],)
        )

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """The object."""
        return self._record().definition(defs)

    def _record(self) -> Record:
        return Record(
            self.name,
            (
                Key("name", Text(), "How reports call it."),
                Key("check", POSTCONDITION, "The postcondition."),
            ),
            required=("name", "check"),
        )


class _Judge(Record):
    """A rubric that is put to models."""

    def read(self, node: Written, label: str, reader: Reader) -> Any:
        """The spec with its jurors."""
        fields = super().read(node, label, reader)
        if isinstance(fields, Invalid) or not fields.sound:
            return INVALID
        return Spec(self.name, node, fields.values, fields=fields)


_JUDGE = _Judge(
    "judge",
    JUDGE_KEYS,
    required=("rubric", "jurors"),
    doc="Whether models say that the reply meets a rubric. It stands by itself in a criterion.",
)
_JUDGE.spelled = "[judge](#judge)"
_ALONE = "turned round or mixed it is not the one whose errors were measured; put it beside it"


class _Python(PythonPath):
    """A function of the user's as a postcondition."""

    name = "python"
    doc = "A function of yours, imported from the suite's folder: returns a bool, or asserts."

    def read(self, node: Written, label: str, reader: Reader) -> Any:
        """The spec of the function."""
        text = super().read(node, label, reader)
        return text if isinstance(text, Invalid) else Spec(self.name, node, {"function": text})


class _Postcondition(Kind):
    """A mapping of exactly one postcondition."""

    expected = "a postcondition such as `contains: text`"

    def read(self, node: Written, label: str, reader: Reader) -> Spec | Invalid:
        """Its spec."""
        if not node.is_mapping:
            return self.refuse(node, label, reader)
        entries = reader.entries(node)
        if len(entries) != 1:
            message = f"{label} must be one postcondition, this holds {len(entries)}"
            return reader.refuse(node, message)
        ((name, (key, value)),) = entries.items()
        if name not in CALLS:
            return reader.refuse(key, _unknown(name))
        call = CALLS[name]
        if value.value is None and not call.takes_null:
            return reader.refuse(value, f"`{name}` has no value: it must be {call.expected}")
        spec: Spec | Invalid = call.read(value, f"`{name}`", reader)
        return spec

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """An object of one key."""
        if "postcondition" not in defs:
            defs["postcondition"] = {}  # it refers to itself
            properties = {key.name: _described(key, defs) for key in postcondition_keys()}
            defs["postcondition"] = {
                "type": "object",
                "properties": {**properties, "include": {"$ref": "#/$defs/includes"}},
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            }
        return {"$ref": "#/$defs/postcondition"}


POSTCONDITION = _Postcondition()
POSTCONDITIONS = Listing(POSTCONDITION, "a list of postconditions")

_CALLS: tuple[Any, ...] = (
    Call(
        "equals",
        "The whole reply is this value: text, or JSON.",
        Key("expected", Data(), "The value."),
        _IGNORE_CASE,
        Key("trim", Flag(), "Leave out white space around the reply.", default="false"),
        holds=True,
    ),
    Call(
        "contains",
        "Every one of these texts occurs in the reply.",
        Key("text", _TEXTS, "One text or several."),
        _IGNORE_CASE,
        *_counts("times each occurs"),
    ),
    Call(
        "not_contains",
        "None of these texts occurs in the reply.",
        Key("text", _TEXTS, "One text or several."),
        _IGNORE_CASE,
    ),
    Call(
        "starts_with",
        "The reply begins with this text.",
        Key("text", _TEXT, "The text."),
        _IGNORE_CASE,
    ),
    Call(
        "ends_with",
        "The reply ends with this text.",
        Key("text", _TEXT, "The text."),
        _IGNORE_CASE,
    ),
    Call(
        "as_expected",
        "The reply is what its input says under `expected`, or contains it.",
        Key("how", Choice("equals", "contains"), "As which postcondition it compares."),
        _IGNORE_CASE,
        Key("trim", Flag(), "Leave out white space around the reply.", default="false"),
    ),
    Call("length", "How long the reply is.", *_counts("characters"), short=False),
    Call(
        "matches",
        "A regular expression is found in the reply.",
        Key("pattern", _TEXT, "In Python's syntax."),
        _IGNORE_CASE,
        Key("whole", Flag(), "The whole reply has to match.", default="false"),
        Key("max_length", Count(), "A longer reply fails unread.", default="100000"),
    ),
    Call(
        "parses",
        "The reply is one document of a format.",
        Key("format", Choice("json", "yaml", "xml", "number"), "Which format."),
    ),
    Call(
        "numeric_range",
        "The reply is a number within limits.",
        *_NUMBERS,
        Key("path", _TEXT, "A JSONPath to the numbers instead."),
        short=False,
    ),
    Call(
        "json_schema",
        "The reply is JSON that is valid under a schema of draft 2020-12.",
        Key("schema", _Schema(), "The schema, or the path of its file."),
        holds=True,
    ),
    Call(
        "json_path",
        "What a JSONPath (RFC 9535) selects from the reply is as it should be.",
        Key("path", _TEXT, "The path."),
        Key("equals", Data(), "What each selected value is."),
        Key("contains", Data(), "What each selected value holds."),
        Key("matches", _TEXT, "A regular expression found in each."),
        *_NUMBERS,
        Key("between", Listing(Number(), "two numbers", minimum=2, maximum=2), "Both limits."),
        Key("exists", Flag(), "Whether anything is selected."),
        Key("count", Count(0), "How many values are selected."),
        Key("require", Choice("all", "any"), "Of how many it must hold.", default="all"),
    ),
    Call(
        "expression",
        "A CEL expression is true of the reply.",
        Key("source", _TEXT, "It knows `output`, `value`, `input`, `expected`, `tokens` …"),
    ),
    Call(
        "tool_called",
        "The agent called a tool.",
        Key("tool", _TEXT, "Which.", aliases=("name",)),
        *_counts("calls"),
        _SERVER,
    ),
    Call(
        "tool_not_called",
        "The agent called none of these tools.",
        Key("tool", _TEXTS, "One tool or several.", aliases=("name",)),
        _SERVER,
    ),
    Call(
        "tool_called_with",
        "The agent called a tool with such arguments.",
        Key("tool", _TEXT, "Which.", aliases=("name",)),
        Key("args", Data(), "Arguments that were among those given."),
        Key("schema", _Schema(), "A JSON Schema for the arguments."),
        Key("expression", _TEXT, "A CEL expression: `value` are the arguments."),
        Key("require", Choice("all", "any"), "Of how many calls it must hold.", default="any"),
        _SERVER,
    ),
    Call(
        "tools_in_order",
        "The agent called these tools in this order.",
        Key("tools", _TEXTS, "The tools.", aliases=("names",)),
        Key("exact", Flag(), "No other call stands between.", default="false"),
    ),
    Call("tool_call_count", "How many calls the agent made.", *_counts("calls"), short=False),
    Call(
        "final_answer",
        "The agent came to an answer, and was not stopped by a limit.",
        Key("equals", _TEXT, "The whole answer."),
        Key("contains", _TEXTS, "One text or several that occur in it."),
        Key("matches", _TEXT, "A regular expression found in it."),
        _IGNORE_CASE,
        short=False,
    ),
    Call(
        "max_turns",
        "The agent's model spoke at most so often.",
        Key("turns", Count(0), "Its turns."),
    ),
    Call(
        "max_repeated_failures",
        "A failing call was repeated, and failed again, at most so often.",
        Key("repeats", Count(0), "Repetitions of the same call; 0 for none."),
    ),
    Call(
        "exit_code",
        "The command ended with this exit code, or with one of several.",
        Key("code", _WHOLES, "The codes."),
    ),
    Call(
        "max_tokens",
        "The reply took at most so many tokens.",
        Key("tokens", Count(0), "In both directions together."),
    ),
    Call("max_cost", "The reply cost at most so much.", Key("usd", Money(), "US dollars.")),
    Call(
        "max_latency", "The reply took at most so long.", Key("seconds", Duration(), "With unit.")
    ),
    Call(
        "similar",
        "The reply is about the same as one of these texts (extra `similarity`).",
        Key("text", _TEXTS, "One text or several."),
        Key("minimum", Number(), "The least cosine, between 0 and 1.", default="0.8"),
    ),
    _JUDGE,
    _Combined("all_of", "Every one of some postconditions holds.", several=True),
    _Combined("any_of", "At least one of some postconditions holds.", several=True),
    _Combined("not", "A postcondition is evaluated and does not hold.", several=False),
    _Named(),
    _Python(),
)
CALLS: dict[str, Any] = {call.name: call for call in _CALLS}


def postcondition_keys() -> Iterator[Key]:
    """The postconditions as keys, such as a criterion may hold directly."""
    for call in _CALLS:
        yield Key(call.name, call, call.doc)


def _described(key: Key, defs: dict[str, Schema]) -> Schema:
    return {"description": key.doc, **key.kind.schema(defs)}


def _unknown(name: str) -> str:
    close = find_nearest(name, list(CALLS))
    hint = f"did you mean `{close}`?" if close else f"known are {', '.join(CALLS)}"
    return f"unknown postcondition `{name}`; {hint}"
