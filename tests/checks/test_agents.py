"""Assertions on a whole session: its answer, its turns, its failures, its calls' arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import checks
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trace import ToolCall, Trace, Turn
from trialwise.model.trial import FailReason, Postcondition


def call(name: str, error: str | None = None, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, error=error, result=None if error else "ok")


SESSION = Trace(
    turns=(
        Turn(role="user", content="A table for two"),
        Turn(role="assistant", content="Let me look."),
        Turn(role="assistant"),
        Turn(role="assistant", content="Booked: table 4"),
    ),
    tool_calls=(
        call("find", guests=2),
        call("book", "taken", table=3, guests=2),
        call("book", table=4, guests=2),
    ),
    answer=" Booked: table 4\n",
)
REPLY = SESSION.to_reply().with_input({"guests": 2})
STOPPED = Trace(turns=SESSION.turns[:2], tool_calls=SESSION.tool_calls, ended="max-turns")

HOLDS = [
    checks.final_answer(),
    checks.final_answer(equals="Booked: table 4"),
    checks.final_answer(contains=["booked", "table"], ignore_case=True),
    checks.final_answer(matches=r"table \d"),
    checks.max_turns(3),
    checks.max_repeated_failures(0),
    checks.tool_called_with("book", expression="value.table == 4"),
    checks.tool_called_with("book", expression="value.guests == input.guests", require="all"),
    checks.tool_called_with("book", schema={"required": ["table"]}, require="all"),
    checks.tool_called_with("find", {"guests": 2}, require="all"),
]


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.name)
def test_it_holds(check: Postcondition) -> None:
    """For a session that did what was asked."""
    result = check.check(REPLY)

    assert result.passed, result


FAILS = [
    (
        checks.final_answer(contains="table 5"),
        "the final answer: 'table 5' is not in the reply",
        "Booked: table 4",
    ),
    (
        checks.final_answer(equals="Booked: table 5"),
        "the final answer: expected 'Booked: table 5'",
        "table 4",
    ),
    (checks.final_answer(matches="^x"), "the final answer: ", "Booked"),
    (checks.max_turns(2), "3 turns of the model, expected at most 2", "last: Booked: table 4"),
    (
        checks.tool_called_with("book", expression="value.table > 4"),
        "no call of 'book': value.table > 4 is false",
        '{"table": 4, "guests": 2}',
    ),
    (
        checks.tool_called_with("book", expression="value.table == 4", require="all"),
        "call 1 of 2 of 'book': value.table == 4 is false",
        '{"table": 3, "guests": 2}',
    ),
    (
        checks.tool_called_with("book", {"table": 3}, require="all"),
        "call 2 of 2 of 'book': expected $.table to be 3",
        "4",
    ),
    (checks.tool_called_with("pay", {}, require="all"), "'pay' was not called", "called: find"),
]


@pytest.mark.parametrize(("check", "explanation", "evidence"), FAILS)
def test_it_fails_and_says_why(check: Postcondition, explanation: str, evidence: str) -> None:
    """The failure names what was expected and shows the piece that is wrong."""
    result = check.check(REPLY)

    assert FailReason.CONDITION is result.reason
    assert explanation in result.explanation
    assert evidence in result.evidence


def test_an_agent_that_a_limit_stopped_has_no_answer() -> None:
    """What it said before is not an answer, however right it sounds."""
    result = checks.final_answer().check(STOPPED.to_reply())

    assert "the agent ended without an answer ('max-turns')" == result.explanation
    assert "assistant: Let me look." == result.evidence
    assert not checks.final_answer().check(Trace(answer=" \n").to_reply()).passed


@pytest.mark.parametrize("check", HOLDS, ids=lambda check: check.name)
def test_no_trace_is_no_evidence(check: Postcondition) -> None:
    """Without a trace every one of them fails with no-value."""
    for details in ({}, {"trace": None}, {"trace": 5}):
        assert FailReason.NO_VALUE is check.check(Reply(value="ok", details=details)).reason


def test_bare_tool_calls_tell_neither_turns_nor_an_answer() -> None:
    """A reply's value may be anything; only a trace says how a session ended."""
    reply = Reply(value="ok", details={"tool_calls": [{"name": "a"}]})

    assert FailReason.NO_VALUE is checks.final_answer().check(reply).reason
    assert FailReason.NO_VALUE is checks.max_turns(9).check(reply).reason
    silent = Trace(tool_calls=(call("a"),), answer="x").to_reply()
    assert FailReason.NO_VALUE is checks.max_turns(9).check(silent).reason


# --- failures that are repeated -----------------------------------------------------------------

FAILED = {"name": "book", "server": "s", "args": {"table": 4, "at": [1]}, "error": "taken"}
RIGHT = {**FAILED, "result": "ok", "error": None}
UNKNOWN = {name: value for name, value in FAILED.items() if name != "error"}


def repeated(*calls: Any, repeats: int = 0) -> Any:
    reply = Reply(value="", details={"tool_calls": list(calls)})
    return checks.max_repeated_failures(repeats).check(reply)


@pytest.mark.parametrize(
    "other",
    [
        RIGHT,
        {**FAILED, "args": {"table": 5, "at": [1]}},
        {**FAILED, "args": {"table": True, "at": [1]}},
        {**FAILED, "name": "find"},
        {**FAILED, "server": "t"},
        {**FAILED, "args": '{"table": 4'},
    ],
)
def test_another_call_repeats_nothing(other: Any) -> None:
    """Other arguments, another tool, another server; or the same call, which now succeeds."""
    assert repeated(FAILED, other).passed
    assert repeated(other, FAILED).passed


@pytest.mark.parametrize(
    "again",
    [
        FAILED,
        {**FAILED, "args": {"at": [1], "table": 4}},
        {**FAILED, "args": {"table": 4.0, "at": [1.0]}},
        {**FAILED, "args": '{"at": [1], "table": 4}'},
        {"name": "book", "server": "s", "arguments": FAILED["args"], "error": {"message": "full"}},
    ],
)
def test_the_same_call_failing_again_is_a_loop(again: Any) -> None:
    """In whatever order the keys stand, and whatever lies between."""
    result = repeated(FAILED, RIGHT, again)

    assert "'book' failed 2 times with the same arguments" == result.explanation
    assert result.evidence.startswith('{"')
    assert result.evidence.endswith((": taken", ": full"))
    assert repeated(FAILED, again, repeats=1).passed
    assert not repeated(FAILED, again, FAILED, repeats=1).passed


def test_calls_whose_end_is_unknown_are_no_evidence_where_they_matter() -> None:
    """One such call does not matter; two of the same may be a loop."""
    assert repeated(UNKNOWN).passed
    assert repeated(UNKNOWN, RIGHT).passed
    assert FailReason.NO_VALUE is repeated(UNKNOWN, UNKNOWN).reason
    assert FailReason.NO_VALUE is repeated(FAILED, UNKNOWN).reason
    assert FailReason.CONDITION is repeated(FAILED, FAILED, UNKNOWN).reason
    unreadable = {**FAILED, "args": "{"}
    assert FailReason.CONDITION is repeated(unreadable, unreadable).reason


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=8), st.integers(0, 3))
def test_repetitions_are_counted_call_by_call(session: list[Any], repeats: int) -> None:
    """By the definition: no call failed more than once and `repeats` times again."""
    calls = [
        {"name": "a", "args": {"n": n}, **({"error": "x"} if bad else {"result": ""})}
        for n, bad in session
    ]
    most = max((session.count((n, True)) for n in range(3)), default=0)

    assert (most <= repeats + 1) is repeated(*calls, repeats=repeats).passed


# --- traces that are carried in other ways ------------------------------------------------------


def test_a_trace_alone_serves_the_checks_of_calls() -> None:
    """As an envelope or as the object, without its mirror."""
    for carried in (SESSION, SESSION.to_dict()):
        reply = Reply(value="", details={"trace": carried})
        assert checks.tools_in_order(["find", "book", "book"], exact=True).check(reply).passed
        assert checks.max_turns(3).check(reply).passed


def test_a_trace_with_calls_left_out_is_no_evidence() -> None:
    """The one that was forbidden may be among them."""
    cut = Trace(tool_calls=(call("find"),) * 1500)

    result = checks.tool_not_called("delete").check(cut.to_reply())
    assert FailReason.UNKNOWN is result.reason
    assert "it keeps 1,000 calls, and 500 more were left out" in result.explanation


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (checks.tool_called("find"), None),
        (checks.tool_called("find", maximum=5000), FailReason.UNKNOWN),
        (checks.tool_called("find", maximum=500), FailReason.CONDITION),
        (checks.tool_called("book"), FailReason.UNKNOWN),
        (checks.tool_called_with("find", {}), None),
        (checks.tool_called_with("find", {"q": 1}), FailReason.UNKNOWN),
        (checks.tool_called_with("find", {}, require="all"), FailReason.UNKNOWN),
        (checks.tool_called_with("find", {"q": 1}, require="all"), FailReason.CONDITION),
        (checks.tools_in_order(["find", "find"]), None),
        (checks.tools_in_order(["find", "book"]), FailReason.UNKNOWN),
        (checks.tools_in_order(["find"], exact=True), FailReason.UNKNOWN),
        (checks.tool_call_count(minimum=1000), None),
        (checks.tool_call_count(minimum=1001), FailReason.UNKNOWN),
        (checks.tool_call_count(maximum=999), FailReason.CONDITION),
        (checks.tool_call_count(maximum=2000), FailReason.UNKNOWN),
        (checks.max_repeated_failures(3), FailReason.UNKNOWN),
        (checks.max_turns(900), FailReason.CONDITION),
        (checks.max_turns(1500), FailReason.UNKNOWN),
        (checks.max_turns(3000), None),
    ],
)
@pytest.mark.parametrize("is_long", [True, False])
def test_a_trace_beyond_our_limit_fails_only_by_what_it_shows(
    check: Any, expected: FailReason | None, is_long: bool
) -> None:
    """With 2,000 calls and turns each check says what it says of all of them, or "unknown".

    The same holds for a trace that may hide calls, apart from the turns, which it tells.
    """
    turns = (Turn(role="assistant", content="Hm."),) * 2000
    trace = Trace(tool_calls=(call("find"),) * 2000, turns=turns)
    if not is_long:
        trace = Trace(
            tool_calls=(call("find"),) * 1000, turns=turns[:1000], calls_unknown="it says so"
        )
        if isinstance(check, checks.MaxTurns) and expected is None:
            expected = FailReason.UNKNOWN
    reply = trace.to_reply()

    assert expected is check.check(reply).reason
    whole = Reply(value="", details={"tool_calls": [{"name": "find"}] * 2000})
    if expected is not FailReason.UNKNOWN and not isinstance(check, checks.MaxTurns):
        assert check.check(whole).passed is (expected is None)


def test_a_call_without_a_name_is_no_evidence() -> None:
    """It may have been any tool."""
    trace = Trace.from_dict({"tool_calls": [{"args": {}}]})

    result = checks.tool_not_called("delete").check(trace.to_reply())
    assert FailReason.TRANSFORM is result.reason


def test_an_expression_that_cannot_be_evaluated_is_a_transform_failure() -> None:
    """Unless another call of the tool has what it asks for."""
    check = checks.tool_called_with("book", expression="value.seat == 2")
    other = {"name": "book", "args": {"seat": 2}}

    lacking = {"name": "book", "args": {"table": 4}}
    result = check.check(Reply(value="", details={"tool_calls": [lacking]}))
    assert FailReason.TRANSFORM is result.reason
    assert '{"table": 4}' == result.evidence
    assert check.check(Reply(value="", details={"tool_calls": [lacking, other]})).passed
    unasked = checks.tool_called_with("book", expression="value.table == input.table")
    reply = Reply(value="", details={"tool_calls": [lacking]})
    assert FailReason.NO_VALUE is unasked.check(reply).reason


BUILD: Any = checks


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BUILD.max_turns(-1), "turns must be a whole number"),
        (lambda: BUILD.max_repeated_failures(0.5), "repeats must be a whole number"),
        (lambda: BUILD.final_answer(equals=""), "equals must be text"),
        (lambda: BUILD.final_answer(contains=[""]), "contains must be text"),
        (lambda: BUILD.final_answer(matches="("), "pattern must be a regular expression"),
        (lambda: BUILD.final_answer(ignore_case="no"), "ignore_case must be true or false"),
        (
            lambda: BUILD.tool_called_with("a", {}, expression="true"),
            "args must be given, or schema, or expression, and only one of them",
        ),
        (
            lambda: BUILD.tool_called_with("a", expression="1 +"),
            "expression must be a CEL expression",
        ),
        (lambda: BUILD.tool_called_with("a", expression=""), "expression must be text"),
        (lambda: BUILD.tool_called_with("a", {}, require="some"), "require must be one of"),
    ],
)
def test_a_check_built_wrong_is_refused(build: Any, message: str) -> None:
    """The refusal names the argument."""
    with pytest.raises(InvalidArgument, match=message):
        build()
