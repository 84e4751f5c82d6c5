"""The report of a run as a page: complete, escaped, small, and readable by everyone."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from random import Random

import pytest
from tests.reports.run_records import (
    HOSTILE,
    SHAPES,
    Answer,
    Failure,
    criterion,
    fixed_fail,
    large,
    plan_of,
    record_of,
    run,
)
from tests.revising import replace

from trialwise.documents.blocks import Facts, Section
from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.trial import FailReason
from trialwise.pages.analysis import build_analysis
from trialwise.pages.run_report import render_html
from trialwise.renderers.html.markup import make_visible

MEGABYTE = 1_000_000
ERRORS = "How often the rules err"


def tree(page: str) -> ET.Element:
    """The page's elements; everything but style and script is well-formed XML too."""
    return ET.fromstring(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_class(root: ET.Element, name: str) -> Iterator[ET.Element]:
    return (one for one in root.iter() if name in one.attrib.get("class", "").split())


def section_of(root: ET.Element, heading: str) -> ET.Element:
    """The section under a heading of the page."""
    return next(
        one for one in root.iter("section") if heading in [words(h) for h in one.findall("div/h2")]
    )


def headings_of(root: ET.Element) -> list[str]:
    return [words(one) for one in root.iter("h2")]


def cards_of(record: RunRecord) -> dict[int, ET.Element]:
    """The failing trials of a page by index, in the order they stand."""
    found = [
        one
        for one in by_class(tree(render_html(record)), "trial")
        if "data-criterion" in one.attrib
    ]
    return {int(words(next(by_class(one, "index"))).split()[-1]): one for one in found}


class Reader(HTMLParser):
    """The tags and attributes a browser would find."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


@pytest.fixture(params=[*SHAPES], scope="module")
def record(request: pytest.FixtureRequest) -> RunRecord:
    return SHAPES[request.param]()


@pytest.fixture(scope="module")
def page(record: RunRecord) -> str:
    return render_html(record)


# --- Any page ---------------------------------------------------------------------------------


@pytest.mark.slow("sequential-pass", "each-input", "budget-stop", "judged")
def test_the_page_holds_everything_it_shows(page: str) -> None:
    """One script, no address but links within the page, no handler in an attribute."""
    reader = Reader(page)

    assert 1 == reader.tags.count("script")
    assert not {"img", "iframe", "object", "embed", "base", "audio", "video"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    addresses = {value for name, value in reader.attributes if name in ("href", "src")}
    assert all(value and value.startswith(("#", "data:,")) for value in addresses)
    assert not re.search(r"url\(|@import|https?:", page.partition("</style>")[0])


def test_the_page_forbids_every_script_but_its_own(page: str) -> None:
    """The policy names the hash of the script that stands on the page, and no other source."""
    policies = [v or "" for k, v in Reader(page).attributes if k == "content"]
    policy = next(value for value in policies if "default-src" in value)
    script = page.partition("<script>")[2].partition("</script>")[0]

    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_page_can_be_read_by_everyone(page: str) -> None:
    """Landmarks, headings without gaps, captions, scoped headers, names that are given once."""
    root = tree(page)

    assert "en" == root.attrib["lang"]
    for landmark in ("header", "main", "footer"):
        assert 1 == len(list(root.iter(landmark)))
    levels = [int(one.tag[1]) for one in root.iter() if re.fullmatch(r"h[1-6]", one.tag)]
    assert 1 == levels[0]
    assert 1 == levels.count(1)
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(table.find("caption") is not None for table in root.iter("table"))
    assert all("scope" in cell.attrib for cell in root.iter("th"))
    names = [one.attrib["id"] for one in root.iter() if "id" in one.attrib]
    assert len(names) == len(set(names))
    targets = [one.attrib["href"][1:] for one in root.iter("a")]
    assert set(targets) <= set(names)
    (main,) = root.iter("main")
    assert ("skip", targets[0]) == (next(root.iter("a")).attrib["class"], main.attrib["id"])


def test_the_sections_are_listed_in_the_order_they_stand(page: str) -> None:
    """The list leads to every section but the verdict, which comes before it."""
    root = tree(page)

    (nav,) = root.iter("nav")
    listed = [one.attrib["href"][1:] for one in nav.iter("a")]
    assert listed == [one.attrib["id"] for one in root.iter("section")][1:]


def test_every_chart_says_its_values_and_has_them_in_a_table(page: str) -> None:
    """A chart is focusable, is summed up in words, shows values where pointed at, has a table."""
    root = tree(page)

    charts = [one for one in root.iter("figure") if list(by_class(one, "plot"))]
    for figure in charts:
        (plot,) = by_class(figure, "plot")
        caption = figure.find("figcaption/p")
        assert caption is not None
        assert "0" == plot.attrib["tabindex"]
        assert words(caption).replace("\u00a0", " ") in plot.attrib["aria-label"]
        assert all(words(rect) for rect in plot.iter("rect"))
        assert list(plot.iter("rect"))
        assert figure.find("details//table/tbody/tr") is not None


def test_the_page_follows_the_readers_colours_and_prints(page: str) -> None:
    """Light, dark, a choice between them, and paper."""
    assert "@media (prefers-color-scheme:dark)" in page
    assert ":root[data-theme=dark]" in page
    assert "@media print" in page
    assert "data-theme-toggle" in page


def test_the_page_is_the_same_every_time(record: RunRecord, page: str) -> None:
    """Nothing on it depends on the clock or on chance."""
    assert page == render_html(record)


def test_the_page_is_text_that_can_be_written(page: str) -> None:
    """Whatever a reply held, the page is valid UTF-8 without characters that hide others."""
    assert page.encode("utf-8")
    hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
    assert not hidden.search(page)


def test_the_whole_analysis_is_on_the_page(record: RunRecord, page: str) -> None:
    """Every section of the transparent report under its heading, word for word."""
    said = words(tree(page)).replace("\u00a0", " ")

    sections = build_analysis(record.verdict, title=record.plan.contract).blocks
    for section in sections:
        assert isinstance(section, Section)
        if section.blocks and not section.heading.startswith("GATE"):
            pairs = [pair for one in section.blocks if isinstance(one, Facts) for pair in one.pairs]
            kind, colon, name = section.heading.partition(": ")
            parts = [kind.capitalize(), colon, name, *(part for pair in pairs for part in pair)]
            told = make_visible("".join(str(part) for part in parts))
            assert " ".join(told.split()) in said


# --- What it says -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_decided_nothing_does_not_begin_with_good_news() -> None:
    """ "Nothing failed" would sound like it."""
    banner = next(by_class(tree(render_html(SHAPES["budget-stop"]())), "banner"))
    meaning = words(next(by_class(banner, "meaning")))

    assert meaning.startswith("2 of 2 criteria could not be decided")


@pytest.mark.slow(
    "sequential-pass-PASS-Both criteria passed.",
    "each-input-FAIL-The criterion failed: books-a-table on cancel-plan.",
    "budget-stop-INCONCLUSIVE-2 of 2 criteria could not be decided",
)
@pytest.mark.parametrize(
    ("shape", "word", "meaning"),
    [
        ("sequential-pass", "PASS", "Both criteria passed."),
        ("fixed-fail", "FAIL", "1 of 3 criteria failed: grounded."),
        ("observational", "NO FAILURE OBSERVED", "No failure was observed in 120 trials."),
        ("regression-inconclusive", "INCONCLUSIVE", "This is neither a PASS nor a FAIL."),
        ("each-input", "FAIL", "The criterion failed: books-a-table on cancel-plan."),
        ("latency", "FAIL", "1 of 4 criteria failed: latency p95."),
        ("budget-stop", "INCONCLUSIVE", "2 of 2 criteria could not be decided"),
        ("smoke", "PASS", "consistent with the targets. This is a smoke run"),
        ("measured", "MEASURED", "Nothing was decided."),
        ("refused", "REFUSED", "nothing was run and nothing is decided"),
    ],
)
def test_the_verdict_comes_first_and_in_plain_words(shape: str, word: str, meaning: str) -> None:
    """The decision, and what it means, stand before everything else and in the page's title."""
    root = tree(render_html(SHAPES[shape]()))

    banner = next(by_class(root, "banner"))
    heading = banner.find(".//h2")
    assert heading is not None
    assert f"Verdict: {word}" in words(heading)
    assert meaning in words(next(by_class(banner, "meaning"))).replace("\u00a0", " ")
    assert (root.findtext("head/title") or "").startswith(f"{word} · ")


@pytest.mark.slow
def test_every_decision_has_a_shape_of_its_own() -> None:
    """PASS, FAIL and INCONCLUSIVE differ without any colour."""
    shapes = {}
    for name in ("sequential-pass", "fixed-fail", "budget-stop", "refused"):
        decision = next(by_class(tree(render_html(SHAPES[name]())), "decision"))
        ground = next(by_class(decision, "ground")).attrib["d"]
        sign = [one.attrib["d"] for one in by_class(decision, "sign")]
        shapes[name] = (ground, *sign)

    assert len(shapes) == len(set(shapes.values()))


def test_a_smoke_run_is_worded_softly() -> None:
    """A smoke run's PASS is hollow, called what it is, and never said to show compliance."""
    root = tree(render_html(SHAPES["smoke"]()))

    banner = next(by_class(root, "banner"))
    assert "hollow" in next(by_class(banner, "decision")).attrib["class"]
    assert "This is a smoke run: a first look, not evidence." in words(banner)
    assert "A smoke run verifies nothing" in words(root)
    assert all("hollow" in one.attrib["class"] for one in by_class(root, "badge"))


def test_what_is_claimed_and_what_is_not() -> None:
    """Whom the verdict speaks of, and that no error rate is the chance of being wrong."""
    said = words(section_of(tree(render_html(fixed_fail())), "What the verdict means"))

    assert "This is about these 12 inputs, not about others." in said
    assert "No failure observed makes no claim about how often failures happen." in said
    assert "No error rate here is the probability that this verdict is wrong" in said


def test_the_error_rates_are_those_that_hold() -> None:
    """At a true rate of 90 % Wilson's rule passes 200 trials with 187 successes too often."""
    from scipy import stats

    root = tree(render_html(fixed_fail(rule="wilson")))
    (errors,) = (one for one in root.iter("table") if one.findtext("caption") == ERRORS)
    row = errors.find("tbody/tr")
    assert row is not None

    cells = [words(cell) for cell in row]
    actual = 100 * stats.binom.sf(186, 200, 0.9)
    assert ["valid-json", "PASS at a true rate of 90 %", "5 %"] == cells[:3]
    assert f"{actual:.2f} %, more than allowed" == cells[3].replace("\u00a0", " ")


def test_the_table_of_criteria_holds_the_verdicts_numbers() -> None:
    """Name, decision, rate, interval, trials, failures, inputs asked, and why it ended."""
    record = fixed_fail()
    tables = tree(render_html(record)).iter("table")
    table = next(one for one in tables if one.findtext("caption") == "Criteria")

    rows = [[words(cell) for cell in row] for row in table.findall("tbody/tr")]
    for finding, row in zip(record.verdict.findings, rows, strict=True):
        assert [finding.criterion, finding.decision] == row[:2]
        # A criterion that must never fail claims nothing about a rate.
        observed = finding.criterion == "no-pii"
        rate = f"{100 * finding.tally.passed / 200:.1f} %"
        counts = f"{finding.tally.passed} of 200"
        assert (counts if observed else rate) == row[2].replace("\u00a0", " ")
        assert ["200", str(finding.tally.failed)] == row[5:7]
        assert row[7].startswith("all planned trials run, all 12 inputs")


def test_what_failed_and_why_comes_before_charts_and_rules() -> None:
    """Verdict, criteria, failing trials with their reasons; only then what explains the rules."""
    root = tree(render_html(fixed_fail()))

    verdict, criteria, failing, *rest = headings_of(root)
    assert ("Verdict: FAIL", "Criteria", "Failing trials") == (verdict, criteria, failing)
    assert ["What the verdict means", "In detail"] == rest[:2]
    assert not list(section_of(root, "Criteria").iter("figure"))
    reasons = [words(one) for one in section_of(root, "Failing trials").iter("summary")]
    assert any("grounded: " in one for one in reasons)


def test_the_table_of_criteria_holds_every_part_that_decides() -> None:
    """A latency limit that fails the run has its row, with what was measured and its limit."""
    record = SHAPES["latency"]()
    root = tree(render_html(record))
    table = next(one for one in root.iter("table") if one.findtext("caption") == "Criteria")

    rows = {words(row[0]): row for row in table.findall("tbody/tr")}
    found = record.verdict.latency
    assert len(record.verdict.findings) + len(found) == len(rows)
    for one in found:
        row = rows[f"latency {one.constraint}"]
        assert one.decision is not None
        assert words(row[1]).startswith(one.decision)
        link = row[0].find("a")
        assert link is not None
        assert any(link.attrib["href"] == f"#{part.get('id')}" for part in root.iter("section"))


def test_the_inputs_are_listed_worst_first_with_their_own_counts() -> None:
    """The heat map counts what the trials say, and begins with the input that fails most."""
    record = fixed_fail()
    (heat,) = by_class(tree(render_html(record)), "heat")
    rows = {words(row[0]): [words(cell) for cell in row[1:]] for row in heat.findall("tbody/tr")}

    mine = [trial for trial in record.trials if trial.input_id == "double-charge"]
    failed = sum(not trial.outcome("grounded").passed for trial in mine)
    assert "double-charge" == next(iter(rows))
    assert f"{failed} failed" in rows["double-charge"][1]
    assert str(len(mine)) == rows["double-charge"][3]
    assert {trial.input_id for trial in record.trials} == set(rows)


def test_every_failing_trial_is_there_with_its_evidence() -> None:
    """As many as failed, each with explanation, evidence, reply and seed.

    The worst trace comes first; the others stand in the order they were started.
    """
    record = fixed_fail()
    cards = cards_of(record)
    failing = [trial for trial in record.trials if not trial.passed]

    assert {trial.index for trial in failing} == set(cards)
    assert sorted([*cards][1:]) == [*cards][1:]
    for trial in failing:
        card = cards[trial.index]
        said = words(card).replace("\u00a0", " ")
        for outcome in trial.outcomes:
            assert outcome.passed or outcome.result.explanation in said
            assert outcome.result.evidence in said
        assert " ".join((trial.reply or "").split()) in said
        assert str(trial.seed) in said
        assert all(error in said for error in (trial.error, *trial.attempt_errors))
        assert all(call["name"] in said for call in trial.tool_calls)


def test_failing_trials_can_be_told_apart_by_criterion_and_reason() -> None:
    """Each carries the places of the criteria it failed and the reasons, which the filter reads."""
    record = fixed_fail()
    names = [one.criterion for one in record.plan.criteria]
    cards = cards_of(record)

    for trial in (trial for trial in record.trials if not trial.passed):
        card = cards[trial.index]
        failed = [one for one in trial.outcomes if not one.passed]
        assert {names.index(one.criterion) for one in failed} == set(
            map(int, card.attrib["data-criterion"].split())
        )
        assert {str(one.result.reason) for one in failed} == set(card.attrib["data-reason"].split())


def test_guards_baselines_and_conditions_are_on_the_page() -> None:
    """Whatever qualifies a comparison can be read: overrides, baseline, covariates, hash, seed."""
    record = SHAPES["regression-inconclusive"]()
    said = words(tree(render_html(record))).replace("\u00a0", " ")

    for part in (
        "covariate-mismatch", "admitted by override", "support-agent-2026-02",
        "951 of 1000 successes",
        "day differs", "WEEKEND", "small-3", "4be1c2d09a77", "90b1d4e6c2f7", "20260314",
        "questions", "2026-03", "50,000 tokens", "intent-to-treat",
    ):  # fmt: skip
        assert part in said


@pytest.mark.slow
def test_a_budget_that_ended_the_run_is_named() -> None:
    """The reason stands in the banner and beside the criterion."""
    said = words(tree(render_html(SHAPES["budget-stop"]())))

    assert "The budget of $0.20 was used up after 50 trials." in said
    assert "the run spent its budget of money, after 50 of at most 540" in said


# --- Several contracts ------------------------------------------------------------------------


@pytest.mark.slow
def test_a_suite_shows_every_contract_under_one_verdict() -> None:
    """FAIL beats the rest; every contract is an article of its own, linked from the table."""
    records = [SHAPES[name]() for name in ("sequential-pass", "fixed-fail", "refused")]
    root = tree(render_html(records, title="Nightly"))

    assert "FAIL · Nightly" == root.findtext("head/title")
    articles = list(by_class(root, "contract"))
    assert ["support-agent", "support-agent", "search"] == [
        words(heading) for one in articles for heading in one.findall("h2")
    ]
    suite = next(by_class(root, "banner"))
    links = [one.attrib["href"][1:] for one in suite.iter("a")]
    assert [one.attrib["id"] for one in articles] == links
    names = [one.attrib["id"] for one in root.iter() if "id" in one.attrib]
    assert len(names) == len(set(names))


def test_nothing_run_is_nothing_to_report() -> None:
    """An empty suite is refused, since what was not run is never PASS."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_html([])


# --- Hostile and large ------------------------------------------------------------------------


@pytest.mark.slow
def test_markup_from_a_service_stays_text() -> None:
    """Every string from outside is shown as it is, controls by name, and adds no element."""
    page = render_html(SHAPES["hostile"]())
    tags = set(Reader(page).tags)

    assert tags == set(Reader(render_html(fixed_fail())).tags) - {"select", "option", "i"}
    said = "".join(tree(page).itertext())
    assert "</script><script>alert(1)</script>" in said
    assert "⟨ESC⟩[31mred⟨U+202E⟩txt.exe" in said
    assert "⟨U+D800⟩ ⟨U+E0041⟩ שלום" in said


@pytest.mark.slow
def test_ten_thousand_trials_stay_under_a_megabyte() -> None:
    """Failures beyond the limit are counted, and every kind of them is among those shown."""
    record = large()
    page = render_html(record)

    assert len(page.encode()) < MEGABYTE
    failing = sum(not trial.passed for trial in record.trials)
    root = tree(page)
    cards = [one for one in by_class(root, "trial") if "data-criterion" in one.attrib]
    assert f"{len(cards)} of {failing:,} failing trials are shown" in words(root)
    assert {"0", "1", "0 1"} == {card.attrib["data-criterion"] for card in cards}
    assert "280 further inputs not listed" in words(root)


@pytest.mark.slow
def test_ten_thousand_failures_full_of_markup_stay_under_a_megabyte() -> None:
    """Not even replies that grow when escaped make the page large."""
    record = large(failing=1.0)
    swollen = tuple(replace(trial, reply="<" * 5000, error="&" * 5000) for trial in record.trials)

    assert len(render_html(replace(record, trials=swollen)).encode()) < MEGABYTE


@pytest.mark.slow
def test_many_criteria_stay_under_a_megabyte() -> None:
    """Thirty criteria over two hundred inputs: charts and cells have limits too."""
    names = [f"criterion-{number}" for number in range(30)]
    plan = plan_of(
        "wide",
        [f"input-{number}" for number in range(200)],
        [criterion(name, at_least=0.5 + 0.01 * k, trials=400) for k, name in enumerate(names)],
        curtail=False,
    )

    def answer(source: Random, input_id: str) -> Answer:  # noqa: ARG001
        failure: Failure = ("holds", f"{input_id} does not hold", HOSTILE, FailReason.CONDITION)
        return Answer(failures=dict.fromkeys(names[: int(input_id.split("-")[1]) % 30], failure))

    assert len(render_html(record_of(plan, run(plan, answer))).encode()) < MEGABYTE
