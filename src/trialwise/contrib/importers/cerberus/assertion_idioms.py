"""Convert an assertion in JavaScript into checks that hold for the same outputs.

An assertion is a row of comparisons, joined by `&&`. These are converted:

| assertion                                                       | check                       |
|-----------------------------------------------------------------|-----------------------------|
| `output.meta.exitCode === 0`, `[0, 1].includes(…)`              | `exit_code`                 |
| `output.meta.jsonParsed`                                        | `json_schema` of an object  |
| `output.meta.raw` with `===`, `includes`, `startsWith`, …       | `equals`, `contains`, …     |
| `output.meta.raw.trim()`, `.toLowerCase()`, `/…/.test(…)`       | `matches`                   |
| `output.meta.raw.length`, `output.meta.durationMs`              | `expression`                |
| `output.meta.stderr` with `===`, `includes`, `startsWith`, …    | `expression`                |
| `output.parsed.a.b` with `===`, `<`, alone, `!`, `typeof`, …    | `json_path`, `json_schema`  |
| `output.parsed.list` with `.length`, `includes`, `isArray`      | `json_schema`               |

`scenario.…` stands for the values of the study's scenario. Everything else is refused: such a
check is a line of Python, and a suite names it as `python: module:function`.

The checks hold for the same outputs as the assertion wherever a value has the type that the
assertion expects, is missing, or is null. Where JavaScript would convert a value, as the text 5 to
a number, the trial fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from trialwise.contrib.importers.cerberus.assertion_parts import (
    NOT_JSON,
    ErrorText,
    JsonPart,
    Length,
    Measure,
    Part,
    Question,
    RawText,
    Spec,
    TypeName,
)
from trialwise.contrib.importers.cerberus.assertion_patterns import translate_pattern
from trialwise.contrib.importers.cerberus.assertion_syntax import (
    UNDEFINED,
    Chain,
    Comparison,
    Link,
    Literal,
    NotCarried,
    Operand,
    Pattern,
    TypeOf,
    parse_assertion,
)
from trialwise.errors import InvalidArgument

__all__ = ["Assertion", "read_assertion"]

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_IS_OBJECT = Question(
    {"json_schema": {"type": "object"}},
    {"any_of": [NOT_JSON, {"json_schema": {"not": {"type": "object"}}}]},
)

_Subject: TypeAlias = Literal | Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """What an assertion asks of a reply."""

    postconditions: list[Spec]
    """Checks as a suite writes them; all have to hold."""
    notes: tuple[str, ...] = ()
    """Where the original counts or compares otherwise."""


def read_assertion(text: str, scenario: Mapping[str, Any]) -> Assertion:
    """Convert an assertion into checks.

    Args:
        text: The assertion.
        scenario: What `scenario` stands for in it.

    Raises:
        NotCarried: A part of it is not converted.

    >>> read_assertion("output.meta.exitCode === 0 && output.parsed.n >= 3", {}).postconditions
    [{'exit_code': 0}, {'json_path': {'path': '$.n', 'minimum': 3}}]
    """
    reader = _Reader(scenario)
    specs: list[Spec] = []
    for one in parse_assertion(text):
        spec = reader.convert(one)
        if spec not in specs:
            specs.append(spec)
    for spec in specs:
        _check_limits(spec)
    return Assertion(postconditions=specs, notes=tuple(sorted(reader.notes)))


def _check_limits(spec: Spec) -> None:
    """Refuse what is beyond the bounds of a check, such as a text that is too long."""
    from trialwise.checks.combine import from_spec

    try:
        from_spec(spec)
    except InvalidArgument as error:
        raise NotCarried(f"the assertion is too involved: it must {error.allowed}", 0) from None


@dataclass(slots=True)
class _Reader:
    """Converts comparisons, and collects what a reader has to know."""

    scenario: Mapping[str, Any]
    notes: set[str] = field(default_factory=set)

    def convert(self, one: Comparison) -> Spec:
        """Convert a comparison into a check."""
        left, operator = self._resolve(one.left), one.operator
        right = None if one.right is None else self._resolve(one.right)
        if isinstance(left, Literal) and isinstance(right, Part):
            left, right, operator = right, left, _FLIPPED.get(operator, operator)
        if isinstance(left, Literal) or isinstance(right, Part):
            raise NotCarried("only a part of the output and a value are compared", one.at)
        if right is None:
            found = left.ask(is_negated=one.is_negated)
        else:
            found = left.compare(operator, right.value, one.at)
        if found is None:
            raise NotCarried("this condition is not carried over", one.at)
        return found

    def _resolve(self, operand: Operand) -> _Subject:
        """Find what an operand stands for."""
        if isinstance(operand, Literal):
            return operand
        if isinstance(operand, TypeOf):
            of = self._resolve(operand.chain)
            if isinstance(of, JsonPart):
                return TypeName(of)
            raise NotCarried("`typeof` is carried over for parts of the output only", operand.at)
        return self._resolve_chain(operand)

    def _resolve_chain(self, chain: Chain) -> _Subject:
        if isinstance(chain.of, Pattern):
            return _find_pattern(chain.of, self._resolve_argument(chain, "test"))
        if isinstance(chain.of, Literal):
            return _find_in_list(chain.of, self._resolve_argument(chain, "includes"))
        if chain.of == "Array":
            return _ask_for_list(self._resolve_argument(chain, "isArray"), chain.at)
        if chain.of == "scenario":
            return Literal(chain.at, self._look_up(chain))
        return self._resolve_output(chain)

    def _resolve_argument(self, chain: Chain, method: str) -> _Subject:
        """Find what the only argument of a call stands for, such as of `/ok/.test(…)`."""
        link = chain.links[-1] if chain.links else Link(chain.at, "")
        is_known = link.key == method and len(chain.links) == 1 and not link.is_optional
        if not is_known or link.arguments is None or len(link.arguments) != 1:
            raise NotCarried(f"only `{method}(…)` is carried over here", link.at)
        return self._resolve(link.arguments[0])

    def _resolve_output(self, chain: Chain) -> _Subject:
        if chain.of != "output" or not chain.links:
            raise NotCarried(f"`{chain.of}` is not carried over here", chain.at)
        last = chain.links[-1]
        before = Chain(chain.at, chain.of, chain.links[:-1])
        if last.arguments is not None:
            return self._call(self._resolve_output(before), last)
        if last.key == "length" and len(chain.links) > 2:
            of = self._resolve_output(before)
            if isinstance(of, RawText | JsonPart):
                return Length(of, self.notes)
        return _find_part(chain)

    def _look_up(self, chain: Chain) -> Any:
        value: Any = dict(self.scenario)
        for link in chain.links:
            if not isinstance(value, dict) or link.arguments is not None:
                raise NotCarried(f"`{link.key}` of the scenario is not carried over", link.at)
            value = value.get(str(link.key), UNDEFINED)
        return value

    def _call(self, of: _Subject, link: Link) -> _Subject:
        arguments = [self._resolve(one) for one in link.arguments or ()]
        found: _Subject | None = None
        if link.key in ("trim", "toLowerCase") and of == RawText() and not arguments:
            found = RawText(str(link.key))
        elif isinstance(of, RawText | ErrorText | JsonPart) and len(arguments) == 1:
            (argument,) = arguments
            if isinstance(argument, Literal) and not link.is_optional:
                found = of.search(link.key, argument.value)
        if found is None:
            raise NotCarried(f"the method `{link.key}` is not carried over here", link.at)
        return found


def _find_part(chain: Chain) -> _Subject:
    """Find the part of the output that a chain without calls names."""
    called = next((one for one in chain.links if one.arguments is not None), None)
    if called is not None:
        raise NotCarried(f"a member of `{called.key}(…)` is not carried over", called.at)
    match [one.key for one in chain.links]:
        case ["parsed", str(), *_]:
            return JsonPart(chain.links[1:])
        case ["meta", "raw"]:
            return RawText()
        case ["meta", "jsonParsed"]:
            return _IS_OBJECT
        case ["meta", ("exitCode" | "durationMs") as name]:
            return Measure(str(name))
        case ["meta", "stderr"]:
            return ErrorText()
    raise NotCarried("this part of the output is not carried over", chain.at)


def _find_pattern(pattern: Pattern, subject: _Subject) -> Question:
    found = translate_pattern(pattern.source, pattern.flags, pattern.at)
    if subject == RawText():
        return Question({"matches": found}, {"not": {"matches": found}})
    if isinstance(subject, JsonPart):
        return Question(subject.require({"type": "string", "pattern": found}), None)
    raise NotCarried("a pattern is carried over for parts of the output only", pattern.at)


def _find_in_list(allowed: Literal, subject: _Subject) -> Question:
    values = allowed.value
    is_known = isinstance(values, list) and values and UNDEFINED not in values
    if is_known and isinstance(subject, JsonPart):
        schema = {"enum": values}
        return Question(subject.require(schema), subject.refuse(schema))
    is_whole = is_known and all(type(one) is int for one in values)
    if is_whole and subject == Measure("exitCode"):
        return Question({"exit_code": values}, {"not": {"exit_code": values}})
    raise NotCarried("`includes` is not carried over here", allowed.at)


def _ask_for_list(subject: _Subject, at: int) -> Question:
    if not isinstance(subject, JsonPart):
        raise NotCarried("`Array.isArray` is carried over for parts of the output only", at)
    schema = {"type": "array"}
    return Question(subject.require(schema), subject.refuse(schema))
