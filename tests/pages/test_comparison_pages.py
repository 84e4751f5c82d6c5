"""Comparisons as people see them: the answer, the plot, the flips, the inputs and the arms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import comb
from typing import Any

import pytest
from tests.pages import compared_arms as given
from tests.pages.test_notebook_summary import Reader

import trialwise as tw
from trialwise.documents.blocks import (
    Block,
    Cards,
    Compared,
    Document,
    Prose,
    Section,
    Table,
    Value,
)
from trialwise.documents.charts import Strips
from trialwise.model.run import Trials
from trialwise.model.trial import ErrorClass
from trialwise.model.verdict import Decision
from trialwise.pages.comparison import build_comparison_page, summarize_comparison
from trialwise.pages.comparison_arms import list_factors
from trialwise.pages.comparison_differences import build_forest
from trialwise.pages.comparison_flips import list_flips
from trialwise.pages.comparison_inputs import count_inputs
from trialwise.procedures.comparing.amount_types import PreferenceFinding
from trialwise.procedures.comparing.findings import ArmRun, ComparisonVerdict, Contrast
from trialwise.procedures.comparing.words import name_outcome
from trialwise.procedures.comparison import COMPARISON
from trialwise.renderers.capabilities import Capabilities
from trialwise.renderers.document_markdown import MOST_BYTES, render_document_markdown
from trialwise.renderers.document_text import render_document_text
from trialwise.renderers.html.page_frame import render_document, render_fragment
from trialwise.stats.result_types import Interval


def page(count: int = 2) -> Document:
    return build_comparison_page(given.verdict(count), given.arms(count))


def blocks_of(part: Any) -> Iterator[Block]:
    """Every block of a document, from top to bottom."""
    for one in getattr(part, "blocks", ()):
        yield one
        yield from blocks_of(one)


def section(document: Document, heading: str) -> Section:
    (found,) = (
        one for one in document.blocks if isinstance(one, Section) and one.heading == heading
    )
    return found


def cards(document: Document) -> Cards:
    (found,) = (one for one in blocks_of(section(document, "Flips")) if isinstance(one, Cards))
    return found


# --- The answer -------------------------------------------------------------------------------


def test_the_answer_is_the_first_thing_everywhere() -> None:
    """In a terminal, a page, a comment and a notebook; every fact has a label."""
    verdict, arms = given.verdict(), given.arms()
    brief = summarize_comparison(verdict, arms)
    text = render_document_text(brief, Capabilities(unicode=True))
    html = Reader(render_fragment(summarize_comparison(verdict, arms, is_pictured=True)))

    assert text.startswith(f"INCONCLUSIVE  {verdict.statement}\n")
    assert verdict.statement.split(":")[0] in render_document_markdown(brief).splitlines()[1]
    assert f"INCONCLUSIVE sums: prompt-b against prompt-a {verdict.statement}" in html.words
    words = Reader(render_document(page())).words.replace("\u00a0", " ")
    assert f"Verdict: INCONCLUSIVE {verdict.statement}" in words
    assert all(term for document in (brief, page()) for term, _ in document.facts)


# --- The plot ---------------------------------------------------------------------------------


def forest(verdict: ComparisonVerdict) -> Strips:
    found = build_forest(verdict)
    assert found is not None
    return found


def test_the_forest_has_a_row_for_each_criterion_and_candidate_as_declared() -> None:
    """With two candidates, those of one criterion stand below each other."""
    assert ["right", "polite"] == [one.name for one in forest(given.verdict()).rows]
    assert ["right · prompt-b", "right · prompt-c", "polite · prompt-b", "polite · prompt-c"] == [
        one.name for one in forest(given.verdict(3)).rows
    ]


@pytest.mark.parametrize(
    ("question", "margin", "lines"),
    [
        ("different", 0.0, ()),
        ("better", 0.0, ()),
        ("better", 0.05, (0.05,)),
        ("not-worse", 0.05, (-0.05,)),
        ("equivalent", 0.05, (-0.05, 0.05)),
    ],
)
def test_the_margins_of_the_question_are_drawn(
    question: Any, margin: float, lines: tuple[float, ...]
) -> None:
    """Beside the line at no difference, and within the scale."""
    asked = given.verdict()
    findings = tuple(replace(one, question=question, margin=margin) for one in asked.findings)
    found = forest(replace(asked, findings=findings))

    assert {lines} == {one.strip.others for one in found.rows}
    assert {0.0} == {one.strip.need for one in found.rows}
    assert -found.axis.low == found.axis.high >= 0.255
    assert ("margin" in found.summary) is bool(lines)


def test_a_criterion_without_a_difference_is_counted_and_not_drawn() -> None:
    """An arm that does not know it has no rate."""
    asked = given.verdict()
    first, second = asked.findings
    missing = replace(second, candidate=None, difference=None, interval=None, pairs=None)
    found = forest(replace(asked, findings=(first, missing)))

    assert ["right"] == [one.name for one in found.rows]
    assert "1 row not drawn" in found.summary
    assert build_forest(replace(asked, findings=(missing,))) is None


@pytest.mark.parametrize(
    ("question", "decision", "word"),
    [
        ("different", Decision.PASS, "better"),
        ("different", Decision.FAIL, "worse"),
        ("better", Decision.FAIL, "not better"),
        ("not-worse", Decision.PASS, "not worse"),
        ("not-worse", Decision.FAIL, "worse"),
        ("equivalent", Decision.PASS, "equivalent"),
        ("equivalent", Decision.FAIL, "not equivalent"),
        ("equivalent", Decision.INCONCLUSIVE, "not shown"),
        ("different", Decision.INCONCLUSIVE, "not told apart"),
    ],
)
def test_the_words_answer_the_question(question: Any, decision: Decision, word: str) -> None:
    """PASS says something else where something else was asked."""
    finding = replace(given.verdict().findings[0], question=question, decision=decision)

    assert word == name_outcome(finding)


def test_more_than_was_asked_is_named() -> None:
    """A candidate that is shown to be better is not only not worse."""
    finding = given.verdict().findings[0]

    assert "better" == name_outcome(replace(finding, contrast=Contrast.BETTER))


# --- Flips ------------------------------------------------------------------------------------


def test_flips_are_the_discordant_pairs_and_losses_come_first() -> None:
    """Each once, in the order of pairs, and as many as the test counts."""
    arms = given.arms()
    flips = list_flips(given.verdict(), arms)
    counted = COMPARISON.decide(arms).findings[0].pairs

    assert [*given.LOST, *given.WON] == [one.pair.control.index for one in flips]
    assert [("right",)] * 4 + [()] * 8 == [one.lost for one in flips]
    assert counted is not None
    assert (counted.only_a, counted.only_b) == (len(given.LOST), len(given.WON))


def test_a_flip_shows_both_replies_and_why_one_failed() -> None:
    """The words in which the replies differ are marked; the input stands above them."""
    first = cards(page()).cards[0]
    (compared,) = (one for one in first.blocks if isinstance(one, Compared))
    (why,) = (one for one in first.blocks if isinstance(one, Prose))

    assert ("pair 3", True) == (first.label, first.is_open)
    assert ["lost right"] == [one.word for one in first.badges]
    assert "prompt-b failed right: '555' is not in the reply" == first.text
    assert ("prompt-a: passed", "prompt-b: failed") == compared.headings
    assert ["555"] == [one.text for one in compared.left if one.differs]
    assert ["about 550"] == ["".join(one.text for one in compared.right if one.differs)]
    assert "'555' is not in the reply" in str(why.paragraphs)


def test_flips_are_found_by_direction_and_arm() -> None:
    """A page of three arms says of each card whose it is."""
    found = cards(page(3))

    assert ["way", "arm"] == [one.name for one in found.choices if one.name != "criterion"]
    assert {"1", "2"} == {value for one in found.cards for value in one.tags["arm"]}
    assert {"prompt-b", "prompt-c"} == {one.badges[0].word for one in found.cards}


def without_replies(arm: ArmRun) -> ArmRun:
    trials = [replace_reply(trial) for trial in arm.record.trials]
    return replace(arm, record=replace(arm.record, trials=Trials.of(trials)))


def replace_reply(trial: Any) -> Any:
    return replace(trial, reply=None)


def test_a_run_that_keeps_no_replies_says_so() -> None:
    """Of one arm, or of both; the reason of the failure is still there."""
    control, candidate = given.arms()
    one = cards(build_comparison_page(given.verdict(), (control, without_replies(candidate))))
    none = cards(
        build_comparison_page(
            given.verdict(), (without_replies(control), without_replies(candidate))
        )
    )
    (compared,) = (part for part in one.cards[0].blocks if isinstance(part, Compared))
    said = [part.paragraphs for part in none.cards[0].blocks if isinstance(part, Prose)]

    assert "(not kept)" == "".join(piece.text for piece in compared.right)
    assert any("keep no replies" in str(part) for part in said)
    assert "'555' is not in the reply" in none.cards[0].text


def test_many_flips_are_limited_and_the_rest_is_counted() -> None:
    """Whatever the runs hold, a page stays readable."""
    control, candidate = given.arms()
    swapped = list_flips(given.verdict(), (control, candidate))
    from trialwise.pages import comparison_flips as module

    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(module, "_MOST_LOST", 3)
        patched.setattr(module, "_MOST_WON", 2)
        document = page()
    shown = cards(document)
    (rest,) = (one for one in section(document, "Flips").blocks if isinstance(one, Prose))

    assert 5 == len(shown.cards)
    assert f"{len(swapped) - 5} further flips not shown" in str(rest.paragraphs)


# --- Inputs and arms --------------------------------------------------------------------------


def test_each_input_is_counted_under_every_arm() -> None:
    """By an independent count of the trials; those that differ come first, losses before gains."""
    arms = given.arms()
    rows = count_inputs(arms)["right"]
    expected = {
        (arm.label, trial.input_id): (
            sum(
                other.outcome("right").passed
                for other in arm.record.trials
                if other.input_id == trial.input_id
            ),
            sum(other.input_id == trial.input_id for other in arm.record.trials),
        )
        for arm in arms
        for trial in arm.record.trials
    }
    found = {(label, row.input_id): count for row in rows for label, count in row.counts.items()}
    differences = [row.difference("prompt-a", "prompt-b") for row in rows]
    lost = [one for one in differences if one is not None and one < 0]

    assert expected == found
    assert differences[: len(lost)] == sorted(lost)
    assert not any(
        count_inputs(arms)["polite"][0].difference("prompt-a", one) for one in ("prompt-b",)
    )


def test_an_input_without_a_partner_is_listed_with_the_reason() -> None:
    """One that was never asked, and one that the other arm does not have."""
    control, candidate = given.arms()
    name = candidate.record.trials[0].input_id
    left = [one for one in candidate.record.trials if one.input_id != name]
    fewer = replace(candidate, record=replace(candidate.record, trials=Trials.of(left)))
    document = build_comparison_page(given.verdict(), (control, fewer))
    (table,) = (
        one
        for one in blocks_of(section(document, "Inputs"))
        if isinstance(one, Table) and one.heading == "Inputs of right"
    )
    notes = [
        cell.note
        for row in table.rows
        for cell in row.cells
        if isinstance(cell, Value) and cell.note
    ]

    assert ["not asked"] == notes


@pytest.mark.requirement(
    "statistical-ci lessons",
    "A comparison shows the rate of each of any number of arms with an interval.",
    "the arms table of `trialwise compare -o comparison.html`",
)
def test_each_arm_has_its_rate_with_an_interval() -> None:
    """Exact by the two binomial tails at a fixed size; wider where the outcomes ended the runs."""
    verdict = given.verdict(3)
    stopped = replace(
        verdict, pairings=tuple(replace(one, fixed_size=False) for one in verdict.pairings)
    )
    shown = [
        [row.cells[2] for row in table.rows]
        for table in (
            next(
                one
                for one in blocks_of(section(build_comparison_page(asked, given.arms(3)), "Arms"))
                if isinstance(one, Table)
            )
            for asked in (verdict, stopped)
        )
    ]
    ends = [
        [tuple(float(end) / 100 for end in cell.note.strip("[]").split(", ")) for cell in column]  # type: ignore[union-attr]
        for column in shown
    ]
    passed = [32, 36, 20]

    for k, (low, high) in zip(passed, ends[0], strict=True):
        assert binomial_tail(k, 40, low) == pytest.approx(0.025, abs=0.002)
        assert 1 - binomial_tail(k + 1, 40, high) == pytest.approx(0.025, abs=0.002)
    assert all(
        wide[0] < narrow[0] and wide[1] > narrow[1] for narrow, wide in zip(*ends, strict=True)
    )


def binomial_tail(k: int, n: int, p: float) -> float:
    """The chance of k or more passes, term by term."""
    return sum(comb(n, one) * p**one * (1 - p) ** (n - one) for one in range(k, n + 1))


def test_inputs_of_different_lists_are_told_apart_by_their_texts() -> None:
    """Both runs number their inputs from 1, and only what was asked says which are the same."""
    right = tw.Criterion("right", tw.contains("555"), at_least=0.5)
    contract = tw.Contract("sums", lambda _question: "555", [right])
    runs = [
        tw.run(contract, inputs=inputs, trials=10, seed=1, store=None, progress=False)
        for inputs in (["a", "b"], ["b", "c"])
    ]
    rows = count_inputs([ArmRun(f"arm {k}", one.record) for k, one in enumerate(runs)])["right"]
    missing = {row.asked: dict(row.missing) for row in rows}

    assert {
        "a": {"arm 1": "no input of this arm"},
        "b": {},
        "c": {"arm 0": "no input of this arm"},
    } == missing


def test_trials_that_were_not_measured_are_not_counted() -> None:
    """An input of which no trial was measured says so."""
    control, candidate = given.arms()
    name = candidate.record.trials[0].input_id
    lost = [
        replace(one, error_class=ErrorClass.INFRASTRUCTURE) if one.input_id == name else one
        for one in candidate.record.trials
    ]
    broken = replace(candidate, record=replace(candidate.record, trials=Trials.of(lost)))
    rows = count_inputs([control, broken])["right"]
    (row,) = (one for one in rows if one.input_id == name)

    assert {"prompt-b": "not measured"} == row.missing
    assert sum(one.counts["prompt-b"][1] for one in rows if one is not row) == 30


def test_only_factors_that_differ_are_named() -> None:
    """The model differs and the temperature does not."""
    verdict = given.verdict()

    assert {"model": {"prompt-a": "m0", "prompt-b": "m1"}} == list_factors(verdict, given.arms())
    assert ("differs in", "model: m0, m1") in page().facts


def test_cheaper_is_good() -> None:
    """A lower cost is green and a higher one red; what its interval does not tell has no colour."""
    verdict = given.verdict()
    tones = []
    for low, high in ((-0.02, -0.01), (0.01, 0.02), (-0.01, 0.01)):
        bounds = replace(verdict.amounts[0].interval, low=low, high=high)  # type: ignore[type-var]
        changed = replace(verdict.amounts[0], interval=bounds)
        document = build_comparison_page(replace(verdict, amounts=(changed,)), given.arms())
        (table,) = (
            one
            for one in blocks_of(section(document, "Arms"))
            if isinstance(one, Table) and one.heading == "What trials took"
        )
        cell = table.rows[0].cells[3]
        tones.append(cell.tone if isinstance(cell, Value) else "plain")

    assert ["pass", "fail", "plain"] == tones


def test_what_a_judge_prefers_has_a_table_and_no_rate_of_one_arm() -> None:
    """Won, lost and tied, with the share before and after the judge's errors are taken out."""
    verdict = given.verdict()
    preferred = PreferenceFinding(
        criterion="clearer",
        arm="prompt-b",
        against="prompt-a",
        wins=20,
        losses=10,
        ties=10,
        inconsistent=4,
        missing=1,
        rate=0.625,
        interval=Interval(0.5, 0.73, confidence=0.95, method="exact"),
        labels=80,
        corrected_rate=0.7,
        corrected_interval=Interval(0.51, 0.88, confidence=0.95, method="exact"),
    )
    asked = replace(
        verdict,
        findings=(*verdict.findings, replace(verdict.findings[0], criterion="clearer")),
        preferences=(preferred,),
    )
    document = build_comparison_page(asked, given.arms())
    arms, table, *_ = (
        one for one in blocks_of(section(document, "Arms")) if isinstance(one, Table)
    )
    shown = [
        f"{cell.text} {cell.note}".strip() if isinstance(cell, Value) else cell
        for cell in table.rows[0].cells[2:]
    ]

    assert "clearer" not in str(arms.columns)
    assert [
        "62.5 % [50.0, 73.0]",
        "70.0 % [51.0, 88.0]",
        "20",
        "10",
        "10 4 by their place",
        "1",
    ] == (shown)
    assert "80 labelled pairs" in str(table.notes)
    assert len(given.LOST) + len(given.WON) == len(cards(document).cards)


# --- Whatever somebody else wrote -------------------------------------------------------------


def test_hostile_texts_stay_texts() -> None:
    """In labels, names of contracts, inputs and replies; on a page, in a notebook, in a comment."""
    arms = given.arms(3, hostile=True)
    verdict = COMPARISON.decide(arms)
    whole = render_document(build_comparison_page(verdict, arms))
    brief = summarize_comparison(verdict, arms, is_pictured=True)
    text = render_document_text(summarize_comparison(verdict, arms), Capabilities(unicode=True))
    markdown = render_document_markdown(brief)

    for html in (whole, render_fragment(brief)):
        assert "img" not in Reader(html.removeprefix("<!DOCTYPE html>\n")).tags
        assert not {"\u202e", "\x1b"} & {*html}
        assert not [key for key, _ in Reader(html).attributes if key.startswith("on")]
    assert 1 == Reader(whole).tags.count("script")
    assert not {"\u202e", "\x1b"} & {*text, *markdown}
    assert "<script" not in markdown
    assert "<img" not in markdown
    assert len(markdown.encode()) <= MOST_BYTES
    assert max(map(len, text.splitlines())) <= 80
