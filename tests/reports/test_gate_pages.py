"""Gates in every report: one row for each gate of each cell, and which of them are heuristics."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tap.parser import Parser  # type: ignore[import-untyped]
from tests.reports.short_reports import (
    render_github,
    render_gitlab,
    render_junit,
    render_markdown,
    render_summary,
    render_tap,
    result_lines,
)
from xmlschema import XMLSchema

import trialwise as tw
from trialwise.documents.results import LineKind
from trialwise.model.claim import Input, Sampling
from trialwise.model.gate import Expectation, Metrics, Reliability, Stability
from trialwise.model.matcher import NumberSchema
from trialwise.model.run import RunRecord
from trialwise.pages.analysis import render_analysis
from trialwise.pages.gate_facts import sum_up_gate
from trialwise.pages.json_report import describe_report, read_report_schema
from trialwise.pages.results import list_attention
from trialwise.pages.run_report import render_html
from trialwise.pages.run_rules import render_rules
from trialwise.pages.suite_totals import pick_exit_code

HOSTILE = "</script><img src=x onerror=alert(1)> |@all \x1b[31m"
GATES: dict[str, Any] = {
    "reliability": Reliability(
        expect=(
            Expectation(
                target="reliability.graceful_degradation", matcher=NumberSchema(minimum=99)
            ),
            Expectation(target="reliability.runs", matcher=NumberSchema(minimum=3)),
        )
    ),
    "stability": Stability(),
    "metrics": Metrics(k=(1, 2, 6)),
}


def agent(calls: int) -> Any:
    def answer(question: str, index: int) -> tw.Reply:
        turns = [{"role": "assistant", "content": "x" * (9 + index % 3)}] * 2
        asked = [{"name": "search", "args": {"q": question}}] * calls
        trace = {"tool_calls": asked, "conversation": {"turns": turns, "tokens": {"total": 900}}}
        return tw.Reply(value="no" if index == 5 else "yes", details={"trace": trace})

    return answer


@cache
def cell(model: str, calls: int) -> RunRecord:
    """Twelve runs over two inputs, one of which fails once."""
    contract = tw.Contract(
        f"agent [{model}]",
        agent(calls),
        [tw.Criterion("answers", tw.contains("yes"), at_least=0.5)],
        sampling=Sampling(inputs=(Input(id="plain", value="a"), Input(id=HOSTILE, value="b"))),
        factors={"model": model},
        **GATES,
    )
    return tw.run(contract, trials=12, seed=1, store=None, progress=False).record


def suite() -> list[RunRecord]:
    """A cell that PASSes its stability gate, and one that loops."""
    return [cell("steady", 1), cell("looping", 4)]


def test_one_line_for_each_gate_of_each_cell() -> None:
    """In the contract's order, after the criteria; what asks nothing has none."""
    lines = [
        (entry.contract, entry.name, entry.status.value)
        for record in suite()
        for entry in result_lines(record)
        if entry.kind is LineKind.GATE
    ]

    assert [
        ("agent [steady]", "reliability", "FAIL"),
        ("agent [steady]", "stability", "PASS"),
        ("agent [looping]", "reliability", "FAIL"),
        ("agent [looping]", "stability", "FAIL"),
    ] == lines


def test_the_heuristics_are_named_in_a_note() -> None:
    """A count is none."""
    (gate, _) = [entry for entry in result_lines(suite()[0]) if entry.kind is LineKind.GATE]

    assert "no error rate" in gate.notes[0]
    assert gate.notes[0].endswith("Heuristic: reliability.graceful_degradation.")


def test_the_numbers_have_the_names_of_their_targets() -> None:
    """With the ends of their intervals, where there are any."""
    found = [entry.facts for entry in result_lines(suite()[1]) if entry.kind is LineKind.GATE]

    assert 6 == found[0]["reliability.runs"] == found[0]["runs"]
    assert {"reliability.graceful_degradation.low", "reliability.graceful_degradation.high"} <= (
        found[0].keys()
    )
    assert 0.25 == found[1]["stability.weakest_score"]
    assert "stability.weakest_score.low" not in found[1]
    assert "stability.weakest_score" == found[1]["heuristics"]


def test_a_failed_gate_is_exit_code_1() -> None:
    """Though every criterion passed."""
    record = cell("looping", 4)

    assert "PASS" == record.verdict.functional_decision
    assert 1 == pick_exit_code([record.verdict])


def test_the_json_report_is_valid() -> None:
    """And holds the evidence in full, under the verdict."""
    report = describe_report(suite())
    errors = [one.message for one in Draft202012Validator(read_report_schema()).iter_errors(report)]
    gates = report["runs"][0]["verdict"]["gates"]

    assert [] == errors
    assert ["reliability", "stability", "metrics"] == [one["gate"] for one in gates]
    assert [1, 2, 6] == [row["k"] for row in gates[2]["evidence"]["pass_k"]]


def test_the_junit_report_is_valid_and_red() -> None:
    """A failed gate is a failure of its own test case."""
    text = render_junit(suite())
    XMLSchema(Path(__file__).with_name("junit.xsd")).validate(text)
    failed = [
        (case.attrib["classname"], case.attrib["name"])
        for case in ET.fromstring(text).iter("testcase")
        if case.find("failure") is not None
    ]

    assert [
        ("agent [steady]", "reliability"),
        ("agent [looping]", "reliability"),
        ("agent [looping]", "stability"),
    ] == failed


def test_the_tap_report_has_a_point_for_each() -> None:
    """Not skipped, and with its numbers."""
    text = render_tap(suite())
    points = [line for line in Parser().parse_text(text) if line.category == "test"]

    assert [True, False, True, True, False, False] == [point.ok for point in points]
    assert "stability.weakest_score: 0.25" in text


def test_the_markdown_has_a_row_for_each() -> None:
    """With what was asked; nothing in it is acted on."""
    text = render_markdown(suite())
    rows = [line for line in text.splitlines() if line.startswith(("| stability", "| reliability"))]

    assert 4 == len(rows)
    assert "misses at least 0.5" in rows[3]
    assert "<img" not in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_summary_has_a_line_for_each(width: int) -> None:
    """The number, what was asked of it, and that it is a heuristic."""
    from trialwise.renderers.capabilities import Capabilities

    text = render_summary(
        [record.verdict for record in suite()], capabilities=Capabilities(width=width)
    )
    told = " ".join(text.split())

    assert 2 == text.count("stability") - text.count("stability.") - text.count("stability:")
    assert "0.25, at least 0.5" in told
    assert "heuristic)" in told
    assert "REPORTED" in text
    assert "both contracts failed" in told


def test_one_contract_counts_its_gates() -> None:
    """One criterion and two gates."""
    assert "2 of 3 requirements failed" in render_summary([cell("looping", 4).verdict])
    assert "1 of 3 requirements failed" in render_summary([cell("steady", 1).verdict])


def test_what_failed_needs_attention() -> None:
    """And what its interval does not support."""
    notes = list_attention(cell("looping", 4).verdict)

    assert any("stability.weakest_score 0.25 misses at least 0.5" in one for one in notes)


def test_annotations_name_the_gate() -> None:
    """As an error beside the suite, and as an issue of its own kind."""
    assert "agent [looping]%3A stability is FAIL" in render_github(suite())
    assert "trialwise/gate" in render_gitlab(suite())


def test_the_analysis_tells_basis_and_interval_of_every_number() -> None:
    """And the runs behind them, the least steady first."""
    text = render_analysis(cell("looping", 4).verdict, title="agent")

    for part in (
        "GATE: stability", "A gate holds a number against a limit and has no error rate",
        "heuristic", "further runs may be worse", "it need not fall", "naive", "plug-in",
        "decay curve: plug-in pass^k of the first k runs",
        "381 runs (Wilson; 385",
    ):  # fmt: skip
        assert part in " ".join(text.split()), part
    assert all(len(line) <= 80 for line in text.splitlines())
    assert render_analysis(cell("steady", 1).verdict, title="x", unicode=False).isascii()


def test_the_rules_are_told_before_the_first_trial() -> None:
    """With the word that they have no error rate."""
    text = " ".join(render_rules(cell("steady", 1).plan).split())

    assert "stability, without an error rate: stability.weakest_score at least 0.5." in text


def test_the_page_shows_every_gate_with_its_runs() -> None:
    """Well-formed, escaped, with the decay curve and the least steady run first."""
    page = render_html(suite())
    root = ET.fromstring(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))
    told = " ".join(" ".join(root.itertext()).split())

    assert "<img src=x" not in page
    assert 2 == page.count("Reliability decay curve</h")
    assert "Runs, the least steady first" in told
    assert "pass@k and pass^k over inputs" in told
    assert "2 of 3 criteria and gates failed: gate reliability, gate stability." in told
    assert "A gate that passes shows nothing at any confidence" in told
    identities = re.findall(r'id="([^"]+)"', page)
    assert len(identities) == len(set(identities))


def test_a_page_of_many_runs_lists_the_worst_and_counts_the_rest() -> None:
    """Two hundred runs, of which the first page of rows is shown."""
    contract = tw.Contract(
        "many",
        agent(2),
        [tw.Criterion("answers", tw.contains("yes"), at_least=0.5)],
        sampling=[f"question {number}" for number in range(60)],
        **(GATES | {"metrics": Metrics()}),
    )
    record = tw.run(contract, trials=240, seed=1, store=None, progress=False).record
    page = render_html(record)

    assert "40 further inputs not listed" in page
    assert "40 further runs not listed" in page
    assert len(page.encode()) < 1_000_000


def test_blocks_that_count_other_runs_as_passed_say_so_beside_pass_hat_k() -> None:
    """Of two blocks on one page, one counts every criterion and the other only `answers`."""
    contract = tw.Contract(
        "agent",
        lambda _, index: "yes" if index % 2 else "yes, at length",
        [
            tw.Criterion("answers", tw.contains("yes"), report_only=True),
            tw.Criterion("short", tw.equals("yes"), report_only=True),
        ],
        sampling=["a"],
        reliability=Reliability(),
        metrics=Metrics(criterion="answers"),
    )
    record = tw.run(contract, trials=6, seed=1, store=None, progress=False).record
    every, some = (sum_up_gate(one) for one in record.verdict.gates)

    assert "pass^6 0;" in every
    assert "pass^6 of answers 1" in some
    assert "pass@k and pass^k of answers over inputs" in " ".join(render_html([record]).split())
