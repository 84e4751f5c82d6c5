"""Charts that fit any width: the frame and its words are HTML, only the shapes are SVG.

The shapes are drawn in a square of a thousand by a thousand and stretched; strokes and dots are
not. So text keeps the reader's size on a phone as on a wall, and a screen reader hears sentences.
Every chart says its values where it is pointed at, and has them in a table below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trialwise.documents.numbers import as_duration, as_money, as_percent, as_seconds
from trialwise.reporters.html.parts import Outline, Tone, details, table
from trialwise.reporters.page.axis import part, round_steps
from trialwise.reporters.page.markup import Markup, element
from trialwise.reporters.plan.charts import Guide

__all__ = ["INKS", "Area", "Axis", "Hit", "Line", "Mark", "Plot", "render_plot"]

Unit: TypeAlias = Literal["rate", "count", "seconds", "usd"]
Ink: TypeAlias = Literal["one", "quiet", "pass", "fail", "open"]
Place: TypeAlias = tuple[float, float]

INKS: dict[Tone, Ink] = {"pass": "pass", "fail": "fail", "open": "open", "none": "quiet"}
"""The colour of a mark that stands for a decision."""
#: The side of the square that shapes are drawn in.
SIDE = 1000
#: The narrowest plot, in letters: labels that are nearer than their length get lines of their own.
LETTERS = 28
#: How far apart the lines of labels above a chart are, in their own size.
LINE = 1.3
#: Room between the lowest of them and the highest tick beside it.
GAP = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One side of a chart."""

    low: float
    high: float
    label: str
    unit: Unit
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """How far along the axis a value lies, 0 to 1; what lies outside is put on the edge."""
        if self.logarithmic:
            return part(math.log(max(value, self.low)), math.log(self.low), math.log(self.high))
        return part(value, self.low, self.high)

    def ticks(self) -> list[tuple[float, str]]:
        """A few round values, with how they are written."""
        values = self._decades() if self.logarithmic else self._steps()
        return [(value, self.spelled(value)) for value in values]

    def spelled(self, value: float) -> str:
        """A value as the axis writes it."""
        match self.unit:
            case "rate":
                return as_percent(float(f"{value:.4g}"))
            case "seconds":
                if value < 0.01:
                    return as_seconds(float(f"{value:.3g}")) if value else "0"
                return as_duration(value)
            case "usd":
                return as_money(value)
            case "count":
                return f"{value:,.0f}"

    def _steps(self) -> list[float]:
        steps = round_steps(self.low, self.high, most=5)
        return [step for step in steps if step % 1 == 0] if self.unit == "count" else steps

    def _decades(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1, 2, 5), (1, 3), (1,)):
            steps = [f * 10.0**power for power in range(first, last + 1) for f in factors]
            inside = [step for step in steps if self.low <= step <= self.high]
            if len(inside) <= 6:
                return inside
        return inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A filled region between two lines, given by their points from left to right."""

    name: str
    ink: Ink
    upper: tuple[Place, ...]
    lower: tuple[Place, ...]
    hatched: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points."""

    name: str
    ink: Ink
    points: tuple[Place, ...]
    dashed: bool = False
    faint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point worth a dot and a label of its own."""

    x: float
    y: float
    label: str
    ink: Ink = "one"
    below: bool = False
    """Whether the label stands under the dot, where the chart rises over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A column of the chart, and what it says when pointed at."""

    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A chart with everything it is read by."""

    heading: str
    summary: str
    """What the chart shows, in a sentence: its caption and its text alternative."""
    x: Axis
    y: Axis
    areas: tuple[Area, ...] = ()
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    guides: tuple[Guide, ...] = ()
    hits: tuple[Hit, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """The values in a table."""


def render_plot(plot: Plot, outline: Outline) -> Markup:
    """The chart as a figure with its key, its values on demand and a table of them."""
    upright = sorted((g for g in plot.guides if g.axis == "x"), key=lambda g: g.value)
    lines = _staggered([(plot.x.place(g.value), len(g.label)) for g in upright])
    above = LINE * (max(row for row, _ in lines) + 1) + GAP if lines else 0
    # The words about the picture are in the caption; what is in the picture is decoration.
    frame = element(
        "div",
        _y_ticks(plot),
        element("div", _shapes(plot), *_labels(plot, upright, lines), class_="shapes"),
        _x_ticks(plot),
        element("div", plot.x.label, class_="xlabel"),
        class_="plot",
        style=f"margin-top:{above:.1f}em" if above else None,
        role="img",
        tabindex="0",
        aria_label=f"{plot.heading}. {plot.summary}",
        data_chart=True,
    )
    values = table(plot.heading, plot.columns, plot.rows, wide=True, hide_caption=True)
    return element(
        "figure",
        element("figcaption", outline.heading(plot.heading), element("p", plot.summary)),
        element("div", _key(plot), class_="keys"),
        element(
            "div",
            element("span", plot.y.label, class_="ylabel"),
            frame,
            element("p", class_="readout", aria_live="polite"),
            class_="frame",
        ),
        details("Values as a table", values),
        class_="figure",
    )


def _key(plot: Plot) -> Markup:
    entries = [
        element(
            "li",
            element("span", class_=f"swatch fill-{area.ink}{' hatched' if area.hatched else ''}"),
            area.name,
        )
        for area in plot.areas
        if area.name
    ]
    entries += [
        element("li", element("span", class_=f"swatch {_line_class(line)}"), line.name)
        for line in plot.lines
        if line.name
    ]
    return element("ul", *entries, class_="key", aria_hidden="true") if entries else Markup("")


def _line_class(line: Line) -> str:
    styles = (" dashed" if line.dashed else "") + (" faint" if line.faint else "")
    return f"line-{line.ink}{styles}"


def _shapes(plot: Plot) -> Markup:
    grid = [
        element("path", d=f"M0 {_down(plot.y.place(value))}H{SIDE}", class_="grid")
        for value, _ in plot.y.ticks()
    ]
    areas = [
        element(
            "path",
            d=_path(plot, [*area.upper, *reversed(area.lower)]) + "Z",
            class_=f"area fill-{area.ink}{' hatched' if area.hatched else ''}",
        )
        for area in plot.areas
    ]
    guides = [_guide(plot, guide) for guide in plot.guides]
    lines = [
        element("path", d=_path(plot, line.points), class_=f"stroke {_line_class(line)}")
        for line in plot.lines
    ]
    # A stroke of no length with round ends is a dot that stretching leaves round.
    marks = [
        element("path", d=_path(plot, [(mark.x, mark.y)]) + "h0", class_=f"dot line-{mark.ink}")
        for mark in plot.marks
    ]
    hits = [_hit(plot, hit) for hit in plot.hits]
    return element(
        "svg",
        *grid,
        *areas,
        *guides,
        *lines,
        *marks,
        *hits,
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        focusable="false",
    )


def _hit(plot: Plot, hit: Hit) -> Markup:
    left, right = SIDE * plot.x.place(hit.low), SIDE * plot.x.place(hit.high)
    return element(
        "rect",
        element("title", hit.text),
        x=f"{left:.1f}",
        y=0,
        width=f"{max(right - left, 0.5):.1f}",
        height=SIDE,
        class_="hit",
    )


def _guide(plot: Plot, guide: Guide) -> Markup:
    if guide.axis == "x":
        return element("path", d=f"M{_across(plot.x.place(guide.value))} 0V{SIDE}", class_="guide")
    return element("path", d=f"M0 {_down(plot.y.place(guide.value))}H{SIDE}", class_="guide")


def _labels(
    plot: Plot, upright: Sequence[Guide], lines: Sequence[tuple[int, str]]
) -> Iterator[Markup]:
    """Words on guides and marks; upright guides have theirs above the chart, in lines."""
    for guide, (row, side) in zip(upright, lines, strict=True):
        place = plot.x.place(guide.value)
        yield element(
            "span",
            guide.label,
            class_=f"tag upright {side}",
            style=f"left:{100 * place:.2f}%;height:{LINE * (row + 1) + GAP:.1f}em",
        )
    yield from (
        element(
            "span",
            guide.label,
            class_="tag level under" if plot.y.place(guide.value) > 0.88 else "tag level",
            style=f"bottom:{100 * plot.y.place(guide.value):.2f}%",
        )
        for guide in plot.guides
        if guide.axis == "y"
    )
    yield from (
        element(
            "span",
            mark.label,
            class_=f"tag mark {_side(plot.x.place(mark.x))}{' below' if mark.below else ''}",
            style=(
                f"left:{100 * plot.x.place(mark.x):.2f}%;bottom:{100 * plot.y.place(mark.y):.2f}%"
            ),
        )
        for mark in plot.marks
        if mark.label
    )


def _side(place: float) -> str:
    """On which side of its dot a label has room."""
    return "before" if place > 0.55 else "after"


def _staggered(labels: Sequence[tuple[float, int]]) -> list[tuple[int, str]]:
    """The line of each label above a chart, from the bottom, and its side.

    Labels stand before their guides where there is room, a later one above those it would touch:
    then no guide runs through a label of another. Otherwise everything is mirrored.

    >>> _staggered([(0.5, 9), (0.6, 9), (1.0, 9)])
    [(0, 'before'), (1, 'before'), (0, 'before')]
    >>> _staggered([(0.0, 9), (0.1, 9)])
    [(1, 'after'), (0, 'after')]
    """
    spans = [(place, (letters + 2) / LETTERS) for place, letters in labels]
    too_far_left = max((width - place for place, width in spans), default=0.0)
    too_far_right = max((place + width - 1 for place, width in spans), default=0.0)
    # The ticks' own column is free above the chart.
    if too_far_left - 0.2 <= max(too_far_right, 0.0):
        return [(row, "before") for row in _lines(spans)]
    mirrored = _lines([(1 - place, width) for place, width in reversed(spans)])
    return [(row, "after") for row in reversed(mirrored)]


def _lines(spans: Sequence[tuple[float, float]]) -> list[int]:
    rows: list[int] = []
    for number, (place, width) in enumerate(spans):
        touched = [rows[k] for k in range(number) if spans[k][0] > place - width]
        rows.append(max(touched, default=-1) + 1)
    return rows


def _y_ticks(plot: Plot) -> Markup:
    spans = [
        element("span", text, style=f"bottom:{100 * plot.y.place(value):.2f}%")
        for value, text in plot.y.ticks()
    ]
    return element("div", *spans, class_="yticks")


def _x_ticks(plot: Plot) -> Markup:
    spans = [
        element(
            "span",
            text,
            class_="end" if plot.x.place(value) > 0.96 else None,
            style=f"left:{100 * plot.x.place(value):.2f}%",
        )
        for value, text in plot.x.ticks()
    ]
    return element("div", *spans, class_="xticks")


def _path(plot: Plot, places: Iterable[Place]) -> str:
    steps = [f"{_across(plot.x.place(x))} {_down(plot.y.place(y))}" for x, y in places]
    return "M" + "L".join(steps)


def _across(share: float) -> str:
    return f"{SIDE * share:.1f}".removesuffix(".0")


def _down(share: float) -> str:
    return f"{SIDE * (1 - share):.1f}".removesuffix(".0")
