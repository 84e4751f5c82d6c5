"""Comparing an answer with a reference: absolute tolerance, exact kinds, part by part."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.contrib.conformance.field_comparison import Difference, compare, largest_deviation
from trialwise.model.verdict import Decision
from trialwise.stats.result_types import Refusal


def differences(expected: Any, got: Any, tolerance: float = 0.0) -> list[Difference]:
    return list(compare("field", expected, got, tolerance))


finite = st.floats(-1e6, 1e6)
answers = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | finite | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(answers)
def test_an_answer_matches_itself(answer: Any) -> None:
    """Without any tolerance, whatever it is made of."""
    assert differences(answer, answer) == []
    assert largest_deviation(answer, answer) == 0


@given(expected=finite, got=finite, tolerance=st.floats(0, 10))
def test_numbers_agree_within_an_absolute_tolerance(
    expected: float, got: float, tolerance: float
) -> None:
    """Not a relative one: |expected − got| ≤ tolerance, the limit included."""
    agree = abs(expected - got) <= tolerance

    assert (differences(expected, got, tolerance) == []) is agree
    assert largest_deviation(expected, got) == abs(expected - got)


def test_the_tolerance_is_absolute_for_large_and_for_small_numbers() -> None:
    """1e-10 of a million is not a tolerance of 1e-4, and 7e-31 agrees with 0."""
    assert differences(1e6, 1e6 + 1e-4, 1e-10) != []
    assert differences(7.56e-31, 0.0, 1e-9) == []
    assert differences(0.5, 0.75, 0.25) == []
    assert differences(0.5, 0.7500001, 0.25) != []


@pytest.mark.parametrize(("expected", "got"), [(3, 3.0), (0, 0.0), (0.91, 0.91), (-0.0, 0.0)])
def test_whole_numbers_are_numbers(expected: float, got: float) -> None:
    """R does not tell 3 from 3.0."""
    assert differences(expected, got) == []


@pytest.mark.parametrize(
    ("expected", "got"),
    [(True, 1), (1, True), (False, 0), (0, False), (True, 1.0), (0.0, False), (True, False)],
)
def test_booleans_are_not_numbers(expected: Any, got: Any) -> None:
    """However generous the tolerance."""
    assert differences(expected, got, 10.0) == [
        Difference(field="field", expected=expected, got=got)
    ]
    assert largest_deviation(expected, got) == 0


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (None, 0),
        (0, None),
        (None, False),
        (None, ""),
        ("PASS", "FAIL"),
        ("PASS", "pass"),
        ("1", 1),
        (1, "1"),
        ([], None),
        ([], {}),
        ({}, []),
        ({"a": 1}, [1]),
        ([1], 1),
        (1, [1]),
    ],
)
def test_kinds_are_not_converted(expected: Any, got: Any) -> None:
    """Null, text, lists and mappings agree with their own kind only."""
    assert differences(expected, got, 10.0) == [
        Difference(field="field", expected=expected, got=got)
    ]


@pytest.mark.parametrize("got", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_finite_number_agrees_with_none(got: float) -> None:
    """NaN is within no tolerance."""
    assert differences(0.5, got, 1e9) != []


def test_named_values_are_their_text() -> None:
    """A decision and a refusal are what the references write."""
    assert differences("PASS", Decision.PASS) == []
    assert differences(["COMPLIANCE_INFEASIBLE"], [Refusal.COMPLIANCE_INFEASIBLE]) == []
    assert differences("PASS", Decision.FAIL) != []


def test_each_differing_part_is_found_and_named() -> None:
    """By key and by position, all of them."""
    expected = {"a": [1.0, 2.0, {"b": "x"}], "c": None, "d": 5}
    got = {"a": [1.0, 2.5, {"b": "y"}], "c": None, "d": 5}

    assert differences(expected, got, 0.1) == [
        Difference(field="field.a[1]", expected=2.0, got=2.5),
        Difference(field="field.a[2].b", expected="x", got="y"),
    ]
    assert largest_deviation(expected, got) == 0.5


def test_a_missing_part_differs_and_a_further_one_does_not() -> None:
    """Only what is expected binds; a null that is expected must be given."""
    assert differences({"a": 1}, {"a": 1, "more": 2}) == []
    (missing,) = differences({"a": 1, "b": None}, {"a": 1})

    assert (missing.field, missing.expected) == ("field.b", None)
    assert missing.got is not None


@pytest.mark.parametrize(
    ("expected", "got"), [([1, 2], [1]), ([1], [1, 2]), ([1, 2], []), ([], [1])]
)
def test_lists_agree_in_length(expected: list[int], got: list[int]) -> None:
    """A longer list is not an answer that says more."""
    assert differences(expected, got, 10.0) == [
        Difference(field="field", expected=expected, got=got)
    ]


def test_the_order_of_a_list_counts_and_of_a_mapping_does_not() -> None:
    """Structurally."""
    assert differences([1, 2], [2, 1]) != []
    assert differences({"a": 1, "b": 2}, {"b": 2, "a": 1}) == []
