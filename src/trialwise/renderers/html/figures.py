"""Figures without two axes: intervals on one scale, bars, and the calls of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trialwise.documents.blocks import Call, Details, Excerpt, Message, Timeline
from trialwise.documents.charts import Bar, Bars, Strip, StripRow, Strips, find_share
from trialwise.renderers.html.markup import Markup, Outline, element, join_markup, quote
from trialwise.renderers.html.shapes import draw_glyph, draw_shape, pick_shade

HEIGHT, _MIDDLE = 30, 15


def render_strips(strips: Strips, outline: Outline) -> Markup:
    """Render a line for each interval, over the ticks of their scale."""
    ticks = [(strips.axis.place(value), text) for value, text in strips.axis.list_ticks(most=6)]
    rows = [_render_strip_row(row, [share for share, _ in ticks]) for row in strips.rows]
    rows.append(_render_ticks(ticks))
    if any(strips.ends):
        ends = [element("span", element("bdi", one)) for one in strips.ends]
        rows.append(element("li", element("span", *ends, class_="ends"), class_="axis"))
    return element(
        "figure",
        element("figcaption", outline.render_heading(strips.heading), element("p", strips.summary)),
        element("ol", *rows, class_="strips"),
        class_="figure",
    )


def _render_ticks(ticks: list[tuple[float, str]]) -> Markup:
    # A label at an end of the scale keeps within it.
    spans = [
        element(
            "span",
            text,
            class_="start" if share < 0.04 else "end" if share > 0.96 else None,
            style=f"left:{100 * share:.2f}%",
        )
        for share, text in ticks
    ]
    return element(
        "li", element("span", *spans, class_="xticks"), class_="axis", aria_hidden="true"
    )


def _render_strip_row(row: StripRow, grid: list[float]) -> Markup:
    strip = row.strip
    soft = " hollow" if strip.soft and strip.ink == "pass" else ""
    dashed = " dashed" if strip.dashed else ""
    return element(
        "li",
        element("span", element("bdi", row.name), class_="name"),
        element("span", draw_strip(strip, grid), class_="picture"),
        element(
            "span",
            element("b", row.value),
            f" {row.interval}" if row.interval else None,
            element("span", f" {row.note}", class_="of") if row.note else None,
            class_="value",
        ),
        class_=f"strip {pick_shade(strip.ink)}{soft}{dashed} depth{row.depth}",
    )


def draw_strip(strip: Strip, grid: list[float] | None = None) -> Markup:
    """Draw an interval with its estimate; words beside it say the same.

    Args:
        strip: What to draw.
        grid: Shares of the scale that have a tick.
    """
    shade = pick_shade(strip.ink)
    low, value, high = (_write_share(strip, one) for one in (strip.low, strip.value, strip.high))
    marks = [_draw_upright(_write_share(strip, one), 4, class_="other") for one in strip.others]
    if strip.need is not None:
        marks.append(_draw_upright(_write_share(strip, strip.need), 2, class_="need"))
    if strip.high > strip.low:
        line = {"x1": low, "x2": high, "y1": _MIDDLE, "y2": _MIDDLE}
        marks.append(element("line", **line, class_="whisker"))
        marks += [_draw_upright(end, 10, class_="whisker cap") for end in (low, high)]
    dot = element("g", draw_shape(shade), transform="translate(-6.8 -6.8) scale(.85)")
    return element(
        "svg",
        element("title", strip.hint) if strip.hint else None,
        *(_draw_upright(f"{100 * share:.2f}%", 0, class_="grid") for share in grid or ()),
        *marks,
        element("svg", dot, x=value, y=_MIDDLE, class_="point"),
        width="100%",
        height=HEIGHT,
        class_=f"hit {shade}",
        aria_hidden="true",
        focusable="false",
    )


def _draw_upright(x: str, top: int, class_: str) -> Markup:
    return element("line", x1=x, x2=x, y1=top, y2=HEIGHT - top, class_=class_)


def _write_share(strip: Strip, value: float) -> str:
    return f"{100 * find_share(value, *strip.span):.2f}%"


def render_bars(bars: Bars, outline: Outline) -> Markup:
    """Render a bar for each amount, with its number and its words."""
    rows = [_render_bar(bar) for bar in bars.bars]
    if bars.rest:
        rows.append(element("li", element("span", bars.rest, class_="what"), class_="rest"))
    heading = outline.render_heading(element("bdi", bars.heading)) if bars.heading else None
    return element(
        "div", heading, element("ol", *rows, class_=f"bars ink-{bars.ink}"), class_="barred"
    )


def _render_bar(bar: Bar) -> Markup:
    filled = element("span", style=f"width:{100 * bar.share:.1f}%")
    return element(
        "li",
        element("span", bar.name, class_="what"),
        element("span", bar.value, class_="count"),
        element("span", filled, class_="bar", aria_hidden="true"),
        element("span", bar.note, class_="why", dir="auto") if bar.note else None,
        title=bar.hint or None,
        class_="hit" if bar.hint else None,
    )


def render_timeline(timeline: Timeline, render_details: Callable[[Details], Markup]) -> Markup:
    """Render the messages and calls in their order, under how many there were.

    Args:
        timeline: What to show.
        render_details: How the rest of a long text is shown.
    """
    rows = [_render_ticks(list(timeline.ticks))] if timeline.ticks else []
    for step in timeline.steps:
        if isinstance(step, str):
            rows.append(element("li", element("p", step, class_="note"), class_="gap"))
        elif isinstance(step, Message):
            rows.append(_render_message(step, render_details))
        else:
            rows.append(_render_call(step, render_details))
    steps = element("ol", *rows, class_="calls") if rows else None
    return element("div", element("p", timeline.heading, class_="label"), steps, class_="quoted")


def _render_message(message: Message, render_details: Callable[[Details], Markup]) -> Markup:
    said = join_markup(_list_excerpt(message.text, render_details))
    return element(
        "li",
        element("span", element("bdi", message.speaker), class_="who"),
        element("div", element("div", said), class_="said"),
        class_="message",
    )


def _render_call(call: Call, render_details: Callable[[Details], Markup]) -> Markup:
    texts = [join_markup(_list_excerpt(one, render_details)) for one in call.texts]
    return element(
        "li",
        element("span", call.place, class_="place"),
        element("span", element("b", element("bdi", call.name)), call.about, class_="who"),
        element("span", call.when, class_="when"),
        _draw_lane(call),
        element("div", *(element("div", text) for text in texts), class_="said"),
        class_="failing" if call.tone == "fail" else None,
    )


def _draw_lane(call: Call) -> Markup:
    """Draw where the call stood in the session: decoration, the words beside it say the same."""
    if call.start is None:
        return Markup("")
    place = f"left:{100 * call.start:.2f}%;width:{100 * call.width:.2f}%"
    bar = element("span", style=place, class_="endless" if call.is_endless else None)
    return element("span", bar, class_="lane", aria_hidden="true")


def _list_excerpt(
    excerpt: Excerpt, render_details: Callable[[Details], Markup]
) -> Iterator[object]:
    if excerpt.tone == "fail":
        yield draw_glyph("fail")
    if excerpt.label:
        yield element("span", excerpt.label, class_="label")
        yield " "
    if excerpt.text:
        yield element("code", quote(excerpt.text), dir="auto")
    if excerpt.rest is not None:
        yield render_details(excerpt.rest)
