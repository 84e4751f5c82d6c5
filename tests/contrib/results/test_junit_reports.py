"""JUnit reports: which tests are trials, and which files are refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trialwise.model.trial import ErrorClass, FailReason
from trialwise.outcomes.outcome_reading import read_outcomes
from trialwise.outcomes.outcome_rows import Outcomes, OutcomesUnreadable


def read(path: Path, text: str, **layout: Any) -> Outcomes:
    file = path / "report.xml"
    file.write_text(text, encoding="utf-8")
    return read_outcomes(file, **layout)


def case(name: str, inner: str = "", classname: str = "t", **attributes: str) -> str:
    more = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<testcase classname="{classname}" name="{name}" time="0.5"{more}>{inner}</testcase>'


def suite(*cases: str, tests: int | None = None, name: str = "pytest") -> str:
    count = "" if tests is None else f' tests="{tests}"'
    return f'<testsuite name="{name}"{count}>{"".join(cases)}</testsuite>'


FAILED = '<failure message="assert 554 == 555">E  assert</failure>'


def test_a_test_is_a_criterion_and_its_parameters_are_inputs(tmp_path: Path) -> None:
    """Its time is the latency, its failure the explanation."""
    outcomes = read(tmp_path, suite(case("books[a]"), case("books[b]", FAILED), case("asks")))
    assert ("t.books", "t.asks") == outcomes.criteria
    assert ("books[a]", "books[b]", "asks") == outcomes.inputs
    failed = outcomes.rows[1]
    assert (False, FailReason.CONDITION, 0.5) == (failed.passed, failed.reason, failed.latency_s)
    assert ("assert 554 == 555", "E  assert") == (failed.explanation, failed.evidence)


def test_repetitions_of_pytest_repeat_are_trials(tmp_path: Path) -> None:
    """With parameters of their own before them, which may end in numbers themselves."""
    names = [f"{before}{place}-3" for before in ("", "q-", "b-1-") for place in (1, 2, 3)]
    outcomes = read(tmp_path, suite(*(case(f"books[{name}]") for name in names)))
    assert ("books", "books[q]", "books[b-1]") == outcomes.inputs
    assert 9 == len({(row.input_id, row.trial) for row in outcomes.rows})


def test_numbers_that_are_parameters_stay_inputs(tmp_path: Path) -> None:
    """`3-4` alone is no repetition, and neither are numbers beyond their count."""
    outcomes = read(tmp_path, suite(case("adds[3-4]"), case("adds[9-4]"), case("adds[2-7]")))
    assert ("adds[3-4]", "adds[9-4]", "adds[2-7]") == outcomes.inputs


def test_repetitions_of_junit_5_are_trials(tmp_path: Path) -> None:
    """Whether the method's name stands before them or not."""
    whole = [case(f"books() :: repetition {n} of 2") for n in (1, 2)]
    bare = [case(f"repetition {n} of 2", classname="com.acme.Asks") for n in (1, 2)]
    outcomes = read(tmp_path, suite(*whole, *bare))
    assert ("books()", "Asks") == outcomes.inputs


def test_an_error_is_a_failure_of_infrastructure(tmp_path: Path) -> None:
    """There was nothing to judge; a timeout is the service's own."""
    outcomes = read(
        tmp_path,
        suite(
            case("a", '<error message="failed on setup: no network"/>'),
            case("b", '<error type="TimeoutError">timed out</error>'),
        ),
    )
    assert [FailReason.NO_VALUE] * 2 == [row.reason for row in outcomes.rows]
    classes = [row.error_class for row in outcomes.rows]
    assert [ErrorClass.INFRASTRUCTURE, ErrorClass.TIMEOUT] == classes
    assert ("Broken (<error>) and counted as failures: 2 tests.",) == outcomes.notes


def test_skipped_tests_are_no_trials(tmp_path: Path) -> None:
    """They are left out with a note; a report of nothing else has no outcome."""
    skipped = case("later", '<skipped message="later"/>')
    off = case("off", status="notrun")
    outcomes = read(tmp_path, suite(case("books"), skipped, off))
    assert (("t.books",), ("Skipped and not counted: 2 tests.",)) == (
        outcomes.criteria,
        outcomes.notes,
    )
    with pytest.raises(OutcomesUnreadable, match="all 1 tests were skipped"):
        read(tmp_path, suite(skipped))


def test_a_test_that_was_rerun_failed(tmp_path: Path) -> None:
    """pytest-rerunfailures writes failed runs as passed ones that the suite does not count."""
    outcomes = read(tmp_path, suite(case("books"), case("asks"), case("books"), tests=2))
    assert [("t.books", False), ("t.asks", True)] == [
        (row.criterion, row.passed) for row in outcomes.rows
    ]
    assert "Run again because they failed: 1 test." in outcomes.notes[0]
    assert "failed, and was run again once" == outcomes.rows[0].explanation


@pytest.mark.parametrize("mark", ["flakyFailure", "flakyError", "rerunFailure"])
def test_reruns_of_surefire_are_one_failed_trial(tmp_path: Path, mark: str) -> None:
    """However they ended."""
    before = FAILED if mark == "rerunFailure" else ""
    outcomes = read(tmp_path, suite(case("books", f"{before}<{mark}/><{mark}/>"), tests=1))
    [row] = outcomes.rows
    assert not row.passed
    assert row.explanation.startswith("failed, and was run again 2 times")


def test_a_test_that_the_suite_counts_each_time_is_repeated(tmp_path: Path) -> None:
    """Equal names are trials of one input, in one suite, in several, and in several files."""
    outcomes = read(tmp_path, suite(case("books"), case("books", FAILED), tests=2))
    assert [True, False] == [row.passed for row in outcomes.rows]
    whole = f"<testsuites>{suite(case('books[1-2]'), case('books[2-2]'), tests=2) * 2}</testsuites>"
    repeated = read(tmp_path, whole)
    assert (1, 4) == (len(repeated.inputs), len({row.trial for row in repeated.rows}))
    both = read_outcomes([tmp_path / "report.xml"] * 2)
    assert (1, 8) == (len(both.inputs), len({row.trial for row in both.rows}))


def test_a_failure_and_its_teardown_are_one_trial(tmp_path: Path) -> None:
    """pytest makes two entries of a failed test whose teardown fails too."""
    error = '<error message="failed on teardown with &quot;RuntimeError&quot;"/>'
    outcomes = read(tmp_path, suite(case("books", FAILED), case("books", error), tests=2))
    [row] = outcomes.rows
    assert FailReason.CONDITION == row.reason


@pytest.mark.parametrize(
    ("by", "criteria"),
    [("test", ("a.books", "b.books")), ("classname", ("a", "b")), ("suite", ("ci",))],
)
def test_classes_or_suites_may_be_the_criteria(
    tmp_path: Path, by: str, criteria: tuple[str, ...]
) -> None:
    """Their tests are then the inputs."""
    text = suite(case("books", classname="a"), case("books", classname="b"), name="ci")
    outcomes = read(tmp_path, text, criterion=by)
    assert criteria == outcomes.criteria
    assert (2 if by == "suite" else 1) == len(outcomes.inputs)


def test_another_criterion_is_refused(tmp_path: Path) -> None:
    """A report knows three."""
    with pytest.raises(OutcomesUnreadable, match="test, classname or suite"):
        read(tmp_path, suite(case("a")), criterion="file")


BOMB = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""
OUTSIDE = """<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite name="&x;"/>"""


@pytest.mark.parametrize("text", [BOMB, OUTSIDE])
def test_a_document_type_is_refused(tmp_path: Path, text: str) -> None:
    """Entities expand without bound, or read files: no report needs one."""
    with pytest.raises(OutcomesUnreadable, match="line 1: a report has no document type"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<testsuite><testcase", "line 1: XML is expected"),
        ("<html><body/></html>", "a report of <testsuites> is expected, not of <html>"),
        ("<testsuite>" * 60, "nested more than 40 deep"),
        (suite(), "at least one <testcase>"),
        ('<?xml version="1.0" encoding="klingon"?><testsuite/>', "XML is expected"),
        ("<testsuite>&nothing;</testsuite>", "XML is expected: undefined entity"),
    ],
)
def test_what_is_no_report_is_refused_with_the_line(
    tmp_path: Path, text: str, message: str
) -> None:
    """And with what was expected."""
    with pytest.raises(OutcomesUnreadable, match=message):
        read(tmp_path, text)


def test_a_test_case_without_a_suite_is_read(tmp_path: Path) -> None:
    """Some writers leave it out; a nested suite has cases of its own."""
    text = f"<testsuites>{case('a')}{suite(case('b'), suite(case('c')))}</testsuites>"
    assert ("t.a", "t.b", "t.c") == read(tmp_path, text).criteria


def test_long_outputs_are_cut(tmp_path: Path) -> None:
    """Of a failure the beginning is kept."""
    outcomes = read(tmp_path, suite(case("a", f"<failure>{'x' * 100_000}</failure>")))
    assert 4000 == len(outcomes.rows[0].evidence)


@pytest.mark.slow
def test_a_report_that_pytest_writes_is_read(tmp_path: Path) -> None:
    """With failures, errors, skips, parameters and classes, as pytest itself counts them."""
    (tmp_path / "test_agent.py").write_text(
        """
import pytest

@pytest.mark.parametrize("question", ["a", "b-1", "x [y]"])
def test_answers(question): assert question != "a"

@pytest.fixture
def broken(): raise RuntimeError("no network")

def test_needs(broken): pass

@pytest.mark.skip(reason="later")
def test_later(): pass

class TestBooking:
    def test_books(self): pass
""",
        encoding="utf-8",
    )
    report = tmp_path / "report.xml"
    arguments = ["-q", f"--junitxml={report}", "-p", "no:cacheprovider", "--rootdir=.", "."]
    command = [sys.executable, "-m", "pytest", *arguments]
    plain = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, env=plain)
    outcomes = read_outcomes(report)
    assert {
        "test_agent.test_answers": [False, True, True],
        "test_agent.test_needs": [False],
        "test_agent.TestBooking.test_books": [True],
    } == {
        name: [row.passed for row in outcomes.rows if row.criterion == name]
        for name in outcomes.criteria
    }
    assert "test_answers[x [y]]" in outcomes.inputs
    assert any("Skipped and not counted: 1 test." == note for note in outcomes.notes)
