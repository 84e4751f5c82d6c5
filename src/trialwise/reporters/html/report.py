"""A run, or a suite of them, as one page: nothing is fetched, nothing runs but one small script.

The page forbids itself every network request and every script but its own, so that whatever a
service answered cannot become more than text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

from trialwise.documents.numbers import as_count, as_duration, as_level, as_money
from trialwise.model.run import RunRecord
from trialwise.reporters.digest import digest
from trialwise.reporters.html.banner import banner
from trialwise.reporters.html.criteria import criteria_sections
from trialwise.reporters.html.gates import gates_section
from trialwise.reporters.html.inputs import inputs_section
from trialwise.reporters.html.latency import latency_section
from trialwise.reporters.html.parts import Outline, Room, badge, facts, glyph, table, tone
from trialwise.reporters.html.provenance import (
    provenance_section,
    qualifications_section,
    reproducibility_section,
)
from trialwise.reporters.html.reasons import reasons_figure
from trialwise.reporters.html.spending import spending_section
from trialwise.reporters.html.trials import trials_section
from trialwise.reporters.html.words import MEASURED, headline, is_measured, is_soft, meaning
from trialwise.reporters.page.markup import Markup, element, joined
from trialwise.reporters.page.palette import palette_css
from trialwise.reporters.suite import (
    checked,
    suite_decision,
    suite_envelopes,
    suite_spending,
    suite_status,
)
from trialwise.reporters.transparent import render_transparent

__all__ = ["render_html"]


def render_html(record: RunRecord | Sequence[RunRecord], *, title: str | None = None) -> str:
    """The report of a run or of a suite as a complete HTML document.

    Args:
        record: What was run, one contract or several.
        title: What the page is called; the contract's name where none is given.

    Raises:
        InvalidArgument: There is no record: what was not run is never PASS.
    """
    records = checked((record,) if isinstance(record, RunRecord) else record)
    if len(records) == 1:
        name = title or _name(records[0])
        return _document(f"{headline(records[0])} · {name}", *_single(records[0], name))
    name = title or "Suite"
    return _document(f"{suite_status(records)} · {name}", *_suite(records, name))


def _single(record: RunRecord, name: str) -> tuple[Markup, Markup]:
    outline = Outline(level=1)
    title = outline.heading(element("bdi", name))
    header = _masthead("Run report", title, _dateline([record]))
    first, *rest = _contract(record, outline.below, Room())
    # The verdict comes before the list of what else there is.
    return header, joined([first, _contents(outline, joined(rest)), *rest])


def _suite(records: Sequence[RunRecord], name: str) -> tuple[Markup, Markup]:
    outline = Outline(level=1)
    title = outline.heading(element("bdi", name))
    header = _masthead("Suite report", title, _dateline(records))
    room = Room().shared(len(records))
    articles, names = [], []
    for number, record in enumerate(records, start=1):
        inner = Outline(level=2, prefix=f"c{number}-", taken=outline.taken, is_alone=False)
        identity = outline.claim(f"contract {number} {_name(record)}")
        names.append(identity)
        articles.append(
            element(
                "article",
                inner.heading(element("bdi", _name(record)), id=f"{identity}-h"),
                *_contract(record, inner.below, room),
                class_="contract",
                id=identity,
                aria_labelledby=f"{identity}-h",
            )
        )
    return header, joined([_overview(records, names, outline.below), *articles])


def _contract(record: RunRecord, outline: Outline, room: Room) -> list[Markup]:
    """Everything about one run, the most important first."""
    reasons = reasons_figure(digest(record), outline.below)
    report = render_transparent(record.verdict, title=_name(record))
    before = [
        banner(record, outline),
        criteria_sections(record, outline, room),
        latency_section(record, outline),
        gates_section(record, outline),
        outline.section("Failures", reasons) if reasons else Markup(""),
        inputs_section(record, outline, room),
    ]
    after = [
        spending_section(record, outline),
        qualifications_section(record, outline),
        provenance_section(record, outline),
        reproducibility_section(record, report, outline),
    ]
    taken = sum(len(part.encode()) for part in (*before, *after))
    left = max(room.size - taken, room.size // 10)
    return [*before, trials_section(record, outline, room.trials, left), *after]


def _overview(records: Sequence[RunRecord], names: Sequence[str], outline: Outline) -> Markup:
    decision = suite_decision(records)
    spent = suite_spending(records)
    counts = [
        f"{sum(one.verdict.decision == value for one in records)} {value or 'refused'}"
        for value in ("FAIL", None, "INCONCLUSIVE", "PASS")
        if any(one.verdict.decision == value for one in records)
    ]
    rows = [
        (
            element("a", element("bdi", _name(one)), href=f"#{identity}"),
            badge(None, MEASURED)
            if is_measured(one)
            else badge(one.verdict.decision, headline(one), soft=is_soft(one)),
            meaning(one),
            f"{len(one.trials):,}",
            as_duration(one.verdict.spending.seconds) if one.verdict.spending.seconds else "–",
            "–" if one.verdict.spending.usd is None else as_money(one.verdict.spending.usd),
        )
        for one, identity in zip(records, names, strict=True)
    ]
    columns = ("contract", "verdict", "meaning", "trials", "time", "cost")
    identity = outline.claim("suite")
    kind = tone(decision)
    bounds = [f"{one.meaning}: at most {as_level(one.capped)}" for one in suite_envelopes(records)]
    together = f"Over all contracts together: {'; '.join(bounds)}." if bounds else None
    return element(
        "section",
        element(
            "div",
            glyph(kind),
            element(
                "div",
                outline.heading(
                    element("span", "Suite verdict: ", class_="heard"),
                    suite_status(records).value,
                    id=f"{identity}-h",
                ),
                element(
                    "p",
                    f"{as_count(len(records), 'contract')}: {', '.join(counts)}. "
                    "A suite is as good as the worst of them.",
                    class_="meaning",
                ),
                class_="say",
            ),
            class_=f"decision {kind}",
        ),
        facts(
            [
                ("contracts", f"{len(records):,}"),
                ("trials", f"{spent.trials:,}"),
                ("time", as_duration(spent.seconds) if spent.seconds else None),
                ("cost", None if spent.usd is None else as_money(spent.usd)),
                ("tokens", f"{spent.tokens:,}" if spent.tokens else None),
            ],
            class_="figures",
        ),
        table("Contracts", columns, rows, words=(0, 1, 2), wide=True, hide_caption=True),
        element("p", together, class_="note") if together else None,
        class_="banner suite",
        id=identity,
        aria_labelledby=f"{identity}-h",
    )


def _name(record: RunRecord) -> str:
    return record.verdict.contract or record.plan.contract


def _dateline(records: Sequence[RunRecord]) -> Markup:
    first = records[0]
    when = first.verdict.started_at
    parts = [
        element("time", f"{when.day} {when:%B %Y, %H:%M %Z}".strip(), datetime=when.isoformat())
        if when is not None
        else None,
        element("span", "run ", element("bdi", first.run_id))
        if len(records) == 1 and first.run_id
        else None,
        f"trialwise {first.verdict.reproducibility.tool_version}".strip(),
    ]
    return element("p", *(element("span", part) for part in parts if part), class_="dateline")


def _masthead(kind: str, heading: Markup, dateline: Markup) -> Markup:
    toggle = element(
        "button",
        "Theme: system",
        type="button",
        class_="theme",
        hidden=True,
        data_theme_toggle=True,
    )
    return element(
        "header",
        element("div", element("p", kind, class_="eyebrow"), toggle, class_="bar"),
        heading,
        dateline,
        class_="masthead",
    )


def _contents(outline: Outline, content: Markup) -> Markup:
    """Links to the sections in the order in which they stand, whichever was made first."""
    order = sorted(outline.contents, key=lambda one: content.find(f'<section id="{one[1]}"'))
    links = [element("li", element("a", title, href=f"#{identity}")) for title, identity in order]
    return element("nav", element("ol", *links), aria_label="Sections", class_="contents")


def _document(title: str, header: Markup, content: Markup) -> str:
    style, script = palette_css() + _asset("page.css"), _asset("page.js")
    digest_of = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest_of}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content="trialwise"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        Markup(f"<style>{style}</style>"),
    ]
    body = [
        element("a", "Skip to the verdict", href="#verdict-start", class_="skip"),
        header,
        element("main", content, id="verdict-start", tabindex="-1"),
        element(
            "footer",
            element(
                "p",
                "Made by trialwise. Probabilities are computed, not simulated; this page holds "
                "everything it shows and asks the network for nothing.",
            ),
        ),
        Markup(f"<script>{script}</script>"),
    ]
    page = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _asset(name: str) -> str:
    from importlib.resources import files

    return files("trialwise.reporters.html").joinpath(name).read_text("utf-8")
