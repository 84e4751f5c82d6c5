"""The shapes of a chart as SVG, in a square that its frame stretches.

Used by the frame of a page and by the file of charts alike, so that there is one way to draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trialwise.documents.charts import Chart, Guide, Hit, Line, Place
from trialwise.renderers.html.markup import Markup, element

__all__ = ["draw_shapes", "list_key", "stagger_labels"]

#: The side of the square that shapes are drawn in.
SIDE = 1000
#: The narrowest plot, in letters: labels that are nearer than their length get lines of their own.
LETTERS = 28


def draw_shapes(chart: Chart, **attributes: object) -> Markup:
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


def list_key(chart: Chart) -> Iterator[tuple[str, str]]:
    """The name and the class of everything that is named and not only by its axis, each once."""
    entries = [(area.name, f"fill-{area.ink}") for area in chart.areas]
    entries += [(line.name, _style_line(line)) for line in chart.lines]
    entries += [(mark.name, f"point-{mark.ink}") for mark in chart.marks]
    yield from dict.fromkeys(one for one in entries if one[0] not in ("", chart.y.label))


def stagger_labels(labels: Sequence[tuple[float, int]]) -> list[tuple[int, str]]:
    """The line of each label above a chart, from the bottom, and its side.

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
        touched = [rows[k] for k in range(number) if spans[k][0] > place - width]
        rows.append(max(touched, default=-1) + 1)
    return rows


def _style_line(line: Line) -> str:
    return f"line-{line.ink}{' dashed' if line.dashed else ''}"


def _draw_hit(chart: Chart, hit: Hit) -> Markup:
    left, right = SIDE * chart.x.place(hit.low), SIDE * chart.x.place(hit.high)
    return element(
        "rect",
        element("title", hit.text),
        x=f"{left:.1f}",
        y=0,
        width=f"{max(right - left, 0.5):.1f}",
        height=SIDE,
        class_="hit",
    )


def _draw_guide(chart: Chart, guide: Guide) -> Markup:
    if guide.axis == "x":
        d = f"M{_across(chart.x.place(guide.value))} 0V{SIDE}"
    else:
        d = f"M0 {_down(chart.y.place(guide.value))}H{SIDE}"
    return element("path", d=d, class_="guide")


def _draw_path(chart: Chart, places: Iterable[Place]) -> str:
    steps = [f"{_across(chart.x.place(x))} {_down(chart.y.place(y))}" for x, y in places]
    return "M" + "L".join(steps)


def _across(share: float) -> str:
    return f"{SIDE * share:.1f}".removesuffix(".0")


def _down(share: float) -> str:
    return f"{SIDE * (1 - share):.1f}".removesuffix(".0")
