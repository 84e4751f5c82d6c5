"""Reports of a comparison: one answer in every format, and nothing in them that acts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from junitparser import Error, Failure, JUnitXml
from tests.pages import compared_arms as given
from tests.reports.test_json_report import Definitions
from tests.reports.test_junit import SCHEMA as JUNIT
from tests.reports.test_junit import cases, properties

import trialwise as tw
import trialwise.pages
from trialwise.errors import InvalidArgument
from trialwise.model.verdict import Decision
from trialwise.pages.comparison import read_comparison_schema
from trialwise.procedures.comparing.findings import ComparisonVerdict
from trialwise.procedures.comparison import COMPARISON
from trialwise.reports.formats import ReportNotWritten, list_answer_endings, match_answer_format
from trialwise.runtime.answers import Comparison
from trialwise.runtime.comparing import compare

Golden = Callable[[str, str], None]

SHIPPED = Path(trialwise.pages.__file__).parent / "comparison.schema.json"


def render(format_: str, count: int = 2) -> str:
    return Comparison(given.verdict(count), given.arms(count)).render(format_)


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
@pytest.mark.parametrize("ending", list_answer_endings())
def test_every_format_is_written_whole(ending: str, tmp_path: Path) -> None:
    """The ending of the file says which; the answer is in each."""
    verdict = given.verdict()
    path = Comparison(verdict, given.arms()).write(tmp_path / f"c{ending}")

    said = path.read_text("utf-8").replace("\u00a0", " ").replace("&minus;", "−")
    assert "10.0 points, between " in said
    assert [path] == list(tmp_path.iterdir())


def test_other_endings_are_refused_by_name(tmp_path: Path) -> None:
    """Before anything is rendered; a folder that cannot be written to is named, too."""
    with pytest.raises(InvalidArgument, match=r"end with \.html, \.md, \.xml, \.json, \.txt"):
        match_answer_format("c.pdf")
    with pytest.raises(InvalidArgument, match="be one of html, markdown"):
        Comparison(given.verdict(), given.arms()).render("pdf")
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportNotWritten):
        Comparison(given.verdict(), given.arms()).write(tmp_path / "file" / "c.md")


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
    text = Comparison(decided(Decision.FAIL, Decision.INCONCLUSIVE), given.arms()).render("junit")
    found = [case.result for suite in JUnitXml.fromstring(text.encode()) for case in suite]
    asked = decided(Decision.FAIL, Decision.PASS)
    reported = replace(
        asked, findings=(replace(asked.findings[0], advisory=("why",)), asked.findings[1])
    )
    green = JUnitXml.fromstring(Comparison(reported, given.arms()).render("junit").encode())

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


def test_the_shipped_schema_describes_the_verdict_as_it_is() -> None:
    """Every field of the verdict at the top, as its type hints say, and nothing else of ours.

    `TRIALWISE_GOLDEN=write` brings the shipped file up to date.
    """
    made = Definitions()
    made.of(ComparisonVerdict)
    whole = made.pop("ComparisonVerdict")
    shipped = read_comparison_schema()
    own = {name: one for name, one in shipped["$defs"].items() if name[0].islower()}
    ours = ["schema", "tool", "records", "inputs", "flips", "other_flips"]
    expected = shipped | {
        "required": [*ours, *whole["required"]],
        "properties": {name: shipped["properties"][name] for name in ours} | whole["properties"],
        "$defs": own | {name: made[name] for name in sorted(made)},
    }
    if os.environ.get("TRIALWISE_GOLDEN") == "write":
        SHIPPED.write_text(json.dumps(expected, indent=2) + "\n", encoding="utf-8")

    assert expected == json.loads(SHIPPED.read_text("utf-8"))
    Draft202012Validator.check_schema(expected)


@pytest.mark.parametrize("count", [2, 3])
def test_json_is_valid_by_the_shipped_schema(count: int) -> None:
    """A real verdict and one with every field; a key too many or too few is an error."""
    validator = Draft202012Validator(read_comparison_schema())
    arms = given.arms(count)
    plain = json.loads(Comparison(COMPARISON.decide(arms), arms).render("json"))
    alone = json.loads(Comparison(given.verdict(count), arms).render("json"))

    for report in (plain, alone):
        assert [] == [f"{one.json_path}: {one.message}" for one in validator.iter_errors(report)]
    for one in (plain, plain["flips"][0], plain["flips"][0]["control"], plain["inputs"][0]):
        one["extra"] = 1
        assert not validator.is_valid(plain)
        del one["extra"]
        key, value = one.popitem()
        assert not validator.is_valid(plain)
        one[key] = value
    assert validator.is_valid(plain)


# --- Whatever somebody else wrote -------------------------------------------------------------


FORMATS = ["html", "markdown", "junit", "json", "transparent"]


def test_secrets_are_taken_out_of_every_report() -> None:
    """As the runs keep their texts: inputs, replies and errors."""
    secret = "sk-live-0123456789abcdef"
    right = tw.Criterion("right", tw.contains("555"), at_least=0.5)
    control = tw.Contract("sums", lambda _question: f"554 {secret}", [right])
    found = compare(
        control,
        control.with_service(lambda _question: f"555 {secret}"),
        inputs=[f"with {secret}"],
        trials=20,
        seed=1,
        store=None,
        progress=False,
        redact=lambda text: text.replace(secret, "(secret)"),
    )

    for one in FORMATS:
        text = Comparison(found.verdict, found.arms).render(one)
        assert (one, False, True) == (one, secret in text, "(secret)" in text or one == "junit")


def test_a_page_of_long_replies_and_many_flips_stays_small() -> None:
    """Whatever the services said, a page opens at once and a comment is accepted."""
    right = tw.Criterion("right", tw.contains("555"), at_least=0.5)
    control = tw.Contract("sums", lambda _question, index: "old reply " * 900 + str(index), [right])
    found = compare(
        control,
        control.with_service(lambda _question, index: f"555 {index} " * 900),
        inputs=[f"question {k} " * 99 for k in range(150)],
        trials=150,
        seed=1,
        store=None,
        progress=False,
    )
    sizes = {
        one: len(Comparison(found.verdict, found.arms).render(one).encode()) for one in FORMATS
    }

    assert sizes["html"] < 600_000
    assert sizes["markdown"] < 10_000
    assert sizes["junit"] < 10_000


@pytest.mark.parametrize("format_", FORMATS[1:])
def test_nothing_hidden_is_written(format_: str) -> None:
    """No escape sequence, no change of writing direction, and XML stays XML."""
    arms = given.arms(3, hostile=True)
    text = Comparison(COMPARISON.decide(arms), arms).render(format_)

    assert not {"\u202e", "\x1b"} & {*text}
    if format_ == "junit":
        JUNIT.validate(text)
    if format_ == "json":
        assert given.HOSTILE in json.loads(text)["flips"][0]["arm"]
