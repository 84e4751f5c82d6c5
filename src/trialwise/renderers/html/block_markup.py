"""Blocks as HTML: one function for each kind of block, and one for the cells inside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trialwise.documents import blocks
from trialwise.documents.charts import Chart, Strip, Strips
from trialwise.documents.numbers import as_count
from trialwise.renderers.html import shapes
from trialwise.renderers.html.markup import Markup, Outline, element, join_markup, make_safe, quote

#: Shares of failures at which a shade grows darker.
_STEPS = (0.0, 0.02, 0.10, 0.25, 0.50, 0.75)
#: Facts whose values are no longer than this stand in two columns.
_SHORT = 64


def render_blocks(given: Iterable[blocks.Block], outline: Outline) -> Markup:
    """Blocks one after the other."""
    return join_markup(render_block(block, outline) for block in given)


def render_block(block: blocks.Block, outline: Outline) -> Markup:
    """Render a block below a heading of the outline's level."""
    return _BLOCKS[type(block)](block, outline)


def render_under(heading: str, block: blocks.Block, outline: Outline) -> Markup:
    """Render a block below a heading, which it does not repeat where its own is the same."""
    # A screen reader would read the same heading twice in a row.
    if getattr(block, "heading", "") != heading:
        return render_block(block, outline)
    match block:
        case blocks.Table():
            return _render_table(replace(block, is_headed=False), outline)
        case blocks.Facts() | blocks.Prose() | blocks.Items():
            return render_block(replace(block, heading=""), outline)
        case Chart():
            return _render_chart(block, outline, is_headed=False)
        case _:
            return render_block(block, outline)


def _render_chart(chart: Chart, outline: Outline, *, is_headed: bool = True) -> Markup:
    values = blocks.list_rows(
        chart.rows, chart.columns, heading=chart.heading, words=(0,), is_headed=False
    )
    table = _render_table(values, outline)
    return shapes.render_chart(chart, outline if is_headed else None, table)


def render_cell(cell: blocks.Cell, outline: Outline) -> Markup:
    """Render what a table, a list or a paragraph holds."""
    return make_safe(cell) if isinstance(cell, str) else _CELLS[type(cell)](cell, outline)


def render_facts(pairs: blocks.Pairs, outline: Outline, class_: str = "") -> Markup:
    """Terms with what they are; pairs without a value are left out."""
    # An empty value would read as one that is known to be nothing.
    known = [(term, value) for term, value in pairs if value not in (None, "")]
    if not known:
        return Markup("")
    if not class_:
        # Two columns of short facts save a screen; long ones would wrap in both.
        short = all(len(value) <= _SHORT for _, value in known if isinstance(value, str))
        class_ = "facts two" if short and len(known) > 2 else "facts"
    rows = []
    for term, value in known:
        said = element("bdi", render_cell(value or "", outline))
        rows.append(element("div", element("dt", element("bdi", term)), element("dd", said)))
    return element("dl", *rows, class_=class_)


# --- Words ------------------------------------------------------------------------------------


def _render_columns(block: blocks.Columns, outline: Outline) -> Markup:
    if all(isinstance(one, Chart) for one in block.blocks):
        return element("div.plots", render_blocks(block.blocks, outline))
    inside = (element("div", render_block(one, outline)) for one in block.blocks)
    return element("div.columns", *inside)


def _render_headed(heading: str, content: Markup, outline: Outline) -> Markup:
    if not heading or not content:
        return content
    return element("div", outline.render_heading(element("bdi", heading)), content)


def _render_prose(block: blocks.Prose, outline: Outline) -> Markup:
    # What a service said may run from right to left, and tells its own direction.
    kind = {"plain": None, "quiet": "note"}.get(block.tone, block.tone)
    direction = "auto" if kind == "fail" else None
    cells = (render_cell(one, outline) for one in block.paragraphs if one)
    paragraphs = [element("p", one, class_=kind, dir=direction) for one in cells]
    return _render_headed(block.heading, join_markup(paragraphs), outline)


def _render_items(block: blocks.Items, outline: Outline) -> Markup:
    entries = [element("li", render_cell(item, outline)) for item in block.items]
    kind = None if block.tone == "plain" else f"tone-{block.tone}"
    items = element("ul", *entries, class_=kind) if entries else None
    return join_markup([outline.render_heading(block.heading) if block.heading else None, items])


def _quote_under(heading: str, *parts: Markup) -> Markup:
    label = element("p.label", heading) if heading else None
    return element("div.quoted", label, element("pre", *parts, dir="auto"))


def _render_compared(block: blocks.Compared, _: Outline) -> Markup:
    """Side by side where there is room; what differs is deleted from one, inserted in the other."""
    texts = []
    sides = zip(block.headings, (block.left, block.right), ("del", "ins"), strict=True)
    for heading, pieces, mark in sides:
        quoted = ((quote(one.text), one.differs) for one in pieces)
        parts = (element(mark, text) if differs else text for text, differs in quoted)
        texts.append(_quote_under(heading, *parts))
    return element("div.compared", *texts)


def _render_details(block: blocks.Details, outline: Outline) -> Markup:
    inside = element("summary", block.summary), render_blocks(block.blocks, outline)
    kind = "whole" if block.is_printed else None
    return element("details", *inside, open=block.is_open, class_=kind)


def _render_part(block: blocks.Section, outline: Outline) -> Markup:
    """Render a section inside another: one of several under a heading of its own."""
    identity = outline.find(block.name) if block.name else None
    label = f"{identity}-h" if identity else None
    deep = " deep" if block.depth == "analysis" else ""
    tone = "" if block.tone == "plain" else f" tone-{block.tone}"
    badges = [part for badge in block.badges for part in (" ", shapes.render_badge(badge))]
    aside = (" ", element("small", block.aside)) if block.aside else ()
    kind, colon, name = block.heading.partition(": ")
    # The analysis shouts its headings, which a terminal needs; names keep their letters.
    shown = f"{kind.capitalize()}{colon}{name}" if block.depth == "analysis" else block.heading
    return element(
        "article" if identity else "div",
        outline.render_heading(element("bdi", shown), *badges, *aside, id=label),
        render_blocks(block.blocks, outline.below),
        element("p.note", block.note) if block.note else None,
        id=identity,
        class_=f"part{deep}{tone}",
        aria_labelledby=label,
    )


# --- Tables -----------------------------------------------------------------------------------


def _render_table(table: blocks.Table, outline: Outline) -> Markup:
    numeric = [None if place in table.words else "num" for place in range(len(table.columns))]
    heads = [
        element("th", render_cell(column, outline), scope="col", class_=kind)
        for column, kind in zip(table.columns, numeric, strict=True)
    ]
    caption = element("caption", table.heading, class_=None if table.is_headed else "heard")
    rows = element("tbody", *(_render_row(row, numeric, outline) for row in table.rows))
    head = element("thead", element("tr", *heads))
    made = element("table", caption, head, rows, class_=_pick_table_class(table))
    # A group and no region: the page has enough landmarks.
    scroll = element("div.scroll", made, role="group", aria_label=table.heading, tabindex="0")
    return join_markup([scroll, *(element("p.note", note) for note in table.notes)])


def _pick_table_class(table: blocks.Table) -> str | None:
    cells = [cell for row in table.rows for cell in row.cells if isinstance(cell, blocks.Value)]
    # One shaded cell makes a heat map, whose cells are all set alike.
    if any(cell.shade is not None for cell in cells):
        return "heat"
    if any(cell.share is not None for cell in cells):
        return "scores"
    return "compact" if len(table.columns) <= 4 else None


def _render_row(row: blocks.Row, numeric: Sequence[str | None], outline: Outline) -> Markup:
    name, *values = zip(row.cells, numeric, strict=True)
    first = element("th", render_cell(name[0], outline), scope="row", class_=name[1])
    cells = [_render_table_cell(cell, kind, outline) for cell, kind in values]
    return element("tr", first, *cells, class_=None if row.tone == "plain" else row.tone)


def _render_table_cell(cell: blocks.Cell, kind: str | None, outline: Outline) -> Markup:
    if not isinstance(cell, blocks.Value) or cell.shade is None:
        return element("td", render_cell(cell, outline), class_=kind)
    step = f"{kind or ''} step{_pick_step(cell.shade)} hit".strip()
    note = element("small", cell.note)
    return element("td", cell.text, note, class_=step, title=cell.hint or None)


def _pick_step(shade: float) -> int:
    """Return how dark a cell is.

    >>> [_pick_step(share) for share in (0.0, 0.01, 0.1, 1.0)]
    [0, 1, 2, 5]
    """
    return sum(shade > bound for bound in _STEPS[:-1]) if shade < 0.75 else len(_STEPS) - 1


def _render_name(name: blocks.Name, outline: Outline) -> Markup:
    text = element("bdi", name.text)
    return element("a", text, href=f"#{outline.find(name.target)}") if name.target else text


def _render_value(value: blocks.Value, _: Outline) -> Markup:
    parts: list[object] = []
    if value.tone in ("pass", "fail", "open"):
        heard = element("span.heard", f"{value.mark} ") if value.mark else None
        glyph, shade = shapes.draw_glyph(value.tone), shapes.pick_shade(value.tone)
        parts.append(element("span", glyph, heard, class_=shade))
    parts.append(element("b", element("bdi", value.text)) if value.strong else value.text)
    if value.share is not None:
        filled = element("span", style=f"width:{100 * min(1.0, max(0.0, value.share)):.1f}%")
        parts.append(element("span.spark", filled, aria_hidden="true"))
    if value.note:
        parts.append(element("small", value.note))
    if value.hint:
        return element("span", *parts, title=value.hint)
    alarm = value.tone == "broken"
    return element("b.alarm", *parts) if alarm else join_markup(parts)


# --- Cards ------------------------------------------------------------------------------------


def _render_cards(block: blocks.Cards, outline: Outline) -> Markup:
    cards = [_render_card(card, outline) for card in block.cards]
    filtered = any(card.tags for card in block.cards)
    form = _render_filter(block) if block.choices or block.is_searched else None
    listed = element("div.trials", *cards, data_trials=filtered or None)
    return join_markup([form, listed])


def _render_filter(block: blocks.Cards) -> Markup:
    """Choices that a script makes work; without one they stay hidden and all cards are shown."""
    search = element("label", "Search ", element("input", type="search", name="words"))
    choices = (element("label", f"{one.label} ", _render_choice(one)) for one in block.choices)
    count = f"{as_count(len(block.cards), block.noun)} shown"
    fields = (search if block.is_searched else None, *choices)
    output = element("output", count, aria_live="polite")
    return element("form.filter", *fields, output, hidden=True, data_filter=block.noun)


def _render_choice(choice: blocks.Choice) -> Markup:
    options = [element("option", text, value=value) for value, text in choice.options]
    everything = element("option", choice.everything, value="")
    return element("select", everything, *options, name=choice.name)


def _render_card(card: blocks.Card, outline: Outline) -> Markup:
    words = ((element("bdi", badge.word), f"chip tone-{badge.tone}") for badge in card.badges)
    chips = [element("span", word, class_=kind) for word, kind in words]
    named = element("span.index", card.label), element("span.input", element("bdi", card.name))
    told = [element("span.chips", *chips)] if chips else []
    told += [element("span.why", card.text, dir="auto")] if card.text else []
    # The script filters by these and by nothing else: it never reads the words of a card.
    tags = {f"data_{name}": " ".join(values) for name, values in card.tags.items()}
    return element(
        "details",
        element("summary", *named, *told),
        element("div.inside", *(_render_in_card(one, outline) for one in card.blocks)),
        open=card.is_open,
        class_="trial",
        **tags,
    )


def _render_in_card(block: blocks.Block, outline: Outline) -> Markup:
    if isinstance(block, blocks.Facts):
        return render_facts(block.pairs, outline, "facts meta")
    return element("div", render_block(block, outline))


# --- Sessions -----------------------------------------------------------------------------------


def _render_timeline(timeline: blocks.Timeline, outline: Outline) -> Markup:
    """Render the messages and calls in their order, under how many there were."""
    rows = [shapes.render_ticks(list(timeline.ticks))] if timeline.ticks else []
    for step in timeline.steps:
        if isinstance(step, str):
            rows.append(element("li.gap", element("p.note", step)))
        elif isinstance(step, blocks.Message):
            rows.append(_render_message(step, outline))
        else:
            rows.append(_render_call(step, outline))
    steps = element("ol.calls", *rows) if rows else None
    return element("div.quoted", element("p.label", timeline.heading), steps)


def _render_message(message: blocks.Message, outline: Outline) -> Markup:
    who = element("span.who", element("bdi", message.speaker))
    return element("li.message", who, _render_said([message.text], outline))


def _render_said(texts: Iterable[blocks.Excerpt], outline: Outline) -> Markup:
    said = (element("div", *_list_excerpt(one, outline)) for one in texts)
    return element("div.said", *said)


def _render_call(call: blocks.Call, outline: Outline) -> Markup:
    return element(
        "li",
        element("span.place", call.place),
        element("span.who", element("b", element("bdi", call.name)), call.about),
        element("span.when", call.when),
        _draw_lane(call),
        _render_said(call.texts, outline),
        class_="failing" if call.tone == "fail" else None,
    )


def _draw_lane(call: blocks.Call) -> Markup:
    """Draw where the call stood in the session: decoration, the words beside it say the same."""
    if call.start is None:
        return Markup("")
    # In percent, so that bars follow the width of any screen.
    place = f"left:{100 * call.start:.2f}%;width:{100 * call.width:.2f}%"
    bar = element("span", style=place, class_="endless" if call.is_endless else None)
    return element("span.lane", bar, aria_hidden="true")


def _list_excerpt(excerpt: blocks.Excerpt, outline: Outline) -> Iterator[object]:
    if excerpt.tone == "fail":
        yield shapes.draw_glyph("fail")
    if excerpt.label:
        yield element("span.label", excerpt.label)
        yield " "
    if excerpt.text:
        yield element("code", quote(excerpt.text), dir="auto")
    if excerpt.rest is not None:
        yield _render_details(excerpt.rest, outline)


_BLOCKS: Mapping[type, Callable[[Any, Outline], Markup]] = {
    blocks.Facts: lambda block, outline: _render_headed(
        block.heading, render_facts(block.pairs, outline), outline
    ),
    blocks.Prose: _render_prose,
    blocks.Items: _render_items,
    blocks.Verbatim: lambda block, _: _quote_under(block.heading, quote(block.text)),
    blocks.Compared: _render_compared,
    blocks.Table: _render_table,
    blocks.Details: _render_details,
    blocks.Columns: _render_columns,
    blocks.Section: _render_part,
    Chart: _render_chart,
    Strips: shapes.render_strips,
    blocks.Cards: _render_cards,
    blocks.Timeline: _render_timeline,
}
_CELLS: Mapping[type, Callable[[Any, Outline], Markup]] = {
    blocks.Name: _render_name,
    blocks.Badge: lambda badge, _: shapes.render_badge(badge),
    blocks.Value: _render_value,
    blocks.Verbatim: lambda text, _: element(
        "div", f"{text.heading} ", element("code", quote(text.text), dir="auto")
    ),
    Strip: lambda strip, _: element("span.picture", shapes.draw_strip(strip)),
    tuple: lambda cells, outline: join_markup(render_cell(one, outline) for one in cells),
}
