"""JSON lines and tables: which field is what, and what is said of a file that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.model.reply import Usage
from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import read_outcomes
from trialwise.outcomes.outcome_rows import Outcomes, OutcomesUnreadable


def lines(path: Path, *records: Any) -> Path:
    file = path / "runs.jsonl"
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return file


def table(path: Path, text: str, name: str = "runs.csv") -> Path:
    file = path / name
    file.write_bytes(text.encode("utf-8"))
    return file


def problems_of(path: Path, **layout: Any) -> tuple[str, ...]:
    with pytest.raises(OutcomesUnreadable) as caught:
        read_outcomes(path, **layout)
    assert str(path) == caught.value.path
    return caught.value.problems


def test_a_line_is_a_trial_with_everything_it_took(tmp_path: Path) -> None:
    """Under the usual names nothing has to be said about the fields."""
    record = {
        "input": "q1",
        "passed": True,
        "epoch": 3,
        "latency_ms": 812,
        "cost_usd": 0.0004,
        "input_tokens": 8,
        "output_tokens": 4,
        "started_at": "1970-01-01T00:01:00Z",
    }
    outcomes = read_outcomes(lines(tmp_path, record))
    [row] = outcomes.rows
    assert ("q1", "passed", True, "3") == (row.input_id, row.criterion, row.passed, row.trial)
    assert (0.812, 0.0004, 60.0) == (row.latency_s, row.cost_usd, row.order)
    assert Usage(input_tokens=8, output_tokens=4) == row.usage
    assert ("runs", "jsonl", ()) == (outcomes.name, outcomes.format, outcomes.notes)


def test_several_result_fields_are_criteria_of_one_trial(tmp_path: Path) -> None:
    """A field inside another is named by the way to it."""
    record = {"id": "q1", "polite": True, "marks": {"grounded": {"value": 0.4}}}
    path = lines(tmp_path, record)
    outcomes = read_outcomes(path, result=["polite", "marks.grounded.value"], pass_at=0.5)
    assert ("polite", "marks.grounded.value") == outcomes.criteria
    assert [True, False] == [row.passed for row in outcomes.rows]


def test_a_field_may_name_the_criterion(tmp_path: Path) -> None:
    """Then every criterion has a line of its own."""
    path = table(tmp_path, "input,criterion,passed\nq1,polite,1\nq1,grounded,0\nq1,polite,1\n")
    outcomes = read_outcomes(path)
    assert ["polite", "grounded", "polite"] == [row.criterion for row in outcomes.rows]


def test_a_missing_result_is_a_failure_without_a_value(tmp_path: Path) -> None:
    """With an error it is one of infrastructure, or a timeout where the error says so."""
    path = lines(
        tmp_path,
        {"input": "a", "passed": None},
        {"input": "a"},
        {"input": "a", "passed": None, "error": "connection reset"},
        {"input": "a", "passed": None, "error": "timed out"},
        {"input": "a", "passed": None, "error_class": "pre-validation"},
        {"input": "a", "passed": False, "error": "wrong answer"},
    )
    rows = read_outcomes(path).rows
    assert not any(row.passed for row in rows)
    assert [FailReason.NO_VALUE] * 5 + [FailReason.CONDITION] == [row.reason for row in rows]
    assert [
        ErrorClass.NONE,
        ErrorClass.NONE,
        ErrorClass.INFRASTRUCTURE,
        ErrorClass.TIMEOUT,
        ErrorClass.PRE_VALIDATION,
        ErrorClass.NONE,
    ] == [row.error_class for row in rows]
    assert "wrong answer" == rows[-1].explanation


def test_skipped_rows_are_left_out_and_counted_in_a_note(tmp_path: Path) -> None:
    """A reader of the verdict learns how many."""
    path = table(tmp_path, "id,status\na,passed\nb,skipped\nc,failed\nd,skipped\n")
    outcomes = read_outcomes(path)
    assert ["a", "c"] == [row.input_id for row in outcomes.rows]
    assert ("Skipped and not counted: 2 outcomes.",) == outcomes.notes


def test_without_an_input_all_rows_are_trials_of_one(tmp_path: Path) -> None:
    """The claim that follows is the narrowest, and a note says so."""
    outcomes = read_outcomes(lines(tmp_path, {"passed": True}, {"passed": False}))
    assert 1 == len(outcomes.inputs)
    assert "No field names the input" in outcomes.notes[0]


def test_long_inputs_are_shortened_and_stay_different(tmp_path: Path) -> None:
    """A prompt may be an input's name: its beginning is shown, a fingerprint tells it apart."""
    long = "x" * 5000
    path = lines(tmp_path, {"input": long, "ok": 1}, {"input": long + "y", "ok": 1})
    first, second = read_outcomes(path).inputs
    assert first != second
    assert max(len(first), len(second)) <= 120


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_of_a_table_is_told_by_its_header(tmp_path: Path, delimiter: str) -> None:
    """Quotes, a byte order mark and Windows line ends change nothing."""
    text = (
        f'\ufeffinput{delimiter}passed\r\n"q{delimiter}1"{delimiter}yes\r\n\r\nq2{delimiter}no\r\n'
    )
    outcomes = read_outcomes(table(tmp_path, text))
    assert ((f"q{delimiter}1", "q2"), [True, False]) == (
        outcomes.inputs,
        [row.passed for row in outcomes.rows],
    )


def test_a_list_of_objects_is_read_like_lines(tmp_path: Path) -> None:
    """The place of a problem is then the item's."""
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([{"id": 1, "passed": True}, {"id": 2, "passed": "maybe"}]))
    [problem] = problems_of(file)
    assert problem.startswith("item 2: `passed`: 'maybe' is neither passed nor failed")


def test_every_problem_names_its_line_and_what_was_expected(tmp_path: Path) -> None:
    """All of them at once, up to ten."""
    text = '{"id": 1, "passed": true}\nnot json\n[1]\n\n{"id": "", "passed": true}'
    file = tmp_path / "runs.jsonl"
    file.write_text(text)
    found = problems_of(file)
    assert ["line 2", "line 3"] == [one.split(":")[0] for one in found]
    assert all("a JSON object is expected" in one for one in found)
    file.write_text("\n".join(["x"] * 50))
    assert 10 == len(problems_of(file))


@pytest.mark.parametrize(
    ("record", "place"),
    [
        ({"id": "", "passed": 1}, "`id` must name the input"),
        ({"id": 1, "passed": 1, "latency_s": -1}, "`latency_s` must be a number of at least 0"),
        ({"id": 1, "passed": 1, "input_tokens": 1.5}, "`input_tokens` must be a whole number"),
        ({"id": 1, "passed": 1, "timestamp": "soon"}, "`timestamp` must be a number or a time"),
        ({"id": 1, "passed": 1, "criterion": None}, "`criterion` must name the criterion"),
    ],
)
def test_a_field_that_cannot_be_read_is_a_problem(
    tmp_path: Path, record: dict[str, Any], place: str
) -> None:
    """Nothing is read halfway."""
    [problem] = problems_of(lines(tmp_path, record))
    assert problem.startswith(f"line 1: {place}")


def test_a_field_that_is_not_there_is_a_problem_with_those_that_are(tmp_path: Path) -> None:
    """A misspelt column would otherwise make every trial fail."""
    path = table(tmp_path, "question,grade\na,1\n")
    assert "no field is a result: there are `question`, `grade`" in problems_of(path)[0]
    [problem] = problems_of(path, result="grades")
    assert "no record has a field `grades`; there are `question`, `grade`" == problem


def test_a_table_that_is_none_is_refused_with_the_line(tmp_path: Path) -> None:
    """Short rows, columns of one name, an open quote, no row at all."""
    assert problems_of(table(tmp_path, "id,passed\na\n"))[0].startswith("line 2: 2 fields")
    assert "two columns are called `id`" in problems_of(table(tmp_path, "id,id,ok\n1,1,1"))[0]
    assert problems_of(table(tmp_path, 'id,ok\na,1\n"b,1\n'))[0].startswith("line 3:")
    assert "at least one line" in problems_of(table(tmp_path, "id,ok\n"))[0]


def test_bytes_that_are_not_text_are_refused_with_the_line(tmp_path: Path) -> None:
    """UTF-8 is expected."""
    file = tmp_path / "runs.csv"
    file.write_bytes(b"id,ok\na,1\n\xff,1\n")
    assert ("line 3: UTF-8 is expected, found byte 0xff",) == problems_of(file)


def test_several_criteria_need_no_field_that_names_them(tmp_path: Path) -> None:
    """Two ways of saying it at once are a contradiction."""
    path = lines(tmp_path, {"id": 1, "criterion": "a", "x": 1, "y": 1})
    assert "several results" in problems_of(path, result=["x", "y"])[0]


FIELD = st.sampled_from(["id", "passed", "criterion", "epoch", "latency_s", "error", "order"])
VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(FIELD, VALUE, max_size=5), max_size=4))
def test_any_records_are_outcomes_or_a_clear_error(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]
) -> None:
    """Never a traceback."""
    path = lines(tmp_path_factory.mktemp("fuzz"), *records)
    try:
        outcomes = read_outcomes(path)
    except OutcomesUnreadable:
        return
    assert isinstance(outcomes, Outcomes)
    assert all(row.input_id.strip() and row.criterion.strip() for row in outcomes.rows)
