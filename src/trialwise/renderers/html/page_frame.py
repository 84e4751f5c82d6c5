"""A document as one page or fragment, charts as a file: nothing is fetched, one small script runs.

The page forbids itself every network request and every script but its own, so that whatever a
service answered cannot become more than text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256

from trialwise.documents.blocks import Badge, Document, Section
from trialwise.documents.charts import Chart
from trialwise.renderers.html import shapes
from trialwise.renderers.html.block_markup import (
    render_block,
    render_blocks,
    render_facts,
    render_under,
)
from trialwise.renderers.html.markup import (
    DARK,
    LIGHT,
    Markup,
    Outline,
    declare_colours,
    element,
    join_markup,
    palette_css,
    read_asset,
)

#: Facts whose values are all as short as this are shown as large figures.
_FIGURE = 16


_FOOTER = (
    "Made by trialwise. Probabilities are computed, not simulated; this page holds everything it "
    "shows and asks the network for nothing."
)


def render_document(document: Document) -> str:
    """Render the document as a complete HTML file.

    Args:
        document: What to show.
    """
    # One outline for the page: identities are claimed from it, and no two elements may share one.
    outline = Outline(level=1)
    start = "" if document.badge is None else f"{document.badge.word} · "
    header = _render_masthead(document, outline)
    body = _render_body(document, outline.below)
    return _render_file(f"{start}{document.title}", header, body)


def _render_body(document: Document, outline: Outline, *, lists: bool = True) -> Markup:
    """Render the verdict, then the list of what else there is, then all of it."""
    sections = [(one, outline.find(one.name or one.heading)) for one in _list_sections(document)]
    # The contracts of a suite come after the sections about the whole of it.
    several = [one for one in document.blocks if isinstance(one, Document)]
    parts = [_render_verdict(document, outline)]
    parts += [_render_contents(sections)] if sections and lists else []
    parts += (_render_section(one, identity, outline) for one, identity in sections)
    parts += (_render_article(one, k, outline) for k, one in enumerate(several, start=1))
    return join_markup(parts)


def _list_sections(document: Document) -> Iterator[Section]:
    """List the sections of a document; a block outside of any is one of its own."""
    for block in document.blocks:
        if isinstance(block, Section):
            yield block
        elif not isinstance(block, Document):
            heading = getattr(block, "heading", "") or getattr(block, "summary", "")
            yield Section(heading=heading, blocks=(block,))


def _render_article(document: Document, number: int, outline: Outline) -> Markup:
    """One of several documents."""
    identity = outline.find(document.name)
    return element(
        "article.contract",
        outline.render_heading(element("bdi", document.title), id=f"{identity}-h"),
        # Each contract has a "verdict" and a "criteria": a prefix keeps their identities apart.
        _render_body(document, outline.nest(f"c{number}-"), lists=False),
        id=identity,
        aria_labelledby=f"{identity}-h",
    )


def _render_verdict(document: Document, outline: Outline) -> Markup:
    """Badge, lead and key figures, and below them what belongs to the verdict."""
    identity = outline.find("verdict")
    badge, heading, glyph = document.badge, None, None
    if badge is not None:
        glyph = shapes.draw_glyph(badge.tone)
        heard = element("span.heard", f"{document.badge_label}: ")
        note = element("span.intent", f" {badge.note}") if badge.note else None
        heading = outline.render_heading(heard, badge.word, note, id=f"{identity}-h")
    lead = element("p.meaning", document.lead) if document.lead else None
    kind = "plain" if badge is None else shapes.write_badge_class(badge)
    values = [value for _, value in document.facts if isinstance(value, str)]
    # Large figures need short values; a sentence in that size would fill the screen.
    figures = "figures" if all(len(value) <= _FIGURE for value in values) else "facts"
    named = badge is not None and outline.is_alone
    return element(
        "section.banner",
        element("div", glyph, element("div.say", heading, lead), class_=f"decision {kind}"),
        render_facts(document.facts, outline, figures),
        *(element("div.framed", render_block(block, outline.below)) for block in document.opening),
        id=identity,
        aria_labelledby=f"{identity}-h" if named else None,
        aria_label=None if badge is not None or not outline.is_alone else document.kind,
    )


def _render_section(section: Section, identity: str, outline: Outline) -> Markup:
    """Render a section of the page under its heading, with a word on how to read it."""
    note = element("p.note", section.note) if section.note else None
    heading = outline.render_heading(section.heading, id=f"{identity}-h")
    blocks = (render_under(section.heading, one, outline.below) for one in section.blocks)
    side, body = element("div.side", heading, note), element("div.body", *blocks)
    label = f"{identity}-h" if outline.is_alone else None
    return element("section", side, body, id=identity, aria_labelledby=label)


def _render_masthead(document: Document, outline: Outline) -> Markup:
    switch = {"type": "button", "class_": "theme", "hidden": True, "data_theme_toggle": True}
    toggle = element("button", "Theme: system", **switch)
    lines = [element("span", element("bdi", part)) for part in document.dateline]
    bar = element("div.bar", element("p.eyebrow", document.kind), toggle)
    dateline = element("p.dateline", *lines) if lines else None
    heading = outline.render_heading(element("bdi", document.title))
    return element("header.masthead", bar, heading, dateline)


def _render_contents(sections: Sequence[tuple[Section, str]]) -> Markup:
    """Links to the sections in the order in which they stand."""
    links = (element("a", section.heading, href=f"#{identity}") for section, identity in sections)
    listed = element("ol", *(element("li", link) for link in links))
    return element("nav", listed, aria_label="Sections", class_="contents")


def _render_file(title: str, header: Markup, content: Markup) -> str:
    style = palette_css() + read_asset("page.css") + read_asset("charts.css")
    script = read_asset("page.js")
    # The policy names the one script by its hash: a script that a reply smuggled in has another.
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content="trialwise"),
        # Whoever follows a link out of a report should not tell where it lies.
        element("meta", name="referrer", content="no-referrer"),
        # Without it browsers ask the server of the page for an icon.
        element("link", rel="icon", href="data:,"),
        element("title", title),
        Markup(f"<style>{style}</style>"),
    ]
    body = [
        element("a", "Skip to the verdict", href="#verdict-start", class_="skip"),
        header,
        element("main", content, id="verdict-start", tabindex="-1"),
        element("footer", element("p", _FOOTER)),
        Markup(f"<script>{script}</script>"),
    ]
    page = element("html", element("head", *head), element("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


_CLASS = "trialwise-out"


_COLOURS = (
    "card", "ink", "quiet", "edge", "grid", "accent",
    "pass", "pass-wash", "fail", "fail-wash", "open", "open-wash",
)  # fmt: skip


#: How JupyterLab, VS Code, Colab and Sphinx say that they are light, or dark.
_THEMES = (
    ("[data-jp-theme-light=true]", ".vscode-light", "[theme=light]", "[data-theme=light]"),
    ("[data-jp-theme-light=false]", ".vscode-dark", "[theme=dark]", "[data-theme=dark]"),
)


def render_fragment(document: Document) -> str:
    """Render the document as one element.

    Args:
        document: What to show: its verdict, and blocks without sections.
    """
    badge = document.badge or Badge(word="", tone="plain")
    facts = " · ".join(str(value) for _, value in document.facts if value)
    name = element("strong.word", badge.word), " ", element("bdi.title", document.title)
    said = element("div.said", document.lead), element("div.facts", facts)
    kind = f"head {shapes.pick_shade(badge.tone)}"
    head = element("div", shapes.draw_glyph(badge.tone), element("div", *name, *said), class_=kind)
    blocks = render_blocks(document.blocks, Outline(level=3))
    style = Markup(f"<style>{_write_style()}</style>")
    return str(element("div", style, head, blocks, class_=_CLASS))


def _write_style() -> str:
    light, dark = (
        f"color-scheme:{name};" + declare_colours({key: colours[key] for key in _COLOURS})
        for name, colours in (("light", LIGHT), ("dark", DARK))
    )
    lights, darks = (",".join(f"{theme} &" for theme in themes) for themes in _THEMES)
    # A notebook's own theme beats the system's.
    themed = (
        f"&{{{light}}}@media(prefers-color-scheme:dark){{&{{{dark}}}}}"
        f"{lights}{{{light}}}{darks}{{{dark}}}"
    )
    plain = re.sub(r"/\*.*?\*/|\n", "", read_asset("fragment.css"), flags=re.DOTALL)
    return (themed + plain).replace("&", f".{_CLASS}")


# Charts as an SVG file of their own: the shapes of a page in a frame whose words are SVG too.
#
# Inside a page the words of a chart are HTML, so that they keep the reader's size. A file that is
# put into a slide or a README has no page around it.

WIDTH, HEIGHT = 680, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 28, 60, 46
#: Room for the heading above a chart.
CAPTION = 26
#: The height of a line of words.
_LINE = 14
#: The name of the SVG vocabulary; nothing is fetched from there.
NAMESPACE = "http://www.w3.org/2000/svg"
_STYLE = """\
.tw-chart{font:12px/1.3 system-ui,-apple-system,"Segoe UI",sans-serif}
.tw-chart text{fill:var(--ink)}
.tw-chart .soft{fill:var(--quiet)}
"""


def render_chart_file(charts: Sequence[Chart]) -> str:
    """Charts one above the other, each under its heading, as a file of its own."""
    step = HEIGHT + CAPTION
    height = step * len(charts)
    style = palette_css(".tw-chart") + _STYLE + read_asset("charts.css")
    ground = element("rect", width=WIDTH, height=height, style="fill:var(--card)")
    parts: list[object] = [Markup(f"<style>{style}</style>"), ground]
    for k, chart in enumerate(charts):
        heading = {"x": LEFT, "y": k * step + 18, "font_size": 14, "font_weight": 600}
        parts.append(element("text", chart.heading, **heading))
        parts.append(_render_framed(chart, f"chart-{k + 1}", k * step + CAPTION))
    # Both a box and a size: slides need the one to scale, and file managers the other to preview.
    size = {"viewBox": f"0 0 {WIDTH} {height}", "width": WIDTH, "height": height}
    return f"{element('svg', *parts, xmlns=NAMESPACE, class_='tw-chart', **size)}\n"


def _render_framed(chart: Chart, identity: str, top: int) -> Markup:
    """Render a chart with its words, as an image with a name and a description."""
    size = {"width": WIDTH - LEFT - RIGHT, "height": HEIGHT - TOP - BOTTOM}
    return element(
        "svg",
        element("title", chart.heading, id=f"{identity}-title"),
        element("desc", chart.summary, id=f"{identity}-desc"),
        join_markup(_draw_key(chart)),
        shapes.draw_shapes(chart, x=LEFT, y=TOP, **size),
        join_markup(_draw_ticks(chart)),
        join_markup(_draw_guides(chart)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        y=top,
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )


def _draw_ticks(chart: Chart) -> Iterator[Markup]:
    for value, text in chart.y.list_ticks():
        y = f"{_find_y(chart, value) + 4:.1f}"
        yield element("text", text, x=LEFT - 6, y=y, text_anchor="end", class_="soft")
    for value, text in chart.x.list_ticks(most=8):
        at = {"x": f"{_find_x(chart, value):.1f}", "y": HEIGHT - BOTTOM + 16}
        yield element("text", text, **at, text_anchor="middle", class_="soft")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield element("text", chart.x.label, x=f"{middle:.1f}", y=HEIGHT - 8, text_anchor="middle")


def _draw_guides(chart: Chart) -> Iterator[Markup]:
    """List the words of guides: of upright ones above the chart, in lines that do not touch."""
    upright = sorted((one for one in chart.guides if one.axis == "x"), key=lambda one: one.value)
    lines = shapes.stagger_labels(
        [(chart.x.place(one.value), len(one.label) // 2) for one in upright]
    )
    for guide, (row, side) in zip(upright, lines, strict=True):
        anchor, shift = ("end", -4) if side == "before" else ("start", 4)
        x, y = _find_x(chart, guide.value) + shift, TOP - 5 - _LINE * row
        yield element("text", guide.label, x=f"{x:.1f}", y=y, text_anchor=anchor)
    for guide in chart.guides:
        if guide.axis == "y":
            above = _find_y(chart, guide.value) - 5
            yield element("text", guide.label, x=LEFT + 6, y=f"{above:.1f}")


def _draw_key(chart: Chart) -> Iterator[Markup]:
    x = float(LEFT)
    for name, style in shapes.list_key(chart):
        kind, _, ink = style.partition("-")
        if kind == "fill":
            yield element("rect", x=f"{x:.1f}", y=9, width=14, height=12, class_=style)
        elif kind == "point":
            yield element("path", d=f"M{x + 8:.1f} 15h0", class_=f"dot line-{ink}")
        else:
            yield element("path", d=f"M{x:.1f} 15h22", class_=f"stroke {style}")
        yield element("text", name, x=f"{x + 28:.1f}", y=19)
        # Capitals are wider; a browser's own measure is not to be had here.
        x += 48 + sum(8.4 if letter.isupper() else 6.4 for letter in name)


def _find_x(chart: Chart, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * chart.x.place(value)


def _find_y(chart: Chart, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * chart.y.place(value)
