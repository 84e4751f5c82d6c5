"""Postconditions on what the reply can be read as: a format, or a number within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from trialwise.checks import check_base, reply_reading
from trialwise.checks.check_base import Check, Limits, Unreadable, failed, label
from trialwise.checks.texts import check_pattern, has_match
from trialwise.checks.time_limits import call_limited
from trialwise.declarations.scalars import is_number
from trialwise.declarations.signatures import Natural
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, Reply
from trialwise.validation import require_real

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

__all__ = ["Format", "JsonPath", "NumericRange", "Parses", "Require"]
__all__ += ["json_path", "numeric_range", "parses"]

# --- values that a JSONPath (RFC 9535) selects

Require = Literal["all", "any"]

#: How many values a path may select before the check gives up.
_MAX_SELECTED = 100_000
#: The longest string a pattern is tried on.
_MAX_MATCHED = 100_000


@dataclass(frozen=True, slots=True)
class JsonPath(Check, spelling="json_path"):
    """What a JSONPath selects is there and compares as asked.

    Without a comparison the path has to select something. With several, a value has to meet all of
    them. A comparison with nothing selected fails. Patterns and filters that take more than 1 s of
    processor time on one reply are broken checks; `matches` reads at most
    100,000 characters.

    Args:
        path: A JSONPath of RFC 9535.
        equals: The value itself, compared as JSON.
        contains: A part of a text, an element of an array or a key of an object.
        matches: A regular expression, searched in a text.
        minimum: The least number allowed.
        maximum: The greatest number allowed.
        between: Both limits at once.
        exists: False asks that nothing is selected.
        count: How many values are selected.
        require: Whether all values selected must compare so, or any.

    >>> check = json_path("$.items[*].price", minimum=0)
    >>> check.check(Reply(value='{"items": [{"price": 3}, {"price": -1}]}')).evidence
    "$['items'][1]['price'] = -1"
    """

    path: str
    _: KW_ONLY
    equals: Any = field(default=check_base.UNSET, hash=False)
    contains: Any = field(default=check_base.UNSET, hash=False)
    matches: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    between: InitVar[tuple[float, float] | None] = None
    exists: bool | None = None
    count: Natural | None = None
    require: Require = "all"

    def __post_init__(self, between: tuple[float, float] | None) -> None:
        if between is not None:
            self._take_limits(between)
        Check.__post_init__(self)
        check_path("path", self.path)
        for argument in ("equals", "contains"):
            if (value := getattr(self, argument)) is not check_base.UNSET:
                self._keep(**{argument: reply_reading.check_json(argument, value)})
        if self.matches is not None:
            check_pattern("matches", self.matches)
        if self.minimum is not None or self.maximum is not None:
            Limits(self.minimum, self.maximum).check(require_real)
        # Both ask how many values there are, and could contradict each other.
        if self.exists is not None and self.count is not None:
            raise InvalidArgument("count", self.count, "not be given beside exists")
        if any(self._list_questions()) and (self.exists is False or self.count == 0):
            raise InvalidArgument("path", self.path, "select something to be compared")

    def _take_limits(self, between: object) -> None:
        # Suite files hand over what they hold.
        if not isinstance(between, (list, tuple)) or len(between) != 2:
            raise InvalidArgument("between", between, "be two numbers")
        if self.minimum is not None or self.maximum is not None:
            raise InvalidArgument("between", between, "not be given beside minimum or maximum")
        self._keep(minimum=between[0], maximum=between[1])

    @property
    def name(self) -> str:
        """The name in reports."""
        some = "some " if self.require == "any" and any(self._list_questions()) else ""
        return f"{some}{label(self.path)[1:-1]} {self._describe() or 'exists'}"

    def _describe(self) -> str:
        """Return what is asked, in words: of the number of values, then of each."""
        found = []
        if self.exists is not None:
            found.append("exists" if self.exists else "does not exist")
        if self.count is not None:
            found.append(f"selects {self.count}")
        return " and ".join([*found, *(words for words, _ in self._list_questions())])

    def _list_questions(self) -> Iterator[tuple[str, Callable[[Any], str]]]:
        """Yield each question about a value: in words, and what tells what is wrong with one."""
        unset = check_base.UNSET
        if self.equals is not unset:
            expected = label(self.equals)
            yield (
                f"equals {expected}",
                lambda one: "" if reply_reading.same(one, self.equals) else f"expected {expected}",
            )
        if self.contains is not unset:
            part = label(self.contains)
            wrong = f"expected it to contain {part}"
            yield f"contains {part}", lambda one: "" if _holds(one, self.contains) else wrong
        if (pattern := self.matches) is not None:
            yield f"matches {label(pattern)}", lambda one: _explain_mismatch(one, pattern)
        limits = Limits(self.minimum, self.maximum)
        if limits != Limits():
            beyond = f"expected a number {limits}"
            yield str(limits), lambda one: "" if is_number(one) and limits.hold(one) else beyond

    def _examine(self, reply: Reply) -> CheckResult:
        nodes = select(self.path, reply_reading.json_of(reply))
        problem = self._number_of_nodes(nodes)
        if problem:
            first = f"{nodes[0][0]} = {check_base.shown(nodes[0][1])}" if nodes else ""
            return failed(problem, first)
        asked = [ask for _, ask in self._list_questions()]
        failures = [
            (where, value, problem)
            for where, value in nodes
            if (problem := next(filter(None, (ask(value) for ask in asked)), ""))
        ]
        # Of no values none fails; whether there have to be some was asked before.
        if not failures or (self.require == "any" and len(failures) < len(nodes)):
            return CheckResult.ok()
        where, value, problem = failures[0]
        if self.require == "any" and len(nodes) > 1:
            problem = f"none of {len(nodes)} values {self._describe()}"
        return failed(problem, f"{where} = {check_base.shown(value)}")

    def _number_of_nodes(self, nodes: list[tuple[str, Any]]) -> str:
        """Return what is wrong with how many values there are, or nothing."""
        path = label(self.path)[1:-1]
        if self.count is not None and len(nodes) != self.count:
            return f"{path} selects {len(nodes)} values, expected {self.count}"
        if self.exists is False:
            return f"{path} selects {len(nodes)} values, expected none" if nodes else ""
        if not nodes and self.count is None:
            return f"{path} selects nothing"
        return ""


json_path = JsonPath


def check_path(argument: str, path: object) -> None:
    """A JSONPath that compiles, or `InvalidArgument` with the position."""
    from jsonpath_rfc9535 import JSONPathError

    if not isinstance(path, str):
        raise InvalidArgument(argument, path, "be a JSONPath as text")
    try:
        _query(path)
    except (JSONPathError, RecursionError) as error:
        problem = str(error) or "too deeply nested"
        raise InvalidArgument(argument, path, f"be a JSONPath ({problem})") from None


def select(path: str, document: Any) -> list[tuple[str, Any]]:
    """Select the values a path selects, each with its normalised place."""
    # Only a filter takes longer than the document is long: one within another compares every value
    # with every other.
    if "?" in path:
        found = call_limited(select_nodes, path, document, check=label(path), subject="one reply")
    else:
        found = select_nodes(path, document)
    nodes, problem = found
    if problem:
        raise Unreadable(f"{label(path)} cannot be applied to the reply: {problem}")
    if len(nodes) > _MAX_SELECTED:
        raise Unreadable(f"{label(path)} selects more than {_MAX_SELECTED} values")
    return nodes


def select_nodes(path: str, document: Any) -> tuple[list[tuple[str, Any]], str]:
    """Return the values that a path selects, or why it cannot, however long that takes."""
    from jsonpath_rfc9535 import JSONPathError

    try:
        found = islice(_query(path).finditer(document), _MAX_SELECTED + 1)
        return [(node.path(), node.value) for node in found], ""
    except JSONPathError as error:
        return [], str(error) or type(error).__name__


@lru_cache(maxsize=256)
def _query(path: str) -> JSONPathQuery:
    from jsonpath_rfc9535 import JSONPathEnvironment

    class Environment(JSONPathEnvironment):
        # Documents are bounded when they are read, so that `..` always reaches their end.
        max_recursion_depth = reply_reading.MAX_DEPTH + 1

    return Environment().compile(path)


def _holds(value: Any, part: Any) -> bool:
    # A mapping contains its keys, as in Python; its values have paths of their own.
    if isinstance(value, (str, dict)):
        return isinstance(part, str) and part in value
    elements: Iterable[Any] = value if isinstance(value, list) else ()
    return any(reply_reading.same(element, part) for element in elements)


def _explain_mismatch(value: Any, pattern: str) -> str:
    if not isinstance(value, str):
        return f"expected text that matches {label(pattern)}"
    if len(value) > _MAX_MATCHED:
        return f"the text has {len(value)} characters, matches reads at most {_MAX_MATCHED}"
    return "" if has_match(pattern, value) else f"expected a match for {label(pattern)}"


# --- what a whole reply can be read as

Format = Literal["json", "yaml", "xml", "number"]
_PARSERS = {
    "json": reply_reading.parse_json,
    "yaml": reply_reading.parse_yaml,
    "xml": reply_reading.parse_xml,
    "number": reply_reading.parse_number,
}


@dataclass(frozen=True, slots=True)
class Parses(Check, spelling="parses"):
    """The reply is one document of a format, and nothing else.

    - `json`: RFC 8259, strictly: no NaN, no repeated key, finite numbers.
    - `yaml`: one YAML 1.2 document of standard types. Most plain sentences are YAML, too.
    - `xml`: well-formed, namespaces included; a document that declares entities fails.
    - `number`: one finite decimal number, as `-1.5e3`.

    A reply that is not text is no document, but may be JSON or a number as it is. What cannot be
    read is a failure of the reason `transform`: no value could be made of it.

    Documents are bounded: 200 levels, a million values (YAML 10,000, as if each alias were a
    copy), 10 million characters (YAML 100,000; a number 1,000).

    Args:
        format: The format.

    >>> parses("json").check(Reply(value='{"a": 1, "a": 2}')).explanation
    "the reply is not JSON with unique keys: 'a' is repeated"
    """

    asks_to_read: ClassVar[bool] = True

    format: Format

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"parses as {self.format if self.format == 'number' else self.format.upper()}"

    def _examine(self, reply: Reply) -> CheckResult:
        if reply.value is not None and not isinstance(reply.value, str):
            return self._examine_object(reply)
        text = reply_reading.text_of(reply)
        try:
            _PARSERS[self.format](text)
        except ValueError as error:
            raise Unreadable(f"the reply is not {error}", check_base.preview(text)) from None
        return CheckResult.ok()

    def _examine_object(self, reply: Reply) -> CheckResult:
        """What is not a text may be a JSON value or a number; it is no document."""
        readers = {"number": reply_reading.number_of, "json": reply_reading.json_of}
        if self.format not in readers:
            why = f"the reply is not text but of type {type(reply.value).__name__}"
            raise Unreadable(why, check_base.shown(reply.value))
        readers[self.format](reply)
        return CheckResult.ok()


parses = Parses


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericRange(Check, spelling="numeric_range"):
    """The reply is a number within limits, both of which belong to the range.

    Args:
        minimum: The least number allowed.
        maximum: The greatest number allowed.
        path: A JSONPath (RFC 9535); then every value it selects, and at least one, must be such a
            number.

    >>> numeric_range(minimum=0, maximum=1).check(Reply(value="1.5")).explanation
    'expected a number 0 to 1'
    """

    minimum: float | None = None
    maximum: float | None = None
    path: str | None = None

    def __post_init__(self) -> None:
        Limits(self.minimum, self.maximum).check(require_real)
        if self.path is not None:
            check_path("path", self.path)

    @property
    def name(self) -> str:
        """The name in reports."""
        what = "number" if self.path is None else self.path
        return f"{what} {Limits(self.minimum, self.maximum)}"

    def _examine(self, reply: Reply) -> CheckResult:
        if self.path is not None:
            return JsonPath(self.path, minimum=self.minimum, maximum=self.maximum).check(reply)
        number, limits = reply_reading.number_of(reply), Limits(self.minimum, self.maximum)
        if limits.hold(number):
            return CheckResult.ok()
        return failed(f"expected a number {limits}", check_base.shown(number))


numeric_range = NumericRange
