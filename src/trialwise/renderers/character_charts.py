"""Charts for a terminal: drawn with characters, in 80 columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from trialwise.documents.axes import Axis, find_share
from trialwise.documents.charts import Area, Chart, Ink, Place

__all__ = ["render_chart_characters"]

COLUMNS, ROWS = 61, 11
_MARGIN = 9
#: Bands from the bottom up, and the marks of lines, first in Unicode and then in ASCII.
_MARKS: dict[Ink, str] = {
    "pass": "█#",
    "open": "▒?",
    "fail": "·.",
    "one": "●o",
    "two": "×x",
    "three": "○+",
    "four": "△*",
    "quiet": "◌~",
    "bound": "▽v",
}


def render_chart_characters(chart: Chart, *, unicode: bool = True) -> list[str]:
    """The chart as lines of at most 80 columns, heading and key included."""
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    _draw_areas(chart, grid, unicode)
    _draw_lines(chart, grid, unicode)
    low, high = chart.y.low, chart.y.high
    lines = [chart.heading, *_write_key(chart, unicode), ""]
    for row, cells in enumerate(grid):
        value = high - (high - low) * row / (ROWS - 1)
        labelled = row in (0, (ROWS - 1) // 2, ROWS - 1)
        label = _write_tick(value, chart.y) if labelled else ""
        bar = "┤" if label else "│"
        lines.append(f"{label:>{_MARGIN - 1}} {bar if unicode else '|'}{''.join(cells)}".rstrip())
    return [*lines, *_write_axis(chart, unicode)]


def _draw_areas(chart: Chart, grid: list[list[str]], unicode: bool) -> None:
    """Fill each cell whose middle lies inside an area."""
    x, y = chart.x, chart.y
    for area in chart.areas:
        for column in range(COLUMNS):
            at = x.low + (x.high - x.low) * column / (COLUMNS - 1)
            low, high = _find_edges(area, at)
            for row in range(ROWS):
                middle = y.low + (y.high - y.low) * (ROWS - row - 0.5) / ROWS
                if low <= middle < high:
                    grid[row][column] = _pick_mark(area.ink, unicode)


def _find_edges(area: Area, at: float) -> tuple[float, float]:
    return _interpolate(area.lower, at), _interpolate(area.upper, at)


def _interpolate(points: Sequence[Place], at: float) -> float:
    """The height of a line of points at a place."""
    after = bisect_left(points, at, key=lambda point: point[0])
    if after in (0, len(points)):
        return points[min(after, len(points) - 1)][1]
    (left, low), (right, high) = points[after - 1], points[after]
    return low + (high - low) * find_share(at, left, right)


def _draw_lines(chart: Chart, grid: list[list[str]], unicode: bool) -> None:
    # Where points meet, single ones are to be seen before lines, and the first line before others.
    drawn = [(point, line.ink) for line in reversed(chart.lines) for point in line.points]
    drawn += [((mark.x, mark.y), mark.ink) for mark in chart.marks]
    for (x, y), ink in drawn:
        column = round((COLUMNS - 1) * chart.x.place(x))
        row = round((ROWS - 1) * (1 - chart.y.place(y)))
        grid[row][column] = _pick_mark(ink, unicode)


def _write_key(chart: Chart, unicode: bool) -> list[str]:
    """What each mark means, in as many lines as it takes."""
    parts = [(area.ink, area.name) for area in chart.areas]
    parts += [(line.ink, line.name) for line in chart.lines]
    parts += [(mark.ink, mark.name) for mark in chart.marks]
    lines: list[str] = []
    for ink, name in dict.fromkeys(part for part in parts if part[1]):
        entry = f"{_pick_mark(ink, unicode)} {name}"
        if lines and len(lines[-1]) + 3 + len(entry) <= 79:
            lines[-1] += f"   {entry}"
        else:
            lines.append(f"  {entry}")
    return lines


def _pick_mark(ink: Ink, unicode: bool) -> str:
    return _MARKS[ink][0 if unicode else 1]


def _write_tick(value: float, axis: Axis) -> str:
    """A value at a fixed place of an axis, which need not be round."""
    is_round = axis.unit != "count" or value == round(value)
    return axis.format_tick(value) if is_round else axis.format_value(value)


def _write_axis(chart: Chart, unicode: bool) -> Iterator[str]:
    ticks = [(value, _write_tick(value, chart.x)) for value in (chart.x.low, chart.x.high)]
    ticks += [(guide.value, guide.label) for guide in chart.guides if guide.axis == "x"]
    rule = ["─" if unicode else "-"] * COLUMNS
    labels = [" "] * (COLUMNS + 8)
    # The guides first: where labels would run into each other, the ends give way.
    for value, label in reversed(ticks):
        column = round((COLUMNS - 1) * chart.x.place(value))
        rule[column] = "┬" if unicode else "+"
        start = max(0, min(column - len(label) // 2, len(labels) - len(label)))
        if not "".join(labels[max(0, start - 1) : start + len(label) + 1]).strip():
            labels[start : start + len(label)] = label
    yield " " * _MARGIN + ("└" if unicode else "+") + "".join(rule)
    yield (" " * (_MARGIN + 1) + "".join(labels)).rstrip()
    yield " " * (_MARGIN + 1) + chart.x.label
