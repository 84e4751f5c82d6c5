"""JUnit XML: well-formed whatever a service says, and red wherever the verdict is no PASS."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml
from tests.reports.short_reports import render_junit
from tests.revising import replace
from xmlschema import XMLSchema

from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Dimension

Made = Callable[[str], list[RunRecord]]
Runs = dict[str, RunRecord]

SCHEMA = XMLSchema(Path(__file__).with_name("junit.xsd"))

HOSTILE = [
    "\x1b[31m",
    "\x00",
    "]]>",
    "<!--",
    "&lt;",
    "\ud800",
    "\ufffe",
    "\r\n",
    "\u2028",
    '"',
    "'",
]
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(HOSTILE)).map("".join)


def cases(text: str) -> dict[str, ET.Element]:
    """The test cases of a document, by name."""
    return {case.attrib["name"]: case for case in ET.fromstring(text).iter("testcase")}


def properties(case: ET.Element) -> dict[str, str]:
    return {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}


def red(text: str) -> int:
    """Failures and errors, counted element by element."""
    root = ET.fromstring(text)
    return len(root.findall(".//failure")) + len(root.findall(".//error"))


def test_the_golden_document(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """Three suites: failures with their reasons, inputs one by one, a refusal."""
    golden("report.junit.xml", render_junit(suite, locations={"run-1": "runs/run-1"}))


def test_the_envelope_of_a_wrong_pass_is_the_largest_achieved_error(runs: Runs) -> None:
    """95 of 100 are needed at 0.9 and 99 at 0.95: the first passes wrongly more often."""

    def tail(fewest: int, rate: float) -> float:
        return sum(comb(100, k) * rate**k * (1 - rate) ** (100 - k) for k in range(fewest, 101))

    root = ET.fromstring(render_junit([runs["fail"]]))
    found = [
        float(one.attrib["value"])
        for one in root.iter("property")
        if one.attrib["name"] == "false_compliance_envelope"
    ]

    assert [pytest.approx(max(tail(95, 0.9), tail(99, 0.95)), rel=1e-9)] == found


def test_the_document_keeps_the_common_schema(marked: Made) -> None:
    """Elements in their order, counts that are counts, a moment that is one."""
    SCHEMA.validate(render_junit(marked("")))


def test_junitparser_reads_it(suite: list[RunRecord]) -> None:
    """The counts agree with the cases, and nothing is skipped."""
    document = JUnitXml.fromstring(render_junit(suite).encode())
    found = [(one.classname, one.name, one.result) for part in document for one in part]
    kinds = {f"{name}/{case}": [type(r) for r in result] for name, case, result in found}

    assert (9, 3, 2, 0) == (document.tests, document.failures, document.errors, document.skipped)
    assert [] == kinds["support-agent/valid-json"] == kinds["support-agent/latency p95"]
    assert [Failure] == kinds["support-agent/grounded"] == kinds["booking-agent/books [terrace]"]
    assert [Error] == kinds["booking-agent/books [cellar]"] == kinds["search/answers"]


def test_junit2html_reads_it(suite: list[RunRecord]) -> None:
    """A second reader: as many failed cases in each suite, and a page of them."""
    from junit2htmlreport.parser import Junit  # type: ignore[import-untyped]

    report = Junit(xmlstring=render_junit(suite))

    assert [1, 3, 1] == [len(one.failed()) for one in report.suites]
    assert "expected at most 24.9, found 252" in report.html()


def test_a_failure_carries_its_statement_its_reasons_and_their_evidence(runs: Runs) -> None:
    """What failed, how often, and one trial to look at."""
    failure = cases(render_junit([runs["fail"]]))["grounded"].find("failure")
    assert failure is not None
    text = failure.text or ""

    assert "FAIL" == failure.attrib["type"]
    assert failure.attrib["message"].startswith("grounded is FAIL: A rate above 0.9")
    assert "10 x condition, amount: expected at most 24.9, found 252" in text
    assert 'for example trial 3, input hours, seed 1003\n        found: "amount": 249' in text
    assert "2 x no-value, timeout: timed out" in text
    assert "Look at the amounts." in text


def test_a_case_carries_its_numbers(runs: Runs) -> None:
    """99 of 100 successes against 0.95: as the finding has them."""
    found = properties(cases(render_junit([runs["fail"]]))["valid-json"])
    finding = runs["fail"].verdict.findings[0]
    assert finding.p_value is not None

    assert {"decision": "PASS", "trials": "100", "rate": "0.99", "alpha": "0.05"}.items() <= (
        found.items()
    )
    assert ("0.9455", "0.9982") == (found["interval_low"], found["interval_high"])
    assert finding.p_value.value == float(found["p_value"])
    assert str(finding.cutoff) == found["cutoff"]
    assert "about these 2 inputs, not about others" == found["claim"]


def test_an_observational_case_claims_nothing_beyond_the_run(runs: Runs) -> None:
    """And is labelled for what it is."""
    found = properties(cases(render_junit([runs["fail"]]))["no-pii"])

    assert "NO FAILURE OBSERVED" == found["label"]
    assert "about the trials of this run and nothing else" == found["claim"]


def test_an_advisory_breach_is_green_and_says_so(runs: Runs) -> None:
    """A latency limit that does not bind."""
    case = cases(render_junit([runs["fail"]]))["latency p95"]

    assert case.find("failure") is None
    assert (case.findtext("system-out") or "").startswith("ADVISORY FAIL")


def test_the_same_breach_is_red_where_it_binds(runs: Runs) -> None:
    """Enforced, it is a failure like any other."""
    record = runs["fail"]
    enforced = replace(record, verdict=replace(record.verdict, advisory=frozenset()))

    assert cases(render_junit([enforced]))["latency p95"].find("failure") is not None


@pytest.mark.parametrize("name", ["fail", "inputs", "refused", "pass"])
def test_a_run_is_green_exactly_where_it_passed(runs: Runs, name: str) -> None:
    """No consumer of the file can come to another conclusion than the verdict."""
    assert (name == "pass") is (red(render_junit([runs[name]])) == 0)


@pytest.mark.parametrize("decision", [Decision.FAIL, Decision.INCONCLUSIVE, None])
def test_a_verdict_that_no_case_explains_has_a_case_of_its_own(
    runs: Runs, decision: Decision | None
) -> None:
    """A run that was aborted after its criteria had passed is not green."""
    record = runs["pass"]
    verdict = replace(record.verdict, decision=decision, aborted="The service went away.")
    text = render_junit([replace(record, verdict=verdict)])

    assert 1 == red(text)
    assert "The service went away." in (cases(text)["verdict"][1].text or "")


def test_with_everything_advisory_nothing_is_red(runs: Runs) -> None:
    """The verdict is PASS then, whatever the findings say."""
    record = runs["fail"]
    verdict = replace(record.verdict, decision=Decision.PASS, advisory=frozenset(Dimension))

    assert 0 == red(render_junit([replace(record, verdict=verdict)]))


def test_an_empty_suite_is_refused() -> None:
    """A file without a test is green in some servers."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_junit([])


@pytest.mark.slow
@given(TEXTS)
def test_no_character_makes_it_ill_formed(marked: Made, text: str) -> None:
    """Any text anywhere: the document parses, keeps its cases, and shows what was said."""
    records = marked(text)
    rendered = render_junit(records, name=text, locations={records[0].run_id: text})
    found = cases(rendered.encode("utf-8").decode("utf-8"))
    plain = cases(render_junit(marked("")))

    assert len(plain) == len(found)
    assert red(render_junit(marked(""))) == red(rendered)
    assert all(one.isprintable() or one == "\n" for one in rendered)
    if text.isprintable():
        assert f"valid-json{text}" in found


def test_an_escape_sequence_is_shown(marked: Made) -> None:
    """ESC is no character of XML 1.0, and a reply may hold it."""
    rendered = render_junit(marked("\x1b[31m\ud800\ufffe"))

    assert r"valid-json\x1b[31m\ud800\ufffe" in cases(rendered)


def test_the_same_records_give_the_same_text(marked: Made) -> None:
    """No clock, no host, no order of a set."""
    assert render_junit(marked("x")) == render_junit(marked("x"))
