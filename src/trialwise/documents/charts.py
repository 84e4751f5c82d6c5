"""Charts: what is drawn and what a reader can look up in it, before a renderer draws it.

`Chart` is anything with two axes. `Strips` are intervals on one scale, `Bars` are amounts beside
each other. A heat map is a table whose cells have a shade.

The charts are our own, and so is the SVG that the HTML renderer makes of them: a library would
bring megabytes of script into every report, draw nothing in a terminal and read nothing out to a
screen reader, and the few kinds of chart that a verdict needs take less code than its adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from trialwise.documents.axes import Axis, Unit, round_up

__all__ = [
    "Area",
    "Bar",
    "Bars",
    "Chart",
    "Guide",
    "Hit",
    "Ink",
    "Line",
    "Mark",
    "Place",
    "Strip",
    "StripRow",
    "Strips",
    "chart_lines",
    "chart_shares",
    "spread_hits",
]

Ink: TypeAlias = Literal["one", "two", "three", "four", "bound", "quiet", "pass", "fail", "open"]
"""What a shape stands for; a renderer gives each ink a colour and a mark."""
Place: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A filled region between two lines, given by their points from left to right."""

    name: str
    ink: Ink
    upper: tuple[Place, ...]
    lower: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points."""

    name: str
    ink: Ink
    points: tuple[Place, ...]
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point worth a dot, with a label of its own or a name in the key."""

    x: float
    y: float
    label: str = ""
    name: str = ""
    """What the key calls it; marks of one name have one entry."""
    ink: Ink = "one"
    below: bool = False
    """Whether the label stands under the dot, where the chart rises over it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A value worth a line across the chart."""

    value: float
    label: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A column of the chart, and what it says when pointed at."""

    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with two axes and everything it is read by."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """An interval with its estimate, over what it is held against."""

    low: float
    value: float
    high: float
    ink: Ink
    span: tuple[float, float]
    """The two ends of the scale."""
    need: float | None = None
    """What it is held against."""
    other: float | None = None
    """What it must be distinguished from."""
    soft: bool = False
    """Whether a PASS says less than it seems to."""
    dashed: bool = False
    hint: str = ""
    """The same in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripRow:
    """One of several intervals, with its name and its numbers."""

    name: str
    strip: Strip
    value: str
    interval: str = ""
    note: str = ""
    depth: int = 0
    """How far it belongs under the rows above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strips:
    """Intervals below each other on one scale."""

    heading: str
    summary: str
    axis: Axis
    rows: tuple[StripRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """An amount as a share of the longest bar or of what is allowed."""

    name: str
    value: str
    share: float
    note: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Amounts beside each other."""

    bars: tuple[Bar, ...]
    heading: str = ""
    ink: Ink = "one"
    rest: str = ""
    """What is not drawn."""


def spread_hits(places: Sequence[float], say: Callable[[int], str]) -> tuple[Hit, ...]:
    """A column around each place, up to halfway to the next ones.

    Args:
        places: Ascending.
        say: What the column of the k-th place says.
    """
    if not places:
        return ()
    edges = [places[0], *((a + b) / 2 for a, b in pairwise(places)), places[-1]]
    return tuple(
        Hit(low=low, high=high, text=say(k)) for k, (low, high) in enumerate(pairwise(edges))
    )


def chart_shares(
    heading: str,
    summary: str,
    x_label: str,
    y_label: str,
    *,
    rates: Sequence[float],
    bands: Sequence[tuple[str, Ink, Sequence[float]]],
    guides: tuple[Guide, ...] = (),
) -> Chart:
    """Shares of 1 stacked over a rate, from the bottom up; the values of every rate are listed.

    Args:
        heading: Of the chart.
        summary: What it shows, in a sentence.
        x_label: What the rates are.
        y_label: Of what the shares are.
        rates: Ascending.
        bands: Name, ink and the share at every rate.
        guides: Rates worth a line.
    """
    x = Axis(low=rates[0], high=rates[-1], label=x_label, unit="rate")
    y = Axis(low=0, high=1, label=y_label, unit="rate")
    areas, below = [], [0.0] * len(rates)
    for name, ink, shares in bands:
        above = [low + share for low, share in zip(below, shares, strict=True)]
        areas.append(
            Area(
                name=name,
                ink=ink,
                upper=tuple(zip(rates, above, strict=True)),
                lower=tuple(zip(rates, below, strict=True)),
            )
        )
        below = above
    rows = [
        (x.format_tick(rate), *(y.format_value(shares[k]) for _, _, shares in bands))
        for k, rate in enumerate(rates)
    ]
    names = [name for name, _, _ in bands]
    return Chart(
        heading=heading,
        summary=summary,
        x=x,
        y=y,
        areas=tuple(areas),
        guides=guides,
        hits=spread_hits(rates, lambda k: _read_out(x_label, names, rows[k])),
        columns=(x_label, *names),
        rows=tuple(rows),
    )


def chart_lines(
    heading: str,
    summary: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line],
    *,
    marks: Sequence[Mark] = (),
    guides: tuple[Guide, ...] = (),
    x_unit: Unit = "rate",
    y_unit: Unit = "count",
    y_high: float | None = None,
) -> Chart:
    """Lines over one axis; the values of all lines at every place are listed.

    Args:
        heading: Of the chart.
        summary: What it shows, in a sentence.
        x_label: What the places are.
        y_label: What the values are.
        lines: In order of importance: where they meet, the first is seen.
        marks: Single points.
        guides: Values worth a line across.
        x_unit: What the places count.
        y_unit: What the values count.
        y_high: Where the upright axis ends; a round number above every value where none is given.
    """
    places = sorted({x for line in lines for x, _ in line.points} | {mark.x for mark in marks})
    values = [y for line in lines for _, y in line.points] + [mark.y for mark in marks]
    values += [guide.value for guide in guides if guide.axis == "y"]
    x = Axis(low=places[0], high=places[-1], label=x_label, unit=x_unit)
    high = round_up(max(values)) if y_high is None else y_high
    y = Axis(low=0, high=high, label=y_label, unit=y_unit)
    names = list(dict.fromkeys([one.name for one in lines] + [one.name for one in marks]))
    at = {(line.name, place): value for line in lines for place, value in line.points}
    at |= {(mark.name, mark.x): mark.y for mark in marks}
    rows = [
        (
            x.format_tick(place) if x_unit == "count" else x.format_tick(round(place, 6)),
            *(y.format_value(at[name, place]) if (name, place) in at else "–" for name in names),
        )
        for place in places
    ]
    return Chart(
        heading=heading,
        summary=summary,
        x=x,
        y=y,
        lines=tuple(lines),
        marks=tuple(marks),
        guides=guides,
        hits=spread_hits(places, lambda k: _read_out(x_label, names, rows[k])),
        columns=(x_label, *names),
        rows=tuple(rows),
    )


def _read_out(label: str, names: Sequence[str], row: tuple[str, ...]) -> str:
    """A row of values as a sentence; a line without a value there is left out."""
    place, *values = row
    known = zip(names, values, strict=True)
    said = [f"{name} {value}" for name, value in known if value != "–"]
    return f"{label} {place}: {', '.join(said)}"
