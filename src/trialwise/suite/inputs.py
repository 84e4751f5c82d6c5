"""Inputs: what the service is asked, written in place or named with the files that hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from trialwise.declarations.scalars import Data, Kind, Label, Text
from trialwise.declarations.signatures import Arg, Names, Positive, build_declared, declare_record
from trialwise.declarations.structures import Either, Fields, Listing
from trialwise.declarations.written import INVALID, Invalid, Node, Reader
from trialwise.model.claim import Input, SamplingRole
from trialwise.suite.input_files import Found, read_input_files
from trialwise.suite.reading_context import Context

_PATH = Text("a path", environment="read")
_FIELD = Text("the name of a field", environment="kept")
_CLUSTER = "family template batch region time_block group"
_TEMPLATE = Text("a field, or a text with fields such as `{question}`", environment="kept")
PATHS = Either("a path or a list of paths", scalar=_PATH, listing=Listing(_PATH, "a list of paths"))


class _Delimiter(Kind):
    """What stands between the fields of a row: a tab is one, too, though it is blank."""

    expected = spelled = "one character"
    form: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 1}

    def read(self, node: Node, label: str, reader: Reader) -> str | Invalid:
        """Read the character."""
        text = node.value
        # The reader of the library takes one character, and needs line ends and quotes itself.
        if not isinstance(text, str) or len(text) != 1 or text in '\r\n"':
            return self.refuse(node, label, reader)
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """Inputs from separate files.

    Args:
        jsonl: A file with one JSON value on each line.
        csv: A file of comma-separated values with names in the first line.
        files: A pattern for files, such as `prompts/*.txt`. Each file is one input.
        value: The field with the input, or a text that combines several fields.
        expected: The field with the expected reply.
        id: The field with the name of the input.
        stratum: The field with the stratum.
        repetitions: The field with the repetitions.
        weight: The field with the weight.
        cluster: The field with the cluster.
        metadata: The fields to keep and to show with each input.
        delimiter: The character between fields of a CSV file.
    """

    jsonl: Annotated[str | None, Arg(kind=_PATH)] = None
    csv: Annotated[str | None, Arg(kind=_PATH)] = None
    files: Annotated[str | list[str] | None, Arg(kind=PATHS)] = None
    value: Annotated[str | None, Arg(kind=_TEMPLATE, default="`value`")] = None
    expected: Annotated[str | None, Arg(kind=_FIELD, default="`expected`")] = None
    id: Annotated[str | None, Arg(kind=_FIELD, default="`id`")] = None
    stratum: Annotated[str | None, Arg(kind=_FIELD, default="`stratum`")] = None
    repetitions: Annotated[str | None, Arg(kind=_FIELD, default="`repetitions`")] = None
    weight: Annotated[str | None, Arg(kind=_FIELD, default="`weight`")] = None
    cluster: Annotated[str | None, Arg(kind=_FIELD, default="`cluster`")] = None
    metadata: Annotated[
        tuple[str, ...] | None, Arg(kind=Names(), default="`metadata`, where it is a mapping")
    ] = None
    delimiter: Annotated[str, Arg(kind=_Delimiter(), default="`,`")] = ","


class InputSection:
    """One thing to ask the service.

    Args:
        value: The value that the service gets: text or JSON.
        expected: The right reply. Only checks see it.
        id: The name of the input in records.
        stratum: The group that the input belongs to.
        repetitions: How many times as often as other inputs it is drawn.
        weight: The weight of the input in a weighted estimand.
        cluster: What it has in common with other inputs: a paraphrase family, a template, a batch,
            a region or a block of time. A claim about a population counts each cluster once.
        metadata: A mapping of what you want to know of it later. It is kept and shown, and neither
            the service nor a check sees it.
    """

    value: Any
    expected: Any = None
    id: Annotated[str | None, Arg(kind=Label(), default="its number")] = None
    stratum: Annotated[str | None, Arg(kind=Label())] = None
    repetitions: Positive = 1
    weight: float = 1.0
    cluster: Annotated[str | None, Arg(kind=Label(), elsewhere=_CLUSTER)] = None
    metadata: Annotated[Any, Arg(kind=Data(), elsewhere="meta tags attributes vars")] = None


INPUT = declare_record("input", InputSection)


class _Value(Kind):
    """An input written without anything beside it."""

    expected = "an input"
    spelled = "text or data"
    #: Anything but a mapping, which has keys of its own.
    form: Mapping[str, Any] = {"type": ["string", "number", "boolean", "array"]}

    def read(self, node: Node, label: str, reader: Reader) -> Fields:
        """Read the same as if it were written with its key."""
        fields = Fields(node)
        fields.put("value", node, node, Data().read(node, label, reader))
        return fields


class _FilePath(Kind):
    """A file of inputs, written without anything beside it; its ending says what it is."""

    expected = "a file that ends with .csv or .jsonl"
    spelled = "path"
    form: Mapping[str, Any] = {"type": "string", "pattern": r"\.(csv|jsonl)$"}

    def read(self, node: Node, label: str, reader: Reader) -> Fields | Invalid:
        """Read the same as if it were written with its key."""
        path = _PATH.read(node, label, reader) if isinstance(node.value, str) else INVALID
        kind = path.lower().rpartition(".")[2] if isinstance(path, str) else ""
        # By its ending alone: what is in a file is looked at when its inputs are read.
        if kind not in ("csv", "jsonl"):
            return reader.refuse(node, f"{label} must be a list of inputs, or {self.expected}")
        fields = Fields(node)
        fields.put(kind, node, node, path)
        return fields


SOURCE = declare_record("input-file", InputFile, one_of=(("jsonl", "csv", "files"),))
INPUT_LIST = Listing(
    Either("an input", scalar=_Value(), listing=_Value(), mapping=INPUT),
    "a list of at least one input",
)
INPUTS = Either(
    "a list of inputs, or a file of them", scalar=_FilePath(), listing=INPUT_LIST, mapping=SOURCE
)


class SamplingSection:
    """A named list of inputs with its version and origin.

    Args:
        inputs: The inputs.
        version: The version of the list.
        role: What the inputs represent.
        description: Where the inputs come from.
    """

    inputs: Annotated[Any, Arg(kind=INPUTS)]
    version: str | None = None
    role: SamplingRole = SamplingRole.UNSPECIFIED
    description: str | None = None


SAMPLING = declare_record("sampling", SamplingSection)


# --- How inputs are built from what was read ------------------------------------------------------


def build_inputs(
    given: list[Fields] | Fields | Invalid, context: Context
) -> tuple[Input, ...] | Invalid:
    """Build the inputs that a suite lists or names.

    Args:
        given: The items of a list, as `INPUTS` reads them, or where to find them.
        context: The suite being read.
    """
    if isinstance(given, Invalid):
        return given
    found = Found(context)
    before = len(context.problems)
    if isinstance(given, Fields):
        if not given.sound:
            return INVALID
        file: InputFile = build_declared(InputFile, SOURCE.keys, given, context)
        read_input_files(given, file, found, context)
    else:
        _in_place(given, found, context)
    # Items that are not sound were reported when they were read.
    # Without some of its inputs a sampling would be another one, with another fingerprint.
    sound = len(context.problems) == before and found.inputs
    return tuple(found.inputs) if sound else INVALID


def _in_place(items: list[Fields], found: Found, context: Context) -> None:
    for item in items:
        if item.sound:

            def refuse(argument: str, message: str, item: Fields = item) -> None:
                context.refuse(item.at(argument), message)

            found.add(dict(item.values), refuse, f"line {item.node.line + 1}")
