"""Charts: what is drawn and what a reader can look up in it, before a renderer draws it.

`Chart` is anything with two axes. `Strips` are intervals on one scale. A heat map is a table whose
cells have a shade.

The charts are our own, and so is the SVG that the HTML renderer makes of them: a library would
bring megabytes of script into every report, draw nothing in a terminal and read nothing out to a
screen reader, and the few kinds of chart that a verdict needs take less code than its adapter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from trialwise.documents import numbers

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
    others: tuple[float, ...] = ()
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
    ends: tuple[str, str] = ("", "")
    """What lies toward the two ends of the scale."""


def spread_hits(places: Sequence[float], say: Callable[[int], str]) -> tuple[Hit, ...]:
    """Spread a column around each place, up to halfway to the next ones.

    Args:
        places: Ascending.
        say: What the column of the k-th place says.
    """
    if not places:
        return ()
    # Halfway: a pointer reads out the nearest value, with no gap between two of them.
    edges = [places[0], *((a + b) / 2 for a, b in pairwise(places)), places[-1]]
    spans = enumerate(pairwise(edges))
    return tuple(Hit(low=low, high=high, text=say(k)) for k, (low, high) in spans)


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
        heading: The heading of the chart.
        summary: What it shows, in a sentence.
        x_label: What the rates are.
        y_label: What the shares are shares of.
        rates: Ascending.
        bands: Name, ink and the share at every rate.
        guides: Rates worth a line.
    """
    # Shares of 1 need no other scale: a cut axis would make a rare FAIL look common.
    x = Axis(low=rates[0], high=rates[-1], label=x_label, unit="rate")
    y = Axis(low=0, high=1, label=y_label, unit="rate")
    areas, below = [], [0.0] * len(rates)
    for name, ink, shares in bands:
        above = [low + share for low, share in zip(below, shares, strict=True)]
        upper, lower = (tuple(zip(rates, edge, strict=True)) for edge in (above, below))
        areas.append(Area(name=name, ink=ink, upper=upper, lower=lower))
        below = above
    columns = [[y.format_value(share) for share in shares] for _, _, shares in bands]
    rows = [*zip(map(x.format_tick, rates), *columns, strict=True)]
    chart = Chart(heading=heading, summary=summary, x=x, y=y, areas=tuple(areas), guides=guides)
    return list_values(chart, [name for name, _, _ in bands], rates, rows)


def list_values(
    chart: Chart, names: Sequence[str], places: Sequence[float], rows: Sequence[tuple[str, ...]]
) -> Chart:
    """Return a chart with its values at every place, to look up and to point at."""
    hits = spread_hits(places, lambda k: _read_out(chart.x.label, names, rows[k]))
    return replace(chart, hits=hits, columns=(chart.x.label, *names), rows=tuple(rows))


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
        heading: The heading of the chart.
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
    # A line across that the axis does not reach would be left out without a word.
    values += [guide.value for guide in guides if guide.axis == "y"]
    x = Axis(low=places[0], high=places[-1], label=x_label, unit=x_unit)
    high = round_up(max(values)) if y_high is None else y_high
    y = Axis(low=0, high=high, label=y_label, unit=y_unit)
    names = list(dict.fromkeys([one.name for one in lines] + [one.name for one in marks]))
    at = {(line.name, place): value for line in lines for place, value in line.points}
    at |= {(mark.name, mark.x): mark.y for mark in marks}
    rows = []
    for place in places:
        found = (at.get((name, place)) for name in names)
        said = ("–" if value is None else y.format_value(value) for value in found)
        rows.append((x.format_tick(place if x_unit == "count" else round(place, 6)), *said))
    chart = Chart(heading=heading, summary=summary, x=x, y=y, lines=tuple(lines), guides=guides)
    return list_values(replace(chart, marks=tuple(marks)), names, places, rows)


def _read_out(label: str, names: Sequence[str], row: tuple[str, ...]) -> str:
    """Read a row of values as a sentence; a line without a value there is left out."""
    place, *values = row
    known = zip(names, values, strict=True)
    said = [f"{name} {value}" for name, value in known if value != "–"]
    return f"{label} {place}: {', '.join(said)}"


Unit: TypeAlias = Literal["rate", "points", "count", "seconds", "usd"]
"""What an axis counts; it decides how values are written."""


def find_share(value: float, low: float, high: float) -> float:
    """Return how far a value lies between two ends, from 0 to 1, clipped at the ends."""
    return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5


def round_up(value: float) -> float:
    """Return the next round number: 1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6 or 8 times a power of ten.

    >>> round_up(37), round_up(0)
    (40.0, 1.0)
    """
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    # Steps near each other, so that a chart is filled to three quarters at least.
    steps = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10)
    return scale * next((step for step in steps if value <= scale * step), 10)


def list_round_steps(low: float, high: float, *, most: int = 8) -> list[float]:
    """List a few round values between two ends: at most one more than `most`, which is 2 to 8.

    >>> list_round_steps(0, 40), list_round_steps(0.75, 1, most=4)
    ([0.0, 10.0, 20.0, 30.0, 40.0], [0.8, 0.9, 1.0])
    """
    if high <= low:
        return [low]
    # Ticks at round values: between 0.83 and 0.97 nobody places a rate by eye.
    scale = 10.0 ** math.floor(math.log10(high - low))
    span = (high - low) / scale  # from 1 up to 10
    step = scale * next(part for part in (0.25, 0.5, 1.0, 2.0, 5.0) if span < most * part)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def thin_out(count: int, most: int) -> list[int]:
    """At most this many of the places 0 to count - 1, evenly spread, both ends among them.

    >>> thin_out(3, 5), thin_out(101, 3)
    ([0, 1, 2], [0, 50, 100])
    """
    if count <= most:
        return list(range(count))
    return [round(k * (count - 1) / (most - 1)) for k in range(most)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One side of a chart."""

    low: float
    high: float
    label: str
    unit: Unit
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return how far along the axis a value lies, from 0 to 1, clipped at the ends."""
        # No logarithm of 0: what lies below the axis is drawn on its edge.
        if self.logarithmic:
            logarithm = math.log(max(value, self.low))
            return find_share(logarithm, math.log(self.low), math.log(self.high))
        return find_share(value, self.low, self.high)

    def list_ticks(self, *, most: int = 5) -> list[tuple[float, str]]:
        """List a few round values, with how they are written."""
        steps = list_round_steps(self.low, self.high, most=most)
        if self.unit == "count":
            steps = [step for step in steps if step % 1 == 0]
        values = self._list_decades() if self.logarithmic else steps
        return [(value, self.format_tick(value)) for value in values]

    def format_tick(self, value: float) -> str:
        """Format a round value as the axis writes it."""
        match self.unit:
            case "rate":
                return numbers.as_percent(float(f"{value:.4g}"))
            case "points":
                return numbers.as_signed_points(value)
            case "seconds":
                if value < 0.01:
                    return numbers.as_seconds(float(f"{value:.3g}")) if value else "0"
                return numbers.as_duration(value)
            case "usd":
                return numbers.as_money(value)
            case "count":
                return f"{value:,.0f}"

    def format_value(self, value: float) -> str:
        """Format a computed value on the axis, exact enough to be read out."""
        if self.unit == "rate":
            return numbers.as_probability(value)
        # A count of trials is whole, and a mean of counts is not.
        is_mean = self.unit == "count" and not isinstance(value, int)
        return numbers.as_mean_trials(value) if is_mean else self.format_tick(value)

    def _list_decades(self) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1, 2, 5), (1, 3), (1,)):
            steps = [f * 10.0**power for power in range(first, last + 1) for f in factors]
            inside = [step for step in steps if self.low <= step <= self.high]
            if len(inside) <= 6:
                return inside
        return inside
