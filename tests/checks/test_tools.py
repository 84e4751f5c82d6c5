"""Assertions on tool calls, and how traces that are missing or malformed are read."""

from __future__ import annotations

from typing import Any

import pytest

from trialwise import checks
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason, Postcondition


def trace(*calls: Any) -> Reply:
    return Reply(value="done", details={"tool_calls": list(calls)})


TRIP = trace(
    {"name": "search", "server": "web", "args": {"q": "tables", "near": {"city": "Bern", "km": 2}}},
    {"name": "log"},
    {"name": "search", "server": "files", "arguments": '{"q": "menus"}'},
    {"name": "book", "args": {"seats": 2, "dates": [1, 2]}},
)

HOLDS = [
    checks.tool_called("search"),
    checks.tool_called("search", minimum=2, maximum=2),
    checks.tool_called("search", server="web", maximum=1),
    checks.tool_called("pay", minimum=0, maximum=0),
    checks.tool_not_called("pay"),
    checks.tool_not_called(["pay", "delete"]),
    checks.tool_not_called("log", server="web"),
    checks.tools_in_order(["search", "book"]),
    checks.tools_in_order(["search", "search", "book"]),
    checks.tools_in_order(["search", "log", "search", "book"], exact=True),
    checks.tool_called_with("book", {"seats": 2}),
    checks.tool_called_with("search", {"near": {"city": "Bern"}}),
    checks.tool_called_with("search", {"q": "menus"}, server="files"),
    checks.tool_called_with("log", {}),
    checks.tool_called_with("book", schema={"properties": {"seats": {"maximum": 4}}}),
    checks.tool_call_count(minimum=1, maximum=4),
]

FAILS = [
    (
        checks.tool_called("pay"),
        "'pay' was not called, expected at least 1",
        "called: search, log, search, book",
    ),
    (
        checks.tool_called("search", maximum=1),
        "'search' was called 2 times, expected exactly 1",
        "called: search, log, search, book",
    ),
    (
        checks.tool_called("book", server="web"),
        "'book' of 'web' was not called, expected at least 1",
        "called: search, log, search, book",
    ),
    (
        checks.tool_not_called(["x", "book"]),
        "'book' was called (call 4 of 4)",
        '{"seats": 2, "dates": [1, 2]}',
    ),
    (
        checks.tools_in_order(["book", "search"]),
        "'search' was not called after 'book'",
        "called: search, log, search, book",
    ),
    (checks.tools_in_order(["pay"]), "'pay' was not called", "called: search, log, search, book"),
    (
        checks.tools_in_order(["search", "book"], exact=True),
        "expected exactly 'search', 'book'",
        "called: search, log, search, book",
    ),
    (
        checks.tool_called_with("book", {"seats": 3}),
        "no call of 'book': expected $.seats to be 3",
        "2",
    ),
    (
        checks.tool_called_with("book", {"dates": [1]}),
        "no call of 'book': expected $.dates to be [1]",
        "[1, 2]",
    ),
    (
        checks.tool_called_with("book", {"name": "x"}),
        "no call of 'book': expected $.name to be \"x\"",
        "it is missing",
    ),
    (
        checks.tool_called_with("pay", {}),
        "'pay' was not called",
        "called: search, log, search, book",
    ),
    (
        checks.tool_called_with("book", schema={"required": ["id"]}),
        "no call of 'book': $: 'id' is a required property",
        '{"seats": 2, "dates": [1, 2]}',
    ),
    (
        checks.tool_call_count(maximum=3),
        "4 tool calls, expected at most 3",
        "called: search, log, search, book",
    ),
]


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.name)
def test_it_holds(check: Postcondition) -> None:
    """Names, counts, servers, order and arguments of a real trace."""
    result = check.check(TRIP)

    assert result.passed, result


@pytest.mark.parametrize(("check", "explanation", "evidence"), FAILS)
def test_it_fails_and_says_why(check: Postcondition, explanation: str, evidence: str) -> None:
    """The failure names the tool and shows the trace, or the one value that is wrong."""
    result = check.check(TRIP)

    assert FailReason.CONDITION is result.reason
    assert (explanation, evidence) == (result.explanation, result.evidence)


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.name)
def test_no_trace_is_no_evidence(check: Postcondition) -> None:
    """Without a trace every assertion fails with no-value, that nothing was called included."""
    assert FailReason.NO_VALUE is check.check(Reply(value="done")).reason


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.name)
@pytest.mark.parametrize(
    "calls",
    [
        "search",
        {"name": "search"},
        5,
        ["search"],
        [{}],
        [{"name": 5}],
        [None],
        [{"name": "a", "server": 5}],
    ],
    ids=repr,
)
def test_a_malformed_trace_is_a_transform_failure(check: Postcondition, calls: Any) -> None:
    """A trace that cannot be understood is never read in the service's favour."""
    result = check.check(Reply(value="", details={"tool_calls": calls}))

    assert FailReason.TRANSFORM is result.reason


@pytest.mark.parametrize("arguments", ["{", "[1]", 5, {1: 2}, "5"])
def test_arguments_that_cannot_be_read_are_a_transform_failure(arguments: Any) -> None:
    """Unless another call of the tool had the arguments asked for."""
    broken = {"name": "book", "args": arguments}
    check = checks.tool_called_with("book", {"seats": 2})

    assert FailReason.TRANSFORM is check.check(trace(broken)).reason
    assert check.check(trace(broken, {"name": "book", "args": {"seats": 2}})).passed


def test_an_empty_trace_is_a_trace() -> None:
    """The service is known to have called nothing."""
    assert checks.tool_not_called("x").check(trace()).passed
    assert "no tool was called" == checks.tool_called("x").check(trace()).evidence


def test_a_long_trace_is_cut() -> None:
    """The evidence shows the first names and how many more there were."""
    result = checks.tool_called("x").check(trace(*[{"name": "tool"}] * 100))

    assert result.evidence.endswith(" and 92 more")
    result = checks.tool_called("x").check(trace(*[{"name": "t"}] * 8))
    assert "called: t, t, t, t, t, t, t, t" == result.evidence


BUILD: Any = checks


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BUILD.tool_called(""), "tool must be text"),
        (lambda: BUILD.tool_called("a", minimum=2, maximum=1), "maximum must be"),
        (lambda: BUILD.tool_called("a", server=""), "server must be text"),
        (lambda: BUILD.tool_not_called([]), "tool must hold at least one text"),
        (lambda: BUILD.tools_in_order([]), "tools must hold at least one text"),
        (lambda: BUILD.tools_in_order([5]), "tools must be text"),
        (lambda: BUILD.tool_called_with("a"), "args must be given, or schema, or expr"),
        (lambda: BUILD.tool_called_with("a", {}, schema={}), "args must be given, or schema"),
        (lambda: BUILD.tool_called_with("a", [1]), "args must be an object"),
        (lambda: BUILD.tool_called_with("a", {"b": object()}), "args must be JSON"),
        (lambda: BUILD.tool_called_with("a", schema={"type": "x"}), "schema must be a JSON Schema"),
        (BUILD.tool_call_count, "minimum must be given, or maximum, or both"),
    ],
)
def test_a_check_built_wrong_is_refused(build: Any, message: str) -> None:
    """The refusal names the argument."""
    with pytest.raises(InvalidArgument, match=message):
        build()
