"""The page of a plan: well-formed, self-contained, escaped and accessible."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from trialwise.documents.blocks import Details, Document, Prose, Row, Section, Table
from trialwise.documents.charts import Chart, Guide, Line, Mark, chart_lines
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.sizing.fixed_sizing import (
    ComplianceQuestion,
    PrecisionQuestion,
    plan_compliance,
    plan_precision,
)
from trialwise.procedures.sizing.regression_sizing import (
    LatencyQuestion,
    RegressionQuestion,
    plan_latency,
    plan_regression,
)
from trialwise.procedures.sizing.sequential_sizing import SequentialQuestion, plan_sequential
from trialwise.procedures.sizing.sizing_base import SizingPlan
from trialwise.renderers.html.page_frame import render_document as render_plan_html

NASTY = "<script>alert('x')</script> & \"quoted\""


def sequential() -> SizingPlan:
    return plan_sequential(
        SequentialQuestion(
            rate=0.9, alternative=0.8, max_trials=50, concurrency=4, trial_usd=0.02, trial_s=3
        )
    )


FORMS: list[tuple[str, Callable[[], SizingPlan]]] = [
    ("rate", sequential),
    ("compliance", lambda: plan_compliance(ComplianceQuestion(rate=0.95, better=0.98))),
    ("regression", lambda: plan_regression(RegressionQuestion(baseline=(190, 200), drop=0.1))),
    ("latency", lambda: plan_latency(LatencyQuestion(baseline=300, trials=100))),
    ("precision", lambda: plan_precision(PrecisionQuestion(rate=0.9, margin=0.05))),
]


@pytest.fixture(params=FORMS, ids=[name for name, _ in FORMS], scope="module")
def page(request: pytest.FixtureRequest) -> Document:
    make: Callable[[], SizingPlan] = request.param[1]
    return build_sizing_page(make())


def charts_of(page: Document) -> list[Chart]:
    return [block for block in page.blocks if isinstance(block, Chart)]


def tree(page: str) -> ET.Element:
    """The page's elements; everything but style and script is well-formed XML too."""
    return ET.fromstring(re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def words(element: ET.Element) -> str:
    return " ".join("".join(element.itertext()).split())


class Tags(HTMLParser):
    """Every tag that is opened and closed, as a browser would read them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.open.append(tag)
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.slow("rate")
def test_the_page_is_well_formed(page: Document) -> None:
    """Both a strict XML parser and an HTML parser read it, and every tag is closed."""
    text = render_plan_html(page)

    tree(text)
    tags = Tags()
    tags.feed(text)
    assert tags.open == []


def test_the_page_fetches_nothing(page: Document) -> None:
    """No address of any kind, no script but its own, no import, no image."""
    text = render_plan_html(page)
    own = text.partition("<script>")[2].partition("</script>")[0]

    assert 1 == text.count("<script")
    digest = b64encode(sha256(own.encode()).digest()).decode()
    assert f"default-src &#x27;none&#x27;; script-src &#x27;sha256-{digest}&#x27;" in text
    icon = '<link rel="icon" href="data:,"/>'
    assert not re.search(
        r"https?:|//[a-z]|url\(|@import|<img|<link|<iframe", text.replace(icon, "")
    )
    assert not re.search(r"<[^>]*\son\w+=", text)


def test_the_page_can_be_read_by_everyone(page: Document) -> None:
    """A language, a title, one main heading, captions, scoped headers, named charts."""
    root = tree(render_plan_html(page))

    assert root.attrib["lang"] == "en"
    assert (root.findtext("head/title") or "").replace("\u00a0", " ") == page.title
    assert len(list(root.iter("h1"))) == 1
    tables = list(root.iter("table"))
    # Every table of the page, and the values of every chart.
    listed = sum(isinstance(block, Table) for block in page.blocks)
    assert len(tables) == listed + len(charts_of(page))
    assert all(table.find("caption") is not None for table in tables)
    assert all("scope" in cell.attrib for cell in root.iter("th"))
    charts = [one for one in root.iter() if one.attrib.get("role") == "img"]
    assert len(charts) == len(charts_of(page)) >= 1
    for shown, chart in zip(charts, charts_of(page), strict=True):
        assert f"{chart.heading}. {chart.summary}" == shown.attrib["aria-label"]
    identities = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
    assert len(identities) == len(set(identities))


def test_the_page_follows_the_readers_colours_and_prints(page: Document) -> None:
    """Light, dark and paper."""
    text = render_plan_html(page)

    assert "@media (prefers-color-scheme:dark)" in text
    assert ":root[data-theme=dark]" in text
    assert "@media print" in text


def test_every_cell_of_every_table_is_on_the_page(page: Document) -> None:
    """The page says what the terminal says, number for number."""
    root = tree(render_plan_html(page))

    tables = [block for block in page.blocks if isinstance(block, Table)]
    captions = ((one.findtext("caption") or "", one) for one in root.iter("table"))
    shown = {caption.replace("\u00a0", " "): one for caption, one in captions}
    for table in tables:
        rows = [
            tuple((cell.text or "").replace("\u00a0", " ") for cell in row)
            for row in shown[table.heading].findall("tbody/tr")
        ]
        assert rows == [row.cells for row in table.rows]


def test_markup_in_words_is_shown_not_obeyed() -> None:
    """Whatever a name holds, it is text."""
    line = Line(name=NASTY, ink="one", points=((0.0, 0.0), (1.0, 1.0)))
    chart = chart_lines(
        NASTY,
        NASTY,
        NASTY,
        NASTY,
        [line],
        marks=[Mark(x=1.0, y=1.0, name=NASTY, label=NASTY)],
        guides=(Guide(value=0.5, label=NASTY), Guide(value=0.5, label=NASTY, axis="y")),
    )
    table = Table(
        heading=NASTY, columns=(NASTY, NASTY), rows=(Row(cells=(NASTY, NASTY)),), notes=(NASTY,)
    )
    words_of = Prose(paragraphs=(NASTY,))
    folded = Details(summary=NASTY, blocks=(words_of,))
    prose = Section(heading=NASTY, blocks=(words_of, folded))
    text = render_plan_html(
        Document(
            kind="Plan",
            title=NASTY,
            facts=((NASTY, NASTY),),
            lead=NASTY,
            blocks=(table, prose, chart),
        )
    )

    root = tree(text)
    assert 1 == text.count("<script")
    assert root.findtext("head/title") == NASTY
    columns = [one.findtext("title") or "" for one in root.iter("rect")]
    assert columns
    assert all(one.startswith(f"{NASTY} ") for one in columns)
    tags = [one for one in root.iter() if "tag" in one.attrib.get("class", "").split()]
    assert [NASTY] * 3 == [one.text for one in tags]
    # Title, facts, lead, table, prose with its details, and the chart with its values.
    assert words(root).count(NASTY) >= 20


@pytest.mark.slow
def test_a_broken_promise_stands_out() -> None:
    """Wald's row is marked in the table, the recommended row too."""
    root = tree(render_plan_html(build_sizing_page(sequential())))

    marked = {
        (row.attrib["class"], row.findtext("th"))
        for row in root.iter("tr")
        if row.attrib.get("class") in ("broken", "chosen")
    }
    assert {("broken", "Wald, cut !"), ("chosen", "optimal")} == marked
