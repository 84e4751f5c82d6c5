"""Charts as an SVG file of their own: the shapes of a page in a frame whose words are SVG too.

Inside a page the words of a chart are HTML, so that they keep the reader's size. A file that is
put into a slide or a README has no page around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trialwise.documents.charts import Chart
from trialwise.renderers.html.markup import Markup, element, join_markup, read_asset
from trialwise.renderers.html.palette import palette_css
from trialwise.renderers.html.shapes import draw_shapes, list_key, stagger_labels

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
    parts: list[object] = [
        Markup(f"<style>{style}</style>"),
        element("rect", width=WIDTH, height=height, style="fill:var(--card)"),
    ]
    for k, chart in enumerate(charts):
        heading = {"x": LEFT, "y": k * step + 18, "font_size": 14, "font_weight": 600}
        parts.append(element("text", chart.heading, **heading))
        parts.append(_render_framed(chart, f"chart-{k + 1}", k * step + CAPTION))
    size = {"viewBox": f"0 0 {WIDTH} {height}", "width": WIDTH, "height": height}
    return f"{element('svg', *parts, xmlns=NAMESPACE, class_='tw-chart', **size)}\n"


def _render_framed(chart: Chart, identity: str, top: int) -> Markup:
    """Render a chart with its words, as an image with a name and a description."""
    size = {"width": WIDTH - LEFT - RIGHT, "height": HEIGHT - TOP - BOTTOM}
    return element(
        "svg",
        element("title", chart.heading, id=f"{identity}-title"),
        element("desc", chart.summary, id=f"{identity}-desc"),
        join_markup(_list_key(chart)),
        draw_shapes(chart, x=LEFT, y=TOP, **size),
        join_markup(_list_ticks(chart)),
        join_markup(_list_guides(chart)),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        y=top,
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_labelledby=f"{identity}-title {identity}-desc",
    )


def _list_ticks(chart: Chart) -> Iterator[Markup]:
    for value, text in chart.y.list_ticks():
        y = _find_y(chart, value) + 4
        yield element("text", text, x=LEFT - 6, y=f"{y:.1f}", text_anchor="end", class_="soft")
    for value, text in chart.x.list_ticks(most=8):
        x, y = _find_x(chart, value), HEIGHT - BOTTOM + 16
        yield element("text", text, x=f"{x:.1f}", y=y, text_anchor="middle", class_="soft")
    middle = (LEFT + WIDTH - RIGHT) / 2
    yield element("text", chart.x.label, x=f"{middle:.1f}", y=HEIGHT - 8, text_anchor="middle")


def _list_guides(chart: Chart) -> Iterator[Markup]:
    """List the words of guides: of upright ones above the chart, in lines that do not touch."""
    upright = sorted((one for one in chart.guides if one.axis == "x"), key=lambda one: one.value)
    lines = stagger_labels([(chart.x.place(one.value), len(one.label) // 2) for one in upright])
    for guide, (row, side) in zip(upright, lines, strict=True):
        anchor, shift = ("end", -4) if side == "before" else ("start", 4)
        x, y = _find_x(chart, guide.value) + shift, TOP - 5 - _LINE * row
        yield element("text", guide.label, x=f"{x:.1f}", y=y, text_anchor=anchor)
    for guide in chart.guides:
        if guide.axis == "y":
            above = _find_y(chart, guide.value) - 5
            yield element("text", guide.label, x=LEFT + 6, y=f"{above:.1f}")


def _list_key(chart: Chart) -> Iterator[Markup]:
    x = float(LEFT)
    for name, style in list_key(chart):
        if style.startswith("fill-"):
            yield element("rect", x=f"{x:.1f}", y=9, width=14, height=12, class_=style)
        elif style.startswith("point-"):
            yield element(
                "path", d=f"M{x + 8:.1f} 15h0", class_=f"dot line-{style.removeprefix('point-')}"
            )
        else:
            yield element("path", d=f"M{x:.1f} 15h22", class_=f"stroke {style}")
        yield element("text", name, x=f"{x + 28:.1f}", y=19)
        # Capitals are wider; a browser's own measure is not to be had here.
        x += 48 + sum(8.4 if letter.isupper() else 6.4 for letter in name)


def _find_x(chart: Chart, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * chart.x.place(value)


def _find_y(chart: Chart, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * chart.y.place(value)
