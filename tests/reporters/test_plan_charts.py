"""Charts of plans: every value where it belongs, in characters and in SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.reporters.page.axis import round_steps
from trialwise.reporters.plan.charts import Chart, Guide, Point, Series, render_terminal
from trialwise.reporters.plan.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    render_svg,
    render_svg_file,
)

SVG = "{http://www.w3.org/2000/svg}"


def line(name: str, *values: float) -> Series:
    points = tuple(Point(x=i / 10, y=y, label=f"{name} {y}") for i, y in enumerate(values))
    return Series(name=name, ink="one", points=points)


def lines(*series: Series, guides: tuple[Guide, ...] = ()) -> Chart:
    return Chart(
        heading="Mean trials",
        description="A line.",
        kind="lines",
        x_label="true rate",
        y_label="trials",
        y_unit="count",
        series=series,
        guides=guides,
    )


def shares(points: int = 11) -> Chart:
    """PASS grows from 0 to 1, a tenth of what is left stays open."""
    passes = [i / (points - 1) for i in range(points)]
    left = [(1 - p) / 10 for p in passes]
    rates = [0.5 + p / 2 for p in passes]
    parts = {"PASS": passes, "INCONCLUSIVE": left, "FAIL": [9 * value for value in left]}
    inks = {"PASS": "pass", "INCONCLUSIVE": "open", "FAIL": "fail"}
    return Chart(
        heading="Verdicts",
        description="Shares <of> all runs.",
        kind="shares",
        x_label="true rate",
        y_label="share",
        series=tuple(
            Series(
                name=name,
                ink=inks[name],  # type: ignore[arg-type]
                points=tuple(Point(x=x, y=y) for x, y in zip(rates, values, strict=True)),
            )
            for name, values in parts.items()
        ),
        guides=(Guide(value=0.75, label="75 %"),),
    )


def plotted(chart: Chart, *, unicode: bool = False) -> list[str]:
    """The rows of the plot itself, without axes."""
    bar = ("│", "┤") if unicode else ("|",)
    rows = [text for text in render_terminal(chart, unicode=unicode) if text[9:10] in bar]
    return [text[10:].ljust(61) for text in rows]


# --- In a terminal ----------------------------------------------------------------------------


def test_a_line_is_drawn_where_its_values_are() -> None:
    """0 stands in the bottom row, the top value in the top row, and half of it midway."""
    rows = plotted(lines(line("a", 0, 5, 10)))

    assert len(rows) == 11
    assert [(10, 0), (5, 30), (0, 60)] == sorted(
        ((r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "o"),
        reverse=True,
    )


def test_a_terminal_chart_has_a_mark_for_every_point() -> None:
    """61 points take 61 columns, one mark each."""
    points = tuple(Point(x=float(i), y=float(i % 7)) for i in range(61))
    rows = plotted(lines(Series(name="a", ink="one", points=points)))

    assert sum(row.count("o") for row in rows) == 61


def test_where_lines_meet_the_first_is_seen_and_single_points_before_lines() -> None:
    """The recommended method is named first; a limit is drawn over every method."""
    first, second = line("first", 1, 1), line("second", 1, 1)
    second = Series(name=second.name, ink="two", points=second.points)
    limit = Series(name="limit", ink="bound", points=first.points[:1], connected=False)

    marks = "".join(plotted(lines(first, second, limit))).replace(" ", "")
    assert marks == "vo"


def test_shares_fill_their_column() -> None:
    """At the left every run FAILs or stays open, at the right every run PASSes."""
    rows = plotted(shares())

    columns = ["".join(row[i] for row in rows) for i in range(61)]
    assert {"#"} == set(columns[60])
    assert columns[0].count("#") == 0
    assert columns[0].count("?") == 1
    assert columns[30].count("#") == 5 or columns[30].count("#") == 6
    assert all(" " not in column for column in columns)


def test_the_axis_names_its_ends_and_its_guides() -> None:
    """The guide's label stands under its column."""
    text = render_terminal(shares(), unicode=False)

    axis, label = text[-2], text[-1]
    assert axis.strip().startswith("50 %")
    assert "75 %" in axis
    assert axis.rstrip().endswith("100 %")
    assert label.strip() == "true rate"
    assert axis.index("75 %") + 2 == 10 + 30


def test_a_label_gives_way_rather_than_run_into_another() -> None:
    """Guides at every percent cannot all be named; no two labels touch."""
    guides = tuple(Guide(value=0.1 + i / 100, label=f"{10 + i} %") for i in range(9))
    text = render_terminal(lines(line("a", 1, 2, 3), guides=guides), unicode=False)

    labels = text[-2].replace(" %", "%").split()
    assert set(labels) <= {"0%", "20%", *(f"{10 + i}%" for i in range(9))}


@pytest.mark.parametrize("chart", [shares(), lines(line("a", 1, 2, 3))])
def test_a_terminal_without_unicode_gets_ascii(chart: Chart) -> None:
    """Every mark and every rule has its fallback."""
    assert "\n".join(render_terminal(chart, unicode=False)).isascii()
    assert not "\n".join(render_terminal(chart)).isascii()


def test_a_long_key_is_folded() -> None:
    """Names that do not fit beside each other take another line."""
    many = [line(f"a series with quite a long name {i}", 1, 2) for i in range(4)]

    assert max(len(text) for text in render_terminal(lines(*many))) <= 80


# --- As SVG -----------------------------------------------------------------------------------


def element(chart: Chart) -> ET.Element:
    return ET.fromstring(render_svg(chart, identity="here"))


def test_every_point_says_its_values() -> None:
    """One circle a point, each with its label as title."""
    svg = element(lines(line("a", 1, 2, 3), line("b", 2, 3)))

    titles = [circle.findtext("title") for circle in svg.iter("circle")]
    assert sorted(map(str, titles)) == ["a 1", "a 2", "a 3", "b 2", "b 3"]


def test_points_lie_where_their_values_are() -> None:
    """The first at the left of the plot, the top value at its top."""
    svg = element(lines(line("a", 0, 5, 10)))

    places = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in svg.iter("circle")]
    middle = (LEFT + WIDTH - RIGHT) / 2
    assert places == [
        (LEFT, HEIGHT - BOTTOM),
        (middle, (TOP + HEIGHT - BOTTOM) / 2),
        (WIDTH - RIGHT, TOP),
    ]


@pytest.mark.parametrize("points", [2, 11, 61])
def test_stacked_shares_have_a_column_for_every_point(points: int) -> None:
    """Three bands, and a title for each column that names all three shares."""
    svg = element(shares(points))

    columns = [rect for rect in svg.iter("rect") if rect.attrib.get("class") == "hit"]
    assert len(columns) == points
    assert len(list(svg.iter("polygon"))) == 3
    assert columns[0].findtext("title") == (
        "true rate 50 %: PASS 0 %, INCONCLUSIVE 10.00 %, FAIL 90.00 %"
    )
    widths = [float(rect.attrib["width"]) for rect in columns]
    starts = [float(rect.attrib["x"]) for rect in columns]
    assert min(starts) == LEFT
    assert max(x + w for x, w in zip(starts, widths, strict=True)) == pytest.approx(
        WIDTH - RIGHT, abs=0.2
    )


def test_a_chart_is_an_image_with_a_name_and_a_description() -> None:
    """role=img, labelled by its title and description, with everything escaped."""
    svg = element(shares())

    assert svg.attrib["role"] == "img"
    title, desc = svg.find("title"), svg.find("desc")
    assert title is not None
    assert desc is not None
    assert svg.attrib["aria-labelledby"].split() == [title.attrib["id"], desc.attrib["id"]]
    assert (title.text, desc.text) == ("Verdicts", "Shares <of> all runs.")


def test_a_file_of_charts_stands_alone() -> None:
    """Its own namespace and styles for light and dark, and identities that do not collide."""
    text = render_svg_file([shares(), lines(line("a", 1, 2))])
    root = ET.fromstring(text)

    assert root.tag == f"{SVG}svg"
    inner = root.findall(f"{SVG}svg")
    assert len(inner) == 2
    identities = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
    assert len(identities) == len(set(identities)) == 4
    assert "prefers-color-scheme:dark" in text
    bottoms = [int(svg.attrib["y"]) + int(svg.attrib["height"]) for svg in inner]
    assert max(bottoms) <= int(root.attrib["height"])


def test_ticks_are_round_and_within() -> None:
    """An axis from 22 to 692 is named in round numbers."""
    points = tuple(Point(x=x, y=1.0) for x in (22.0, 692.0))
    chart = Chart(
        heading="h",
        description="d",
        kind="lines",
        x_label="pairs",
        y_label="y",
        x_unit="count",
        series=(Series(name="a", ink="one", points=points),),
    )

    row = str(HEIGHT - BOTTOM + 16)
    ticks = [e.text for e in element(chart).iter("text") if e.attrib["y"] == row]
    assert ticks == ["100", "200", "300", "400", "500", "600"]


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e4))
def test_ticks_of_any_range_are_few_and_even(low: float, width: float) -> None:
    """Three to nine, evenly spaced, between the ends."""
    ticks = round_steps(low, low + width)

    assert 3 <= len(ticks) <= 9
    assert low - 1e-6 * width <= ticks[0] < ticks[-1] <= low + width * (1 + 1e-6)
    gaps = [b - a for a, b in pairwise(ticks)]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), rel=1e-6)


def test_a_single_point_is_no_division_by_zero() -> None:
    """A range without width is drawn in its middle."""
    chart = lines(line("a", 3))

    assert sum(row.count("o") for row in plotted(chart)) == 1
    assert len(list(element(chart).iter("circle"))) == 1
