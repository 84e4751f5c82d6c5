"""Postconditions that compare with what a trial's input expects."""

from __future__ import annotations

from typing import Any

import pytest

from trialwise.checks import (
    Comparison,
    as_expected,
    contains,
    equals,
    expression,
    predicate,
    tool_called_with,
)
from trialwise.errors import InvalidArgument
from trialwise.model.claim import Input, Sampling
from trialwise.model.fingerprint import sampling_fingerprint
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason


def seen(value: Any, expected: Any = None) -> Reply:
    """A reply as postconditions see it."""
    return Reply(value=value).with_input("question", expected)


@pytest.mark.parametrize(
    ("how", "expected", "value", "passes"),
    [
        ("equals", "555", "555", True),
        ("equals", "555", "It is 555.", False),
        ("equals", "555", "555\n", False),
        ("equals", 555, "555.0", True),
        ("equals", {"a": [1]}, '{"a": [1.0]}', True),
        ("equals", ["a", "b"], ["a", "b"], True),
        ("equals", False, "false", True),
        ("contains", "555", "It is 555.", True),
        ("contains", 555, "It is 555.", True),
        ("contains", 5.5, "It is 5.5.", True),
        ("contains", ["a", "b"], "b and a", True),
        ("contains", ["a", "b"], "only a", False),
    ],
)
def test_a_reply_is_compared_as_by_the_postcondition_of_that_name(
    how: Comparison, expected: Any, value: Any, passes: bool
) -> None:
    """With the same explanation, so that a report reads alike."""
    found = as_expected(how).check(seen(value, expected))

    assert passes is found.passed
    texts = [str(one) for one in expected] if isinstance(expected, list) else [str(expected)]
    same = equals(expected) if how == "equals" else contains(texts)
    assert same.check(Reply(value=value)) == found


def test_case_and_white_space_can_be_left_out() -> None:
    """Of text; a number has neither."""
    assert as_expected(ignore_case=True, trim=True).check(seen(" PARIS\n", "Paris")).passed
    assert as_expected("contains", ignore_case=True).check(seen("in PARIS", "Paris")).passed
    assert as_expected(ignore_case=True, trim=True).check(seen(" 5 ", 5)).passed


def test_nothing_to_compare_with_is_no_pass() -> None:
    """With its own reason, for a reply that may be right."""
    for check in (
        as_expected(),
        expression("output == expected"),
        predicate(lambda text, expected: text == expected),
    ):
        result = check.check(seen("anything"))
        assert FailReason.NO_VALUE is result.reason
        assert "the input has no expected answer" == result.explanation


@pytest.mark.parametrize("expected", [True, {"a": 1}, [], ["a", {}], ""])
def test_only_a_text_can_be_contained(expected: Any) -> None:
    """What is expected is at fault then, and the explanation says so."""
    result = as_expected("contains").check(seen("a true {}", expected))

    assert FailReason.TRANSFORM is result.reason
    assert "the expected answer is not text" in result.explanation


def test_expressions_know_what_is_expected() -> None:
    """Text as it is, other values as JSON; also where they look at a tool's arguments."""
    assert expression("output == expected").check(seen("5", "5")).passed
    assert expression("value.n == expected.n").check(seen('{"n": 5}', {"n": 5})).passed
    assert expression("output in expected").check(seen("b", ["a", "b"])).passed
    assert not expression("output in expected").check(seen("c", ["a", "b"])).passed
    calls = {"tool_calls": [{"name": "book", "args": {"seats": 2}}]}
    reply = Reply(value="", details=calls).with_input("two", {"seats": 2})
    assert tool_called_with("book", expression="value.seats == expected.seats").check(reply).passed


def test_functions_ask_for_what_is_expected_by_name() -> None:
    """One that has a default of that name keeps it."""

    def close(value: float, expected: float) -> bool:
        return abs(value - expected) < 0.1

    def own(text: str, expected: str = "mine") -> bool:
        return text == expected

    assert predicate(close).check(seen(3.14, 3.1)).passed
    assert not predicate(close).check(seen(3.14, 3.3)).passed
    assert predicate(own).check(seen("mine", "other")).passed


def test_a_comparison_that_does_not_exist_is_refused() -> None:
    """With those that do."""
    wrong: Any = as_expected
    with pytest.raises(InvalidArgument, match="how must be one of"):
        wrong("matches")
    with pytest.raises(InvalidArgument, match="trim must be left out for contains"):
        wrong("contains", trim=True)
    with pytest.raises(InvalidArgument, match="ignore_case must be true or false"):
        wrong(ignore_case="no")


def test_another_expected_answer_is_another_sampling() -> None:
    """A rate measured against other answers is no baseline; without any, nothing has changed."""

    def fingerprint(expected: Any) -> str:
        return sampling_fingerprint(Sampling.of([Input(id="1", value="q", expected=expected)]))

    found = [fingerprint(one) for one in (None, "a", "b", 5, ["a"])]
    assert len(set(found)) == len(found)
    assert found[0] == sampling_fingerprint(Sampling.of(["q"]))
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
