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
            return shapes.render_chart(block, None, _render_values(block, outline))
        case _:
            return render_block(block, outline)


def _render_chart(chart: Chart, outline: Outline) -> Markup:
    return shapes.render_chart(chart, outline, _render_values(chart, outline))


def _render_values(chart: Chart, outline: Outline) -> Markup:
    rows = tuple(blocks.Row(cells=row) for row in chart.rows)
    table = blocks.Table(heading=chart.heading, columns=chart.columns, rows=rows, is_headed=False)
    return _render_table(table, outline)


def render_cell(cell: blocks.Cell, outline: Outline) -> Markup:
    """Render what a table, a list or a paragraph holds."""
    return make_safe(cell) if isinstance(cell, str) else _CELLS[type(cell)](cell, outline)


def render_facts(pairs: blocks.Pairs, outline: Outline, class_: str = "") -> Markup:
    """Terms with what they are; pairs without a value are left out."""
    known = [(term, value) for term, value in pairs if value not in (None, "")]
    if not known:
        return Markup("")
    if not class_:
        # Two columns of short facts save a screen; long ones would wrap in both.
        short = all(len(value) <= _SHORT for _, value in known if isinstance(value, str))
        class_ = "facts two" if short and len(known) > 2 else "facts"
    rows = [
        element(
            "div",
            element("dt", element("bdi", term)),
            element("dd", element("bdi", render_cell(value or "", outline))),
        )
        for term, value in known
    ]
    return element("dl", *rows, class_=class_)


# --- Words ------------------------------------------------------------------------------------


def _render_columns(block: blocks.Columns, outline: Outline) -> Markup:
    if all(isinstance(one, Chart) for one in block.blocks):
        return element("div", render_blocks(block.blocks, outline), class_="plots")
    inside = (element("div", render_block(one, outline)) for one in block.blocks)
    return element("div", *inside, class_="columns")


def _render_headed(heading: str, content: Markup, outline: Outline) -> Markup:
    if not heading or not content:
        return content
    return element("div", outline.render_heading(element("bdi", heading)), content)


def _render_prose(block: blocks.Prose, outline: Outline) -> Markup:
    # What a service said may run from right to left, and tells its own direction.
    kind = {"plain": None, "quiet": "note"}.get(block.tone, block.tone)
    paragraphs = [
        element("p", render_cell(one, outline), class_=kind, dir="auto" if kind == "fail" else None)
        for one in block.paragraphs
        if one
    ]
    return _render_headed(block.heading, join_markup(paragraphs), outline)


def _render_items(block: blocks.Items, outline: Outline) -> Markup:
    if not block.items and not block.heading:
        return Markup("")
    entries = [element("li", render_cell(item, outline)) for item in block.items]
    kind = None if block.tone == "plain" else f"tone-{block.tone}"
    items = element("ul", *entries, class_=kind) if entries else Markup("")
    heading = outline.render_heading(block.heading) if block.heading else None
    return join_markup([heading, items])


def _render_verbatim(block: blocks.Verbatim, _: Outline) -> Markup:
    label = element("p", block.heading, class_="label") if block.heading else None
    return element("div", label, element("pre", quote(block.text), dir="auto"), class_="quoted")


def _render_compared(block: blocks.Compared, _: Outline) -> Markup:
    """Side by side where there is room; what differs is deleted from one, inserted in the other."""
    texts = zip(block.headings, (block.left, block.right), ("del", "ins"), strict=True)
    return element(
        "div",
        *(_render_pieces(heading, pieces, mark) for heading, pieces, mark in texts),
        class_="compared",
    )


def _render_pieces(heading: str, pieces: Sequence[blocks.Piece], mark: str) -> Markup:
    parts = [element(mark, quote(one.text)) if one.differs else quote(one.text) for one in pieces]
    label = element("p", heading, class_="label")
    return element("div", label, element("pre", *parts, dir="auto"), class_="quoted")


def _render_details(block: blocks.Details, outline: Outline) -> Markup:
    return element(
        "details",
        element("summary", block.summary),
        render_blocks(block.blocks, outline),
        open=block.is_open,
        class_="whole" if block.is_printed else None,
    )


def _render_part(block: blocks.Section, outline: Outline) -> Markup:
    """Render a section inside another: one of several under a heading of its own."""
    identity = outline.find(block.name) if block.name else None
    badges = [part for badge in block.badges for part in (" ", shapes.render_badge(badge))]
    aside = (" ", element("small", block.aside)) if block.aside else ()
    kind, colon, name = block.heading.partition(": ")
    # The analysis shouts its headings, which a terminal needs; names keep their letters.
    shown = f"{kind.capitalize()}{colon}{name}" if block.depth == "analysis" else block.heading
    heading = outline.render_heading(
        element("bdi", shown), *badges, *aside, id=f"{identity}-h" if identity else None
    )
    note = element("p", block.note, class_="note") if block.note else None
    return element(
        "article" if identity else "div",
        heading,
        render_blocks(block.blocks, outline.below),
        note,
        id=identity,
        class_=_pick_part_class(block),
        aria_labelledby=f"{identity}-h" if identity else None,
    )


def _pick_part_class(block: blocks.Section) -> str:
    tone = "" if block.tone == "plain" else f" tone-{block.tone}"
    return f"part{' deep' if block.depth == 'analysis' else ''}{tone}"


# --- Tables -----------------------------------------------------------------------------------


def _render_table(table: blocks.Table, outline: Outline) -> Markup:
    numeric = [None if place in table.words else "num" for place in range(len(table.columns))]
    heads = [
        element("th", render_cell(column, outline), scope="col", class_=kind)
        for column, kind in zip(table.columns, numeric, strict=True)
    ]
    made = element(
        "table",
        element("caption", table.heading, class_=None if table.is_headed else "heard"),
        element("thead", element("tr", *heads)),
        element("tbody", *(_render_row(row, numeric, outline) for row in table.rows)),
        class_=_pick_table_class(table),
    )
    # A group and no region: the page has enough landmarks.
    scroll = element(
        "div", made, class_="scroll", role="group", aria_label=table.heading, tabindex="0"
    )
    return join_markup([scroll, *(element("p", note, class_="note") for note in table.notes)])


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
    return element(
        "td",
        cell.text,
        element("small", cell.note),
        class_=f"{kind or ''} step{_pick_step(cell.shade)} hit".strip(),
        title=cell.hint or None,
    )


def _pick_step(shade: float) -> int:
    """Return how dark a cell is.

    >>> [_pick_step(share) for share in (0.0, 0.01, 0.1, 1.0)]
    [0, 1, 2, 5]
    """
    return sum(shade > bound for bound in _STEPS[:-1]) if shade < 0.75 else len(_STEPS) - 1


def _render_value(value: blocks.Value, _: Outline) -> Markup:
    text: object = element("b", element("bdi", value.text)) if value.strong else value.text
    parts: list[object] = [text]
    if value.tone in ("pass", "fail", "open"):
        heard = element("span", f"{value.mark} ", class_="heard") if value.mark else None
        flag = element(
            "span", shapes.draw_glyph(value.tone), heard, class_=shapes.pick_shade(value.tone)
        )
        parts.insert(0, flag)
    if value.share is not None:
        filled = element("span", style=f"width:{100 * min(1.0, max(0.0, value.share)):.1f}%")
        parts.append(element("span", filled, class_="spark", aria_hidden="true"))
    if value.note:
        parts.append(element("small", value.note))
    if value.hint:
        return element("span", *parts, title=value.hint)
    alarm = value.tone == "broken"
    return element("b", *parts, class_="alarm") if alarm else join_markup(parts)


# --- Cards ------------------------------------------------------------------------------------


def _render_cards(block: blocks.Cards, outline: Outline) -> Markup:
    cards = [_render_card(card, outline) for card in block.cards]
    filtered = any(card.tags for card in block.cards)
    form = _render_filter(block) if block.choices or block.is_searched else None
    listed = element("div", *cards, class_="trials", data_trials=filtered or None)
    return join_markup([form, listed])


def _render_filter(block: blocks.Cards) -> Markup:
    """Choices that a script makes work; without one they stay hidden and all cards are shown."""
    return element(
        "form",
        _render_search() if block.is_searched else None,
        *(element("label", f"{one.label} ", _render_choice(one)) for one in block.choices),
        element("output", f"{as_count(len(block.cards), block.noun)} shown", aria_live="polite"),
        class_="filter",
        hidden=True,
        data_filter=block.noun,
    )


def _render_search() -> Markup:
    return element("label", "Search ", element("input", type="search", name="words"))


def _render_choice(choice: blocks.Choice) -> Markup:
    options = [element("option", text, value=value) for value, text in choice.options]
    everything = element("option", choice.everything, value="")
    return element("select", everything, *options, name=choice.name)


def _render_card(card: blocks.Card, outline: Outline) -> Markup:
    chips = [
        element("span", element("bdi", badge.word), class_=f"chip tone-{badge.tone}")
        for badge in card.badges
    ]
    # The script filters by these and by nothing else: it never reads the words of a card.
    tags = {f"data_{name}": " ".join(values) for name, values in card.tags.items()}
    return element(
        "details",
        element(
            "summary",
            element("span", card.label, class_="index"),
            element("span", element("bdi", card.name), class_="input"),
            element("span", *chips, class_="chips") if chips else None,
            element("span", card.text, class_="why", dir="auto") if card.text else None,
        ),
        element("div", *(_render_in_card(one, outline) for one in card.blocks), class_="inside"),
        open=card.is_open,
        class_="trial",
        **tags,
    )


def _render_in_card(block: blocks.Block, outline: Outline) -> Markup:
    if isinstance(block, blocks.Facts):
        return render_facts(block.pairs, outline, "facts meta")
    return element("div", render_block(block, outline))


def _render_link(link: blocks.Link, outline: Outline) -> Markup:
    return element("a", element("bdi", link.text), href=f"#{outline.find(link.target)}")


# --- Sessions -----------------------------------------------------------------------------------


def _render_timeline(timeline: blocks.Timeline, outline: Outline) -> Markup:
    """Render the messages and calls in their order, under how many there were."""
    rows = [shapes.render_ticks(list(timeline.ticks))] if timeline.ticks else []
    for step in timeline.steps:
        if isinstance(step, str):
            rows.append(element("li", element("p", step, class_="note"), class_="gap"))
        elif isinstance(step, blocks.Message):
            rows.append(_render_message(step, outline))
        else:
            rows.append(_render_call(step, outline))
    steps = element("ol", *rows, class_="calls") if rows else None
    return element("div", element("p", timeline.heading, class_="label"), steps, class_="quoted")


def _render_message(message: blocks.Message, outline: Outline) -> Markup:
    said = join_markup(_list_excerpt(message.text, outline))
    return element(
        "li",
        element("span", element("bdi", message.speaker), class_="who"),
        element("div", element("div", said), class_="said"),
        class_="message",
    )


def _render_call(call: blocks.Call, outline: Outline) -> Markup:
    texts = [join_markup(_list_excerpt(one, outline)) for one in call.texts]
    return element(
        "li",
        element("span", call.place, class_="place"),
        element("span", element("b", element("bdi", call.name)), call.about, class_="who"),
        element("span", call.when, class_="when"),
        _draw_lane(call),
        element("div", *(element("div", text) for text in texts), class_="said"),
        class_="failing" if call.tone == "fail" else None,
    )


def _draw_lane(call: blocks.Call) -> Markup:
    """Draw where the call stood in the session: decoration, the words beside it say the same."""
    if call.start is None:
        return Markup("")
    # In percent, so that bars follow the width of any screen.
    place = f"left:{100 * call.start:.2f}%;width:{100 * call.width:.2f}%"
    bar = element("span", style=place, class_="endless" if call.is_endless else None)
    return element("span", bar, class_="lane", aria_hidden="true")


def _list_excerpt(excerpt: blocks.Excerpt, outline: Outline) -> Iterator[object]:
    if excerpt.tone == "fail":
        yield shapes.draw_glyph("fail")
    if excerpt.label:
        yield element("span", excerpt.label, class_="label")
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
    blocks.Verbatim: _render_verbatim,
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
    blocks.Name: lambda name, _: element("bdi", name.text),
    blocks.Link: _render_link,
    blocks.Badge: lambda badge, _: shapes.render_badge(badge),
    blocks.Value: _render_value,
    blocks.Verbatim: lambda text, _: element(
        "div", f"{text.heading} ", element("code", quote(text.text), dir="auto")
    ),
    Strip: lambda strip, _: element("span", shapes.draw_strip(strip), class_="picture"),
    tuple: lambda cells, outline: join_markup(render_cell(one, outline) for one in cells),
}
