"""Kinds of single values: each reads what was written and describes itself as JSON Schema.

One description serves every reader, the schema that editors use and the reference, so that they
cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from trialwise.declarations import amounts
from trialwise.declarations.written import INVALID, Invalid, Node, Reader, show_value, suggest_name

Schema: TypeAlias = dict[str, Any]
Mode: TypeAlias = Literal["refused", "read", "template", "kept"]
"""What `${NAME}` means in a text: an error, since it is written into records; a value of the
environment; the same, resolved by the service at each call; or just these characters."""

#: No value at all, where None is one.
MISSING: Any = object()

_ENVIRONMENT: Schema = {
    "description": "A value of the environment: ${NAME}, or ${NAME:-default}.",
    "type": "string",
    "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}",
}
_NO = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


class Kind:
    """One kind of value."""

    expected = ""
    """What it is, as the rest of a sentence that starts with "must be"."""
    spelled = ""
    """What the reference calls it."""
    takes_null = False
    doc = ""
    """What it means where it stands for a key of its own."""
    holds_mapping = False
    """Whether a mapping may be the value itself."""
    form: Mapping[str, Any] = {}
    """How it is written, as JSON Schema, where that needs no definitions."""

    @property
    def plural(self) -> str:
        """What several of them are called."""
        return f"{self.spelled or self.expected}s"

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the value of a node, or `INVALID` once its problems are reported.

        Args:
            node: The value.
            label: How a message calls it, such as "`at_least`".
            reader: Takes problems, and knows the environment and the files.
        """
        raise NotImplementedError

    def schema(self, defs: dict[str, Schema]) -> Schema:  # noqa: ARG002
        """As JSON Schema; what it refers to is put into `defs`."""
        return dict(self.form)

    def finish(self, value: Any, node: Node, label: str, reader: Reader) -> Any:  # noqa: ARG002
        """Return what a constructor is given for a value that was read, when the whole is built."""
        return value

    def supply(self, reader: Reader) -> Any:  # noqa: ARG002
        """Return what a constructor is given where nothing was written."""
        return MISSING

    def label(self, written: str) -> str:
        """Return what something is called that is known by this value alone."""
        return written

    def refuse(self, node: Node, label: str, reader: Reader, hint: str = "") -> Invalid:
        """Report that a node is something else."""
        end = f"; {hint}" if hint else ""
        return reader.refuse(node, f"{label} must be {self.expected}, got {show_value(node)}{end}")


class Data(Kind):
    """Anything that JSON can hold."""

    expected = "data"
    spelled = plural = "data"
    takes_null = True
    holds_mapping = True

    def __init__(self, environment: Mode = "kept") -> None:
        self.environment = environment

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the plain value."""
        if node.is_mapping:
            read = {key: self.read(one, label, reader) for key, (_, one) in node.entries.items()}
            return INVALID if INVALID in read.values() else read
        if node.is_list:
            items = [self.read(item, label, reader) for item in node.items()]
            return INVALID if INVALID in items else items
        if self.environment == "read" and isinstance(node.value, str):
            return reader.fill(node, node.value)
        return node.value


class Object(Kind):
    """A mapping that JSON can hold, whatever its keys."""

    expected = "a mapping"
    spelled = "mapping"
    holds_mapping = True
    form: Mapping[str, Any] = {"type": "object"}

    def __init__(self, environment: Mode = "kept") -> None:
        self._data = Data(environment)

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the plain value."""
        if not node.is_mapping:
            return self.refuse(node, label, reader)
        return self._data.read(node, label, reader)


class Document(Kind):
    """A JSON document, or the path of the file that holds it.

    Args:
        expected: What the document is.
    """

    holds_mapping = True
    form: Mapping[str, Any] = {"type": ["object", "boolean", "string"]}

    def __init__(self, expected: str) -> None:
        self.expected = self.spelled = f"{expected}, or the path of a file that holds one"

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the document."""
        # A schema that is written in place may have any shape; what it must be, the check says.
        if not isinstance(node.value, str):
            return Data().read(node, label, reader)
        text = Text("a path", environment="read").read(node, label, reader)
        return text if isinstance(text, Invalid) else reader.read_json_file(node, reader.file(text))


class Text(Kind):
    """Text that is not blank."""

    form: Mapping[str, Any] = {"type": "string", "pattern": r"\S"}

    def __init__(self, expected: str = "text", *, environment: Mode = "refused") -> None:
        self.expected = expected
        self.spelled = expected.removeprefix("a ").removeprefix("the ")
        self._environment = environment

    def read(self, node: Node, label: str, reader: Reader) -> str | Invalid:
        """Read the text."""
        text = node.value
        if not isinstance(text, str) or not text.strip():
            return self.refuse(node, label, reader, _quotes(node))
        # Most texts have no reference, and need no copy that is marked as filled.
        if self._environment == "kept" or "${" not in text:
            return text
        if self._environment == "refused":
            reason = "takes nothing from the environment: it is written into records"
            return reader.refuse(node, f"{label} {reason}")
        fill = reader.fill_template if self._environment == "template" else reader.fill
        filled = fill(node, text)
        if not isinstance(filled, Invalid) and not filled.strip():
            return reader.refuse(node, f"{label} must be {self.expected}, {text} is empty")
        return filled


class PythonPath(Text):
    """A function of Python's, by module and name."""

    form: Mapping[str, Any] = {
        "type": "string",
        "pattern": r"^[^\s:]+:[^\s:]+$",
        "examples": ["my_agent:answer"],
    }

    def __init__(self) -> None:
        super().__init__("a function as module:function")
        self.spelled = "`module:function`"

    def read(self, node: Node, label: str, reader: Reader) -> str | Invalid:
        """Read the text; whether there is such a function is seen when it is imported."""
        text = super().read(node, label, reader)
        if isinstance(text, Invalid):
            return text
        module, colon, name = text.partition(":")
        parts = [*module.split("."), *name.split(".")]
        if not colon or not all(part.isidentifier() for part in parts):
            return self.refuse(node, label, reader)
        return text


class Label(Text):
    """Text, or a number or truth value that is taken as text."""

    form: Mapping[str, Any] = {"type": ["string", "number", "boolean"], "pattern": r"\S"}

    def __init__(self, expected: str = "text or a number") -> None:
        super().__init__(expected)

    def read(self, node: Node, label: str, reader: Reader) -> str | Invalid:
        """Read the value as text."""
        # Before numbers, since True is one in Python, and as YAML writes it.
        if isinstance(node.value, bool):
            return str(node.value).lower()
        if isinstance(node.value, int | float):
            return str(node.value)
        return super().read(node, label, reader)


class Scalar(Kind):
    """A value that is written as a scalar, or that the environment holds as one."""

    def read(self, node: Node, label: str, reader: Reader) -> Any:
        """Read the value."""
        value = node.value
        if isinstance(value, str) and "${" in value:
            try:
                value = reader.fill_scalar(node, value)
            except ValueError:
                return self.refuse(node, label, reader)
            if value is INVALID:
                return INVALID
        # A list or a mapping has no value of this kind, whatever a converter would make of it.
        read = self.convert(value) if node.is_scalar else None
        if read is None and reader.takes_python and node.is_scalar:
            read = self.convert_python(value)
        return self.refuse(node, label, reader, self.hint(node.value)) if read is None else read

    def convert(self, value: Any) -> Any:
        """Convert the value of a scalar, or None where it has none of this kind."""
        raise NotImplementedError

    def convert_python(self, value: Any) -> Any:  # noqa: ARG002
        """Convert a value that only Python code may write, such as seconds as a number."""
        return None

    def hint(self, value: Any) -> str:  # noqa: ARG002
        """Return what was probably meant."""
        return ""

    def spellings(self) -> list[Schema]:
        """Return the ways to write it, as JSON Schema."""
        return [dict(self.form)]

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Any of the ways to write it, or a reference to the environment."""
        defs["environment"] = _ENVIRONMENT
        name = self.spelled.replace(" ", "-")
        if name not in defs:
            defs[name] = {"anyOf": [*self.spellings(), {"$ref": "#/$defs/environment"}]}
        return {"$ref": f"#/$defs/{name}"}


class Flag(Scalar):
    """True or false."""

    expected = "true or false"
    spelled = "flag"
    form: Mapping[str, Any] = {"type": "boolean"}

    def convert(self, value: Any) -> bool | None:
        """Convert the truth value."""
        return value if isinstance(value, bool) else None

    def hint(self, value: Any) -> str:
        """In YAML 1.2 `no` is a text."""
        meant = _NO.get(str(value).lower())
        return f"write {meant}" if meant else ""


class Whole(Scalar):
    """A whole number."""

    expected = "a whole number"
    spelled = "integer"
    plural = "whole numbers"
    form: Mapping[str, Any] = {"type": "integer"}

    def convert(self, value: Any) -> int | None:
        """Convert the number."""
        # `type` and not `isinstance`: True is an int in Python, and is none in a suite.
        return value if type(value) is int else None

    def hint(self, value: Any) -> str:
        """Quotes make a text of it."""
        return "without quotes" if isinstance(value, str) and value.strip().isdigit() else ""


class Count(Whole):
    """A whole number from some minimum on."""

    #: Far beyond any run, and small enough for every later computation.
    _LARGEST = 10**9

    def __init__(self, minimum: int = 1) -> None:
        self._minimum = minimum
        self.expected = f"a whole number of at least {minimum}"
        self.spelled = "count" if minimum == 1 else f"count from {minimum}"
        self.form = {"type": "integer", "minimum": minimum, "maximum": self._LARGEST}

    def convert(self, value: Any) -> int | None:
        """Convert the number."""
        return value if type(value) is int and self._minimum <= value <= self._LARGEST else None

    def hint(self, value: Any) -> str:
        """Either limit may be the reason."""
        too_large = type(value) is int and value > self._LARGEST
        return f"at most {self._LARGEST:,}" if too_large else super().hint(value)


class Number(Scalar):
    """A finite number."""

    expected = "a number"
    spelled = "number"
    form: Mapping[str, Any] = {"type": "number"}

    def convert(self, value: Any) -> float | None:
        """Convert the number."""
        return value if is_number(value) else None


class Choice(Scalar):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.expected = self.spelled = _alternatives(words)

    def convert(self, value: Any) -> str | None:
        """Convert the word."""
        # In the words of the suite only: "Exact" for "exact" would be two spellings of one record.
        return value if isinstance(value, str) and value in self.words else None

    def hint(self, value: Any) -> str:
        """Return the nearest word."""
        return suggest_name(value, self.words) if isinstance(value, str) else ""

    def schema(self, defs: dict[str, Schema]) -> Schema:
        """Return an enumeration, or a reference to the environment."""
        defs["environment"] = _ENVIRONMENT
        return {"anyOf": [{"enum": list(self.words)}, {"$ref": "#/$defs/environment"}]}


def _quotes(node: Node) -> str:
    """Advise to quote what YAML takes for something else: a number, or `{input}`."""
    if is_number(node.value):
        return f'put quotes around it, "{node.value}"'
    if node.is_mapping and len(node.entries) == 1:
        ((name, (_, value)),) = node.entries.items()
        if value.value is None:
            return f'put quotes around it, "{{{name}}}"'
    return ""


def _alternatives(words: tuple[str, ...]) -> str:
    *most, last = (f"`{word}`" for word in words)
    return f"{', '.join(most)} or {last}" if most else last


def is_number(value: object) -> bool:
    """A truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- Amounts in the ways people write them, as kinds of value: rates, times, paces, money ---------


class _Written(Scalar):
    """An amount in the ways people write it."""

    pattern = ""
    example: Any = ""
    unit = ""
    """What a number alone probably lacks."""
    largest: int | None = None
    """The largest number that may be written alone; None where a number needs its unit."""

    def parse(self, text: str) -> float | None:
        """Parse what a text says."""
        raise NotImplementedError

    def convert(self, value: Any) -> float | None:
        """Convert the amount of a text, or of a number where that needs no unit."""
        if is_number(value) and self.largest is not None:
            return float(value) if 0 <= value <= self.largest else None
        return self.parse(value.strip()) if isinstance(value, str) else None

    def convert_python(self, value: Any) -> float | None:
        """Convert a number of seconds, or for each second, as Python's own functions take it."""
        # A suite without a unit would be a guess; a signature in Python says seconds.
        alone = is_number(value) and self.largest is None and 0 < value < float("inf")
        return float(value) if alone else None

    def hint(self, value: Any) -> str:
        """A number alone could be anything."""
        meant = self.unit and is_number(value) and value > 0
        return f"did you mean {value}{self.unit}?" if meant else ""

    def spellings(self) -> list[Schema]:
        """Return a text, or a number where that needs no unit."""
        pattern = rf"^\s*(?:{self.pattern})\s*$"
        text: Schema = {"type": "string", "pattern": pattern, "examples": [self.example]}
        if self.largest is None:
            return [text]
        return [{"type": "number", "minimum": 0, "maximum": self.largest}, text]


class Rate(_Written):
    """A share of one."""

    expected = "a rate such as 0.9 or 90%"
    spelled = "rate"
    pattern = amounts.RATE_PATTERN
    example = "90%"
    unit = "%"
    largest = 1
    parse = staticmethod(amounts.rate)

    def hint(self, value: Any) -> str:
        """A number above one is a percentage without its sign."""
        return super().hint(value) if is_number(value) and 1 < value <= 100 else ""


class Duration(_Written):
    """A time with its unit."""

    expected = "a time with its unit, such as 30s, 500ms, 2m or 1h"
    spelled = "time"
    pattern = amounts.DURATION_PATTERN
    example = "30s"
    unit = "s"
    parse = staticmethod(amounts.duration)


class Pace(_Written):
    """How often in a unit of time."""

    expected = "a pace such as 5/s or 300/min"
    spelled = "pace"
    pattern = amounts.PACE_PATTERN
    example = "5/s"
    unit = "/s"
    parse = staticmethod(amounts.pace)


class Money(_Written):
    """An amount of US dollars."""

    expected = "an amount in US dollars such as $2 or 0.05"
    spelled = "money"
    pattern = amounts.MONEY_PATTERN
    example = "$2"
    #: A double holds cents up to here, and nobody spends it.
    largest = 10**12
    parse = staticmethod(amounts.money)
