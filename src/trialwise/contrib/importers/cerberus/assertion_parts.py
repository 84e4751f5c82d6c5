"""The parts of an output that an assertion asks about, each with the checks that it becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from trialwise.contrib.importers.cerberus.assertion_patterns import WHITE_SPACE
from trialwise.contrib.importers.cerberus.assertion_syntax import UNDEFINED, Link, NotCarried

__all__ = [
    "ErrorText",
    "JsonPart",
    "Length",
    "Measure",
    "Part",
    "Question",
    "RawText",
    "Spec",
    "TypeName",
]

Spec: TypeAlias = dict[str, Any]
"""A check, as a suite writes it."""

NOT_JSON: Spec = {"not": {"parses": "json"}}
_EQUAL, _DIFFERENT = ("===", "=="), ("!==", "!=")
_ORDER = ("<", "<=", ">", ">=")
#: Comparisons of a length that only ask whether there is anything.
_IS_EMPTY = (("===", 0), ("==", 0), ("<", 1), ("<=", 0))
_IS_NOT_EMPTY = ((">", 0), (">=", 1), ("!==", 0), ("!=", 0))
#: JavaScript counts UTF-16 units.
_LENGTHS = (
    "lengths of texts count characters here and UTF-16 units in JavaScript, where an emoji is two"
)
_TYPES: dict[str, Spec] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": ["object", "array", "null"]},
    "undefined": {},
}
_THERE: Spec = {"not": {"type": "null"}}
_TRUTHY: Spec = {"not": {"enum": [None, False, 0, ""]}}
#: Words that CEL keeps for itself.
_CEL_WORDS = (
    *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import"),
    *("in", "let", "loop", "package", "namespace", "null", "return", "true", "var", "void"),
    "while",
)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Part:
    """A part of the output. What it does not override is not converted."""

    __slots__ = ()

    def ask(self, *, is_negated: bool) -> Spec | None:  # noqa: ARG002 - of the parts that can
        """Return the check for the part alone, or for `!part`; None where it is not converted."""
        return None

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002 - as above
        """Return the check for a comparison with a value; None where it is not converted."""
        return None


@dataclass(frozen=True, slots=True)
class Question(Part):
    """A question with the answer true or false."""

    holds: Spec
    fails: Spec | None
    """The check of the opposite, or None where it is not converted."""

    def ask(self, *, is_negated: bool) -> Spec | None:
        """Ask for the answer true, or for false."""
        return self.fails if is_negated else self.holds

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the answer with true or false."""
        if not isinstance(value, bool) or operator not in (*_EQUAL, *_DIFFERENT):
            return None
        return self.holds if value is (operator in _EQUAL) else self.fails


@dataclass(frozen=True, slots=True)
class Measure(Part):
    """A number that every reply has: `exitCode` or `durationMs`."""

    name: str

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the number; an exit code only for equality."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if self.name == "durationMs" and operator in _ORDER:
            return {"expression": f"latency_s * 1000.0 {operator} {float(value)!r}"}
        if self.name != "exitCode" or not isinstance(value, int) or operator in _ORDER:
            return None
        return {"exit_code": value} if operator in _EQUAL else {"not": {"exit_code": value}}


@dataclass(frozen=True, slots=True)
class RawText(Part):
    """The output as text, perhaps changed."""

    change: str = ""
    """Or `trim`, or `toLowerCase`."""

    def ask(self, *, is_negated: bool) -> Spec | None:
        """Ask whether there is any output."""
        if self.change:
            return None
        return {"equals": ""} if is_negated else {"not": {"equals": ""}}

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the text for equality."""
        if not isinstance(value, str) or operator in _ORDER:
            return None
        if self.change == "trim" and value == value.strip():
            space = f"[{WHITE_SPACE}]*"
            spec: Spec = {"matches": rf"\A{space}{re.escape(value)}{space}\Z"}
        elif self.change:
            return None
        else:
            spec = {"equals": value}
        return spec if operator in _EQUAL else {"not": spec}

    def search(self, method: str | int, text: Any) -> Question | None:
        """Whether the output includes, starts or ends with a text."""
        names = {"includes": "contains", "startsWith": "starts_with", "endsWith": "ends_with"}
        if not isinstance(text, str) or method not in names:
            return None
        if self.change == "toLowerCase" and method == "includes":
            if not text.isascii() or text != text.lower():
                return None
            found = {"matches": f"(?ai){re.escape(text)}"}
            return Question(found, {"not": found})
        if self.change:
            return None
        spec: Spec = {names[str(method)]: text}
        return Question(spec, {"not_contains": text} if method == "includes" else {"not": spec})


@dataclass(frozen=True, slots=True)
class ErrorText(Part):
    """What the command wrote to standard error."""

    def ask(self, *, is_negated: bool) -> Spec | None:
        """Ask whether there is any."""
        return {"expression": f'stderr {"==" if is_negated else "!="} ""'}

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the text for equality."""
        if not isinstance(value, str) or operator in _ORDER:
            return None
        sign = "==" if operator in _EQUAL else "!="
        return {"expression": f"stderr {sign} {_quote(value)}"}

    def search(self, method: str | int, text: Any) -> Question | None:
        """Whether it includes, starts or ends with a text."""
        names = {"includes": "contains", "startsWith": "startsWith", "endsWith": "endsWith"}
        if not isinstance(text, str) or method not in names:
            return None
        source = f"stderr.{names[str(method)]}({_quote(text)})"
        return Question({"expression": source}, {"expression": f"!{source}"})


def _quote(text: str) -> str:
    """A text as an expression writes it."""
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class JsonPart(Part):
    """A part of the output's JSON object."""

    steps: tuple[Link, ...]

    @property
    def json_path(self) -> str:
        """The path as JSONPath."""
        return "$" + "".join(_write_step(one.key) for one in self.steps)

    def require(self, schema: Spec) -> Spec:
        """Return the check that this is there and satisfies a schema."""
        if schema == {}:
            return {"json_path": self.json_path}
        return {"json_schema": self._nest(schema, len(self.steps))}

    def refuse(self, schema: Spec) -> Spec:
        """Return the check that this is missing or does not satisfy a schema.

        A missing member of what is there is undefined. A member of what is missing throws, and
        then the assertion does not hold.
        """
        unlike = {"not": self._nest(schema, len(self.steps))}
        optional = [one.is_optional for one in self.steps[1:]]
        if all(optional):
            return {"any_of": [NOT_JSON, {"json_schema": unlike}]}
        if any(optional):
            raise NotCarried("a chain with both `.` and `?.` is not carried over", self.steps[0].at)
        parent = self._nest(_THERE, len(self.steps) - 1)
        return {"json_schema": {"allOf": [parent, unlike]}}

    def ask(self, *, is_negated: bool) -> Spec | None:
        """Ask whether the part is there and neither null, false, 0 nor empty."""
        return self.refuse(_TRUTHY) if is_negated else self.require(_TRUTHY)

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:
        """Compare the part with a value; with null or undefined ask whether it is there."""
        if value is UNDEFINED or (value is None and operator in ("==", "!=")):
            schema = {} if operator in ("===", "!==") else _THERE
            asks: dict[str, Callable[[Spec], Spec]] = {"===": self.refuse, "==": self.refuse}
            asks |= {"!==": self.require, "!=": self.require}
            return asks[operator](schema) if operator in asks else None
        if operator in ("==", "!="):
            raise NotCarried("`==` converts types before it compares; write `===`", at)
        if isinstance(value, list | dict):
            return None
        if operator == "===":
            return {"json_path": {"path": self.json_path, "equals": value}}
        return self.refuse({"const": value}) if operator == "!==" else self._limit(operator, value)

    def search(self, method: str | int, value: Any) -> Question | None:
        """Whether a text or list includes something, or a text starts or ends with it."""
        quoted = re.escape(value) if isinstance(value, str) else ""
        patterns = {"startsWith": f"^{quoted}", "endsWith": rf"{quoted}\Z"}
        if isinstance(value, str) and method in patterns:
            return Question(
                self.require({"type": "string", "pattern": patterns[str(method)]}), None
            )
        if method != "includes" or isinstance(value, list | dict) or value is UNDEFINED:
            return None
        kinds: list[tuple[str, Spec]] = [("array", {"contains": {"const": value}})]
        if isinstance(value, str):
            kinds.append(("string", {"pattern": quoted}))
        return Question(
            self.require({"anyOf": [{"type": kind, **one} for kind, one in kinds]}),
            self.require({"anyOf": [{"type": kind, "not": one} for kind, one in kinds]}),
        )

    def _limit(self, operator: str, value: Any) -> Spec | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if operator in (">=", "<="):
            limit = "minimum" if operator == ">=" else "maximum"
            return {"json_path": {"path": self.json_path, limit: value}}
        names = [str(one.key) for one in self.steps]
        if all(_IDENTIFIER.fullmatch(name) and name not in _CEL_WORDS for name in names):
            part = ".".join(("value", *names))
            return {"expression": f"has({part}) && {part} {operator} {value}"}
        limit = "exclusiveMinimum" if operator == ">" else "exclusiveMaximum"
        return self.require({"type": "number", limit: value})

    def _nest(self, schema: Spec, length: int) -> Spec:
        for step in reversed(self.steps[:length]):
            if not isinstance(step.key, str):
                raise NotCarried("an element of a list is only compared with a value", step.at)
            schema = {"type": "object", "required": [step.key], "properties": {step.key: schema}}
        return schema


@dataclass(frozen=True, slots=True)
class TypeName(Part):
    """What `typeof` says of a part of the JSON object."""

    of: JsonPart

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the type."""
        if not isinstance(value, str) or value not in _TYPES or operator in _ORDER:
            return None
        is_there = (operator in _EQUAL) is (value != "undefined")
        return (self.of.require if is_there else self.of.refuse)(_TYPES[value])


@dataclass(frozen=True, slots=True)
class Length(Part):
    """The length of the output, or of a text or list in its JSON object."""

    of: RawText | JsonPart
    notes: set[str]
    """Where to say that lengths are counted in another way."""

    def compare(self, operator: str, value: Any, at: int) -> Spec | None:  # noqa: ARG002
        """Compare the length with a whole number."""
        if type(value) is not int or value < 0:
            return None
        asked = (operator, value)
        if isinstance(self.of, RawText) and self.of.change:
            something = {"matches": f"[^{WHITE_SPACE}]"} if self.of.change == "trim" else None
            if something is not None and asked in _IS_EMPTY:
                return {"not": something}
            return something if asked in _IS_NOT_EMPTY else None
        if asked not in (*_IS_EMPTY, *_IS_NOT_EMPTY):
            self.notes.add(_LENGTHS)
        if isinstance(self.of, RawText):
            sign = {"===": "==", "!==": "!="}.get(operator, operator)
            return {"expression": f"size(output) {sign} {value}"}
        return self._limit(self.of, operator, value)

    def _limit(self, of: JsonPart, operator: str, value: int) -> Spec | None:
        limits = {
            ">": {"min": value + 1},
            ">=": {"min": value},
            "<": {"max": value - 1},
            "<=": {"max": value},
            "===": {"min": value, "max": value},
        }.get(operator)
        if limits is None or limits.get("max", 0) < 0:
            return None
        kinds: list[Spec] = [{"type": "array"}, {"type": "string"}]
        for kind, noun in zip(kinds, ("Items", "Length"), strict=True):
            kind.update({f"{end}{noun}": size for end, size in limits.items()})
        return of.require({"anyOf": kinds})


def _write_step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _IDENTIFIER.fullmatch(key):
        return f".{key}"
    inside = json.dumps(key)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{inside}']"
