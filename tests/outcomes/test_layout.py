"""What a value means: passed, failed, broken, skipped, or nothing that is known."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.contrib.results.field_records import Mark, Unread, error_class_of, read_mark
from trialwise.errors import InvalidArgument
from trialwise.model.trial import ErrorClass
from trialwise.outcomes.outcome_reading import Layout
from trialwise.outcomes.outcome_rows import amount, count, moment, number

PLAIN = Layout()


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", "true", " Pass ", "PASSED", "yes", "ok", "C"])
def test_usual_words_for_passed_pass(value: Any) -> None:
    """Whatever the case and the space around it."""
    assert Mark(True) == read_mark(value, PLAIN)


@pytest.mark.parametrize("value", [False, 0, 0.0, "0", "false", "Failed", "no", "wrong", "I"])
def test_usual_words_for_failed_fail(value: Any) -> None:
    """Whatever the case and the space around it."""
    assert Mark(False) == read_mark(value, PLAIN)


@pytest.mark.parametrize("value", [None, math.nan, "", "  ", "null", "NaN", "n/a"])
def test_no_result_is_no_pass(value: Any) -> None:
    """A trial without a result has none; it is not taken for either."""
    assert Mark(None) == read_mark(value, PLAIN)


@pytest.mark.parametrize(
    ("value", "error_class"),
    [
        ("error", ErrorClass.INFRASTRUCTURE),
        ("Timeout", ErrorClass.TIMEOUT),
        ("timed out", ErrorClass.TIMEOUT),
        ("empty-run", ErrorClass.EMPTY_RUN),
        ("pre-validation", ErrorClass.PRE_VALIDATION),
    ],
)
def test_words_for_broken_trials_name_their_class(value: str, error_class: ErrorClass) -> None:
    """A trial that broke has no result, and a class."""
    assert Mark(None, error_class) == read_mark(value, PLAIN)


def test_a_skipped_trial_is_told_apart_from_a_missing_result() -> None:
    """Skipping is not a trial, a missing result is a failed one."""
    assert read_mark("skipped", PLAIN).skipped
    assert not read_mark("", PLAIN).skipped


@pytest.mark.parametrize("value", ["maybe", 0.7, 2, "0.7", "7", [True], {"value": 1}, 10**400])
def test_a_value_that_means_nothing_is_refused_not_guessed(value: Any) -> None:
    """Neither a middling score nor an unknown word silently becomes a failure."""
    with pytest.raises(Unread, match=r"pass_at|name one inside"):
        read_mark(value, PLAIN)


def test_a_least_score_makes_scores_results() -> None:
    """The least score itself passes."""
    layout = Layout(pass_at=0.7)
    assert [True, True, False] == [
        read_mark(score, layout).passed for score in (0.7, "0.71", 0.6999)
    ]
    assert ">= 0.7" == layout.passing


def test_words_of_ones_own_replace_the_usual_ones() -> None:
    """Once it is said which words pass, every other word fails."""
    layout = Layout(passes=frozenset({"Resolved"}), errors=frozenset({"harness crash"}))
    found = [read_mark(word, layout).passed for word in ("resolved", "passed", "anything")]
    assert [True, False, False] == found
    assert Mark(None, ErrorClass.INFRASTRUCTURE) == read_mark("Harness  crash", layout)


def test_the_class_of_an_unexplained_error_is_the_users_choice() -> None:
    """What broke without saying how may be the service's own doing."""
    layout = Layout(error_class="empty-run")
    assert ErrorClass.EMPTY_RUN == read_mark("error", layout).error_class
    assert ErrorClass.EMPTY_RUN == error_class_of("connection reset", layout)
    assert ErrorClass.TIMEOUT == error_class_of("Request timed out after 30 s", layout)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pass_at", math.nan),
        ("pass_at", "0.7"),
        ("error_class", "network"),
        ("delimiter", ",,"),
        ("delimiter", '"'),
        ("passes", frozenset({" "})),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(field: str, value: Any) -> None:
    """By the name of the field."""
    with pytest.raises(InvalidArgument) as caught:
        Layout(**{field: value})
    assert field == caught.value.argument


@given(st.one_of(st.text(max_size=30), st.integers(), st.floats(), st.booleans(), st.none()))
def test_every_value_is_read_or_refused(value: Any) -> None:
    """Nothing else happens to any of them."""
    for layout in (PLAIN, Layout(pass_at=0.5), Layout(passes=frozenset({"a"}))):
        try:
            mark = read_mark(value, layout)
        except Unread:
            continue
        assert mark.passed in (True, False, None)


def test_numbers_and_times_of_others_are_read_or_none() -> None:
    """A bool is not a number, and neither is an infinite one."""
    assert (None, None, 2.5) == (number(True), number("1e999"), number("2.5"))
    assert (None, 0.0) == (amount(-1), amount(0))
    assert (None, None, 7) == (count(1.5), count(1e300), count("7"))
    assert moment("2026-05-15T08:30:00Z") == moment("2026-05-15T10:30:00+02:00")
    assert moment("2026-05-15T08:30:00") == moment("2026-05-15T08:30:00Z")
    assert moment("soon") is None
