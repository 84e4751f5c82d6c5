"""The charts of a plan, and how a terminal shows them: with characters, in 80 columns.

Drawn by hand: two kinds of chart, lines and stacked shares, do not pay for a library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.documents.numbers import as_mean_trials, as_percent
from trialwise.reporters.page.axis import part, round_above

__all__ = ["Chart", "Guide", "Ink", "Point", "Series", "render_terminal", "tick"]

Unit: TypeAlias = Literal["rate", "share", "count"]
Kind: TypeAlias = Literal["lines", "shares"]
Ink: TypeAlias = Literal["pass", "open", "fail", "one", "two", "three", "four", "bound"]

COLUMNS, ROWS = 61, 11
#: Bands from the bottom up, and the marks of lines, first in Unicode and then in ASCII.
_MARKS = {"pass": "█#", "open": "▒?", "fail": "·."} | {
    "one": "●o",
    "two": "×x",
    "three": "○+",
    "four": "△*",
    "bound": "▽v",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A point of a line or the height of a band, with what it says when pointed at."""

    x: float
    y: float
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line, or a band of stacked shares."""

    name: str
    ink: Ink
    points: tuple[Point, ...]
    connected: bool = True
    """Whether the points make a line or stand for themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A value worth a line across the chart."""

    value: float
    label: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines over an axis, or shares of 1 stacked over it."""

    heading: str
    description: str
    kind: Kind
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_unit: Unit = "rate"
    y_unit: Unit = "share"
    guides: tuple[Guide, ...] = ()

    @property
    def x_range(self) -> tuple[float, float]:
        """From the first to the last point."""
        values = [point.x for series in self.series for point in series.points]
        return min(values), max(values)

    @property
    def y_range(self) -> tuple[float, float]:
        """From 0 to 1 for shares of all runs, else to a round number above every point."""
        if self.y_unit == "share":
            return 0.0, 1.0
        values = [point.y for series in self.series for point in series.points]
        values += [guide.value for guide in self.guides if guide.axis == "y"]
        return 0.0, round_above(max(values))


def render_terminal(chart: Chart, *, unicode: bool = True) -> list[str]:
    """The chart as lines of at most 80 columns, heading and key included."""
    grid = _bands(chart, unicode) if chart.kind == "shares" else _lines(chart, unicode)
    low, high = chart.y_range
    margin = 9
    lines = [chart.heading, *_key(chart, unicode), ""]
    for row, cells in enumerate(grid):
        value = high - (high - low) * row / (ROWS - 1)
        label = tick(value, chart.y_unit) if row in (0, (ROWS - 1) // 2, ROWS - 1) else ""
        bar = "┤" if label else "│"
        lines.append(f"{label:>{margin - 1}} {bar if unicode else '|'}{''.join(cells)}".rstrip())
    return [*lines, *_axis(chart, margin, unicode)]


def _bands(chart: Chart, unicode: bool) -> list[list[str]]:
    """Each column is the nearest point, filled from the bottom in the order of the series."""
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    low, high = chart.x_range
    points = list(zip(*(series.points for series in chart.series), strict=True))
    for column in range(COLUMNS):
        x = low + (high - low) * column / (COLUMNS - 1)
        stack = min(points, key=lambda pile: abs(pile[0].x - x))
        for row in range(ROWS):
            middle = (ROWS - row - 0.5) / ROWS
            grid[row][column] = _band_at(chart, stack, middle, unicode)
    return grid


def _band_at(chart: Chart, stack: Sequence[Point], height: float, unicode: bool) -> str:
    reached = 0.0
    for series, point in zip(chart.series, stack, strict=True):
        reached += point.y
        if height < reached:
            return _mark(series.ink, unicode)
    return " "


def _lines(chart: Chart, unicode: bool) -> list[list[str]]:
    grid = [[" "] * COLUMNS for _ in range(ROWS)]
    low, high = chart.x_range
    bottom, top = chart.y_range
    # Where points meet, single ones are to be seen before lines, and the first line before others.
    lines = [series for series in reversed(chart.series) if series.connected]
    for series in [*lines, *(series for series in chart.series if not series.connected)]:
        for point in series.points:
            column = round((COLUMNS - 1) * part(point.x, low, high))
            row = round((ROWS - 1) * (1 - part(point.y, bottom, top)))
            grid[row][column] = _mark(series.ink, unicode)
    return grid


def _key(chart: Chart, unicode: bool) -> list[str]:
    """What each mark means, in as many lines as it takes."""
    lines: list[str] = []
    for series in chart.series:
        entry = f"{_mark(series.ink, unicode)} {series.name}"
        if lines and len(lines[-1]) + 3 + len(entry) <= 79:
            lines[-1] += f"   {entry}"
        else:
            lines.append(f"  {entry}")
    return lines


def _mark(ink: Ink, unicode: bool) -> str:
    return _MARKS[ink][0 if unicode else 1]


def _axis(chart: Chart, margin: int, unicode: bool) -> Iterator[str]:
    low, high = chart.x_range
    ticks = [(low, tick(low, chart.x_unit)), (high, tick(high, chart.x_unit))]
    ticks += [(guide.value, guide.label) for guide in chart.guides if guide.axis == "x"]
    rule = ["─" if unicode else "-"] * COLUMNS
    labels = [" "] * (COLUMNS + 8)
    # The guides first: where labels would run into each other, the ends give way.
    for value, label in reversed(ticks):
        column = round((COLUMNS - 1) * part(value, low, high))
        rule[column] = "┬" if unicode else "+"
        start = max(0, min(column - len(label) // 2, len(labels) - len(label)))
        if not "".join(labels[max(0, start - 1) : start + len(label) + 1]).strip():
            labels[start : start + len(label)] = label
    yield " " * margin + ("└" if unicode else "+") + "".join(rule)
    yield (" " * (margin + 1) + "".join(labels)).rstrip()
    yield " " * (margin + 1) + chart.x_label


def tick(value: float, unit: Unit) -> str:
    """A value of an axis."""
    if unit == "count":
        return f"{value:.0f}" if value == round(value) else as_mean_trials(value)
    return as_percent(float(f"{value:.4g}"))
