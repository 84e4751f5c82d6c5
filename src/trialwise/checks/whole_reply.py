"""Checks on the whole reply: one given text or JSON value, what the input expects, or a schema.

`as_expected` has no value of its own: what it compares with belongs to the trial's input, which
the service was sent without it.

JSON Schemas are of draft 2020-12 and are read offline: a reference to another document, other than
the drafts themselves, is refused when the check is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from trialwise.checks.check_base import Check, Unreadable, around, failed, label, printable, shown
from trialwise.checks.reply_reading import check_json, expected_of, json_of, same, text_of
from trialwise.checks.texts import contains
from trialwise.checks.time_limits import call_limited
from trialwise.declarations.scalars import Document, is_number
from trialwise.declarations.signatures import Arg
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, Reply

__all__ = ["AsExpected", "Comparison", "Equals", "JsonSchema"]
__all__ += ["as_expected", "equals", "json_schema"]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LONG_MESSAGE = 150

SchemaArgument = Annotated[Mapping[str, Any] | bool, Arg(kind=Document("a JSON Schema"))]
"""A JSON Schema, which a suite may keep in a file of its own."""


@dataclass(frozen=True, slots=True)
class Equals(Check, spelling="equals"):
    """The whole reply is `expected`.

    Text is compared with the reply's text; any other JSON value with the reply read as JSON, where
    1 equals 1.0 and no number equals true.

    Args:
        expected: Text, or a JSON value.
        ignore_case: Compare case-folded text.
        trim: Leave out white space at both ends.

    >>> equals(555).check(Reply(value="555.0")).passed
    True
    """

    # Lists and objects have no hash; equal checks still hash alike without it.
    expected: Any = field(hash=False)
    _: KW_ONLY
    ignore_case: bool = False
    trim: bool = False

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        if not isinstance(self.expected, str):
            # They would do nothing to a number, and somebody relies on them.
            if self.ignore_case or self.trim:
                raise InvalidArgument("expected", self.expected, "be text for ignore_case or trim")
            self._keep(expected=check_json("expected", self.expected))

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"equals {label(self.expected)}"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        if isinstance(self.expected, str):
            return Check.to_dict(self)
        # An object of the user's could look like the arguments, so it is always named.
        nested = isinstance(self.expected, dict)
        return {self.spelling: {"expected": self.expected} if nested else self.expected}

    def _examine(self, reply: Reply) -> CheckResult:
        if not isinstance(self.expected, str):
            found = json_of(reply)
            if same(found, self.expected):
                return CheckResult.ok()
            return failed(f"expected {shown(self.expected)}", shown(found))
        text = text_of(reply)
        actual, expected = text, self.expected
        if self.trim:
            actual, expected = actual.strip(), expected.strip()
        if self.ignore_case:
            actual, expected = actual.casefold(), expected.casefold()
        if actual == expected:
            return CheckResult.ok()
        return _difference(actual, expected)


equals = Equals


def _difference(actual: str, expected: str) -> CheckResult:
    """Return where two unequal texts part."""
    pairs = enumerate(zip(actual, expected, strict=False))
    ended = min(len(actual), len(expected))
    position = next((index for index, (one, other) in pairs if one != other), ended)
    explanation = f"expected {label(expected)}, it differs at position {position}"
    return failed(explanation, around(actual, position, 1))


Comparison = Literal["equals", "contains"]


@dataclass(frozen=True, slots=True)
class AsExpected(Check, spelling="as_expected"):
    """The reply is what its input expects (`Input.expected`), or contains it.

    It compares as `equals` or `contains` do. With `contains`, a number is looked for as it is
    written, and of several texts each must occur.

    Args:
        how: Whether the whole reply is the expected answer, or contains it.
        ignore_case: Compare case-folded text.
        trim: Leave out white space at both ends, for `equals`.

    >>> reply = Reply(value="It is 555.").with_input("What is 15 * 37?", "555")
    >>> as_expected("contains").check(reply).passed, as_expected().check(reply).passed
    (True, False)
    """

    how: Comparison = "equals"
    _: KW_ONLY
    ignore_case: bool = False
    trim: bool = False

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        if self.trim and self.how != "equals":
            raise InvalidArgument("trim", self.trim, "be left out for contains")

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.how} what is expected"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        flags = {name: True for name in ("ignore_case", "trim") if getattr(self, name)}
        return {self.spelling: {"how": self.how, **flags} if flags else self.how}

    def _examine(self, reply: Reply) -> CheckResult:
        expected = expected_of(reply)
        if self.how == "contains":
            return contains(_texts(expected), ignore_case=self.ignore_case).check(reply)
        if isinstance(expected, str):
            return equals(expected, ignore_case=self.ignore_case, trim=self.trim).check(reply)
        return equals(expected).check(reply)


as_expected = AsExpected


def _texts(expected: Any) -> list[str]:
    given = expected if isinstance(expected, list | tuple) else [expected]
    texts = [str(one) if is_number(one) else one for one in given]
    if not texts or not all(isinstance(one, str) and one for one in texts):
        raise Unreadable(
            "the expected answer is not text, so no reply can contain it", shown(expected)
        )
    return texts


@dataclass(frozen=True, slots=True)
class JsonSchema(Check, spelling="json_schema"):
    """The reply, read as JSON, is valid under a JSON Schema of draft 2020-12.

    The failure names the most specific place that is wrong. `format` is an annotation, as the draft
    has it. Patterns are Python's. A schema that takes more than 1 s of processor time on one reply
    is a broken check.

    Args:
        schema: The schema; a suite may name the file that holds it.

    >>> check = json_schema({"properties": {"age": {"type": "integer"}}})
    >>> check.check(Reply(value='{"age": "old"}')).explanation
    "$.age: 'old' is not of type 'integer'"
    """

    # Objects have no hash; the text below stands for them.
    schema: SchemaArgument = field(hash=False)
    _source: str = field(init=False, repr=False, compare=False, hash=True)

    def __post_init__(self) -> None:
        self._keep(schema=check_json("schema", self.schema))
        self._keep(_source=check_schema("schema", self.schema))

    @property
    def name(self) -> str:
        """The name in reports."""
        title = self.schema.get("title") if isinstance(self.schema, dict) else None
        return f"valid under JSON Schema {label(title)}" if title else "valid under JSON Schema"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as a suite file spells it."""
        # A schema of that one key would be read as the argument of the same name.
        is_ambiguous = isinstance(self.schema, dict) and list(self.schema) == ["schema"]
        return {self.spelling: {"schema": self.schema} if is_ambiguous else self.schema}

    def _examine(self, reply: Reply) -> CheckResult:
        value = json_of(reply)
        problem, evidence = find_problem(self._source, value)
        return failed(problem, evidence) if problem else CheckResult.ok()


json_schema = JsonSchema


def check_schema(argument: str, schema: Any) -> str:
    """Return a schema that holds together, as text, or `InvalidArgument` with the place."""
    import jsonschema  # type: ignore[import-untyped]
    from referencing.exceptions import Unresolvable

    dialect = schema.get("$schema", _DIALECT) if isinstance(schema, dict) else _DIALECT
    # Keywords mean other things in other drafts, such as `items` with a list.
    if dialect not in (_DIALECT, _DIALECT + "#"):
        raise InvalidArgument(f"{argument}.$schema", dialect, f"be {_DIALECT}")
    reference = ""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        # Looked up now: a reference that leads nowhere would fail with the first reply that reaches
        # it.
        for reference, resolver in _references(schema):
            resolver.lookup(reference)
        # As text it has a hash, and another process can be given it.
        source = json.dumps(schema, sort_keys=True)
        _validator(source).is_valid(None)
    except (jsonschema.SchemaError, Unresolvable) as error:
        problem = f"cannot resolve {label(reference)}"
        if isinstance(error, jsonschema.SchemaError):
            problem = printable(f"{error.json_path}: {error.message}")
        raise InvalidArgument(argument, schema, f"be a JSON Schema ({problem})") from None
    except RecursionError:
        raise InvalidArgument(argument, schema, "not refer to itself without end") from None
    return source


def find_problem(source: str, value: Any) -> tuple[str, str]:
    """Return the most specific problem of a value under a schema, and the value there.

    Args:
        source: The schema, as `check_schema` returned it.
        value: What JSON holds.

    Returns:
        Two empty texts where there is no problem.
    """
    if '"pattern' not in source:
        return describe_worst(source, value)
    # Only a pattern can take long: everything else is linear in the reply once `uniqueItems` is.
    patterns = ", ".join(_list_patterns(_validator(source).schema))
    named = f"JSON Schema with the pattern {patterns}"
    return call_limited(describe_worst, source, value, check=named, subject="one reply")


def describe_worst(source: str, value: Any) -> tuple[str, str]:
    """Describe the most specific problem as `find_problem` does, however long that takes."""
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

    error = best_match(_validator(source).iter_errors(value))
    return ("", "") if error is None else _describe(error)


def _list_patterns(schema: Any) -> Iterator[str]:
    """Yield the regular expressions of a schema, for a message."""
    if isinstance(schema, list):
        for one in schema:
            yield from _list_patterns(one)
    elif isinstance(schema, dict):
        for key, one in schema.items():
            if key == "pattern" and isinstance(one, str):
                yield label(one)
            elif key == "patternProperties" and isinstance(one, dict):
                yield from map(label, one)
            yield from _list_patterns(one)


def _describe(error: Any) -> tuple[str, str]:
    """Describe an error's place and message, and the value there."""
    message = error.message
    if len(message) > _LONG_MESSAGE:
        # It begins with the value, so that nothing else would be left of it.
        message = f"does not meet {label(error.validator)}: {shown(error.validator_value)}"
    return f"{error.json_path}: {message}", shown(error.instance)


@lru_cache(maxsize=64)
def _validator(source: str) -> Any:
    import jsonschema
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    # The library compares every two items, which a long reply turns into minutes.
    draft = jsonschema.Draft202012Validator
    quick = jsonschema.validators.extend(draft, {"uniqueItems": _unique_items})
    # With a registry of its own the validator never fetches a reference from the network.
    return quick(json.loads(source), registry=REGISTRY)


def _unique_items(validator: Any, unique: bool, items: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not unique or not validator.is_type(items, "array"):
        return
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if (key := _key(item)) in seen:
            yield ValidationError(f"item {index} is a repetition of {shown(item)}")
            return
        seen.add(key)


def _key(value: Any) -> Any:
    """Something hashable that is equal for equal JSON values only."""
    if isinstance(value, list):
        return "array", tuple(map(_key, value))
    if isinstance(value, dict):
        return "object", frozenset((name, _key(item)) for name, item in value.items())
    return type(value) is bool, value


def _references(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every reference of a schema with its resolver, except those within `const`."""
    from jsonschema_specifications import REGISTRY
    from referencing.jsonschema import DRAFT202012

    root = DRAFT202012.create_resource(schema)
    pending = [(root, REGISTRY.resolver_with_root(root))]
    while pending:
        resource, resolver = pending.pop()
        contents = resource.contents
        if isinstance(contents, dict):
            for keyword in ("$ref", "$dynamicRef"):
                if keyword in contents:
                    yield contents[keyword], resolver
        pending += [(child, resolver.in_subresource(child)) for child in resource.subresources()]
