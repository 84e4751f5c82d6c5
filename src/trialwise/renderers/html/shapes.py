"""Charts as SVG and markup: their shapes in a square that its frame stretches, and intervals.

Used by the frame of a page and by the file of charts alike, so that there is one way to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trialwise.documents import charts
from trialwise.documents.blocks import Badge, Tone
from trialwise.renderers.html.markup import Markup, Outline, element, join_markup

#: The side of the square that shapes are drawn in.
SIDE = 1000


#: The narrowest plot, in letters: labels that are nearer than their length get lines of their own.
LETTERS = 28


def draw_shapes(chart: charts.Chart, **attributes: object) -> Markup:
    """Grid, areas, guides, lines, dots, and on top of them what is pointed at."""
    levels = (_down(chart.y.place(value)) for value, _ in chart.y.list_ticks())
    paths = [(f"M0 {level}H{SIDE}", "grid") for level in levels]
    for area in chart.areas:
        edge = _draw_path(chart, [*area.upper, *reversed(area.lower)])
        paths.append((f"{edge}Z", f"area fill-{area.ink}"))
    paths += ((_draw_guide(chart, guide), "guide") for guide in chart.guides)
    for line in chart.lines:
        paths.append((_draw_path(chart, line.points), f"stroke {_style_line(line)}"))
    for mark in chart.marks:
        # A stroke of no length with round ends is a dot that stretching leaves round.
        paths.append((f"{_draw_path(chart, [(mark.x, mark.y)])}h0", f"dot line-{mark.ink}"))
    shapes = [element("path", d=d, class_=kind) for d, kind in paths]
    shapes += (_draw_hit(chart, hit) for hit in chart.hits)
    # Stretched without keeping its proportions: the words are HTML beside it and keep theirs.
    box = {"viewBox": f"0 0 {SIDE} {SIDE}", "preserveAspectRatio": "none", "focusable": "false"}
    return element("svg", *shapes, **box, **attributes)


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


def _draw_guide(chart: charts.Chart, guide: charts.Guide) -> str:
    across, down = _across(chart.x.place(guide.value)), _down(chart.y.place(guide.value))
    return f"M{across} 0V{SIDE}" if guide.axis == "x" else f"M0 {down}H{SIDE}"


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
        "div.plot",
        _render_y_ticks(chart),
        element("div.shapes", draw_shapes(chart), *_list_labels(chart, upright, lines)),
        _render_x_ticks(chart.x),
        element("div.xlabel", chart.x.label),
        style=f"margin-top:{above:.1f}em" if above else None,
        role="img",
        tabindex="0",
        aria_label=f"{chart.heading}. {chart.summary}",
        data_chart=True,
    )
    heading = None if outline is None else outline.render_heading(chart.heading)
    readout = element("p.readout", aria_live="polite")
    return element(
        "figure.figure",
        element("figcaption", heading, element("p", chart.summary)),
        element("div.keys", _render_key(chart)),
        element("div.frame", element("span.ylabel", chart.y.label), frame, readout),
        element("details", element("summary", "Values as a table"), values),
    )


def _render_key(chart: charts.Chart) -> Markup:
    key = [(element("span", class_=f"swatch {style}"), name) for name, style in list_key(chart)]
    entries = [element("li", swatch, name) for swatch, name in key]
    return element("ul.key", *entries, aria_hidden="true") if entries else Markup("")


def _list_labels(
    chart: charts.Chart, upright: Sequence[charts.Guide], lines: Sequence[tuple[int, str]]
) -> Iterator[Markup]:
    """Words on guides and marks; upright guides have theirs above the chart, in lines."""
    for guide, (row, side) in zip(upright, lines, strict=True):
        left, height = 100 * chart.x.place(guide.value), LINE * (row + 1) + GAP
        style = f"left:{left:.2f}%;height:{height:.1f}em"
        yield element("span", guide.label, class_=f"tag upright {side}", style=style)
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
            kind = f"tag mark {side}{' below' if mark.below else ''}"
            style = f"left:{100 * x:.2f}%;bottom:{100 * y:.2f}%"
            yield element("span", mark.label, class_=kind, style=style)


def _render_y_ticks(chart: charts.Chart) -> Markup:
    ticks = ((100 * chart.y.place(value), text) for value, text in chart.y.list_ticks())
    spans = [element("span", text, style=f"bottom:{share:.2f}%") for share, text in ticks]
    return element("div.yticks", *spans)


def _render_x_ticks(axis: charts.Axis) -> Markup:
    spans = []
    for value, text in axis.list_ticks():
        share = axis.place(value)
        end = "end" if share > 0.96 else None
        spans.append(element("span", text, class_=end, style=f"left:{100 * share:.2f}%"))
    return element("div.xticks", *spans)


#: A disc with a tick, a square with a cross, a diamond with a bar, a ring for what is no decision.
_SHAPES = {
    "pass": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "m4.7 8.3 2.3 2.3 4.3-5"),
    "fail": ("M1.5 1.5h13v13h-13Z", "m5 5 6 6m0-6-6 6"),
    "open": ("M8 .3 15.7 8 8 15.7.3 8Z", "M4.8 8h6.4"),
    "none": ("M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", ""),
}
#: For a picture beside words that say the same.
_SILENT = {"aria_hidden": "true", "focusable": "false"}


def pick_shade(tone: str) -> str:
    """Pick the class of a tone or an ink, which colours and shapes a part."""
    return tone if tone in _SHAPES else "none"


def draw_shape(shade: str) -> Markup:
    """Draw a shape in a square of 16 by 16."""
    ground, sign = _SHAPES[shade]
    drawn = element("path", d=ground, class_="ground")
    return join_markup([drawn, element("path", d=sign, class_="sign") if sign else None])


def draw_glyph(tone: Tone) -> Markup:
    """Draw the shape of a tone beside words that say the same."""
    shape = draw_shape(pick_shade(tone))
    return element("svg", shape, viewBox="0 0 16 16", class_="glyph", **_SILENT)


def write_badge_class(badge: Badge) -> str:
    """Write the classes of a badge: what softens a PASS leaves its shape hollow."""
    hollow = " hollow" if badge.soft and badge.tone == "pass" else ""
    return f"{pick_shade(badge.tone)}{hollow}"


def render_badge(badge: Badge) -> Markup:
    """Render a word with its shape; a quiet one has a border instead."""
    # A word without a decision gets no shape: shapes are what decisions are told apart by.
    if badge.tone == "quiet":
        return element("span.pill", badge.word)
    kind = f"badge {write_badge_class(badge)}"
    return element("span", draw_glyph(badge.tone), badge.word, class_=kind)


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
        rows.append(element("li.axis", element("span.ends", *ends)))
    heading = outline.render_heading(strips.heading)
    caption = element("figcaption", heading, element("p", strips.summary))
    return element("figure.figure", caption, element("ol.strips", *rows))


def render_ticks(ticks: list[tuple[float, str]]) -> Markup:
    """Render the words below a scale, each at its share of it."""
    spans = []
    for share, text in ticks:
        # A label at an end of the scale keeps within it.
        kind = "start" if share < 0.04 else "end" if share > 0.96 else None
        spans.append(element("span", text, class_=kind, style=f"left:{100 * share:.2f}%"))
    return element("li.axis", element("span.xticks", *spans), aria_hidden="true")


def _render_strip_row(row: charts.StripRow, grid: list[float]) -> Markup:
    strip = row.strip
    soft = " hollow" if strip.soft and strip.ink == "pass" else ""
    dashed = " dashed" if strip.dashed else ""
    interval = f" {row.interval}" if row.interval else None
    note = element("span.of", f" {row.note}") if row.note else None
    return element(
        "li",
        element("span.name", element("bdi", row.name)),
        element("span.picture", draw_strip(strip, grid)),
        element("span.value", element("b", row.value), interval, note),
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
    title = element("title", strip.hint) if strip.hint else None
    lines = (_draw_upright(f"{100 * share:.2f}%", 0, class_="grid") for share in grid or ())
    marks.append(element("svg", dot, x=value, y=_MIDDLE, class_="point"))
    size = {"width": "100%", "height": HEIGHT, "class_": f"hit {shade}"}
    return element("svg", title, *lines, *marks, **size, **_SILENT)


def _draw_upright(x: str, top: int, class_: str) -> Markup:
    return element("line", x1=x, x2=x, y1=top, y2=HEIGHT - top, class_=class_)


def _write_share(strip: charts.Strip, value: float) -> str:
    return f"{100 * charts.find_share(value, *strip.span):.2f}%"
