"""Markdown: read by GitHub's own parser, inert whatever it shows, and never too long."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from cmarkgfm import github_flavored_markdown_to_html  # type: ignore[import-untyped]
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from tests.reports.short_reports import render_markdown
from tests.revising import replace

from trialwise.documents.printable import make_visible
from trialwise.errors import InvalidArgument
from trialwise.model.run import RunRecord
from trialwise.model.trial import CheckResult
from trialwise.renderers.document_markdown import MOST_BYTES, escape, marker

Made = Callable[[str], list[RunRecord]]
Runs = dict[str, RunRecord]

ZERO_WIDTH = "\u200b"
#: What the report itself is made of; anything else would come from what it shows.
OWN_TAGS = frozenset(
    {"h2", "h3", "p", "ul", "li", "strong", "em", "code", "br", "details", "summary"}
    | {"table", "thead", "tbody", "tr", "th", "td"}
)
HOSTILE = [
    "|", "\n\n# x", "<img src=x onerror=y>", "</details>", "-->", "`", "```\n", "@octocat", "#1",
    "GH-12", "o/r#3", "http://evil.example", "www.evil.example", "a@evil.example", "[x](y)",
    "![x](y)", "**b**", "~~s~~", "\\", "\\|", "&#64;u", "$x$", "<!-- x -->", "- [ ] x", ":smile:",
    "[^1]", "\u202e", "\ud800", "&lt;", "<https://x.example>", "\\`", "`|`", "!", "_i_",
]  # fmt: skip
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(HOSTILE)).map("".join)


class Page(HTMLParser):
    """The tags of a rendered page, and its text outside of code."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.text: list[str] = []
        self.code = self.cell = 0
        html = github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags.append(tag)
        self.code += tag == "code"
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell += 1

    def handle_endtag(self, tag: str) -> None:
        self.code -= tag == "code"
        self.cell -= tag in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self.cell:
            self.rows[-1][-1] += data
        if not self.code:
            self.text.append(data)

    @property
    def shown(self) -> str:
        """The text as a reader sees it."""
        return "".join(self.text).replace(ZERO_WIDTH, "")


def test_the_golden_page(suite: list[RunRecord], golden: Callable[[str, str], None]) -> None:
    """A table for each contract, what needs attention, details to open."""
    golden("report.md", render_markdown(suite, name="nightly", locations={"run-1": "runs/run-1"}))


def test_a_row_for_each_line(runs: Runs) -> None:
    """Name, verdict, rate, interval with its level, requirement, trials, failures, why."""
    rows = Page(render_markdown([runs["fail"]])).rows

    titles = ["criterion", "verdict", "rate", "95 % interval", "held against", "trials", "failed"]
    assert [*titles, "why"] == rows[0]
    assert {8} == {len(row) for row in rows}
    needed = "required ≥ 95 %"
    assert ["valid-json", "✅ PASS", "99.0 %", "≈ [94.5, 99.8]", needed, "100", "1"] == rows[1][:7]
    assert ["grounded", "❌ FAIL", "88.0 %", "≈ [80.2, 93.0]", "required ≥ 90 %"] == rows[2][:5]
    assert "100" == rows[2][5]
    assert ["no-pii", "✅ NO FAILURE OBSERVED"] == rows[3][:2]
    limit = "required ≤ 450 ms"
    assert ["latency p95", "⚠️ FAIL (advisory)", "495 ms", "", limit, "87"] == rows[4][:6]


def test_inputs_that_pass_need_no_row(runs: Runs) -> None:
    """The criterion, and those of its inputs that did not."""
    names = [row[0] for row in Page(render_markdown([runs["inputs"]])).rows[1:]]

    assert ["books", "books [terrace]", "books [cellar]"] == names


def test_it_says_whom_the_verdicts_speak_of(runs: Runs) -> None:
    """Once where they agree, by criterion where an observational one claims less."""
    shown = Page(render_markdown([runs["fail"]])).shown

    assert "valid-json, grounded: about these 2 inputs, not about others." in shown
    assert "no-pii: about the trials of this run and nothing else." in shown
    assert "This is about this input, not about others." in render_markdown([runs["pass"]])


def test_the_head_says_it_all(suite: list[RunRecord], runs: Runs) -> None:
    """The marker, the verdict and the suite in figures; money that is no formula."""
    lines = render_markdown(suite, name="Nightly").split("\n")

    assert [marker("Nightly"), "## ❌ FAIL: Nightly"] == lines[:2]
    assert r"\$0.61" in lines[3]
    assert "## ✅ PASS: trialwise" in render_markdown([runs["pass"]])
    assert "## 🚫 REFUSED: trialwise" in render_markdown([runs["refused"], runs["pass"]])


def test_what_needs_attention_is_listed(suite: list[RunRecord]) -> None:
    """What failed and why, the end of a budget, a caveat."""
    shown = Page(render_markdown(suite)).shown

    assert "grounded: A rate above 0.9 was not shown (88 of 100, 95 needed)." in shown
    assert "The budget of $0.20 was used up." in shown
    assert "one passing trial needed a retry" in shown


def test_a_passing_suite_needs_no_attention(runs: Runs) -> None:
    """Neither a list of it nor failures to open."""
    text = render_markdown([runs["pass"]])

    assert "Needs attention" not in text
    assert 1 == text.count("<details>")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "<!-- trialwise-report: trialwise -->"),
        ("a --> b", "<!-- trialwise-report: a-b -->"),
        ("--", "<!-- trialwise-report: trialwise -->"),
        ("x" * 100, f"<!-- trialwise-report: {'x' * 60} -->"),
    ],
)
def test_a_marker_cannot_be_ended_by_a_name(name: str, expected: str) -> None:
    """It finds the comment again, and stays hidden."""
    assert expected == marker(name)


@given(TEXTS)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    """In a table cell and in a list, GitHub's parser gives back what was visible of it."""
    cell = Page(f"| a | b |\n|--|--|\n| x{escape(text)}x | y |").rows[1]
    item = Page(f"- **x**: {escape(text)}x")

    assert [f"x{make_visible(text)}x", "y"] == [one.replace(ZERO_WIDTH, "") for one in cell]
    assert {"ul", "li", "strong"} == set(item.tags)


@given(TEXTS)
def test_nothing_shown_is_acted_on(marked: Made, text: str) -> None:
    """No tag but the report's own, no mention, no reference, and as many rows as without it."""
    markdown = render_markdown(marked(text), name=text)
    page, plain = Page(markdown), Page(render_markdown(marked("")))
    outside = "".join(page.text)

    assert set(page.tags) <= OWN_TAGS
    assert list(map(len, plain.rows)) == list(map(len, page.rows))
    assert plain.tags.count("details") == page.tags.count("details")
    assert markdown.encode("utf-8").decode("utf-8")
    assert not re.search(r"@[A-Za-z0-9]|#[A-Za-z0-9]|GH-\d", outside, re.IGNORECASE)


@pytest.mark.parametrize("text", HOSTILE)
def test_evidence_stands_in_code(runs: Runs, text: str) -> None:
    """However many backticks it holds."""
    record = runs["inputs"]
    failed = CheckResult.fail("wrong", evidence=f"a{text}b")
    trials = tuple(
        trial
        if trial.passed
        else replace(trial, outcomes=(replace(trial.outcomes[0], result=failed),))
        for trial in record.trials
    )
    page = Page(render_markdown([replace(record, trials=trials)]))

    assert set(page.tags) <= OWN_TAGS
    assert f"a{make_visible(text)}b" not in page.shown


@pytest.mark.slow
def test_it_never_outgrows_a_comment(marked: Made) -> None:
    """Six hundred runs with long names: the head, what needs attention, and how much is left."""
    records = marked(" 名`|<&" * 60) * 150
    text = render_markdown(records)

    assert len(text.encode()) <= MOST_BYTES
    assert re.search(r"_[\d,]+ parts left out to keep this short\._\n$", text)
    assert "### Needs attention" in text
    assert text.count("<details>") == text.count("</details>")
    assert set(Page(text).tags) <= OWN_TAGS


def test_a_table_that_is_too_long_counts_its_rest(runs: Runs) -> None:
    """A thousand criteria of one contract."""
    record = runs["pass"]
    (finding,) = record.verdict.findings
    many = tuple(replace(finding, criterion=f"criterion {i}") for i in range(1000))
    text = render_markdown([replace(record, verdict=replace(record.verdict, findings=many))])
    (rest,) = re.findall(r"^\| … and (\d+) more \|", text, re.MULTILINE)

    assert 1000 == text.count("| criterion ") - 1 + int(rest)
    assert len(text.encode()) <= MOST_BYTES


def test_an_empty_suite_is_refused() -> None:
    """What was not run has no summary."""
    with pytest.raises(InvalidArgument, match="never PASS"):
        render_markdown([])


def test_the_same_records_give_the_same_text(marked: Made) -> None:
    """Nothing but the records goes into it."""
    assert render_markdown(marked("x")) == render_markdown(marked("x"))
