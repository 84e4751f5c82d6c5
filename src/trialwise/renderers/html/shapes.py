"""Charts as SVG and markup: their shapes in a square that its frame stretches, and intervals.

Used by the frame of a page and by the file of charts alike, so that there is one way to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

from trialwise.documents import charts
from trialwise.documents.blocks import Badge, Tone
from trialwise.renderers.html.markup import Markup, Outline, element, join_markup

#: The side of the square that shapes are drawn in.
SIDE = 1000


#: The narrowest plot, in letters: labels that are nearer than their length get lines of their own.
LETTERS = 28


def draw_shapes(chart: charts.Chart, **attributes: object) -> Markup:
    """Grid, areas, guides, lines, dots, and on top of them what is pointed at."""
    grid = [
        element("path", d=f"M0 {_down(chart.y.place(value))}H{SIDE}", class_="grid")
        for value, _ in chart.y.list_ticks()
    ]
    areas = [
        element(
            "path",
            d=_draw_path(chart, [*area.upper, *reversed(area.lower)]) + "Z",
            class_=f"area fill-{area.ink}",
        )
        for area in chart.areas
    ]
    lines = [
        element("path", d=_draw_path(chart, line.points), class_=f"stroke {_style_line(line)}")
        for line in chart.lines
    ]
    # A stroke of no length with round ends is a dot that stretching leaves round.
    marks = [
        element("path", d=_draw_path(chart, [(one.x, one.y)]) + "h0", class_=f"dot line-{one.ink}")
        for one in chart.marks
    ]
    return element(
        "svg",
        *grid,
        *areas,
        *(_draw_guide(chart, guide) for guide in chart.guides),
        *lines,
        *marks,
        *(_draw_hit(chart, hit) for hit in chart.hits),
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        focusable="false",
        **attributes,
    )


def list_key(chart: charts.Chart) -> Iterator[tuple[str, str]]:
    """List the name and the class of everything in the key, each once."""
    # What the axis names already needs no entry.
    entries = [(area.name, f"fill-{area.ink}") for area in chart.areas]
    entries += [(line.name, _style_line(line)) for line in chart.lines]
    entries += [(mark.name, f"point-{mark.ink}") for mark in chart.marks]
    yield from dict.fromkeys(one for one in entries if one[0] not in ("", chart.y.label))


def stagger_labels(labels: Sequence[tuple[float, int]]) -> list[tuple[int, str]]:
    """Return the line of each label above a chart, from the bottom, and its side.

    Labels stand before their guides where there is room, a later one above those it would touch:
    then no guide runs through a label of another. Otherwise everything is mirrored.

    >>> stagger_labels([(0.5, 9), (0.6, 9), (1.0, 9)])
    [(0, 'before'), (1, 'before'), (0, 'before')]
    >>> stagger_labels([(0.0, 9), (0.1, 9)])
    [(1, 'after'), (0, 'after')]
    """
    spans = [(place, (letters + 2) / LETTERS) for place, letters in labels]
    too_far_left = max((width - place for place, width in spans), default=0.0)
    too_far_right = max((place + width - 1 for place, width in spans), default=0.0)
    # The ticks' own column is free above the chart.
    if too_far_left - 0.2 <= max(too_far_right, 0.0):
        return [(row, "before") for row in _stack_spans(spans)]
    mirrored = _stack_spans([(1 - place, width) for place, width in reversed(spans)])
    return [(row, "after") for row in reversed(mirrored)]


def _stack_spans(spans: Sequence[tuple[float, float]]) -> list[int]:
    rows: list[int] = []
    for number, (place, width) in enumerate(spans):
        # A label stands to the left of its guide, so that only those before it can be in its way.
        touched = [rows[k] for k in range(number) if spans[k][0] > place - width]
        rows.append(max(touched, default=-1) + 1)
    return rows


def _style_line(line: charts.Line) -> str:
    return f"line-{line.ink}{' dashed' if line.dashed else ''}"


def _draw_hit(chart: charts.Chart, hit: charts.Hit) -> Markup:
    left, right = SIDE * chart.x.place(hit.low), SIDE * chart.x.place(hit.high)
    return element(
        "rect",
        element("title", hit.text),
        x=f"{left:.1f}",
        y=0,
        # A column of no width could not be pointed at.
        width=f"{max(right - left, 0.5):.1f}",
        height=SIDE,
        class_="hit",
    )


def _draw_guide(chart: charts.Chart, guide: charts.Guide) -> Markup:
    if guide.axis == "x":
        d = f"M{_across(chart.x.place(guide.value))} 0V{SIDE}"
    else:
        d = f"M0 {_down(chart.y.place(guide.value))}H{SIDE}"
    return element("path", d=d, class_="guide")


def _draw_path(chart: charts.Chart, places: Iterable[charts.Place]) -> str:
    steps = [f"{_across(chart.x.place(x))} {_down(chart.y.place(y))}" for x, y in places]
    return "M" + "L".join(steps)


def _across(share: float) -> str:
    return f"{SIDE * share:.1f}".removesuffix(".0")


def _down(share: float) -> str:
    return f"{SIDE * (1 - share):.1f}".removesuffix(".0")


#: How far apart the lines of labels above a chart are, in their own size.
LINE = 1.3


#: Room between the lowest of them and the highest tick beside it.
GAP = 0.5


def render_chart(chart: charts.Chart, outline: Outline | None, values: Markup) -> Markup:
    """Render the chart as a figure with its key, its values on demand and a table of them.

    Args:
        chart: What to draw.
        outline: Where its heading stands; None where something above says the same.
        values: The table of its values.
    """
    upright = sorted((g for g in chart.guides if g.axis == "x"), key=lambda g: g.value)
    lines = stagger_labels([(chart.x.place(g.value), len(g.label)) for g in upright])
    above = LINE * (max(row for row, _ in lines) + 1) + GAP if lines else 0
    # The words about the picture are in the caption; what is in the picture is decoration.
    frame = element(
        "div",
        _render_y_ticks(chart),
        element("div", draw_shapes(chart), *_list_labels(chart, upright, lines), class_="shapes"),
        _render_x_ticks(chart),
        element("div", chart.x.label, class_="xlabel"),
        class_="plot",
        style=f"margin-top:{above:.1f}em" if above else None,
        role="img",
        tabindex="0",
        aria_label=f"{chart.heading}. {chart.summary}",
        data_chart=True,
    )
    heading = None if outline is None else outline.render_heading(chart.heading)
    return element(
        "figure",
        element("figcaption", heading, element("p", chart.summary)),
        element("div", _render_key(chart), class_="keys"),
        element(
            "div",
            element("span", chart.y.label, class_="ylabel"),
            frame,
            element("p", class_="readout", aria_live="polite"),
            class_="frame",
        ),
        element("details", element("summary", "Values as a table"), values),
        class_="figure",
    )


def _render_key(chart: charts.Chart) -> Markup:
    entries = [
        element("li", element("span", class_=f"swatch {style}"), name)
        for name, style in list_key(chart)
    ]
    return element("ul", *entries, class_="key", aria_hidden="true") if entries else Markup("")


def _list_labels(
    chart: charts.Chart, upright: Sequence[charts.Guide], lines: Sequence[tuple[int, str]]
) -> Iterator[Markup]:
    """Words on guides and marks; upright guides have theirs above the chart, in lines."""
    for guide, (row, side) in zip(upright, lines, strict=True):
        yield element(
            "span",
            guide.label,
            class_=f"tag upright {side}",
            style=f"left:{100 * chart.x.place(guide.value):.2f}%;"
            f"height:{LINE * (row + 1) + GAP:.1f}em",
        )
    for guide in chart.guides:
        if guide.axis == "y":
            place = chart.y.place(guide.value)
            # Near the top there is no room above a line for its label.
            under = " under" if place > 0.88 else ""
            style = f"bottom:{100 * place:.2f}%"
            yield element("span", guide.label, class_=f"tag level{under}", style=style)
    for mark in chart.marks:
        if mark.label:
            x, y = chart.x.place(mark.x), chart.y.place(mark.y)
            # The side of its dot on which a label has room.
            side = "before" if x > 0.55 else "after"
            yield element(
                "span",
                mark.label,
                class_=f"tag mark {side}{' below' if mark.below else ''}",
                style=f"left:{100 * x:.2f}%;bottom:{100 * y:.2f}%",
            )


def _render_y_ticks(chart: charts.Chart) -> Markup:
    spans = [
        element("span", text, style=f"bottom:{100 * chart.y.place(value):.2f}%")
        for value, text in chart.y.list_ticks()
    ]
    return element("div", *spans, class_="yticks")


def _render_x_ticks(chart: charts.Chart) -> Markup:
    spans = [
        element(
            "span",
            text,
            class_="end" if chart.x.place(value) > 0.96 else None,
            style=f"left:{100 * chart.x.place(value):.2f}%",
        )
        for value, text in chart.x.list_ticks()
    ]
    return element("div", *spans, class_="xticks")


Shade: TypeAlias = Literal["pass", "fail", "open", "none"]
"""The class that colours and shapes a part."""


_SHADES: dict[str, Shade] = {"pass": "pass", "fail": "fail", "open": "open"}


#: A disc with a tick, a square with a cross, a diamond with a bar, a ring for what is no decision.
_SHAPES: dict[Shade, tuple[str, str]] = {
    "pass": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "m4.7 8.3 2.3 2.3 4.3-5"),
    "fail": ("M1.5 1.5h13v13h-13Z", "m5 5 6 6m0-6-6 6"),
    "open": ("M8 .3 15.7 8 8 15.7.3 8Z", "M4.8 8h6.4"),
    "none": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", ""),
}


def pick_shade(tone: str) -> Shade:
    """Pick the class of a tone or an ink."""
    return _SHADES.get(tone, "none")


def draw_shape(shade: Shade) -> Markup:
    """Draw a shape in a square of 16 by 16."""
    ground, sign = _SHAPES[shade]
    drawn = element("path", d=ground, class_="ground")
    return join_markup([drawn, element("path", d=sign, class_="sign") if sign else None])


def draw_glyph(tone: Tone) -> Markup:
    """Draw the shape of a tone beside words that say the same."""
    return element(
        "svg",
        draw_shape(pick_shade(tone)),
        viewBox="0 0 16 16",
        class_="glyph",
        aria_hidden="true",
        focusable="false",
    )


def write_badge_class(badge: Badge) -> str:
    """Write the classes of a badge: what softens a PASS leaves its shape hollow."""
    hollow = " hollow" if badge.soft and badge.tone == "pass" else ""
    return f"{pick_shade(badge.tone)}{hollow}"


def render_badge(badge: Badge) -> Markup:
    """Render a word with its shape; a quiet one has a border instead."""
    # A word without a decision gets no shape: shapes are what decisions are told apart by.
    if badge.tone == "quiet":
        return element("span", badge.word, class_="pill")
    glyph = draw_glyph(badge.tone)
    return element("span", glyph, badge.word, class_=f"badge {write_badge_class(badge)}")


# --- Intervals on one scale ----------------------------------------------------------------------

#: The height of an interval's line, and where its dot stands.
HEIGHT, _MIDDLE = 30, 15


def render_strips(strips: charts.Strips, outline: Outline) -> Markup:
    """Render a line for each interval, over the ticks of their scale."""
    ticks = [(strips.axis.place(value), text) for value, text in strips.axis.list_ticks(most=6)]
    rows = [_render_strip_row(row, [share for share, _ in ticks]) for row in strips.rows]
    rows.append(render_ticks(ticks))
    if any(strips.ends):
        ends = [element("span", element("bdi", one)) for one in strips.ends]
        rows.append(element("li", element("span", *ends, class_="ends"), class_="axis"))
    return element(
        "figure",
        element("figcaption", outline.render_heading(strips.heading), element("p", strips.summary)),
        element("ol", *rows, class_="strips"),
        class_="figure",
    )


def render_ticks(ticks: list[tuple[float, str]]) -> Markup:
    """Render the words below a scale, each at its share of it."""
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


def _render_strip_row(row: charts.StripRow, grid: list[float]) -> Markup:
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


def draw_strip(strip: charts.Strip, grid: list[float] | None = None) -> Markup:
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
    # An interval of one point has no line, only its dot.
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


def _write_share(strip: charts.Strip, value: float) -> str:
    return f"{100 * charts.find_share(value, *strip.span):.2f}%"
