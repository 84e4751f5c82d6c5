"""Postconditions on the tools that a service called.

They read `reply.details["tool_calls"]`: a list of calls in order, each with a `name`, maybe a
`server`, and `args` or `arguments` (an object, or JSON text of one). A reply without a trace fails
with reason `no-value`, `tool_not_called` included: no trace is not evidence that nothing was
called.
A trace of another form fails with reason `transform`. A trace that does not tell all of its calls
(`Trace.calls_unknown`, or calls beyond those that are kept) is decided where the calls that it
shows are enough, such as one call of the tool that was to be called; otherwise it is not measured:
reason `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from trialwise.checks import check_base
from trialwise.checks.check_base import Check, CountLimits, Limits, Unreadable, failed, label
from trialwise.checks.parsable import Require
from trialwise.checks.reply_reading import calls_of, check_json, names, same
from trialwise.checks.whole_reply import SchemaArgument, check_schema, find_problem
from trialwise.declarations.signatures import Arg, Natural
from trialwise.documents.numbers import as_count
from trialwise.errors import InvalidArgument
from trialwise.model import CheckResult, FailReason, Reply

if TYPE_CHECKING:
    from trialwise.checks.expressions import Expression

__all__ = ["ToolCalled", "ToolCalledWith", "ToolNotCalled"]
__all__ += ["tool_called", "tool_called_with", "tool_not_called"]
__all__ += ["ToolCallCount", "ToolsInOrder", "tool_call_count", "tools_in_order"]


Tool = Annotated[str, Arg(aliases=("name",))]
"""The name of a tool."""


@dataclass(frozen=True, slots=True)
class ToolCalled(CountLimits, spelling="tool_called"):
    """A tool was called at least `minimum` and at most `maximum` times.

    Args:
        tool: The tool's name.
        minimum: How often at least.
        maximum: How often at most.
        server: Count only calls that name this server.

    >>> trace = {"tool_calls": [{"name": "search", "args": {"q": "x"}}]}
    >>> tool_called("book").check(Reply(value="", details=trace)).evidence
    'called: search'
    """

    tool: Tool
    _: KW_ONLY
    minimum: Natural = 1
    maximum: Natural | None = None
    server: str | None = None

    def __post_init__(self) -> None:
        CountLimits.__post_init__(self)
        _check_tool(self.tool, self.server)

    @property
    def name(self) -> str:
        """The name in reports."""
        called = f"calls {_tool(self.tool, self.server)}"
        return called if self.limits == Limits(1) else f"{called} {self.limits.times}"

    def _examine(self, reply: Reply) -> CheckResult:
        calls = calls_of(reply, seen=True)
        count = sum(call.is_of(self.tool, self.server) for call in calls)
        if _holds(self.limits, count, reply):
            return CheckResult.ok()
        found = f"called {as_count(count, 'time')}" if count else "not called"
        tool = _tool(self.tool, self.server)
        return failed(f"{tool} was {found}, expected {self.limits}", names(calls))


tool_called = ToolCalled


@dataclass(frozen=True, slots=True)
class ToolNotCalled(Check, spelling="tool_not_called"):
    """No call of one tool, or of any of several.

    Args:
        tool: The name of the tool, or several names.
        server: Look only at calls that name this server.

    >>> trace = {"tool_calls": [{"name": "delete", "args": {"id": 7}}]}
    >>> tool_not_called("delete").check(Reply(value="", details=trace)).evidence
    '{"id": 7}'
    """

    tool: Annotated[str | Sequence[str], Arg(aliases=("name",))]
    _: KW_ONLY
    server: str | None = None

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        _check_tool(self.tool[0], self.server)

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"does not call {' or '.join(_tool(tool, self.server) for tool in self.tool)}"

    def _examine(self, reply: Reply) -> CheckResult:
        calls = calls_of(reply, seen=True)
        for index, call in enumerate(calls):
            if any(call.is_of(tool, self.server) for tool in self.tool):
                where = f"{label(call.name)} was called (call {index + 1} of {len(calls)})"
                return failed(where, check_base.shown(call.given))
        calls_of(reply)  # a trace that may hold more calls than it shows is not evidence
        return CheckResult.ok()


tool_not_called = ToolNotCalled


@dataclass(frozen=True, slots=True)
class ToolsInOrder(Check, spelling="tools_in_order"):
    """Tools were called in this order.

    Args:
        tools: The names, a name as often as it is to be called.
        exact: These calls and no others; otherwise others may come before, between and after.

    >>> trace = {"tool_calls": [{"name": "search"}, {"name": "log"}, {"name": "book"}]}
    >>> tools_in_order(["search", "book"]).check(Reply(value="", details=trace)).passed
    True
    """

    tools: Annotated[str | Sequence[str], Arg(aliases=("names",))]
    _: KW_ONLY
    exact: bool = False

    @property
    def name(self) -> str:
        """The name in reports."""
        only = "exactly " if self.exact else ""
        return f"calls {only}{', then '.join(map(label, self.tools))}"

    def _examine(self, reply: Reply) -> CheckResult:
        if self.exact:
            calls = calls_of(reply)
            pairs = zip(calls, self.tools, strict=False)
            if len(calls) == len(self.tools) and all(one.is_of(tool, None) for one, tool in pairs):
                return CheckResult.ok()
            return failed(f"expected exactly {', '.join(map(label, self.tools))}", names(calls))
        calls = calls_of(reply, seen=True)
        # One iterator for all tools: each is looked for behind the one before.
        left = iter(calls)
        for done, tool in enumerate(self.tools):
            if not any(call.is_of(tool, None) for call in left):
                calls_of(reply)
                after = f" after {label(self.tools[done - 1])}" if done else ""
                return failed(f"{label(tool)} was not called{after}", names(calls))
        return CheckResult.ok()


tools_in_order = ToolsInOrder


@dataclass(frozen=True, slots=True)
class ToolCalledWith(Check, spelling="tool_called_with"):
    """Some call of a tool had such arguments, or every call.

    Args:
        tool: The tool's name.
        args: Arguments that must be there with these values; others may be there, too, at any level
            of objects. Arrays are compared as a whole.
        schema: Instead, a JSON Schema (2020-12) that the arguments are valid under.
        expression: Instead, a CEL expression that is true of them: `value` are the arguments,
            `input` is the trial's input.
        require: Of `any` call or of `all` of them; a tool that was not called fails either.
        server: Look only at calls that name this server.

    >>> trace = {"tool_calls": [{"name": "book", "args": {"seats": 3, "at": "19:00"}}]}
    >>> tool_called_with("book", {"seats": 2}).check(Reply(value="", details=trace)).explanation
    "no call of 'book': expected $.seats to be 2"
    """

    tool: Tool
    args: Mapping[str, Any] | None = field(default=None, hash=False)
    _: KW_ONLY
    schema: SchemaArgument | None = field(default=None, hash=False)
    expression: str | None = None
    require: Require = "any"
    server: str | None = None
    _source: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        Check.__post_init__(self)
        _check_tool(self.tool, self.server)
        if sum(one is not None for one in (self.args, self.schema, self.expression)) != 1:
            allowed = "be given, or schema, or expression, and only one of them"
            raise InvalidArgument("args", self.args, allowed)
        if self.args is not None:
            if not isinstance(self.args, Mapping):
                raise InvalidArgument("args", self.args, "be an object")
            self._keep(args=check_json("args", self.args))
        elif self.schema is not None:
            self._keep(schema=check_json("schema", self.schema))
            self._keep(_source=check_schema("schema", self.schema))
        else:
            check_base.check_texts("expression", (self.expression,))
            _expression(str(self.expression))

    @property
    def name(self) -> str:
        """The name in reports."""
        what = "arguments of a schema" if self.args is None else label(self.args)
        if self.expression is not None:
            what = check_base.printable(self.expression, 60)
        always = "always " if self.require == "all" else ""
        return f"{always}calls {_tool(self.tool, self.server)} with {what}"

    def _examine(self, reply: Reply) -> CheckResult:
        seen = calls_of(reply, seen=True)
        calls = [call for call in seen if call.is_of(self.tool, self.server)]
        tool = _tool(self.tool, self.server)
        if not calls:
            return failed(f"{tool} was not called", names(calls_of(reply)))
        unreadable: Unreadable | None = None
        wrong = evidence = ""
        for place, call in enumerate(calls):
            try:
                # Of several wrong calls the last one is explained: it is what the agent ended with.
                wrong, evidence = self._compare(call.arguments(), reply)
            except Unreadable as error:
                if self.require == "all":
                    raise
                unreadable = error
                continue
            if wrong and self.require == "all":
                return failed(f"call {place + 1} of {len(calls)} of {tool}: {wrong}", evidence)
            if not wrong and self.require == "any":
                return CheckResult.ok()
        calls_of(reply)  # a call that the trace does not show may be another one
        if unreadable is not None:
            raise unreadable
        return failed(f"no call of {tool}: {wrong}", evidence) if wrong else CheckResult.ok()

    def _compare(self, arguments: Any, reply: Reply) -> tuple[str, str]:
        """Return what is wrong with one call's arguments, and where, or nothing."""
        if self.args is not None:
            wrong = _beyond(self.args, arguments, "$")
            return (f"expected {wrong[0]}", wrong[1]) if wrong else ("", "")
        if self.expression is not None:
            return _evaluate_expression(self.expression, arguments, reply)
        return find_problem(self._source, arguments)


tool_called_with = ToolCalledWith


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallCount(CountLimits, spelling="tool_call_count"):
    """All calls together are at least `minimum` and at most `maximum`.

    Args:
        minimum: The fewest calls that are allowed.
        maximum: The most calls that are allowed.

    >>> tool_call_count(maximum=5).check(Reply(value="", details={"tool_calls": []})).passed
    True
    """

    minimum: Natural | None = None
    maximum: Natural | None = None

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"calls {self.limits} tools"

    def _examine(self, reply: Reply) -> CheckResult:
        calls = calls_of(reply, seen=True)
        if _holds(self.limits, len(calls), reply):
            return CheckResult.ok()
        return failed(f"{len(calls)} tool calls, expected {self.limits}", names(calls))


tool_call_count = ToolCallCount


def _holds(limits: Limits, count: int, reply: Reply) -> bool:
    """Return whether a number of calls lies within limits."""
    holds = limits.hold(count)
    is_over = limits.maximum is not None and count > limits.maximum
    # Where further calls could change the answer, a trace that may not show all calls is refused.
    if not is_over and not (holds and limits.maximum is None):
        calls_of(reply)
    return holds


def _check_tool(tool: object, server: object) -> None:
    check_base.check_texts("tool", (tool,))
    if server is not None:
        check_base.check_texts("server", (server,))


@lru_cache(maxsize=64)
def _expression(source: str) -> Expression:
    from trialwise.checks.expressions import expression

    try:
        return expression(source)
    except InvalidArgument as error:
        raise InvalidArgument("expression", error.value, error.allowed) from None


def _evaluate_expression(source: str, arguments: Any, reply: Reply) -> tuple[str, str]:
    """Return what an expression says of arguments, as if they were a reply to the same input."""
    # The expression sees the same input as the one of a criterion.
    known = {key: reply.details[key] for key in ("input", "expected") if key in reply.details}
    result = _expression(source).check(Reply(value=arguments, details=known))
    if result.reason in (None, FailReason.CONDITION):
        return result.explanation, check_base.shown(arguments)
    raise Unreadable(result.explanation, check_base.shown(arguments), reason=result.reason)


def _tool(tool: str, server: str | None) -> str:
    return label(tool) if server is None else f"{label(tool)} of {label(server)}"


def _beyond(expected: Any, actual: Any, place: str) -> tuple[str, str] | None:
    """Return the first place where `actual` lacks what is expected, and what is there."""
    if not isinstance(expected, dict) or not isinstance(actual, dict):
        wrong = f"{place} to be {check_base.shown(expected)}", check_base.shown(actual)
        return None if same(expected, actual) else wrong
    for key, value in expected.items():
        if key not in actual:
            return f"{place}.{key} to be {check_base.shown(value)}", "it is missing"
        if inner := _beyond(value, actual[key], f"{place}.{key}"):
            return inner
    return None
