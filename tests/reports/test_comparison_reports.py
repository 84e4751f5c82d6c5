"""Reports of a comparison: one answer in every format, and nothing in them that acts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml
from tests.pages import compared_arms as given
from tests.reports.test_junit import SCHEMA as JUNIT
from tests.reports.test_junit import cases, properties

from trialwise.errors import InvalidArgument
from trialwise.model.verdict import Decision
from trialwise.procedures.comparing.comparison_findings import ComparisonVerdict
from trialwise.procedures.comparing.run_comparison import compare_records
from trialwise.reports.comparison_reports import (
    list_comparison_endings,
    match_comparison_format,
    render_comparison,
    write_comparison,
)
from trialwise.reports.report_files import ReportNotWritten

Golden = Callable[[str, str], None]


def render(format_: str, count: int = 2) -> str:
    return render_comparison(given.verdict(count), given.arms(count), format_)


@pytest.mark.parametrize(
    ("format_", "name", "count"),
    [
        ("markdown", "comparison.md", 2),
        ("markdown", "comparison-three-arms.md", 3),
        ("junit", "comparison.junit.xml", 2),
        ("transparent", "comparison.txt", 2),
    ],
)
def test_the_golden_reports(format_: str, name: str, count: int, golden: Golden) -> None:
    """As people and servers get them."""
    golden(name, render(format_, count))


@pytest.mark.requirement(
    "statistical-ci lessons",
    "A comparison is reported for people and for programs.",
    "`trialwise compare -o comparison.html|.md|.xml|.json|.txt`; `Comparison.write`",
)
@pytest.mark.parametrize("ending", list_comparison_endings())
def test_every_format_is_written_whole(ending: str, tmp_path: Path) -> None:
    """The ending of the file says which; the answer is in each."""
    verdict = given.verdict()
    path = write_comparison(tmp_path / f"c{ending}", verdict, given.arms())

    said = path.read_text("utf-8").replace("\u00a0", " ").replace("&minus;", "−")
    assert "10.0 points, between " in said
    assert [path] == list(tmp_path.iterdir())


def test_other_endings_are_refused_by_name(tmp_path: Path) -> None:
    """Before anything is rendered; a folder that cannot be written to is named, too."""
    with pytest.raises(InvalidArgument, match=r"end with \.html, \.md, \.xml, \.json, \.txt"):
        match_comparison_format("c.pdf")
    with pytest.raises(InvalidArgument, match="be one of html, markdown"):
        render_comparison(given.verdict(), (), "pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportNotWritten):
        write_comparison(tmp_path / "file" / "c.md", given.verdict())


# --- JUnit ------------------------------------------------------------------------------------


def decided(*decisions: Decision) -> ComparisonVerdict:
    asked = given.verdict()
    pairs = zip(asked.findings, decisions, strict=True)
    return replace(asked, findings=tuple(replace(one, decision=made) for one, made in pairs))


def test_each_criterion_and_candidate_is_a_test_case() -> None:
    """Two candidates and two criteria: two suites of two cases, valid by the usual schema."""
    text = render("junit", 3)
    root = ET.fromstring(text)

    JUNIT.validate(text)
    assert ["prompt-b against prompt-a", "prompt-c against prompt-a"] == [
        one.attrib["name"] for one in root.iter("testsuite")
    ]
    assert 4 == len(root.findall(".//testcase"))


def test_a_case_is_as_red_as_a_run_would_be() -> None:
    """FAIL is a failure, INCONCLUSIVE an error, PASS neither; what only reports is no failure."""
    text = render_comparison(decided(Decision.FAIL, Decision.INCONCLUSIVE), (), "junit")
    found = [case.result for suite in JUnitXml.fromstring(text.encode()) for case in suite]
    asked = decided(Decision.FAIL, Decision.PASS)
    reported = replace(
        asked, findings=(replace(asked.findings[0], advisory=("why",)), asked.findings[1])
    )
    green = JUnitXml.fromstring(render_comparison(reported, (), "junit").encode())

    assert [Failure, Error] == [type(one[0]) for one in found]
    assert (0, 0) == (green.failures, green.errors)


def test_a_case_holds_the_numbers_and_the_pairs_that_were_lost() -> None:
    """Under names that are not abbreviated."""
    case = cases(render("junit"))["right"]
    numbers = properties(case)

    assert ("0.1", "-0.062", "0.255") == tuple(
        numbers[one] for one in ("difference", "low", "high")
    )
    assert ("4", "8") == (numbers["only_control_passed"], numbers["only_candidate_passed"])
    out = case.findtext("system-out") or ""
    assert "pair 3, input 4: prompt-b failed right" in out or "pair 3, input" in out


# --- JSON -------------------------------------------------------------------------------------


def test_json_holds_the_verdict_and_every_flip() -> None:
    """With both replies and the reason of the failure."""
    plain = json.loads(render("json"))
    first = plain["flips"][0]

    assert ("trialwise.comparison/1", "INCONCLUSIVE") == (plain["schema"], plain["decision"])
    assert given.verdict().statement == plain["statement"]
    assert [*given.LOST, *given.WON] == [one["control"]["trial"] for one in plain["flips"]]
    assert (["right"], []) == (first["lost"], first["won"])
    assert "The answer is 555, I think." == first["control"]["reply"]
    assert {"right": "'555' is not in the reply"} == first["candidate"]["failed"]
    assert 0 == plain["other_flips"]
    total = sum(one["arms"]["prompt-a"]["trials"] for one in plain["inputs"])
    assert 2 * given.TRIALS == total


# --- Whatever somebody else wrote -------------------------------------------------------------


@pytest.mark.parametrize("format_", ["markdown", "junit", "json", "transparent"])
def test_nothing_hidden_is_written(format_: str) -> None:
    """No escape sequence, no change of writing direction, and XML stays XML."""
    arms = given.arms(3, hostile=True)
    text = render_comparison(compare_records(arms), arms, format_)

    assert not {"\u202e", "\x1b"} & {*text}
    if format_ == "junit":
        JUNIT.validate(text)
    if format_ == "json":
        assert given.HOSTILE in json.loads(text)["flips"][0]["arm"]
