"""The checks on text: what holds, what does not, and what a failure shows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise import checks
from trialwise.errors import InvalidArgument
from trialwise.model.reply import Reply
from trialwise.model.trial import FailReason, Postcondition

HOLDS: list[tuple[Postcondition, Any]] = [
    (checks.equals("555"), "555"),
    (checks.equals("Yes", ignore_case=True), "yES"),
    (checks.equals("straße", ignore_case=True), "STRASSE"),
    (checks.equals("yes", trim=True), " yes\n"),
    (checks.equals(555), "555"),
    (checks.equals(555), 555.0),
    (checks.equals({"a": [1, None]}), '{"a": [1.0, null]}'),
    (checks.equals([1, 2]), (1, 2)),
    (checks.equals(None), None),
    (checks.equals(None), "null"),
    (checks.contains("555"), "it is 555."),
    (checks.contains(["a", "b"]), "ba"),
    (checks.contains("OK", ignore_case=True), "all ok"),
    (checks.contains("a", minimum=2, maximum=3), "a b a"),
    (checks.contains("a", minimum=0, maximum=0), "b"),
    (checks.not_contains(["x", "y"]), "abc"),
    (checks.matches(r"\d{3}"), "it is 555."),
    (checks.matches("^B", ignore_case=True), "bar"),
    (checks.matches(r"\d+", whole=True), "555"),
    (checks.starts_with("It"), "It is"),
    (checks.starts_with("it", ignore_case=True), "It is"),
    (checks.ends_with("."), "It is."),
    (checks.ends_with("IS.", ignore_case=True), "It is."),
    (checks.length(minimum=2, maximum=2), "𝄞é"),
]

FAILS: list[tuple[Postcondition, Any, str, str]] = [
    (checks.equals("555"), "554", "expected '555', it differs at position 2", "554"),
    (checks.equals("555"), "55", "expected '555', it differs at position 2", "55"),
    (checks.equals(1), "true", "expected 1", "true"),
    (checks.equals(True), 1, "expected true", "1"),
    (checks.equals({"a": 1}), '{"a": 2}', 'expected {"a": 1}', '{"a": 2}'),
    (checks.contains("555"), "554", "'555' is not in the reply", "554"),
    (checks.contains(["a", "z"]), "abc", "'z' is not in the reply", "abc"),
    (checks.contains("a", minimum=3), "aa", "'a' occurs 2 times, expected at least 3", "aa"),
    (checks.contains("a", maximum=1), "aa", "'a' occurs 2 times, expected 1 to 1", "aa"),
    (checks.not_contains("b"), "abc", "'b' occurs at position 1", "abc"),
    (checks.matches("^b"), "ab", "the reply has no match for '^b'", "ab"),
    (checks.matches("a", whole=True), "ab", "the reply is not matched as a whole by 'a'", "ab"),
    (checks.starts_with("b"), "ab", "the reply does not start with 'b'", "ab"),
    (checks.ends_with("a"), "ab", "the reply does not end with 'a'", "ab"),
    (checks.length(minimum=3), "ab", "the reply has 2 characters, expected at least 3", "ab"),
    (
        checks.length(minimum=1, maximum=1),
        "ab",
        "the reply has 2 characters, expected exactly 1",
        "ab",
    ),
]


@pytest.mark.parametrize(("check", "value"), HOLDS, ids=lambda part: getattr(part, "name", ""))
def test_it_holds(check: Postcondition, value: Any) -> None:
    """A reply that is as asked passes, without a reason."""
    result = check.check(Reply(value=value))

    assert (True, None, "", "") == (
        result.passed,
        result.reason,
        result.explanation,
        result.evidence,
    )


@pytest.mark.parametrize(
    ("check", "value", "explanation", "evidence"), FAILS, ids=lambda part: getattr(part, "name", "")
)
def test_it_fails_and_says_why(
    check: Postcondition, value: Any, explanation: str, evidence: str
) -> None:
    """A reply that is not as asked fails by its condition, with what was expected and found."""
    result = check.check(Reply(value=value))

    assert FailReason.CONDITION is result.reason
    assert (explanation.replace("1 to 1", "exactly 1"), evidence) == (
        result.explanation,
        result.evidence,
    )


@pytest.mark.parametrize(
    "check",
    [
        checks.equals("None"),
        checks.contains("None"),
        checks.not_contains("x"),
        checks.matches("N"),
        checks.starts_with("None"),
        checks.ends_with("None"),
        checks.length(maximum=99),
    ],
    ids=lambda check: check.name,
)
def test_no_reply_is_not_the_text_none(check: Postcondition) -> None:
    """A reply of None has no text: it fails with reason no-value."""
    assert FailReason.NO_VALUE is check.check(Reply(value=None)).reason


#: Callers without a type checker.
BUILD: Any = checks


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BUILD.contains(""), "text must be text of at least one character, got ''"),
        (lambda: BUILD.contains([]), "text must hold at least one text"),
        (lambda: BUILD.contains(555), "text must be text of at least one character, got 555"),
        (lambda: BUILD.contains(["a", 5]), "got 5"),
        (lambda: BUILD.contains("a", minimum=-1), "minimum must be a whole number"),
        (lambda: BUILD.contains("a", minimum=3, maximum=2), r"be at least minimum \(3\), got 2"),
        (lambda: BUILD.not_contains(""), "text must be text"),
        (lambda: BUILD.starts_with(""), "text must be text"),
        (lambda: BUILD.ends_with(None), "text must be text"),
        (lambda: BUILD.matches("a("), r"\(missing \), .* at position 1\), got 'a\('"),
        (lambda: BUILD.matches(5), "pattern must be a regular expression as text, got 5"),
        (lambda: BUILD.matches("a{99999999999999}"), "pattern must be"),
        (lambda: BUILD.matches("a", max_length=0), "max_length must be"),
        (BUILD.length, "minimum must be given, or maximum, or both"),
        (lambda: BUILD.length(minimum=2, maximum=1), r"be at least minimum \(2\), got 1"),
        (lambda: BUILD.length(minimum=1.5), "minimum must be a whole number"),
        (lambda: BUILD.equals({1: 2}), r"expected must be JSON \(a key of type int\)"),
        (lambda: BUILD.equals(float("nan")), "expected must be JSON"),
        (lambda: BUILD.equals(object()), r"expected must be JSON \(a value of type object\)"),
        (lambda: BUILD.equals(5, trim=True), "expected must be text for ignore_case or trim"),
    ],
)
def test_a_check_built_wrong_is_refused(build: Any, message: str) -> None:
    """The refusal names the argument, what is allowed and what was given."""
    with pytest.raises(InvalidArgument, match=message):
        build()


def test_a_text_too_long_to_match_fails_unread() -> None:
    """A pattern that backtracks for ever meets only texts within the bound."""
    check = checks.matches("(a+)+$", max_length=20)
    result = check.check(Reply(value="a" * 40 + "!"))

    assert "the reply has 41 characters, matches reads at most 20" == result.explanation
    assert FailReason.CONDITION is result.reason


def test_evidence_of_a_long_text_is_the_piece_that_matters() -> None:
    """What must not occur is shown with a little on either side."""
    result = checks.not_contains("needle").check(Reply(value="x" * 5000 + "needle" + "y" * 5000))

    assert f"…{'x' * 30}needle{'y' * 30}…" == result.evidence


def test_a_count_is_shown_where_it_begins_whatever_the_case() -> None:
    """The evidence is found in the text as it was compared."""
    check = checks.contains("NEEDLE", ignore_case=True, maximum=1)
    result = check.check(Reply(value="x" * 500 + "Needle needle"))

    assert f"…{'x' * 30}needle needle" == result.evidence


def test_control_characters_are_shown_and_never_sent() -> None:
    """Escape sequences, line breaks, bidirectional marks and half surrogates become escapes."""
    result = checks.contains("z").check(Reply(value="\x1b[31m\r\n\u202e\ud800"))

    assert r"\x1b[31m\r\n\u202e\ud800" == result.evidence


@given(st.text(), st.text(min_size=1))
def test_contains_is_pythons_in(text: str, part: str) -> None:
    """For one text without options, contains and not_contains are `in` and its opposite."""
    reply = Reply(value=text)

    assert (part in text) is checks.contains(part).check(reply).passed
    assert (part not in text) is checks.not_contains(part).check(reply).passed
    assert text.startswith(part) is checks.starts_with(part).check(reply).passed
    assert text.endswith(part) is checks.ends_with(part).check(reply).passed


@given(st.text(), st.text())
def test_equality_finds_the_first_difference(one: str, other: str) -> None:
    """The position named is the length of the common beginning."""
    result = checks.equals(other).check(Reply(value=one))

    assert (one == other) is result.passed
    if not result.passed:
        pairs = zip(one + "\0", other + "\1", strict=False)
        position = [left == right for left, right in pairs].index(False)
        assert result.explanation.endswith(f"it differs at position {position}")
