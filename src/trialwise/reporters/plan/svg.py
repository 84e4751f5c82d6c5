"""The charts of a plan as SVG, for a page or a file of its own.

Drawn by hand, so that a page shows its charts without a library and without a network. Every point
says its values on hover.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from trialwise.documents.numbers import as_probability
from trialwise.reporters.page.axis import part, round_steps
from trialwise.reporters.page.palette import palette_css
from trialwise.reporters.plan.charts import Chart, Ink, Point, Series, tick

__all__ = ["SVG_STYLE", "render_svg", "render_svg_file"]

WIDTH, HEIGHT = 680, 334
LEFT, RIGHT, TOP, BOTTOM = 60, 28, 48, 46
#: Room for a heading above a chart in a file of several.
CAPTION = 26
#: The name of the SVG vocabulary; nothing is fetched from there.
NAMESPACE = "http://www.w3.org/2000/svg"

SVG_STYLE = (
    palette_css(".tw-chart")
    + """\
.tw-chart{--bound:var(--ink);font:12px/1.3 system-ui,-apple-system,"Segoe UI",sans-serif}
.tw-chart text{fill:var(--ink)}.tw-chart .soft{fill:var(--quiet)}
.tw-chart .grid{stroke:var(--grid)}.tw-chart .guide{stroke:var(--ink);stroke-dasharray:4 3}
.tw-chart .halo{stroke:var(--card);stroke-width:3;stroke-opacity:.55}
.tw-chart .line{fill:none;stroke-width:2.2}.tw-chart .hit{fill:transparent}
.tw-chart .hit:hover{fill:var(--ink);fill-opacity:.18}
.tw-chart .dot{fill-opacity:0;stroke-opacity:0}.tw-chart .dot:hover,.tw-chart .mark{fill-opacity:1}
"""
)

_DASHES = {"two": "7 4", "three": "2 3", "four": "10 3 2 3"}


def render_svg(chart: Chart, *, identity: str = "chart", top: int = 0) -> str:
    """The chart as an SVG element, to stand in a page or in a file that brings `SVG_STYLE`.

    Args:
        chart: What to draw.
        identity: Unique where it stands: ties the element to its title and description.
        top: How far down it is drawn within another SVG element.
    """
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" y="{top}" width="{WIDTH}" height="{HEIGHT}"'
    named = f'role="img" aria-labelledby="{identity}-title {identity}-desc"'
    parts = [
        f'<svg class="tw-chart" {size} {named}>',
        f'<title id="{identity}-title">{escape(chart.heading)}</title>',
        f'<desc id="{identity}-desc">{escape(chart.description)}</desc>',
        *_svg_grid(chart),
        *(_svg_bands(chart) if chart.kind == "shares" else _svg_lines(chart)),
        *_svg_guides(chart),
        *_svg_key(chart),
        # Last, so that nothing lies above what is pointed at.
        *_svg_hits(chart),
    ]
    return "\n".join([*parts, "</svg>"])


def render_svg_file(charts: Sequence[Chart]) -> str:
    """Charts one above the other, each under its heading, as a file of its own."""
    step = HEIGHT + CAPTION
    height = step * len(charts)
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [
        f'<svg xmlns="{NAMESPACE}" class="tw-chart" {size}>',
        f"<style>{SVG_STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" style="fill:var(--card)"/>',
    ]
    for i, chart in enumerate(charts):
        where = f'x="{LEFT}" y="{i * step + 18}" font-size="14" font-weight="600"'
        parts.append(f"<text {where}>{escape(chart.heading)}</text>")
        parts.append(render_svg(chart, identity=f"chart-{i + 1}", top=i * step + CAPTION))
    return "\n".join([*parts, "</svg>", ""])


def _svg_grid(chart: Chart) -> Iterator[str]:
    low, high = chart.y_range
    for i in range(5):
        value = low + (high - low) * i / 4
        y = _y(chart, value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        text = escape(tick(value, chart.y_unit))
        yield f'<text class="soft" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
    for value in round_steps(*chart.x_range):
        text = escape(tick(value, chart.x_unit))
        where = f'x="{_x(chart, value):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle"'
        yield f'<text class="soft" {where}>{text}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    where = f'x="{middle:.1f}" y="{HEIGHT - 8}" text-anchor="middle"'
    yield f"<text {where}>{escape(chart.x_label)}</text>"


def _svg_bands(chart: Chart) -> Iterator[str]:
    below = [0.0] * len(chart.series[0].points)
    for series in chart.series:
        above = [b + point.y for b, point in zip(below, series.points, strict=True)]
        xs = [_x(chart, point.x) for point in series.points]
        outline = [(x, _y(chart, y)) for x, y in zip(xs, above, strict=True)]
        outline += [(x, _y(chart, y)) for x, y in zip(xs[::-1], below[::-1], strict=True)]
        yield f'<polygon style="fill:{_band(series.ink)}" points="{_path(outline)}"/>'
        below = above


def _band(ink: Ink) -> str:
    """The ground of a band is paler than its ink."""
    return f"var(--{ink}-fill)"


def _svg_lines(chart: Chart) -> Iterator[str]:
    for series in chart.series:
        places = [(_x(chart, point.x), _y(chart, point.y)) for point in series.points]
        if series.connected:
            yield f'<polyline class="line" {_stroke(series)} points="{_path(places)}"/>'
        else:
            yield from (_mark(series, x, y) for x, y in places)


def _stroke(series: Series) -> str:
    dash = _DASHES.get(series.ink)
    dashes = f";stroke-dasharray:{dash}" if dash else ""
    return f'style="stroke:var(--{series.ink}){dashes}"'


def _mark(series: Series, x: float, y: float) -> str:
    """A triangle that stands on the point it marks."""
    corners = _path([(x - 6, y - 8), (x + 6, y - 8), (x, y)])
    return f'<polygon class="mark" style="fill:var(--{series.ink})" points="{corners}"/>'


def _svg_guides(chart: Chart) -> Iterator[str]:
    for guide in chart.guides:
        if guide.axis == "x":
            x, bottom = _x(chart, guide.value), HEIGHT - BOTTOM
            span = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"'
            # A pale line beneath keeps the dashes visible on any band.
            yield f'<line class="halo" {span}/><line class="guide" {span}/>'
            where = f'x="{x:.1f}" y="{TOP - 5}" text-anchor="middle"'
        else:
            y = _y(chart, guide.value)
            yield (
                f'<line class="guide" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            where = f'x="{LEFT + 6}" y="{y - 5:.1f}"'
        yield f"<text {where}>{escape(guide.label)}</text>"


def _svg_key(chart: Chart) -> Iterator[str]:
    x = float(LEFT)
    for series in chart.series:
        gap = 20
        if chart.kind == "shares":
            fill = f'style="fill:{_band(series.ink)}"'
            yield f'<rect x="{x:.1f}" y="9" width="14" height="12" {fill}/>'
        elif series.connected:
            gap = 28
            span = f'x1="{x:.1f}" x2="{x + 22:.1f}" y1="15" y2="15"'
            yield f'<line class="line" {span} {_stroke(series)}/>'
        else:
            yield _mark(series, x + 8, 18)
        yield f'<text x="{x + gap:.1f}" y="19">{escape(series.name)}</text>'
        # Capitals are wider; a browser's own measure is not to be had here.
        x += gap + 20 + sum(8.4 if letter.isupper() else 6.4 for letter in series.name)


def _svg_hits(chart: Chart) -> Iterator[str]:
    """What is pointed at: a column for stacked shares, a circle for each point of a line."""
    if chart.kind == "shares":
        stacks = list(zip(*(series.points for series in chart.series), strict=True))
        step = (WIDTH - LEFT - RIGHT) / max(1, len(stacks) - 1)
        for stack in stacks:
            x = max(float(LEFT), _x(chart, stack[0].x) - step / 2)
            width = min(step, WIDTH - RIGHT - x)
            title = escape(_stack_label(chart, stack))
            yield (
                f'<rect class="hit" x="{x:.1f}" y="{TOP}" width="{width:.1f}" '
                f'height="{HEIGHT - TOP - BOTTOM}"><title>{title}</title></rect>'
            )
        return
    for series in reversed(chart.series):
        for point in series.points:
            x, y = _x(chart, point.x), _y(chart, point.y)
            title = escape(point.label or f"{series.name}: {tick(point.y, chart.y_unit)}")
            yield (
                f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4.5" '
                f'style="fill:var(--{series.ink})"><title>{title}</title></circle>'
            )


def _stack_label(chart: Chart, stack: Sequence[Point]) -> str:
    shares = zip(chart.series, stack, strict=True)
    parts = ", ".join(f"{series.name} {as_probability(point.y)}" for series, point in shares)
    return f"{chart.x_label} {tick(stack[0].x, chart.x_unit)}: {parts}"


def _x(chart: Chart, value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * part(value, *chart.x_range)


def _y(chart: Chart, value: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part(value, *chart.y_range)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
