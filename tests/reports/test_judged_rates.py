"""A judge's part in every report: what only advises, what its errors leave, what is missing."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from fractions import Fraction

import pytest
from tests.reports.run_records import (
    LABELS,
    UNMEASURED,
    advisory,
    criterion,
    judged,
    regression_inconclusive,
)
from tests.reports.short_reports import (
    render_json,
    render_junit,
    render_markdown,
    render_tap,
    result_lines,
)
from tests.revising import replace

from trialwise.model.run import RunRecord
from trialwise.model.verdict import Decision, Finding
from trialwise.pages.analysis import render_analysis
from trialwise.pages.judge_facts import (
    collect_judge_facts,
    explain_advisory_run,
    list_corrections,
    name_missing,
)
from trialwise.pages.run_report import render_html
from trialwise.stats.judged_decision import decide_judged
from trialwise.stats.result_types import Undefined

#: By hand: judged 406 of 500; of 211 that people pass 3 fail, of 29 that people fail 3 pass.
JUDGED = Fraction(406, 500)
RECTIFIED = JUDGED + Fraction(3 - 3, 240)
ROGAN_GLADEN = (JUDGED + Fraction(26, 29) - 1) / (Fraction(208, 211) + Fraction(26, 29) - 1)


def finding(record: RunRecord) -> Finding:
    """That of the judge."""
    return next(one for one in record.verdict.findings if one.criterion == "helpful")


def tree(record: RunRecord) -> ET.Element:
    page = re.sub(r"<(style|script)>.*?</\1>", "", render_html(record), flags=re.DOTALL)
    return ET.fromstring(page)


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_class(root: ET.Element, *names: str) -> Iterator[ET.Element]:
    return (one for one in root.iter() if {*names} <= {*one.attrib.get("class", "").split()})


def percent(rate: Fraction) -> str:
    return f"{float(100 * rate):.1f} %"


# --- The corrected rate -----------------------------------------------------------------------


def test_both_corrections_are_kept_and_named() -> None:
    """The rectifier's first, each with the rate that its formula gives by hand."""
    first, second = list_corrections(finding(judged()))

    assert ("rectifier", "rogan-gladen") == (first.correction, second.correction)
    for one, rate in ((first, RECTIFIED), (second, ROGAN_GLADEN)):
        assert not isinstance(one.corrected, Undefined)
        assert float(rate) == pytest.approx(one.corrected.rate, abs=1e-12)


@pytest.mark.parametrize("passed", [378, 386, 394, 402, 406])
def test_what_is_missing_suffices_for_both_corrections(passed: int) -> None:
    """With this many trials at the same rate either decides; what suffices for one would not do."""
    found = finding(judged(passed)).judged
    assert found is not None
    assert Decision.INCONCLUSIVE is found.decision
    several = [
        decide_judged(passed, 500, LABELS, 0.75, confidence=0.9, correction=one)
        for one in ("rectifier", "rogan-gladen")
    ]
    if any(one.open_because == "labels" for one in several):
        assert "labels" == found.open_because
        return
    assert isinstance(found.trials_needed, int)
    size = found.trials_needed
    assert size == max(one.trials_needed for one in several if isinstance(one.trials_needed, int))
    for one in ("rectifier", "rogan-gladen"):
        at = round(passed / 500 * size)
        again = decide_judged(at, size, LABELS, 0.75, confidence=0.9, correction=one)
        assert Decision.PASS is again.decision


def test_the_numbers_of_a_correction_are_facts() -> None:
    """Those of the correction that leaves it open, in JSON, JUnit and TAP alike."""
    record = judged()
    one = finding(record).judged
    assert one is not None
    assert not isinstance(one.corrected, Undefined)
    expected = {
        "advisory_because": None,
        "correction": one.correction,
        "corrected_rate": one.corrected.rate,
        "corrected_low": one.corrected.interval.low,
        "corrected_high": one.corrected.interval.high,
        "corrected_confidence": 0.9,
        "labels": 240,
        "open_because": "trials",
        "labels_needed": 240,
        "trials_needed": one.trials_needed,
    }
    entry, *_ = result_lines(record)
    assert expected.items() <= entry.facts.items()
    told = json.loads(render_json([record]))["runs"][0]["results"][0]["facts"]
    assert expected.items() <= told.items()
    properties = {
        one.attrib["name"]: one.attrib["value"]
        for one in ET.fromstring(render_junit([record]).encode()).iter("property")
    }
    assert ("240", "trials") == (properties["labels"], properties["open_because"])
    assert f"  trials_needed: {one.trials_needed}\n" in render_tap([record])


def test_without_a_judge_there_are_no_such_facts() -> None:
    """The names are there, so that every line has the same."""
    assert {None} == set(
        collect_judge_facts(regression_inconclusive().verdict.findings[0]).values()
    )


@pytest.mark.parametrize("passed", [406, 495])
def test_text_reports_show_both_corrections_and_the_labels(passed: int) -> None:
    """Whether or not they leave it open, with what is missing where they do."""
    record = judged(passed)
    one = finding(record)
    is_open = one.decision is Decision.INCONCLUSIVE
    markdown, text = (
        render_markdown([record]),
        " ".join(render_analysis(record.verdict, title="shop").split()),
    )

    assert is_open == (passed == 406)
    assert "corrected by 240 labels: " in markdown
    assert "(rectifier) and " in markdown
    assert "(Rogan–Gladen)" in markdown
    assert "JUDGE Labels: 240: of 211 that people pass the judge fails 3, of 29 that people" in text
    assert f"Corrected, rectifier: {passed / 500:.6f} [" in text
    assert "Corrected, Rogan–Gladen: " in text
    assert is_open == ("Missing: about" in text) == ("missing: about" in markdown)
    if is_open:
        assert percent(ROGAN_GLADEN) in markdown
        assert f"{float(ROGAN_GLADEN):.6f}" in text


CORRECTED = "Judge"


def test_the_page_draws_judged_and_corrected_intervals() -> None:
    """On one scale, with their labels, and in the criterion's block what is missing."""
    record = judged()
    root = tree(record)
    strips = [words(one) for one in by_class(root, "strip")]
    (block,) = (one for one in by_class(root, "part") if CORRECTED in map(words, one))

    assert 3 == len(strips)
    assert "500 trials" in strips[0]
    for strip, name, rate in zip(
        strips[1:], ("rectifier", "Rogan–Gladen"), (RECTIFIED, ROGAN_GLADEN), strict=True
    ):
        assert strip.startswith(f"corrected, {name}")
        assert percent(rate) in strip
        assert strip.endswith("by 240 labels")
    # The one shows it, the other does not: that leaves it open.
    assert 1 == len(list(by_class(root, "strip", "dashed", "pass")))
    assert 1 == len(list(by_class(root, "strip", "dashed", "open")))
    said = words(block)
    assert "Labels240: of 211 that people pass the judge fails 3" in said
    assert f"Missing{name_missing(finding(record))}" in said
    assert "INCONCLUSIVE at 75 %" in said
    assert "the judge's errors leave it open" in words(root)
    assert "no more, by the corrected rate" in words(root)


@pytest.mark.slow
def test_each_input_has_its_own_correction() -> None:
    """And all of them together have none: that of the first would pass for that of all."""
    record = judged(2_000, 2_400, each_input=True)
    found = finding(record)
    root = tree(record)

    assert None is found.judged is found.evidence.judged_otherwise
    assert 4 == sum(part.judged is not None for part in found.by_input)
    assert 4 == len(list(by_class(root, "strip", "dashed", "depth2")))
    assert not [one for one in by_class(root, "part") if CORRECTED in map(words, one)]
    criterion_line, *inputs = result_lines(record)[:5]
    assert criterion_line.facts["labels"] is None
    assert {240} == {one.facts["labels"] for one in inputs}


def test_what_is_missing_is_said_of_every_end() -> None:
    """Trials, labels, neither, both unknown, and corrections that contradict each other."""
    found = finding(judged())
    one = found.judged
    assert one is not None
    unknown = Undefined("nobody knows")

    def said(**changes: object) -> str:
        return name_missing(replace(found, judged=replace(one, **changes)))

    assert "about 700 trials in all" == said(trials_needed=700)
    assert "more trials" == said(trials_needed=unknown)
    labels = said(open_because="labels", labels_needed=900)
    assert "about 900 labels in all: trials alone would not do" == labels
    assert "neither labels nor trials" in said(open_because="labels", labels_needed=unknown)
    assert "contradict each other" in said(open_because="nothing")
    assert "" == said(decision=Decision.PASS) == name_missing(replace(found, judged=None))


# --- What only advises ------------------------------------------------------------------------


def test_what_only_advises_is_marked_on_the_page_with_the_reason() -> None:
    """In the table and in its block; its PASS is hollow and no part of the run's figures."""
    record = advisory(criterion("short", at_least=0.9))
    root = tree(record)
    (block,) = (one for one in by_class(root, "part") if "helpful" in one.attrib.get("id", ""))
    (banner,) = by_class(root, "banner")

    assert Decision.PASS is finding(record).decision is record.verdict.decision
    assert 1 == sum(words(one) == "advisory" for one in by_class(root, "pill"))
    assert 1 == sum(words(one) == "PASS (advisory)" for one in by_class(root, "badge"))
    assert f"Advisory, it takes no part in the verdict: {UNMEASURED}." in words(block)
    (evidence,) = block.findall("details")
    assert 1 == words(evidence).count(UNMEASURED)
    assert 1 == words(block).count(UNMEASURED) - words(evidence).count(UNMEASURED)
    assert [True, False] == [
        "hollow" in one.attrib["class"].split() for one in by_class(root, "strip")
    ]
    said = words(banner)
    assert "The criterion passed. 1 further criterion only advises." in said
    assert "criteria passed1 of 1advisory, passed1 of 1" in said
    assert "PASS at a true rate of 75 %" not in said
    assert "decisions together" not in said
    assert "advisory ones aside" in words(root)


def test_a_run_in_which_nothing_decides_says_so() -> None:
    """Everywhere where the run has a line of its own."""
    record = advisory()
    said = "No verdict: 1 criterion only advises."

    assert said == explain_advisory_run(record.verdict)
    assert said in render_markdown([record])
    assert said in render_tap([record])
    assert said in render_junit([record])
    assert said in words(tree(record))
    assert "" == explain_advisory_run(judged().verdict)
    assert "" == explain_advisory_run(advisory(criterion("short", at_least=0.9)).verdict)


def test_text_reports_say_what_only_advises_and_why() -> None:
    """A PASS, too: nobody should take it for one."""
    record = advisory()
    text = " ".join(render_analysis(record.verdict, title="shop").split())
    junit = ET.fromstring(render_junit([record]).encode())
    output = next(junit.iter("system-out")).text or ""

    assert "helpful (inferential, UNSPECIFIED, compliance, advisory)" in text
    assert "Weight: advisory: reported, and left out of the run's verdict" in text
    assert UNMEASURED in text
    assert output.startswith("ADVISORY PASS: shown, not enforced.")
    assert UNMEASURED in output
    assert "PASS (advisory)" in render_markdown([record])
    assert UNMEASURED in render_markdown([record])
    assert f'  advisory_because: "{UNMEASURED}"\n' in render_tap([record])
